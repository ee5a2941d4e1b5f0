"""The instruction of every operation, chosen before any layout: its row says how operands have to lie.

`T.gemm(A_s, B_s, C_l)` -> `T.gemm(A_s, B_s, C_l, by=T.Instr("fma"))`. Rows of the machine's table that
fit the dtypes are compared by their computed cost, with that of bringing operands to where a row
takes them. Where rows differ only in how many threads they reach across (a reduction), the layout
decides, and `infer_layouts` writes it down.
"""

from __future__ import annotations

from typing import Any

from ...errors import LayoutError
from ...ir import WORKS, Function, OpStmt, Stmt, effects_of, map_bodies
from ...language.copy import Copy
from ...language.lowered.decisions import Instr
from ...language.lowered.tokens import Commit, Wait
from ...machine import Instruction, Machine
from ..analysis.costs import copy_cycles, instruction_cycles
from ..analysis.thread_groups import threads_by_statement
from ..context import Context

NAME = "choose_instructions"


def choose_instructions(function: Function, context: Context) -> Function:
    """The function with an instruction on every operation that no layout has a say in."""
    threads = threads_by_statement(function, context.machine)

    def step(node: Any) -> Any:
        if isinstance(node, OpStmt) and takes_instruction(node):
            statement: Any = node
            row = choose(statement, context.machine, threads[id(node)].count)
            if isinstance(node, Copy) and node.by_threads:
                statement = node = node.but(by_threads=False)
            return node if row is None or statement.by is not None else node.but(by=Instr(row.name))
        return map_bodies(node, step)

    return step(function)


def takes_instruction(statement: Stmt) -> bool:
    """Whether an operation names the instruction that carries it out; commits and waits name another's."""
    if isinstance(statement, (Commit, Wait)):
        return False
    return any(mark.name == "by" for mark in statement.marks)


def dtypes_of(statement: OpStmt) -> tuple[str, ...]:
    """The names of the dtypes of an operation's regions, in the order of its fields."""
    return tuple(effect.buffer.dtype.name for effect in effects_of(statement) if effect.kind != WORKS)


def fitting_rows(statement: Any, machine: Machine) -> list[Instruction]:
    """The rows that can carry out an operation, by dtypes, name and whether it may be asynchronous.

    Raises `LayoutError` at the operation where there is none, with what the table holds.
    """
    rows = machine.instructions_for(statement.word)
    dtypes = dtypes_of(statement)
    fitting = [row for row in rows if row.dtypes in ((), dtypes) and is_meant(row, statement)]
    if statement.by is not None:
        fitting = [row for row in fitting if row.name == statement.by.name]
    else:
        fitting = [row for row in fitting if not row.optional]
    if fitting:
        return fitting
    known = [f"{row.name} ({' '.join(row.dtypes) or 'any dtype'})" for row in rows]
    raise LayoutError(
        "{machine} has no instruction for T.{word} of {dtypes}", at=statement.place,
        machine=machine.name, word=statement.spelling(), dtypes=", ".join(dtypes),
        found="by={by!r}" if statement.by is not None else "", by=getattr(statement.by, "name", ""),
        hint="its table holds: " + ("; ".join(dict.fromkeys(known)) or "nothing for this operation"),
    )  # fmt: skip


def is_meant(row: Instruction, statement: Stmt) -> bool:
    """Whether a statement asks for what is less exact, where the row is, and is in time for it."""
    return (not row.asked or getattr(statement, row.asked)) and _in_time(row, statement)


def _in_time(row: Instruction, statement: Stmt) -> bool:
    """A copy is asynchronous only where the plan lets it run ahead, or where it is told to be."""
    if not row.asynchronous or not isinstance(statement, Copy) or statement.by is not None:
        return True
    return statement.at_stage is not None and statement.at_stage.can_be_async


def choose(statement: Any, machine: Machine, threads: int) -> Instruction | None:
    """The cheapest fitting row; None where rows of several widths leave it to the layout."""
    rows = fitting_rows(statement, machine)
    if statement.by is None:
        rows = [row for row in rows if _can_share(row, statement, threads)] or rows
    if len({row.group for row in rows}) > 1 and len({row.shape for row in rows}) == 1:
        return None

    return min(rows, key=lambda row: price_of(row, statement, machine, threads))


def price_of(row: Instruction, statement: Any, machine: Machine, threads: int) -> float:
    """What a statement costs by a row, in cycles: its instructions, and bringing operands to where it takes
    them."""
    moved = sum(
        copy_cycles(machine, effect.buffer.size, effect.buffer.dtype.bits, threads)
        for effect in effects_of(statement)
        if (memory := row.operand(effect.field).memory) and effect.buffer.scope not in memory
    )
    return moved + instruction_cycles(row, statement, machine, threads)


def _can_share(row: Instruction, statement: OpStmt, threads: int) -> bool:
    """Whether the threads are whole groups of an instruction whose operands lie in fragments of its own."""
    fragments = [row.operand(effect.field).fragment for effect in effects_of(statement)]
    if not any(fragments):
        return True
    ranks = {effect.buffer.rank for effect in effects_of(statement) if effect.buffer.scope == "fragment"}
    return threads % max(row.group, 1) == 0 and ranks <= {2}


def row_of(statement: Any, machine: Machine) -> Instruction:
    """The row behind an operation's `by`, or one of those that the layout will choose from."""
    return fitting_rows(statement, machine)[0]
