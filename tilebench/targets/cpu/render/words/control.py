"""Serial loops and tests."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from .....errors import TargetError
from .....ir import If, LoopStmt, Stmt, While, const_of
from .....language.scopes import entered
from .....language.structure import Serial, Unroll
from ...llvm import Value, i64, lanes_of
from ..renderer import Renderer, Rendering

# Back edges of loops with at most so many turns do not poll the cancel word.
_SHORT = 64


def unroll(renderer: Renderer, statement: Unroll) -> None:
    """All turns, written out."""
    start, stop, step = const_of(statement.start), const_of(statement.stop), const_of(statement.step)
    if start is None or stop is None or not step:
        raise TargetError(
            "a loop is written out where its ends are constants, and its step is one other than 0",
            at=statement.place, hint="write it as T.serial",
        )  # fmt: skip
    renderer.state.facts = entered(statement, renderer.state.facts)
    for number in range(start, stop, step):
        # What a turn stored at an index is not what the next one finds there: the variable is another number.
        renderer.state.stored.clear()
        renderer.count(statement.vars[0], i64(number))
        renderer.body(statement.body)
    renderer.state.stored.clear()


def loop(renderer: Renderer, statement: Serial) -> None:
    """A loop with a constant step, upwards or downwards."""
    f, state, var = renderer.f, renderer.state, statement.vars[0]
    step = const_of(statement.step)
    if not step:
        raise TargetError("the step of a loop on the CPU is a constant other than 0", at=statement.place)
    start, stop = renderer.index(statement.start), renderer.index(statement.stop)
    trips = None
    if start.integer is not None and stop.integer is not None:
        trips = len(range(start.integer, stop.integer, step))
    state.facts = entered(statement, state.facts)
    state.stored.clear()
    first, last = (start, stop) if step > 0 else (i64(0), _turns_down(renderer, start, stop, step, trips))
    with _left_by(renderer, statement) as go_on, f.loop(first, last, max(step, 1)) as turn:
        go_on()
        if trips is None or trips > _SHORT:
            renderer.poll()
        renderer.count(var, turn.index if step > 0 else f.add(start, f.mul(turn.index, step)))
        renderer.body(statement.body)
        renderer.came_from(statement)
    state.stored.clear()


@contextmanager
def _left_by(renderer: Renderer, statement: LoopStmt) -> Generator[Callable[[], None]]:
    """A loop that its condition may leave: what is given writes the test at the head of a turn."""
    if statement.condition is None:
        yield lambda: None
        return
    f, behind = renderer.f, renderer.f.block()

    def go_on() -> None:
        turn = f.block()
        f.branch_if(renderer.expr.condition(statement.condition), turn, behind)
        f.open_block(turn)

    yield go_on
    f.branch(behind)
    f.open_block(behind)


def turning(renderer: Renderer, statement: While) -> None:
    """A loop that goes on while its condition holds. It polls: nobody knows how long it runs."""
    renderer.state.stored.clear()
    with _left_by(renderer, statement) as go_on, renderer.f.loop(0, i64(2**63 - 1), runs=True):
        renderer.poll()
        go_on()
        renderer.body(statement.body)
        renderer.came_from(statement)
    renderer.state.stored.clear()


def _turns_down(renderer: Renderer, start: Value, stop: Value, step: int, trips: int | None) -> Value:
    """How many turns a loop downwards has."""
    if trips is not None:
        return i64(trips)
    f = renderer.f
    return f.binary("sdiv", f.sub(f.add(start, -step - 1), stop), -step)


def branch(renderer: Renderer, statement: If) -> None:
    """Scalar conditions jump; a condition that differs between lanes becomes a mask."""
    test = renderer.expr.condition(statement.condition)
    _under(renderer, test, statement.then)
    renderer.came_from(statement)
    if statement.orelse:
        _under(renderer, renderer.expr.negate(test), statement.orelse)
        renderer.came_from(statement)


def _under(renderer: Renderer, test: Value, body: tuple[Stmt, ...]) -> None:
    """A body where a test holds."""
    state = renderer.state
    if not body or test.integer == 0:
        return
    state.stored.clear()
    if lanes_of(test.type) == 1:
        with renderer.f.when(test):
            renderer.body(body)
    else:
        with state.under(renderer.expr.both(state.mask, test)):
            renderer.body(body)
    state.stored.clear()


RENDERINGS = (
    Rendering(Serial, loop),
    Rendering(Unroll, unroll),
    Rendering(While, turning),
    Rendering(If, branch),
)
