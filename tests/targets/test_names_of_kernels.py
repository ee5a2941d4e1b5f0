"""Whatever kernels, arrays, scalars, tiles, variables and loops are called, the code is right."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.cell import run_cell
from tilebench.kernel import compile_from

KERNEL = """\
import tilebench
import tilebench.language as L

@tilebench.jit
def made(N=8):
    @L.prim_func
    def {kernel}({array}: L.Tensor((N,), "float32"), out: L.Tensor((N,), "float32"), {scalar}: L.float32):
        with L.Kernel(2, threads=32) as {block}:
            {shared} = L.alloc_shared((4,), "float32")
            {fragment} = L.alloc_fragment((4,), "float32")
            {variable} = L.alloc_var("float32", init=1.0)
            L.copy({array}[{block} * 4 : {block} * 4 + 4], {shared})
            L.copy({shared}, {fragment})
            for {loop} in L.Parallel(4):
                {fragment}[{loop}] = L.exp({fragment}[{loop}]) + {scalar} + {variable}
            for {serial} in L.serial(1):
                L.copy({fragment}, out[{block} * 4 : {block} * 4 + 4])
    return {kernel}
"""
SLOTS = ("kernel", "array", "scalar", "block", "shared", "fragment", "variable", "loop", "serial")
PLAIN = {slot: f"{slot}_of_ours" for slot in SLOTS}
# Of C and C++, of CUDA, of our prelude, of LLVM and the CPU's loops, of the printed form, of Python.
NAMES = """
NULL va_arg stdin linux int float auto template register typename nullptr bool_ size_t remainder fmaf j0 norm
std threadIdx blockDim warpSize dim3 half float4 cudaError_t CUDA_R_8F_E4M3 NV_x STD atomicAdd __global__ __x
TB tb_exp a__b tid r0 define entry load store i32 undef alloca alloc self T len exp min match type _ __ é
""".split()  # noqa: SIM905


def run(text: str) -> None:
    a, out = np.arange(8, dtype=np.float32) / 8, np.zeros(8, np.float32)
    function = run_cell(text)["made"]
    kernel = function.using(target="cpu")()
    for each in (kernel, compile_from("tile", kernel.stage("tile"), like=kernel)):
        each(a, out, 2.0)
        np.testing.assert_allclose(out, np.exp(a) + 3, rtol=1e-5)
    function.using(target="cuda:sm_80")().reach_code()


@pytest.mark.parametrize("name", NAMES)
def test_a_name(name: str) -> None:
    run(KERNEL.format(**{**PLAIN, SLOTS[NAMES.index(name) % len(SLOTS)]: name}))


@pytest.mark.parametrize("name", ["remainder", "j0", "std", "size_t", "cudaError_t", "T", "_"])
def test_a_kernels_own_name(name: str) -> None:
    run(KERNEL.format(**{**PLAIN, "kernel": name}))


@pytest.mark.parametrize("slot", SLOTS)
def test_null_everywhere(slot: str) -> None:
    run(KERNEL.format(**{**PLAIN, slot: "NULL"}))
