"""What differs from thread to thread of a block: values that decide who meets whom at a barrier."""

from __future__ import annotations

from ...ir import (
    AllocStmt,
    Call,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Node,
    OpStmt,
    Stmt,
    Store,
    Var,
    WithStmt,
    children,
    effects_of,
    walk,
)
from ...language.structure import Parallel

# Scalars and arrays that each thread has to itself. Statements of the block give all of them one value.
OWN = ("var", "local")


def divergence(expr: Node, names: set[str]) -> str | None:
    """What in an expression differs from thread to thread; None when all threads agree on it.

    `names` are the divergent ones, as `divergent_names` finds them.
    """
    for part in walk(expr):
        if isinstance(part, Call) and part.word in (
            "thread_id",
            "shfl_xor",
            "shfl_down",
            "shfl",
            "vote_ballot",
            "vote_match",
        ):
            return f"T.{part.word}"
        if isinstance(part, Var) and part.name in names:
            return part.name
        if isinstance(part, Load) and (part.buffer.scope == "fragment" or part.buffer.name in names):
            return part.buffer.name
    return None


def divergent_names(function: Function) -> set[str]:
    """Names bound to, and a thread's own memory assigned from, what differs from thread to thread."""
    names: set[str] = set()
    while _visit(function.body, False, names):
        pass
    return names


def _visit(body: tuple[Stmt, ...], under: bool, names: set[str]) -> bool:
    """Add the divergent names of a body, which runs `under` a divergent condition; whether there were any."""
    known = len(names)
    for statement in body:
        names.update(_assigned(statement, under, names))
        if isinstance(statement, If):
            inner = under or divergence(statement.condition, names) is not None
            _visit(statement.then, inner, names)
            _visit(statement.orelse, inner, names)
        elif isinstance(statement, Parallel):
            names.update(v.name for v in statement.vars)
            _visit(statement.body, True, names)
        elif isinstance(statement, LoopStmt):
            turns = [part for part in children(statement) if not isinstance(part, Stmt)]
            _visit(statement.body, under or any(divergence(part, names) for part in turns), names)
        elif isinstance(statement, WithStmt):
            _visit(statement.body, under, names)
    return len(names) > known


def _assigned(statement: Stmt, under: bool, names: set[str]) -> set[str]:
    """What a statement itself makes divergent."""
    match statement:
        case Let():
            return {statement.var.name} if divergence(statement.value, names) else set()
        case Store() if statement.found is not None:
            return {statement.found.name}
        case Store() if statement.buffer.scope in OWN:
            parts = (statement.value, *statement.index)
            differs = under or any(divergence(part, names) for part in parts)
            return {statement.buffer.name} if differs else set()
        case AllocStmt() if statement.buffer.scope in OWN:
            differs = any(divergence(part, names) for part in children(statement))
            return {statement.buffer.name} if differs else set()
        case OpStmt():
            # What an operation on tiles leaves in an array of a thread's is not looked into.
            return {e.buffer.name for e in effects_of(statement) if e.writes and e.buffer.scope == "local"}
        case _:
            return set()
