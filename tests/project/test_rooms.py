"""The order of the rooms: written once for people, once for the linter, and enforced."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tilebench.targets import BUILT_IN

ROOT = Path(__file__).resolve().parent.parent.parent
LINT_IMPORTS = str(Path(sysconfig.get_path("scripts")) / "lint-imports")


def linter_settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]


def layers() -> list[str]:
    """Rooms in the linter's contract, first room first."""
    contract = next(each for each in linter_settings()["contracts"] if each["type"] == "layers")
    assert contract["exhaustive"], "a new room must not escape the contract"
    return [name.strip(" ()") for row in reversed(contract["layers"]) for name in row.split(":")]


def test_contributing_lists_the_rooms_in_the_linters_order() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## The rooms")[2].partition("\n## ")[0]
    headings = [line for line in section.splitlines() if line.startswith("**`")]
    told = [name for line in headings for name in re.findall(r"\*\*`(\w+)`\*\*", line)]
    # Two rooms of one paragraph may stand in either order; the linter decides between them.
    assert sorted(told) == sorted(layers())
    places = {name: at for at, line in enumerate(headings) for name in re.findall(r"\*\*`(\w+)`\*\*", line)}
    order = [places[name] for name in layers()]
    assert order == sorted(order)


def test_every_room_that_is_named_is_there() -> None:
    for name in layers():
        assert any((ROOT / "tilebench" / there).exists() for there in (name, f"{name}.py")), name


def run_linter(folder: Path) -> subprocess.CompletedProcess[str]:
    # The folder in front of the installed package: the linter must see the tree under test.
    code = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as c; c()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("room", "line", "good"),
    [
        ("ir", "from tilebench.machine import x", False),
        ("machine", "from tilebench.ir import x", True),
        ("errors", "def later():\n    from tilebench.kernel import x", False),
        ("ir", "import plotly", False),
        ("workbench", "import plotly", True),
        ("workbench", "def later():\n    from tilebench.targets.cuda import x", False),
        ("kernel", "from tilebench.targets import x", True),
        ("attic", "", False),
    ],
)
def test_the_contracts_catch_a_wrong_import(tmp_path: Path, room: str, line: str, good: bool) -> None:
    """The real contracts over a small tree of all rooms in which one line is added."""
    package = tmp_path / "tilebench"
    for name in {*layers(), room}:
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").write_text("x = 1\n")
    for name in BUILT_IN:
        (package / "targets" / name).mkdir()
        (package / "targets" / name / "__init__.py").write_text("x = 1\n")
    (package / "__init__.py").write_text("")
    (package / room / "added.py").write_text(line + "\n")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    done = run_linter(tmp_path)
    assert (done.returncode == 0) is good, done.stdout + done.stderr


def test_every_room_is_held_apart_from_the_targets() -> None:
    contract = next(each for each in linter_settings()["contracts"] if "manifest" in each["name"])
    rooms = {name for name in layers() if any((ROOT / "tilebench").glob(f"{name}*"))}
    assert {name.removeprefix("tilebench.") for name in contract["source_modules"]} == rooms - {"targets"}
    forbidden = {name.removeprefix("tilebench.targets.") for name in contract["forbidden_modules"]}
    assert forbidden == set(BUILT_IN)


def test_every_folder_of_code_is_a_package() -> None:
    """A folder without `__init__.py` is none to the linter, and nothing in it would be checked."""
    folders = {path.parent for path in (ROOT / "tilebench").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_room_has_tests() -> None:
    rooms = {
        path.stem
        for path in (ROOT / "tilebench").iterdir()
        if path.stem in layers() and (path.suffix == ".py" or any(path.glob("**/*.py")))
    }
    tested = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("**/test_*.py"))}
    # A room that is one file may be tested by `tests/test_room.py` as well.
    tested |= {path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_*.py")}
    assert rooms - tested == set()
