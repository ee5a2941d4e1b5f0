"""The node base: immutable dataclasses whose fields say what they are.

A field is an operand (expressions, regions), an attribute (plain values: a decision, a hint), a
binder (the variables it brings into scope), a result (the buffer it brings into scope) or a body
(statements). Printing, parsing, walking, rewriting and equality come from these marks; a class
with an unmarked field is refused as it is made. A field that names memory also says what is done to
it (`reads`, `writes`, `accumulates`, `works`, `addresses`, `points`); one that does not is refused too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, dataclass_transform

from ..errors import Place

OPERAND, ATTRIBUTE, BINDER, RESULT, BODY = "operand", "attribute", "binder", "result", "body"
READS, WRITES, ACCUMULATES, WORKS = "reads", "writes", "accumulates", "works"
ADDRESSES = "addresses"
POINTS = "points"
# What is worked out of a node and kept beside its fields: its hash, what an expression mentions
# (`expr_walks.seen`) and its linear form (`arith.linear`).
KEPT = ("_hash", "_seen", "_linear")


class _Missing:
    """The default of a field that must be given."""


_MISSING: Any = _Missing()


@dataclass(frozen=True)
class FieldMark:
    """What a field of a node is. `star` prints a tuple as separate arguments.

    `effect` is what the node does to the memory that the field names; `unless` is the field of the
    node that, when true, makes an accumulation start afresh, `only_read` the one that leaves it without
    a change, `first` the one that says how many of a region's first elements are read. `decided` is the
    stage at whose end a decision must be there; `early` says that it may be there before. `used` is the
    stage whose passes turn it into decisions of their own, so that from its end on it is not there any more.
    """

    name: str
    mark: str
    star: bool
    default: Any
    region: bool = False
    effect: str = ""
    unless: str = ""
    only_read: str = ""
    first: str = ""
    decided: str = ""
    early: bool = False
    used: str = ""
    # The field's annotation: the types that a text may give it.
    note: str = ""

    @property
    def required(self) -> bool:
        return self.default is _MISSING

    @property
    def is_operand(self) -> bool:
        return self.mark == OPERAND


def operand(default: Any = _MISSING, *, star: bool = False) -> Any:
    """An `Expr`, `Region` or a tuple of them. `star` prints a tuple as separate arguments."""
    return FieldMark("", OPERAND, star, default)


def attribute(
    default: Any = _MISSING, *, star: bool = False, effect: str = "", unless: str = "", only_read: str = "",
    used: str = "",
) -> Any:  # fmt: skip
    """A plain value: number, text, dtype, tuple, or a value class of the registry.

    `effect` is for the buffer of an element access, `unless` as for `accumulates`, and where the field named
    `only_read` is true the memory is read alone. A hint is `used` by the
    passes of a stage: what they made of it stands there, and the hint does not.
    """
    return FieldMark(
        "", ATTRIBUTE, star, default, effect=effect, unless=unless, only_read=only_read, used=used
    )


def decision(stage: str, *, default: Any = _MISSING, early: bool = False, used: str = "") -> Any:
    """An attribute that is None until a pass decides it, and is decided when `stage` ends.

    With `early` a kernel or a schedule may have decided it before. It is gone again after the stage that
    it is `used` by.
    """
    return FieldMark("", ATTRIBUTE, False, default, decided=stage, early=early, used=used)


def reads(default: Any = _MISSING, *, first: str = "") -> Any:
    """A region whose values go into the operation: all, or as many as the field named `first` says."""
    return FieldMark("", OPERAND, False, default, effect=READS, first=first)


def writes(default: Any = _MISSING) -> Any:
    """A region that takes the result; its old values do not matter."""
    return FieldMark("", OPERAND, False, default, effect=WRITES)


def accumulates(default: Any = _MISSING, *, unless: str = "") -> Any:
    """A region whose old values go into its new ones, unless the field named `unless` is true."""
    return FieldMark("", OPERAND, False, default, effect=ACCUMULATES, unless=unless)


def works(*, default: Any = _MISSING) -> Any:
    """A region that the operation uses for itself: written, met at its own barriers, read, forgotten."""
    return FieldMark("", OPERAND, False, default, effect=WORKS)


def addresses(default: Any = _MISSING) -> Any:
    """A region of which only the place matters: nothing is read or written."""
    return FieldMark("", OPERAND, False, default, effect=ADDRESSES)


def points(*, star: bool = False) -> Any:
    """Regions that a function gets pointers to: the node's `kinds` say what it does to each."""
    return FieldMark("", OPERAND, star, _MISSING, effect=POINTS)


