"""Writes TypeScript's view of plain data from the Python dataclasses that define it.

    python extension/generate_record.py           write the files
    python extension/generate_record.py --check   say whether they are what would be written

`src/record.ts` comes from `tilebench/record.py`, `src/bench/state.ts` from `workbench/front/state.py`,
`src/bench/block_data.ts` from `workbench/front/block_data.py`, `src/editor/mark.ts` from
`workbench/front/marks.py`; `words.json` and `stage_words.json` from the language.
Beside the interfaces each holds the same shapes as data, so that the viewer can tell data of another version
from what is broken.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generate_stage_words import generate_stage_words
from generate_words import generate_packed, generate_words

from tilebench import record
from tilebench.workbench.front import block_data, marks, state

SOURCES = Path(__file__).parent / "src"
TABLES = Path(__file__).parent.parent / "tilebench" / "workbench"
SCALARS = {str: "string", int: "number", float: "number", bool: "boolean"}

HEAD = """\
// Written by generate_record.py from tilebench/record.py; change it there.

/** The version of the record format that these shapes belong to. */
export const FORMAT = {format};

/** The MIME type of an output that carries one record. */
export const MIME_TYPE = 'application/vnd.tilebench.record.v{format}+json';
"""

STATE_HEAD = """\
// Written by generate_record.py from tilebench/workbench/front/state.py; change it there.

import { TabData } from './block_data';

export * from './block_data';
"""

BLOCK_HEAD = """\
// Written by generate_record.py from tilebench/workbench/front/block_data.py; change it there.
"""

MARK_HEAD = """\
// Written by generate_record.py from tilebench/workbench/front/marks.py; change it there.

/** The MIME type of the marks in an output. */
export const MARKS_MIME = '{mime}';
"""


def classes(module: types.ModuleType) -> list[type]:
    """The dataclasses of a module in the order in which they are written."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == module.__name__
    ]


def type_name(hint: Any) -> str:
    """The TypeScript type of a field's Python type; `TypeError` for one that JSON cannot hold."""
    if hint in SCALARS:
        return SCALARS[hint]
    if hint is Any:
        return "unknown"
    if hint is types.NoneType:
        return "null"
    if dataclasses.is_dataclass(hint):
        return typing.cast(type, hint).__name__
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(dict.fromkeys(type_name(each) for each in arguments))
    if origin is tuple and arguments[1:] == (Ellipsis,):
        inner = type_name(arguments[0])
        return f"readonly ({inner})[]" if " " in inner else f"readonly {inner}[]"
    if origin is Mapping and arguments[0] is str:
        return f"Readonly<Record<string, {type_name(arguments[1])}>>"
    raise TypeError(f"no TypeScript type for {hint!r}")


def shape(hint: Any) -> str:
    """The same as data: `string`, `number`, `Name`, `Name?` for or null, `[Name]`, `{number|string}`, `*`."""
    name = type_name(hint)
    if name == "unknown":
        return "*"
    if name.endswith(" | null"):
        return name.removesuffix(" | null") + "?"
    if name.startswith("Readonly<"):
        inner = shape(typing.get_args(hint)[1])
        return "{" + inner.replace(" | ", "|") + "}"
    if name.startswith("readonly "):
        return "[" + shape(typing.get_args(hint)[0]) + "]"
    return name


def interface(kind: type) -> str:
    """One dataclass as an interface with its docstring."""
    hints = typing.get_type_hints(kind)
    told = (kind.__doc__ or "").strip().splitlines()
    doc = [f" * {line.strip()}".rstrip() for line in told]
    lines = ["/**", *doc, " */", f"export interface {kind.__name__} {{"]
    lines += [f"  readonly {each.name}: {type_name(hints[each.name])};" for each in dataclasses.fields(kind)]
    return "\n".join([*lines, "}", ""])


def shapes(kinds: list[type]) -> str:
    """The table of shapes, one entry a field."""
    lines = ["/** The shapes above as data, for a check of what came in. */"]
    lines.append("export const SHAPES: Readonly<Record<string, Readonly<Record<string, string>>>> = {")
    for at, kind in enumerate(kinds):
        hints = typing.get_type_hints(kind)
        fields = [f"    {f.name}: '{shape(hints[f.name])}'" for f in dataclasses.fields(kind)]
        lines += [f"  {kind.__name__}: {{", ",\n".join(fields), "  }," if at + 1 < len(kinds) else "  }"]
    return "\n".join([*lines, "};", ""])


def generate() -> str:
    """The whole text of `record.ts`."""
    kinds = classes(record)
    head = HEAD.format(format=record.FORMAT)
    return "\n".join([head, *(interface(kind) for kind in kinds), shapes(kinds)])


def generate_state() -> str:
    """The whole text of `bench/state.ts`."""
    kinds = classes(state)
    return "\n".join([STATE_HEAD, *(interface(kind) for kind in kinds), shapes(kinds)])


def generate_blocks() -> str:
    """The whole text of `bench/block_data.ts`."""
    kinds = classes(block_data)
    return "\n".join([BLOCK_HEAD, *(interface(kind) for kind in kinds), shapes(kinds)])


def generate_marks() -> str:
    """The whole text of `editor/mark.ts`."""
    kinds = classes(marks)
    head = MARK_HEAD.format(mime=marks.MARKS_MIME)
    return "\n".join([head, *(interface(kind) for kind in kinds), shapes(kinds)])


def generate_explanations() -> str:
    """The whole text of `bench/explain/packed.ts`."""
    return generate_packed(EXPLANATIONS.read_text(encoding="utf-8") if EXPLANATIONS.exists() else "")


EXPLANATIONS = SOURCES / "bench" / "explain" / "packed.ts"
FILES = {
    SOURCES / "record.ts": generate,
    SOURCES / "bench" / "state.ts": generate_state,
    SOURCES / "bench" / "block_data.ts": generate_blocks,
    SOURCES / "editor" / "mark.ts": generate_marks,
    TABLES / "words.json": generate_words,
    EXPLANATIONS: generate_explanations,
    TABLES / "stage_words.json": generate_stage_words,
}


def main(arguments: list[str]) -> int:
    """Write, or with `--check` compare; 1 when a file differs."""
    differ = False
    for target, make in FILES.items():
        text = make()
        if "--check" not in arguments:
            target.write_text(text, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != text:
            differ = True
            print(f"{target.name} differs: run extension/generate_record.py")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
