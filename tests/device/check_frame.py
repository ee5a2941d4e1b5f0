"""What came with the frame, on a real card: `python tests/device/check_frame.py`.

Groups of threads with barriers of their own, scans, sizes known at run time with both variants, scalar
parameters, fp8 and packed int4. Random inputs, poisoned outputs, NumPy as oracle; exits non-zero when
something is wrong. Run it under compute-sanitizer too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import tilebench
import tilebench.language as T
from tests.language.test_cumsum import expected, running_sums
from tests.passes.test_thread_groups import across_warps, handed_on, sum_and_max

RNG = np.random.default_rng(11)


@tilebench.jit
def scaled(block=256):
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32"), alpha: T.float32, skip: T.int32):
        with T.Kernel(T.ceildiv(n, block), m, threads=128) as (bx, by):
            for i in T.Parallel(block):
                if bx * block + i < n:
                    B[by, bx * block + i] = A[by, bx * block + i] * alpha + T.cast(skip, "float32")

    return main


@tilebench.jit
def through_fp8(M, N, kind="float8_e4m3fn"):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 16), threads=128) as bx:
            f = T.alloc_fragment((16, N), kind)
            s = T.alloc_shared((16, N), kind)
            T.copy(A[bx * 16, 0], f)
            T.copy(f, s)
            T.copy(s, B[bx * 16, 0])

    return main


def device(torch: Any, array: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(array)).cuda()


def tell(name: str, good: bool, wrong: list[str]) -> None:
    print(f"{'right' if good else 'WRONG'}  {name}", flush=True)
    if not good:
        wrong.append(name)


def groups(torch: Any, wrong: list[str]) -> None:
    a = RNG.standard_normal((64, 100)).astype(np.float32)
    s, m = (torch.full((64,), float("nan"), device="cuda") for _ in range(2))
    sum_and_max.using(target="cuda")(100)(device(torch, a), s, m)
    good = np.allclose(s.cpu().numpy(), a.sum(1), rtol=1e-4, atol=1e-4)
    tell("two groups side by side", good and np.array_equal(m.cpu().numpy(), a.max(1)), wrong)
    a = RNG.standard_normal((8, 75)).astype(np.float32)
    b, c = torch.full((8, 75), float("nan"), device="cuda"), torch.zeros(8, dtype=torch.int32, device="cuda")
    handed_on.using(target="cuda")(75, 32)(device(torch, a), b, c)
    good = np.array_equal(b.cpu().numpy(), (a * np.float32(2) + np.float32(1))[:, ::-1])
    tell("handed from group to group", good and c.tolist() == list(range(1, 9)), wrong)
    a = RNG.standard_normal((4, 700)).astype(np.float32)
    s = torch.full((4,), float("nan"), device="cuda")
    across_warps.using(target="cuda")(700)(device(torch, a), s)
    tell("a barrier of three warps", np.allclose(s.cpu().numpy(), a.sum(1), rtol=1e-3, atol=1e-3), wrong)


def scans(torch: Any, wrong: list[str]) -> None:
    for m, n, threads in ((3, 200, 64), (70, 5, 64), (17, 64, 96), (1, 1000, 128)):
        for dim in (0, 1):
            for reverse in (False, True):
                a = RNG.standard_normal((m, n)).astype(np.float32)
                b = torch.full((m, n), float("nan"), device="cuda")
                running_sums.using(target="cuda")(m, n, dim, reverse, threads=threads)(device(torch, a), b)
                want = expected(a, dim, reverse, np.float32)
                good = np.allclose(b.cpu().numpy(), want, rtol=1e-4, atol=1e-3)
                tell(f"cumsum {m}x{n} dim {dim} reverse {reverse}", good, wrong)


def sizes(torch: Any, wrong: list[str]) -> None:
    kernel = scaled.using(target="cuda")()
    for m, n in ((3, 1024), (5, 1001), (1, 1), (64, 768)):
        a = RNG.standard_normal((m, n)).astype(np.float32)
        b = torch.full((m, n), float("nan"), device="cuda")
        kernel(device(torch, a), b, 1.5, 3)
        # Product and sum may be one instruction on the card.
        good = np.allclose(b.cpu().numpy(), a * 1.5 + 3, rtol=1e-6, atol=1e-6)
        tell(f"sizes at run time {m}x{n}", good, wrong)
    wide = RNG.standard_normal((4, 1025)).astype(np.float32)
    moved = device(torch, wide).flatten()[1:].clone()
    base = torch.empty(4 * 1024 + 1, device="cuda")
    base[1:] = moved[: 4 * 1024]
    source = base[1:].view(4, 1024)
    b = torch.full((4, 1024), float("nan"), device="cuda")
    kernel(source, b, 2.0, 0)
    tell("an array at an odd address", torch.equal(b, source * 2.0), wrong)


def narrow(torch: Any, wrong: list[str]) -> None:
    import ml_dtypes

    edges = [np.inf, -np.inf, np.nan, 448, 464, 500, 57344, 6e4, 1e30, -1e30, 0.0, -0.0]
    a = np.concatenate([RNG.standard_normal(900) * 10.0 ** RNG.integers(-6, 6, 900), edges * 5])
    a = a.astype(np.float32).reshape(-1, 60)
    for kind, most in (("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0)):
        b = torch.full(a.shape, -1.0, device="cuda")
        through_fp8.using(target="cuda")(*a.shape, kind)(device(torch, a), b)
        with np.errstate(all="ignore"):
            want = np.clip(a, -most, most).astype(getattr(ml_dtypes, kind)).astype(np.float32)
        good = np.array_equal(b.cpu().numpy(), want, equal_nan=True)
        tell(f"conversion to {kind} stops at {most}", good, wrong)


def main() -> int:
    """Every check; 0 when all are right."""
    import torch

    wrong: list[str] = []
    for check in (groups, scans, sizes, narrow):
        check(torch, wrong)
    torch.cuda.synchronize()
    print("all right" if not wrong else f"{len(wrong)} wrong: {'; '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
