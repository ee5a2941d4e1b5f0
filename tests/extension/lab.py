"""A real JupyterLab in a real browser, with nothing of the user's configuration."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

# `--no-sandbox` because CI is root; the rest keeps Chromium from talking to anybody but the server.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

_COUNTS = """window.jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === 'code' && cell.model.sharedModel.getSource().trim())
    .map(cell => cell.model.executionCount !== null)"""
RAN_ALL = _COUNTS + ".every(ran => ran)"
RAN_ANY = _COUNTS + ".some(ran => ran)"

QUIET = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(home: Path, labextensions: Path | None) -> dict[str, str]:
    """The server's environment: all of Jupyter's and IPython's folders are below `home`."""
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(QUIET))
    held = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    if labextensions is not None:
        held["JUPYTER_PATH"] = str(labextensions.parent)
    return held


@contextmanager
def lab_server(
    root: Path, home: Path, labextensions: Path | None = None, app: str = "jupyterlab"
) -> Iterator[str]:
    """Serve `root`; yields the address. `labextensions` is a folder of prebuilt extensions.

    `app` is `jupyterlab` or `notebook` (Notebook 7).
    """
    words = [sys.executable, "-m", app, "--no-browser", "--allow-root", "--ip=127.0.0.1"]
    words += ["--ServerApp.port_retries=0", "--IdentityProvider.token="]
    words += [f"--ServerApp.root_dir={root}", "--LabApp.expose_app_in_browser=True"]
    words += ["--JupyterNotebookApp.expose_app_in_browser=True"] if app == "notebook" else []
    home.mkdir(parents=True, exist_ok=True)
    log = home / "server.log"
    with log.open("w") as out:
        server, address = _started(words, environment(home, labextensions), out, log)
        try:
            yield address
        finally:
            _end(server)


def _started(
    words: Sequence[str], env: dict[str, str], out: IO[str], log: Path
) -> tuple[subprocess.Popen[bytes], str]:
    """A server that answers, and where. Somebody may take the free port first: then another is tried."""
    for _ in range(5):
        port = free_port()
        server = subprocess.Popen(
            [*words, f"--port={port}"], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        address = f"http://127.0.0.1:{port}"
        if _answers(address, server):
            return server, address
        _end(server)
    raise RuntimeError("the server did not start:\n" + log.read_text())


def _answers(address: str, server: subprocess.Popen[bytes], seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(address + "/api", timeout=5):
                return server.poll() is None  # and not another's server on the same port
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    return False


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(30)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@contextmanager
def browser_page(chromium: str) -> Iterator[Any]:
    """A page of 1400 by 1000 pixels; errors of the page's console are in `page.console_errors`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        try:
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(60_000)
            errors: list[str] = []
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
            page.console_errors = errors  # type: ignore[attr-defined]
            yield page
        finally:
            browser.close()


def becomes(page: Any, read: Callable[[], Any], expected: Any, seconds: float = 60.0) -> None:
    """Wait until `read()` gives what is expected: a page draws when the machine has time for it."""
    end = time.monotonic() + seconds
    while (found := read()) != expected and time.monotonic() < end:
        page.wait_for_timeout(20)
    assert found == expected


def drawn(page: Any) -> None:
    """Wait until the browser has drawn what was asked for before."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """A notebook of code cells for this Python."""
    import nbformat

    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = [nbformat.v4.new_code_cell(text) for text in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": spec}), path)


def open_notebook(page: Any, address: str, name: str, under: str = "lab/tree") -> None:
    """Open a notebook and wait until its kernel answers. Notebook 7 has them `under` notebooks."""
    page.goto(f"{address}/{under}/{name}")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    # A command sent before the kernel is connected is lost, hence the waiting inside the page.
    page.wait_for_function("window.jupyterapp && window.jupyterapp.shell.currentWidget?.sessionContext")
    page.evaluate(
        """async () => {
            const panel = window.jupyterapp.shell.currentWidget;
            await panel.context.ready;
            await panel.revealed;
            await panel.sessionContext.ready;
            await panel.sessionContext.session.kernel.info;
        }"""
    )


def run_all(page: Any, seconds: float = 180.0) -> None:
    """Run every cell; returns when each has its number. A run that did not start is asked for again."""
    from playwright.sync_api import TimeoutError as Late

    for _ in range(3):
        page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        with contextlib.suppress(Late):
            page.wait_for_function(RAN_ANY, timeout=30_000)
            break
    else:
        raise AssertionError("no cell of the notebook ran")
    page.wait_for_function(RAN_ALL, timeout=seconds * 1000)
