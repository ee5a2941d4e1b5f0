"""Launch and loops as a kernel writes them: `T.Kernel`, `T.Parallel`, `T.Pipelined`, `T.serial`, ..."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import LanguageError, OptionError, Place, ShapeError, nearest
from ..ir import ZERO, Const, Expr, Let, LoopStmt, Stmt, Var, int32, show
from ..ir.arith import linear
from .dynamic import size_of
from .extern import add_source
from .layouts import loop_map
from .lowered.decisions import ROW_BY_ROW, Panels
from .manual_stages import staged, whole_numbers
from .nested import enter_parallel, merged
from .notes import note_unused
from .steps import by_count, counts_up
from .structure import Pipelined as PipelinedStmt
from .structure import Serial, Unroll, Vectorized
from .swept import swept
from .threads.block import BlockThreads
from .tracing.builder import for_tiles, here, in_trace, inside_kernel
from .tracing.expressions import Value
from .tracing.operands import at_least, positive, whole_number
from .tracing.promote import convert, expr_of

if TYPE_CHECKING:
    from .tracing.taken import Whole


@dataclass(frozen=True)
class KernelSpec:
    """The launch that `with T.Kernel(...)` opens."""

    grid: tuple[int | Expr, ...]
    threads: int | None
    place: Place | None

    def __enter__(self) -> NoReturn:
        raise LanguageError(
            "T.Kernel belongs in the body of a @T.prim_func", hint="a helper cannot open the kernel"
        )

    def __exit__(self, *_: object) -> None:
        return None


Build = Callable[[tuple[Var, ...], tuple[Stmt, ...]], LoopStmt]


@dataclass(frozen=True)
class LoopSpec:
    """A loop of the kernel, waiting for its names and its body. `kind` names its body's frame."""

    word: str
    kind: str
    count: int
    build: Build
    # Whether it has no iteration, so that its body is not looked at.
    empty: bool = False
    # Whether its iterations have an order, so that one can end the loop.
    ordered: bool = True
    # What a name gets that the loop is assigned to: the number of a thread, of a loop over threads.
    number: Expr | None = None

    def __iter__(self) -> NoReturn:
        raise LanguageError(
            "a helper that Python runs cannot loop with {word}",
            word=self.word,
            hint="write it in the kernel's own body; in the helper, a Python range is unrolled",
        )


def Kernel(
    *blocks: Whole,
    threads: int | tuple[int, ...] | None = None,
    prelude: str | None = None,
    cluster_dims: int | tuple[int, ...] | None = None,
) -> KernelSpec:
    """Launch a grid of thread blocks: `with T.Kernel(gx, gy, threads=128) as (bx, by):`.

    `blocks` are up to 3 counts, x first, which may be made of names of `T.dynamic` and scalar parameters;
    the names are the block's indices (int32). Without any it is one block. `threads` is the number of
    threads of a block, or up to three with x first, of which `T.get_thread_binding(1)` is the number along
    y; without it the schedule says, or 128. Tile operations in the body are done by all threads of the block
    together. `cluster_dims` has so many blocks along each axis run together and share what all of them read,
    as a schedule's `cluster`. Raises `ShapeError` for more than 3 counts, or one below zero, and
    `LanguageError` for what is no whole number.
    """
    builder = in_trace("T.Kernel")
    if len(blocks) > 3:
        raise ShapeError(
            "T.Kernel takes at most 3 grid dimensions",
            count=len(blocks),
            found="{count}",
            hint="fold the others into one",
        )
    add_source(prelude, "T.Kernel(prelude=)")
    # Without a grid it is one block.
    counted = enumerate(blocks or (1,))
    grid = tuple(size_of(each, "T.Kernel", f"grid dimension {axis}") for axis, each in counted)
    given = threads if isinstance(threads, (tuple, list)) else () if threads is None else (threads,)
    counts = [positive(count, "T.Kernel", "the number of threads") for count in given]
    if len(counts) > 3:
        raise ShapeError("T.Kernel takes 1 to 3 dimensions of threads", count=len(counts), found="{count}")
    if cluster_dims is not None:
        builder.launch_hints["cluster"] = _cluster(cluster_dims)
    builder.blocks.append(BlockThreads(tuple(counts)))
    return KernelSpec(grid, math.prod(counts) if counts else None, here())


def _cluster(given: int | tuple[int, ...]) -> tuple[int, ...]:
    dims = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    counts = tuple(positive(count, "T.Kernel", "the number of blocks of a cluster") for count in dims)
    if len(counts) > 3:
        raise ShapeError("a cluster has 1 to 3 dimensions", count=len(counts), found="{count}")
    return counts


def _index(given: object, word: str, what: str) -> Expr:
    expr = expr_of(given)
    if not expr.dtype.is_integer:
        raise LanguageError(
            "{what} of {word} must be an integer, found {dtype}",
            what=what,
            word=word,
            dtype=expr.dtype,
            hint="count in whole numbers, n // 16 or T.ceildiv(n, 16) for n / 16, and compute the rest in "
            "the body: x = i * 0.5",
        )
    return convert(expr, int32)


