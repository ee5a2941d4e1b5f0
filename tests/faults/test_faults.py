"""Every deliberate fault still applies and names tests that are there; five are really switched on.

All of them run by `python -m tests.faults`.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

import pytest

from tests.faults.__main__ import KILLED, outcome
from tests.faults.fault import ROOT, Fault, FaultError
from tests.faults.rows import BY_NAME, FAULTS

# One of each kind of place: a condition, a table, a mark of a field, a method, a key.
SAMPLE = (
    "bounds/implied-forgets-equal", "map/lives-meet", "effects/copy-writes-nothing", "reduce/max-neutral",
    "cache/key-without-machine",
)  # fmt: skip


@cache
def _functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_applies_and_names_tests(fault: Fault) -> None:
    source = fault.path.read_text(encoding="utf-8")
    tree = fault.applied(source)
    assert ast.dump(tree) != ast.dump(ast.parse(source)), "it changes nothing"
    compile(tree, str(fault.path), "exec", dont_inherit=True)
    assert fault.tests
    for test in fault.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), path
        assert not name or name.partition("[")[0] in _functions(path), test


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_fault_is_killed(name: str) -> None:
    word, output = outcome(BY_NAME[name])
    assert word == KILLED, output


SOURCE = """
class Life:
    def meets(self, other):
        return self.first <= other.last and (
            other.first <= self.last)  # reformatted
"""


def made(old: str, new: str, where: str = "m:Life.meets") -> str:
    return ast.unparse(Fault("f", "", where, old, new, ()).applied(SOURCE))


def test_code_is_found_as_a_tree() -> None:
    assert "self.first < other.last and other.first" in made(
        "self.first <= other.last", "self.first < other.last"
    )
    assert "return self.last <= other.first" in made(
        "_a.first <= _b.last and _b.first <= _a.last", "_a.last <= _b.first"
    )
    assert "return True" in made("", "return True")
    assert "def meets(self, other):\n        pass" in made("return _a and _b", "")


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ("self.first < other.last", "True", "m:Life.meets", "0 times, not once"),
        ("_a <= _b", "_a < _b", "m:Life.meets", "2 times, not once"),
        ("_a and _b", "_a", "m:Life.met", "is there 0 times"),
        ("_a and _b", "nothing", "m:Life.meets", "uses nothing, unknown there"),
        ("", "return True", "m:Life", "only a function has a body"),
    ],
)
def test_a_fault_that_does_not_apply_is_an_error(old: str, new: str, where: str, message: str) -> None:
    with pytest.raises(FaultError, match=message):
        made(old, new, where)
