"""Products of warp groups that a kernel waits for itself: right kernels, and wrong ones at their line."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import kernel_of
from tests.on_card import on_card, simulated
from tilebench.errors import TileError
from tilebench.simulator import SimulationError

HEAD = (
    'A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), O: T.Tensor((64, 64), "float32")'
)
KERNEL = """
S = T.alloc_shared((64, 64), "float16")
R = T.alloc_shared((64, 64), "float16")
F = T.alloc_fragment((64, 64), "float32")
full = T.alloc_barrier(128)
empty = T.alloc_barrier(128)
for k in T.Pipelined(2, num_stages=2):
    with T.ws(1):
        T.barrier_wait(empty, (k + 1) % 2)
        T.copy(A[0, k * 64], S)
        T.copy(B[k * 64, 0], R)
        T.fence_proxy_async()
        T.barrier_arrive(full)
    with T.ws(0):
        T.barrier_wait(full, k % 2)
        T.wgmma_gemm(S, R, F, clear_accum=(k == 0))
        T.wait_wgmma(0)
        T.barrier_arrive(empty)
with T.ws(0):
    T.copy(F, O)
"""


def test_a_product_is_waited_for_by_the_kernel() -> None:
    found = on_card(KERNEL, HEAD, exact=False)
    wanted = found["A"].astype(np.float64) @ found["B"].astype(np.float64)
    np.testing.assert_allclose(found["O"], wanted, rtol=1e-4, atol=1e-4)
    kernel = kernel_of(KERNEL, HEAD, 256).using(target="cuda:sm_90a")()
    text = kernel.stage("cuda")
    body = text[text.index("__global__") :]
    assert body.count("tb_wgmma_m64n64k16_f32_f16_f16_x4<") == 1
    assert body.count("tb_wgmma_commit();") == body.count("tb_wgmma_wait_32<0>(F);") == 1
    assert body.count("__syncthreads") == 1
    kernel.reach_code()
    record = kernel.record()
    assert [each.message for each in record.diagnostics] == []
    assert record.resources is not None
    assert record.resources.spill_store_bytes == 0
    assert [each.message for each in record.remarks if each.pass_name == "plan_pipeline"] == [
        "no stages are made: the loop has barriers or waits of the kernel's own, which say what runs ahead"
    ]


def test_the_last_product_goes_on_while_the_one_before_is_used() -> None:
    body = """
        S = T.alloc_shared((64, 64), "float16")
        R = T.alloc_shared((2, 64, 64), "float16")
        F = T.alloc_fragment((64, 64), "float32")
        G = T.alloc_fragment((64, 64), "float32")
        T.copy(A[0:64, 0:64], S)
        T.copy(B[0:64, 0:64], R[0, :, :])
        T.copy(B[64:128, 0:64], R[1, :, :])
        T.wgmma_gemm(S, R[0, :, :], F, clear_accum=True)
        T.wgmma_gemm(S, R[1, :, :], G, clear_accum=True)
        T.wait_wgmma(1)
        for i, j in T.Parallel(64, 64):
            F[i, j] = F[i, j] * 2.0
        T.wait_wgmma(0)
        for i, j in T.Parallel(64, 64):
            G[i, j] += F[i, j]
        T.copy(G, O)
        """
    found = on_card(body, HEAD, threads=128, exact=False)
    a, b = found["A"].astype(np.float64)[:, :64], found["B"].astype(np.float64)
    np.testing.assert_allclose(found["O"], 2 * (a @ b[:64]) + a @ b[64:], rtol=1e-4, atol=1e-4)
    text = kernel_of(body, HEAD, 128).using(target="cuda:sm_90a")().stage("cuda")
    # What is done stands in registers from there on, what goes on is the instruction's.
    assert "tb_wgmma_wait_32<1>(F);" in text
    assert "<1>(G)" not in text


def test_what_threads_wrote_is_fenced_once() -> None:
    """Where the kernel does not say it the compiler puts the fence: nothing else would see it."""
    for body in (KERNEL, KERNEL.replace("        T.fence_proxy_async()\n", "")):
        text = kernel_of(body, HEAD, 256).using(target="cuda:sm_90a")().stage("threaded")
        assert text.count("T.fence_async_shared()") == 1
        lines = [line.strip() for line in text.splitlines()]
        assert lines[lines.index("T.fence_async_shared()") + 1] == "T.mbarrier_arrive(full)"
        simulated(body, HEAD)


WRONG = {
    "it is not waited for": (
        ("        T.wait_wgmma(0)\n", ""),
        "S is written while T.wgmma of line 23 still reads it",
        "T.copy(A[0, k * 64], S)",
    ),
    "the tile is released before it is read": (
        (
            "        T.wait_wgmma(0)\n        T.barrier_arrive(empty)\n",
            "        T.barrier_arrive(empty)\n        T.wait_wgmma(0)\n",
        ),
        "a race in shared memory: a write of S by thread 128, and thread 0 read it with no barrier between",
        "T.copy(A[0, k * 64], S)",
    ),
    "the sum is used before": (
        (
            "        T.wait_wgmma(0)\n",
            (
                "        for i, j in T.Parallel(64, 64):\n            F[i, j] = F[i, j] * 2.0\n"
                "        T.wait_wgmma(0)\n"
            ),
        ),
        "F is read while T.wgmma of line 23 still writes it",
        "F[i, j] = F[i, j] * 2.0",
    ),
    "one goes on": (
        ("        T.wait_wgmma(0)\n", "        T.wait_wgmma(1)\n"),
        "S is written while T.wgmma of line 23 still reads it",
        "T.copy(A[0, k * 64], S)",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_kernels_are_told_at_the_users_line(name: str) -> None:
    (right, wrong), said, line = WRONG[name]
    assert KERNEL.count(right) == 1
    with pytest.raises(SimulationError) as caught:
        simulated(KERNEL.replace(right, wrong), HEAD)
    assert caught.value.message == said
    assert caught.value.place is not None
    assert caught.value.place.text.strip() == line


ONE = """
S = T.alloc_shared((64, 64), "float16")
F = T.alloc_fragment((64, 64), "{}")
T.copy(A[0:64, 0:64], S)
T.wgmma_gemm(S, S, F)
T.wait_wgmma(0)
T.copy(F, O)
"""
REFUSED = {
    "another card": (
        KERNEL, "cuda:sm_80", "cuda:sm_80 has no instruction for T.gemm of float16, float16, float32",
    ),
    "a processor": (
        ONE.format("float32"),
        "cpu", "cpu has no instruction 'wgmma' for T.gemm",
    ),
    "too many pending": ("T.wait_wgmma(8)", "cuda:sm_90a", "T.wait_wgmma leaves 8 products in flight"),
    "sums in another dtype": (
        ONE.format("float16"),
        "cuda:sm_90a", "the sums of F are formed in another dtype, and brought back behind the product",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_refused(name: str) -> None:
    body, target, said = REFUSED[name]
    with pytest.raises(TileError) as caught:
        kernel_of(body, HEAD, 256 if body is KERNEL else 128).using(target=target)().reach_code()
    assert caught.value.message == said
    assert caught.value.place is not None
