"""Products that go on by themselves are waited for where something needs that they are done.

    gemm s; commit; wait; gemm dp; commit; wait; P of s; dS of P and dp
 -> gemm s; commit; gemm dp; commit; wait for s; P of s; wait for dp; dS of P and dp

A wait goes down behind what leaves alone the product's sum and does not write what it reads, to the end of
its body at most; of products behind it, that many groups may go on. It goes behind no statement that may need
a barrier (what writes shared memory or reads what threads wrote there, an exchange, a loop): whoever has
met the others is done with what he reads, so that one barrier is enough for those who write there next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...ir import Function, If, Let, Stmt, map_bodies, names_read_and_written
from ...ir.effects import effects_in, own_effects
from ...ir.stmt import statements
from ...language.accumulation import gemm_sum_dtype
from ...language.copy import Copy, Fill
from ...language.gemm import Gemm
from ...language.lowered.tokens import BY_HAND, Commit, Wait
from ...language.memory import AllocFragment
from ...language.structure import Parallel
from ...machine import Machine
from ..context import Context
from ..laid_out.choose_instructions import row_of
from .waiting_bodies import with_waits_moved

NAME = "late_waits"


@dataclass(frozen=True)
class _Going:
    """A product that goes on, its wait, and what stands behind it that did not need it."""

    product: Gemm
    wait: Wait
    passed: int = 0


def late_waits(function: Function, context: Context) -> Function:
    """The function whose products are waited for late."""

    def step(node: Any) -> Any:
        return with_waits_moved(map_bodies(node, step), lambda body: _moved_down(body, context))

    return step(function)


def _moved_down(body: tuple[Stmt, ...], context: Context) -> tuple[Stmt, ...]:
    products, written = _alone(body, context.machine), _written_by_threads(body)
    out: list[Stmt] = []
    going: list[_Going] = []
    for statement in body:
        if isinstance(statement, Wait) and statement.token in products:
            going.append(_Going(products[statement.token], statement))
            continue
        met = _may_meet(statement, products, written)
        needed = max(
            (k for k, one in enumerate(going) if met or _touches(statement, one.product)), default=-1
        )
        done, going = going[: needed + 1], going[needed + 1 :]
        out += _waited(done, len(going), context)
        if not isinstance(statement, Commit):
            going = [_Going(one.product, one.wait, one.passed + 1) for one in going]
        out.append(statement)
    return (*out, *_waited(going, 0, context))


def _waited(done: Sequence[_Going], later: int, context: Context) -> list[Stmt]:
    """The waits for products of which `later` younger ones may go on."""
    for one in done:
        if one.passed:
            context.remark(
                NAME, "applied", f"the product into {one.product.c.buffer.name} is waited for behind "
                f"{one.passed} more statements", one.product, statements=one.passed,
            )  # fmt: skip
    return [one.wait.but(later=later) if later else one.wait for one in done]


def _alone(body: Sequence[Stmt], machine: Machine) -> dict[str, Gemm]:
    """The products of a body that have a wait for themselves there, by their tokens."""
    found: dict[str, Gemm] = {}
    tokens = [s.token for s in body if isinstance(s, Gemm) and s.token]
    waits = {s.token for s in body if isinstance(s, Wait) and not s.pending}
    for statement in body:
        if not isinstance(statement, Gemm) or statement.token in ("", BY_HAND):
            continue
        row, dtype = row_of(statement, machine), statement.c.buffer.dtype
        whole = (not row.exact_k or statement.fast_accum) and gemm_sum_dtype(dtype) == dtype
        if whole and row.asynchronous and statement.token in waits and tokens.count(statement.token) == 1:
            found[statement.token] = statement
    return found


def _written_by_threads(body: tuple[Stmt, ...]) -> set[str]:
    """The tiles in shared memory that statements of a body fill, but for copies that complete by
    themselves."""
    found: set[str] = set()
    for statement in statements(body):
        if isinstance(statement, Copy) and (statement.token or statement.barrier is not None):
            continue
        written = (effect.buffer for effect in own_effects(statement) if effect.writes)
        found |= {buffer.name for buffer in written if buffer.scope == "shared"}
    return found


def _may_meet(statement: Stmt, alone: dict[str, Gemm], written: set[str]) -> bool:
    """Whether a statement may need that threads meet in front of it or in it."""
    if isinstance(statement, If):
        return any(_may_meet(inner, alone, written) for inner in (*statement.then, *statement.orelse))
    if isinstance(statement, (Commit, Gemm)):
        if statement.token not in alone:
            return True
    elif not isinstance(statement, (Parallel, Copy, Fill, Let, AllocFragment)):
        return True
    if isinstance(statement, Copy) and (statement.dst.buffer.scope != "fragment" or statement.token):
        return True
    effects = effects_in(statement)
    return any(
        effect.buffer.scope == "shared" and (effect.writes or effect.buffer.name in written)
        for effect in effects
    )


def _touches(statement: Stmt, product: Gemm) -> bool:
    """Whether a statement uses a product's sum, or writes what it reads."""
    read, written = names_read_and_written([statement])
    own = {product.a.buffer.name, product.b.buffer.name}
    return product.c.buffer.name in read | written or bool(written & own)


__all__ = ["late_waits"]
