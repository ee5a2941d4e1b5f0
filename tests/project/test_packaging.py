"""What is promised to installers: extras, entry points, and what a wheel carries."""

from __future__ import annotations

import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tilebench.errors import DISTRIBUTION

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_entry_point_leads_to_something(project: dict[str, Any]) -> None:
    import importlib

    named = {**project["scripts"], **project["entry-points"]["pygments.lexers"]}
    named |= project["entry-points"]["tilebench.targets"]
    for target in named.values():
        module, _, attribute = target.partition(":")
        assert hasattr(importlib.import_module(module), attribute), target


def test_nvidia_packages_are_not_installed_where_they_are_empty(project: dict[str, Any]) -> None:
    """On macOS the index has a placeholder without content: it must not be asked for there."""
    from packaging.requirements import Requirement

    extras = project["optional-dependencies"]
    for line in [*extras["cuda"], *extras["gpu"], *extras["gpu12"]]:
        requirement = Requirement(line)
        if requirement.name != DISTRIBUTION:
            assert requirement.marker is not None, line
            assert not requirement.marker.evaluate({"sys_platform": "darwin"}), line
            assert requirement.marker.evaluate({"sys_platform": "linux"}), line


def test_the_name_is_the_distributions_everywhere(project: dict[str, Any]) -> None:
    """`tilebench` in the public index is another project: nothing may ask for it, extras of ours neither."""
    from packaging.requirements import Requirement

    assert project["name"] == DISTRIBUTION
    toy = tomllib.loads((ROOT / "tests" / "toy_plugin" / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    every = [*project["dependencies"], *toy["dependencies"]]
    every += [line for lines in project["optional-dependencies"].values() for line in lines]
    names = {Requirement(line).name for line in every}
    assert "tilebench" not in names
    assert DISTRIBUTION in names
    asks = re.compile(r"pip install[^`\n&]*?(?<![\w/.-])(?<!folder of )tilebench(?![-\w])")
    texts = [path for kind in ("*.py", "*.md", "*.txt", "*.yml", "*.ipynb") for path in ROOT.rglob(kind)]
    for path in texts:
        if not {"node_modules", ".venv", ".git"} & set(path.parts) and path != Path(__file__):
            assert asks.search(path.read_text(encoding="utf-8")) is None, path


def test_the_extension_has_the_version_of_the_package(project: dict[str, Any]) -> None:
    text = (ROOT / "extension" / "package.json").read_text(encoding="utf-8")
    assert re.search(r'"version": "(.*)"', text)[1] == project["version"]  # type: ignore[index]


def build_wheel(root: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names in the wheel of `root`, built in process by the backend itself: no network."""
    from hatchling.build import build_wheel as build

    monkeypatch.chdir(root)
    with zipfile.ZipFile(out / build(str(out))) as archive:
        return archive.namelist()


@pytest.mark.parametrize("built", [False, True])
def test_a_wheel_carries_the_extension_exactly_when_it_is_built(
    built: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "tree"
    (root / "extension").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore", "extension/hatch_build.py"):
        (root / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (root / "tilebench").mkdir()
    (root / "tilebench" / "__init__.py").write_text("")
    (root / "tilebench" / "card.toml").write_text("")
    (root / "notebooks").mkdir()
    (root / "notebooks" / "quickstart.ipynb").write_text("{}")
    if built:
        (root / "tilebench" / "labextension" / "static").mkdir(parents=True)
        (root / "tilebench" / "labextension" / "package.json").write_text("{}")
        (root / "tilebench" / "labextension" / "static" / "style.js").write_text("")
    names = build_wheel(root, tmp_path, monkeypatch)
    data = "tilebench_kernels-0.1.0.data/data/share/jupyter/labextensions/@tilebench/jupyterlab/"
    held = {name.removeprefix(data) for name in names if name.startswith(data)}
    assert held == ({"package.json", "static/style.js"} if built else set())
    inside = {"tilebench/__init__.py", "tilebench/card.toml", "tilebench/notebooks/quickstart.ipynb"}
    assert inside <= set(names)
    assert not any(name.startswith(("tilebench/labextension", "extension")) for name in names)
