"""The `loops` stage in LLVM: a function for each launch.

Such a function has the form that the pool calls: it runs blocks begin..end-1 of the grid, polls the
cancel word at each block and on the back edges of long loops, and keeps its tiles in the worker's
scratch memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from ....ir import Buffer, Function, lift, walk
from ....language.scopes import entered, entry_facts
from ....language.structure import KernelLaunch
from ....passes.analysis.launches import launch_of, parts_of
from ..llvm import Module, Value
from ..loops.words import LINE, AllocScratch, slack
from ..machine import Isa
from ..numbers.convert import load_value, stored_bytes
from .renderer import Renderer, Rendering, RenderingTable
from .words import rows

ENTRY = "kernel"


class Rendered:
    """The LLVM text, the loops line of each of its lines (0: none), scratch bytes of each launch."""

    def __init__(self, module: Module, scratch: tuple[int, ...]) -> None:
        self.text = module.text()
        self.origins = module.line_origins()
        self.scratch = scratch


def render_llvm(
    function: Function, isa: Isa, lines: dict[int, int] | None = None, more: Iterable[Rendering] = ()
) -> Rendered:
    """The function in the `loops` stage as LLVM text.

    `lines` gives the line of a statement by `id`; `more` are renderings of a package's own words.
    Raises `TargetError` for a word without a rendering.
    """
    module = Module(isa)
    table = RenderingTable((*rows(), *more)) if more else _own_table()
    parts = parts_of(function)
    for entry, part in zip(entries(len(parts)), parts, strict=True):
        _blocks(Renderer(module, entry, lines or {}, table), part, launch_of(part))
    return Rendered(module, tuple(scratch_bytes(part) for part in parts))


def entries(launches: int) -> tuple[str, ...]:
    """The names of the functions of so many launches, in order."""
    return (ENTRY, *(f"{ENTRY}_{number}" for number in range(2, launches + 1)))


@cache
def _own_table() -> RenderingTable:
    return RenderingTable(rows())


def scratch_bytes(function: Function) -> int:
    """What the tiles of a function need, in bytes, with the slack behind the last."""
    ends = [
        alloc.offset + stored_bytes(alloc.buffer.dtype, alloc.layout.elements) + slack(alloc)
        for alloc in walk(function)
        if isinstance(alloc, AllocScratch) and alloc.layout is not None
    ]
    return -(-max(ends, default=LINE) // LINE) * LINE


def _blocks(renderer: Renderer, function: Function, launch: KernelLaunch) -> None:
    """The loop over the blocks that the caller wants."""
    f, renderer.state.facts = renderer.f, entered(launch, entry_facts(function))
    _parameters(renderer, function)
    grid = [renderer.expr.size(lift(size)) for size in launch.grid]
    f.origin = renderer.lines.get(id(launch), 0)
    with f.loop(renderer.begin, renderer.end) as block:
        renderer.poll()
        _count_block(renderer, launch, grid, block.index)
        renderer.body(launch.body)
        f.origin = renderer.lines.get(id(launch), 0)
    f.ret()
    f.open_block(renderer.stopped)
    f.ret()


def _parameters(renderer: Renderer, function: Function) -> None:
    """Words that are passed: addresses of arrays, sizes in 64 bits, the bits of scalars."""
    f, state = renderer.f, renderer.state
    sizes = {var.name for var in function.dimensions}
    for number, parameter in enumerate(function.params):
        word = f.at(renderer.args, number, "i64")
        if isinstance(parameter, Buffer):
            state.pointers[parameter.name] = f.load(word, "ptr")
        elif parameter.name in sizes:
            renderer.count(parameter, f.load(word, "i64"))
        else:
            state.values[parameter.name] = load_value(f, word, parameter.type.name)


def _count_block(renderer: Renderer, launch: KernelLaunch, grid: Sequence[Value], number: Value) -> None:
    """The block's place in the grid from its number, the first dimension fastest."""
    f, rest = renderer.f, number
    for k, (var, size) in enumerate(zip(launch.vars, grid, strict=True)):
        last = k == len(grid) - 1
        renderer.count(var, rest if last else f.binary("urem", rest, size))
        rest = rest if last else f.binary("udiv", rest, size)
