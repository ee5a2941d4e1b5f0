"""Installing the toy package for some tests, without a network and without touching the environment.

What pip leaves of an installed package for others to find is a folder `NAME-VERSION.dist-info` on the
path; it is written here from the package's own `pyproject.toml`.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tilebench import targets
from tilebench.language import extensions
from tilebench.targets import Manifest

PACKAGE = Path(__file__).parent


def write_metadata(folder: Path) -> None:
    """The package's `dist-info` in `folder`."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
    (info / "METADATA").write_text(head, encoding="utf-8")
    lines: list[str] = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in points.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


def forget() -> None:
    """What was found of plug-ins is looked for again."""
    importlib.invalidate_caches()
    targets._plug_ins.cache_clear()
    targets.manifest.cache_clear()
    extensions.extensions.cache_clear()


@contextmanager
def installed(folder: Path) -> Iterator[Manifest]:
    """The toy target, found by its entry point here and in processes that start meanwhile."""
    write_metadata(folder)
    with pytest.MonkeyPatch.context() as patch:
        for path in (PACKAGE, folder):
            patch.setattr(sys, "path", [str(path), *sys.path])
            patch.setenv("PYTHONPATH", str(path), prepend=":" if sys.platform != "win32" else ";")
        forget()
        try:
            yield targets.manifest("toy")
        finally:
            patch.undo()
            forget()
