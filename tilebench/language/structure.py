"""Launch and loops: `T.Kernel`, `T.serial`, `T.unroll`, `T.vectorized`, `T.Parallel`, `T.Pipelined`."""

from __future__ import annotations

from ..errors import ShapeError
from ..ir import (
    ONE,
    ZERO,
    Expr,
    LoopStmt,
    Region,
    Stmt,
    Var,
    WithStmt,
    Word,
    attribute,
    binder,
    body,
    decision,
    node,
    operand,
    writes,
)
from ..layout import Fragment
from .lowered.decisions import Panels, Plan
from .stages import EVERY, PLANNED, TILES


@node
class KernelLaunch(WithStmt):
    """`with T.Kernel(gx, gy, gz, threads=128) as (bx, by, bz):`. `grid` counts blocks, x first.

    `threads` is None in `tile` where the kernel says nothing, and a number from `scheduled` on.
    `order` is the rasterisation, `min_blocks` how many blocks are to run on a multiprocessor at a time,
    `persistent` how many take the tiles of the grid one after another (True: as many as run at a time),
    `warp_specialize` whether threads of their own bring tiles (`passes/bounded/plan_roles.py`);
    `cluster` how many blocks along each axis run together as one (`passes/scheduled/make_clusters.py`);
    `dependent_launch` whether its blocks begin while the launch before it ends;
    `shared_bytes` what the shared-memory map of `threaded` takes, `clocks` where it leaves the times of what
    it does (`closing/clocks.py`).
    """

    word = "Kernel"
    stages = EVERY
    grid: tuple[int | Expr, ...] = attribute(star=True)
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    threads: int = decision("scheduled", default=None, early=True)
    order: Panels | None = attribute(default=None)
    min_blocks: int | None = attribute(default=None)
    persistent: bool | int | None = attribute(default=None)
    warp_specialize: bool | None = attribute(default=None)
    cluster: tuple[int, ...] | None = attribute(default=None)
    dependent_launch: bool | None = attribute(default=None)
    shared_bytes: int = attribute(default=0)
    clocks: Region | None = writes(default=None)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The grid as numbers. `ShapeError` where a count is known only at a launch."""
        for count in self.grid:
            if not isinstance(count, int):
                raise ShapeError(
                    "how many blocks run is known only when the kernel is launched", at=self.place,
                    hint="give the sizes, or the arrays that they are read from",
                )  # fmt: skip
        return self.grid  # type: ignore[return-value]


@node
class Serial(LoopStmt):
    """`for i in T.serial(stop, start=0, step=1)`; in order, and while `condition` holds.

    `split` is how many blocks are to share its iterations (`passes/scheduled/split_loops.py`). `tiles` says
    that its turns are blocks of a grid that one block takes in turn: in global memory they have no order.
    """

    word = "serial"
    stages = EVERY
    stop: Expr = operand()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    start: Expr = operand(default=ZERO)
    step: Expr = operand(default=ONE)
    condition: Expr | None = operand(default=None)
    split: int | None = attribute(default=None)
    tiles: bool = attribute(default=False)


@node
class Unroll(LoopStmt):
    """As `serial`, and the target writes the iterations out, `factor` of them in a row where it is given."""

    word = "unroll"
    stages = EVERY
    stop: Expr = operand()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    start: Expr = operand(default=ZERO)
    step: Expr = operand(default=ONE)
    condition: Expr | None = operand(default=None)
    factor: int | None = attribute(default=None)


@node
class Vectorized(LoopStmt):
    """`for v in T.vectorized(8)`: one vector of a thread; no iteration depends on another."""

    word = "vectorized"
    stages = TILES
    extent: int = attribute()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()


@node
class Parallel(LoopStmt):
    """`for i, j in T.Parallel(m, n)`: every index once a block, in no order.

    `map` (from `laid_out` on, or a kernel's own) says which thread does which index: its extents are
    `extents`. `vector` are the elements of one access to memory, neighbours along the last index, of which
    `coalesced_width` is the user's cap. With `of_threads` the indices are numbers of the block's threads, x
    last, and each is done by the thread that it names.
    """

    word = "Parallel"
    stages = TILES
    extents: tuple[int, ...] = attribute(star=True)
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    map: Fragment | None = decision("laid_out", default=None, early=True)
    vector: int = attribute(default=1)
    of_threads: bool = attribute(default=False)
    coalesced_width: int | None = attribute(default=None)


@node
class Pipelined(LoopStmt):
    """`for k in T.Pipelined(stop, num_stages=3)`: serial in meaning; copies may run ahead.

    `num_stages` is None in `tile` where the kernel says nothing, and a number in `scheduled`; from
    `bounded` on `plan` says what was made of it. `split` is as in `serial`; `overlap` has the first product
    of an iteration issued before the last one of that before it (`passes/pipelined/overlapped_ring.py`).
    """

    word = "Pipelined"
    stages = PLANNED
    stop: Expr = operand()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    start: Expr = operand(default=ZERO)
    condition: Expr | None = operand(default=None)
    num_stages: int = decision("scheduled", default=None, early=True, used="bounded")
    split: int | None = attribute(default=None)
    overlap: bool | None = attribute(default=None)
    plan: Plan | None = decision("bounded", default=None)


@node
class ThreadGroup(WithStmt):
    """`with T.threads(0, 128):` what is inside is done by these threads of the block alone.

    Layouts, mappings, reductions and barriers inside are made for the group: `count` threads from
    `first` on (None: all that are left), one thread or whole warps. Other threads pass it by.
    """

    word = "threads"
    stages = TILES
    first: int = attribute()
    count: int | None = attribute()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()


@node
class StageGroup(WithStmt):
    """`with T.stage(1, order=2):` what is inside has this stage of the pipelined loop around it.

    A step runs what has a stage `d` before the last for the iteration `d` later, in the order of `order`.
    """

    word = "stage"
    stages = PLANNED
    number: int = attribute()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    order: int = attribute(default=0)


CLASSES = (KernelLaunch, ThreadGroup, StageGroup, Serial, Unroll, Vectorized, Parallel, Pipelined)
WORDS = tuple((each.word, Word(each)) for each in CLASSES)
