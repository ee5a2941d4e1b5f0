"""A light builder of LLVM IR text: typed values, blocks, loops, vectors.

The text goes to LLVM without a pass pipeline, so what a pass would do cheaply is done while
building: integers fold, equal pure operations are found again (in a scope that dominates the use),
loops are emitted rotated (test at the bottom). A value is a name and an LLVM type; nothing else is
kept, which makes a whole GEMM module take about 2 ms of Python.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..machine import Isa
from .instructions import Instructions
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


class Module:
    """A module under construction: functions, declarations, constant tables."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.functions: dict[str, Function] = {}
        self._declared: dict[str, str] = {}
        self._globals: list[str] = []
        self._numbers: dict[tuple[float, str], Value] = {}

    def function(
        self,
        name: str,
        arguments: Sequence[tuple[str, str]],
        result: str = "void",
        *,
        internal: bool = False,
    ) -> Function:
        """Open a function. `arguments` are (name, type); a type may carry attributes (`ptr noalias`).

        `internal` hides it from the symbol table. Nothing is inlined, as no passes run.
        """
        function = Function(self, name, arguments, result, internal)
        self.functions[name] = function
        return function

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

    def number(self, number: float, type_: str) -> Value:
        """The place of a number in all lanes. LLVM takes it for changeable: its loads stay where they are."""
        place = self._numbers.get((number, type_))
        if place is None:
            place = self._numbers[number, type_] = Value(f"@number.{len(self._numbers)}", "ptr")
            text = f"{type_} {const(number, type_).name}, align {bytes_of(type_)}"
            self._globals.append(f"{place.name} = internal global {text}")
        return place

    def text(self) -> str:
        """The whole module as LLVM assembly."""
        width = self.isa.vector_bytes * 8
        widths = f'"prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'
        attributes = f"attributes #0 = {{ nounwind {widths} }}"
        parts = [*self._head(), *(each.text() for each in self.functions.values())]
        return "\n".join([*parts, attributes, ""])

    def _head(self) -> list[str]:
        return [f'target triple = "{self.isa.triple}"', *self._globals, *self._declared.values()]

    def line_origins(self) -> list[int]:
        """For each line of `text` the line it stands for in the stage before, 0 where there is none."""
        inside = [each for function in self.functions.values() for each in function.line_origins()]
        return [0] * len(self._head()) + inside + [0]


class Function(Instructions):
    """One function: instructions, and structured control around them."""

    # -- control
    def block(self) -> str:
        """A fresh label."""
        self._count += 1
        return f"b{self._count}"

    def open_block(self, label: str) -> None:
        self._push(f"{label}:")
        self._block, self._opened = label, len(self._lines)

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
        slot, origin = len(self._lines), self.origin
        loop = Loop(Value(self.fresh(), "i64"), [Value(self.fresh(), each.type) for each in carried])
        with self.scope():
            yield loop
            self.origin = origin
            following = self.add(loop.index, step)
            again = self.compare("slt", following, end)
        loop.next = loop.next or loop.carried
        latch = self._block
        phis = [f"  {loop.index.name} = phi i64 [ {begin.name}, %{before} ], [ {following.name}, %{latch} ]"]
        for here, start, later in zip(loop.carried, carried, loop.next, strict=True):
            phis.append(
                f"  {here.name} = phi {here.type} [ {start.name}, %{before} ], [ {later.name}, %{latch} ]"
            )
        self._lines[slot:slot] = phis
        self.origins[slot:slot] = [origin] * len(phis)
        self.branch_if(again, head, after)
        self.open_block(after)
        if runs:
            loop.results = list(loop.next)
            return
        for start, later in zip(carried, loop.next, strict=True):
            loop.results.append(
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
