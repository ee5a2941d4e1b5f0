"""Operands that an instruction cannot read where they are get a copy where it can.

A gemm by `fma` reads both operands from shared memory: `T.gemm(P, V_s, O)` with a fragment `P` ->
`T.copy(P, P_shared)`, `T.gemm(P_shared, V_s, O)`. A reduction works on fragments: a shared source
is copied to one first, and a shared result from one after. The rows of the instructions say so.
"""

from __future__ import annotations

from typing import Any

from ...ir import WORKS, Effect, Function, OpStmt, Region, Stmt, effects_of, map_bodies
from ...language.copy import Copy
from ..context import Context
from .choose_instructions import row_of, takes_instruction
from .twins import Twins

NAME = "spill_operands"


def spill_operands(function: Function, context: Context) -> Function:
    """The function with every operand in the memory its instruction reads."""
    spiller = _Spiller(function, context)

    def step(node: Any) -> Any:
        # A copy is what spills are made of: it takes its operands wherever they are.
        if isinstance(node, OpStmt) and takes_instruction(node) and not isinstance(node, Copy):
            return spiller.operation(node)
        return map_bodies(node, step)

    return step(function)


def _lies_twice(statement: OpStmt, effect: Effect) -> bool:
    """Whether a fragment that is read is another operand too, which may have to lie otherwise: the result, or
    the one before."""
    if effect.buffer.scope != "fragment" or effect.writes:
        return False
    same = [other for other in effects_of(statement) if other.buffer.name == effect.buffer.name]
    return len(same) > 1 and (any(other.writes for other in same) or same[0].field != effect.field)


class _Spiller:
    def __init__(self, function: Function, context: Context) -> None:
        self.context = context
        self.twins = Twins(function, context, NAME)

    def operation(self, statement: OpStmt) -> Any:
        row = row_of(statement, self.context.machine)
        before: list[Stmt] = []
        after: list[Stmt] = []
        changes: dict[str, Region] = {}
        for effect in effects_of(statement):
            memory = row.operand(effect.field).memory
            if effect.region is None or effect.kind == WORKS or not memory:
                continue
            if effect.buffer.scope in memory and not _lies_twice(statement, effect):
                continue
            allocation, tile = self.twins.twin(effect.region, memory[0], statement, "statement")
            changes[effect.field] = tile
            before.append(allocation)
            if effect.reads:
                before.append(Copy(effect.region, tile, place=statement.place))
            if effect.writes:
                after.append(Copy(tile, effect.region, place=statement.place))
        return (*before, statement.but(**changes), *after) if changes else statement
