# ruff: noqa: E501 -- kernels are text
"""Kernels that ask for trouble, from Python to one thread's code, run in the simulator against NumPy.

Tiles of every size, parts of tiles, pipelined loops in turn and in each other, fragments in two
orders, reductions over any dimension, buffers used before, after and around a ring.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

from tests.simulated import card_road, card_words, run_threaded
from tilebench.errors import LayoutError, remember_source
from tilebench.frontend import trace
from tilebench.ir import Function, parse_function, print_function, verify
from tilebench.passes.context import Context
from tilebench.passes.pipeline import COMMON, TILE_FORMS
from tilebench.reference import run_reference
from tilebench.targets.cuda.machines import machine_of

PLAIN = 'A: T.Tensor((100, 75), "float32"), C: T.Tensor((100, 75), "float32")'


@dataclass(frozen=True)
class Hard:
    """The statements of a kernel of one block, its arrays and its threads."""

    body: str
    head: str = PLAIN
    threads: int = 128

    def function(self) -> Function:
        text = "import tilebench.language as T\n\ndef kernel():\n    @T.prim_func\n"
        text += (
            f"    def main({self.head}):\n        with T.Kernel(1, 1, threads={self.threads}) as (bx, by):\n"
        )
        text += indent(dedent(self.body).strip(), " " * 12) + "\n    return main\n"
        remember_source("hard", text)
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(text, "hard", "exec"), space)
        return trace(space["kernel"], {}).function


def lower(function: Function) -> Function:
    """The `threaded` stage, every pass's result verified and parsed back."""
    verify(function, TILE_FORMS)
    context = Context(machine_of("sm_80"))
    for row in (*COMMON, *card_road()):
        for name, step in row.passes:
            function = step(function, context)
            verify(function)
            assert parse_function(print_function(function).text, card_words()) == function, name
        verify(function, row.forms)
    return function


