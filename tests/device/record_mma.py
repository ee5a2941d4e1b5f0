"""Results of the tensor cores on a card, for the tests: `python tests/device/record_mma.py FILE.npz`.

For each kind of operands, many products of one instruction on random numbers, whose exponents are near each
other, far apart, or below the smallest normal number. `tests/targets/cuda/test_mma_recorded.py` holds the
simulator to them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch

import tilebench
import tilebench.language as T

COUNT = 18
# Operands, sums, extents of one instruction.
KINDS = {
    "f16": ("float16", "float16", "float32", (16, 8, 16)),
    "bf16": ("bfloat16", "bfloat16", "float32", (16, 8, 16)),
    "s8": ("int8", "uint8", "int32", (16, 8, 32)),
    "tf32": ("float32", "float32", "float32", (16, 8, 8)),
    "e4m3": ("float8_e4m3fn", "float8_e5m2", "float32", (16, 8, 32)),
    "f64": ("float64", "float64", "float64", (8, 8, 4)),
}


@tilebench.jit(target="cuda")
def products(
    count, m, n, k, a="float16", b="float16", c="float32", turned=(False, False), fast=False, registers=False
):
    """D = A B + C of each block; `turned`: operands that lie transposed, `registers`: A is in those."""
    box_a, box_b = (k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n)

    @T.prim_func
    def main(
        A: T.Tensor((count, *box_a), a), B: T.Tensor((count, *box_b), b),
        C: T.Tensor((count, m, n), c), D: T.Tensor((count, m, n), c),
    ):  # fmt: skip
        with T.Kernel(count, threads=32) as block:
            A_s = T.alloc_fragment(box_a, a) if registers else T.alloc_shared(box_a, a)
            B_s = T.alloc_shared(box_b, b)
            C_l = T.alloc_fragment((m, n), c)
            T.copy(A[block, :, :], A_s)
            T.copy(B[block, :, :], B_s)
            T.copy(C[block, 0:m, 0:n], C_l)
            T.gemm(
                A_s, B_s, C_l, transpose_A=turned[0], transpose_B=turned[1], allow_tf32=a == "float32",
                fast_accum=fast and "8_" in a,
            )  # fmt: skip
            T.copy(C_l, D[block, 0:m, 0:n])

    return main


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """A tensor on the card: a third each with exponents near each other, spread, and very small."""
    if dtype in ("int8", "uint8", "int32"):
        info = np.iinfo(dtype)
        return torch.from_numpy(rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)).cuda()
    values = rng.standard_normal(shape)
    third = shape[0] // 3
    reach = {"float16": 10, "bfloat16": 20, "float32": 24, "float64": 40}.get(dtype, 5)
    values[third : 2 * third] *= 2.0 ** rng.integers(-reach, 4, (third, *shape[1:]))
    tiny = {"float16": -15, "float8_e4m3fn": -7, "float8_e5m2": -15}.get(dtype, -30)
    values[2 * third :] *= 2.0 ** (tiny + rng.integers(0, 4, (shape[0] - 2 * third, *shape[1:])))
    return torch.from_numpy(values).to(getattr(torch, dtype)).cuda()


def bits(tensor: Any) -> Any:
    """The tensor as unsigned integers of its width."""
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    array = tensor.cpu().view(width).numpy()
    return array.view(f"u{array.itemsize}")


def main() -> None:
    rng = np.random.default_rng(0)
    out: dict[str, Any] = {"device": torch.cuda.get_device_name()}
    for name, (a, b, c, (m, n, k)) in KINDS.items():
        count = COUNT
        kernel = products(count, m, n, k, a, b, c)
        assert "mma.sync" in kernel.stage("ptx"), name
        left, right = numbers(rng, (count, m, k), a), numbers(rng, (count, k, n), b)
        old = numbers(rng, (count, m, n), c)
        if c == "float32":
            # A third of the sums starts from nothing, as they mostly do.
            old[::3] = 0
        new = torch.full_like(old, 77)
        kernel(left, right, old, new)
        torch.cuda.synchronize()
        for letter, tensor in zip("abcd", (left, right, old, new), strict=True):
            out[f"{name}_{letter}"] = bits(tensor)
    np.savez_compressed(sys.argv[1], **out)
    print("recorded", Path(sys.argv[1]).stat().st_size, "bytes on", out["device"])


if __name__ == "__main__":
    main()
