"""What a front end gets of a real kernel: completions and documentation, by the messages of Jupyter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel")

CELL = "%%tile --sweep {}\n@tilebench.jit\ndef gemm(M, block_M: tilebench.Knob(64, 128) = 64):\n    T.cop\n"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from jupyter_client.manager import start_new_kernel

    root = Path(__file__).resolve().parent.parent.parent
    manager, made = start_new_kernel(cwd=str(root), startup_timeout=60)
    made.execute_interactive("import tilebench, tilebench.language as T\n%load_ext tilebench", timeout=60)
    yield made
    made.stop_channels()
    manager.shutdown_kernel(now=True)


def completed(client: Any, text: str, at: int) -> tuple[list[str], dict[str, Any]]:
    """The texts that the cell would have, and the reply."""
    reply = client.complete(text, at, reply=True, timeout=30)["content"]
    start, end = reply["cursor_start"], reply["cursor_end"]
    return [text[:start] + match + text[end:] for match in reply["matches"]], reply


def test_options_parameters_and_values(client: Any) -> None:
    text = CELL.format("bl")
    found, reply = completed(client, text, text.index("\n"))
    assert found == [CELL.format("block_M=")]
    assert reply["metadata"]["_jupyter_types_experimental"][0]["type"] == "parameter"
    text = CELL.format("block_M=")
    found, _ = completed(client, text, text.index("\n"))
    assert found[0] == CELL.format("block_M=64,128")


def test_names_of_the_language_with_their_signatures(client: Any) -> None:
    text = CELL.format("block_M=64")
    _, reply = completed(client, text, len(text) - 1)
    (copy,) = [t for t in reply["metadata"]["_jupyter_types_experimental"] if t["text"] == "copy"]
    assert copy["signature"].startswith("(src: Tile | Value, dst: Tile")
    assert not [match for match in reply["matches"] if match.startswith("_")]


def test_shift_tab_shows_signature_and_documentation(client: Any) -> None:
    content = client.inspect("T.copy(", 7, reply=True, timeout=30)["content"]
    said = content["data"]["text/plain"]
    assert content["found"]
    assert "src: Tile | Value" in said
    assert "Move a tile" in said
    assert "Tested on: reference, cpu, simulator, sm_80, sm_90a." in said
    assert "object" not in said
