"""A notebook run from the top in a real JupyterLab, with this checkout's package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.extension.lab import RAN_ALL, browser_page, lab_server, open_notebook, write_notebook

ROOT = Path(__file__).resolve().parent.parent.parent
FIRST = "import tilebench\nimport tilebench.language as T\n%load_ext tilebench"


@contextmanager
def run_notebook(chromium: str, folders: pytest.TempPathFactory, cells: Sequence[str]) -> Iterator[Any]:
    """The page of a notebook whose cells, behind one that loads the magic, have all been run."""
    root = folders.mktemp("work")
    write_notebook(root / "notebook.ipynb", (FIRST, *cells))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("TILEBENCH_VERIFY", raising=False)
        with lab_server(root, folders.mktemp("home")) as address, browser_page(chromium) as opened:
            opened.set_viewport_size({"width": 1600, "height": 1000})
            open_notebook(opened, address, "notebook.ipynb")
            opened.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
            opened.wait_for_function(RAN_ALL, timeout=180_000)
            yield opened
