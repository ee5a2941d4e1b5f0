"""`T.convert_layout`: registers renamed, exchanged in a warp, or laid down and picked up in shared memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....errors import InternalError, LayoutError
from ....ir import (
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    whole,
)
from ....ir.dtypes import bytes_of, dtype_of
from ....language.lowered.layouts import ConvertLayout
from ....language.lowered.threads import MoveBits
from ....language.memory import AllocLocal
from ....language.structure import Unroll
from ....layout import Fragment, SharedLayout
from ....layout.conversion import Gather, Keep, Loop, Move, Route, Step, Swap, WarpConversion
from ....machine import Machine
from ...analysis.conversions import RENAME, SHARED, SHUFFLE, access_width, in_warps, register_bits
from ..addresses import lower_expr
from ..barriers import barrier_of
from ..elements import ElementLoop, element_loops, looped
from ..emitter import Emitter
from ..lowering import Lowering, Workspace
from ..registers import check_version
from ..tiles import NOWHERE, FragmentTile, SharedTile
from .copy import coordinates


def _sides(emitter: Emitter, statement: ConvertLayout) -> tuple[FragmentTile, FragmentTile]:
    """The registers of both sides. Raises `LayoutError` where they are no fragments of one tile."""
    tiles: list[FragmentTile] = []
    for region in (statement.src, statement.dst):
        tile = emitter.fragments.get(region.buffer.name)
        if tile is None or not region.is_whole:
            raise LayoutError(
                "{name} is no whole fragment, whose layout could change", at=statement.place,
                name=region.buffer.name,
            )  # fmt: skip
        tiles.append(tile)
    src, dst = tiles
    if src.layout.extents != dst.layout.extents or src.local.dtype != dst.local.dtype:
        raise LayoutError(
            "{a} and {b} do not hold the same tile", at=statement.place, a=statement.src.buffer.name,
            b=statement.dst.buffer.name,
        )  # fmt: skip
    return src, dst


# -- among the registers of a warp


def _by_steps(emitter: Emitter, statement: ConvertLayout) -> list[Stmt]:
    src, dst = _sides(emitter, statement)
    steps = in_warps(src.layout, dst.layout, src.local.dtype, emitter.machine)
    name = None if steps is None else SHUFFLE if steps.steps else RENAME
    if steps is None or statement.by is None or statement.by.name != name:
        raise LayoutError(
            "the elements of {name} cannot come to where {other} has them by {by}", at=statement.place,
            name=statement.src.buffer.name, other=statement.dst.buffer.name,
            by=getattr(statement.by, "name", ""), ways=" or ".join(repr(w) for w in (name, SHARED) if w),
            expected="by=T.Instr({ways})",
        )  # fmt: skip
    words = _Words.of(emitter, src.local, steps)
    lowered: list[Stmt] = [AllocLocal(words.buffer)]
    starts = [_start(emitter, *side, lowered) for side in ((statement.src, src), (statement.dst, dst))]
    lowered += words.filled(src.local, starts[0])
    for step in steps.steps:
        lowered += words.step(step)
    return [*lowered, *words.emptied(dst.local, starts[1])]


def _start(emitter: Emitter, region: Region, tile: FragmentTile, before: list[Stmt]) -> Expr:
    """The register where a version of a fragment begins."""
    if region.version is None:
        return Const(0)
    number = lower_expr(emitter, region.version, NOWHERE, before)
    check_version(emitter, region.buffer.name, number, tile.local.size // max(1, tile.layout.values))
    return number * tile.layout.values


class _Words:
    """The registers that are worked in: words of some elements each, or elements themselves."""

    def __init__(self, emitter: Emitter, buffer: Buffer, steps: WarpConversion) -> None:
        self.emitter, self.buffer, self.steps = emitter, buffer, steps

    @staticmethod
    def of(emitter: Emitter, source: Buffer, steps: WarpConversion) -> _Words:
        dtype = source.dtype
        if len(steps.parts) > 1:
            dtype = dtype_of(f"uint{len(steps.parts) * register_bits(dtype)}")
        name = emitter.name(f"{source.name}_words")
        return _Words(emitter, Buffer(name, (steps.registers,), dtype, "local"), steps)

    def filled(self, source: Buffer, start: Expr) -> list[Stmt]:
        """Each word from its elements in the source, which are laid side by side before."""
        parts = [part for part, _ in self.steps.parts]
        if len(parts) == 1:
            return self.moved(self.steps.takes, lambda a, b: [self.put(b, Load(source, (start + a,)))])
        if parts == list(range(len(parts))) and self.steps.takes == ((self.buffer.size, len(parts), 1),):
            return [MoveBits(whole(self.buffer), self.run(source, start))]
        laid = self.side_by_side(source)

        def body(there: Expr, here: Expr) -> list[Stmt]:
            first = here * len(parts)
            return [
                Store(laid, (first + k,), Load(source, (start + there + part,)))
                for k, part in enumerate(parts)
            ]

        move = MoveBits(whole(self.buffer), self.run(laid, Const(0)))
        return [AllocLocal(laid), *self.moved(self.steps.takes, body), move]

    def emptied(self, target: Buffer, start: Expr) -> list[Stmt]:
        """Each word's elements to where the target has them."""
        parts = [part for _, part in self.steps.parts]
        if len(parts) == 1:
            return self.moved(self.steps.moves, lambda a, b: [Store(target, (start + b,), self.get(a))])
        laid = self.side_by_side(target)

        def body(here: Expr, there: Expr) -> list[Stmt]:
            first = here * len(parts)
            return [
                Store(target, (start + there + part,), Load(laid, (first + k,)))
                for k, part in enumerate(parts)
            ]

        back = MoveBits(whole(laid), whole(self.buffer))
        return [AllocLocal(laid), back, *self.moved(self.steps.moves, body)]

    def side_by_side(self, like: Buffer) -> Buffer:
        """Registers of the elements of all words, in order."""
        size = self.buffer.size * len(self.steps.parts)
        return Buffer(self.emitter.name(f"{like.name}_parts"), (size,), like.dtype, "local")

    def run(self, buffer: Buffer, start: Expr) -> Region:
        """As many registers as all words have elements."""
        return Region(buffer, (start,), extent=(self.buffer.size * len(self.steps.parts),))

    def moved(self, moves: tuple[Move, ...], body: Callable[[Expr, Expr], list[Stmt]]) -> list[Stmt]:
        """Loops over registers that are numbered in two ways."""
        first: Expr = Const(0)
        second: Expr = Const(0)
        loops: list[tuple[Var, int]] = []
        for count, here, there in moves:
            var = self.emitter.leaf_variable(f"r{len(loops)}", count)
            loops.append((var, count))
            first, second = first + var * here, second + var * there
        written = body(first, second)
        for var, count in loops:
            written = looped(Unroll, var, count, written)
        return written

    def step(self, step: Step) -> list[Stmt]:
        match step:
            case Swap():
                return self.loop(step.loops, lambda number: self.swap(step, number))
            case Keep():
                return self.loop(step.loops, lambda number: self.keep(step, number))
            case Gather():
                return self.loop(step.loops, lambda number: self.gather(step, number))
            case Route():
                lane: Expr = Const(0)
                for its, ours in step.bits:
                    lane = lane + self.emitter.digit(ours, 2) * its
                return self.loop(
                    step.loops, lambda number: [self.put(number, self.call("shfl", number, lane))]
                )

    def loop(self, loops: tuple[Loop, ...], body: Callable[[Expr], list[Stmt]]) -> list[Stmt]:
        variables = [self.emitter.leaf_variable(f"r{k}", count) for k, (count, _) in enumerate(loops)]
        number: Expr = Const(0)
        for var, (_, stride) in zip(variables, loops, strict=True):
            number = number + var * stride
        # Without a loop around them the names of one step are in the way of the next.
        with self.emitter.scope(any(count > 1 for count, _ in loops)):
            written = body(number)
        for var, (count, _) in zip(variables, loops, strict=True):
            written = looped(Unroll, var, count, written)
        return written

    def swap(self, step: Swap, number: Expr) -> list[Stmt]:
        """What this lane gives away is what the neighbour keeps of the pair."""
        upper = self.is_set(step.lane)
        low, high = self.get(number), self.get(number + step.value)
        given = self.chosen(upper, low, high)
        other = Var(self.emitter.name("other"), type=self.buffer.dtype)
        return [
            Let(other, Call("shfl_xor", (given, Const(step.lane)), type=self.buffer.dtype)),
            self.put(number, self.chosen(upper, other, low)),
            self.put(number + step.value, self.chosen(upper, high, other)),
        ]

    def keep(self, step: Keep, number: Expr) -> list[Stmt]:
        low, high = self.get(number), self.get(number + step.value)
        return [self.put(number, self.chosen(self.is_set(step.thread), high, low))]

    def gather(self, step: Gather, number: Expr) -> list[Stmt]:
        upper = self.is_set(step.lane)
        own = Var(self.emitter.name("own"), type=self.buffer.dtype)
        other = Var(self.emitter.name("other"), type=self.buffer.dtype)
        return [
            Let(own, self.get(number)),
            Let(other, Call("shfl_xor", (own, Const(step.lane)), type=self.buffer.dtype)),
            self.put(number, self.chosen(upper, other, own)),
            self.put(number + step.value, self.chosen(upper, own, other)),
        ]

    def is_set(self, divisor: int) -> Expr:
        return self.emitter.digit(divisor, 2).compare("==", 1)

    def call(self, word: str, number: Expr, lane: Expr) -> Expr:
        return Call(word, (self.get(number), lane), type=self.buffer.dtype)

    def get(self, number: Expr) -> Expr:
        return Load(self.buffer, (number,))

    def put(self, number: Expr, value: Expr) -> Stmt:
        return Store(self.buffer, (number,), value)

    def chosen(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        return Call("if_then_else", (condition, yes, no), type=self.buffer.dtype)


# -- through shared memory


def _by_memory(emitter: Emitter, statement: ConvertLayout) -> list[Stmt]:
    """What each owner has is laid down; after a barrier each thread picks up what it needs."""
    src, dst = _sides(emitter, statement)
    if statement.scratch is None:
        raise InternalError("{name} has no shared memory to go through", name=statement.src.buffer.name)
    memory = statement.scratch.buffer
    layout = _through(statement, src.layout.extents)
    emitter.shared[memory.name] = SharedTile(emitter.shared[memory.name].flat, layout)
    tile = Buffer(memory.name, src.layout.extents, memory.dtype, "shared")
    why = f"{statement.src.buffer.name} is laid down in {memory.name}"
    return [
        *_moved(emitter, statement, src.layout, statement.src, whole(tile), layout),
        *barrier_of(emitter, why),
        *_moved(emitter, statement, dst.layout, whole(tile), statement.dst, layout),
    ]


def _moved(
    emitter: Emitter, statement: ConvertLayout, mapping: Fragment, src: Region, dst: Region,
    layout: SharedLayout,
) -> list[Stmt]:  # fmt: skip
    names = coordinates(emitter, mapping.extents)
    value: Expr = Load(src.buffer, names, version=src.version)
    if value.dtype != dst.buffer.dtype:
        value = Cast(value, type=dst.buffer.dtype)
    width = access_width(mapping, layout, register_bits(value.dtype), max(emitter.machine.vector_bytes))
    body = (Store(dst.buffer, names, value, version=dst.version),)
    loop = ElementLoop(statement, mapping, mapping.extents, names, body, cap=width, ours=True)
    return element_loops(emitter, loop)


def _through(statement: ConvertLayout, extents: tuple[int, ...]) -> SharedLayout:
    """The layout of the tile on its way. Raises `LayoutError` for one of another tile."""
    layout = statement.through or SharedLayout.rows(extents)
    reaches = len(layout.extents) == len(extents) and all(
        reach >= extent for reach, extent in zip(layout.extents, extents, strict=True)
    )
    if not reaches:
        raise LayoutError(
            "{name} of extents {shape} goes through a layout of {extents}", at=statement.place,
            name=statement.src.buffer.name, shape=extents, extents=layout.extents,
            expected="through= a layout of all its elements",
        )  # fmt: skip
    return layout


def workspace(
    statement: ConvertLayout, layouts: Mapping[str, Fragment], machine: Machine
) -> Workspace | None:
    """The memory of the tile on its way; its elements share no byte."""
    buffer = statement.src.buffer
    layout = _through(statement, buffer.extents)
    return Workspace(f"{buffer.name}_turn", layout.cosize, bytes_of(buffer.dtype))


LOWERINGS = (
    Lowering(ConvertLayout, RENAME, _by_steps),
    Lowering(ConvertLayout, SHUFFLE, _by_steps),
    Lowering(ConvertLayout, SHARED, _by_memory, workspace),
)
