"""Names for the long values that a stage's statements share, so that each is stated once.

A value class says of itself that it is long enough (`stated_once = True`): layouts and mappings are. Where
such a value occurs again, the text names it. A buffer's own value is named after the buffer:

    C_l = T.alloc_fragment((128, 128), T.float32, layout=T.Fragment(...))
    T.fill(C_l, T.float32(0), map=C_l.layout)

Any other is bound at the head of the function, named after what the first statement with it writes:

    A_s_map = T.Fragment((128, 32), ...)

The tree knows nothing of this: the parser puts the value back at each of its places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from .effects import effects_in
from .expr import Buffer
from .names import fresh_name, names_of
from .node import ATTRIBUTE
from .stmt import AllocStmt, Function, If, LoopStmt, Stmt, WithStmt, WordStmt


class NamedValue(NamedTuple):
    """A line at the head of a function: the name, its value and the first statement that says it."""

    name: str
    value: Any
    first: WordStmt


class SharedValues(NamedTuple):
    """What the text of a function calls its repeated values."""

    names: Mapping[Any, str] = {}
    bindings: tuple[NamedValue, ...] = ()

    def name_of(self, value: Any, statement: WordStmt, field_name: str) -> str | None:
        """What stands for a value of a field; None where it has to be written out."""
        if not self.names or not is_stated_once(value.__class__):
            return None
        name = self.names.get(value)
        if isinstance(statement, AllocStmt) and name == owned_name(statement.buffer, field_name):
            return None
        return name


NO_NAMES = SharedValues()


@cache
def is_stated_once(cls: type) -> bool:
    """Whether values of a class get a name where a text repeats them."""
    return getattr(cls, "stated_once", False) is True


def owned_name(buffer: Buffer, field_name: str) -> str:
    """How the text names a value of the statement that allocates a buffer."""
    return f"{buffer.name}.{field_name}"


@dataclass
class _Use:
    """The occurrences of one value. `scope` is the body of its allocation, while all others lie in it."""

    first: WordStmt
    field: str
    scope: int | None
    count: int = 1


def shared_values(function: Function) -> SharedValues:
    """The values that a function's statements repeat, and their names."""
    uses: dict[Any, _Use] = {}
    _gather(function.body, [0], uses)
    repeated = [(value, use) for value, use in uses.items() if use.count > 1]
    if not repeated:
        return NO_NAMES
    names: dict[Any, str] = {}
    bindings: list[NamedValue] = []
    taken: set[str] | None = None
    for value, use in repeated:
        if use.scope is not None and isinstance(use.first, AllocStmt):
            names[value] = owned_name(use.first.buffer, use.field)
            continue
        taken = names_of(function) if taken is None else taken
        name = names[value] = fresh_name(f"{_subject(use.first)}_{use.field}", taken)
        bindings.append(NamedValue(name, value, use.first))
    return SharedValues(names, tuple(bindings))


@cache
def _attributes(cls: type[WordStmt]) -> tuple[str, ...]:
    return tuple(mark.name for mark in cls.marks if mark.mark == ATTRIBUTE)


def _gather(body: Iterable[Stmt], scopes: list[int], uses: dict[Any, _Use]) -> None:
    """Count the values of a body. `scopes` are the bodies around it, by number, innermost last."""
    for statement in body:
        if isinstance(statement, WordStmt):
            fields = statement.__dict__
            for name in _attributes(type(statement)):
                value = fields[name]
                if is_stated_once(value.__class__):
                    _count(value, name, statement, scopes, uses)
        if isinstance(statement, (LoopStmt, WithStmt)):
            _gather_below(statement.body, scopes, uses)
        elif isinstance(statement, If):
            _gather_below(statement.then, scopes, uses)
            _gather_below(statement.orelse, scopes, uses)


def _gather_below(body: tuple[Stmt, ...], scopes: list[int], uses: dict[Any, _Use]) -> None:
    # The body's identity is its number: its tuple lives as long as the tree.
    scopes.append(id(body))
    _gather(body, scopes, uses)
    scopes.pop()


def _count(value: Any, name: str, statement: WordStmt, scopes: list[int], uses: dict[Any, _Use]) -> None:
    use = uses.get(value)
    if use is None:
        scope = scopes[-1] if isinstance(statement, AllocStmt) else None
        uses[value] = _Use(statement, name, scope)
        return
    use.count += 1
    if use.scope not in scopes:
        use.scope = None


def _subject(statement: WordStmt) -> str:
    """What a value is named after: the buffer allocated, or the first written, rather one of the block's."""
    if isinstance(statement, AllocStmt):
        return statement.buffer.name
    effects = effects_in(statement)
    touched = [effect.buffer for effect in effects if effect.writes] + [effect.buffer for effect in effects]
    own = [buffer for buffer in touched if buffer.scope != "global"]
    return (own or touched)[0].name if touched else statement.spelling()