KERNELS = {
    "d1red": Hard(
        """
        x = T.alloc_fragment((100,), "float32")
        s = T.alloc_fragment((1,), "float32")
        T.copy(A[0], x)
        T.reduce_sum(x, s)
        T.copy(s, C[0])
        """,
        head='A: T.Tensor((300,), "float32"), C: T.Tensor((300,), "float32")',
    ),
    "d3red0": Hard(
        """
        x = T.alloc_fragment((3, 5, 20), "float32")
        s = T.alloc_fragment((5, 20), "float32")
        T.copy(A[0, 0, 0], x)
        T.reduce_max(x, s, dim=0)
        T.copy(s, C[0, 0])
        """,
        head='A: T.Tensor((3, 6, 21), "float32"), C: T.Tensor((30, 60), "float32")',
    ),
    "d3red1": Hard(
        """
        x = T.alloc_fragment((3, 5, 20), "float32")
        s = T.alloc_fragment((3, 20), "float32")
        T.copy(A[0, 0, 0], x)
        T.reduce_max(x, s, dim=1)
        T.copy(s, C[0, 0])
        """,
        head='A: T.Tensor((3, 6, 21), "float32"), C: T.Tensor((30, 60), "float32")',
    ),
    "d3red2": Hard(
        """
        x = T.alloc_fragment((3, 5, 20), "float32")
        s = T.alloc_fragment((3, 5), "float32")
        T.copy(A[0, 0, 0], x)
        T.reduce_max(x, s, dim=2)
        T.copy(s, C[0, 0])
        """,
        head='A: T.Tensor((3, 6, 21), "float32"), C: T.Tensor((30, 60), "float32")',
    ),
    "d3redk1": Hard(
        """
        x = T.alloc_fragment((3, 5, 20), "float32")
        s = T.alloc_fragment((3, 1, 20), "float32")
        T.copy(A[0, 0, 0], x)
        T.reduce_max(x, s, dim=1)
        T.copy(s, C[0, 0, 0])
        """,
        head='A: T.Tensor((3, 6, 21), "float32"), C: T.Tensor((30, 60, 30), "float32")',
    ),
    "mid1": Hard(
        """
        x = T.alloc_fragment((3, 1, 20), "float32")
        T.copy(A[0, 0, 0], x)
        for i, k in T.Parallel(3, 20):
            x[i, 0, k] = x[i, 0, k] + T.float32(1)
        T.copy(x, C[0, 0, 0])
        """,
        head='A: T.Tensor((3, 6, 21), "float32"), C: T.Tensor((3, 6, 21), "float32")',
    ),
    "mid1b": Hard(
        """
        x = T.alloc_fragment((3, 20), "float32")
        T.copy(A[0:3, 2, 0:20], x)
        T.copy(x, C[0:3, 1, 0:20])
        """,
        head='A: T.Tensor((3, 6, 21), "float32"), C: T.Tensor((3, 6, 21), "float32")',
    ),
    "mid1par": Hard(
        """
        x = T.alloc_fragment((3, 1, 20), "float32")
        for i, j, k in T.Parallel(3, 1, 20):
            x[i, j, k] = A[i, j, k]
        for i, j, k in T.Parallel(3, 1, 20):
            C[i, j, k] = x[i, j, k]
        """,
        head='A: T.Tensor((3, 6, 21), "float32"), C: T.Tensor((3, 6, 21), "float32")',
    ),
    "n1": Hard(
        """
        x = T.alloc_fragment((64, 32), "float32")
        s = T.alloc_fragment((64, 1), "float32")
        T.copy(A[by*64, bx*32], x)
        T.reduce_sum(x, s, dim=1)
        for i, j in T.Parallel(64, 32):
            x[i, j] = x[i, j] / s[i, 0]
        T.copy(x, C[by*64, bx*32])
        """,
    ),
    "untouched": Hard(
        """
        s = T.alloc_fragment((64, 1), "float32")
        u = T.alloc_shared((64, 3), "float32")
        T.copy(A[by*64, bx*32], C[by*64, bx*32])
        """,
    ),
    "two_pipes_diff": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        B_s = T.alloc_shared((16, 32), "float32")
        D_s = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(5, num_stages=3):
            T.copy(A[by * 32, k * 16], A_s)
            T.copy(A[k * 16, bx * 32], B_s)
            T.gemm(A_s, B_s, c)
        for k in T.Pipelined(5, num_stages=2):
            T.copy(A[by * 32, k * 16], A_s)
            T.copy(A[k * 16, bx * 32], D_s)
            T.gemm(A_s, D_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
    ),
    "pipe8_3": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        B_s = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=8):
            T.copy(A[by * 32, k * 16], A_s)
            T.copy(A[k * 16, bx * 32], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
    ),
    "pipe2_1": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        B_s = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(1, num_stages=2):
            T.copy(A[by * 32, k * 16], A_s)
            T.copy(A[k * 16, bx * 32], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
    ),
    "pipe4_0": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        B_s = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(0, num_stages=4):
            T.copy(A[by * 32, k * 16], A_s)
            T.copy(A[k * 16, bx * 32], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
    ),
    "pipe_start": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        B_s = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(1, 5, num_stages=3):
            T.copy(A[by * 32, k * 16], A_s)
            T.copy(A[k * 16, bx * 32], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
    ),
    "pipe_nested": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        B_s = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for o in T.serial(2):
            for k in T.Pipelined(o, 5, num_stages=3):
                T.copy(A[by * 32, k * 16], A_s)
                T.copy(A[k * 16, bx * 32], B_s)
                T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
    ),
    "pipe_in_pipe": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        B_s = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for o in T.Pipelined(2, num_stages=2):
            T.copy(A[by * 32, o * 16], A_s)
            for k in T.Pipelined(3, num_stages=3):
                T.copy(A[k * 16, bx * 32], B_s)
                T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
    ),
    "pipe_alloc_inside": Hard(
        """
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=3):
            A_s = T.alloc_shared((32, 16), "float32")
            B_s = T.alloc_shared((16, 32), "float32")
            T.copy(A[by * 32, k * 16], A_s)
            T.copy(A[k * 16, bx * 32], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
    ),
    "pipe_let": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        B_s = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=3):
            r = k * 16
            T.copy(A[by * 32, r], A_s)
            T.copy(A[r, bx * 32], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
    ),
    "partial": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        T.clear(A_s)
        T.copy(A[by * 32 : by * 32 + 8, 3:11], A_s[8:16, 2:10])
        T.copy(A_s[8:16, 2:10], C[by*32:by*32+8, 5:13])
        """,
    ),
    "partial_frag": Hard(
        """
        x = T.alloc_fragment((32, 16), "float32")
        T.clear(x)
        T.copy(A[by * 32 : by * 32 + 8, 3:11], x[8:16, 2:10])
        T.copy(x, C[by*32, 5])
        """,
    ),
    "transposed2": Hard(
        """
        x = T.alloc_fragment((16, 24), "float32")
        y = T.alloc_fragment((24, 16), "float32")
        T.copy(A[0, 0], x)
        T.copy(A[0, 0], y)
        for i, j in T.Parallel(16, 24):
            x[i, j] = y[j, i] + x[i, j]
        T.copy(x, C[0, 0])
        """,
    ),
    "inplace": Hard(
        """
        for i, j in T.Parallel(50, 40):
            C[by*50+i, bx*40+j] = C[by*50+i, bx*40+j] + A[by*50+i, bx*40+j]
        """,
    ),
    "same_copy": Hard(
        """
        x = T.alloc_fragment((16, 16), "float32")
        T.copy(A[0, 0], x)
        T.copy(x, x)
        T.copy(x, C[0, 0])
        """,
    ),
    "same_copy_shared": Hard(
        """
        x = T.alloc_shared((16, 16), "float32")
        T.copy(A[0, 0], x)
        T.copy(x, x)
        T.copy(x, C[0, 0])
        """,
    ),
    "convert_loop": Hard(
        """
        x = T.alloc_fragment((32, 32), "float32")
        y = T.alloc_fragment((32, 32), "float32")
        s_s = T.alloc_shared((32, 16), "float32")
        T.copy(A[0, 0], x)
        T.clear(y)
        for k in T.serial(3):
            T.copy(A[0, k*16], s_s)
            T.gemm(s_s, s_s, y, transpose_B=True)
            for i, j in T.Parallel(32, 32):
                y[i, j] = y[i, j] + x[j, i]
        T.copy(y, C[0, 0])
        """,
    ),
    "two_gemm_softmax": Hard(
        """
        q = T.alloc_shared((32, 16), "float32")
        k_s = T.alloc_shared((48, 16), "float32")
        v = T.alloc_shared((48, 20), "float32")
        s = T.alloc_fragment((32, 48), "float32")
        o = T.alloc_fragment((32, 20), "float32")
        m = T.alloc_fragment((32,), "float32")
        T.copy(A[0, 0], q)
        T.clear(o)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[k*48, 0], k_s)
            T.copy(A[k*48, 0], v)
            T.clear(s)
            T.gemm(q, k_s, s, transpose_B=True)
            T.reduce_max(s, m, dim=1)
            for i, j in T.Parallel(32, 48):
                s[i, j] = T.exp(s[i, j] - m[i])
            for i, j in T.Parallel(32, 20):
                o[i, j] = o[i, j] * m[i]
            T.gemm(s, v, o)
        T.copy(o, C[0, 0])
        """,
    ),
    "reduce2": Hard(
        """
        x = T.alloc_fragment((16, 20), "float32")
        r = T.alloc_fragment((16,), "float32")
        c = T.alloc_fragment((20,), "float32")
        T.copy(A[0, 0], x)
        T.reduce_sum(x, r, dim=1)
        T.reduce_sum(x, c, dim=0)
        for i, j in T.Parallel(16, 20):
            C[i, j] = r[i] + c[j] + x[i, j]
        """,
    ),
    "red_chain": Hard(
        """
        x = T.alloc_fragment((16, 20), "float32")
        r = T.alloc_fragment((16,), "float32")
        c = T.alloc_fragment((1,), "float32")
        T.copy(A[0, 0], x)
        T.reduce_sum(x, r, dim=1)
        T.reduce_sum(r, c, dim=0)
        for i, j in T.Parallel(16, 20):
            C[i, j] = c[0]
        """,
    ),
    "gather": Hard(
        """
        idx = T.alloc_fragment((16,), "int32")
        for i in T.Parallel(16):
            idx[i] = 15 - i
        for i, j in T.Parallel(16, 20):
            C[i, j] = A[idx[i], j]
        """,
    ),
    "if_par": Hard(
        """
        x = T.alloc_fragment((16, 20), "float32")
        T.clear(x)
        if bx == 0:
            T.copy(A[0, 0], x)
            for i, j in T.Parallel(16, 20):
                if i > j:
                    x[i, j] = 0.0
        T.copy(x, C[by*16, bx*20])
        """,
    ),
    "inner_serial": Hard(
        """
        s = T.alloc_fragment((16,), "float32")
        T.clear(s)
        for i in T.Parallel(16):
            for j in T.serial(20):
                s[i] = s[i] + A[i, j]
        T.copy(s, C[0, 0:16])
        """,
    ),
    "tile1": Hard(
        """
        x = T.alloc_fragment((1, 1), "float32")
        T.copy(A[by, bx], x)
        for i, j in T.Parallel(1, 1):
            x[i, j] = x[i, j] * 2.0 + 1.0
        T.copy(x, C[by*1, bx*1])
        """,
    ),
    "tile7": Hard(
        """
        x = T.alloc_fragment((7, 7), "float32")
        T.copy(A[by, bx], x)
        for i, j in T.Parallel(7, 7):
            x[i, j] = x[i, j] * 2.0 + 1.0
        T.copy(x, C[by*7, bx*7])
        """,
    ),
    "wide96": Hard(
        """
        x = T.alloc_fragment((3, 96), "float32")
        s = T.alloc_fragment((3,), "float32")
        T.copy(A[by, bx], x)
        T.reduce_sum(x, s, dim=1)
        for i, j in T.Parallel(3, 96):
            x[i, j] = x[i, j] - s[i]
        T.copy(x, C[by*96, bx*96])
        """,
    ),
    "tile100": Hard(
        """
        x = T.alloc_fragment((100, 100), "float32")
        T.copy(A[by, bx], x)
        for i, j in T.Parallel(100, 100):
            x[i, j] = x[i, j] * 2.0 + 1.0
        T.copy(x, C[by*100, bx*100])
        """,
    ),
    "gemm_float64": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float64")
        B_s = T.alloc_shared((16, 32), "float64")
        c = T.alloc_fragment((32, 32), "float64")
        T.clear(c)
        for k in T.Pipelined(5, num_stages=3):
            T.copy(A[by * 32, k * 16], A_s)
            T.copy(A[k * 16, bx * 32], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
        head='A: T.Tensor((100, 75), "float64"), C: T.Tensor((100, 75), "float64")',
    ),
    "gemm_int8": Hard(
        """
        A_s = T.alloc_shared((32, 16), "int8")
        B_s = T.alloc_shared((16, 32), "int8")
        c = T.alloc_fragment((32, 32), "int32")
        T.clear(c)
        for k in T.Pipelined(5, num_stages=3):
            T.copy(A[by * 32, k * 16], A_s)
            T.copy(A[k * 16, bx * 32], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by*32, bx*32])
        """,
        head='A: T.Tensor((100, 75), "int8"), C: T.Tensor((100, 75), "int32")',
    ),
    "sum_bool": Hard(
        """
        x = T.alloc_fragment((50, 75), "bool")
        s = T.alloc_fragment((50,), "bool")
        T.copy(A[by*50, 0], x)
        T.reduce_max(x, s, dim=1)
        for i, j in T.Parallel(50, 75):
            C[by*50+i, j] = T.max(x[i, j], s[i])
        """,
        head='A: T.Tensor((100, 75), "bool"), C: T.Tensor((100, 75), "bool")',
    ),
    "threads160": Hard(
        """
        x = T.alloc_fragment((50, 75), "float32")
        s = T.alloc_fragment((50,), "float32")
        T.copy(A[by*50, 0], x)
        T.reduce_sum(x, s, dim=1)
        for i, j in T.Parallel(50, 75):
            x[i, j] = x[i, j] - s[i]
        T.copy(x, C[by*50, 0])
        """,
        threads=160,
    ),
    "gthreads96": Hard(
        """
        A_s = T.alloc_shared((50, 16), "float32")
        B_s = T.alloc_shared((16, 48), "float32")
        c = T.alloc_fragment((50, 48), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[by * 50, k * 16], A_s)
            T.copy(A[k * 16, bx * 48], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by*50, bx*48])
        """,
        threads=96,
    ),
    "fill_part": Hard(
        """
        x = T.alloc_fragment((64, 64), "float32")
        T.fill(x[0:8, :], 1)
        T.copy(x, C[0, 0])
        """,
    ),
    "gemm_part_shared": Hard(
        """
        a = T.alloc_shared((64, 16), "float32")
        b = T.alloc_shared((16, 64), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(A[0, 0], a)
        T.copy(A[0, 0], b)
        T.clear(c)
        T.gemm(a[32:64, :], b[:, 16:48], c)
        T.copy(c, C[0, 0])
        """,
    ),
    "gemm_3d": Hard(
        """
        a = T.alloc_shared((2, 32, 16), "float32")
        b = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(A[0, 0], a[0, :, :])
        T.copy(A[0, 0], a[1, :, :])
        T.copy(A[0, 0], b)
        T.clear(c)
        T.gemm(a[1, :, :], b, c)
        T.copy(c, C[0, 0])
        """,
    ),
    "frag_parts": Hard(
        """
        x = T.alloc_fragment((32, 16), "float32")
        y = T.alloc_fragment((32, 16), "float32")
        T.clear(x)
        T.fill(y, 2)
        T.copy(A[0, 0], x)
        T.copy(x[8:16, 2:10], y[16:24, 4:12])
        T.copy(y, C[0, 0])
        T.copy(x[4:6, :], C[90:92, 0:16])
        """,
    ),
    "frag_part_dyn": Hard(
        """
        x = T.alloc_fragment((32, 16), "float32")
        for k in T.serial(4):
            T.copy(A[k * 8, 3], x[k * 8 : k * 8 + 8, :])
            T.fill(x[k*8, 0:4], 7)
        T.copy(x, C[0, 0])
        """,
    ),
    "edge_part": Hard(
        """
        x = T.alloc_fragment((32, 16), "float32")
        T.fill(x, 5)
        T.copy(A[90:100, 70:78], x[0:10, 0:8])
        T.copy(x, C[80, 70])
        """,
    ),
    "two_read_orders": Hard(
        """
        x = T.alloc_fragment((16, 16), "float32")
        y = T.alloc_fragment((16, 16), "float32")
        T.copy(A[0, 0], x)
        for i, j in T.Parallel(16, 16):
            y[i, j] = x[j, i] + x[i, j]
        T.copy(y, C[0, 0])
        """,
    ),
    "names": Hard(
        """
        x_as = T.alloc_fragment((16, 16), "float32")
        x_turn = T.alloc_fragment((16, 16), "float32")
        x = T.alloc_fragment((16, 16), "float32")
        k_first = T.alloc_shared((16, 16), "float32")
        T.copy(A[0, 0], x)
        for i, j in T.Parallel(16, 16):
            x_as[i, j] = x[j, i] + x[i, j]
        for k in T.Pipelined(3, num_stages=3):
            T.copy(A[k, 0], k_first)
            for i, j in T.Parallel(16, 16):
                x_as[i, j] = x_as[i, j] + k_first[i, j]
        T.copy(x_as, C[0, 0])
        """,
    ),
    "stage_global": Hard(
        """
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=3):
            T.gemm(A[0:32, k*16:k*16+16], A[k*16:k*16+16, 0:32], c)
        T.copy(c, C[0, 0])
        """,
    ),
    "if_in_pipe": Hard(
        """
        a = T.alloc_shared((32, 16), "float32")
        c = T.alloc_fragment((32, 16), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=3):
            if k > 0:
                T.copy(A[0, k*16], a)
                for i, j in T.Parallel(32, 16):
                    c[i, j] = c[i, j] + a[i, j]
        T.copy(c, C[0, 0])
        """,
    ),
    "fill_then_copy": Hard(
        """
        a = T.alloc_shared((32, 16), "float32")
        c = T.alloc_fragment((32, 16), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=3):
            T.clear(a)
            T.copy(A[0:16, k*16:k*16+16], a[0:16,:])
            for i, j in T.Parallel(32, 16):
                c[i, j] = c[i, j] + a[i, j]
        T.copy(c, C[0, 0])
        """,
    ),
    "use_after": Hard(
        """
        a = T.alloc_shared((32, 16), "float32")
        c = T.alloc_fragment((32, 16), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=3):
            T.copy(A[0, k*16], a)
            for i, j in T.Parallel(32, 16):
                c[i, j] = c[i, j] + a[i, j]
        for i, j in T.Parallel(32, 16):
            c[i, j] = c[i, j] + a[i, j]
        T.copy(c, C[0, 0])
        """,
    ),
    "use_after_refill": Hard(
        """
        a = T.alloc_shared((32, 16), "float32")
        c = T.alloc_fragment((32, 16), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=3):
            T.copy(A[0, k*16], a)
            for i, j in T.Parallel(32, 16):
                c[i, j] = c[i, j] + a[i, j]
        T.copy(A[3, 3], a)
        for i, j in T.Parallel(32, 16):
            c[i, j] = c[i, j] + a[i, j]
        T.copy(c, C[0, 0])
        """,
    ),
    "two_allocs": Hard(
        """
        c = T.alloc_fragment((32, 16), "float32")
        T.clear(c)
        for o in T.serial(2):
            a = T.alloc_shared((32, 16), "float32")
            for k in T.Pipelined(3, num_stages=3):
                T.copy(A[0, k*16], a)
                for i, j in T.Parallel(32, 16):
                    c[i, j] = c[i, j] + a[i, j]
        for o in T.serial(2):
            a = T.alloc_shared((32, 16), "float32")
            for k in T.Pipelined(3, num_stages=3):
                T.copy(A[0, k*16], a)
                for i, j in T.Parallel(32, 16):
                    c[i, j] = c[i, j] + a[i, j]
        T.copy(c, C[0, 0])
        """,
    ),
    "inplace_pipe": Hard(
        """
        a = T.alloc_shared((32, 16), "float32")
        for k in T.Pipelined(3, num_stages=3):
            T.copy(C[0, k*16], a)
            for i, j in T.Parallel(32, 16):
                C[i, k*16+16+j] = C[i, k*16+16+j] + a[i, j]
        """,
    ),
    "alloc_var_addr": Hard(
        """
        a = T.alloc_shared((32, 16), "float32")
        v = T.alloc_var("int32", init=0)
        c = T.alloc_fragment((32, 16), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=3):
            T.copy(A[0, v], a)
            for i, j in T.Parallel(32, 16):
                c[i, j] = c[i, j] + a[i, j]
            v = v + 5
        T.copy(c, C[0, 0])
        """,
    ),
    "var_par": Hard(
        """
        v = T.alloc_var("float32", init=0.0)
        for i, j in T.Parallel(32, 16):
            v = A[i, j]
            C[i, j] = v + v
        """,
    ),
    "local_par": Hard(
        """
        for i, j in T.Parallel(32, 16):
            l = T.alloc_local((4,), "float32")
            for k in T.serial(4):
                l[k] = A[i, j + k]
            C[i, j] = l[0] + l[3]
        """,
    ),
    "reduce_frag_empty": Hard(
        """
        s = T.alloc_fragment((16, 24), "float32")
        r = T.alloc_fragment((16,), "float32")
        T.fill(s, 2)
        T.reduce_sum(s, r, dim=1)
        for i in T.Parallel(16):
            C[i, 0] = r[i]
        """,
    ),
    "r0": Hard(
        """
        s = T.alloc_fragment((64,), "float32")
        r = T.alloc_fragment((1,), "float32")
        for i in T.Parallel(64):
            s[i] = A[i, 0] * 2.0
        T.reduce_max(s, r, dim=0)
        for i in T.Parallel(64):
            s[i] = s[i] - r[0]
        T.copy(s, C[0, 0:64])
        """,
    ),
    "chain_two": Hard(
        """
        a = T.alloc_shared((32, 16), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        d = T.alloc_fragment((32, 32), "float32")
        m = T.alloc_fragment((32,), "float32")
        n = T.alloc_fragment((32,), "float32")
        T.copy(A[0, 0], a)
        T.clear(c)
        T.clear(d)
        T.gemm(a, a, c, transpose_B=True)
        T.reduce_max(c, m, dim=1)
        T.reduce_max(c, n, dim=0)
        T.gemm(a, a, d, transpose_B=True)
        for i, j in T.Parallel(32, 32):
            d[i, j] = d[i, j] * m[i] + n[j]
        for i, j in T.Parallel(32, 32):
            d[i, j] = d[i, j] * m[j] + n[i]
        T.copy(d, C[0, 0])
        """,
    ),
    "mixed_boxes": Hard(
        """
        x = T.alloc_fragment((30, 1), "float32")
        y = T.alloc_fragment((1, 20), "float32")
        z = T.alloc_fragment((30, 20), "float32")
        T.copy(A[0:30, 3:4], x)
        T.copy(A[3:4, 0:20], y)
        for i, j in T.Parallel(30, 20):
            z[i, j] = x[i, 0] * y[0, j]
        T.copy(z, C[0, 0])
        """,
    ),
    "bcast_write": Hard(
        """
        x = T.alloc_fragment((30,), "float32")
        T.clear(x)
        for i, j in T.Parallel(30, 20):
            x[i] = A[i, 0]
        T.copy(x, C[0:30, 0])
        """,
    ),
    "clear_k0": Hard(
        """
        A_s = T.alloc_shared((32, 16), "float32")
        B_s = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        for k in T.Pipelined(4, num_stages=3):
            T.copy(A[0, k * 16], A_s)
            T.copy(A[k * 16, 0], B_s)
            T.gemm(A_s, B_s, c, clear_accum=k == 0)
        T.copy(c, C[0, 0])
        """,
    ),
    "par4": Hard(
        """
        x = T.alloc_fragment((2, 3, 4, 5), "float32")
        for i, j, k, l in T.Parallel(2, 3, 4, 5):
            x[i, j, k, l] = A[i * 3 + j, k * 5 + l]
        y = T.alloc_fragment((2, 4, 5), "float32")
        T.reduce_sum(x, y, dim=1)
        for i, k, l in T.Parallel(2, 4, 5):
            C[i, k * 5 + l] = y[i, k, l]
        """,
    ),
    "tri": Hard(
        """
        x = T.alloc_fragment((20,), "float32")
        T.clear(x)
        for i in T.Parallel(20):
            for k in T.serial(20):
                if k <= i:
                    x[i] = x[i] + A[k, i]
        T.copy(x, C[3, 0:20])
        """,
    ),
    "dyn_loop": Hard(
        """
        x = T.alloc_fragment((20,), "float32")
        T.clear(x)
        n = T.alloc_var("int32", init=3)
        for k in T.serial(n):
            for i in T.Parallel(20):
                x[i] = x[i] + A[k, i]
        T.copy(x, C[3, 0:20])
        """,
    ),
    "zero_par": Hard(
        """
        for k in T.serial(0):
            for i in T.Parallel(20):
                C[0, i] = 1.0
        """,
    ),
    "shared_red_all": Hard(
        """
        x = T.alloc_shared((7, 9), "float32")
        y = T.alloc_fragment((7,), "float32")
        z = T.alloc_fragment((1,), "float32")
        T.copy(A[1, 2], x)
        T.reduce_max(x, y, dim=1)
        T.reduce_min(y, z, dim=0)
        T.copy(z, C[0, 0:1])
        """,
    ),
    "epilogue": Hard(
        """
        A_s = T.alloc_shared((33, 17), "float32")
        B_s = T.alloc_shared((17, 29), "float32")
        c = T.alloc_fragment((33, 29), "float32")
        bias = T.alloc_fragment((29,), "float32")
        r = T.alloc_fragment((33,), "float32")
        T.clear(c)
        T.copy(A[90, 0:29], bias)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[0, k * 17], A_s)
            T.copy(A[k * 17, 0], B_s)
            T.gemm(A_s, B_s, c)
        for i, j in T.Parallel(33, 29):
            c[i, j] = T.max(c[i, j] + bias[j], 0)
        T.reduce_sum(c, r, dim=1)
        for i, j in T.Parallel(33, 29):
            c[i, j] = c[i, j] / (r[i] + 1.0)
        T.copy(c, C[70, 50])
        """,
    ),
    "atomic_like": Hard(
        """
        x = T.alloc_fragment((16, 16), "float32")
        for i, j in T.Parallel(16, 16):
            x[i, j] = T.if_then_else(A[i, j] > 0, A[i, j], A[j, i])
        T.copy(x, C[0, 0])
        """,
    ),
    "casts": Hard(
        """
        x = T.alloc_fragment((16, 16), "int8")
        y = T.alloc_shared((16, 16), "float16")
        for i, j in T.Parallel(16, 16):
            x[i, j] = T.cast(A[i, j] * 3.0, "int8")
        T.copy(x, y)
        T.copy(y, C[0, 0])
        """,
    ),
    "shared_transpose": Hard(
        """
        x = T.alloc_shared((20, 24), "float32")
        y = T.alloc_shared((24, 20), "float32")
        T.copy(A[0, 0], x)
        for i, j in T.Parallel(24, 20):
            y[i, j] = x[j, i]
        T.copy(y, C[0, 0])
        """,
    ),
    "coal": Hard(
        """
        x = T.alloc_fragment((16, 64), "float32")
        T.copy(A[0, 0], x, coalesced_width=2)
        T.copy(x, C[0, 0], coalesced_width=3)
        """,
    ),
    "pipe_two_level": Hard(
        """
        A_s = T.alloc_shared((16, 16), "float32")
        c = T.alloc_fragment((16, 16), "float32")
        T.clear(c)
        for o in T.serial(3):
            for k in T.Pipelined(o, 4, num_stages=2):
                T.copy(A[o, k * 16], A_s)
                for i, j in T.Parallel(16, 16):
                    c[i, j] = c[i, j] + A_s[i, j]
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[o + 5, k * 16], A_s)
                for i, j in T.Parallel(16, 16):
                    c[i, j] = c[i, j] * A_s[j, i]
        T.copy(c, C[0, 0])
        """,
    ),
    "part_in_pipe": Hard(
        """
        A_s = T.alloc_shared((16, 16), "float32")
        x = T.alloc_fragment((32, 16), "float32")
        T.clear(x)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[3, k * 16], A_s)
            T.copy(A_s, x[k * 16 : k * 16 + 16, :])
        T.copy(x, C[0, 0])
        """,
    ),
    "neg": Hard(
        """
        x = T.alloc_fragment((32, 16), "float32")
        y = T.alloc_shared((8, 12), "float32")
        T.copy(A[by - 1, bx - 3], x)
        T.copy(x, C[by - 4, bx + 66])
        T.copy(A[by - 4 : by + 4, 70:82], y)
        T.copy(y, C[by + 30, bx - 2])
        for i, j in T.Parallel(8, 8):
            C[by - 4 + i + 60, bx - 3 + j] = A[by - 2 + i, bx - 3 + j]
        """,
    ),
    "negpart": Hard(
        """
        x = T.alloc_fragment((32, 16), "float32")
        T.clear(x)
        T.copy(A[by - 1 : by + 3, bx - 3: bx + 5], x[2:6, 4:12])
        T.copy(x, C[0, 0])
        """,
    ),
}


