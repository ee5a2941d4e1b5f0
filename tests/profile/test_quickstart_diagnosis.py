"""The quickstart's own kernels, tuned for problems that fill a card: none of the causes is said of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tilebench
import tilebench.language as T
from tilebench.errors import remember_source

CARD = "cuda:sm_90a"
TUNED: dict[str, dict[str, int]] = {
    "add_kernel": {"M": 8192, "N": 8192, "block_M": 8, "block_N": 512},
    "gemm": {"M": 4096, "N": 4096, "K": 4096, "block_M": 128, "block_N": 128, "num_stages": 3},
    "gemm_regions": {"M": 4096, "N": 4096, "K": 4096, "block_M": 128, "block_N": 128},
    "row_sum": {"M": 65536, "N": 8192, "block_M": 4, "block_N": 2048},
    "softmax": {"M": 65536, "N": 2048, "block_M": 4},
}


@cache
def kernels() -> dict[str, Any]:
    """The kernel functions of the notebook's cells."""
    book = json.loads((Path(__file__).parents[2] / "notebooks" / "quickstart.ipynb").read_text("utf-8"))
    found: dict[str, Any] = {"tilebench": tilebench, "T": T, "__name__": "quickstart"}
    for number, cell in enumerate(book["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and "@tilebench.jit" in text:
            text = text.partition("\n")[2] if text.startswith("%%tile") else text
            remember_source(f"quickstart {number}", text)
            exec(compile(text, f"quickstart {number}", "exec"), found)
    return found


def test_every_kernel_of_the_notebook_is_here() -> None:
    made = {name for name, value in kernels().items() if type(value).__name__ == "KernelFunction"}
    assert made <= set(TUNED) or not made


@pytest.mark.parametrize("name", TUNED)
def test_a_tuned_kernel_has_no_cause(name: str) -> None:
    schedule = tilebench.Schedule.of(loop={"ko": {"num_stages": 3}}) if name == "gemm_regions" else None
    kernel = kernels()[name].using(target=CARD, schedule=schedule)(**TUNED[name])
    diagnosis = kernel.diagnose()
    assert [str(found) for found in diagnosis.findings] == []
    assert diagnosis.bound == ("compute" if name.startswith("gemm") else "memory")
