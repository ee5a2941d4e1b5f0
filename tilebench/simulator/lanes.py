"""Running a function of stage `threaded` in NumPy: every thread of many blocks is a lane of an array.

It finds accesses outside a buffer, vectors off their alignment, reads of shared memory that nobody
wrote, two threads on one place of shared memory without a barrier between, barriers and shuffles
that not all lanes reach, and overflow of int32. What it does not model is time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir import (
    AllocStmt,
    Arith,
    Call,
    Cast,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    Stmt,
    Store,
    Var,
)
from ..ir.dtypes import boolean
from ..ir.expr import LOGIC
from ..language.lowered.threads import SyncThreads, SyncWarp, VectorLoad, VectorStore
from ..language.structure import KernelLaunch, Serial, Unroll
from .lanes_access import LaneMemory, Mask, Value
from .lanes_expr import apply, computed, convert, operate
from .lanes_memory import refuse

# Lanes run at once: enough to hide Python's cost, few enough to stay in the cache.
MOST_LANES = 16384
where: Any = np.where


def run_threaded(
    function: Function,
    arrays: Mapping[str, Any],
    blocks: Iterable[tuple[int, ...]] | None = None,
    *,
    warp: int,
) -> None:
    """Run the function on `arrays` (by parameter name, changed in place); `blocks` picks some, (x, y, z).

    `warp` is the machine's: a shuffle reaches the lanes of one warp.

    Raises `SimulationError` at the statement that does what a GPU must not, `InternalError` for a
    missing array or one of another shape or dtype.
    """
    for each in function.params:
        held = arrays.get(each.name)
        if held is None or held.shape != each.shape or held.dtype != each.dtype.numpy:
            raise InternalError(
                "the array {name} is missing or is not {what}", name=each.name, what=(each.shape, each.dtype)
            )
    launch = next(each for each in function.body if isinstance(each, KernelLaunch))
    grid = (*launch.grid, 1, 1, 1)[:3]
    chosen = list(blocks) if blocks is not None else [
        (x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])
    ]  # fmt: skip
    at_once = max(1, MOST_LANES // launch.threads)
    for start in range(0, len(chosen), at_once):
        _Lanes(launch, arrays, chosen[start : start + at_once], warp).run()


class _Lanes(LaneMemory):
    """Some blocks of one launch. A mask is an array of bools a lane, or None: all lanes are active."""

    def run(self) -> None:
        self.body(self.launch.body, None)

    # -- statements
    def body(self, body: tuple[Stmt, ...], mask: Mask) -> None:
        for each in body:
            self.statement(each, mask)

    def statement(self, stmt: Stmt, mask: Mask) -> None:
        match stmt:
            case Store():
                self.store(stmt, mask)
            case Let():
                self.values[stmt.var.name] = self.value(stmt.value, mask)
            case Serial() | Unroll():
                self.loop(stmt, mask)
            case If():
                self.branch(stmt, mask)
            case VectorLoad() | VectorStore():
                self.vector(stmt, mask)
            case SyncThreads():
                self.barrier(stmt, mask)
            case SyncWarp():
                pass
            case AllocStmt():
                self.allocate(stmt, mask)
            case _:
                raise InternalError(
                    "the simulator has no statement {name}", at=stmt.place, name=type(stmt).__name__
                )

    def loop(self, stmt: Serial | Unroll, mask: Mask) -> None:
        start, stop, step = (self.value(each, mask) for each in (stmt.start, stmt.stop, stmt.step))
        name = stmt.vars[0].name
        if all(isinstance(each, int) for each in (start, stop, step)):
            for at in range(start, stop, step):
                self.values[name] = at
                self.body(stmt.body, mask)
            return
        at: Any = self.wide(start, np.int64)
        stop, step = self.wide(stop, np.int64), self.wide(step, np.int64)
        while True:
            going = where(step > 0, at < stop, at > stop)
            if mask is not None:
                going = going & mask
            if not going.any():
                return
            self.values[name] = at
            self.body(stmt.body, None if going.all() else going)
            at = at + step

    def branch(self, stmt: If, mask: Mask) -> None:
        condition: Any = self.value(stmt.condition, mask)
        if not hasattr(condition, "ndim") or condition.ndim == 0:
            self.body(stmt.then if condition else stmt.orelse, mask)
            return
        sides: tuple[tuple[tuple[Stmt, ...], Any], ...] = ((stmt.then, condition), (stmt.orelse, ~condition))
        for body, side in sides:
            chosen = side if mask is None else side & mask
            if body and chosen.any():
                self.body(body, None if chosen.all() else chosen)

    def barrier(self, stmt: Stmt, mask: Mask) -> None:
        if mask is None:
            self.shared.barrier(slice(None))
            return
        rows = mask.reshape(self.blocks, self.threads)
        some, every = rows.any(axis=1), rows.all(axis=1)
        if (some != every).any():
            refuse("not all threads of a block reach this barrier", stmt)
        self.shared.barrier(every)

    # -- memory
    def store(self, stmt: Store, mask: Mask) -> None:
        buffer = stmt.buffer
        value = self.wide(self.value(stmt.value, mask), buffer.dtype.numpy)
        if buffer.scope in ("local", "var"):
            self.put(buffer, self.register(buffer, stmt.index, mask, stmt), value, mask)
        else:
            self.keep(stmt, buffer, stmt.index, value[None], mask)

    def vector(self, stmt: VectorLoad | VectorStore, mask: Mask) -> None:
        memory, held = (stmt.src, stmt.dst) if isinstance(stmt, VectorLoad) else (stmt.dst, stmt.src)
        count = (memory.extent or (1,))[-1]
        first = self.register(held.buffer, held.start, mask, stmt, count)
        if isinstance(stmt, VectorLoad):
            got = self.fetch(memory, memory.buffer, memory.start, count, mask)
            for k in range(count):
                self.put(held.buffer, first + k, got[k], mask)
            return
        rows = self.local[held.buffer.name]
        if isinstance(first, int):
            values = rows[first : first + count]
        else:
            values = np.stack([rows[first + k, np.arange(self.lanes)] for k in range(count)])
        self.keep(memory, memory.buffer, memory.start, values, mask)

    # -- expressions
    def value(self, expr: Expr, mask: Mask) -> Value:
        kind = type(expr)
        if kind is Var:
            return self.values[expr.name]  # type: ignore[attr-defined]
        if kind is Const:
            return self.constant(expr)  # type: ignore[arg-type]
        if isinstance(expr, Load):
            return self.load(expr, mask)
        if isinstance(expr, Arith):
            return self.arith(expr, mask)
        if isinstance(expr, Cast):
            value = self.value(expr.value, mask)
            same = (
                isinstance(value, int)
                and expr.type.is_integer
                and expr.value.dtype.is_integer
                and expr.type.bits >= 32
            )
            return value if same else convert(value, expr.value.dtype, expr.type)
        assert isinstance(expr, Call)
        return self.call(expr, mask)

    def constant(self, expr: Const) -> Value:
        if expr.type == boolean:
            return bool(expr.value)
        return (
            int(expr.value)
            if expr.type.is_integer and expr.type.bits <= 32
            else expr.type.numpy.type(expr.value)
        )

    def load(self, expr: Load, mask: Mask) -> Value:
        buffer = expr.buffer
        if buffer.scope in ("local", "var"):
            at = self.register(buffer, expr.index, mask, expr)
            held = self.local[buffer.name]
            value = held[at].copy() if isinstance(at, int) else held[at, np.arange(self.lanes)]
        else:
            value = self.fetch(expr, buffer, expr.index, 1, mask)[0]
        return value.astype(computed(buffer.dtype)) if computed(buffer.dtype) != value.dtype else value

    def arith(self, expr: Arith, mask: Mask) -> Value:
        op, args = expr.op, expr.args
        if op in LOGIC:
            return self.logic(expr, mask)
        dtype = args[0].dtype
        first = self.value(args[0], mask)
        if len(args) == 1:
            zero = np.asarray(0).astype(computed(dtype))
            return operate("-", zero, first, dtype, dtype, expr, self.data) if (
                op == "-" and not dtype.is_float
            ) else (-first if op == "-" else ~first)  # fmt: skip
        for each in args[1:]:
            first = operate(op, first, self.value(each, mask), dtype, expr.dtype, expr, self.data)
        return first

    def logic(self, expr: Arith, mask: Mask) -> Value:
        """`and` and `or` stop where the answer is known, so that a guard guards what stands behind it."""
        if expr.op == "not":
            value = self.value(expr.args[0], mask)
            return not value if isinstance(value, bool) else ~value
        stop = expr.op == "or"
        total: Value = self.value(expr.args[0], mask)
        for each in expr.args[1:]:
            if not hasattr(total, "ndim"):
                if bool(total) == stop:
                    return total
                total = self.value(each, mask)
                continue
            open_: Any = ~total if stop else total
            inner: Any = open_ if mask is None else open_ & mask
            total = total | self.value(each, inner) if stop else total & self.value(each, inner)
        return total

    def call(self, expr: Call, mask: Mask) -> Value:
        if expr.word == "thread_id":
            return self.tid
        if expr.word == "if_then_else":
            return self.select(expr, mask)
        args = [self.value(each, mask) for each in expr.args]
        if expr.word in ("shfl_xor", "shfl_down"):
            return self.shuffle(expr, args, mask)
        if all(isinstance(each, int) for each in args) and expr.word in ("min", "max"):
            return min(args) if expr.word == "min" else max(args)
        return apply(expr.word, args, expr.type, expr, self.data)

    def select(self, expr: Call, mask: Mask) -> Value:
        condition: Any = self.value(expr.args[0], mask)
        if not hasattr(condition, "ndim") or condition.ndim == 0:
            return self.value(expr.args[1 if condition else 2], mask)
        yes: Any = condition if mask is None else condition & mask
        no: Any = ~condition if mask is None else ~condition & mask
        kind = computed(expr.type)
        return where(
            condition,
            self.wide(self.value(expr.args[1], yes), kind),
            self.wide(self.value(expr.args[2], no), kind),
        )

    def shuffle(self, expr: Call, args: list[Any], mask: Mask) -> Value:
        value = self.wide(args[0], computed(expr.type))
        lane = np.arange(self.lanes) % self.warp
        base = np.arange(self.lanes) - lane
        distance = self.wide(args[1], np.int64)
        source = lane ^ distance if expr.word == "shfl_xor" else lane + distance
        source = np.where(source < self.warp, source, lane) + base
        if (
            mask is not None
            and not mask.reshape(-1, min(self.warp, self.threads))
            .all(axis=1)[np.unique(np.flatnonzero(mask) // self.warp)]
            .all()
        ):
            refuse("not all lanes of a warp take part in a shuffle", expr)
        return value[source]