def _bounds(word: str, start: object, stop: object | None, step: object | None) -> tuple[Expr, Expr, Expr]:
    """Start, stop and step from arguments in the manner of `range`."""
    if stop is None:
        start, stop = 0, start
    first, last = _index(start, word, "the start"), _index(stop, word, "the stop")
    return first, last, Const(1) if step is None else _index(step, word, "the step")


def _is_empty(first: Expr, last: Expr) -> bool:
    """Whether a loop that counts up from `first` is known to end before it starts."""
    return isinstance(first, Const) and isinstance(last, Const) and last.value <= first.value


def _stepped(word: str, cls: type[Serial | Unroll], bounds: tuple[Expr, Expr, Expr]) -> LoopSpec:
    """A loop of one variable; one that does not count up by a constant is one over its iterations."""
    first, last, by = bounds
    if counts_up(by, word):
        return LoopSpec(
            word, "serial", 1, lambda vars, body: cls(last, vars, body, start=first, step=by),
            empty=_is_empty(first, last),
        )  # fmt: skip
    return LoopSpec(word, "serial", 1, by_count(word, first, last, by, cls))


def serial(
    start: Whole,
    stop: Whole | None = None,
    step: Whole | None = None,
    *,
    annotations: Any = None,
) -> LoopSpec:
    """Iterations in order, as `range`: `for i in T.serial(stop)`, `T.serial(start, stop, step)`.

    Start, stop and step are integers; the variable is int32. The step may be negative, or come from a
    tensor: one that turns out to be 0 gives no iteration. Raises `LanguageError` for a bound that is no
    integer, `ShapeError` for a step of 0.
    """
    inside_kernel("T.serial")
    note_unused("T.serial", annotations=annotations)
    return _stepped("T.serial", Serial, _bounds("T.serial", start, stop, step))


