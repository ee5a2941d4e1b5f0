"""`tilebench lab` and `tilebench demo`: the quickstart in JupyterLab, and without it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import Parser, whole


def lab(parser: Parser, words: list[str]) -> int:
    """Open JupyterLab with a copy of the quickstart in the working folder; an existing copy is kept."""
    parser.add_argument(
        "--dir", default=".", help="folder to work in; the quickstart is copied there if it is not there"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="do not open a browser; the address is printed"
    )
    parser.add_argument("--port", type=whole(1, 65535), help="port of the server")
    options = parser.parse_all(words)
    need_lab()
    folder = Path(options.dir)
    target = copy_quickstart(folder)
    # The printed address is the notebook's too: without a browser it is what people follow.
    command = [sys.executable, "-m", "jupyterlab", str(target)]
    command += [f"--LabApp.default_url=/lab/tree/{target.name}"]
    command += ["--no-browser"] * options.no_browser
    command += [f"--port={options.port}"] if options.port else []
    if is_root():
        # Most containers have no other user, and the first command has to work there as it stands.
        print("running as root: JupyterLab is told to allow it; it listens on this machine alone")
        command += ["--allow-root", "--ip=127.0.0.1"]
    return become(command)


def become(command: list[str]) -> int:
    """Be that program from here on, so that every signal to this process ends JupyterLab as it wishes."""
    if os.name == "posix":  # elsewhere `exec` starts another process and ends this one
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(command[0], command)
    return subprocess.call(command)


def is_root() -> bool:
    """Whether this user is the one that JupyterLab refuses to start for."""
    return getattr(os, "geteuid", lambda: 1)() == 0


def need_lab() -> None:
    """Raise `OptionError`, with the command that mends it, when JupyterLab or ipywidgets is missing."""
    from ..errors import OptionError, install_command

    missing = [
        name for name in ("jupyterlab", "ipywidgets", "anywidget") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise OptionError(
            "{names} missing", names=" and ".join(missing) + (" is" if len(missing) == 1 else " are"),
            hint=install_command("lab"),
        )  # fmt: skip


def copy_quickstart(folder: Path) -> Path:
    """The quickstart in `folder`; copied if it is not there. `OptionError` when there is no such folder."""
    from ..errors import OptionError
    from ..workbench.demo import find_notebook

    if not folder.is_dir():
        raise OptionError("there is no folder {folder}", folder=folder)
    source = find_notebook()
    target = folder / source.name
    if not target.exists():
        shutil.copyfile(source, target)
    return target


def demo(parser: Parser, words: list[str]) -> int:
    """Run the quickstart without a browser; write one HTML report."""
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the HTML file to write")
    parser.add_argument("--notebook", type=Path, help="another notebook to run")
    options = parser.parse_all(words)
    from ..workbench.demo import run_demo

    return run_demo(options.out, options.notebook)
