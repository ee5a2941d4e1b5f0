"""Who holds what: the layout of every tile of a kernel, as modes that say it whole and short.

A fragment says which thread holds an element in which of its registers, a shared layout at which element from
the start of the buffer it lies, a mapping which thread carries out an index of a loop or copy. Nothing is
enumerated here; `holders` and `offset` answer for one element.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import LayoutError
from ..ir import Function, Node, Stmt, walk
from ..language.copy import Copy
from ..language.gemm import Gemm
from ..language.memory import AllocFragment, AllocShared
from ..language.structure import Parallel
from ..layout import Fragment
from ..layout.algebra import IntTuple
from ..layout.fragment import FragmentMode
from ..machine import Instruction, Machine
from ..passes.analysis.shared_bytes import shared_layout
from ..passes.analysis.sites import is_mapped
from ..passes.laid_out.choose_instructions import row_of

FRAGMENT, SHARED, INSTRUCTION, MAPPING = "fragment", "shared", "instruction", "mapping"


class Holder(NamedTuple):
    """A thread that holds an element, and the register, by their numbers."""

    thread: int
    register: int


@dataclass(frozen=True)
class TileLayout:
    """The layout of one tile.

    `kind` is `fragment`, `shared`, `instruction` (an operand as the hardware has it) or `mapping` (a loop or
    a copy: a register is then a step of the thread). `bits` is the size of an element, `versions` how many
    copies a ring has. A fragment has its modes (count, dimension, step) of `thread` and `value`, the fastest
    first, and `copies`, the threads that hold each element. A shared layout has the (extent, stride) modes of
    each dimension in elements, and a swizzle of (bits, base, shift), empty where it has none.
    """

    name: str
    kind: str
    line: int
    dtype: str
    bits: int
    extents: tuple[int, ...]
    thread: tuple[FragmentMode, ...] = ()
    value: tuple[FragmentMode, ...] = ()
    copies: int = 1
    modes: tuple[tuple[tuple[int, int], ...], ...] = ()
    swizzle: tuple[int, ...] = ()
    versions: int = 1

    @property
    def fragment(self) -> Fragment:
        """The fragment. `LayoutError` for a tile in shared memory, which threads do not hold."""
        if self.kind == SHARED:
            raise LayoutError("{name} lies in shared memory, and no thread holds it", name=self.name)
        return Fragment(self.extents, self.thread, self.value)

    def holders(self, index: tuple[int, ...]) -> tuple[Holder, ...]:
        """Every thread that holds an element, the owner first."""
        fragment = self.fragment
        inside = np.ones((fragment.threads, fragment.values), np.bool_)
        for where, wanted in zip(fragment.all_coordinates, index, strict=True):
            inside &= where == wanted
        threads, registers = np.nonzero(inside)
        order = np.argsort(~fragment.owners[threads], kind="stable")
        return tuple(Holder(int(threads[k]), int(registers[k])) for k in order)

    def offset(self, index: tuple[int, ...]) -> int:
        """Elements from the start of the buffer. `LayoutError` for what is not in shared memory."""
        if self.kind != SHARED:
            raise LayoutError("{name} is held by threads, and has no offsets", name=self.name)
        total = 0
        for number, modes in zip(index, self.modes, strict=True):
            rest = number
            for extent, step in modes:
                total, rest = total + rest % extent * step, rest // extent
        if self.swizzle:
            bits, base, shift = self.swizzle
            total ^= (total & ((1 << bits) - 1) << (base + shift)) >> shift
        return total


def tile_layouts(function: Function, machine: Machine) -> tuple[TileLayout, ...]:
    """The layouts of one launch in the stage `laid_out` or `pipelined`, in order of the text.

    Fragments, tiles in shared memory, operands of instructions that groups of threads carry out, then the
    mappings of loops and copies.
    """
    nodes = list(walk(function))
    found: list[TileLayout] = []
    for node in nodes:
        if isinstance(node, AllocFragment) and node.layout is not None:
            found.append(of_fragment(node.buffer.name, node.layout, node.buffer.dtype, line_of(node)))
        elif isinstance(node, AllocShared) and node.layout is not None:
            found.append(of_shared(node))
    operands = [one for node in nodes if isinstance(node, Gemm) for one in _operands(node, machine)]
    found += dict.fromkeys(operands)
    return (*found, *(one for node in nodes for one in _mapping(node)))


def line_of(node: Node) -> int:
    """The line in the user's file, 0 where nobody knows it."""
    return node.place.user.line if node.place is not None else 0


def of_fragment(name: str, layout: Fragment, dtype: Any, line: int, kind: str = FRAGMENT) -> TileLayout:
    """A fragment (of elements of `dtype`) as a layout to look at."""
    return TileLayout(
        name, kind, line, dtype.name, dtype.bits, layout.extents, layout.thread, layout.value,
        layout.replicated_threads,
    )  # fmt: skip


def of_shared(node: AllocShared) -> TileLayout:
    """A tile in shared memory as a layout to look at."""
    layout = shared_layout(node)
    swizzle = layout.swizzle
    return TileLayout(
        node.buffer.name, SHARED, line_of(node), node.buffer.dtype.name, node.buffer.dtype.bits,
        node.buffer.extents, modes=tuple(tuple(_pairs(dim.modes)) for dim in layout.dims),
        swizzle=() if swizzle is None or not swizzle.bits else (swizzle.bits, swizzle.base, swizzle.shift),
        versions=node.versions,
    )  # fmt: skip


def _pairs(modes: Iterable[tuple[IntTuple, IntTuple]]) -> Iterable[tuple[int, int]]:
    for extent, step in modes:
        assert isinstance(extent, int)  # a dimension's modes are flat
        assert isinstance(step, int)
        yield extent, step


def _operands(gemm: Gemm, machine: Machine) -> Iterable[TileLayout]:
    """The operands of the instruction that carries out a product, as its lanes hold them."""
    if gemm.by is None:
        return
    row: Instruction = row_of(gemm, machine)
    shape = "".join(f"{letter}{extent}" for letter, extent in zip("mnk", row.shape, strict=False))
    for field, region in (("a", gemm.a), ("b", gemm.b), ("c", gemm.c)):
        form = row.operand(field)
        if form.fragment is not None:
            name = f"{row.name} {shape}: {field.upper()}"
            yield of_fragment(name, form.fragment, region.buffer.dtype, 0, INSTRUCTION)


def _mapping(node: Node) -> Iterable[TileLayout]:
    layout: Fragment | None = getattr(node, "map", None)
    if layout is None or not isinstance(node, Stmt):
        return
    if isinstance(node, Parallel):
        # As the kernel calls them: what passes put behind a name tells it from others of the same.
        name = "loop over " + ", ".join(var.name.partition("__")[0] for var in node.vars)
    elif is_mapped(node):
        name = str(getattr(node, "word", ""))
        if isinstance(node, Copy):
            name = f"copy {node.src.buffer.name} to {node.dst.buffer.name}"
    else:
        return
    yield TileLayout(
        name, MAPPING, line_of(node), "", 0, layout.extents, layout.thread, layout.value,
        layout.replicated_threads,
    )  # fmt: skip