@pytest.mark.parametrize("name", list(KERNELS))
def test_it_gives_what_it_means(name: str) -> None:
    function = KERNELS[name].function()
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for each in function.params:
        if each.dtype.is_float:
            values: Any = rng.uniform(-1, 1, each.shape)
        else:
            values = rng.integers(0 if each.dtype.kind != "int" else -3, 4, each.shape)
        arrays[each.name] = values.astype(each.dtype.numpy)
    expected = run_reference(function, {key: each.copy() for key, each in arrays.items()})
    threaded = lower(function)
    run_threaded(threaded, arrays, warp=32)
    for key, want in expected.items():
        found, right = arrays[key].astype(np.float64), want.astype(np.float64)
        # Sums are formed in another order: a bound for at most some hundred terms below 1.
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4, err_msg=name)


REFUSED = {
    "transposed_in_place": (
        "x = T.alloc_fragment((16, 16), 'float32')\nT.copy(A[0, 0], x)\nfor i, j in T.Parallel(16, 16):\n    x[i, j] = x[j, i] + x[i, j]",
        "the fragment x is written here and used in two orders of its indices",
        "for i, j in T.Parallel(16, 16)",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_it_is_refused_at_its_line(name: str) -> None:
    body, message, text = REFUSED[name]
    with pytest.raises(LayoutError) as caught:
        lower(Hard(body).function())
    assert caught.value.message == message
    assert caught.value.hint
    place = caught.value.place
    assert place is not None
    assert place.text[place.column : place.end_column] == text
