"""Edits of the decisions in a stage's text: what a person might write in place of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilebench.ir import parse_function
from tilebench.language.lowered.decisions import Instr, Plan, Stage
from tilebench.language.words import registry
from tilebench.layout import Fragment, SharedLayout, Swizzle

# What a machine's table has for operations of another kind.
INSTRUCTIONS = ("ld.st", "fma", "thread", "shfl", "shared")


@dataclass(frozen=True)
class Edit:
    """A text with one argument replaced. `line` is where, `what` names the argument and the change.

    `legal` says that another kernel with the same results has to come of it; the others may be refused.
    """

    what: str
    line: int
    text: str
    legal: bool = False


def edits_of(text: str) -> Iterator[Edit]:
    """Every edit of every decision that a stage's text states."""
    lines = text.splitlines(keepends=True)
    function = parse_function(text, registry())
    values = _values(text, function)
    for call in [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]:
        for keyword in call.keywords:
            name, node = keyword.arg or "", keyword.value
            value = values.get((node.lineno, node.col_offset))
            for change, new, legal in _changes(name, value, ast.unparse(call.func)):
                line = node.lineno
                old = lines[line - 1]
                edited = old[: node.col_offset] + new + old[node.end_col_offset :]
                assert node.end_lineno == line
                whole = "".join([*lines[: line - 1], edited, *lines[line:]])
                yield Edit(f"{line}: {name} {change}", line, whole, legal)


def _values(text: str, function: Any) -> dict[tuple[int, int], Any]:
    """What stands behind each argument, by its place: names are looked up in the tree."""
    from tilebench.ir import WordStmt, walk

    by_line: dict[int, list[Any]] = {}
    for node in walk(function):
        if isinstance(node, WordStmt) and node.place is not None:
            by_line.setdefault(node.place.line, []).append(node)
    found: dict[tuple[int, int], Any] = {}
    for call in [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]:
        for keyword in call.keywords:
            for statement in by_line.get(call.lineno, []):
                if keyword.arg in statement.__dict__:
                    found[keyword.value.lineno, keyword.value.col_offset] = getattr(statement, keyword.arg)
    return found


def _changes(name: str, value: Any, word: str) -> Iterator[tuple[str, str, bool]]:
    match value:
        case Fragment():
            yield from _fragments(value)
        case SharedLayout():
            yield from _shared(value)
        case Instr():
            yield from _instructions(value)
        case Plan():
            yield "other stages", repr_of(replace(value, stages=2 if value.stages != 2 else 3)), True
            yield "unknown roles", 'T.Plan(2, roles="leaders")', False
            yield "no stages", "T.Plan(0)", False
        case Stage():
            yield "later", "T.Stage(1)", False
            yield "never", "None", True
        case tuple() if name.endswith("_within"):
            yield "nothing", "None", False
            yield "less", "(" + "".join("1, " if v else "None, " for v in value) + ")", False
            yield "more", "(" + "".join(f"{(v or 0) + 1}, " for v in value) + ")", False
            yield "too short", "()", False
        case int() if name in ("versions", "vector"):
            yield "more", str(value * 2 + (value == 1) * 2), name == "versions"
            yield "less", str(value // 2), False
            yield "odd", "3" if value != 3 else "5", name == "versions" and value < 3
        case _:
            return


def _instructions(value: Instr) -> Iterator[tuple[str, str, bool]]:
    for name in ("nonsense", *INSTRUCTIONS):
        if name != value.name:
            yield f"by {name}", repr_of(replace(value, name=name)), False
    if value.bytes:
        for count in (1, 3, value.bytes // 2, value.bytes * 2, 64):
            if count and count != value.bytes:
                yield f"{count} bytes", repr_of(replace(value, bytes=count)), False
    if value.lanes:
        for count in (1, 3, value.lanes // 2, value.lanes * 2):
            if count != value.lanes:
                yield f"{count} lanes", repr_of(replace(value, lanes=count)), False


def _fragments(value: Fragment) -> Iterator[tuple[str, str, bool]]:
    extents, thread, modes = value.extents, value.thread, value.value
    if len(thread) > 1 and thread[::-1] != thread:
        yield "threads in another order", repr(Fragment(extents, thread[::-1], modes)), False
    count, dim, step = max(thread)
    if dim >= 0 and count % 2 == 0:
        k = thread.index((count, dim, step))
        half = (*thread[:k], (count // 2, dim, step), *thread[k + 1 :])
        yield "half the threads", repr(Fragment(extents, half, (*modes, (2, dim, step * count // 2)))), False
    yield "twice the threads", repr(Fragment(extents, (*thread, (2, -1, 0)), modes)), False
    if len(modes) > 1:
        yield "values in another order", repr(Fragment(extents, thread, modes[::-1])), False
    wide = tuple(2 * extent for extent in extents)
    doubled = (*modes, *((2, dim, extent) for dim, extent in enumerate(extents)))
    yield "another box", repr(Fragment(wide, thread, doubled)), False
    yield "no values", f"T.Fragment({extents!r}, thread={thread!r})" if modes else "T.Fragment((3,))", False


def _shared(value: SharedLayout) -> Iterator[tuple[str, str, bool]]:
    rows, columns = value.extents[-2:]
    swizzle = Swizzle(1, 3, 3) if value.swizzle is None else None
    yield "another swizzle", repr(SharedLayout((rows, columns), (columns, 1), swizzle)), True
    yield "padded", repr(SharedLayout((rows, columns), (columns + 8, 1))), True
    yield "padded by one", repr(SharedLayout((rows, columns), (columns + 1, 1))), True
    yield "transposed", repr(SharedLayout((rows, columns), (1, rows))), True
    yield "overlapping", f"T.SharedLayout(({rows}, {columns}), (1, 1))", False
    yield "too small", repr(SharedLayout((rows // 2, columns), (columns, 1))), False
    yield "another rank", repr(SharedLayout((rows * columns,), (1,))), False


def repr_of(value: Any) -> str:
    """A decision as a text spells it."""
    from tilebench.ir import show

    return show(value)
