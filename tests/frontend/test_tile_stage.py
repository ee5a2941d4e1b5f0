"""The `tile` stage of whole kernels, as text; and that each text parses back to an equal function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.frontend import kernels
from tilebench.frontend import trace
from tilebench.ir import Function, Stmt, parse_function, print_function, walk
from tilebench.language import registry

ADD = """\
@T.prim_func
def main(A: T.Tensor((1000, 1200), T.float16), B: T.Tensor((1000, 1200), T.float16), C: T.Tensor((1000, 1200), T.float16)):
    with T.Kernel(10, 16) as (bx, by):
        for i, j in T.Parallel(64, 128):
            C[by * 64 + i, bx * 128 + j] = A[by * 64 + i, bx * 128 + j] + B[by * 64 + i, bx * 128 + j]
"""

GEMM = """\
@T.prim_func
def matmul(A: T.Tensor((1000, 1200), T.float16), B: T.Tensor((1200, 1100), T.float16), C: T.Tensor((1000, 1100), T.float16)):
    with T.Kernel(9, 8, threads=256) as (bx, by):
        A_s = T.alloc_shared((128, 32), T.float16)
        B_s = T.alloc_shared((32, 128), T.float16)
        C_l = T.alloc_fragment((128, 128), T.float32)
        T.fill(C_l, T.float32(0))
        for ko in T.Pipelined(38, num_stages=3):
            T.copy(A[by * 128, ko * 32], A_s)
            T.copy(B[ko * 32, bx * 128], B_s)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * 128, bx * 128])
"""

GLOBAL_GEMM = """\
@T.prim_func
def matmul(A: T.Tensor((1000, 1200), T.float16), B: T.Tensor((1200, 1100), T.float16), C: T.Tensor((1000, 1100), T.float32)):
    with T.Kernel(9, 8) as (bx, by):
        C_l = T.alloc_fragment((128, 128), T.float32)
        T.fill(C_l, T.float32(0))
        rows: T.int32 = by * 128
        for ko in T.Pipelined(38):
            T.gemm(A[rows : rows + 128, ko * 32 : ko * 32 + 32], B[ko * 32 : ko * 32 + 32, bx * 128 : bx * 128 + 128], C_l, policy='full_row')
        T.copy(C_l, C[by * 128, bx * 128])
"""

ROW_SUM = """\
@T.prim_func
def row_sum(X: T.Tensor((1000, 1000), T.float32), Y: T.Tensor((1000,), T.float32)):
    with T.Kernel(32) as bx:
        tile = T.alloc_fragment((32, 96), T.float32)
        total = T.alloc_fragment((32,), T.float32)
        T.fill(total, T.float32(0))
        for k in T.serial(11):
            T.copy(X[bx * 32, k * 96], tile)
            T.reduce_sum(tile, total, clear=False)
        T.copy(total, Y[bx * 32])
"""

SOFTMAX = """\
@T.prim_func
def softmax(X: T.Tensor((1000, 900), T.float16), Y: T.Tensor((1000, 900), T.float16)):
    with T.Kernel(250) as bx:
        x = T.alloc_fragment((4, 900), T.float32)
        top = T.alloc_fragment((4,), T.float32)
        total = T.alloc_fragment((4,), T.float32)
        T.copy(X[bx * 4 : bx * 4 + 4, 0 : 900], x)
        T.reduce_max(x, top)
        for i, j in T.Parallel(4, 900):
            x[i, j] = T.exp2(x[i, j] * T.float32(1.4426950408889634) - top[i] * T.float32(1.4426950408889634))
        T.reduce_sum(x, total)
        for i__2, j__2 in T.Parallel(4, 900):
            x[i__2, j__2] = x[i__2, j__2] / total[i__2]
        T.copy(x, Y[bx * 4 : bx * 4 + 4, 0 : 900])
