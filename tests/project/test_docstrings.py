"""Every example in a docstring runs."""

from __future__ import annotations

import builtins
import doctest
import importlib
from pathlib import Path

import pytest

from tilebench.errors import remember_source

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "tilebench").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_there_are_examples() -> None:
    assert "tilebench.kernel.function" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(name)
    monkeypatch.setenv("TILEBENCH_TARGET", "cpu")
    # Showing a value leaves it in `builtins._`; IPython would take that for gettext's and not set its own.
    monkeypatch.setattr(builtins, "_", None, raising=False)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    tests = [each for each in finder.find(module, name) if each.examples]
    assert tests
    for each in tests:
        # Kernels are read from their source: an example's text stands under the name doctest gives it.
        for number, example in enumerate(each.examples):
            remember_source(f"<doctest {each.name}[{number}]>", example.source)
        runner.run(each)
    assert runner.summarize(verbose=False).failed == 0
