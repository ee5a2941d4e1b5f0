"""Copies of the tensor memory accelerator that a kernel waits for itself: right kernels, and wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import kernel_of
from tests.on_card import on_card, simulated
from tilebench.errors import TileError
from tilebench.simulator import SimulationError

HEAD = (
    'A: T.Tensor((64, 256), "float16"), B: T.Tensor((256, 64), "float16"), O: T.Tensor((64, 64), "float32")'
)
# A ring of two slots of tiles, filled by one group and multiplied by another.
RING = """
S = T.alloc_shared((2, 64, 64), "float16")
R = T.alloc_shared((2, 64, 64), "float16")
F = T.alloc_fragment((64, 64), "float32")
full = T.alloc_barrier([128] * 2)
empty = T.alloc_barrier([128] * 2)
with T.ws(0):
    T.clear(F)
for k in T.serial(4):
    with T.ws(1):
        T.barrier_wait(empty[k % 2], (k // 2 + 1) % 2)
        T.tma_copy(A[0, k * 64], S[k % 2, :, :], barrier=full[k % 2])
        T.tma_copy(B[k * 64, 0], R[k % 2, :, :], barrier=full[k % 2])
        T.barrier_arrive(full[k % 2])
    with T.ws(0):
        T.barrier_wait(full[k % 2], k // 2 % 2)
        T.gemm(S[k % 2, :, :], R[k % 2, :, :], F)
        T.barrier_arrive(empty[k % 2])
with T.ws(0):
    T.copy(F, O)
"""


@pytest.mark.parametrize("product", ["T.gemm", "T.wgmma_gemm"])
def test_a_ring_by_hand(product: str) -> None:
    body = RING
    if product == "T.wgmma_gemm":
        body = RING.replace("T.gemm(S[k % 2, :, :], R[k % 2, :, :], F)", (
            "T.wgmma_gemm(S[k % 2, :, :], R[k % 2, :, :], F)\n        T.wait_wgmma(0)"
        ))  # fmt: skip
    found = on_card(body, HEAD, exact=False)
    wanted = found["A"].astype(np.float64) @ found["B"].astype(np.float64)
    np.testing.assert_allclose(found["O"], wanted, rtol=1e-4, atol=1e-4)
    kernel = kernel_of(body, HEAD, 256).using(target="cuda:sm_90a")()
    text = kernel.stage("cuda")
    code = text[text.index("__global__") :]
    assert code.count("tb_mbarrier_expect(full + k % 2, 8192);") == 2
    assert code.count("tb_tma_load_2d(") == 2
    assert code.count("__syncthreads") == 1
    kernel.reach_code()
    assert [each.message for each in kernel.record().diagnostics] == []


def test_parts_of_a_tile_by_panels() -> None:
    body = """
        S = T.alloc_shared((64, 128), "float16")
        F = T.alloc_fragment((64, 64), "float32")
        full = T.alloc_barrier([1, 1])
        for j in T.unroll(2):
            T.tma_copy(A[0:64, j * 64 : (j + 1) * 64], S[:, j * 64 : (j + 1) * 64], barrier=full[j])
        with T.threads(0, 1):
            T.barrier_arrive(full[0])
            T.barrier_arrive(full[1])
        for j in T.unroll(2):
            T.barrier_wait(full[j], 0)
            T.wgmma_gemm(S[:, j * 64 : (j + 1) * 64], S[:, 0:64], F, transpose_B=True, clear_accum=(j == 0))
        T.wait_wgmma(0)
        T.copy(F, O)
        """
    found = on_card(body, HEAD, threads=128, exact=False)
    a = found["A"].astype(np.float64)
    np.testing.assert_allclose(found["O"], (a[:, :64] + a[:, 64:128]) @ a[:, :64].T, rtol=1e-4, atol=1e-4)


STORE = """
S = T.alloc_shared((64, 64), "float32")
F = T.alloc_fragment((64, 64), "float32")
T.copy(A, F)
for k in T.serial(2):
    for i, j in T.Parallel(64, 64):
        S[i, j] = F[i, j] + k
    T.tma_copy(S, O[k * 64, 0])
    T.tma_store_wait(0)
"""
STORED = 'A: T.Tensor((64, 64), "float32"), O: T.Tensor((128, 64), "float32")'


def test_stores_are_waited_for_by_the_kernel() -> None:
    found = on_card(STORE, STORED, threads=128)
    np.testing.assert_array_equal(found["O"], np.concatenate([found["A"], found["A"] + 1]))
    kernel = kernel_of(STORE, STORED, 128).using(target="cuda:sm_90a")()
    assert kernel.stage("threaded").count("T.tma_store(") == 1
    kernel.reach_code()
    with pytest.raises(SimulationError) as caught:
        simulated(STORE.replace("    T.tma_store_wait(0)\n", ""), STORED, 128)
    assert "S is written while T.tma_store of line" in caught.value.message


REFUSED = {
    "no barrier": ("T.tma_copy(A[0:64, 0:64], S)", "T.tma_copy names no barrier"),
    "a tile to a tile": (
        "Q = T.alloc_shared((64, 64), 'float16')\nT.tma_copy(S, Q)",
        "T.tma_copy moves a box of an array to or from a shared tile",
    ),
    "several blocks": (
        "T.tma_copy(A[0:64, 0:64], S, barrier=full, cluster_mask=3)",
        "T.tma_copy brings a box to several blocks of a cluster",
    ),
    "rows of no whole units": (
        "P = T.alloc_shared((64, 4), 'float16')\nT.tma_copy(A[0:64, 0:4], P, barrier=full)",
        "tma cannot move this box: its rows have 8 bytes, no multiple of 16",
    ),
    "an array that the kernel writes": (
        "Q = T.alloc_shared((64, 64), 'float32')\nT.tma_copy(O, Q, barrier=full)\nT.copy(Q, O)",
        "tma cannot move this box: O is read or written otherwise by the kernel too",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_no_copy_by_hand(name: str) -> None:
    body, said = REFUSED[name]
    head = 'S = T.alloc_shared((64, 64), "float16")\nfull = T.alloc_barrier(1)\n'
    with pytest.raises(TileError) as caught:
        kernel_of(head + body, HEAD, 128).using(target="cuda:sm_90a")().stage("threaded")
    assert caught.value.message == said
    assert caught.value.place is not None
    assert "T.tma_copy(" in caught.value.place.text


def test_other_cards_have_none() -> None:
    with pytest.raises(TileError) as caught:
        kernel_of(RING, HEAD, 256).using(target="cuda:sm_80")().stage("threaded")
    assert "T.tma_copy(A[0, k * 64]" in str(caught.value)


# A text in `RING`, what stands in its place, what the simulator says, and at which line.
WRONG = {
    "nobody waits for the tile": (
        ("        T.barrier_wait(full[k % 2], k // 2 % 2)\n", ""),
        (
            "a read of S by thread 0, and T.tma_load of line 19 wrote it: the thread has not waited for the "
            "barrier that this completes on"
        ),
        "T.gemm(S[k % 2, :, :], R[k % 2, :, :], F)",
    ),
    "nobody arrives": (
        ("        T.barrier_arrive(full[k % 2])\n", ""),
        (
            "a deadlock: threads 0 to 127 wait for phase 0 of full[0], of parity 0 (0 of 128 arrivals and "
            "16384 of 16384 bytes have come)"
        ),
        "T.barrier_wait(full[k % 2], k // 2 % 2)",
    ),
    "the slot is filled again without a wait": (
        ("        T.barrier_wait(empty[k % 2], (k // 2 + 1) % 2)\n", ""),
        (
            "a write of S by thread 128, and T.tma_load of line 18 wrote it: the thread has not waited for "
            "the barrier that this completes on"
        ),
        "T.tma_copy(A[0, k * 64], S[k % 2, :, :], barrier=full[k % 2])",
    ),
    "the parity of the first phase": (
        ("T.barrier_wait(full[k % 2], k // 2 % 2)", "T.barrier_wait(full[k % 2], (k // 2 + 1) % 2)"),
        "a deadlock: threads 0 to 127 wait for phase 1 of full[0], of parity 1 (0 of 128 arrivals have come)",
        "T.barrier_wait(full[k % 2], (k // 2 + 1) % 2)",
    ),
    "released before it was read": (
        (
            "        T.gemm(S[k % 2, :, :], R[k % 2, :, :], F)\n        T.barrier_arrive(empty[k % 2])\n",
            "        T.barrier_arrive(empty[k % 2])\n        T.gemm(S[k % 2, :, :], R[k % 2, :, :], F)\n",
        ),
        "a race in shared memory: a write of S by thread 128, and thread 0 read it with no barrier between",
        "T.tma_copy(A[0, k * 64], S[k % 2, :, :], barrier=full[k % 2])",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_kernels_are_told_at_the_users_line(name: str) -> None:
    (right, wrong), said, line = WRONG[name]
    assert RING.count(right) == 1
    with pytest.raises(SimulationError) as caught:
        simulated(RING.replace(right, wrong), HEAD)
    assert (caught.value.message, caught.value.place and caught.value.place.text.strip()) == (said, line)
