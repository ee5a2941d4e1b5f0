"""Ghost elements of an accumulator: those outside the problem, which may hold anything if nobody reads them.

A gemm that leaves out rows of its left operand that are outside their array leaves those rows of its
result undefined. That is right only where they go nowhere: not into an array that is longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....ir import Arith, Expr, If, Load, Node, Store, Var, children, lift, walk
from ....ir.arith import linear
from ....ir.facts import conjuncts
from ....language.copy import Copy
from ....language.gemm import Gemm
from ....language.structure import Parallel
from .buffers import loads_memory, reads_var
from .uses import Use
from .work import Work

# Where something starts in an array, and where the array ends: `limit - start` elements are inside.
End = tuple[Expr, int | Expr]
# The ends of the rows and columns of an accumulator; None where all of them are inside.
Sides = tuple[End | None, End | None]


def ghosts_are_unread(work: Work, gemm: Gemm, sides: Sides) -> bool:
    """Whether elements of a gemm's result outside its operands' arrays reach nothing but each other."""
    if sides == (None, None):
        return True
    uses = work.plan.uses_of(gemm.c.buffer)
    # Another gemm on the same accumulator must leave out the same, else its zeros are needed.
    alone = len(uses.of(Gemm, "c")) == 1
    return alone and all(_goes_nowhere(work, use, sides) for use in uses.all) and all(
        _stays_in_place(work, loop, gemm, sides) for loop in uses.loops
    )  # fmt: skip


def _goes_nowhere(work: Work, use: Use, sides: Sides) -> bool:
    node = use.effect.node
    if isinstance(node, (Load, Store)):
        return use.loop is not None
    if isinstance(node, Copy) and use.effect.field == "src":
        return _copied_inside(work, node, sides)
    return use.fills or (isinstance(node, Gemm) and use.effect.field == "c")


def _copied_inside(work: Work, copy: Copy, sides: Sides) -> bool:
    """Whether a copy of the accumulator into an array stores nothing but what is inside."""
    if copy.dst.buffer.scope != "global" or not copy.src.is_whole:
        return False
    rank = copy.src.buffer.rank
    within = copy.dst_within or (None,) * copy.dst.buffer.rank
    long_src = [d for d, extent in enumerate(copy.src.extent or ()) if extent != 1]
    long_dst = [d for d, extent in enumerate(copy.dst.extent or ()) if extent != 1]
    for side, dimension in zip(sides, (rank - 2, rank - 1), strict=True):
        if side is None:
            continue
        d = long_dst[long_src.index(dimension)] if dimension in long_src else None
        limit = within[d] if d is not None else None
        if d is None or limit is None or not _no_longer(work, (copy.dst.start[d], limit), side):
            return False
    return True


def _no_longer(work: Work, stored: End, inside: End) -> bool:
    """Whether no more elements are stored than are inside, whatever the variables are."""
    if loads_memory(stored[0]):
        return False
    more = (lift(inside[1]) - inside[0]) - (lift(stored[1]) - stored[0])
    return work.facts.proves(linear(more).expr().compare(">=", 0))


def _stays_in_place(work: Work, loop: Parallel, gemm: Gemm, sides: Sides) -> bool:
    """Each turn of the loop touches its own element alone, and stores into arrays only what is inside."""
    name = gemm.c.buffer.name
    for node in walk(loop):
        if isinstance(node, (Load, Store)) and node.buffer.name == name and node.index != loop.vars:
            return False
        if isinstance(node, Store) and node.buffer.scope != "global" and node.buffer.name != name:
            return False
    ends = list(zip(loop.vars[-2:], sides, strict=True)) if len(loop.vars) >= 2 else []
    return all(
        side is None or any(_bounds_inside(work, test, var, side) for test in tests)
        for tests in _tests_of_stores(loop, ())
        for var, side in ends
    )


def _tests_of_stores(node: Node, tests: Sequence[Expr]) -> Iterator[Sequence[Expr]]:
    """What holds at each store into an array."""
    if isinstance(node, Store) and node.buffer.scope == "global":
        yield tests
    if isinstance(node, If):
        for statement in node.then:
            yield from _tests_of_stores(statement, (*tests, *conjuncts(node.condition)))
        for statement in node.orelse:
            yield from _tests_of_stores(statement, tests)
        return
    for child in children(node):
        yield from _tests_of_stores(child, tests)


def _bounds_inside(work: Work, test: Expr, var: Var, side: End) -> bool:
    """Whether `base + var < limit` keeps a loop's variable to what is inside."""
    if not isinstance(test, Arith) or test.op != "<" or reads_var(test.args[1], {var.name}):
        return False
    limit = test.args[1]
    form = linear(test.args[0])
    return form.coefficient(var) == 1 and _no_longer(work, (form.without(var).expr(), limit), side)
