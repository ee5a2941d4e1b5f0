"""Where each tile lies in scratch memory and in which layout, decided from who reads and writes it.

A tile that only gemms read, as their right operand, is laid out in the micro-kernel's panels, so
that the copy into it is the packing. A tile of small floats that only gemms read is widened by that
copy too. All others are padded rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....ir import (
    AllocStmt,
    Arith,
    Buffer,
    Call,
    Expr,
    Function,
    Load,
    Node,
    Stmt,
    Store,
    Var,
    children,
    effects_of,
    map_children,
    walk,
)
from ....ir.dtypes import float32
from ....language.copy import Copy, Fill
from ....language.gemm import Gemm
from ....language.structure import Parallel
from ..llvm import bytes_of
from ..machine import Isa
from ..microkernel.gemm import compute_element, padded_rows, panel_width, row_stride
from ..numbers.convert import COMPUTE, STORAGE
from .words import ColumnPanels, PaddedRows

LINE = 64


@dataclass
class Uses:
    """The statements that touch a buffer, by what they do with it."""

    gemm_a: list[Gemm] = field(default_factory=list[Gemm])
    gemm_b: list[Gemm] = field(default_factory=list[Gemm])
    gemm_c: list[Gemm] = field(default_factory=list[Gemm])
    copied_in: list[Copy] = field(default_factory=list[Copy])
    copied_out: list[Copy] = field(default_factory=list[Copy])
    filled: list[Fill] = field(default_factory=list[Fill])
    other: int = 0
    loops: list[Parallel] = field(default_factory=list[Parallel])

    @property
    def packed(self) -> bool:
        """Filled by whole copies and fills alone, read by gemms alone."""
        written = [each.dst for each in (*self.copied_in, *self.filled)]
        return not (self.gemm_c or self.copied_out or self.other or self.loops) and all(
            r.is_whole for r in written
        )


@dataclass(frozen=True)
class Tile:
    """A planned tile: the buffer as later statements see it, its layout and its first byte."""

    buffer: Buffer
    layout: PaddedRows | ColumnPanels
    offset: int


def uses_of(function: Function) -> dict[str, Uses]:
    """Every use of every buffer."""
    found: dict[str, Uses] = {}

    def of(buffer: Buffer) -> Uses:
        return found.setdefault(buffer.name, Uses())

    def visit(at: Node, loop: Parallel | None) -> None:
        match at:
            case Copy():
                of(at.src.buffer).copied_out.append(at)
                of(at.dst.buffer).copied_in.append(at)
            case Fill():
                of(at.dst.buffer).filled.append(at)
            case Gemm():
                of(at.a.buffer).gemm_a.append(at)
                of(at.b.buffer).gemm_b.append(at)
                of(at.c.buffer).gemm_c.append(at)
            case Store() | Load():
                if loop is None:
                    of(at.buffer).other += 1
                elif loop not in of(at.buffer).loops:
                    of(at.buffer).loops.append(loop)
            case _:
                for effect in effects_of(at):
                    of(effect.buffer).other += 1
        for each in children(at):
            visit(each, at if isinstance(at, Parallel) else loop)

    visit(function, None)
    return found


class BufferPlan:
    """Tiles of one function. `size` is the scratch memory of a worker, in bytes."""

    def __init__(self, function: Function, isa: Isa) -> None:
        self.isa = isa
        self.uses = uses_of(function)
        # Whether any expression reads elements of a buffer.
        self.loaded = dict.fromkeys(self.uses, False)
        self.loaded |= {each.buffer.name: True for each in walk(function) if isinstance(each, Load)}
        self.size = 0
        self.tiles: dict[str, Tile] = {}
        for each in walk(function):
            if isinstance(each, AllocStmt) and each.buffer.scope in ("shared", "fragment", "local"):
                self.place(each.buffer)

    def place(self, buffer: Buffer) -> None:
        uses = self.uses.get(buffer.name, Uses())
        dtype = buffer.dtype
        # Widened once here instead of at each of the many reads of the micro-kernel.
        if uses.packed and (uses.gemm_a or uses.gemm_b) and STORAGE[dtype.name] != COMPUTE[dtype.name]:
            dtype = float32
        made = Buffer(buffer.name, buffer.shape, dtype, "scratch")
        layout = self.panels(made, uses) or self.rows(made, uses)
        self.tiles[buffer.name] = Tile(made, layout, self.size)
        # A line of slack behind each tile: vectors may read past the last element.
        self.size += -(-dtype.bytes_of(layout.elements) // LINE) * LINE + LINE

    def panels(self, buffer: Buffer, uses: Uses) -> ColumnPanels | None:
        sides = {each.transpose_B for each in uses.gemm_b}
        if not uses.packed or uses.gemm_a or len(sides) != 1 or buffer.rank != 2:
            return None
        first = uses.gemm_b[0]
        names = (self.dtype_of(first.a.buffer), buffer.dtype.name, first.c.buffer.dtype.name)
        width = panel_width(self.isa, compute_element(*names))
        transposed = sides.pop()
        columns, depth = buffer.shape if transposed else buffer.shape[::-1]
        return ColumnPanels(width, depth, -(-columns // width), transposed=transposed)

    def dtype_of(self, buffer: Buffer) -> str:
        """The dtype that a gemm finds in a tile."""
        tile = self.tiles.get(buffer.name)
        return (tile.buffer if tile else buffer).dtype.name

    def rows(self, buffer: Buffer, uses: Uses) -> PaddedRows:
        columns = buffer.shape[-1] if buffer.rank else 1
        rows = buffer.size // columns
        stride = row_stride(self.isa, columns, bytes_of(STORAGE[buffer.dtype.name])) if rows > 1 else columns
        if uses.gemm_a or uses.gemm_c:
            rows = padded_rows(rows)
        if any(each.transpose_A for each in uses.gemm_a):
            rows += 1  # a register block reads past the last column of the last row
        return PaddedRows(stride, rows)

    def nobody_reads_ghosts(self, buffer: Buffer) -> bool:
        """Whether elements of an accumulator outside the problem reach nothing but other such elements."""
        uses = self.uses[buffer.name]
        if uses.gemm_a or uses.gemm_b or uses.other:
            return False
        outward = all(each.dst.buffer.scope == "global" and each.src.is_whole for each in uses.copied_out)
        inward = all(each.dst.is_whole for each in (*uses.copied_in, *uses.filled))
        return outward and inward and all(_element_by_element(each, buffer) for each in uses.loops)


def _element_by_element(loop: Parallel, buffer: Buffer) -> bool:
    """Each turn of the loop touches only its own element, and stores to global memory or such elements."""
    for each in walk(loop):
        if isinstance(each, (Load, Store)) and each.buffer.name == buffer.name and each.index != loop.vars:
            return False
        if isinstance(each, Store) and each.buffer.scope != "global" and each.buffer.name != buffer.name:
            return False
    return True


def reads_var(expr: Node, names: set[str]) -> bool:
    """Whether an expression mentions one of the variables."""
    return any(isinstance(each, Var) and each.name in names for each in walk(expr))


def _is_lazy(at: Call | Arith) -> bool:
    """Whether arguments after the first are looked at only under a condition."""
    return at.word == "if_then_else" if isinstance(at, Call) else at.op in ("and", "or")


def sure_loads(expr: Expr) -> list[Load]:
    """The loads of an expression that no condition guards."""
    out: list[Load] = []
    stack: list[Node] = [expr]
    while stack:
        at = stack.pop()
        if isinstance(at, Load):
            out.append(at)
        elif isinstance(at, (Call, Arith)) and _is_lazy(at):
            stack.append(at.args[0])
        else:
            stack.extend(children(at))
    return out


def swap_buffers(node: Any, tiles: dict[str, Tile]) -> Any:
    """The node with every access to a tile going to its scratch buffer."""

    def step(at: Any) -> Any:
        made = map_children(at, step)
        held = getattr(made, "buffer", None)
        if isinstance(held, Buffer) and held.name in tiles and not isinstance(made, AllocStmt):
            return made.but(buffer=tiles[held.name].buffer)
        return made

    return step(node)


def value_bytes(nodes: tuple[Stmt, ...] | list[Stmt]) -> int:
    """The widest element that the statements compute with; index arithmetic is left out."""
    widest = 1
    stack: list[Node] = list(nodes)
    while stack:
        at = stack.pop()
        if isinstance(at, Load):
            widest = max(widest, bytes_of(COMPUTE[at.dtype.name]))
            continue
        if isinstance(at, Store):
            widest = max(widest, bytes_of(COMPUTE[at.buffer.dtype.name]))
            stack.append(at.value)
            continue
        if isinstance(at, Arith) and at.dtype.kind == "bool" and at.args[0].dtype.name == "int32":
            stack.extend(each for each in at.args if any(isinstance(n, Load) for n in walk(each)))
            continue
        if isinstance(at, Expr) and not isinstance(at, Var):
            widest = max(widest, bytes_of(COMPUTE[at.dtype.name]))
        stack.extend(children(at))
    return widest
