"""The `loops` stage as one LLVM function: statements, loops, stores. Expressions are in `render_expr`.

The function has the form that the pool calls: it runs blocks begin..end-1 of the grid, polls the
cancel word at each block and on the back edges of long loops, and keeps its tiles in the worker's
scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import TargetError
from ....ir import AllocStmt, Expr, Function, If, Let, Load, Stmt, Store, Var, const_of, walk
from ....ir.arith import bounds
from ....language.memory import AllocVar
from ....language.structure import KernelLaunch, Serial, Unroll
from ..llvm import Module, Value, i64, lanes_of
from ..llvm.lanes import combine, keep
from ..loops.words import Accumulate, AllocScratch, Fold, MicroGemm, PackTransposed, Prefetch, Vectors
from ..machine import Isa
from ..numbers.convert import COMPUTE, STORAGE, convert, is_unsigned, narrow
from .expressions import Expressions
from .fold import render_fold, sum_dtype
from .gemm import render_gemm
from .pack import render_pack
from .state import State
from .vectors import render_vectors

ENTRY = "kernel"
# Back edges of loops with at most so many turns do not poll the cancel word.
_SHORT = 64
_UNROLLED = 8


class Rendered:
    """The LLVM text, the loops line of each of its lines (0: none), scratch bytes, the grid."""

    def __init__(self, module: Module, scratch: int, grid: tuple[int, ...]) -> None:
        self.text = module.text()
        self.origins = module.line_origins()
        self.scratch = scratch
        self.grid = grid


def render_llvm(function: Function, isa: Isa, lines: dict[int, int] | None = None) -> Rendered:
    """The function in the `loops` stage as LLVM text. `lines` gives the line of a statement by `id`."""
    module = Module(isa)
    launch = next(each for each in function.body if isinstance(each, KernelLaunch))
    work = Renderer(module, lines or {})
    work.kernel(function, launch)
    return Rendered(module, scratch_bytes(function), launch.grid)


def scratch_bytes(function: Function) -> int:
    """What the tiles of a function need, in bytes, with a line of slack behind the last."""
    ends = [
        each.offset + each.buffer.dtype.bytes_of(each.layout.elements)
        for each in walk(function)
        if isinstance(each, AllocScratch) and each.layout is not None
    ]
    return -(-max(ends, default=0) // 64) * 64 + 64


class Renderer:
    """Renders the statements of one kernel."""

    def __init__(self, module: Module, lines: dict[int, int]) -> None:
        names = [("args", "ptr"), ("cancel", "ptr"), ("begin", "i64"), ("end", "i64"), ("scratch", "ptr")]
        self.f = module.function(ENTRY, names)
        self.state = State(self.f)
        self.expr = Expressions(self.state)
        self.lines = lines
        self.stopped = ""
        # The store of the open loop whose vectors are aligned and go past the caches.
        self.streamed: Store | None = None
        # The sums of the open loop over vectors, by the statement that adds to them.
        self.sums: dict[int, Value] = {}

    # -- the kernel
    def kernel(self, function: Function, launch: KernelLaunch) -> None:
        f, state = self.f, self.state
        args, self.cancel, begin, end, self.scratch = f.arguments
        for k, each in enumerate(function.params):
            state.pointers[each.name] = f.load(f.at(args, k, "i64"), "ptr")
        self.stopped = f.block()
        f.origin = self.lines.get(id(launch), 0)
        with f.loop(begin, end) as block:
            self.poll()
            rest = block.index
            for k, (var, size) in enumerate(zip(launch.vars, launch.grid, strict=True)):
                last = k == len(launch.grid) - 1
                self.count(var, rest if last else f.binary("urem", rest, size), (0, max(0, size - 1)))
                rest = rest if last else f.binary("udiv", rest, size)
            self.body(launch.body)
            f.origin = self.lines.get(id(launch), 0)
        f.ret()
        f.open_block(self.stopped)
        f.ret()

    def poll(self) -> None:
        """Leave the kernel when the cancel word is set."""
        f = self.f
        word = f.load(self.cancel, "i32", volatile=True)
        go_on = f.block()
        f.branch_if(f.compare("eq", word, 0), go_on, self.stopped)
        f.open_block(go_on)

    def count(self, var: Var, value: Value, range_: tuple[int, int]) -> None:
        self.state.values[var.name] = value
        self.state.counters.add(var.name)
        self.state.ranges[var.name] = range_

    # -- statements
    def body(self, body: Sequence[Stmt]) -> None:
        for each in body:
            self.f.origin = self.lines.get(id(each), self.f.origin)
            self.statement(each)

    def statement(self, at: Stmt) -> None:
        match at:
            case AllocScratch():
                state = self.state
                state.layouts[at.buffer.name] = at.layout  # type: ignore[assignment]
                state.pointers[at.buffer.name] = self.f.at(self.scratch, at.offset, "i8")
            case AllocVar():
                self.allocate(at)
            case Serial() | Unroll():
                self.loop(at)
            case Vectors():
                render_vectors(self, at)
            case MicroGemm():
                render_gemm(self, at)
            case Fold():
                render_fold(self, at)
            case PackTransposed():
                render_pack(self, at)
            case Prefetch():
                self.prefetch(at)
            case Accumulate():
                self.accumulate(at)
            case _:
                self.plain(at)

    def accumulate(self, at: Accumulate) -> None:
        """One more vector into the open loop's sums."""
        found = convert(self.f, self.expr.value(at.value), at.value.dtype.name, sum_dtype(at))
        old = self.sums[id(at)]
        unsigned = is_unsigned(at.dst.buffer.dtype.name)
        new = combine(self.f, at.kind, old, self.state.wide(found), unsigned=unsigned)
        mask = None if self.state.mask is None else self.state.wide(self.state.mask)
        self.sums[id(at)] = keep(self.f, mask, new, old)

    def prefetch(self, at: Prefetch) -> None:
        """To the second level, for one reading that is still some microseconds away."""
        f, buffer = self.f, at.src.buffer
        where = self.state.address(buffer, at.src.start, self.expr.index, self.expr.value)
        pointer = f.at(where.pointer, where.offset, STORAGE[buffer.dtype.name])
        f.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        f.emit(f"call void @llvm.prefetch.p0(ptr {pointer.name}, i32 0, i32 2, i32 1)")

    def plain(self, at: Stmt) -> None:
        match at:
            case Store():
                self.store(at)
            case Let():
                if self.state.varies(at.value):
                    self.state.varying.add(at.var.name)
                self.state.values[at.var.name] = self.expr.value(at.value)
                self.state.ranges[at.var.name] = bounds(at.value, self.state.ranges)
            case If():
                self.branch(at)
            case _:
                name = at.buffer.name if isinstance(at, AllocStmt) else type(at).__name__
                raise TargetError("the CPU's loops hold no such statement: {name}", name=name, at=at.place)

    def allocate(self, at: AllocVar) -> None:
        state, dtype = self.state, at.buffer.dtype.name
        state.pointers[at.buffer.name] = self.f.alloca(STORAGE[dtype], 1, 8)
        if at.init is not None:
            self.store(Store(at.buffer, (), at.init, place=at.place))

    def branch(self, at: If) -> None:
        """Scalar conditions jump; a condition that differs between lanes becomes a mask."""
        f, state = self.f, self.state
        test = self.expr.condition(at.condition)
        for body, flag in ((at.then, test), (at.orelse, self.expr.negate(test) if at.orelse else test)):
            if not body or flag.integer == 0:
                continue
            state.stored.clear()
            if lanes_of(flag.type) == 1:
                with f.when(flag):
                    self.body(body)
            else:
                mask, lazy = state.mask, state.lazy
                state.mask, state.lazy = self.expr.both(mask, flag), True
                self.body(body)
                state.mask, state.lazy = mask, lazy
            state.stored.clear()
            f.origin = self.lines.get(id(at), f.origin)

    # -- loops
    def loop(self, at: Serial | Unroll) -> None:
        f, state, var = self.f, self.state, at.vars[0]
        step = const_of(at.step)
        if not step:
            raise TargetError("the step of a loop on the CPU is a constant other than 0", at=at.place)
        range_ = self.range_of(at, step)
        start, stop = self.expr.index(at.start), self.expr.index(at.stop)
        trips = None
        if start.integer is not None and stop.integer is not None:
            trips = len(range(start.integer, stop.integer, step))
        if isinstance(at, Unroll) and trips is not None and trips <= _UNROLLED:
            for turn in range(trips):
                self.count(var, i64((start.integer or 0) + turn * step), range_)
                self.body(at.body)
            return
        if step < 0:
            turns = f.sub(f.add(start, -step - 1), stop)
            turns = i64(trips) if trips is not None else f.binary("sdiv", turns, -step)
            stop = turns
        state.stored.clear()
        with f.loop(0 if step < 0 else start, stop, max(step, 1) if step > 0 else 1) as turn:
            if trips is None or trips > _SHORT:
                self.poll()
            index = turn.index if step > 0 else f.add(start, f.mul(turn.index, step))
            self.count(var, index, range_)
            self.body(at.body)
            f.origin = self.lines.get(id(at), f.origin)
        state.stored.clear()

    def range_of(self, at: Serial | Unroll, step: int) -> tuple[int, int]:
        start, stop = bounds(at.start, self.state.ranges), bounds(at.stop, self.state.ranges)
        if step > 0:
            return start[0], max(start[0], stop[1] - 1)
        return min(start[1], stop[0] + 1), start[1]

    # -- stores
    def store(self, at: Store) -> None:
        state, f, dtype = self.state, self.f, at.buffer.dtype.name
        address = state.address(at.buffer, at.index, self.expr.index, self.expr.value)
        moved = at.value
        raw = None
        if isinstance(moved, Load) and (moved.buffer.name, moved.index) not in state.stored:
            raw = self.expr.raw(moved)
        value = raw if raw is not None else self.expr.value(at.value, round_last=False)
        bits = raw if raw is not None else narrow(f, value, dtype)
        self.expr.put(bits, address, dtype, streaming=at is self.streamed)
        for key in [key for key in state.stored if key[0] == at.buffer.name]:
            del state.stored[key]
        if STORAGE[dtype] == COMPUTE[dtype] and address.varies:
            state.stored[(at.buffer.name, at.index)] = (state.wide(bits), state.mask)

    def index(self, at: Expr) -> Value:
        return self.expr.index(at)
