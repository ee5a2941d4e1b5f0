"""The `loops` stage as one LLVM function: statements, loops, stores. Expressions are in `render_expr`.

The function has the form that the pool calls: it runs blocks begin..end-1 of the grid, polls the
cancel word at each block and on the back edges of long loops, and keeps its tiles in the worker's
scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import TargetError
from ...ir import AllocStmt, Arith, Expr, Function, If, Let, Load, LoopStmt, Stmt, Store, Var, const_of, walk
from ...ir.arith import bounds
from ...language.loops import AllocScratch, Fold, MicroGemm, Prefetch, Vectors
from ...language.memory import AllocVar
from ...language.structure import KernelLaunch, Serial, Unroll
from .convert import STORAGE, narrow
from .divide import prepare
from .llvm import Module, Value, bytes_of, const, element_of, i64, lanes_of, mangle, vector
from .machine import Isa
from .plan_buffers import reads_var, sure_loads
from .render_expr import Expressions
from .render_state import Address, Lanes, State
from .vector import whole_steps

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
        each.offset + each.layout.elements * each.buffer.dtype.bytes
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
        self.streaming = False

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
                self.vectors(at)
                self.state.fixed.clear()
                self.state.divisors.clear()
            case MicroGemm():
                from .render_gemm import render_gemm

                render_gemm(self, at)
            case Fold():
                from .render_fold import render_fold

                render_fold(self, at)
            case Prefetch():
                self.prefetch(at)
            case _:
                self.plain(at)

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

    def vectors(self, at: Vectors) -> None:
        """Whole vectors, `unroll` of them a turn; then what is left, one masked vector a turn."""
        f, lanes = self.f, at.lanes
        begin, end = self.expr.index(at.start), self.expr.index(at.stop)
        self.state.ranges[at.vars[0].name] = (
            bounds(at.start, self.state.ranges)[0],
            bounds(at.stop, self.state.ranges)[1] - 1,
        )
        if lanes == 1:
            with f.loop(begin, end) as turn:
                self.vector_turn(at, Lanes(at.vars[0].name, turn.index, 1), None)
            return
        self.before(at)
        whole = begin.integer == 0
        if at.streaming:
            begin, whole = self.to_a_line(at, begin, end), False
        length = f.sub(end, begin)
        step = lanes * at.unroll
        if at.overrun and (length.integer or 1) % step:
            step = lanes
        stop = end if at.overrun else f.add(begin, whole_steps(f, length, step))
        with f.loop(begin, stop, step) as turn:
            self.streaming = at.streaming
            for ahead in range(0, step, lanes):
                self.vector_turn(
                    at, Lanes(at.vars[0].name, turn.index, lanes, ahead, step if whole else 1), None
                )
            self.streaming = False
        if at.overrun or (length.integer is not None and length.integer % step == 0):
            return
        with f.loop(stop, end, lanes) as turn:
            mask = f.lane_mask(f.sub(end, turn.index), lanes)
            self.vector_turn(at, Lanes(at.vars[0].name, turn.index, lanes, 0, lanes if whole else 1), mask)

    def before(self, at: Vectors) -> None:
        """Elements that are the same in all turns are loaded once, in front of the loop."""
        state = self.state
        written = {each.buffer.name for each in walk(at) if isinstance(each, Store)}
        written |= {each.dst.buffer.name for each in walk(at) if isinstance(each, Fold)}
        inner = {at.vars[0].name} | {
            v.name for each in walk(at) if isinstance(each, LoopStmt) for v in each.vars
        }
        inner |= {each.var.name for each in walk(at) if isinstance(each, Let)}
        for each in at.body:
            if not isinstance(each, Store):
                continue
            for load in sure_loads(each.value):
                if load.buffer.scope != "scratch" or load.buffer.name in written or reads_var(load, inner):
                    continue
                key = (load.buffer.name, load.index)
                if key not in state.fixed:
                    state.fixed[key] = state.f.splat(self.expr.load(load), at.lanes)
            self.divisors(each.value, at.lanes)

    def divisors(self, expr: Expr, lanes: int) -> None:
        """Reciprocals of what is in `fixed` and divides float vectors."""
        state, f = self.state, self.f
        if "fma" not in f.isa.has or lanes < 4:
            return
        for each in walk(expr):
            right = each.args[-1] if isinstance(each, Arith) and each.op == "/" else None
            if not isinstance(right, Load) or (right.buffer.name, right.index) not in state.fixed:
                continue
            held = state.fixed[(right.buffer.name, right.index)]
            if element_of(held.type) == "float" and held.name not in state.divisors:
                state.divisors[held.name] = prepare(f, f.extract(held, 0), lanes)

    def to_a_line(self, at: Vectors, begin: Value, end: Value) -> Value:
        """One masked turn up to where the stores are aligned; the index from which they are."""
        f = self.f
        store = next(each for each in at.body if isinstance(each, Store) and each.buffer.scope == "global")
        outer = self.state.lanes
        self.state.lanes = Lanes(at.vars[0].name, begin, at.lanes)
        where = self.state.address(store.buffer, store.index, self.expr.index, self.expr.value)
        pointer = self.state.pointer(where, store.buffer.dtype.name)
        self.state.lanes = outer
        size = store.buffer.dtype.bytes
        address = f.cast("ptrtoint", pointer, "i64")
        past = f.binary("udiv", f.binary("and", f.sub(0, address), at.lanes * size - 1), size)
        stop = f.imin(f.add(begin, past), end)
        with f.loop(begin, stop, at.lanes) as turn:
            mask = f.lane_mask(f.sub(stop, turn.index), at.lanes)
            self.vector_turn(at, Lanes(at.vars[0].name, turn.index, at.lanes), mask)
        return stop

    def vector_turn(self, at: Vectors, lanes: Lanes, mask: Value | None) -> None:
        state = self.state
        outer = (state.lanes, state.mask, state.lazy, set(state.varying))
        state.lanes, state.mask, state.lazy = lanes, mask, False
        state.stored.clear()
        self.body(at.body)
        state.stored.clear()
        state.lanes, state.mask, state.lazy, state.varying = outer
        self.f.origin = self.lines.get(id(at), self.f.origin)

    # -- stores
    def store(self, at: Store) -> None:
        state, f, dtype = self.state, self.f, at.buffer.dtype.name
        address = state.address(at.buffer, at.index, self.expr.index, self.expr.value)
        moved = at.value
        raw = None
        if (
            getattr(moved, "buffer", None) is not None
            and (moved.buffer.name, moved.index) not in state.stored
        ):  # type: ignore[attr-defined]
            raw = self.expr.raw(moved)  # type: ignore[arg-type]
        value = raw if raw is not None else self.expr.value(at.value, round_last=False)
        bits = raw if raw is not None else narrow(f, value, dtype)
        self.put(bits, address, dtype, streaming=self.streaming and at.buffer.scope == "global")
        for key in [key for key in state.stored if key[0] == at.buffer.name]:
            del state.stored[key]
        if raw is None and bits is value and address.varies:
            state.stored[(at.buffer.name, at.index)] = (state.wide(value), state.mask)

    def put(self, bits: Value, address: Address, dtype: str, *, streaming: bool = False) -> None:
        """Store bits where an address says, in the lanes of the mask."""
        state, f = self.state, self.f
        pointer = state.pointer(address, dtype)
        lone = state.lanes is None or state.count == 1
        if lone or (not address.varies and state.mask is None and lanes_of(bits.type) == 1):
            f.store(bits, pointer)
            return
        bits = state.wide(bits)
        mask = None if state.mask is None else state.wide(state.mask)
        if address.varies and lanes_of(pointer.type) == 1:
            if mask is None:
                f.store(bits, pointer, streaming=streaming)
            else:
                f.masked_store(bits, pointer, mask)
            return
        if lanes_of(pointer.type) == 1:
            pointer = f.splat(pointer, state.count)
        self.scatter(bits, pointer, mask or const(1, vector("i1", state.count)))

    def scatter(self, bits: Value, pointers: Value, mask: Value) -> None:
        """Lane by lane; where lanes meet, the last one wins."""
        symbol = f"llvm.masked.scatter.{mangle(bits.type)}.{mangle(pointers.type)}"
        self.f.module.declare(symbol, "void", [bits.type, pointers.type, mask.type])
        align = bytes_of(element_of(bits.type))
        self.f.emit(
            f"call void @{symbol}({bits.type} {bits.name}, {pointers.type} align {align} {pointers.name}, "
            f"{mask.type} {mask.name})"
        )

    def index(self, at: Expr) -> Value:
        return self.expr.index(at)
