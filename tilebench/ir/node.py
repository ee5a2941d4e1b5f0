"""The node base: immutable dataclasses whose fields say what they are.

A field is an operand (expressions, regions), an attribute (plain values: a decision, a hint), a
binder (the variables it brings into scope), a result (the buffer it brings into scope) or a body
(statements). Printing, parsing, walking, rewriting and equality come from these marks; a class
with an unmarked field is refused as it is made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, dataclass_transform

from ..errors import Place

OPERAND, ATTRIBUTE, BINDER, RESULT, BODY = "operand", "attribute", "binder", "result", "body"
_MISSING: Any = dataclasses.MISSING


def _marked(mark: str, default: Any, star: bool = False, key: bool = False) -> Any:
    metadata = {"mark": mark, "star": star}
    return field(default=default, kw_only=key, metadata=metadata)


def operand(default: Any = _MISSING, *, star: bool = False) -> Any:
    """An `Expr`, `Region` or a tuple of them. `star` prints a tuple as separate arguments."""
    return _marked(OPERAND, default, star, default is not _MISSING)


def attribute(default: Any = _MISSING, *, star: bool = False) -> Any:
    """A plain value: number, text, dtype, tuple, or a value class of the registry."""
    return _marked(ATTRIBUTE, default, star, default is not _MISSING)


def binder() -> Any:
    """A tuple of `Var` in scope inside the body."""
    return _marked(BINDER, _MISSING)


def result() -> Any:
    """The `Buffer` or `Var` that the statement brings into scope for what follows it."""
    return _marked(RESULT, _MISSING)


def body() -> Any:
    """A tuple of statements."""
    return _marked(BODY, _MISSING)


@dataclass(frozen=True)
class FieldMark:
    name: str
    mark: str
    star: bool
    default: Any
    region: bool = False

    @property
    def required(self) -> bool:
        return self.default is _MISSING


@dataclass(frozen=True, eq=False)
class Node:
    """A node of the IR. `place` is where it comes from; it has no part in equality."""

    marks: ClassVar[tuple[FieldMark, ...]] = ()
    place: Place | None = field(default=None, kw_only=True, compare=False, repr=False)

    def at(self, place: Place | None) -> Any:
        """The same node at another place."""
        return self if place is self.place else dataclasses.replace(self, place=place)

    def but(self, **changes: Any) -> Any:
        """The same node, place kept, with some fields changed."""
        return dataclasses.replace(self, **changes)


N = TypeVar("N", bound=type[Node])


@dataclass_transform(frozen_default=True, field_specifiers=(operand, attribute, binder, result, body))
def node(cls: N) -> N:
    """Make a node class: a frozen dataclass whose every field is marked.

    Raises `TypeError` when a field is not.
    """
    made: Any = dataclass(frozen=True, eq=True)(cls)
    marks: list[FieldMark] = []
    for each in dataclasses.fields(made):
        if each.name == "place":
            continue
        mark = each.metadata.get("mark")
        if mark is None:
            raise TypeError(f"field {each.name!r} of node class {cls.__name__} has no mark")
        # `A[i, j]` is a head address where a region belongs and a load where an expression does.
        region = "Region" in str(each.type)
        marks.append(FieldMark(each.name, mark, bool(each.metadata.get("star")), each.default, region))
    made.marks = tuple(marks)
    return made


def children(node_: Node) -> list[Node]:
    """The nodes directly below, in field order: operands, then bodies as they come."""
    out: list[Node] = []
    for mark in node_.marks:
        if mark.mark in (ATTRIBUTE, BINDER, RESULT):
            continue
        held = getattr(node_, mark.name)
        if isinstance(held, Node):
            out.append(held)
        elif isinstance(held, tuple):
            out.extend(each for each in held if isinstance(each, Node))  # pyright: ignore[reportUnknownVariableType]
    return out


def walk(root: Node) -> list[Node]:
    """Every node below and with `root`, parents before children, in printed order."""
    out: list[Node] = []
    stack: list[Node] = [root]
    while stack:
        at = stack.pop()
        out.append(at)
        stack.extend(reversed(children(at)))
    return out


def map_children(node_: Any, change: Callable[[Any], Any]) -> Any:
    """The node with `change` applied to each operand and each body statement.

    For a body statement `change` may return one statement, a tuple of them, or None to drop it.
    The node itself is returned when nothing changed, so unchanged subtrees stay shared.
    """
    changes: dict[str, Any] = {}
    for mark in node_.marks:
        if mark.mark in (ATTRIBUTE, BINDER, RESULT):
            continue
        held = getattr(node_, mark.name)
        if isinstance(held, Node):
            new = change(held)
            if new is not held:
                changes[mark.name] = new
        elif isinstance(held, tuple):
            made = _map_tuple(held, change, mark.mark == BODY)  # pyright: ignore[reportUnknownArgumentType]
            if made is not held:
                changes[mark.name] = made
    return dataclasses.replace(node_, **changes) if changes else node_


def _map_tuple(held: tuple[Any, ...], change: Callable[[Any], Any], is_body: bool) -> tuple[Any, ...]:
    out: list[Any] = []
    same = True
    for each in held:
        new = change(each) if isinstance(each, Node) else each
        if new is not each:
            same = False
        if is_body and new is None:
            continue
        if is_body and isinstance(new, tuple):
            out.extend(new)  # pyright: ignore[reportUnknownArgumentType]
        else:
            out.append(new)
    return held if same else tuple(out)
