"""`T.vectors`: whole vectors, several a turn, then masked ones; sums of all turns; aligned streams."""

from __future__ import annotations

from .....ir import Let, LoopStmt, Store, effects_in, names_read_and_written, walk
from ...llvm import Value, bytes_of, vector
from ...llvm.lanes import neutral, reduce_lanes, whole_steps
from ...loops.buffers import reads_var, sure_loads
from ...loops.words import Accumulate, ColumnPanels, Running, Vectors
from ...numbers.convert import COMPUTE, is_unsigned, stored_bytes
from ...rows.touches import index_of
from ..renderer import Renderer, Rendering
from ..state import Lanes
from ..sums import finish, pairs, sum_dtype


def vectors(renderer: Renderer, loop: Vectors) -> None:
    """The loop: `unroll` whole vectors a turn; then what is left, one masked vector a turn."""
    state, name = renderer.state, loop.vars[0].name
    begin, end = renderer.index(loop.start), renderer.index(loop.stop)
    state.facts = state.facts.with_loop(loop.vars[0], loop.start, loop.stop)
    if loop.lanes == 1:
        with renderer.f.loop(begin, end) as turn:
            _turn(renderer, loop, Lanes(name, turn.index, 1))
        return
    _load_before(renderer, loop)
    _find_rows_before(renderer, loop)
    _Loop(renderer, loop).run(begin, end)
    state.fixed.clear()


class _Loop:
    """One loop of more than one lane, with the sums that its statements keep."""

    def __init__(self, renderer: Renderer, loop: Vectors) -> None:
        self.renderer, self.f, self.loop = renderer, renderer.f, loop
        self.folds = [statement for statement in loop.body if isinstance(statement, Accumulate)]
        # Sums side by side, for each statement that adds to one. Where memory sets the pace one does.
        self.chains = 1 if loop.streaming else loop.unroll
        self.sums = [[_start(fold, loop.lanes)] * self.chains for fold in self.folds]
        # One sum after the other, for each that is stored on its way.
        self.runs = [statement for statement in loop.body if isinstance(statement, Running)]
        self.running = [_start(run, loop.lanes) for run in self.runs]
        renderer.nothing = {
            id(run): self.in_memory(start) for run, start in zip(self.runs, self.running, strict=True)
        }

    def in_memory(self, value: Value) -> Value:
        """A constant as a value that LLVM does not know."""
        place = self.f.alloca(value.type, 1, bytes_of(value.type))
        self.f.store(value, place)
        return self.f.load(place, value.type)

    def run(self, begin: Value, end: Value) -> None:
        """All turns, then the sums into their elements."""
        f, loop, lanes = self.f, self.loop, self.loop.lanes
        from_zero = begin.integer == 0
        if loop.streaming:
            begin, from_zero = self.to_a_line(begin, end), False
        length = f.sub(end, begin)
        step = lanes * loop.unroll
        if loop.overrun and (length.integer or 1) % step:
            step = lanes
        stop = end if loop.overrun else f.add(begin, whole_steps(f, length, step))
        self.turns(begin, stop, step, step if from_zero else 1, None)
        self.renderer.streamed = None
        if not loop.overrun and (length.integer is None or length.integer % step):
            self.turns(stop, end, lanes, lanes if from_zero else 1, end)
        for fold, sums in zip(self.folds, self.sums, strict=True):
            unsigned = is_unsigned(fold.dst.buffer.dtype.name)
            total = pairs(self.renderer, fold, sums, unsigned)
            finish(self.renderer, fold, reduce_lanes(f, total, fold.kind, unsigned=unsigned))

    def turns(self, begin: Value, stop: Value, step: int, multiple: int, end: Value | None) -> None:
        """A loop of `step` elements a turn; each of its vectors has a sum of its own.

        With `end` only the lanes in front of it are inside.
        """
        renderer, loop, name = self.renderer, self.loop, self.loop.vars[0].name
        count, runs = self.chains, len(self.runs)
        carried_in = [*self.running, *(value for sums in self.sums for value in sums)]
        with self.f.loop(begin, stop, step, carried_in) as turn:
            running, rest = turn.carried[:runs], turn.carried[runs:]
            carried = [rest[k * count : (k + 1) * count] for k in range(len(self.folds))]
            left = None if end is None else self.f.sub(end, turn.index)
            inside = None if left is None else self.f.lane_mask(left, loop.lanes)
            for k, ahead in enumerate(range(0, step, loop.lanes)):
                chain = k % count
                renderer.sums = {
                    id(fold): sums[chain] for fold, sums in zip(self.folds, carried, strict=True)
                }
                renderer.sums |= {id(run): value for run, value in zip(self.runs, running, strict=True)}
                lanes = Lanes(name, turn.index, loop.lanes, ahead, multiple, left, inside)
                _turn(renderer, loop, lanes)
                for fold, sums in zip(self.folds, carried, strict=True):
                    sums[chain] = renderer.sums[id(fold)]
                running = [renderer.sums[id(run)] for run in self.runs]
            self.store_lines()
            turn.next = [*running, *(value for sums in carried for value in sums)]
        self.running, rest = turn.results[:runs], turn.results[runs:]
        self.sums = [rest[k * count : (k + 1) * count] for k in range(len(self.folds))]

    def store_lines(self) -> None:
        """A turn's stores past the caches, one right after the other: lines go out whole."""
        for bits, pointer in self.renderer.stream:
            self.f.store(bits, pointer, align=bytes_of(bits.type), streaming=True)
        self.renderer.stream.clear()

    def to_a_line(self, begin: Value, end: Value) -> Value:
        """Masked turns up to where the stores begin a line; the index from which they do."""
        f, loop, renderer, state = self.f, self.loop, self.renderer, self.renderer.state
        store = streamed(loop)
        with state.in_lanes(Lanes(loop.vars[0].name, begin, loop.lanes), None):
            where = state.address(store.buffer, store.index, renderer.expr)
            pointer = state.pointer(where, store.buffer.dtype.name)
        size = stored_bytes(store.buffer.dtype, 1)
        address = f.cast("ptrtoint", pointer, "i64")
        aligned = loop.lanes * loop.unroll * size
        past = f.binary("udiv", f.binary("and", f.sub(0, address), aligned - 1), size)
        stop = f.imin(f.add(begin, past), end)
        self.turns(begin, stop, loop.lanes, 1, stop)
        renderer.streamed = store
        return stop


