"""Expressions of the `loops` stage as LLVM values, scalar or one lane an element.

A float16 or bfloat16 value is computed in float32 and rounded after each operation, as the language
says; only the rounding that a store does anyway is left to it. Nothing here can trap: divisors of
zero give zero, and lanes that a condition leaves out touch no memory.
"""

from __future__ import annotations

from typing import Any

from ....errors import TargetError
from ....ir import Arith, Call, Cast, Const, DType, Expr, Extern, Load, Reinterpret, Var, walk
from ....ir.arith import linear
from ....ir.expr import COMPARE, LOGIC
from ....language.meanings.rounding import number_in
from ..llvm import Value, const, i64, lanes_of, vector
from ..llvm.lanes import maximum, minimum
from ..numbers.convert import COMPUTE, STORAGE, convert, is_unsigned, narrow, round_to, widen
from ..numbers.functions import OF_TWO, UNARY, absolute, floor, fused
from ..numbers.philox import philox
from .elements import Elements

_ORDER = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


class Expressions(Elements):
    """Turns expressions into values at the open block of `state.f`."""

    # -- counting
    def index(self, expr: Expr) -> Value:
        """An integer expression that is the same in all lanes, as an i64; it wraps as its dtype does."""
        if isinstance(expr, (Const, Var)) or self.state.never_wraps(expr):
            return self.size(expr)
        return self._to_i64(self.value(expr), expr.dtype)

    def size(self, expr: Expr) -> Value:
        """An integer expression in 64 bits throughout: a stride, or what is proved to stay inside."""
        f = self.f
        match expr:
            case Const():
                return i64(int(expr.value))
            case Var():
                if self.state.lanes is not None and expr.name == self.state.lanes.name:
                    return self.state.lane_value()
                return self._to_i64(self.state.values[expr.name], expr.dtype)
            case Cast() if expr.value.dtype.is_integer and expr.type.bits >= 32:
                return self.size(expr.value)
            case Call(word="min" | "max") if expr.dtype.is_integer:
                a, b = (self.size(arg) for arg in expr.args)
                return f.imin(a, b) if expr.word == "min" else f.imax(a, b)
            case Arith(op="+" | "*") if expr.dtype.is_integer:
                total = self.size(expr.args[0])
                for arg in expr.args[1:]:
                    total = (f.add if expr.op == "+" else f.mul)(total, self.size(arg))
                return total
            case Arith(op="-") if expr.dtype.is_integer:
                parts = [self.size(arg) for arg in expr.args]
                return f.sub(parts[0], parts[1]) if len(parts) == 2 else f.sub(0, parts[0])
            case Arith(op="//" | "%") if isinstance(expr.args[1], Const) and expr.args[1].value > 0:
                return self._divide_index(expr)
            case _:
                return self._to_i64(self.value(expr), expr.dtype)

    def _to_i64(self, a: Value, dtype: DType) -> Value:
        if lanes_of(a.type) > 1:
            a = self.f.extract(a, 0)
        return a if a.type == "i64" else self.f.cast("zext" if is_unsigned(dtype.name) else "sext", a, "i64")

    def _divide_index(self, expr: Arith) -> Value:
        f, by = self.f, int(expr.args[1].value)  # type: ignore[attr-defined]
        a = self.size(expr.args[0])
        if a.integer is not None:
            return i64(a.integer // by if expr.op == "//" else a.integer % by)
        if self.state.low(expr.args[0]) >= 0:
            return f.binary("udiv" if expr.op == "//" else "urem", a, by)
        rest = f.binary("srem", a, by)
        below = f.compare("slt", rest, 0)
        if expr.op == "%":
            return f.select(below, f.add(rest, by), rest)
        return f.sub(f.binary("sdiv", a, by), f.cast("zext", below, "i64"))

    # -- values
    def value(self, expr: Expr, *, round_last: bool = True) -> Value:
        """The value in its compute type. Without `round_last` the outermost operation is not yet rounded."""
        state = self.state
        if (
            expr.dtype.is_integer
            and not isinstance(expr, (Const, Load))
            and not state.varies(expr)
            and state.counting(expr)
        ):
            return self._narrow_count(self.index(expr), expr.dtype)
        match expr:
            case Const():
                return const(_number(expr), COMPUTE[expr.dtype.name])
            case Var():
                return self._variable(expr)
            case Load():
                return self.load(expr)
            case Arith():
                return self._arith(expr, round_last)
            case Cast():
                return self._cast(expr)
            case Call():
                return self._call(expr, round_last)
            case _:
                raise TargetError(
                    "the CPU has no such expression: {kind}", kind=type(expr).__name__, at=expr.place
                )

    def _narrow_count(self, a: Value, dtype: DType) -> Value:
        goal = COMPUTE[dtype.name]
        if a.integer is not None:
            return const(_wrap(a.integer, dtype), goal)
        return a if goal == "i64" else self.f.cast("trunc", a, goal)

    def _variable(self, expr: Var) -> Value:
        lanes = self.state.lanes
        if lanes is not None and expr.name == lanes.name:
            start = self.f.cast("trunc", self.state.lane_value(), "i32")
            if start.integer is not None:
                start = const(start.integer, "i32")
            if lanes.count == 1:
                return start
            return self.f.add(self.state.wide(start), self.state.iota("i32"))
        value = self.state.values[expr.name]
        goal = COMPUTE[expr.dtype.name]
        return self._narrow_count(value, expr.dtype) if value.type == "i64" and goal != "i64" else value

    def _cast(self, expr: Cast) -> Value:
        if expr.value.dtype.kind == "bool":
            flag = self.condition(expr.value)
            value = self.f.cast("zext", flag, vector("i8", lanes_of(flag.type)))
            return convert(self.f, value, "bool", expr.type.name)
        if isinstance(expr, Reinterpret):
            source, target = expr.value.dtype.name, expr.type.name
            bits = narrow(self.f, self.value(expr.value), source)
            return widen(self.f, self.f.bits(bits, vector(STORAGE[target], lanes_of(bits.type))), target)
        return convert(self.f, self.value(expr.value), expr.value.dtype.name, expr.type.name)

    def rounded(self, a: Value, dtype: DType, round_last: bool) -> Value:
        small = STORAGE[dtype.name] != COMPUTE[dtype.name]
        return round_to(self.f, a, dtype.name) if small and round_last else a

    def _arith(self, expr: Arith, round_last: bool) -> Value:
        if expr.dtype.kind == "bool":
            flag = self.condition(expr)
            return self.f.cast("zext", flag, vector("i8", lanes_of(flag.type)))
        dtype = expr.dtype
        if len(expr.args) == 1:
            a = self.value(expr.args[0])
            if expr.op == "~":
                return self.f.binary("xor", a, const(-1, a.type))
            return self.f.fneg(a) if dtype.is_float else self.f.sub(const(0, a.type), a)
        total = self.value(expr.args[0])
        for k, arg in enumerate(expr.args[1:]):
            a, b = self.state.alike(total, self.value(arg))
            last = k == len(expr.args) - 2
            total = self._float(expr.op, a, b) if dtype.is_float else self._integer(expr.op, a, b, dtype, arg)
            total = self.rounded(total, dtype, round_last or not last)
        return total

    def _float(self, op: str, a: Value, b: Value) -> Value:
        f = self.f
        if op in ("//", "%"):
            whole = floor(f, f.fdiv(a, b))
            return whole if op == "//" else f.fsub(a, f.fmul(whole, b))
        return f.binary({"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}[op], a, b)

    def _integer(self, op: str, a: Value, b: Value, dtype: DType, right: Expr) -> Value:
        f, unsigned = self.f, is_unsigned(dtype.name)
        simple = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}.get(op)
        if simple is not None:
            return f.binary(simple, a, b)
        if op in ("<<", ">>"):
            inside = f.compare("ult", b, const(dtype.bits, b.type))
            amount = f.select(inside, b, const(0, b.type))
            moved = f.binary("shl" if op == "<<" else ("lshr" if unsigned else "ashr"), a, amount)
            filled = (
                f.binary("ashr", a, const(dtype.bits - 1, a.type))
                if op == ">>" and not unsigned
                else const(0, a.type)
            )
            return f.select(inside, moved, filled)
        return self._divide(op, a, b, unsigned, isinstance(right, Const) and right.value not in (0, -1))

    def _divide(self, op: str, a: Value, b: Value, unsigned: bool, sure: bool) -> Value:
        """Floor division and its remainder. x86 traps on a divisor of 0 and on the least number by -1."""
        f = self.f
        zero, one = const(0, a.type), const(1, a.type)
        by = b if sure else f.select(f.compare("eq", b, zero), one, b)
        if unsigned:
            found = f.binary("udiv" if op == "//" else "urem", a, by)
            return found if sure else f.select(f.compare("eq", b, zero), zero, found)
        minus = None if sure else f.compare("eq", b, const(-1, b.type))
        by = by if minus is None else f.select(minus, one, by)
        rest = f.binary("srem", a, by)
        differ = f.compare("slt", f.binary("xor", rest, by), 0)
        off = f.binary("and", differ, f.compare("ne", rest, zero))
        if op == "%":
            found = f.select(off, f.add(rest, by), rest)
        else:
            quotient = f.binary("sdiv", a, by)
            found = f.select(off, f.sub(quotient, one), quotient)
            found = found if minus is None else f.select(minus, f.sub(zero, a), found)
        return found if sure else f.select(f.compare("eq", b, zero), zero, found)

    # -- functions
    def _call(self, expr: Call, round_last: bool) -> Value:
        if expr.word == "if_then_else":
            return self._choice(expr)
        if isinstance(expr, Extern):
            raise TargetError(
                "{name} of T.call_extern is CUDA text, which the CPU cannot run", name=expr.name,
                at=expr.place,
                hint="write it as a Python function of the language, which every target runs",
            )  # fmt: skip
        if expr.dtype.kind == "bool":
            raise TargetError("the CPU has no T.{word} of bools", word=expr.word, at=expr.place)
        values = self.state.alike(*(self.value(arg) for arg in expr.args))
        return self.rounded(self._function(expr, values), expr.dtype, round_last)

    def _function(self, expr: Call, values: list[Value]) -> Value:
        f, dtype = self.f, expr.dtype
        if expr.word in ("min", "max"):
            if dtype.is_float:
                return (minimum if expr.word == "min" else maximum)(f, *values)
            how = ("u" if is_unsigned(dtype.name) else "s") + ("lt" if expr.word == "min" else "gt")
            return f.select(f.compare(how, *values), *values)
        if dtype.is_float and expr.word == "clamp":
            x, low, high = values
            raised = f.select(f.compare("olt", x, low), low, x)  # a NaN is not below
            return f.select(f.compare("ogt", raised, high), high, raised)
        if dtype.is_float and expr.word in OF_TWO:
            return OF_TWO[expr.word](f, values[0], values[1])
        if expr.word == "fma":
            return fused(f, *values)
        if expr.word == "philox":
            return philox(f, *values)
        if expr.word == "popcount":
            return f.intrinsic("ctpop", values[0])
        if expr.word == "bit_length":
            zeros = f.intrinsic("ctlz", values[0], Value("false", "i1"))
            return f.sub(const(dtype.bits, zeros.type), zeros)
        if dtype.is_float and expr.word in UNARY:
            return UNARY[expr.word](f, values[0])
        if expr.word == "abs":
            (a,) = values
            if dtype.is_float:
                return absolute(f, a)
            return (
                a
                if is_unsigned(dtype.name)
                else f.select(f.compare("slt", a, 0), f.sub(const(0, a.type), a), a)
            )
        raise TargetError("the CPU has no T.{word} of {dtype}", word=expr.word, dtype=dtype, at=expr.place)

    def _choice(self, expr: Call) -> Value:
        """`T.if_then_else`: lanes that do not take a branch touch no memory in it."""
        test = self.condition(expr.args[0])
        if test.integer is not None:
            return self.value(expr.args[1] if test.integer else expr.args[2])
        chosen = self.under(test, expr.args[1])
        other = self.under(self.negate(test), expr.args[2])
        if lanes_of(test.type) == 1:
            a, b = self.state.alike(chosen, other)
            return self.f.select(test, a, b)
        return self.f.select(self.state.wide(test), self.state.wide(chosen), self.state.wide(other))

    def under(self, test: Value, expr: Expr) -> Value:
        """An expression evaluated only in the lanes of a condition."""
        if isinstance(expr, (Const, Var)):
            return self.value(expr)
        with self.state.under(self.both(self.state.mask, test)):
            return self.value(expr)

    def both(self, a: Value | None, b: Value) -> Value:
        """The conjunction of two masks, either of which may be a scalar."""
        if a is None:
            return b
        x, y = self.state.alike(a, b)
        return self.f.binary("and", x, y)

    def negate(self, test: Value) -> Value:
        if test.integer is not None:
            return Value(str(1 - test.integer), "i1")
        return self.f.binary("xor", test, const(1, test.type))

    # -- conditions
    def condition(self, expr: Expr) -> Value:
        """A bool expression as i1, or a vector of them."""
        f = self.f
        match expr:
            case Const():
                return Value(str(int(bool(expr.value))), "i1")
            case Arith(op="not"):
                return self.negate(self.condition(expr.args[0]))
            case Arith() if expr.op in LOGIC or (expr.dtype.kind == "bool" and expr.op in ("&", "|", "^")):
                return self._logic(expr)
            case Arith() if expr.op in COMPARE:
                return self._compare(expr)
            case Call(word="if_then_else"):
                test, a, b = (self.condition(expr.args[0]), expr.args[1], expr.args[2])
                x, y = self._flag_under(test, a), self._flag_under(self.negate(test), b)
                test, x, y = self.state.alike(test, x, y)
                return f.select(test, x, y)
            case _:
                raw = self.value(expr)
                return f.compare("ne", raw, const(0, raw.type))

    def _flag_under(self, test: Value, expr: Expr) -> Value:
        with self.state.under(self.both(self.state.mask, test)):
            return self.condition(expr)

    def _logic(self, expr: Arith) -> Value:
        total = self.condition(expr.args[0])
        op = {"and": "and", "or": "or", "&": "and", "|": "or", "^": "xor"}[expr.op]
        for arg in expr.args[1:]:
            right = self._right(expr.op, total, arg)
            a, b = self.state.alike(total, right)
            total = f_logic(self, op, a, b)
        return total

    def _right(self, op: str, left: Value, expr: Expr) -> Value:
        """As in Python, what stands right of `and` is looked at only where the left holds."""
        if op not in ("and", "or") or not any(isinstance(arg, Load) for arg in walk(expr)):
            return self.condition(expr)
        return self._flag_under(left if op == "and" else self.negate(left), expr)

    def _compare(self, expr: Arith) -> Value:
        f, (left, right) = self.f, expr.args
        dtype = left.dtype
        if dtype.is_integer and self.state.counting(left) and self.state.counting(right):
            if not self.state.varies(expr):
                return f.compare(_predicate(expr.op, signed=True), self.index(left), self.index(right))
            found = self._by_count(expr)
            if found is not None:
                return found
        if dtype.kind == "bool":
            x, y = self.state.alike(self.condition(left), self.condition(right))
            return f.compare(_predicate(expr.op, signed=False), x, y)
        a, b = self.state.alike(self.value(left), self.value(right))
        if dtype.is_float:
            return f.compare("une" if expr.op == "!=" else "o" + _ORDER[expr.op], a, b)
        return f.compare(_predicate(expr.op, signed=not is_unsigned(dtype.name)), a, b)

    def _by_count(self, expr: Arith) -> Value | None:
        """`base + lane < limit` as "the first n lanes", without a vector of indices."""
        assert self.state.lanes is not None
        var = Var(self.state.lanes.name)
        left, right = linear(expr.args[0]), linear(expr.args[1])
        if left.coefficient(var) != 1 or right.coefficient(var) or expr.op not in ("<", "<=", ">", ">="):
            return None
        rest = left.without(var).expr()
        if self.state.varies(rest) or self.state.varies(expr.args[1]):
            return None
        f = self.f
        room = f.sub(self.index(expr.args[1]), f.add(self.index(rest), self.state.lane_value()))
        if expr.op in ("<=", ">"):
            room = f.add(room, 1)
        first = f.lane_mask(room, self.state.count)
        return first if expr.op in ("<", "<=") else self.negate(first)


def f_logic(expressions: Expressions, op: str, a: Value, b: Value) -> Value:
    """A logic operation on i1 values, constants folded."""
    for x, y in ((a, b), (b, a)):
        if x.integer is not None and op in ("and", "or"):
            absorbing = (op == "and") != bool(x.integer)
            return x if absorbing else y
    return expressions.f.binary(op, a, b)


def _predicate(op: str, *, signed: bool) -> str:
    return _ORDER[op] if op in ("==", "!=") else ("s" if signed else "u") + _ORDER[op]


def _number(expr: Const) -> Any:
    """A constant as its own dtype has it: what is computed in float32 is a float16 all the same."""
    return float(number_in(expr.value, expr.type)) if expr.type.is_float else expr.value


def _wrap(number: int, dtype: DType) -> int:
    bits = number & ((1 << dtype.bits) - 1)
    return bits - (1 << dtype.bits) if dtype.kind == "int" and bits >> (dtype.bits - 1) else bits
