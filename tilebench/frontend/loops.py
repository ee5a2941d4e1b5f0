"""How loops of a kernel close: `while`, and the turns that `break` and `continue` leave."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from ..ir import FALSE, TRUE, Expr, If, Load, Stmt, Store, Var, While, names_read_and_written, walk
from ..language.launch import LoopSpec
from ..language.memory import AllocVar
from ..language.tracing.builder import BodyFrame
from .exits import Exit, Exits, first_exit, flag, holds, leaves

if TYPE_CHECKING:
    from .statements import Statements

Body = tuple[Stmt, ...]


def break_(tracer: Statements, node: ast.Break) -> None:
    _leave(tracer, node, "break")


def continue_(tracer: Statements, node: ast.Continue) -> None:
    _leave(tracer, node, "continue")


def _leave(tracer: Statements, node: ast.stmt, kind: str) -> None:
    # Also before the kernel, where loops are Python's: nothing is emitted.
    tracer.builder.frames[-1].statements.append(Exit(kind, place=tracer.place(node)))


def has_left(tracer: Statements) -> bool:
    """Whether the body at hand has left its turn for certain, so that nothing behind it runs."""
    statements = tracer.builder.frames[-1].statements
    return bool(statements) and isinstance(statements[-1], Exit)


def python_turn(tracer: Statements, body: list[ast.stmt]) -> bool:
    """One turn of a loop that Python runs while it traces; True where it breaks out."""
    statements = tracer.builder.frames[-1].statements
    start = len(statements)
    tracer.statements(body)
    last = statements.pop() if has_left(tracer) else None
    if leaves(statements[start:]):
        exit_ = first_exit(statements[start:])
        raise LanguageError(
            "`{kind}` here depends on the running kernel, and Python runs this loop before: it writes every "
            "turn out",
            kind=exit_.kind if exit_ else "break", at=exit_.place if exit_ else None,
            hint="loop with T.serial(n) or T.unroll(n)",
        )  # fmt: skip
    return isinstance(last, Exit) and last.kind == "break"


def close(tracer: Statements, node: ast.For, spec: LoopSpec, variables: tuple[Var, ...], body: Body) -> None:
    """Emit a loop whose body has been traced."""
    exits = Exits(tracer.builder, body)
    loop = spec.build(variables, exits.body).at(tracer.place(node))
    if exits.going is not None and not spec.ordered:
        left = first_exit(body, "break")
        raise LanguageError(
            "`break` cannot leave {word}: its iterations run in no order",
            word=spec.word, at=left.place if left else None,
            hint="`continue` ends one iteration; T.serial runs them in order",
        )  # fmt: skip
    for statement in exits.around(loop):
        tracer.builder.emit(statement)


def while_(tracer: Statements, node: ast.While) -> None:
    """`while condition:`. A condition of the thread's scalars alone stays one; else a flag stands for it."""
    if node.orelse:
        tracer.refuse(node.orelse[0], "a loop of the language has no `else`")
    builder = tracer.builder
    if len(builder.frames) == 1:
        builder.outside("while")
    frame = BodyFrame("serial", tracer.place(node))
    builder.frames.append(frame)
    try:
        test: Any = tracer.decide(tracer.expr(node.test))
        before = tuple(frame.statements)
        frame.statements.clear()
        if test is not False:
            tracer.statements(node.body)
    finally:
        builder.frames.pop()
        tracer.scope.close(frame)
    tracer.current = node
    if test is False:
        return
    exits = Exits(builder, tuple(frame.statements))
    condition = TRUE if test is True else test.expr
    _check(tracer, node, condition, before, exits.body, ends=exits.going is not None)
    place = tracer.place(node)
    if not before and exits.going is None and _of_scalars(condition):
        builder.emit(While(condition, (), exits.body, place=place))
        return
    going = exits.going or flag(builder, "going")
    inside = exits.body
    if test is not True:
        stop = Store(going, (), FALSE, place=place)
        inside = (*before, If(condition, inside, (stop,), place=place))
    builder.emit(AllocVar(going, init=TRUE, place=place))
    builder.emit(While(holds(going), (), inside, place=place))


def _of_scalars(condition: Expr) -> bool:
    return all(part.buffer.scope == "var" for part in walk(condition) if isinstance(part, Load))


def _check(
    tracer: Statements, node: ast.While, condition: Expr, before: Body, body: Body, ends: bool
) -> None:
    """Refuse a loop that nothing ends; `before` are the statements that find the condition's values."""
    if ends:
        return
    if condition == TRUE:
        tracer.refuse(node.test, "this `while` has no end", "leave it with `break`")
    read = {part.buffer for root in (condition, *before) for part in walk(root) if isinstance(part, Load)}
    memory_of, views = tracer.builder.memory_of, tracer.builder.views
    _, names = names_read_and_written((*before, *body))
    written = {views[name].name if name in views else name for name in names}
    # What lies in global memory, others may change.
    if not any(buffer.scope == "global" or memory_of(buffer) in written for buffer in read):
        tracer.refuse(
            node.test, "nothing in this `while` changes its condition",
            "keep what changes in T.alloc_var, made before the loop, or leave it with `break`",
        )  # fmt: skip


__all__ = ["break_", "close", "continue_", "has_left", "python_turn", "while_"]
