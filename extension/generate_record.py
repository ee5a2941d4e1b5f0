"""Writes `src/record.ts` from the dataclasses of `tilebench/record.py`.

    python extension/generate_record.py           write the file
    python extension/generate_record.py --check   say whether it is what would be written

The Python record is the one definition. Beside the interfaces the file holds the same shapes as
data, so that the viewer can tell a record of another version from a broken one.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilebench import record

TARGET = Path(__file__).parent / "src" / "record.ts"
SCALARS = {str: "string", int: "number", float: "number", bool: "boolean"}

HEAD = """\
// Written by generate_record.py from tilebench/record.py; change it there.

/** The version of the record format that these shapes belong to. */
export const FORMAT = {format};

/** The MIME type of an output that carries one record. */
export const MIME_TYPE = 'application/vnd.tilebench.record.v{format}+json';
"""

TAIL = """\
/** What a notebook output carries, packed: one compilation and the measurements that belong to it. */
export interface Held {
  readonly record: CompileRecord;
  readonly runs: readonly RunRecord[];
}
"""


def classes() -> list[type]:
    """The record's dataclasses in the order in which they are written."""
    return [
        value
        for value in vars(record).values()
        if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == record.__name__
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
    kinds = classes()
    head = HEAD.format(format=record.FORMAT)
    return "\n".join([head, *(interface(kind) for kind in kinds), TAIL, shapes(kinds)])


def main(arguments: list[str]) -> int:
    """Write, or with `--check` compare; 1 when the file differs."""
    text = generate()
    if "--check" in arguments:
        same = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print("record.ts is up to date" if same else "record.ts differs: run extension/generate_record.py")
        return 0 if same else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
