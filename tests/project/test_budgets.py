"""The budget check itself: it counts right, and it can fail."""

from __future__ import annotations

from pathlib import Path

from tests.project import budgets

PYTHON = """
def short():
    return 1


class Holder:
    @property
    def long(self):
        a = 1

        def inner():
            return a

        return inner
"""

SCRIPT = """
// a comment with { an open brace
export function outer(a: string): string[] {
  const text = "}";
  if (a) {
    return [text];
  }
  return [];
}
const data = {
  key: 1
};
const arrow = (x: number) => {
  return x;
};
"""


def test_python_functions_are_counted_with_their_inner_ones() -> None:
    assert dict(budgets.python_functions(PYTHON)) == {
        "short": 2,
        "Holder.long": 7,
        "Holder.long.inner": 2,
    }


def test_script_blocks_are_counted_without_strings_comments_and_objects() -> None:
    assert sorted(budgets.script_functions(SCRIPT)) == [
        ("block at line 13", 3),
        ("block at line 3", 7),
        ("block at line 5", 3),
    ]


def test_a_file_and_a_function_over_budget_are_found(tmp_path: Path) -> None:
    body = "".join(f"    a{n} = {n}\n" for n in range(50))
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "big.py").write_text("x = 1\n" * 401)
    (tmp_path / "room" / "long.py").write_text("def f():\n" + body)
    (tmp_path / "room" / "fits.py").write_text("def g():\n" + body[: body.rindex("    a49")])
    sizes = budgets.measure(tmp_path, ("room",))
    assert budgets.complaints(sizes, {}) == [
        "room/big.py: 401 lines, allowed are 400",
        "room/long.py:f: 51 lines, allowed are 50",
    ]
    allowed = {"room/big.py": (401, "a table"), "room/long.py:f": (51, "one state machine")}
    assert budgets.complaints(sizes, allowed) == []


def test_an_exception_needs_a_reason_and_a_need() -> None:
    sizes = [budgets.Size("a.py", 401, 400), budgets.Size("b.py", 10, 400)]
    assert len(budgets.complaints(sizes, {"a.py": (500, " "), "b.py": (500, "was long once")})) == 3


def test_the_tree_keeps_its_budgets() -> None:
    sizes = budgets.measure(budgets.ROOT)
    assert budgets.complaints(sizes) == []
    assert budgets.typical_complaints(sizes) == []


def test_what_is_typical_is_the_median_file_and_nine_of_ten_functions() -> None:
    files = [budgets.Size(f"tilebench/{n}.py", lines, 400) for n, lines in enumerate((10, 160, 390))]
    functions = [budgets.Size(f"tilebench/0.py:{n}", n, 50) for n in range(1, 32)]
    beside = [budgets.Size("extension/src/a.ts", 5, 400)]
    assert budgets.typical([*files, *functions, *beside]) == (160, 28)
    assert budgets.typical_complaints([*files, *functions, *beside]) == [
        "the median file is 160 lines, it stays under 160",
        "the 90th percentile of functions is 28 lines, it stays under 25",
    ]
    assert budgets.typical_complaints([files[0], *functions[:24]]) == []
