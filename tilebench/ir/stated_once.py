"""Names for the long values of a stage's statements, so that each is stated once and a statement reads short.

A value class says what such a value is called (`named_after`): layouts and mappings do. The text defines it
at the head of the function, named after the first buffer that is allocated with it or moved by it:

    C_l_frag = T.Fragment((128, 128), thread=..., value=...)
    ...
    C_l = T.alloc_fragment((128, 128), T.float32, layout=C_l_frag)
    T.fill(C_l, T.float32(0), map=C_l_frag)

Passes add buffers behind those of the kernel, so that a value has one name in all stages, and one kernel's
values have theirs for all block sizes. The tree knows nothing of this: the parser puts the value back at each
of its places, so that who edits a definition edits all that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, Protocol

from .effects import effects_in
from .names import fresh_name, names_of
from .node import ATTRIBUTE
from .stmt import AllocStmt, Function, Stmt, WordStmt, statements


class LongValue(Protocol):
    """A value that a text may give a name."""

    def named_after(self, field: str) -> str:
        """The word that says what it is behind the name of a buffer, of the statement's field; empty where
        it is as short as a name."""
        ...


class NamedValue(NamedTuple):
    """A definition: the name, its value and the first statement that says it."""

    name: str
    value: Any
    first: WordStmt


class ValueNames(NamedTuple):
    """What the text of a function calls its long values, and its definitions in order."""

    names: Mapping[Any, str] = {}
    definitions: tuple[NamedValue, ...] = ()

    def name_of(self, value: Any) -> str | None:
        """What stands for a value of a field; None where it is written out."""
        return self.names.get(value) if self.names and may_be_long(value.__class__) else None


NO_NAMES = ValueNames()


@cache
def may_be_long(cls: type) -> bool:
    """Whether values of a class can have a name."""
    return hasattr(cls, "named_after")


def value_names(function: Function) -> ValueNames:
    """Names for the long values of a function. Their definitions stand in the order of the buffers."""
    order: dict[str, int] = {}
    found: dict[Any, _Use] = {}
    for statement, field, value in long_values(function.body, order):
        subject = _subject(statement)
        use = _Use(order.get(subject, len(order) + len(found)), field != "layout", subject, field, statement)
        known = found.setdefault(value, use)
        if use[:2] < known[:2]:
            found[value] = use
    if not found:
        return NO_NAMES
    taken = names_of(function)
    names = {
        value: fresh_name(_name(value, use), taken)
        for value, use in sorted(found.items(), key=lambda item: item[1][:2])
    }
    definitions = [NamedValue(name, value, found[value].first) for value, name in names.items()]
    return ValueNames(names, tuple(definitions))


def definitions_in(function: Function) -> int:
    """How many definitions stand at the head of a function's text."""
    return len({value for _, _, value in long_values(function.body)})


class _Use(NamedTuple):
    """A use of a value: how early its buffer is, and whether it is not that buffer's own layout."""

    place: int
    other: bool
    subject: str
    field: str
    first: WordStmt


def long_values(
    body: tuple[Stmt, ...], order: dict[str, int] | None = None
) -> Iterator[tuple[WordStmt, str, LongValue]]:
    """The long values of a body in the order of its text, each with its statement and field.

    `order` gets the buffers that are allocated before, by their names.
    """
    for statement in statements(body):
        if not isinstance(statement, WordStmt):
            continue
        if order is not None and isinstance(statement, AllocStmt):
            order[statement.buffer.name] = len(order)
        fields = statement.__dict__
        for field in _attributes(type(statement)):
            value = fields[field]
            if may_be_long(value.__class__) and value.named_after(field):
                yield statement, field, value


@cache
def _attributes(cls: type[WordStmt]) -> tuple[str, ...]:
    return tuple(mark.name for mark in cls.marks if mark.mark == ATTRIBUTE)


def _name(value: LongValue, use: _Use) -> str:
    word = value.named_after(use.field)
    return f"{use.subject}_{use.field}" if use.subject.endswith(word) else f"{use.subject}_{word}"


# A mapping follows from the fragment that it moves, where there is one, and else from what the block has.
_NEAR = {"fragment": 0, "global": 2}


def _subject(statement: WordStmt) -> str:
    """The buffer that a value is named after: the one allocated, or the first written of the nearest kind."""
    if isinstance(statement, AllocStmt):
        return statement.buffer.name
    effects = effects_in(statement)
    touched = [effect.buffer for effect in effects if effect.writes] + [effect.buffer for effect in effects]
    if not touched:
        return statement.spelling()
    return min(touched, key=lambda buffer: _NEAR.get(buffer.scope, 1)).name
