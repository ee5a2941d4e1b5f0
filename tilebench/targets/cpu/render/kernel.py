"""The `loops` stage as one LLVM function.

The function has the form that the pool calls: it runs blocks begin..end-1 of the grid, polls the
cancel word at each block and on the back edges of long loops, and keeps its tiles in the worker's
scratch memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ....ir import Function, walk
from ....language.structure import KernelLaunch
from ..llvm import Module, Value
from ..loops.words import AllocScratch
from ..machine import Isa
from .renderer import Renderer, Rendering, RenderingTable
from .words import rows

ENTRY = "kernel"


class Rendered:
    """The LLVM text, the loops line of each of its lines (0: none), scratch bytes, the grid."""

    def __init__(self, module: Module, scratch: int, grid: tuple[int, ...]) -> None:
        self.text = module.text()
        self.origins = module.line_origins()
        self.scratch = scratch
        self.grid = grid


def render_llvm(
    function: Function, isa: Isa, lines: dict[int, int] | None = None, more: Iterable[Rendering] = ()
) -> Rendered:
    """The function in the `loops` stage as LLVM text.

    `lines` gives the line of a statement by `id`; `more` are renderings of a package's own words.
    Raises `TargetError` for a word without a rendering.
    """
    module = Module(isa)
    table = RenderingTable((*rows(), *more)) if more else _own_table()
    launch = next(statement for statement in function.body if isinstance(statement, KernelLaunch))
    _blocks(Renderer(module, ENTRY, lines or {}, table), function, launch)
    return Rendered(module, scratch_bytes(function), launch.grid)


@cache
def _own_table() -> RenderingTable:
    return RenderingTable(rows())


def scratch_bytes(function: Function) -> int:
    """What the tiles of a function need, in bytes, with a line of slack behind the last."""
    ends = [
        alloc.offset + alloc.buffer.dtype.bytes_of(alloc.layout.elements)
        for alloc in walk(function)
        if isinstance(alloc, AllocScratch) and alloc.layout is not None
    ]
    return -(-max(ends, default=0) // 64) * 64 + 64


def _blocks(renderer: Renderer, function: Function, launch: KernelLaunch) -> None:
    """The loop over the blocks that the caller wants."""
    f = renderer.f
    for number, parameter in enumerate(function.params):
        renderer.state.pointers[parameter.name] = f.load(f.at(renderer.args, number, "i64"), "ptr")
    f.origin = renderer.lines.get(id(launch), 0)
    with f.loop(renderer.begin, renderer.end) as block:
        renderer.poll()
        _count_block(renderer, launch, block.index)
        renderer.body(launch.body)
        f.origin = renderer.lines.get(id(launch), 0)
    f.ret()
    f.open_block(renderer.stopped)
    f.ret()


def _count_block(renderer: Renderer, launch: KernelLaunch, number: Value) -> None:
    """The block's place in the grid from its number, the first dimension fastest."""
    f, rest = renderer.f, number
    for k, (var, size) in enumerate(zip(launch.vars, launch.grid, strict=True)):
        last = k == len(launch.grid) - 1
        renderer.count(var, rest if last else f.binary("urem", rest, size), (0, max(0, size - 1)))
        rest = rest if last else f.binary("udiv", rest, size)