def unroll(
    start: Whole,
    stop: Whole | None = None,
    step: Whole | None = None,
    *,
    explicit: bool = False,
    unroll_factor: int | None = None,
    annotations: Any = None,
) -> LoopSpec:
    """As `T.serial`, and the target writes the iterations out, `unroll_factor` of them in a row if given.

    `explicit` asks for what is done anyway. Raises what `T.serial` does.
    """
    inside_kernel("T.unroll")
    note_unused("T.unroll", annotations=annotations)
    spec = _stepped("T.unroll", Unroll, _bounds("T.unroll", start, stop, step))
    if unroll_factor is None:
        return spec
    factor = positive(unroll_factor, "T.unroll", "unroll_factor")

    def build(vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> LoopStmt:
        return spec.build(vars, body).but(factor=factor)

    return replace(spec, build=build)


def vectorized(start: Whole, stop: Whole | None = None, *, annotations: Any = None) -> LoopSpec:
    """Iterations that do not depend on each other, as one vector of a thread: `T.vectorized(8)`.

    From `start` to `stop`, whose distance is a constant; 0 gives none. Raises `ShapeError` for a distance
    that is none, or below zero.
    """
    word = "T.vectorized"
    builder = inside_kernel(word)
    note_unused(word, annotations=annotations)
    if stop is None:
        start, stop = 0, start
    first, last, _ = _bounds(word, start, stop, None)
    distance = linear(last - first)
    if distance.terms:
        raise ShapeError(
            "the extent of T.vectorized is not a number known at compile time", text=show(last - first),
            found="{text}", hint="T.serial has any extent",
        )  # fmt: skip
    n = at_least(0, distance.constant, word, "the extent")

    def build(vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> LoopStmt:
        if first == ZERO:
            return Vectorized(n, vars, body)
        lane = Var(builder.unique(f"{vars[0].name}_lane"), place=vars[0].place)
        return Vectorized(n, (lane,), (Let(vars[0], first + lane, place=builder.place), *body))

    return LoopSpec(word, "serial", 1, build, n == 0, ordered=False)


def Parallel(
    *extents: Whole,
    coalesced_width: int | None = None,
    loop_layout: Any = None,
    prefer_async: bool | None = None,
    annotations: Any = None,
) -> LoopSpec:
    """Every index once a block, in no order: `for i, j in T.Parallel(m, n)`.

    The body works on elements; the iterations are spread over the threads of the block. Elements of
    buffers outside their extents read as zero and are not written. An extent may be a value of the running
    kernel, read once. One loop directly inside another is one over the indices of both, where all extents
    are constants. `coalesced_width` caps the vector width, in elements, and `loop_layout` (a `T.Fragment` of
    the loop's extents) says which thread does what; the other options choose nothing here, which a remark
    tells. Raises `ShapeError` for no extent, or a constant one below zero, `LayoutError` for a mapping of
    other extents.
    """
    builder = enter_parallel("T.Parallel")
    note_unused("T.Parallel", prefer_async=prefer_async, annotations=annotations)
    width = None if coalesced_width is None else positive(coalesced_width, "T.Parallel", "coalesced_width")
    if not extents:
        raise ShapeError("T.Parallel needs at least one extent")
    sizes = [_extent_of(each, axis) for axis, each in enumerate(extents)]
    constant = tuple(size for size in sizes if isinstance(size, int))
    moving = len(constant) < len(sizes)
    if moving and loop_layout is not None:
        raise LanguageError("a loop_layout is of constant extents, and one of these is not")
    tiles = swept(builder, sizes, width) if moving else None
    layout = None if moving else loop_map(loop_layout, constant, "T.Parallel")

    def build(vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> LoopStmt:
        return merged(constant, vars, body, layout, width) if tiles is None else tiles(vars, body)

    return LoopSpec("T.Parallel", "parallel", len(sizes), build, 0 in constant, ordered=False)


def _extent_of(given: object, axis: int) -> int | Expr:
    """An extent of T.Parallel: a number, or a value of the running kernel."""
    if not isinstance(given, Value):
        return at_least(0, given, "T.Parallel", f"extent {axis}")
    expr = _index(given, "T.Parallel", f"extent {axis}")
    return at_least(0, expr.value, "T.Parallel", f"extent {axis}") if isinstance(expr, Const) else expr


def Pipelined(
    start: Whole,
    stop: Whole | None = None,
    num_stages: int | None = None,
    order: Sequence[int] | None = None,
    stage: Sequence[int] | None = None,
    sync: Any = None,
    group: Any = None,
    annotations: Any = None,
) -> LoopSpec:
    """A serial loop whose copies may run ahead: `for k in T.Pipelined(stop, num_stages=3)`.

    The meaning is that of `T.serial`. `num_stages` counts the versions of the shared tiles in
    flight; 0 and 1 mean no overlap, and without it the schedule says, or 0. `stage` and `order` give each
    statement of the body a stage and a place in a step: with `d` stages before the last it runs for the
    iteration `d` later, and shared tiles have as many versions as that takes. The other options choose
    nothing here, which a remark tells. Raises `ShapeError` for stages below zero, `ScheduleError` for stages
    and orders that cannot be had: what keeps its value from one iteration to the next has one stage.
    """
    for_tiles("T.Pipelined")
    # Empty lists say nothing, as in TileLang.
    note_unused("T.Pipelined", sync=sync or None, group=group or None, annotations=annotations or None)
    own_stage, own_order = whole_numbers(stage, "stage"), whole_numbers(order, "order")
    stages = None if num_stages is None else whole_number(num_stages, "T.Pipelined", "num_stages")
    if stages is not None and stages < 0:
        raise ShapeError(
            "num_stages of T.Pipelined is {n}",
            n=stages,
            expected="0 (no overlap) or the number of tiles in flight",
        )
    first, last, _ = _bounds("T.Pipelined", start, stop, None)

    def build(vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> LoopStmt:
        depth = stages
        if own_stage is not None or own_order is not None:
            body, own_depth = staged(body, own_stage, own_order)
            depth = own_depth if stages is None else stages
        node = PipelinedStmt(last, vars, body, start=first)
        return node if depth is None else node.but(num_stages=depth)

    return LoopSpec("T.Pipelined", "pipelined", 1, build, empty=_is_empty(first, last))


def grid(*extents: Whole) -> LoopSpec:
    """A nest of serial loops: `for i, j in T.grid(m, n)`; the last index runs fastest.

    Extents are integers, constants or not. Raises `ShapeError` for none, or a constant below zero.
    """
    inside_kernel("T.grid")
    if not extents:
        raise ShapeError("T.grid needs at least one extent")
    stops = [_index(each, "T.grid", f"extent {axis}") for axis, each in enumerate(extents)]
    for axis, stop in enumerate(stops):
        if isinstance(stop, Const):
            at_least(0, stop.value, "T.grid", f"extent {axis}")

    def build(vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> LoopStmt:
        place = here()
        for stop, var in zip(reversed(stops), reversed(vars), strict=True):
            body = (Serial(stop, (var,), body, place=place),)
        nest = body[0]
        assert isinstance(nest, Serial)
        return nest

    return LoopSpec("T.grid", "serial", len(stops), build)


def use_swizzle(panel_size: int, order: str = "row", enable: bool = True) -> None:
    """Run the blocks in panels of `panel_size` along `order` (`row` or `column`), for the cache.

    A permutation of the blocks: results do not change. `enable=False` leaves the usual order. Raises
    `OptionError` for another `order`.
    """
    builder = inside_kernel("T.use_swizzle")
    size = positive(panel_size, "T.use_swizzle", "panel_size")
    if order not in ("row", "column"):
        close = nearest(order, ["row", "column"])
        raise OptionError(
            "T.use_swizzle has no order {order!r}",
            order=order,
            expected="'row' or 'column'",
            hint=f"did you mean {close[0]!r}?" if close else "",
        )
    builder.order = Panels(size, order) if enable else ROW_BY_ROW
