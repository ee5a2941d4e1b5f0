"""One kernel with a two-deep chain of helpers, compiled once for each architecture."""

from __future__ import annotations

from functools import cache

import pytest

from tilebench.targets.cuda.compiler.nvrtc import Compiled, compile_cuda
from tilebench.targets.cuda.machines import machine_of

ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a")

KERNEL = """\
static __device__ __forceinline__ float tb_inner(float a, float b) { return __fdividef(a, b); }
static __device__ __forceinline__ float tb_outer(float a, float b) {
  return tb_inner(a, b) * 3.0f;
}
extern "C" __global__ void __launch_bounds__(128) chain(const float* a, const float* b, float* c, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x] = a[i];
  __syncthreads();
  float x = tb_outer(tile[threadIdx.x ^ 3], b[i]);
  c[i] = x;
}
extern "C" __global__ void second(float* a) {
  a[threadIdx.x] = 2.0f;
}
"""


@cache
def compiled(arch: str) -> Compiled:
    return compile_cuda(KERNEL, machine_of(arch))


@pytest.fixture(params=ARCHS)
def each_arch(request: pytest.FixtureRequest) -> Compiled:
    return compiled(str(request.param))


@pytest.fixture
def hopper() -> Compiled:
    return compiled("sm_90a")