def _start(fold: Accumulate | Running, lanes: int) -> Value:
    type_ = vector(COMPUTE[sum_dtype(fold)], lanes)
    return neutral(fold.kind, type_, unsigned=is_unsigned(fold.dst.buffer.dtype.name))


def streamed(loop: Vectors) -> Store:
    """The store of a streaming loop that goes past the caches: the first into an array."""
    stores = (statement for statement in loop.body if isinstance(statement, Store))
    return next(store for store in stores if store.buffer.scope == "global")


def _turn(renderer: Renderer, loop: Vectors, lanes: Lanes) -> None:
    """The body for one vector."""
    state = renderer.state
    varying = set(state.varying)
    with state.in_lanes(lanes, lanes.inside):
        state.stored.clear()
        renderer.body(loop.body)
        state.stored.clear()
    state.varying = varying
    renderer.came_from(loop)


def _load_before(renderer: Renderer, loop: Vectors) -> None:
    """Elements that are the same in all turns are loaded once, in front of the loop."""
    state, inner = renderer.state, _bound(loop)
    # A sum goes into its element behind the loop.
    _, written = names_read_and_written(each for each in loop.body if not isinstance(each, Accumulate))
    valued = [each for each in loop.body if isinstance(each, (Store, Accumulate, Running))]
    for load in (load for statement in valued for load in sure_loads(statement.value)):
        if load.buffer.scope != "scratch" or load.buffer.name in written or reads_var(load, inner):
            continue
        key = (load.buffer.name, load.index)
        if key not in state.fixed:
            state.fixed[key] = state.f.splat(renderer.expr.load(load), loop.lanes)


def _find_rows_before(renderer: Renderer, loop: Vectors) -> None:
    """Addresses of rows are found in front of the loop: in it an address is then one instruction's own part.

    LLVM leaves their arithmetic in the loop where it needs it: of softmax's 50 instructions a vector 10.
    """
    state, inner = renderer.state, _bound(loop)
    for effect in effects_in(loop):
        buffer, index = effect.buffer, index_of(effect)
        in_rows = not isinstance(state.layouts.get(buffer.name), ColumnPanels) and buffer.dtype.per_byte == 1
        if index is None or buffer.name not in state.pointers or not in_rows:
            continue
        moving = [reads_var(part, inner) for part in index]
        fixed = [part for part, moves in zip(index, moving, strict=True) if not moves]
        if any(moving) and all(state.counting(part) for part in fixed):
            state.row(buffer, index, moving, renderer.expr)


def _bound(loop: Vectors) -> set[str]:
    """The names that a loop and what is in it bind."""
    nodes = list(walk(loop))
    names = {var.name for node in nodes if isinstance(node, LoopStmt) for var in node.vars}
    return names | {node.var.name for node in nodes if isinstance(node, Let)}


RENDERINGS = (Rendering(Vectors, vectors),)
