"""Statements of one element or of one thread: each access on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import IRError
from ...ir import Const, Expr, If, Let, Stmt, Store, Var, While, WordStmt, all_of, substitute
from ...language.addresses import TensorAt
from ...language.extern import ExternCall
from ...language.memory import AllocLocal, AllocVar
from ...language.structure import Serial, Unroll, Vectorized
from .addresses import flat_local, lower_access, lower_expr
from .emitter import Emitter
from .pointers import lowered_call
from .tiles import Coordinates
from .vector import fold_condition
from .vectorized import WideMove, moved, one_by_one, wide_moves


def lower_body(emitter: Emitter, body: tuple[Stmt, ...], element: Coordinates) -> list[Stmt]:
    """Statements of one element or of one thread."""
    lowered: list[Stmt] = []
    for statement in body:
        lowered += lower_one(emitter, statement, element)
    return lowered


def lower_one(emitter: Emitter, statement: Stmt, element: Coordinates) -> list[Stmt]:
    """One scalar statement; lets for addresses come before it. Raises `IRError` for what is none."""
    lowered: list[Stmt] = []

    def value(expr: Expr) -> Expr:
        return lower_expr(emitter, expr, element, lowered)

    match statement:
        case Let():
            lowered.append(emitter.let(statement.var, value(statement.value)).at(statement.place))
        case Store():
            buffer, index = lower_access(emitter, statement, element, lowered, value)
            new = value(statement.value)
            lowered.append(statement.but(buffer=buffer, index=index, value=new, version=None))
        case ExternCall():
            lowered.append(lowered_call(emitter, statement, value, lowered))
        case If():
            lowered += _branch(emitter, statement, element)
        case Serial() | Unroll():
            lowered.append(
                counted_loop(emitter, statement, value, lambda body: lower_body(emitter, body, element))
            )
        case While():
            with emitter.scope():
                lowered.append(
                    statement.but(
                        condition=condition_of(statement, value),
                        body=tuple(lower_body(emitter, statement.body, element)),
                    )
                )
        case Vectorized():
            lowered += _vectorized(emitter, statement, element)
        case TensorAt():
            lowered.append(statement.but(address=value(statement.address)))
        case AllocVar():
            lowered.append(statement if statement.init is None else statement.but(init=value(statement.init)))
        case AllocLocal():
            lowered.append(statement.but(buffer=flat_local(statement.buffer)))
        case _:
            word = statement.spelling() if isinstance(statement, WordStmt) else type(statement).__name__
            raise IRError("T.{word} cannot stand inside T.Parallel", at=statement.place, word=word)
    return lowered


def _branch(emitter: Emitter, statement: If, element: Coordinates) -> list[Stmt]:
    condition = fold_condition(emitter, statement.condition, element)
    if condition == all_of([]):
        return lower_body(emitter, statement.then, element)
    before: list[Stmt] = []
    test = lower_expr(emitter, condition, element, before)
    with emitter.scope():
        then = lower_body(emitter, statement.then, element)
    with emitter.scope():
        orelse = lower_body(emitter, statement.orelse, element)
    return [*before, If(test, tuple(then), tuple(orelse), place=statement.place)]


def _vectorized(emitter: Emitter, loop: Vectorized, element: Coordinates) -> list[Stmt]:
    """The turns of one thread: moves of neighbours as wide accesses, the others written out."""
    parts = wide_moves(emitter, loop, element)
    if parts is None:
        return lower_one(emitter, written_out(loop), element)
    lowered: list[Stmt] = []
    for part in parts:
        if isinstance(part, WideMove):
            lowered += moved(emitter, loop, part, element)
        else:
            lowered += lower_one(emitter, written_out(one_by_one(loop, part)), element)
    return lowered


def written_out(loop: Vectorized) -> Unroll:
    """The iterations of one thread one after the other: accesses of theirs are not joined to a vector."""
    return Unroll(Const(loop.extent), loop.vars, loop.body, place=loop.place)


def condition_of(loop: Serial | Unroll | While, value: Callable[[Expr], Expr]) -> Expr | None:
    """What a loop goes on by. It reads scalars of the thread alone, so that nothing is computed before it."""
    return None if loop.condition is None else value(loop.condition)


def counted_loop(
    emitter: Emitter,
    loop: Serial | Unroll,
    value: Callable[[Expr], Expr],
    lower: Callable[[tuple[Stmt, ...]], Sequence[Stmt]],
) -> Stmt:
    """A loop of the user's, with its bounds lowered and its variable's range known to the body."""
    start, stop, step = value(loop.start), value(loop.stop), value(loop.step)
    with emitter.scope():
        variable, body = bound_coordinate(emitter, loop.vars[0], loop.body)
        emitter.facts = emitter.facts.with_loop(variable, start, stop, step)
        return loop.but(
            start=start, stop=stop, step=step, vars=(variable,), body=tuple(lower(body)),
            condition=condition_of(loop, value),
        )  # fmt: skip


def bound_coordinate(emitter: Emitter, variable: Var, body: tuple[Stmt, ...]) -> tuple[Var, tuple[Stmt, ...]]:
    """A variable of the kernel's, under another name with its body where that one is still bound."""
    name = emitter.coordinate(variable.name)
    if name == variable.name:
        return variable, body
    renamed = Var(name, type=variable.type)
    return renamed, tuple(substitute(statement, {variable.name: renamed}) for statement in body)
