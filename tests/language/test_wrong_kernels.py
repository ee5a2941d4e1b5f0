"""Kernels that are wrong, each with all that its writer is told: `wrong_kernels.txt`.

A case is a title, the statements of the kernel's one block, and behind `->` the message. A changed message is
read there as a user would read it; `--update-golden` writes what is said now.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from tests.frontend.cell import run_cell
from tilebench.errors import TileError

HEAD = """\
import math
import numpy as np
import tilebench
import tilebench.language as T

@tilebench.jit
def kernel():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as b0:
"""
FILE = Path(__file__).with_name("wrong_kernels.txt")


def _cases() -> dict[str, tuple[str, str]]:
    """The body and the message of each, by title."""
    out: dict[str, tuple[str, str]] = {}
    for part in FILE.read_text().split("=== ")[1:]:
        title, _, rest = part.partition("\n")
        body, _, message = rest.partition("\n->\n")
        assert title not in out, title
        out[title] = body.strip("\n"), message.strip("\n")
    return out


CASES = _cases()


def _said(body: str) -> str:
    """The message, as `kernel` for the card that most people have."""
    text = f"{HEAD}{indent(body, ' ' * 12)}\n    return main\n"
    try:
        run_cell(text, "kernel")["kernel"].using(target="cuda:sm_80")().stage("cuda")
    except TileError as error:
        return str(error)
    return "it compiles"


def test_every_wrong_kernel_is_refused_in_these_words(request: pytest.FixtureRequest) -> None:
    said = {title: _said(body) for title, (body, _) in CASES.items()}
    if request.config.getoption("--update-golden"):
        FILE.write_text(
            "\n".join(f"=== {title}\n{body}\n->\n{said[title]}\n" for title, (body, _) in CASES.items())
        )
        return
    assert said == {title: message for title, (_, message) in CASES.items()}


def test_there_are_many_kinds_of_wrong_kernel() -> None:
    assert len(CASES) >= 90
    assert all(message.partition(":")[0].endswith(" error") for _, message in CASES.values())
