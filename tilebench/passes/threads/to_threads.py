"""From tile statements to the code of one thread: `pipelined` -> `threaded`."""

from __future__ import annotations

from ...errors import IRError, LayoutError, ResourceError
from ...ir import AllocStmt, Arith, Buffer, Call, Const, Expr, Function, If, Let, Stmt, Store, Var
from ...ir.dtypes import int32
from ...language.copy import Copy, Fill
from ...language.gemm import Gemm
from ...language.lowered.threads import SyncThreads, SyncWarp
from ...language.memory import AllocFragment, AllocLocal, AllocShared
from ...language.reduce import Reduce
from ...language.structure import KernelLaunch, Parallel, Pipelined, Serial, Unroll
from ...layout import SharedLayout
from ..context import Context
from ..launches import launch_of
from ..names import names_of
from .access import lower_expr
from .copy import copy_loops, fill_loops
from .env import NOWHERE, Env, FragmentTile, SharedTile, missing_map, placed
from .gemm import gemm_loops
from .loops import element_loops, lower_one, serial_loop
from .reduce import reduce_loops
from .vector import fold_condition


def to_threads(function: Function, context: Context) -> Function:
    """`T.copy(A[...], A_s, map=...)` -> loops, vector loads and stores, registers, tests of one thread."""
    launch = launch_of(function)
    machine = context.machine
    if launch.threads > machine.max_threads:
        raise ResourceError(
            "a block of {threads} threads is more than {machine} has", at=launch.place,
            threads=launch.threads, machine=machine.name, most=machine.max_threads, expected="at most {most}",
        )  # fmt: skip
    names = names_of(function)
    env = Env(machine, launch.threads, names, Var("tid"))
    env.tid = Var(env.name("tid"))
    env.ranges[env.tid.name] = (0, launch.threads - 1)
    for var, extent in zip(launch.vars, launch.grid, strict=False):
        env.ranges[var.name] = (0, extent - 1)
    order, variables = _order(env, launch)
    body = lower_block(env, launch.body)
    head: list[Stmt] = [Let(env.tid, Call("thread_id", (), type=int32)), *env.prologue, *order]
    made = launch.but(body=(*placed(head, launch), *body), vars=variables, order=None)
    return function.but(body=tuple(made if each is launch else each for each in function.body))


def _order(env: Env, launch: KernelLaunch) -> tuple[list[Stmt], tuple[Var, ...]]:
    """The rasterisation: panels of `size` rows (or columns) of blocks, swept in a snake."""
    if launch.order is None or len(launch.vars) < 2:
        return [], launch.vars
    by_row = launch.order.axis == "row"
    sweep, stack = (0, 1) if by_row else (1, 0)
    along, across = launch.grid[sweep], launch.grid[stack]
    size = min(launch.order.size, across)
    raw = tuple(Var(env.fresh(f"block_{'xyz'[k]}")) for k in (0, 1))
    for var, extent in zip(raw, launch.grid, strict=False):
        env.ranges[var.name] = (0, extent - 1)
    number, panel, rest = (Var(env.fresh(each)) for each in ("block", "panel", "block_in_panel"))
    height: Expr = Const(size)
    if across % size:
        height = Call("min", (Const(size), Const(across) - panel * size), type=int32)
    step = Var(env.fresh("sweep"))
    odd = (panel % 2).compare("==", 0)
    turned = Call("if_then_else", (odd, step, Const(along - 1) - step), type=int32)
    lets = [
        (number, raw[1] * launch.grid[0] + raw[0], launch.grid[0] * launch.grid[1] - 1),
        (panel, number // (size * along), -(-across // size) - 1),
        (rest, number % (size * along), size * along - 1),
        (step, Arith("//", (rest, height)), along - 1),
        (launch.vars[sweep], turned, along - 1),
        (launch.vars[stack], panel * size + Arith("%", (rest, height)), across - 1),
    ]
    out: list[Stmt] = []
    for var, value, most in lets:
        out.append(Let(var, value))
        env.ranges[var.name] = (0, most)
    return out, (*raw, *launch.vars[2:])


def lower_block(env: Env, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of a block, each in the code of one thread, places kept."""
    out: list[Stmt] = []
    for each in body:
        out += placed(_lower(env, each), each)
    return tuple(out)


def _lower(env: Env, stmt: Stmt) -> list[Stmt]:
    out: list[Stmt] = []

    def value(expr: Expr) -> Expr:
        return lower_expr(env, expr, NOWHERE, out)

    match stmt:
        case AllocShared() | AllocFragment():
            return [_allocate(env, stmt)]
        case Copy():
            return copy_loops(env, stmt)
        case Fill():
            return fill_loops(env, stmt)
        case Parallel():
            if stmt.map is None:
                raise missing_map(stmt, "Parallel")
            return element_loops(env, stmt, stmt.map, stmt.vars, stmt.body, stmt.vector)
        case Gemm():
            return gemm_loops(env, stmt)
        case Reduce():
            return reduce_loops(env, stmt)
        case If():
            condition = fold_condition(env, stmt.condition)
            made = value(condition)
            then, orelse = lower_block(env, stmt.then), lower_block(env, stmt.orelse)
            return [*out, If(made, then, orelse)]
        case Serial() | Unroll():
            loop = serial_loop(env, stmt, value, lambda: lower_block(env, stmt.body))
            return [*out, loop]
        case Store() if stmt.buffer.scope in ("global", "shared"):
            # A store of the block, not of an element: one thread does it.
            made_store = lower_one(env, stmt, NOWHERE)
            return [*made_store[:-1], If(env.tid.compare("==", 0), (made_store[-1],), ())]
        case SyncThreads() | SyncWarp():
            return [stmt]
        case Pipelined():
            raise IRError("T.Pipelined is still there in stage pipelined", at=stmt.place)
        case _:
            return lower_one(env, stmt, NOWHERE)


def _allocate(env: Env, stmt: AllocStmt) -> Stmt:
    """Shared buffers become flat, fragments the registers of a thread."""
    buffer = stmt.buffer
    if isinstance(stmt, AllocFragment):
        if stmt.layout is None:
            raise LayoutError("the fragment {name} has no layout", at=stmt.place, name=buffer.name)
        local = Buffer(buffer.name, (stmt.layout.values,), buffer.dtype, "local")
        env.fragments[buffer.name] = FragmentTile(local, stmt.layout)
        return AllocLocal(local, place=stmt.place)
    assert isinstance(stmt, AllocShared)
    layout = stmt.layout or SharedLayout.rows(buffer.shape, buffer.dtype.per_byte)
    if len(layout.extents) != buffer.rank or any(
        held < extent for held, extent in zip(layout.extents, buffer.shape, strict=True)
    ):
        raise LayoutError(
            "{name} of extents {shape} has a layout of {extents}", at=stmt.place, name=buffer.name,
            shape=buffer.shape, extents=layout.extents, expected="a layout of all its elements",
        )  # fmt: skip
    flat = Buffer(buffer.name, (layout.cosize * stmt.versions,), buffer.dtype, "shared")
    env.shared[buffer.name] = SharedTile(flat, layout)
    return AllocShared(flat, offset=stmt.offset, place=stmt.place)
