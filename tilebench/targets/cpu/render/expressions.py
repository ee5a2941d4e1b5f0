"""Expressions of the `loops` stage as LLVM values, scalar or one lane an element.

A float16 or bfloat16 value is computed in float32 and rounded after each operation, as the language
says; only the rounding that a store does anyway is left to it. Nothing here can trap: divisors of
zero give zero, and lanes that a condition leaves out touch no memory.
"""

from __future__ import annotations

from ....errors import TargetError
from ....ir import Arith, Call, Cast, Const, DType, Expr, Load, Var, walk
from ....ir.arith import linear
from ....ir.expr import COMPARE, LOGIC
from ..llvm import Value, const, i64, lanes_of, vector
from ..llvm.lanes import maximum, minimum
from ..numbers.convert import COMPUTE, STORAGE, convert, is_unsigned, round_to
from ..numbers.functions import UNARY, absolute, floor, power
from .elements import Elements

_ORDER = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


class Expressions(Elements):
    """Turns expressions into values at the open block of `state.f`."""

    # -- counting
    def index(self, at: Expr) -> Value:
        """An integer expression that is the same in all lanes, as an i64."""
        f = self.f
        match at:
            case Const():
                return i64(int(at.value))
            case Var():
                if self.state.lanes is not None and at.name == self.state.lanes.name:
                    return self.state.lane_value()
                return self._to_i64(self.state.values[at.name], at.dtype)
            case Cast() if at.value.dtype.is_integer and at.type.bits >= 32:
                return self.index(at.value)
            case Call(word="min" | "max") if at.dtype.is_integer:
                a, b = (self.index(each) for each in at.args)
                return f.imin(a, b) if at.word == "min" else f.imax(a, b)
            case Arith(op="+" | "*") if at.dtype.is_integer:
                total = self.index(at.args[0])
                for each in at.args[1:]:
                    total = (f.add if at.op == "+" else f.mul)(total, self.index(each))
                return total
            case Arith(op="-") if at.dtype.is_integer:
                parts = [self.index(each) for each in at.args]
                return f.sub(parts[0], parts[1]) if len(parts) == 2 else f.sub(0, parts[0])
            case Arith(op="//" | "%") if isinstance(at.args[1], Const) and at.args[1].value > 0:
                return self._divide_index(at)
            case _:
                return self._to_i64(self.value(at), at.dtype)

    def _to_i64(self, a: Value, dtype: DType) -> Value:
        if lanes_of(a.type) > 1:
            a = self.f.extract(a, 0)
        return a if a.type == "i64" else self.f.cast("zext" if is_unsigned(dtype.name) else "sext", a, "i64")

    def _divide_index(self, at: Arith) -> Value:
        f, by = self.f, int(at.args[1].value)  # type: ignore[attr-defined]
        a = self.index(at.args[0])
        if a.integer is not None:
            return i64(a.integer // by if at.op == "//" else a.integer % by)
        if self.state.low(at.args[0]) >= 0:
            return f.binary("udiv" if at.op == "//" else "urem", a, by)
        rest = f.binary("srem", a, by)
        below = f.compare("slt", rest, 0)
        if at.op == "%":
            return f.select(below, f.add(rest, by), rest)
        return f.sub(f.binary("sdiv", a, by), f.cast("zext", below, "i64"))

    # -- values
    def value(self, at: Expr, *, round_last: bool = True) -> Value:
        """The value in its compute type. Without `round_last` the outermost operation is not yet rounded."""
        state = self.state
        if (
            at.dtype.is_integer
            and not isinstance(at, (Const, Load))
            and state.counting(at)
            and not state.varies(at)
        ):
            return self._narrow_count(self.index(at), at.dtype)
        match at:
            case Const():
                return const(at.value, COMPUTE[at.dtype.name])
            case Var():
                return self._variable(at)
            case Load():
                return self.load(at)
            case Arith():
                return self._arith(at, round_last)
            case Cast():
                return self._cast(at)
            case Call():
                return self._call(at, round_last)
            case _:
                raise TargetError(
                    "the CPU has no such expression: {kind}", kind=type(at).__name__, at=at.place
                )

    def _narrow_count(self, a: Value, dtype: DType) -> Value:
        goal = COMPUTE[dtype.name]
        if a.integer is not None:
            return const(_wrap(a.integer, dtype), goal)
        return a if goal == "i64" else self.f.cast("trunc", a, goal)

    def _variable(self, at: Var) -> Value:
        lanes = self.state.lanes
        if lanes is not None and at.name == lanes.name:
            start = self.f.cast("trunc", self.state.lane_value(), "i32")
            if start.integer is not None:
                start = const(start.integer, "i32")
            if lanes.count == 1:
                return start
            return self.f.add(self.state.wide(start), self.state.iota("i32"))
        held = self.state.values[at.name]
        goal = COMPUTE[at.dtype.name]
        return self._narrow_count(held, at.dtype) if held.type == "i64" and goal != "i64" else held

    def _cast(self, at: Cast) -> Value:
        if at.value.dtype.kind == "bool":
            flag = self.condition(at.value)
            value = self.f.cast("zext", flag, vector("i8", lanes_of(flag.type)))
            return convert(self.f, value, "bool", at.type.name)
        return convert(self.f, self.value(at.value), at.value.dtype.name, at.type.name)

    def rounded(self, a: Value, dtype: DType, round_last: bool) -> Value:
        small = STORAGE[dtype.name] != COMPUTE[dtype.name]
        return round_to(self.f, a, dtype.name) if small and round_last else a

    def _arith(self, at: Arith, round_last: bool) -> Value:
        if at.dtype.kind == "bool":
            flag = self.condition(at)
            return self.f.cast("zext", flag, vector("i8", lanes_of(flag.type)))
        dtype = at.dtype
        if len(at.args) == 1:
            a = self.value(at.args[0])
            if at.op == "~":
                return self.f.binary("xor", a, const(-1, a.type))
            return self.f.fneg(a) if dtype.is_float else self.f.sub(const(0, a.type), a)
        total = self.value(at.args[0])
        for k, each in enumerate(at.args[1:]):
            a, b = self.state.alike(total, self.value(each))
            last = k == len(at.args) - 2
            total = self._float(at.op, a, b) if dtype.is_float else self._integer(at.op, a, b, dtype, each)
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
    def _call(self, at: Call, round_last: bool) -> Value:
        if at.word == "if_then_else":
            return self._choice(at)
        if at.dtype.kind == "bool":
            raise TargetError("the CPU has no T.{word} of bools", word=at.word, at=at.place)
        values = self.state.alike(*(self.value(each) for each in at.args))
        return self.rounded(self._function(at, values), at.dtype, round_last)

    def _function(self, at: Call, values: list[Value]) -> Value:
        f, dtype = self.f, at.dtype
        if at.word in ("min", "max"):
            if dtype.is_float:
                return (minimum if at.word == "min" else maximum)(f, *values)
            how = ("u" if is_unsigned(dtype.name) else "s") + ("lt" if at.word == "min" else "gt")
            return f.select(f.compare(how, *values), *values)
        if dtype.is_float and at.word == "pow":
            return power(f, *values)
        if dtype.is_float and at.word in UNARY:
            return UNARY[at.word](f, values[0])
        if at.word == "abs":
            (a,) = values
            if dtype.is_float:
                return absolute(f, a)
            return (
                a
                if is_unsigned(dtype.name)
                else f.select(f.compare("slt", a, 0), f.sub(const(0, a.type), a), a)
            )
        raise TargetError("the CPU has no T.{word} of {dtype}", word=at.word, dtype=dtype, at=at.place)

    def _choice(self, at: Call) -> Value:
        """`T.if_then_else`: lanes that do not take a branch touch no memory in it."""
        test = self.condition(at.args[0])
        if test.integer is not None:
            return self.value(at.args[1] if test.integer else at.args[2])
        chosen = self.under(test, at.args[1])
        other = self.under(self.negate(test), at.args[2])
        if lanes_of(test.type) == 1:
            a, b = self.state.alike(chosen, other)
            return self.f.select(test, a, b)
        return self.f.select(self.state.wide(test), self.state.wide(chosen), self.state.wide(other))

    def under(self, test: Value, at: Expr) -> Value:
        """An expression evaluated only in the lanes of a condition."""
        if isinstance(at, (Const, Var)):
            return self.value(at)
        with self.state.under(self.both(self.state.mask, test)):
            return self.value(at)

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
    def condition(self, at: Expr) -> Value:
        """A bool expression as i1, or a vector of them."""
        f = self.f
        match at:
            case Const():
                return Value(str(int(bool(at.value))), "i1")
            case Arith(op="not"):
                return self.negate(self.condition(at.args[0]))
            case Arith() if at.op in LOGIC or (at.dtype.kind == "bool" and at.op in ("&", "|", "^")):
                return self._logic(at)
            case Arith() if at.op in COMPARE:
                return self._compare(at)
            case Call(word="if_then_else"):
                test, a, b = (self.condition(at.args[0]), at.args[1], at.args[2])
                x, y = self._flag_under(test, a), self._flag_under(self.negate(test), b)
                test, x, y = self.state.alike(test, x, y)
                return f.select(test, x, y)
            case _:
                raw = self.value(at)
                return f.compare("ne", raw, const(0, raw.type))

    def _flag_under(self, test: Value, at: Expr) -> Value:
        with self.state.under(self.both(self.state.mask, test)):
            return self.condition(at)

    def _logic(self, at: Arith) -> Value:
        total = self.condition(at.args[0])
        op = {"and": "and", "or": "or", "&": "and", "|": "or", "^": "xor"}[at.op]
        for each in at.args[1:]:
            right = self._right(at.op, total, each)
            a, b = self.state.alike(total, right)
            total = f_logic(self, op, a, b)
        return total

    def _right(self, op: str, left: Value, at: Expr) -> Value:
        """As in Python, what stands right of `and` is looked at only where the left holds."""
        if op not in ("and", "or") or not any(isinstance(each, Load) for each in walk(at)):
            return self.condition(at)
        return self._flag_under(left if op == "and" else self.negate(left), at)

    def _compare(self, at: Arith) -> Value:
        f, (left, right) = self.f, at.args
        dtype = left.dtype
        if dtype.is_integer and self.state.counting(left) and self.state.counting(right):
            if not self.state.varies(at):
                return f.compare(_predicate(at.op, signed=True), self.index(left), self.index(right))
            found = self._by_count(at)
            if found is not None:
                return found
        if dtype.kind == "bool":
            x, y = self.state.alike(self.condition(left), self.condition(right))
            return f.compare(_predicate(at.op, signed=False), x, y)
        a, b = self.state.alike(self.value(left), self.value(right))
        if dtype.is_float:
            return f.compare("une" if at.op == "!=" else "o" + _ORDER[at.op], a, b)
        return f.compare(_predicate(at.op, signed=not is_unsigned(dtype.name)), a, b)

    def _by_count(self, at: Arith) -> Value | None:
        """`base + lane < limit` as "the first n lanes", without a vector of indices."""
        assert self.state.lanes is not None
        var = Var(self.state.lanes.name)
        left, right = linear(at.args[0]), linear(at.args[1])
        if left.coefficient(var) != 1 or right.coefficient(var) or at.op not in ("<", "<=", ">", ">="):
            return None
        rest = left.without(var).expr()
        if self.state.varies(rest) or self.state.varies(at.args[1]):
            return None
        f = self.f
        room = f.sub(self.index(at.args[1]), f.add(self.index(rest), self.state.lane_value()))
        if at.op in ("<=", ">"):
            room = f.add(room, 1)
        first = f.lane_mask(room, self.state.count)
        return first if at.op in ("<", "<=") else self.negate(first)


def f_logic(made: Expressions, op: str, a: Value, b: Value) -> Value:
    """A logic operation on i1 values, constants folded."""
    for x, y in ((a, b), (b, a)):
        if x.integer is not None and op in ("and", "or"):
            absorbing = (op == "and") != bool(x.integer)
            return x if absorbing else y
    return made.f.binary(op, a, b)


def _predicate(op: str, *, signed: bool) -> str:
    return _ORDER[op] if op in ("==", "!=") else ("s" if signed else "u") + _ORDER[op]


def _wrap(number: int, dtype: DType) -> int:
    bits = number & ((1 << dtype.bits) - 1)
    return bits - (1 << dtype.bits) if dtype.kind == "int" and bits >> (dtype.bits - 1) else bits
