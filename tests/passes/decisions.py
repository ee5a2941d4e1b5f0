"""Edits of the decisions in a stage's text: what a person might write in place of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilebench.ir import WordStmt, parse_function, show, walk
from tilebench.language.lowered.decisions import Instr, Plan, Stage
from tilebench.language.words import registry
from tilebench.layout import Fragment, SharedLayout, Swizzle

# What a machine's table has for operations of another kind.
INSTRUCTIONS = ("ld.st", "fma", "thread", "shfl", "shared", "rename")
# Changes of a layout after which no 4 bytes are neighbours and aligned.
WITHOUT_NEIGHBOURS = ("padded by one", "transposed")


@dataclass(frozen=True)
class Edit:
    """A text in which one argument of one statement is replaced.

    `legal` edits have to be obeyed; the others may be refused.
    """

    line: int
    word: str
    argument: str
    change: str
    text: str
    legal: bool = False

    def __str__(self) -> str:
        line = self.text.splitlines()[self.line - 1].strip()
        return f"{self.argument} of {self.word}, {self.change}: {line}"

    @property
    def masks(self) -> bool:
        """Whether the edit changes which elements are touched, and with that the results."""
        return self.argument.endswith("_within")

    @property
    def may_be_the_same(self) -> bool:
        """A test that holds anyway is not made, so leaving it out changes nothing."""
        return self.masks and self.change == "nothing"


def edits_of(text: str) -> Iterator[Edit]:
    """Every edit of every decision that a stage's text states, names of repeated values included."""
    lines = text.splitlines(keepends=True)
    for word, argument, node, value in _decisions(text):
        for change, new, legal in _changes(argument, value):
            line = node.lineno
            assert node.end_lineno == line
            old = lines[line - 1]
            edited = old[: node.col_offset] + new + old[node.end_col_offset :]
            whole = "".join([*lines[: line - 1], edited, *lines[line:]])
            # Copies that pass by registers need neighbours of their width on both sides.
            legal = legal and not (change in WITHOUT_NEIGHBOURS and ' by=T.Instr("cp.async"' in text)
            yield Edit(line, word, argument, change, whole, legal)


def _decisions(text: str) -> Iterator[tuple[str, str, ast.expr, Any]]:
    """The word, the argument, where it stands and the value that it has in the tree."""
    statements: dict[int, list[WordStmt]] = {}
    for node in walk(parse_function(text, registry())):
        if isinstance(node, WordStmt) and node.place is not None:
            statements.setdefault(node.place.line, []).append(node)
    tree = ast.parse(text)
    named: dict[str, Any] = {}
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        for keyword in call.keywords:
            for statement in statements.get(call.lineno, []):
                if keyword.arg in statement.__dict__:
                    value = getattr(statement, keyword.arg)
                    if isinstance(keyword.value, ast.Name):
                        named[keyword.value.id] = value
                    yield statement.spelling(), keyword.arg, keyword.value, value
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in named:
                yield "head", name, node.value, named[name]


def _changes(name: str, value: Any) -> Iterator[tuple[str, str, bool]]:
    match value:
        case Fragment():
            yield from _fragments(value)
        case SharedLayout():
            yield from _shared(value)
        case Instr():
            yield from _instructions(value)
        case Plan():
            yield "other stages", show(replace(value, stages=2 if value.stages != 2 else 3)), True
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
            yield "more", str(2 * value), name == "versions"
            yield "less", str(value // 2), False
            yield "none", "0", False
            yield "odd", str(2 * value + 1), name == "versions"
        case _:
            return


def _instructions(value: Instr) -> Iterator[tuple[str, str, bool]]:
    for name in ("nonsense", *INSTRUCTIONS):
        if name != value.name:
            yield f"by {name}", show(replace(value, name=name)), False
    if value.bytes:
        for count in (1, 3, value.bytes // 2, value.bytes * 2, 64):
            if count and count != value.bytes:
                yield f"{count} bytes", show(replace(value, bytes=count)), False
    if value.lanes:
        for count in (1, 3, value.lanes // 2, value.lanes * 2):
            if count != value.lanes:
                yield f"{count} lanes", show(replace(value, lanes=count)), False


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
