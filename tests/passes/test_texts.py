"""Each pass alone, text in and text out: the files in `texts/`, one case a file.

A file holds the function before the pass, a line `# ->`, and then what must come out: the function
after it, and the pass's remarks and choices. A first line `# schedule = {...}` gives a schedule.
Renew with `pytest --update-golden` and read the diff.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tilebench.ir import parse_function, print_function, verify
from tilebench.language.words import registry
from tilebench.passes.apply_schedule import apply_schedule
from tilebench.passes.bound_accesses import bound_accesses
from tilebench.passes.choose_shared import choose_shared
from tilebench.passes.context import Context
from tilebench.passes.infer_layouts import infer_layouts
from tilebench.passes.inline_indices import inline_indices
from tilebench.passes.make_ring import make_ring
from tilebench.passes.open_parts import open_parts
from tilebench.passes.plan_pipeline import plan_pipeline
from tilebench.passes.spill_operands import spill_operands
from tilebench.passes.stage_operands import stage_operands
from tilebench.schedule import Schedule
from tilebench.targets.cuda.machines import machine_of

FOLDER = Path(__file__).parent / "texts"
ARROW = "# ->\n"
PASSES = {
    each.__name__: each
    for each in (
        stage_operands, apply_schedule, inline_indices, bound_accesses, plan_pipeline, spill_operands,
        open_parts, infer_layouts, choose_shared, make_ring,
    )
}  # fmt: skip
FILES = sorted(FOLDER.glob("*.txt"))


def after(name: str, before: str) -> str:
    """What the pass makes of the text, with what it noted."""
    first, _, rest = before.partition("\n")
    schedule = None
    if first.startswith("# schedule = "):
        schedule, before = Schedule.of(**ast.literal_eval(first.removeprefix("# schedule = "))), rest
    context = Context(machine_of("sm_80"), schedule)
    function = parse_function(before, registry(), "before")
    verify(function)
    made = PASSES[name](function, context)
    verify(made)
    text = print_function(made).text
    again = parse_function(text, registry(), "after")
    assert again == made
    assert print_function(again).text == text
    for node in (made, function):
        assert node.place is not None
    for each in context.remarks:
        line = f"line {each.place.line}" if each.place else "nowhere"
        values = "".join(f", {key}={value}" for key, value in each.values.items())
        text += f"# {each.kind} at {line}: {each.message}{values}\n"
    for each in context.choices:
        text += (
            f"# {each.address}: {each.name} = {each.value} ({each.origin}{': ' * bool(each.why)}{each.why})\n"
        )
    return text


@pytest.mark.parametrize("path", FILES, ids=[each.stem for each in FILES])
def test_text(path: Path, request: pytest.FixtureRequest) -> None:
    before, arrow, expected = path.read_text(encoding="utf-8").partition(ARROW)
    assert arrow, f"{path.name} has no line # ->"
    found = after(path.stem.partition(".")[0], before)
    if request.config.getoption("--update-golden"):
        path.write_text(before + ARROW + found, encoding="utf-8")
        expected = found
    assert found == expected


def test_every_pass_has_a_text() -> None:
    assert {each.stem.partition(".")[0] for each in FILES} == set(PASSES)
