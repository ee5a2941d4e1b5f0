"""What a node does to memory, read off the marks of its fields; there is no other list of it.

A field of a node class that names memory (a `Region`, or the `Buffer` of an element access) is marked
with its effect. Passes that look for hazards, the planner, the reference and the checks all ask here,
so that an operation that is new takes part in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .expr import Buffer, Const, Expr, Load, Region, Var, whole
from .expr_walks import seen
from .node import (
    ACCUMULATES,
    ADDRESSES,
    POINTS,
    READS,
    WORKS,
    WRITES,
    FieldMark,
    Node,
    children,
    operands,
    walk,
)


class Effect(NamedTuple):
    """One touch of a buffer by one field of a node.

    `kind` is `reads`, `writes`, `accumulates` (the old value goes into the new one), `works` (written
    and read again inside the operation, nothing of it outlives it) or `addresses` (nothing is touched).
    `region` is None for the access of one element, whose index stands in `node`.
    """

    kind: str
    field: str
    buffer: Buffer
    region: Region | None
    node: Node

    @property
    def reads(self) -> bool:
        """Whether a value from before the node is read."""
        return self.kind in (READS, ACCUMULATES)

    @property
    def writes(self) -> bool:
        """Whether the buffer holds something else afterwards."""
        return self.kind in (WRITES, ACCUMULATES, WORKS)

    @property
    def first(self) -> Expr | None:
        """How many elements of the region, from its start on, are touched; None where all are."""
        named = next(mark.first for mark in self.node.effect_marks if mark.name == self.field)
        return getattr(self.node, named) if named else None


def _kind(mark: FieldMark, node: Any) -> str:
    """The effect of a field that says `only_read` or `unless`: it may start afresh, or only read."""
    if mark.only_read and getattr(node, mark.only_read):
        return READS
    if mark.effect != ACCUMULATES or not mark.unless:
        return mark.effect
    afresh = getattr(node, mark.unless)
    value = afresh.value if isinstance(afresh, Const) else afresh
    return WRITES if value is True else ACCUMULATES


def effects_of(node: Node) -> tuple[Effect, ...]:
    """The effects of the node itself, in the order of its fields; those of nodes below are their own."""
    marks = node.effect_marks
    if not marks:
        return ()
    found: list[Effect] = []
    for mark in marks:
        target = node.__dict__[mark.name]
        if target is None:
            continue
        if mark.effect == POINTS:
            found += _behind_pointers(mark, node)
            continue
        kind = _kind(mark, node) if mark.only_read or mark.unless else mark.effect
        region, buffer = (target, target.buffer) if mark.region else (None, target)
        found.append(Effect(kind, mark.name, buffer, region, node))
    return tuple(found)


def _behind_pointers(mark: FieldMark, node: Any) -> list[Effect]:
    """What a function does through its pointers; where its author says no extent it may be anywhere."""
    out: list[Effect] = []
    for region, (kind, anywhere) in zip(getattr(node, mark.name), node.kinds, strict=True):
        buffer = region.buffer
        fixed = all(isinstance(extent, int) for extent in buffer.shape)
        box = whole(buffer, region.version) if anywhere and fixed else region
        out.append(Effect(kind, mark.name, buffer, box, node))
    return out


def effects_in(root: Node) -> list[Effect]:
    """The effects of a node and of everything below it, in printed order."""
    found: list[Effect] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Expr) and not seen(node).loads:
            continue  # nine of ten expressions touch nothing
        if node.effect_marks:
            found.extend(effects_of(node))
        stack.extend(reversed(children(node)))
    return found


def own_effects(node: Node) -> list[Effect]:
    """The effects of a node and of its operands, without those of the statements inside."""
    return [*effects_of(node), *(effect for part in operands(node) for effect in effects_in(part))]


def names_used(roots: Iterable[Node]) -> set[str]:
    """The names of the values and buffers that trees use."""
    found: set[str] = set()
    for root in roots:
        for part in walk(root):
            if isinstance(part, Var):
                found.add(part.name)
            elif part.effect_marks:
                found |= {effect.buffer.name for effect in effects_of(part)}
    return found


def names_read_and_written(roots: Iterable[Node]) -> tuple[set[str], set[str]]:
    """The names of the buffers that trees may read, and of those that they write."""
    reads: set[str] = set()
    writes: set[str] = set()
    for root in roots:
        for effect in effects_in(root):
            if effect.reads or effect.kind == WORKS:
                reads.add(effect.buffer.name)
            if effect.writes:
                writes.add(effect.buffer.name)
    return reads, writes


def read_while_written(stmt: Node) -> set[str]:
    """Names of the buffers of which a statement reads elements itself, and that it or its body writes.

    The condition of a loop is left out: it is read anew in front of each turn.
    """
    read: set[str] = set()
    # Asked of every statement of every stage, and nearly none loads anything.
    again = getattr(stmt, "condition", None)
    stack = [part for part in operands(stmt) if part is not again]
    while stack:
        part = stack.pop()
        if isinstance(part, Expr) and not seen(part).loads:
            continue
        if isinstance(part, Load):
            read.add(part.buffer.name)
        stack += children(part)
    return read & names_read_and_written([stmt])[1] if read else read


def scalar_operands(node: Node) -> dict[str, Expr]:
    """The values that an operation takes besides its regions, by field, in field order."""
    return {
        mark.name: value
        for mark in node.marks
        if mark.is_operand and not mark.effect and isinstance(value := getattr(node, mark.name), Expr)
    }


def regions_read(node: Node, known: Mapping[str, object] | None = None) -> tuple[Region, ...]:
    """The regions whose old values go into an operation, in field order.

    `known` holds the values of scalar operands while the kernel runs: they decide whether a result is
    started afresh.
    """
    found: list[Region] = []
    for effect in effects_of(node):
        mark = next(each for each in node.effect_marks if each.name == effect.field)
        afresh = bool(known and mark.unless and known.get(mark.unless, False))
        if effect.reads and effect.region is not None and not afresh:
            found.append(effect.region)
    return tuple(found)


def region_written(node: Node) -> Region:
    """The one region that takes an operation's result. Raises `ValueError` for another number of them."""
    found = [e.region for e in effects_of(node) if e.kind in (WRITES, ACCUMULATES) and e.region is not None]
    if len(found) != 1:
        raise ValueError(f"{type(node).__name__} writes {len(found)} regions, not one")
    return found[0]


__all__ = [
    "ADDRESSES", "Effect", "effects_in", "effects_of", "names_read_and_written", "names_used", "own_effects",
    "read_while_written", "region_written", "regions_read", "scalar_operands",
]  # fmt: skip
