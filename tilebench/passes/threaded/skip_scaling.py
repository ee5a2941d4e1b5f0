"""Registers that would be multiplied by ones alone are left as they are.

Attention scales its sums by `exp2(old - new)` in each step, and the maximum of most rows is the old one: the
factor is 1, and the product what was there before.

    for r in T.unroll(64):                   if T.vote_ballot(f[0] != 1 or f[1] != 1) != 0:
        acc[r] = acc[r] * f[r // 2 % 2]          for r in T.unroll(64): acc[r] = acc[r] * f[r // 2 % 2]

A warp votes and goes one way together. It is done where the factors are powers of the same step and the warp
exchanges values there, as in the reduction that the new maximum comes from: all its lanes are there.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from ...ir import (
    Arith,
    Buffer,
    Call,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    Stmt,
    Store,
    const_of,
    map_bodies,
    walk,
)
from ...ir.dtypes import uint32
from ...ir.stmt import statements
from ...language.structure import Serial, Unroll
from ..context import Context

NAME = "skip_scaling"
# Fewer products than these cost less than the vote.
FEWEST = 16
# More factors of a thread than these are seldom all ones.
MOST_FACTORS = 8
POWERS = ("exp", "exp2")
EXCHANGES = ("shfl_xor", "shfl_down")


def skip_scaling(function: Function, context: Context) -> Function:
    """The function whose steps scale registers only where some factor is not one."""
    if "votes" not in context.machine.features:
        return function

    def step(node: Any) -> Any:
        below = map_bodies(node, step)
        if not isinstance(below, Serial):
            return below
        body = _voted(below.body, context)
        return below if body == below.body else below.but(body=body)

    return step(function)


def _voted(body: tuple[Stmt, ...], context: Context) -> tuple[Stmt, ...]:
    """The body of a loop's step with votes in front of what scales."""
    powers = {
        part.buffer.name
        for part in statements(body)
        if isinstance(part, Store) and isinstance(part.value, Call) and part.value.word in POWERS
    }
    if not powers or not _exchanges(body):
        return body
    out: list[Stmt] = []
    for statement in body:
        factors = _factors(statement)
        if factors is None or factors.name not in powers:
            out.append(statement)
            continue
        out.append(If(_some_not_one(factors), (statement,), (), place=statement.place))
        context.remark(
            NAME, "applied", "sums are scaled only where a factor of the warp is not one", statement
        )
    return tuple(out)


def _exchanges(body: tuple[Stmt, ...]) -> bool:
    """Whether all lanes of a warp meet in a body, and not under a condition."""
    for statement in body:
        if isinstance(statement, (Serial, Unroll)):
            if _exchanges(statement.body):
                return True
        elif isinstance(statement, (Let, Store)) and any(
            isinstance(node, Call) and node.word in EXCHANGES for node in walk(statement)
        ):
            return True
    return False


def _factors(statement: Stmt) -> Buffer | None:
    """What a statement does nothing with but multiply many registers, in place."""
    count, inner = 1, statement
    while isinstance(inner, Unroll) and len(inner.body) == 1:
        count, inner = count * (const_of(inner.stop - inner.start) or 0), inner.body[0]
    if count < FEWEST or not isinstance(inner, Store) or inner.buffer.scope != "local":
        return None
    value = inner.value
    if not isinstance(value, Arith) or value.op != "*" or len(value.args) != 2:
        return None
    own, other = sorted(
        value.args, key=lambda part: not (isinstance(part, Load) and part.buffer.name == inner.buffer.name)
    )
    if not isinstance(own, Load) or not isinstance(other, Load) or own.buffer.name != inner.buffer.name:
        return None
    few = other.buffer.scope == "local" and other.buffer.size <= MOST_FACTORS
    same = own.index == inner.index and other.buffer.name != inner.buffer.name
    return other.buffer if few and same and other.buffer.dtype.is_float else None


def _some_not_one(factors: Buffer) -> Expr:
    """Whether some lane of the warp has a factor that is not one."""
    tests = [
        Load(factors, (Const(k),)).compare("!=", Const(1.0, type=factors.dtype)) for k in range(factors.size)
    ]
    some = reduce(lambda a, b: Arith("or", (a, b)), tests)
    return Call("vote_ballot", (some,), type=uint32).compare("!=", Const(0, type=uint32))
