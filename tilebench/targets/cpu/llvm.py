"""A light builder of LLVM IR text: typed values, blocks, loops, vectors.

The text goes to LLVM without a pass pipeline, so what a pass would do cheaply is done while
building: integers fold, equal pure operations are found again (in a scope that dominates the use),
loops are emitted rotated (test at the bottom). A value is a name and an LLVM type; nothing else is
kept, which makes a whole GEMM module take about 2 ms of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .machine import Isa
from .values import (
    Index,
    Value,
    bytes_of,
    const,
    const_lanes,
    element_of,
    i32,
    i64,
    lanes_of,
    mangle,
    vector,
)


@dataclass
class Loop:
    """An open loop. `index` counts; `carried` are the loop-carried values at the top of the body.

    Set `next` (same length as `carried`) before the body ends; after the loop `results` holds the
    final values.
    """

    index: Value
    carried: list[Value]
    next: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])


_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "shl": lambda a, b: a << b,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}


class Module:
    """A module under construction: functions, declarations, constant tables."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.functions: dict[str, Function] = {}
        self._declared: dict[str, str] = {}
        self._globals: list[str] = []

    def function(
        self,
        name: str,
        arguments: Sequence[tuple[str, str]],
        result: str = "void",
        *,
        internal: bool = False,
        inline: bool | None = None,
    ) -> Function:
        """Open a function. `arguments` are (name, type); a type may carry attributes (`ptr noalias`).

        `internal` hides it; `inline=False` forbids inlining (without passes nothing is inlined).
        """
        made = Function(self, name, arguments, result, internal)
        self.functions[name] = made
        return made

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None:
        self._declared.setdefault(name, f"declare {result} @{name}({', '.join(arguments)})")

    def table(self, element: str, numbers: Sequence[float]) -> Value:
        """A constant array in read-only memory; the pointer to it."""
        data = const_lanes(numbers, element).name[1:-1]
        name = f"@table.{len(self._globals)}"
        self._globals.append(
            f"{name} = private unnamed_addr constant [{len(numbers)} x {element}] [{data}], align 64"
        )
        return Value(name, "ptr")

    def text(self) -> str:
        """The whole module as LLVM assembly."""
        width = self.isa.vector_bytes * 8
        attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" }}'
        parts = [f'target triple = "{self.isa.triple}"', *self._globals, *self._declared.values()]
        parts += [each.text() for each in self.functions.values()]
        return "\n".join([*parts, attributes, ""])


