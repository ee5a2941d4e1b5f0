"""The instructions of a function under construction, each a method that appends a line."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ..machine import Isa
from .values import Index, Value, bytes_of, const, const_lanes, element_of, lanes_of, mangle, vector


class Declares(Protocol):
    """What an instruction needs of the module it stands in."""

    isa: Isa

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None: ...

    def table(self, element: str, numbers: Sequence[float]) -> Value: ...

    def number(self, number: float, type_: str) -> Value: ...


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
# Integers of the width of a float.
_WHOLE = {"float": "i32", "double": "i64"}


class Instructions:
    """One function: every method appends an instruction to the open block and returns its value.

    Integer indices may be given as Python ints. `flags` go between opcode and type.
    """

    def __init__(
        self, module: Declares, name: str, arguments: Sequence[tuple[str, str]], result: str, internal: bool
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
        # The line of the stage before that each line stands for; `origin` is that of what is emitted now.
        self.origin = 0
        self.origins: list[int] = []
        self._count = 0
        self._block = "entry"
        self._opened = 0
        # By an instruction's text its value, by the key of `once` its values.
        self._known: list[dict[str, Any]] = [{}]
        self._done = False

    def text(self) -> str:
        lines = [self._head, "entry:", *self._allocas, *self._lines, "}"]
        return "\n".join(lines)

    def line_origins(self) -> list[int]:
        """The origin of each line of `text`, 0 where there is none."""
        return [0] * (2 + len(self._allocas)) + self.origins + [0]

    @property
    def in_block(self) -> int:
        """Instructions in the open block so far."""
        return len(self._lines) - self._opened

    # -- raw emission
    def _push(self, line: str) -> None:
        self._lines.append(line)
        self.origins.append(self.origin)

    def emit(self, line: str) -> None:
        """Append a line as it is (no result)."""
        self._push("  " + line)

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def impure(self, text: str, type_: str) -> Value:
        """An instruction with a result that must not be merged with an equal one."""
        self._count += 1
        name = f"%v{self._count}"
        self._push(f"  {name} = {text}")
        return Value(name, type_)

    def pure(self, text: str, type_: str) -> Value:
        """An instruction whose result depends on its operands alone: found again when repeated."""
        for scope in self._known:
            found: Value | None = scope.get(text)
            if found is not None:
                return found
        result = self.impure(text, type_)
        self._known[-1][text] = result
        return result

    def once(self, key: str, make: Callable[[], Sequence[Value]]) -> Sequence[Value]:
        """What a loop finds that has no effect: found again under its key when repeated."""
        for scope in self._known:
            if key in scope:
                return scope[key]
        found = self._known[-1][key] = make()
        return found

    def any_lane(self, mask: Value) -> Value:
        """Whether a mask has a lane."""
        bits = self.bits(mask, f"i{lanes_of(mask.type)}")
        return self.pure(f"icmp ne {bits.type} {bits.name}, 0", "i1")

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
        whole = _WHOLE.get(a.type)
        if whole and not any(value.name.startswith("%") for value in (a, b)):
            # Of two float constants LLVM makes a load from a table, which it takes for one element when
            # it knows the condition later (up to LLVM 22, for AVX2), and stops the process.
            x, y = (Value(f"bitcast ({value.type} {value.name} to {whole})", whole) for value in (a, b))
            return self.bits(self.select(cond, x, y), a.type)
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

    def operand(self, number: float, type_: str) -> Value:
        """A number in all lanes, for one use as an operand: where registers are few it stays in memory.

        Of a constant LLVM makes a load of one lane for all, which is no operand on AVX2, and keeps what it
        can in registers. exp has 12, and of 16 registers: a third of softmax's instructions moved them.
        """
        if lanes_of(type_) == 1 or self.isa.registers > 16:
            return const(number, type_)
        return self.load(self.module.number(number, type_), type_, align=bytes_of(type_))

    def turned(self, a: Value) -> Value:
        """The lanes in the opposite order."""
        return self.shuffle(a, None, range(lanes_of(a.type))[::-1])

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
        """Store; `streaming` asks for a non-temporal store, whose pointer must be aligned to `align` >= 16.

        Give the whole vector's alignment: one of 64 bytes known to be aligned to 16 alone becomes four
        stores and three shuffles. Needs an `sfence` (`fence_streams`) before another thread may read what
        was written.
        """
        align = align or (16 if streaming else bytes_of(element_of(a.type)))
        hint = ", !nontemporal !{i32 1}" if streaming else ""
        if streaming and element_of(a.type) == "i16" and "f16c" in self.isa.has and a.type[0] == "<":
            # LLVM sees through to the vector of half, for which it has no streaming store, and makes an
            # ordinary one without a word.
            self.emit(
                f'call void asm sideeffect "vmovntdq $1, ($0)", "r,v,~{{memory}}"'
                f"(ptr {pointer.name}, {a.type} {a.name})"
            )
            return
        self.emit(f"store {a.type} {a.name}, ptr {pointer.name}, align {align}{hint}")

    def fence_streams(self) -> None:
        """Make streaming stores visible in order; nothing to do where they are ordinary stores."""
        if self.isa.triple.startswith("x86"):
            self.module.declare("llvm.x86.sse.sfence", "void", [])
            self.emit("call void @llvm.x86.sse.sfence()")

    def prefetch(self, pointer: Value, level: int = 2) -> None:
        """Ask for the cache line at the address, into the cache of that level (1 or 2). Never faults."""
        self.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        self.emit(f"call void @llvm.prefetch.p0(ptr {pointer.name}, i32 0, i32 {4 - level}, i32 1)")

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
            f"call {type_} @{symbol}(ptr align {align} {pointer.name}, "
            f"{mask.type} {mask.name}, {type_} zeroinitializer)",
            type_,
        )

    def masked_store(self, a: Value, pointer: Value, mask: Value) -> None:
        """Store the lanes of `mask`; memory of the others is not touched."""
        symbol = f"llvm.masked.store.{mangle(a.type)}.p0"
        self.module.declare(symbol, "void", [a.type, "ptr", mask.type])
        align = bytes_of(element_of(a.type))
        self.emit(
            f"call void @{symbol}({a.type} {a.name}, ptr align {align} {pointer.name}, "
            f"{mask.type} {mask.name})"
        )