def binder() -> Any:
    """A tuple of `Var` in scope inside the body."""
    return FieldMark("", BINDER, False, _MISSING)


def result() -> Any:
    """The `Buffer` or `Var` that the statement brings into scope for what follows it."""
    return FieldMark("", RESULT, False, _MISSING)


def body() -> Any:
    """A tuple of statements."""
    return FieldMark("", BODY, False, _MISSING)


def no_values(_: object) -> tuple[()]:
    """The fields of a node class that has none."""
    return ()


R = TypeVar("R")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def _root(cls: R) -> R:
    """Tells a type checker that `place` is an argument of every node class; does nothing else."""
    return cls


@_root
class Node:
    """A node of the IR. `place` is where it comes from; it has no part in equality."""

    marks: ClassVar[tuple[FieldMark, ...]] = ()
    # The fields that hold nodes, and whether each is a body.
    below: ClassVar[tuple[tuple[str, bool], ...]] = ()
    # Those that hold statements.
    bodies: ClassVar[tuple[str, ...]] = ()
    # The fields that name memory; `effects.effects_of` reads them.
    effect_marks: ClassVar[tuple[FieldMark, ...]] = ()
    # The fields that a stage decides or uses.
    decisions: ClassVar[tuple[FieldMark, ...]] = ()
    # What equality and the hash are of: the fields, unless the class says it better.
    values_of: ClassVar[Any] = staticmethod(no_values)
    place: Place | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a node is immutable: {type(self).__name__}.{name}")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and bool(self.values_of(self) == self.values_of(other))

    def __hash__(self) -> int:
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = hash((type(self), self.values_of(self)))
            self.__dict__["_hash"] = known
        return known

    def __getstate__(self) -> dict[str, Any]:
        """The fields. A hash is one of this process."""
        return {name: value for name, value in self.__dict__.items() if name not in KEPT}

    def __repr__(self) -> str:
        shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in self.marks)
        return f"{type(self).__name__}({shown})"

    def at(self, place: Place | None) -> Any:
        """The same node at another place."""
        return self if place is self.place else self.but(place=place)

    def but(self, **changes: Any) -> Any:
        """The same node, place kept, with some fields changed. The names are not checked."""
        copy = object.__new__(type(self))
        fields = copy.__dict__
        fields.update(self.__dict__)
        for name in KEPT:
            if name in fields:
                del fields[name]
        fields.update(changes)
        return copy


N = TypeVar("N", bound=type[Node])


@dataclass_transform(
    frozen_default=True,
    field_specifiers=(
        operand, attribute, decision, reads, writes, accumulates, works, addresses, points, binder,
        result, body,
    ),
)  # fmt: skip
def node(cls: N) -> N:
    """Make a node class: immutable, its fields marked, those with a default by keyword only.

    Not a `dataclass`: making one takes 1 ms at import, and its frozen fields are slow to set;
    this takes a tenth of both. Raises `TypeError` when a field has no mark, or names memory without
    saying what is done to it.
    """
    marks: list[FieldMark] = []
    for name, note in inspect.get_annotations(cls).items():
        if "ClassVar" in note:
            continue
        given = cls.__dict__.get(name)
        if not isinstance(given, FieldMark):
            raise TypeError(f"field {name!r} of node class {cls.__name__} has no mark")
        # `A[i, j]` is a head address where a region belongs and a load where an expression does.
        region = "Region" in note
        if region and not given.effect:
            raise TypeError(f"field {name!r} of node class {cls.__name__} names memory without an effect")
        marks.append(replace(given, name=name, region=region, note=note))
        delattr(cls, name)
    prepared: Any = cls
    prepared.marks = tuple(marks)
    prepared.effect_marks = tuple(each for each in marks if each.effect)
    prepared.decisions = tuple(each for each in marks if each.decided or each.used)
    prepared.below = tuple((each.name, each.mark == BODY) for each in marks if each.mark in (OPERAND, BODY))
    prepared.bodies = tuple(each.name for each in marks if each.mark == BODY)
    names = [each.name for each in marks]
    if "values_of" not in cls.__dict__:
        prepared.values_of = staticmethod(attrgetter(*names) if names else no_values)
    prepared.__init__ = _initializer(prepared.marks, cls.__name__)
    return cls


