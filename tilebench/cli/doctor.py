"""`tilebench doctor`: what this machine has, and what is missing, with the command that mends it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DISTRIBUTION, install_command
from . import Parser

if TYPE_CHECKING:
    from ..targets.presentation import Finding

EXTENSION = "To have it: `npm ci && npm run build` in extension/, then `pip install .` in the folder above"
GOOD, WARN, BAD = "ok", "--", "!!"
# Our own extras; each target tells of those that it needs. Their lack is no fault of the installation.
_EXTRAS = {"lab": "notebooks", "test": "the tests"}
_MARKS = {"good": GOOD, "missing": WARN, "broken": BAD}


class Report:
    """Lines with a mark in front; `bad` counts what keeps something from working."""

    def __init__(self) -> None:
        self.bad = 0
        self.lines: list[str] = []

    def add(self, mark: str, name: str, text: str) -> None:
        self.bad += mark == BAD
        self.lines.append(f"[{mark}] {name:<20} {text}")

    def title(self, text: str) -> None:
        self.lines.append(f"\n{text}" if self.lines else text)


def doctor(parser: Parser, words: list[str]) -> int:
    """Print the report. 1 when something that is installed does not work."""
    parser.parse_all(words)
    report = Report()
    for title, part in (*_PARTS, *_target_parts(), ("Files", _files)):
        report.title(title)
        try:
            part(report)
        except Exception as error:  # one part that fails must not hide the others
            report.add(BAD, title.lower(), f"could not be looked at: {type(error).__name__}: {error}")
    print("\n".join(report.lines))
    return 1 if report.bad else 0


def _python(report: Report) -> None:
    from .. import __version__

    known = f"installed as {DISTRIBUTION}" if _version(DISTRIBUTION) else "not installed, a checkout"
    report.add(GOOD, "tilebench", f"{__version__} in {Path(__file__).resolve().parent.parent}, {known}")
    version = platform.python_version()
    good = sys.version_info >= (3, 11)
    report.add(
        GOOD if good else BAD,
        "python",
        f"{version}, {sys.executable}" + ("" if good else "; 3.11 is the oldest"),
    )
    report.add(GOOD, "system", platform.platform())


def requirements() -> dict[str, list[str]]:
    """The requirements of the installed package by extra (`""`: always), as its metadata has them.

    A checkout that is not installed has no metadata: then its `pyproject.toml` is read.
    """
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return _from_checkout()
    out: dict[str, list[str]] = {}
    for line in lines:
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", line)
        out.setdefault(extra[1] if extra else "", []).append(line)
    return out


def _from_checkout() -> dict[str, list[str]]:
    import tomllib

    path = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
    if not path.is_file():
        return {}
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def _applies(line: str) -> bool:
    """Whether a requirement counts on this system."""
    wanted = re.findall(r"sys_platform\s*==\s*['\"](\w+)['\"]", line)
    return not wanted or sys.platform in wanted


def _packages(report: Report) -> None:
    lines = requirements()
    _extra(report, "", "", lines.get("", []))
    for extra, purpose in extras().items():
        _extra(report, extra, purpose, lines.get(extra, []))


def extras() -> dict[str, str]:
    """The extras of the package with what each is for: ours, and those of the targets."""
    from ..targets import manifest, names

    found = dict(_EXTRAS)
    for name in names():
        found.update(manifest(name).presentation.extras)
    return found


def _extra(report: Report, extra: str, purpose: str, lines: list[str]) -> None:
    """One line for an extra (`""`: what is always required): what is there, and what is missing."""
    title = f"extra {extra}" if extra else "required"
    names = [re.split(r"[\s<>=!~;\[(]", line, maxsplit=1)[0] for line in lines if _applies(line)]
    versions = {name: _version(name) for name in dict.fromkeys(names) if name != DISTRIBUTION}
    if extra and not versions:
        if lines:
            report.add(WARN, title, "has no packages for this system")
        return
    missing = [name for name, version in versions.items() if not version]
    present = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    if not missing:
        report.add(GOOD, title, present)
        return
    why = f"for {purpose}: " if purpose else ""
    report.add(WARN if extra else BAD, title, f"missing {', '.join(missing)}; {why}{install_command(extra)}")
    if present:
        report.lines.append(f"{'':26}present: {present}")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _processor(report: Report) -> None:
    from ..profile.environment import allowed_cores, processor_name

    report.add(GOOD, "processor", processor_name())
    report.add(GOOD, "cores", str(allowed_cores()))


def _target_parts() -> list[tuple[str, Callable[[Report], None]]]:
    """A part for each thing that a target looks at."""
    from ..targets import manifest, names

    return [
        (title, lambda report, look=look: _findings(report, look()))
        for name in names()
        for title, look in manifest(name).presentation.checks
    ]


def _findings(report: Report, findings: Iterable[Finding]) -> None:
    for found in findings:
        command = f": {install_command(found.extra)}" if found.extra else ""
        report.add(_MARKS[found.state], found.name, found.text + command)


def _files(report: Report) -> None:
    from .. import settings
    from ..runtime.cache import default_cache

    cache = default_cache()
    root = cache.root
    if not settings.cache():
        report.add(WARN, "cache", "off (TILEBENCH_CACHE); every process compiles anew")
    elif root is None or not _can_write(root):
        report.add(BAD, "cache", f"{settings.cache_dir()} cannot be written; set TILEBENCH_CACHE_DIR")
    else:
        limit = cache.limit_bytes / 2**20
        report.add(GOOD, "cache", f"{root}, {cache.size_bytes() / 2**20:.1f} of {limit:.0f} MB")
    folder = extension_folder()
    report.add(
        GOOD if folder else WARN, "Lab extension",
        str(folder) if folder else f"not installed; notebooks work without it. {EXTENSION}",
    )  # fmt: skip
    changed = [
        f"{setting.name}={setting()}" for setting in settings.all_settings() if setting() != setting.default
    ]
    report.add(GOOD, "settings", ", ".join(changed) or "all as they come")


def _can_write(folder: Path) -> bool:
    """Whether files can be made in a folder, or it itself where it is not there yet."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def extension_folder() -> Path | None:
    """Where JupyterLab finds our extension, or None. Looks where Jupyter does, without importing it all."""
    if importlib.util.find_spec("jupyter_core") is None:
        return None
    paths: Any = importlib.import_module("jupyter_core.paths")
    folders: list[str] = paths.jupyter_path("labextensions")
    every = (Path(path) / "@tilebench" / "jupyterlab" / "package.json" for path in folders)
    return next((path.parent for path in every if path.is_file()), None)


_PARTS: tuple[tuple[str, Callable[[Report], None]], ...] = (
    ("Python", _python), ("Packages", _packages), ("Processor", _processor),
)  # fmt: skip
