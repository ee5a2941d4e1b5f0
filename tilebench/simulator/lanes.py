"""Running a function of stage `threaded` in NumPy: every thread of many blocks is a lane of an array.

It finds accesses outside a buffer, vectors off their alignment, reads of shared memory that nobody
wrote, two threads on one place of shared memory without a barrier between, barriers and shuffles
that not all lanes reach, and overflow of int32. What it does not model is time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir import AllocStmt, Arith, Buffer, Call, Cast, Const, Expr, Function, If, Let, Load, Region, Stmt, Store, Var
from ..ir.dtypes import boolean
from ..ir.expr import LOGIC
from ..language.memory import AllocLocal, AllocShared, AllocVar
from ..language.structure import KernelLaunch, Serial, Unroll
from ..language.threads import SyncThreads, SyncWarp, VectorLoad, VectorStore
from .lanes_expr import apply, computed, convert, operate
from .lanes_memory import SharedMemory, check_index, refuse

WARP = 32
# Lanes run at once: enough to hide Python's cost, few enough to stay in the cache.
MOST_LANES = 16384

Mask = Any
Value = Any


def run_threaded(
    function: Function, arrays: Mapping[str, Any], blocks: Iterable[tuple[int, ...]] | None = None
) -> None:
    """Run the function on `arrays` (by parameter name, changed in place); `blocks` picks some, (x, y, z).

    Raises `SimulationError` at the statement that does what a GPU must not, `InternalError` for a
    missing array or one of another shape or dtype.
    """
    for each in function.params:
        held = arrays.get(each.name)
        if held is None or held.shape != each.shape or held.dtype != each.dtype.numpy:
            raise InternalError("the array {name} is missing or is not {what}", name=each.name, what=(each.shape, each.dtype))
    launch = next(each for each in function.body if isinstance(each, KernelLaunch))
    grid = (*launch.grid, 1, 1, 1)[:3]
    chosen = list(blocks) if blocks is not None else [
        (x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])
    ]  # fmt: skip
    at_once = max(1, MOST_LANES // launch.threads)
    for start in range(0, len(chosen), at_once):
        _Lanes(launch, arrays, chosen[start : start + at_once]).run()


def _cell_bytes(launch: KernelLaunch) -> int:
    from ..ir import walk

    sizes = [each.buffer.dtype.bytes for each in walk(launch) if isinstance(each, AllocShared)]
    return min(sizes, default=4)


class _Lanes:
    """Some blocks of one launch. A mask is an array of bools a lane, or None: all lanes are active."""

    def __init__(self, launch: KernelLaunch, arrays: Mapping[str, Any], blocks: list[tuple[int, ...]]) -> None:
        self.launch, self.arrays = launch, arrays
        self.threads, self.blocks = launch.threads, len(blocks)
        self.lanes = self.threads * self.blocks
        self.tid = np.tile(np.arange(self.threads, dtype=np.int64), self.blocks)
        self.block = np.repeat(np.arange(self.blocks, dtype=np.int64), self.threads)
        self.values: dict[str, Value] = {}
        for k, var in enumerate(launch.vars):
            place = np.array([(*each, 0, 0)[k] for each in blocks], np.int64)
            self.values[var.name] = int(place[0]) if self.blocks == 1 else np.repeat(place, self.threads)
        self.local: dict[str, Any] = {}
        self.offsets: dict[str, int] = {}
        self.shared = SharedMemory(self.blocks, launch.shared_bytes, _cell_bytes(launch))
        self.code: dict[int, Callable[[Mask], Value]] = {}

    def run(self) -> None:
        self.body(self.launch.body, None)

    # -- helpers
    def active(self, mask: Mask) -> Any:
        return np.arange(self.lanes) if mask is None else np.flatnonzero(mask)

    def wide(self, value: Value, dtype: Any) -> Any:
        """A value a lane, in a NumPy type."""
        array = np.asarray(value)
        array = array if array.dtype == dtype else array.astype(dtype)
        return array if array.shape == (self.lanes,) else np.broadcast_to(array, (self.lanes,))

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
                raise InternalError("the simulator has no statement {name}", at=stmt.place, name=type(stmt).__name__)

    def allocate(self, stmt: AllocStmt, mask: Mask) -> None:
        buffer = stmt.buffer
        if isinstance(stmt, AllocShared):
            self.offsets[buffer.name] = stmt.offset or 0
        elif isinstance(stmt, AllocVar):
            first = self.value(stmt.init, mask) if stmt.init is not None else 0
            self.local[buffer.name] = np.array(self.wide(first, buffer.dtype.numpy))[None]
        elif isinstance(stmt, AllocLocal):
            poison = np.nan if buffer.dtype.is_float else 0x55 if buffer.dtype != boolean else False
            self.local[buffer.name] = np.full((buffer.size, self.lanes), poison, buffer.dtype.numpy)

    def loop(self, stmt: Serial | Unroll, mask: Mask) -> None:
        start, stop, step = (self.value(each, mask) for each in (stmt.start, stmt.stop, stmt.step))
        name = stmt.vars[0].name
        if all(isinstance(each, int) for each in (start, stop, step)):
            for at in range(start, stop, step):
                self.values[name] = at
                self.body(stmt.body, mask)
            return
        at = self.wide(start, np.int64)
        stop, step = self.wide(stop, np.int64), self.wide(step, np.int64)
        while True:
            going = np.where(step > 0, at < stop, at > stop)
            going = going if mask is None else going & mask
            if not going.any():
                return
            self.values[name] = at
            self.body(stmt.body, None if going.all() else going)
            at = at + step

    def branch(self, stmt: If, mask: Mask) -> None:
        condition = self.value(stmt.condition, mask)
        if not isinstance(condition, np.ndarray) or condition.ndim == 0:
            self.body(stmt.then if condition else stmt.orelse, mask)
            return
        for body, chosen in ((stmt.then, condition), (stmt.orelse, ~condition)):
            chosen = chosen if mask is None else chosen & mask
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
    def index(self, index: tuple[Expr, ...], mask: Mask, lanes: Any) -> list[Any]:
        """The index a dimension of the active lanes."""
        return [self.wide(self.value(each, mask), np.int64)[lanes] for each in index]

    def fetch(self, at: Load | Region, buffer: Buffer, index: tuple[Expr, ...], count: int, mask: Mask) -> Any:
        """(count, lanes) elements of global or shared memory from `index` on; zeros in idle lanes."""
        lanes = self.active(mask)
        out = np.zeros((count, self.lanes), buffer.dtype.numpy)
        if not lanes.size:
            return out
        place = self.index(index, mask, lanes)
        self.check(at, buffer, place, count)
        if buffer.scope == "shared":
            first = self.offsets[buffer.name] + place[0] * buffer.dtype.bytes
            got = self.shared.load(self.block[lanes], self.tid[lanes], first, buffer.dtype.numpy, count, at, buffer.name)
            out[:, lanes] = got.T
            return out
        array = self.arrays[buffer.name]
        for k in range(count):
            out[k, lanes] = array[tuple([*place[:-1], place[-1] + k])] if place else array[()]
        return out

    def keep(self, at: Store | Region, buffer: Buffer, index: tuple[Expr, ...], values: Any, mask: Mask) -> None:
        """Store (count, lanes) elements to global or shared memory."""
        lanes = self.active(mask)
        if not lanes.size:
            return
        place = self.index(index, mask, lanes)
        self.check(at, buffer, place, len(values))
        if buffer.scope == "shared":
            first = self.offsets[buffer.name] + place[0] * buffer.dtype.bytes
            self.shared.store(self.block[lanes], self.tid[lanes], first, values[:, lanes].T, at, buffer.name)
            return
        array = self.arrays[buffer.name]
        flat = np.ravel_multi_index(tuple(place), buffer.shape) if place else np.zeros(len(lanes), np.int64)
        if np.unique(flat).size != flat.size:
            refuse("two threads write one element of {name} in the same statement", at, name=buffer.name)
        for k in range(len(values)):
            array[tuple([*place[:-1], place[-1] + k])] = values[k, lanes]

    def check(self, at: Load | Store | Region, buffer: Buffer, place: list[Any], count: int) -> None:
        """Inside the buffer, and a vector on a multiple of its width."""
        check_index(list(zip(place, buffer.shape, strict=True)), at, buffer.name)
        if count == 1:
            return
        check_index([(place[-1] + count - 1, buffer.shape[-1])], at, buffer.name)
        first = sum(p * s for p, s in zip(place, buffer.element_strides, strict=True)) * buffer.dtype.bytes
        first = first + self.offsets.get(buffer.name, 0)
        if (np.asarray(first) % (count * buffer.dtype.bytes)).any():
            refuse("an access of {n} bytes to {name} is not aligned", at, n=count * buffer.dtype.bytes, name=buffer.name)

    def register(self, buffer: Buffer, index: tuple[Expr, ...], mask: Mask, at: Any, count: int = 1) -> Any:
        """The number of a register: an int, or one a lane. Idle lanes get 0."""
        if not index:
            return 0
        found = self.value(index[0], mask)
        if isinstance(found, int):
            check_index([(np.asarray(found), buffer.size), (np.asarray(found + count - 1), buffer.size)], at, buffer.name)
            return found
        found = self.wide(found, np.int64)
        found = found if mask is None else np.where(mask, found, 0)
        check_index([(found, buffer.size)], at, buffer.name)
        return found

    def store(self, stmt: Store, mask: Mask) -> None:
        buffer = stmt.buffer
        value = self.wide(self.value(stmt.value, mask), buffer.dtype.numpy)
        if buffer.scope in ("local", "var"):
            self.put(buffer, self.register(buffer, stmt.index, mask, stmt), value, mask)
        else:
            self.keep(stmt, buffer, stmt.index, value[None], mask)

    def put(self, buffer: Buffer, register: Any, value: Any, mask: Mask) -> None:
        held = self.local[buffer.name]
        if isinstance(register, int):
            if mask is None:
                held[register] = value
            else:
                np.copyto(held[register], value, where=mask)
            return
        lanes = self.active(mask)
        held[register[lanes], lanes] = value[lanes]

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
            same = isinstance(value, int) and expr.type.is_integer and expr.value.dtype.is_integer and expr.type.bits >= 32
            return value if same else convert(value, expr.value.dtype, expr.type)
        assert isinstance(expr, Call)
        return self.call(expr, mask)

    def constant(self, expr: Const) -> Value:
        if expr.type == boolean:
            return bool(expr.value)
        return int(expr.value) if expr.type.is_integer and expr.type.bits <= 32 else expr.type.numpy.type(expr.value)

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
            return operate("-", np.asarray(0).astype(computed(dtype)), first, dtype, dtype, expr) if (
                op == "-" and not dtype.is_float
            ) else (-first if op == "-" else ~first)  # fmt: skip
        for each in args[1:]:
            first = operate(op, first, self.value(each, mask), dtype, expr.dtype, expr)
        return first

    def logic(self, expr: Arith, mask: Mask) -> Value:
        """`and` and `or` stop where the answer is known, so that a guard guards what stands behind it."""
        if expr.op == "not":
            value = self.value(expr.args[0], mask)
            return not value if isinstance(value, bool) else ~value
        stop = expr.op == "or"
        total: Value = self.value(expr.args[0], mask)
        for each in expr.args[1:]:
            if not isinstance(total, np.ndarray):
                if bool(total) == stop:
                    return total
                total = self.value(each, mask)
                continue
            open_ = ~total if stop else total
            inner = open_ if mask is None else open_ & mask
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
        return apply(expr.word, args, expr.type, expr)

    def select(self, expr: Call, mask: Mask) -> Value:
        condition = self.value(expr.args[0], mask)
        if not isinstance(condition, np.ndarray) or condition.ndim == 0:
            return self.value(expr.args[1 if condition else 2], mask)
        yes = condition if mask is None else condition & mask
        no = ~condition if mask is None else ~condition & mask
        kind = computed(expr.type)
        return np.where(
            condition, self.wide(self.value(expr.args[1], yes), kind), self.wide(self.value(expr.args[2], no), kind)
        )

    def shuffle(self, expr: Call, args: list[Any], mask: Mask) -> Value:
        value = self.wide(args[0], computed(expr.type))
        lane = np.arange(self.lanes) % WARP
        base = np.arange(self.lanes) - lane
        distance = self.wide(args[1], np.int64)
        source = lane ^ distance if expr.word == "shfl_xor" else lane + distance
        source = np.where(source < WARP, source, lane) + base
        if mask is not None and not mask.reshape(-1, min(WARP, self.threads)).all(axis=1)[
            np.unique(np.flatnonzero(mask) // WARP)
        ].all():
            refuse("not all lanes of a warp take part in a shuffle", expr)
        return value[source]
