"""Gemms on parts of tiles and on regions that leave their arrays, against the reference."""

from __future__ import annotations

from typing import Any

import pytest

import tilebench
import tilebench.language as T
from tests.targets.cpu.test_cpu_kernels import ISAS, checked
from tilebench.targets.cpu.loops.words import ColumnPanels
from tilebench.targets.cpu.machine import named_isa
from tilebench.targets.cpu.microkernel.gemm import panel_width

M, N, K = 25, 64, 17


def wider(shape: tuple[int, int], dim: int, cut: int = 0) -> tuple[int, int]:
    """Twice as long in one dimension, and `cut` shorter than that."""
    return (2 * shape[0] - cut, shape[1]) if dim == 0 else (shape[0], 2 * shape[1] - cut)


@tilebench.jit
def part(operand, dim, transposed, halves, cut, dtype="float32"):
    """A product whose left or right operand is one half of a tile, or one after the other both."""
    ta, tb = transposed and operand == "a", transposed and operand == "b"
    a, b = (K, M) if ta else (M, K), (N, K) if tb else (K, N)
    wide_a, array_a = (wider(a, dim), wider(a, dim, cut)) if operand == "a" else (a, a)
    wide_b, array_b = (wider(b, dim), wider(b, dim, cut)) if operand == "b" else (b, b)
    a0, a1 = ((a[0], 0) if dim == 0 else (0, a[1])) if operand == "a" else (0, 0)
    b0, b1 = ((b[0], 0) if dim == 0 else (0, b[1])) if operand == "b" else (0, 0)

    @T.prim_func
    def main(A: T.Tensor(array_a, dtype), B: T.Tensor(array_b, dtype), C: T.Tensor((2, M, N), "float32")):
        with T.Kernel(1) as bx:
            A_s = T.alloc_shared(wide_a, dtype)
            B_s = T.alloc_shared(wide_b, dtype)
            upper = T.alloc_fragment((M, N), "float32")
            lower = T.alloc_fragment((M, N), "float32")
            T.copy(A[bx, 0], A_s)
            T.copy(B[bx, 0], B_s)
            T.clear(upper)
            T.clear(lower)
            if halves != "second":
                T.gemm(
                    A_s[0 : a[0], 0 : a[1]], B_s[0 : b[0], 0 : b[1]], upper, transpose_A=ta, transpose_B=tb
                )
            if halves != "first":
                T.gemm(
                    A_s[a0 : a0 + a[0], a1 : a1 + a[1]], B_s[b0 : b0 + b[0], b1 : b1 + b[1]], lower,
                    transpose_A=ta, transpose_B=tb,
                )  # fmt: skip
            T.copy(upper, C[0, 0:M, 0:N])
            T.copy(lower, C[1, 0:M, 0:N])

    return main


@tilebench.jit
def plane(operand, transposed, depth, dtype="float32"):
    """A product whose left or right operand is a plane of a tile of three dimensions."""
    ta, tb = transposed and operand == "a", transposed and operand == "b"
    a, b = (K, M) if ta else (M, K), (N, K) if tb else (K, N)
    rank_a, rank_b = (3, *a) if operand == "a" else (1, *a), (3, *b) if operand == "b" else (1, *b)
    array_a, array_b = (depth, *a) if operand == "a" else rank_a, (depth, *b) if operand == "b" else rank_b

    @T.prim_func
    def main(A: T.Tensor(array_a, dtype), B: T.Tensor(array_b, dtype), C: T.Tensor((3, M, N), "float32")):
        with T.Kernel(1) as bx:
            A_s = T.alloc_shared(rank_a, dtype)
            B_s = T.alloc_shared(rank_b, dtype)
            acc = T.alloc_fragment((M, N), "float32")
            T.copy(A[bx, 0, 0], A_s)
            T.copy(B[bx, 0, 0], B_s)
            for p in T.serial(3):
                T.clear(acc)
                if operand == "a":
                    T.gemm(A_s[p, :, :], B_s[0, :, :], acc, transpose_A=ta, transpose_B=tb)
                else:
                    T.gemm(A_s[0, :, :], B_s[p, :, :], acc, transpose_A=ta, transpose_B=tb)
                T.copy(acc, C[p, 0:M, 0:N])

    return main