def _initializer(marks: tuple[FieldMark, ...], owner: str) -> Any:
    """`__init__` of a node class, written out so that setting a field costs one dict store."""
    given = [each.name for each in marks if each.required]
    keyed = [each for each in marks if not each.required]
    defaults = {f"_{each.name}": each.default for each in keyed}
    head = ", ".join(["self", *given, "*", *(f"{each.name}=_{each.name}" for each in keyed), "place=None"])
    lines = [f"def __init__({head}):", "    held = self.__dict__"]
    lines += [f"    held[{each.name!r}] = {each.name}" for each in marks]
    lines.append("    if place is not None:\n        held['place'] = place")
    scope: dict[str, Any] = dict(defaults)
    exec("\n".join(lines), scope)  # noqa: S102 - the text is made of field names only
    init = scope["__init__"]
    init.__qualname__ = f"{owner}.__init__"
    return init


def children(node_: Node) -> list[Node]:
    """The nodes directly below, in field order: operands, then bodies as they come."""
    out: list[Node] = []
    fields = node_.__dict__
    for name, _ in node_.below:
        below = fields[name]
        if type(below) is tuple:
            out.extend(below)  # pyright: ignore[reportUnknownArgumentType]
        elif below is not None:
            out.append(below)
    return out


def operands(node_: Node) -> list[Any]:
    """The expressions and regions directly below, in field order: no statements."""
    out: list[Any] = []
    fields = node_.__dict__
    for name, is_body in node_.below:
        if is_body:
            continue
        below = fields[name]
        if type(below) is tuple:
            out.extend(below)  # pyright: ignore[reportUnknownArgumentType]
        elif below is not None:
            out.append(below)
    return out


def walk(root: Node) -> list[Node]:
    """Every node below and with `root`, parents before children, in printed order."""
    out: list[Node] = []
    stack: list[Node] = [root]
    pop, push, extend = stack.pop, stack.append, stack.extend
    while stack:
        found = pop()
        out.append(found)
        if found.below:
            fields = found.__dict__
            for name, _ in reversed(found.below):
                below = fields[name]
                if type(below) is tuple:
                    extend(reversed(below))  # pyright: ignore[reportUnknownArgumentType]
                elif below is not None:
                    push(below)
    return out


def map_children(node_: Any, change: Callable[[Any], Any]) -> Any:
    """The node with `change` applied to each operand and each body statement.

    For a body statement `change` may return one statement, a tuple of them, or None to drop it.
    The node itself is returned when nothing changed, so unchanged subtrees stay shared.
    """
    changes: dict[str, Any] | None = None
    fields = node_.__dict__
    for name, is_body in node_.below:
        below = fields[name]
        if type(below) is tuple:
            new: Any = _map_body(below, change) if is_body else _map_operands(below, change)  # pyright: ignore[reportUnknownArgumentType]
        elif below is None:
            continue
        else:
            new = change(below)
        if new is not below:
            if changes is None:
                changes = {}
            changes[name] = new
    return node_.but(**changes) if changes else node_


def map_bodies(node_: Any, change: Callable[[Any], Any]) -> Any:
    """The node with `change` applied to each statement of its bodies, as `map_children` does; an expression
    has none."""
    changes: dict[str, Any] | None = None
    fields = node_.__dict__
    for name, is_body in node_.below:
        if is_body:
            below = fields[name]
            new: Any = _map_body(below, change)
            if new is not below:
                if changes is None:
                    changes = {}
                changes[name] = new
    return node_.but(**changes) if changes else node_


def _map_operands(operands: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    out = [change(each) for each in operands]
    for new, old in zip(out, operands, strict=True):
        if new is not old:
            return tuple(out)
    return operands


def _map_body(body: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    out: list[Any] = []
    same = True
    for statement in body:
        new = change(statement)
        if new is not statement:
            same = False
        if isinstance(new, tuple):
            out.extend(new)  # pyright: ignore[reportUnknownArgumentType]
        elif new is not None:
            out.append(new)
    return body if same else tuple(out)