class Function:
    """One function: every method appends an instruction to the open block and returns its value.

    Integer indices may be given as Python ints. `flags` go between opcode and type.
    """

    def __init__(
        self, module: Module, name: str, arguments: Sequence[tuple[str, str]], result: str, internal: bool
    ) -> None:
        self.module = module
        self.isa = module.isa
        self.name = name
        self.result = result
        self.arguments = [Value("%" + each, type_.split(" ")[0]) for each, type_ in arguments]
        head = ", ".join(f"{type_} %{each}" for each, type_ in arguments)
        self._head = f"define {'internal ' if internal else ''}{result} @{name}({head}) #0 {{"
        self._allocas: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"
        self._known: list[dict[str, Value]] = [{}]
        self._done = False

    def text(self) -> str:
        lines = [self._head, "entry:", *self._allocas, *self._lines, "}"]
        return "\n".join(lines)

    # -- raw emission
    def emit(self, line: str) -> None:
        """Append a line as it is (no result)."""
        self._lines.append("  " + line)

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def impure(self, text: str, type_: str) -> Value:
        """An instruction with a result that must not be merged with an equal one."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {text}")
        return Value(name, type_)

    def pure(self, text: str, type_: str) -> Value:
        """An instruction whose result depends on its operands alone: found again when repeated."""
        for scope in self._known:
            found = scope.get(text)
            if found is not None:
                return found
        made = self.impure(text, type_)
        self._known[-1][text] = made
        return made

    @contextmanager
    def scope(self) -> Generator[None]:
        """What is found inside is forgotten afterwards (it does not dominate what follows)."""
        self._known.append({})
        try:
            yield
        finally:
            self._known.pop()

    # -- integers and floats
    def value(self, given: Index, type_: str = "i64") -> Value:
        return given if isinstance(given, Value) else Value(str(given), type_)

    def binary(self, op: str, a: Index, b: Index, flags: str = "") -> Value:
        """Any two-operand instruction (`add`, `fmul`, `lshr`, ...), with folding of scalar integers."""
        if not isinstance(a, Value):
            a = Value(str(a), b.type if isinstance(b, Value) else "i64")
        if not isinstance(b, Value):
            b = const(b, a.type)
        if a.type[0] == "i":
            folded = self._fold(op, a, b)
            if folded is not None:
                return folded
        return self.pure(f"{op} {flags + ' ' if flags else ''}{a.type} {a.name}, {b.name}", a.type)

    def _fold(self, op: str, a: Value, b: Value) -> Value | None:
        x, y = a.integer, b.integer
        if x is not None and y is not None and op in _FOLD and a.type == "i64":
            return Value(str(_FOLD[op](x, y)), a.type)
        if y == 0 and op in ("add", "sub", "or", "shl", "lshr", "ashr"):
            return a
        if x == 0 and op in ("add", "or"):
            return b
        if op == "mul":
            if y == 1:
                return a
            if x == 1:
                return b
            if x == 0 or y == 0:
                return Value("0", a.type)
        return None

    def add(self, a: Index, b: Index) -> Value:
        return self.binary("add", a, b)

    def sub(self, a: Index, b: Index) -> Value:
        return self.binary("sub", a, b)

    def mul(self, a: Index, b: Index) -> Value:
        return self.binary("mul", a, b)

    def fadd(self, a: Value, b: Value) -> Value:
        return self.binary("fadd", a, b)

    def fsub(self, a: Value, b: Value) -> Value:
        return self.binary("fsub", a, b)

    def fmul(self, a: Value, b: Value) -> Value:
        return self.binary("fmul", a, b)

    def fdiv(self, a: Value, b: Value) -> Value:
        return self.binary("fdiv", a, b)

    def fneg(self, a: Value) -> Value:
        return self.pure(f"fneg {a.type} {a.name}", a.type)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c; one rounding where the processor has it, else two (never a call of `fmaf`)."""
        if "fma" not in self.isa.has:
            return self.fadd(self.fmul(a, b), c)
        return self.intrinsic("fma", a, b, c)

    def compare(self, how: str, a: Value, b: Value | int) -> Value:
        """`icmp` or `fcmp` by the operand type; `how` is LLVM's predicate (`slt`, `olt`, `uno`)."""
        if not isinstance(b, Value):
            b = const(b, a.type)
        x, y = a.integer, b.integer
        if x is not None and y is not None and how in _COMPARE:
            return Value(str(int(_COMPARE[how](x, y))), "i1")
        op = "fcmp" if element_of(a.type) in ("float", "double", "half") else "icmp"
        return self.pure(f"{op} {how} {a.type} {a.name}, {b.name}", vector("i1", lanes_of(a.type)))

    def select(self, cond: Value, a: Value, b: Value) -> Value:
        if cond.integer is not None:
            return a if cond.integer else b
        return self.pure(f"select {cond.type} {cond.name}, {a.type} {a.name}, {b.type} {b.name}", a.type)

    def imin(self, a: Index, b: Index) -> Value:
        """The smaller of two signed integers."""
        a, b = self.value(a), self.value(b)
        return self.select(self.compare("slt", a, b), a, b)

    def imax(self, a: Index, b: Index) -> Value:
        a, b = self.value(a), self.value(b)
        return self.select(self.compare("sgt", a, b), a, b)

    def cast(self, op: str, a: Value, type_: str) -> Value:
        """`sext`, `zext`, `trunc`, `bitcast`, `sitofp`, `fptosi`, `fpext`, ... to `type_`."""
        if a.type == type_:
            return a
        return self.pure(f"{op} {a.type} {a.name} to {type_}", type_)

    def bits(self, a: Value, type_: str) -> Value:
        return self.cast("bitcast", a, type_)

    def intrinsic(self, name: str, *operands: Value, result: str = "") -> Value:
        """`llvm.<name>` overloaded on its first operand's type; pure."""
        first = operands[0].type
        symbol = f"llvm.{name}.{mangle(first)}"
        self.module.declare(symbol, result or first, [each.type for each in operands])
        inside = ", ".join(f"{each.type} {each.name}" for each in operands)
        return self.pure(f"call {result or first} @{symbol}({inside})", result or first)

    def call(self, name: str, operands: Sequence[Value], result: str = "void") -> Value:
        inside = ", ".join(f"{each.type} {each.name}" for each in operands)
        if result == "void":
            self.emit(f"call void @{name}({inside})")
            return Value("", "void")
        return self.impure(f"call {result} @{name}({inside})", result)

    # -- vectors
    def splat(self, scalar: Value, lanes: int) -> Value:
        """`lanes` copies of a scalar."""
        if lanes == 1:
            return scalar
        if scalar.name[0] not in "%@":
            return Value(
                "<" + ", ".join([f"{scalar.type} {scalar.name}"] * lanes) + ">", vector(scalar.type, lanes)
            )
        type_ = vector(scalar.type, lanes)
        one = self.pure(f"insertelement {type_} poison, {scalar.type} {scalar.name}, i64 0", type_)
        return self.pure(
            f"shufflevector {type_} {one.name}, {type_} poison, {vector('i32', lanes)} zeroinitializer", type_
        )

    def shuffle(self, a: Value, b: Value | None, picks: Sequence[int]) -> Value:
        """The lanes `picks` of a and b joined (b may be left out)."""
        other = b.name if b is not None else "poison"
        mask = const_lanes(picks, "i32")
        type_ = vector(element_of(a.type), len(picks))
        mask_text = f"{mask.type} {mask.name}" if len(picks) > 1 else f"<1 x i32> <i32 {picks[0]}>"
        if len(picks) == 1:
            return self.extract(a, picks[0])
        return self.pure(f"shufflevector {a.type} {a.name}, {a.type} {other}, {mask_text}", type_)

    def extract(self, a: Value, lane: int) -> Value:
        if a.type[0] != "<":
            return a
        return self.pure(f"extractelement {a.type} {a.name}, i64 {lane}", element_of(a.type))

    def insert(self, a: Value, scalar: Value, lane: int) -> Value:
        return self.pure(f"insertelement {a.type} {a.name}, {scalar.type} {scalar.name}, i64 {lane}", a.type)

    # -- memory
    def at(self, pointer: Value, index: Index, element: str) -> Value:
        """The address of `pointer[index]`, in elements of the type `element`."""
        index = self.value(index)
        if index.integer == 0:
            return pointer
        return self.pure(f"getelementptr {element}, ptr {pointer.name}, i64 {index.name}", "ptr")

    def load(self, pointer: Value, type_: str, *, align: int = 0, volatile: bool = False) -> Value:
        """Load; `align` in bytes (the element's own when 0)."""
        align = align or bytes_of(element_of(type_))
        how = "load volatile" if volatile else "load"
        return self.impure(f"{how} {type_}, ptr {pointer.name}, align {align}", type_)

    def store(self, a: Value, pointer: Value, *, align: int = 0, streaming: bool = False) -> None:
        """Store; `streaming` asks for a non-temporal store, whose pointer must be 16-byte aligned.

        Needs an `sfence` (`fence_streams`) before another thread may read what was written.
        """
        align = align or (16 if streaming else bytes_of(element_of(a.type)))
        hint = ", !nontemporal !{i32 1}" if streaming else ""
        self.emit(f"store {a.type} {a.name}, ptr {pointer.name}, align {align}{hint}")

    def fence_streams(self) -> None:
        """Make streaming stores visible in order; nothing to do where they are ordinary stores."""
        if self.isa.triple.startswith("x86"):
            self.module.declare("llvm.x86.sse.sfence", "void", [])
            self.emit("call void @llvm.x86.sse.sfence()")

    def alloca(self, type_: str, count: int = 1, align: int = 64) -> Value:
        """Stack memory, made once at the function's entry."""
        name = self.fresh()
        self._allocas.append(f"  {name} = alloca [{count} x {type_}], align {align}")
        return Value(name, "ptr")

    def lane_mask(self, count: Value, lanes: int) -> Value:
        """A mask with lane l set where l < count (i64 count, signed)."""
        narrow = self.cast("trunc", self.imin(count, lanes), "i32")
        return self.compare("slt", const_lanes(range(lanes), "i32"), self.splat(narrow, lanes))

    def masked_load(self, pointer: Value, type_: str, mask: Value) -> Value:
        """Load the lanes of `mask`, zero in the others; memory of the others is not touched."""
        symbol = f"llvm.masked.load.{mangle(type_)}.p0"
        self.module.declare(symbol, type_, ["ptr", mask.type, type_])
        align = bytes_of(element_of(type_))
        return self.impure(
            f"call {type_} @{symbol}(ptr align {align} {pointer.name}, {mask.type} {mask.name}, {type_} zeroinitializer)",
            type_,
        )

    def masked_store(self, a: Value, pointer: Value, mask: Value) -> None:
        """Store the lanes of `mask`; memory of the others is not touched."""
        symbol = f"llvm.masked.store.{mangle(a.type)}.p0"
        self.module.declare(symbol, "void", [a.type, "ptr", mask.type])
        align = bytes_of(element_of(a.type))
        self.emit(
            f"call void @{symbol}({a.type} {a.name}, ptr align {align} {pointer.name}, {mask.type} {mask.name})"
        )

    # -- control
    def block(self) -> str:
        """A fresh label."""
        self._count += 1
        return f"b{self._count}"

    def open_block(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._block = label

    def branch(self, label: str) -> None:
        self.emit(f"br label %{label}")

    def branch_if(self, cond: Value, yes: str, no: str) -> None:
        self.emit(f"br i1 {cond.name}, label %{yes}, label %{no}")

    def ret(self, a: Value | None = None) -> None:
        self.emit("ret void" if a is None else f"ret {a.type} {a.name}")

    @contextmanager
    def when(self, cond: Value) -> Generator[None]:
        """The body runs where `cond` (i1) holds. Emits nothing but the body for a constant 1."""
        if cond.integer == 1:
            yield
            return
        yes, after = self.block(), self.block()
        self.branch_if(cond, yes, after)
        self.open_block(yes)
        with self.scope():
            yield
        self.branch(after)
        self.open_block(after)

    @contextmanager
    def otherwise(self, cond: Value) -> Generator[None]:
        """The body runs where `cond` (i1) does not hold."""
        inverse = (
            self.binary("xor", cond, Value("1", "i1"))
            if cond.integer is None
            else Value(str(1 - cond.integer), "i1")
        )
        with self.when(inverse):
            yield

    @contextmanager
    def loop(
        self, begin: Index, end: Index, step: Index = 1, carried: Sequence[Value] = (), *, runs: bool = False
    ) -> Generator[Loop]:
        """`for index in range(begin, end, step)`, step > 0, i64, test at the bottom.

        `carried` are start values of loop-carried values. `runs` promises at least one turn.
        """
        begin, end, step = self.value(begin), self.value(end), self.value(step)
        first = self.compare("slt", begin, end)
        runs = runs or first.integer == 1
        head, after, before = self.block(), self.block(), self._block
        if not runs:
            self.branch_if(first, head, after)
        else:
            self.branch(head)
        self.open_block(head)
        slot = len(self._lines)
        made = Loop(Value(self.fresh(), "i64"), [Value(self.fresh(), each.type) for each in carried])
        with self.scope():
            yield made
            following = self.add(made.index, step)
            again = self.compare("slt", following, end)
        made.next = made.next or made.carried
        latch = self._block
        phis = [f"  {made.index.name} = phi i64 [ {begin.name}, %{before} ], [ {following.name}, %{latch} ]"]
        for here, start, later in zip(made.carried, carried, made.next, strict=True):
            phis.append(
                f"  {here.name} = phi {here.type} [ {start.name}, %{before} ], [ {later.name}, %{latch} ]"
            )
        self._lines[slot:slot] = phis
        self.branch_if(again, head, after)
        self.open_block(after)
        if runs:
            made.results = list(made.next)
            return
        for start, later in zip(carried, made.next, strict=True):
            made.results.append(
                self.impure(
                    f"phi {start.type} [ {start.name}, %{before} ], [ {later.name}, %{latch} ]", start.type
                )
            )


__all__ = [
    "Function",
    "Index",
    "Loop",
    "Module",
    "Value",
    "bytes_of",
    "const",
    "const_lanes",
    "element_of",
    "i32",
    "i64",
    "lanes_of",
    "mangle",
    "vector",
]
