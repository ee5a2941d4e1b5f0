"""`tilebench doctor`: what this machine has, and what is missing, with the command that mends it."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from . import Parser

GOOD, WARN, BAD = "ok", "--", "!!"
# Extras whose lack is no fault of the installation: each opens one more part.
_FOR = {
    "lab": "notebooks", "cuda": "PTX, SASS and registers, without a GPU", "gpu": "running on a card",
    "test": "the tests",
}  # fmt: skip


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
    for title, part in _PARTS:
        report.title(title)
        try:
            part(report)
        except Exception as error:  # one part that fails must not hide the others
            report.add(BAD, title.lower(), f"could not be looked at: {type(error).__name__}: {error}")
    print("\n".join(report.lines))
    return 1 if report.bad else 0


def _install(extra: str) -> str:
    """The command that installs an extra: from the sources, as the index has another project of the name."""
    return f'pip install ".[{extra}]" in the folder of tilebench' if extra else "pip install . in its folder"


def _python(report: Report) -> None:
    from .. import __version__

    report.add(GOOD, "tilebench", f"{__version__} in {Path(__file__).resolve().parent.parent}")
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
        lines = metadata.requires("tilebench") or []
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
    held = requirements()
    for extra in ("", "lab", "cuda", "gpu", "test"):
        names = [
            re.split(r"[\s<>=!~;\[(]", line, maxsplit=1)[0] for line in held.get(extra, ()) if _applies(line)
        ]
        names = [each for each in dict.fromkeys(names) if each != "tilebench"]
        if extra and not names:
            if held.get(extra):
                report.add(WARN, f"extra {extra}", "has no packages for this system")
            continue
        have = {name: _version(name) for name in names}
        missing = [name for name, version in have.items() if not version]
        text = ", ".join(f"{name} {version}" for name, version in have.items() if version)
        if not missing:
            report.add(GOOD, f"extra {extra}" if extra else "required", text)
            continue
        command = _install(extra)
        mark = WARN if extra else BAD
        why = f"for {_FOR[extra]}: " if extra else ""
        report.add(
            mark, f"extra {extra}" if extra else "required", f"missing {', '.join(missing)}; {why}{command}"
        )
        if text:
            report.lines.append(f"{'':26}present: {text}")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _processor(report: Report) -> None:
    from ..profile.environment import allowed_cores, cpu_model
    from ..targets import manifest

    can, why = manifest("cpu").available()
    machine = manifest("cpu").describe(None)
    report.add(GOOD if can else BAD, "cpu", cpu_model() + (f"; {why}" if why else ""))
    features = ", ".join(sorted(machine.features)) or "none of note"
    report.add(GOOD, "code for", f"{machine.name}: {features}")
    report.add(GOOD, "cores", str(allowed_cores()))


def _compiler(report: Report) -> None:
    from ..errors import TileError
    from ..targets.cuda.nvrtc import nvrtc_version, supported_archs
    from ..targets.cuda.sass import find_nvdisasm

    try:
        major, minor = nvrtc_version()
        report.add(GOOD, "NVRTC", f"{major}.{minor}, {', '.join(supported_archs())}")
    except TileError as error:
        report.add(WARN, "NVRTC", f"{error.message}; PTX and registers: {_install('cuda')}")
    found = find_nvdisasm()
    if found:
        report.add(GOOD, "nvdisasm", found)
    else:
        report.add(WARN, "nvdisasm", f"not found; SASS: {_install('cuda')}")


def _card(report: Report) -> None:
    from ..errors import TileError
    from ..targets.cuda.driver import Device, available, compiler_major, device_count, driver, too_old

    try:
        held = driver()
    except TileError as error:
        report.add(WARN, "driver", f"{error.message}; kernels run on the processor")
        return
    old = too_old(held.version, compiler_major())
    text = f"good for CUDA {held.version[0]}.{held.version[1]}"
    report.add(BAD if old else GOOD, "driver", f"{old}; or {_install('gpu12')}" if old else text)
    for ordinal in range(device_count()):
        device = Device(ordinal)
        memory = device.total_bytes / 2**30
        report.add(
            GOOD,
            f"GPU {ordinal}",
            f"{device.name}, sm_{device.capability[0]}{device.capability[1]}, {memory:.0f} GiB",
        )
    can, why = available()
    if not can and not old:
        report.add(WARN, "running on a GPU", why)


def _files(report: Report) -> None:
    from .. import settings
    from ..runtime.cache import default_cache

    cache = default_cache()
    root = cache.root
    if not settings.cache():
        report.add(WARN, "cache", "off (TILEBENCH_CACHE); every process compiles anew")
    elif root is None:
        report.add(BAD, "cache", f"{settings.cache_dir()} cannot be written; set TILEBENCH_CACHE_DIR")
    else:
        limit = cache.limit_bytes / 2**20
        report.add(GOOD, "cache", f"{root}, {cache.size_bytes() / 2**20:.1f} of {limit:.0f} MB")
    folder = extension_folder()
    report.add(
        GOOD if folder else WARN, "Lab extension",
        str(folder) if folder else "not installed; notebooks work without (`npm run build` in extension/)",
    )  # fmt: skip
    changed = [f"{each.name}={each()}" for each in settings.all_settings() if each() != each.default]
    report.add(GOOD, "settings", ", ".join(changed) or "all as they come")


def extension_folder() -> Path | None:
    """Where JupyterLab finds our extension, or None. Looks where Jupyter does, without importing it all."""
    if importlib.util.find_spec("jupyter_core") is None:
        return None
    paths: Any = importlib.import_module("jupyter_core.paths")
    folders: list[str] = paths.jupyter_path("labextensions")
    every = (Path(each) / "@tilebench" / "jupyterlab" / "package.json" for each in folders)
    return next((each.parent for each in every if each.is_file()), None)


_PARTS: tuple[tuple[str, Callable[[Report], None]], ...] = (
    ("Python", _python), ("Packages", _packages), ("Processor", _processor), ("CUDA compiler", _compiler),
    ("GPU", _card), ("Files", _files),
)  # fmt: skip
