"""What lowerings share on the way through one function: the plan, what is known, free names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from ....ir import Call, Const, Expr, Function, Stmt, Var, lift
from ....ir.names import Names
from ....language.scopes import entry_facts
from ....passes.context import Context
from ..machine import isa_of
from .buffers import swap_buffers
from .lowering import LoweringTable
from .plan_buffers import BufferPlan


class Work:
    """One function being lowered. `facts` is what is known of the variables in scope."""

    def __init__(self, function: Function, context: Context, table: LoweringTable) -> None:
        self.context = context
        self.isa = isa_of(context.machine)
        self.target = context.machine.target
        self.table = table
        self.facts = entry_facts(function)
        self.plan = BufferPlan(function, self.isa, table)
        self.names = Names(function)
        # Whether each gemm leaves out what is outside the problem, by its identity: copies and gemms must
        # agree on it.
        self.stays_inside: dict[int, bool] = {}

    def fresh(self, name: str) -> Var:
        """A loop variable with a name of its own: i, j, ..., then `i__2` and so on."""
        return Var(self.names.fresh(name))

    def body(self, statements: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Statements lowered one after the other, each by its row of the table."""
        lowered: list[Stmt] = []
        for statement in statements:
            with statement.place or nullcontext():
                lowered.extend(self.table.row_of(statement, self.target).lower(self, statement))
        return tuple(lowered)

    def swapped(self, node: Any) -> Any:
        """The node with every access to a tile going to its scratch buffer."""
        return swap_buffers(node, self.plan.buffers)

    def valid(self, start: Expr, extent: int, limit: int | Expr) -> Expr:
        """How many of `extent` elements from `start` (not negative) lie under `limit`; may be below zero."""
        if self.facts.proves((start + extent).compare("<=", limit)):
            return Const(extent)
        room = lift(limit) - start
        short = self.facts.proves(room.compare("<=", extent))
        return room if short else Call("min", (room, Const(extent)), type=room.dtype)

    def not_negative(self, count: Expr) -> Expr:
        """The count, or 0 where it may be below."""
        return (
            count
            if self.facts.proves(count.compare(">=", 0))
            else Call("max", (count, Const(0, type=count.dtype)), type=count.dtype)
        )
