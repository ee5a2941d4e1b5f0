"""Kernels written as text and run as a notebook runs a cell."""

from __future__ import annotations

import textwrap
from typing import Any

from tilebench.errors import TileError, remember_source
from tilebench.frontend import Traced, trace
from tilebench.ir import parse_function, print_function
from tilebench.language import registry

HEAD = """\
import tilebench.language as T

def kernel(M=256, N=256, flag=True):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float32"), I: T.Tensor((M,), "int32")):
        with T.Kernel(4, 2, threads=64) as (bx, by):
"""


def run_cell(text: str, name: str = "cell") -> dict[str, Any]:
    """The names that a cell defines."""
    remember_source(name, text)
    space: dict[str, Any] = {"__name__": "__main__"}
    # Else this file's own `from __future__ import annotations` would act on the cell.
    exec(compile(text, name, "exec", dont_inherit=True), space)
    return space


def trace_body(body: str, before: str = "", **parameters: Any) -> Traced:
    """The kernel whose `with T.Kernel` block is `body`; `before` stands at the top of the cell."""
    text = (
        before + HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 12) + "\n    return main\n"
    )
    return trace(run_cell(text)["kernel"], parameters)


def stage(body: str, before: str = "", **parameters: Any) -> str:
    """The printed statements of the block, which are also parsed back and compared."""
    function = trace_body(body, before, **parameters).function
    text = print_function(function).text
    assert parse_function(text, registry()) == function
    return textwrap.dedent("\n".join(text.splitlines()[3:])) + "\n"


def refused(body: str, before: str = "") -> TileError:
    """The error that a block gives."""
    try:
        trace_body(body, before)
    except TileError as error:
        return error
    raise AssertionError("this should have been refused")
