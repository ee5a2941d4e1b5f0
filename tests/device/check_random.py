"""Random numbers of a card beside cuRAND's own, and what they cost: `python tests/device/check_random.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cupy
import numpy as np
import torch

import tilebench
import tilebench.language as T

CURAND = """
#include <curand_kernel.h>
extern "C" __global__ void draw(long long seed, long long first, long long off, unsigned* words, float* u,
                                double* d, float* n, double* m) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t s;
  curand_init(seed, first + k, off, &s);
  for (int i = 0; i < 9; ++i) words[k * 9 + i] = curand(&s);
  for (int i = 0; i < 3; ++i) u[k * 3 + i] = curand_uniform(&s);
  for (int i = 0; i < 3; ++i) d[k * 3 + i] = curand_uniform_double(&s);
  for (int i = 0; i < 3; ++i) n[k * 3 + i] = curand_normal(&s);
  for (int i = 0; i < 3; ++i) m[k * 3 + i] = curand_normal_double(&s);
}
"""


@tilebench.jit(target="cuda")
def drawn(seed: int, first: int, off: int) -> Any:
    @T.prim_func
    def main(
        W: T.Tensor((256, 9), "uint32"), U: T.Tensor((256, 3), "float32"), D: T.Tensor((256, 3), "float64"),
        N: T.Tensor((256, 3), "float32"), M: T.Tensor((256, 3), "float64"),
    ):  # fmt: skip
        with T.Kernel(2, threads=128) as bx:
            tx = T.get_thread_binding()
            k = bx * 128 + tx
            T.rng_init(T.cast(seed, "int64"), T.cast(first, "int64") + k, T.cast(off, "int64"))
            for i in T.serial(9):
                W[k, i] = T.rng_rand()
            for i in T.serial(3):
                U[k, i] = T.rng_rand_float()
            for i in T.serial(3):
                D[k, i] = T.rng_rand_float(64)
            for i in T.serial(3):
                N[k, i] = T.rng_rand_float(dist="normal")
            for i in T.serial(3):
                M[k, i] = T.rng_rand_float(64, "normal")

    return main


@tilebench.jit(target="cuda")
def filled(m: int, n: int) -> Any:
    @T.prim_func
    def main(O: T.Tensor((m, n), "float32")):  # noqa: E741
        with T.Kernel(m, threads=256) as bx:
            T.rng_init(1, bx, 0)
            for j in T.Parallel(n):
                O[bx, j] = T.rng_rand_float()

    return main


def compare(seed: int, first: int, off: int) -> None:
    shapes = [(256, 9), *[(256, 3)] * 4]
    kinds = [np.uint32, np.float32, np.float64, np.float32, np.float64]
    theirs = [cupy.zeros(s, k) for s, k in zip(shapes, kinds, strict=True)]
    module = cupy.RawModule(code=CURAND, backend="nvcc", options=("-std=c++17",))
    module.get_function("draw")((2,), (128,), (np.int64(seed), np.int64(first), np.int64(off), *theirs))
    ours = [cupy.full(s, 7, k) for s, k in zip(shapes, kinds, strict=True)]
    drawn(seed, first, off)(*ours)
    cupy.cuda.runtime.deviceSynchronize()
    for name, a, b in zip("WUDNM", theirs, ours, strict=True):
        a, b = a.get(), b.get()
        far = float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())
        print(name, "same" if np.array_equal(a, b) else f"up to {far:.2e} apart", end="; ")
        right = far == 0 if name in "WUD" else far < (1e-4 if name == "N" else 1e-12)
        if not right:
            print("FAIL", name, a[:2], b[:2])
    print(f"seed {seed} sequence {first} offset {off}", flush=True)


def main() -> None:
    print(torch.cuda.get_device_name())
    for seed, first, off in ((42, 0, 0), (-5, 2**33, 7), (2**62 + 1, 1, 2**34 + 2)):
        compare(seed, first, off)
    kernel = filled(8192, 4096)
    out = torch.empty(8192, 4096, device="cuda")
    kernel(out)
    print(f"mean {out.double().mean().item():.5f}, used {kernel.resources.registers} registers")
    times = []
    for run in (lambda: kernel(out), lambda: out.uniform_()):
        for _ in range(3):
            run()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(20):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 20 * 1e3)
    print(f"8192x4096 floats: ours {times[0]:.1f} us, torch's uniform_ {times[1]:.1f} us")


if __name__ == "__main__":
    main()
