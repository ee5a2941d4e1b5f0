"""A pass alone, text in and text out, for the folders `texts/` of the roads: one case a file.

A file `PASS.CASE.txt` holds the function before the pass, a line `# ->`, and then what must come out:
the function after it, and the pass's remarks and choices. A first line `# schedule = {...}` gives a
schedule. Renew with `pytest --update-golden` and read the diff.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tilebench.ir import Registry, parse_function, print_function, verify
from tilebench.machine import Machine
from tilebench.passes.context import Context, Pass, StageRow
from tilebench.schedule import Schedule

ARROW = "# ->\n"


def passes_of(rows: Iterable[StageRow]) -> dict[str, Pass]:
    """The passes of a road by the names that stand on it."""
    return {name: step for row in rows for name, step in row.passes}


def pass_of(path: Path) -> str:
    """The pass that a file is about."""
    return path.name.partition(".")[0]


def after(step: Pass, before: str, machine: Machine, words: Registry) -> str:
    """What the pass makes of the text, with what it noted."""
    first, _, rest = before.partition("\n")
    schedule = None
    if first.startswith("# schedule = "):
        schedule, before = Schedule.of(**ast.literal_eval(first.removeprefix("# schedule = "))), rest
    context = Context(machine, schedule)
    function = parse_function(before, words, "before")
    verify(function)
    made = step(function, context)
    verify(made)
    text = print_function(made).text
    again = parse_function(text, words, "after")
    assert again == made
    assert print_function(again).text == text
    for node in (made, function):
        assert node.place is not None
    for remark in context.remarks:
        line = f"line {remark.place.line}" if remark.place else "nowhere"
        values = "".join(f", {key}={value}" for key, value in remark.values.items())
        text += f"# {remark.kind} at {line}: {remark.message}{values}\n"
    for choice in context.choices:
        why = f": {choice.why}" if choice.why else ""
        text += f"# {choice.address}: {choice.name} = {choice.value} ({choice.origin}{why})\n"
    return text


def check(
    path: Path, passes: Mapping[str, Pass], machine: Machine, words: Registry, request: pytest.FixtureRequest
) -> None:
    """The text after the pass is what stands in the file."""
    before, arrow, expected = path.read_text(encoding="utf-8").partition(ARROW)
    if request.config.getoption("--update-golden"):
        arrow = arrow or ARROW
    assert arrow, f"{path.name} has no line # ->"
    found = after(passes[pass_of(path)], before, machine, words)
    if request.config.getoption("--update-golden"):
        path.write_text(before + ARROW + found, encoding="utf-8")
        expected = found
    assert found == expected
