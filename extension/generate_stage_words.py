"""What is said of the words of a stage's text: `tilebench/workbench/stage_words.json`, from their classes.

`words` has the first lines of docstrings, each with the names of the statements and values that it is said
of, in the language and in all targets; `arguments` are what they are printed with. `generate_record.py`
writes the file.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping

from tilebench.language.lowered.arguments import ARGUMENTS
from tilebench.language.words import registry
from tilebench.targets import manifest, names


def generate_stage_words() -> str:
    """The text of the file: a row a line, so that a change of one is a change of one line."""
    classes: dict[str, type] = dict(registry().values)
    for found in (registry(), *(manifest(name).registry for name in names())):
        classes |= {name: word.cls for name, word in found.statements.items()}
    words: dict[str, str] = {}
    for name, cls in sorted(classes.items()):
        if line := _first_line(cls):
            words[line] = f"{words[line]} {name}" if line in words else name
    tables = {"words": words, "arguments": ARGUMENTS}
    return "{\n" + ",\n".join(_table(name, rows) for name, rows in tables.items()) + "\n}\n"


def _table(name: str, rows: Mapping[str, str]) -> str:
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in rows.items()
    )
    return f'"{name}": {{\n{lines}\n}}'


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0].replace("`", "")
