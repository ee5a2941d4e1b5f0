"""Launch and loops: `T.Kernel`, `T.serial`, `T.unroll`, `T.vectorized`, `T.Parallel`, `T.Pipelined`."""

from __future__ import annotations

from ..ir import ONE, ZERO, Expr, LoopStmt, Stmt, Var, WithStmt, Word, attribute, binder, body, node, operand
from ..layout import Fragment
from .lowered.decisions import Panels, Plan


@node
class KernelLaunch(WithStmt):
    """`with T.Kernel(gx, gy, gz, threads=128) as (bx, by, bz):`. `grid` counts blocks, x first.

    `order` is the rasterisation; `shared_bytes` what the shared-memory map of `threaded` takes.
    """

    word = "Kernel"
    grid: tuple[int, ...] = attribute(star=True)
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    threads: int = attribute(default=128)
    order: Panels | None = attribute(default=None)
    shared_bytes: int = attribute(default=0)


@node
class Serial(LoopStmt):
    """`for i in T.serial(stop, start=0, step=1)`; in order."""

    word = "serial"
    stop: Expr = operand()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    start: Expr = operand(default=ZERO)
    step: Expr = operand(default=ONE)


@node
class Unroll(LoopStmt):
    """As `serial`, and the target writes the iterations out."""

    word = "unroll"
    stop: Expr = operand()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    start: Expr = operand(default=ZERO)
    step: Expr = operand(default=ONE)


@node
class Vectorized(LoopStmt):
    """`for v in T.vectorized(8)`: one vector of a thread; no iteration depends on another."""

    word = "vectorized"
    extent: int = attribute()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()


@node
class Parallel(LoopStmt):
    """`for i, j in T.Parallel(m, n)`: every index once a block, in no order.

    `map` (from `laid_out` on) says which thread does which index: its extents are `extents`.
    """

    word = "Parallel"
    extents: tuple[int, ...] = attribute(star=True)
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    map: Fragment | None = attribute(default=None)
    vector: int = attribute(default=0)


@node
class Pipelined(LoopStmt):
    """`for k in T.Pipelined(stop, num_stages=3)`: serial in meaning; copies may run ahead."""

    word = "Pipelined"
    stop: Expr = operand()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    start: Expr = operand(default=ZERO)
    num_stages: int = attribute(default=0)
    plan: Plan | None = attribute(default=None)


CLASSES = (KernelLaunch, Serial, Unroll, Vectorized, Parallel, Pipelined)
WORDS = tuple((each.word, Word(each)) for each in CLASSES)