@tilebench.jit
def turning(operand, dim, transposed, dtype="float32"):
    """As `part`, the half chosen by the variable of a loop."""
    ta, tb = transposed and operand == "a", transposed and operand == "b"
    a, b = (K, M) if ta else (M, K), (N, K) if tb else (K, N)
    wide_a = wider(a, dim) if operand == "a" else a
    wide_b = wider(b, dim) if operand == "b" else b
    a0, a1 = ((a[0], 0) if dim == 0 else (0, a[1])) if operand == "a" else (0, 0)
    b0, b1 = ((b[0], 0) if dim == 0 else (0, b[1])) if operand == "b" else (0, 0)

    @T.prim_func
    def main(A: T.Tensor(wide_a, dtype), B: T.Tensor(wide_b, dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1) as bx:
            A_s = T.alloc_shared(wide_a, dtype)
            B_s = T.alloc_shared(wide_b, dtype)
            acc = T.alloc_fragment((M, N), "float32")
            T.copy(A[bx, 0], A_s)
            T.copy(B[bx, 0], B_s)
            T.clear(acc)
            for h in T.serial(2):
                T.gemm(
                    A_s[h * a0 : h * a0 + a[0], h * a1 : h * a1 + a[1]],
                    B_s[h * b0 : h * b0 + b[0], h * b1 : h * b1 + b[1]],
                    acc, transpose_A=ta, transpose_B=tb,
                )  # fmt: skip
            T.copy(acc, C[0, 0])

    return main


@tilebench.jit
def itself(half, columns):
    """A tile's part by the transpose of that part."""

    @T.prim_func
    def main(A: T.Tensor((30, columns), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1) as bx:
            S = T.alloc_shared((32, 2 * half), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            T.copy(A[bx, 0], S)
            T.clear(acc)
            T.gemm(S[:, half : 2 * half], S[:, half : 2 * half], acc, transpose_B=True)
            T.copy(acc, C[0, 0])

    return main


OPERANDS = pytest.mark.parametrize("operand", ["a", "b"])
DIMS = pytest.mark.parametrize("dim", [0, 1])
TURNED = pytest.mark.parametrize("transposed", [False, True])


@pytest.mark.parametrize("halves", ["first", "second", "both"])
@TURNED
@DIMS
@OPERANDS
def test_a_half_of_a_tile(operand: str, dim: int, transposed: bool, halves: str) -> None:
    for isa in ISAS:
        checked(part, operand, dim, transposed, halves, 0, isa=isa)
    for cut in (5, 17, 20):  # the array ends in the second half, with it, or in the first
        checked(part, operand, dim, transposed, halves, cut)
    checked(part, operand, dim, transposed, halves, 5, "float16")


@TURNED
@OPERANDS
def test_a_plane_of_a_tile(operand: str, transposed: bool) -> None:
    for isa in ISAS:
        checked(plane, operand, transposed, 3, isa=isa)
    checked(plane, operand, transposed, 2)  # the last plane is outside the array
    checked(plane, operand, transposed, 3, "bfloat16")


@TURNED
@DIMS
@OPERANDS
def test_a_half_that_a_loop_chooses(operand: str, dim: int, transposed: bool) -> None:
    for isa in ISAS:
        checked(turning, operand, dim, transposed, isa=isa)
    checked(turning, operand, dim, transposed, "float16")


@pytest.mark.parametrize("columns", [128, 100, 64, 40])
def test_a_part_by_its_own_transpose(columns: int) -> None:
    checked(itself, 64, columns)


def layout(kernel: Any, name: str) -> Any:
    kernel.stage("loops")
    function = kernel.compilation.functions["loops"]
    (launch,) = function.body
    return next(s.layout for s in launch.body if getattr(getattr(s, "buffer", None), "name", "") == name)


def test_parts_keep_panels_where_they_start_one() -> None:
    width = panel_width(named_isa("x86-64-v4"))
    assert width == N
    whole_panels = part.using(target="cpu:x86-64-v4")("b", 1, False, "both", 0)
    assert layout(whole_panels, "B_s") == ColumnPanels(64, K, 2)
    depth = part.using(target="cpu:x86-64-v4")("b", 1, True, "both", 0)
    assert layout(depth, "B_s") == ColumnPanels(64, 2 * K, 1, transposed=True)
    narrow = part.using(target="cpu:x86-64-v3")("b", 1, False, "both", 0)
    assert isinstance(layout(narrow, "B_s"), ColumnPanels)  # 64 is a multiple of its 16


# -- regions of arrays that leave them


@tilebench.jit
def outside(rows, columns, k, start_m, start_n, start_k, ta, tb):
    """A product of boxes that start before their arrays, end behind them, or lie outside."""
    a, b = (k, rows) if ta else (rows, k), (columns, k) if tb else (k, columns)

    @T.prim_func
    def main(A: T.Tensor(a, "float32"), B: T.Tensor(b, "float32"), C: T.Tensor((2, 32, 48), "float32")):
        with T.Kernel(2) as bx:
            acc = T.alloc_fragment((32, 48), "float32")
            T.clear(acc)
            m = start_m + bx * 3
            n = start_n + bx * 2
            for ko in T.serial(2):
                kk = start_k + ko * 16
                if ta and tb:
                    T.gemm(
                        A[kk : kk + 16, m : m + 32], B[n : n + 48, kk : kk + 16], acc,
                        transpose_A=True, transpose_B=True,
                    )  # fmt: skip
                elif ta:
                    T.gemm(
                        A[kk : kk + 16, m : m + 32],
                        B[kk : kk + 16, n : n + 48],
                        acc,
                        transpose_A=True,
                    )
                elif tb:
                    T.gemm(
                        A[m : m + 32, kk : kk + 16],
                        B[n : n + 48, kk : kk + 16],
                        acc,
                        transpose_B=True,
                    )
                else:
                    T.gemm(A[m : m + 32, kk : kk + 16], B[kk : kk + 16, n : n + 48], acc)
            T.copy(acc, C[bx, 0:32, 0:48])

    return main


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize(
    "start",
    [(0, 0, 0), (-7, 0, 0), (0, -5, 0), (0, 0, -3), (20, 30, 10), (-7, -5, -3), (60, 0, 0), (0, 0, 60)],
)
def test_boxes_that_leave_their_arrays(start: tuple[int, int, int], ta: bool, tb: bool) -> None:
    checked(outside, 40, 50, 30, *start, ta, tb)


@tilebench.jit
def batched(Z, planes):
    """Planes of arrays of three dimensions, some of them outside."""

    @T.prim_func
    def main(
        A: T.Tensor((Z, 30, 20), "float32"), B: T.Tensor((Z, 20, 40), "float32"),
        C: T.Tensor((planes, 32, 48), "float32"),
    ):  # fmt: skip
        with T.Kernel(planes) as z:
            acc = T.alloc_fragment((32, 48), "float32")
            T.clear(acc)
            T.gemm(A[z, 0:32, 0:24], B[z, 0:24, 0:48], acc)
            T.copy(acc, C[z, 0:32, 0:48])

    return main


def test_planes_outside_their_arrays() -> None:
    checked(batched, 3, 3)
    checked(batched, 2, 4)


# -- who filled the tile, and whether that is sure


@tilebench.jit
def ahead(form):
    """The tile is filled for the next turn, under a condition, by halves, or in a loop that has ended."""

    @T.prim_func
    def main(
        A: T.Tensor((40, 90), "float32"), B: T.Tensor((90, 50), "float32"), C: T.Tensor((48, 64), "float32")
    ):
        with T.Kernel(1) as bx:
            A_s = T.alloc_shared((48, 32), "float32")
            B_s = T.alloc_shared((32, 64), "float32")
            acc = T.alloc_fragment((48, 64), "float32")
            T.clear(acc)
            if form == "next":
                T.copy(A[bx, 0], A_s)
                T.copy(B[bx, 0], B_s)
                for ko in T.serial(3):
                    T.gemm(A_s, B_s, acc)
                    T.copy(A[0, ko * 32 + 32], A_s)
                    T.copy(B[ko * 32 + 32, 0], B_s)
            elif form == "once":
                for ko in T.serial(3):
                    if ko == 0:
                        T.copy(A[bx, 0], A_s)
                    T.copy(B[ko * 32, 0], B_s)
                    T.gemm(A_s, B_s, acc)
            elif form == "ended":
                for ko in T.serial(3):
                    T.copy(A[0, ko * 32], A_s)
                    T.copy(B[ko * 32, 0], B_s)
                T.gemm(A_s, B_s, acc)
            elif form == "turned":
                for ko in T.serial(3):
                    if ko > 0:
                        T.gemm(A_s, B_s, acc)
                    T.copy(A[0, ko * 32], A_s)
                    T.copy(B[ko * 32, 0], B_s)
            else:
                for ko in T.serial(3):
                    T.copy(A[bx, ko * 32], A_s)
                    for _ in T.serial(2):
                        T.copy(B[ko * 32, 0], B_s)
                        T.gemm(A_s, B_s, acc)
            T.copy(acc, C[0, 0])

    return main


@pytest.mark.parametrize("form", ["next", "once", "ended", "turned", "nested"])
def test_zeros_are_there_where_it_is_not_sure_who_filled_a_tile(form: str) -> None:
    checked(ahead, form)
