"""What a statement reads of memory that it writes gets a name: `T.fill(s, s[0])` -> `s_value = s[0]` first.

The value of a fill, the bounds of a loop and the start of a region are what they are when the statement
begins. Written where they are used they would be read again, by each thread and in each turn, while others
already write.
"""

from __future__ import annotations

from typing import Any

from ...ir import Expr, Function, Let, Load, LoopStmt, OpStmt, Region, Stmt, Var, map_bodies, walk
from ...ir.effects import read_while_written
from ...ir.names import Names
from ..context import Context


def name_reads(function: Function, context: Context) -> Function:
    """The function in which no loop and no operation reads what it writes but through its regions."""
    names = Names(function)

    def step(node: Any) -> Any:
        node = map_bodies(node, step)
        written = read_while_written(node) if isinstance(node, (LoopStmt, OpStmt)) else ()
        return _named(node, frozenset(written), names) if written else node

    return step(function)


def _named(stmt: Stmt, written: frozenset[str], names: Names) -> tuple[Stmt, ...]:
    """The statement behind the lets that hold what it reads of the buffers of these names."""
    lets: list[Stmt] = []
    changes: dict[str, Any] = {}

    def named(expr: Expr, name: str) -> Expr:
        if not any(isinstance(node, Load) and node.buffer.name in written for node in walk(expr)):
            return expr
        var = Var(names.fresh(name), type=expr.dtype, place=expr.place)
        lets.append(Let(var, expr, place=stmt.place))
        return var

    for mark in stmt.marks:
        value = getattr(stmt, mark.name)
        if isinstance(value, Region):
            start = tuple(named(part, f"{value.buffer.name}_start") for part in value.start)
            changes[mark.name] = value.but(start=start)
        elif mark.is_operand and isinstance(value, Expr) and mark.name != "condition":
            changes[mark.name] = named(value, f"{_name_of(stmt)}_{mark.name}")
    return (*lets, stmt.but(**changes))


def _name_of(stmt: Any) -> str:
    """The loop's variable, or the buffer that an operation writes."""
    return stmt.vars[0].name if isinstance(stmt, LoopStmt) else stmt.dst.buffer.name
