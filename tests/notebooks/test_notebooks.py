"""Every notebook runs from the top without a person, and stays small."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
FOLDER = Path(__file__).resolve().parent.parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# Six benches and a record, one of them with the PTX and the SASS of a matrix product (97 KB).
# Eight outputs, the largest with five stages whole; each alone is held to 300 KB elsewhere.
MOST_BYTES = 440_000
# What others measured is shown there, and nothing is compiled.
NO_BENCHES = {"card"}


def test_there_is_a_quickstart() -> None:
    assert FOLDER / "quickstart.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(path: Path) -> None:
    held = json.loads(path.read_text(encoding="utf-8"))
    assert "widgets" not in held["metadata"]
    for cell in held["cells"]:
        assert not cell.get("outputs"), cell["id"]
        assert cell.get("execution_count") is None, cell["id"]


def executed(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The notebook after its run, as nbclient leaves it. The kernel finds this checkout."""
    from nbclient import NotebookClient

    shutil.copytree(FOLDER / "h200", folder / "h200")
    root = str(FOLDER.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]))
    held = nbformat.read(path, as_version=4)
    client = NotebookClient(
        held, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return held


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_stays_small(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = executed(path, tmp_path, monkeypatch)
    target = tmp_path / path.name
    nbformat.write(held, target)
    assert target.stat().st_size < MOST_BYTES
    assert not held.metadata.get("widgets"), "a run without a person makes no widgets"
    outputs = [out for cell in held.cells if cell.cell_type == "code" for out in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error"]
    benches = [cell for cell in held.cells if cell.source.startswith(("%%tile", "%tile"))]
    assert benches or path.stem in NO_BENCHES
    for cell in benches:
        (bundle,) = [out.data for out in cell.outputs if out.output_type == "display_data"]
        assert "application/vnd.tilebench.record.v1+json" in bundle
        assert "no time" not in bundle["text/plain"]
        if "--check" in cell.source:
            assert "all within their bounds" in bundle["text/plain"] or "all exact" in bundle["text/plain"]
        if "--run" in cell.source:
            assert "Method: " in bundle["text/plain"]