"""

VARIANTS = """\
@T.prim_func
def main(A: T.Tensor((256, 64), T.float16), B: T.Tensor((256, 64), T.float16), C: T.Tensor((256, 64), T.float16)):
    with T.Kernel(4, threads=64, order=T.Panels(4)) as bx:
        a = T.alloc_shared((64, 64), T.float16, swizzle=True)
        b = T.alloc_shared((64, 64), T.float16)
        T.copy(A[bx * 64, 0], a)
        T.copy(B[bx * 64, 0], b)
        out = T.alloc_fragment((64, 64), T.float32)
        count = T.alloc_var(T.int32, init=0)
        for i, j in T.Parallel(64, 64):
            value: T.float32 = T.cast(a[i, j] * T.float16(1) + b[i, j] * T.float16(0.5), T.float32)
            value__2: T.float32 = -value
            out[i, j] = T.if_then_else(i <= j and j < 60, T.max(value__2, T.float32(0)), T.float32(0))
        for k in T.serial(4, step=2):
            count = count + k
            if count > 1 and bx != 0:
                T.fill(out[0 : 8, 0 : 64], T.float32(1))
            else:
                count = 0
        T.copy(out, C[bx * 64, 0])
"""

BLOCKS = {"block_M": 128, "block_N": 128, "block_K": 32}
CASES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "add": (kernels.add_kernel, {"M": 1000, "N": 1200, "block_M": 64, "block_N": 128}, ADD),
    "gemm": (kernels.gemm_kernel, {"M": 1000, "N": 1100, "K": 1200, **BLOCKS, "threads": 256}, GEMM),
    "global_gemm": (kernels.global_gemm_kernel, {"M": 1000, "N": 1100, "K": 1200, **BLOCKS}, GLOBAL_GEMM),
    "row_sum": (kernels.row_sum_kernel, {"M": 1000, "N": 1000, "block_M": 32, "block_N": 96}, ROW_SUM),
    "softmax": (kernels.softmax_kernel, {"M": 1000, "N": 900, "block_M": 4}, SOFTMAX),
    "variants": (kernels.variants_kernel, {"M": 256, "negate": True}, VARIANTS),
}


def function_of(name: str) -> Function:
    kernel, parameters, _ = CASES[name]
    return trace(kernel, parameters).function


@pytest.mark.parametrize("name", list(CASES))
def test_text(name: str) -> None:
    assert print_function(function_of(name)).text == CASES[name][2]


@pytest.mark.parametrize("name", list(CASES))
def test_text_parses_back(name: str) -> None:
    function = function_of(name)
    assert parse_function(print_function(function).text, registry()) == function


@pytest.mark.parametrize("name", list(CASES))
def test_every_statement_has_the_line_it_comes_from(name: str) -> None:
    function = function_of(name)
    lines = Path(kernels.__file__).read_text(encoding="utf-8").splitlines()
    for node in walk(function):
        if isinstance(node, Stmt):
            assert node.place is not None, node
            assert node.place.file == kernels.__file__
            assert node.place.text == lines[node.place.line - 1]
            assert node.place.text[node.place.column] != " "


def test_static_if_leaves_no_trace() -> None:
    text = print_function(trace(kernels.variants_kernel, {"M": 256}).function).text
    assert text == VARIANTS.replace("            value__2: T.float32 = -value\n", "").replace("value__2", "value")


def test_places_inside_a_helper_name_both_lines() -> None:
    copies = [n for n in walk(function_of("variants")) if isinstance(n, Stmt) and "copy" in type(n).__name__.lower()]
    first, _, last = copies
    assert first.place is not None
    assert last.place is not None
    assert first.place.text.strip() == "T.copy(A[row, 0], a)"
    assert first.place.function == "stage_both"
    assert first.place.user.text.strip() == "a_s, b_s = stage_both(A, B, bx * 64, 64)"
    assert last.place.caller is None


def test_places_of_loads_are_their_own_columns() -> None:
    store = next(n for n in walk(function_of("add")) if type(n).__name__ == "Store")
    loads = [n for n in walk(store) if type(n).__name__ == "Load"]
    texts = [n.place.text[n.place.column : n.place.end_column] for n in loads if n.place is not None]
    assert texts == [
        "A[by * block_M + i, bx * block_N + j]",
        "B[by * block_M + i, bx * block_N + j]",
    ]
