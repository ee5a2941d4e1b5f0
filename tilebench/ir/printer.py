"""From nodes to text: valid Python in the words of the language, one statement a line.

`print_function` prints a whole stage, together with the node behind each line, which is what line maps
are made of; `line_numbers` is that account without the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ..errors import Place
from .expr import Buffer, Var
from .node import ATTRIBUTE, OPERAND, FieldMark
from .show import show, show_access, show_value
from .stated_once import NO_NAMES, ValueNames, definitions_in, value_names
from .stmt import AllocStmt, Function, If, Let, LoopStmt, OpStmt, Stmt, Store, While, WithStmt, WordStmt

INDENT = "    "


class Line(NamedTuple):
    """One line of a body. `text` is None where the statement says it, and its head stands there."""

    depth: int
    statement: Stmt | None
    text: str | None = None


@dataclass(frozen=True)
class Printed:
    """Text of a stage and the statement behind each line (None for a decorator or `pass`).

    Behind the definition of a name stands the first statement that uses the name.
    """

    text: str
    nodes: tuple[Stmt | None, ...]
    names: ValueNames = NO_NAMES

    @property
    def places(self) -> tuple[Place | None, ...]:
        return tuple(None if node is None else node.place for node in self.nodes)


@cache
def printed_marks(cls: type[WordStmt]) -> tuple[FieldMark, ...]:
    """Operands then attributes, positional before keyword, in field order."""
    marks = [mark for mark in cls.marks if mark.mark in (OPERAND, ATTRIBUTE)]
    return tuple([m for m in marks if m.required] + [m for m in marks if not m.required])


def arguments(stmt: WordStmt, names: ValueNames = NO_NAMES) -> list[str]:
    """The printed arguments of a word statement; values that have names by those."""
    hidden = stmt.hidden()
    out: list[str] = []
    for mark in printed_marks(type(stmt)):
        if mark.name in hidden:
            continue
        value = getattr(stmt, mark.name)
        if mark.required:
            if mark.star:
                out.extend(show_value(part) for part in value)
            else:
                out.append(names.name_of(value) or show_value(value))
        elif value != mark.default or type(value) is not type(mark.default):
            out.append(f"{mark.name}={names.name_of(value) or show_value(value)}")
    return out


def _call(stmt: WordStmt, names: ValueNames, lead: tuple[str, ...] = ()) -> str:
    return f"T.{stmt.spelling()}({', '.join([*lead, *arguments(stmt, names)])})"


def _head(stmt: Stmt, names: ValueNames) -> str:
    """The line of a statement, without the lines of its body."""
    match stmt:
        case Let():
            return f"{stmt.var.name}: T.{stmt.var.type.name} = {show(stmt.value)}"
        case Store() if stmt.atomic:
            return _atomic(stmt)
        case Store():
            return f"{show_access(stmt.buffer, stmt.index, stmt.version)} = {show(stmt.value)}"
        case If():
            return f"if {show(stmt.condition)}:"
        case AllocStmt():
            buffer = stmt.buffer
            shape = (show_value(buffer.shape),) if buffer.rank else ()
            return f"{buffer.name} = {_call(stmt, names, (*shape, f'T.{buffer.dtype.name}'))}"
        case While():
            return f"while {show(stmt.condition)}:"
        case LoopStmt():
            return f"for {', '.join(v.name for v in stmt.vars)} in {_call(stmt, names)}:"
        case WithStmt():
            bound = ", ".join(v.name for v in stmt.vars)
            bound = f"({bound})" if len(stmt.vars) > 1 else bound
            return f"with {_call(stmt, names)}" + (f" as {bound}:" if bound else ":")
        case OpStmt():
            return _call(stmt, names)
        case _:
            raise TypeError(f"no statement: {type(stmt).__name__}")


def _atomic(store: Store) -> str:
    arguments = [show_access(store.buffer, store.index, store.version)]
    arguments += [] if store.looks else [show(store.value)]
    arguments += [] if store.order == "relaxed" else [f'memory_order="{store.order}"']
    found = "" if store.found is None else f"{store.found.name} = "
    return f"{found}T.atomic_{store.atomic}({', '.join(arguments)})"


def _lines(body: tuple[Stmt, ...], depth: int) -> list[Line]:
    """The lines of a body in order. The only account of which lines a statement has."""
    out: list[Line] = []
    if not body:
        out.append(Line(depth, None, "pass"))
    for stmt in body:
        out.append(Line(depth, stmt))
        if isinstance(stmt, If):
            out += _lines(stmt.then, depth + 1)
            if stmt.orelse:
                out.append(Line(depth, stmt, "else:"))
                out += _lines(stmt.orelse, depth + 1)
        elif isinstance(stmt, (LoopStmt, WithStmt)):
            out += _lines(stmt.body, depth + 1)
    return out


def _text(lines: list[Line], names: ValueNames) -> list[str]:
    out: list[str] = []
    for depth, stmt, text in lines:
        if text is None and stmt is not None:
            text = _head(stmt, names)
        out.append(f"{INDENT * depth}{text}")
    return out


def line_numbers(function: Function) -> dict[int, int]:
    """The line, from 1, on which each statement (by identity) starts in the function's printed text.

    A statement that stands in two places of the tree has the line of the first.
    """
    numbers: dict[int, int] = {id(function): 2}
    for number, line in enumerate(_lines(function.body, 1), 3 + definitions_in(function)):
        if line.text is None:
            numbers.setdefault(id(line.statement), number)
    return numbers


def show_param(param: Buffer | Var) -> str:
    """A parameter with its annotation."""
    if isinstance(param, Var):
        return f"{param.name}: T.{param.type.name}"
    buffer, align = param, "" if param.align == 16 else f", align={param.align}"
    if buffer.strides is not None:
        shape, strides = show_value(buffer.shape), show_value(buffer.strides)
        return f"{buffer.name}: T.StridedTensor({shape}, {strides}, T.{buffer.dtype.name}{align})"
    return f"{buffer.name}: T.Tensor({show_value(buffer.shape)}, T.{buffer.dtype.name}{align})"


def print_statements(body: tuple[Stmt, ...], depth: int = 0) -> Printed:
    """Statements alone, as they stand in a function whose values have no names."""
    lines = _lines(body, depth)
    text = "\n".join(_text(lines, NO_NAMES)) + "\n"
    return Printed(text, tuple(line.statement for line in lines))


def print_function(function: Function) -> Printed:
    """The text of a stage and the node behind each of its lines."""
    names = value_names(function)
    info = ", ".join(f"{key}={show_value(value)}" for key, value in function.info)
    params = ", ".join(show_param(param) for param in function.params)
    lines = [Line(1, first, f"{name} = {show_value(value)}") for name, value, first in names.definitions]
    lines += _lines(function.body, 1)
    text = [
        "@T.prim_func" + (f"({info})" if info else ""),
        f"def {function.name}({params}):",
        *_text(lines, names),
    ]
    return Printed("\n".join(text) + "\n", (None, function, *(line.statement for line in lines)), names)
