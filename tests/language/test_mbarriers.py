"""Barriers in shared memory by hand, from the kernel's text to the simulator: right and wrong kernels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import kernel_of
from tests.on_card import on_card, simulated
from tilebench.errors import TileError
from tilebench.reference import run_reference
from tilebench.schedule import Schedule
from tilebench.simulator import SimulationError

# One group brings tiles, the other one adds them up; `full` and `empty` hand two buffers to and fro.
RING = """
S = T.alloc_shared((2, 64, 16), "float32")
F = T.alloc_fragment((64, 16), "float32")
G = T.alloc_fragment((64, 16), "float32")
full = T.alloc_barrier([128] * 2)
empty = T.alloc_barrier([128] * 2)
with T.ws(0):
    T.clear(G)
for k in T.serial(4):
    with T.ws(1):
        T.barrier_wait(empty[k % 2], (k // 2 + 1) % 2)
        T.copy(A[0, k * 16], S[k % 2, :, :])
        T.barrier_arrive(full[k % 2])
    with T.ws(0):
        T.barrier_wait(full[k % 2], k // 2 % 2)
        T.copy(S[k % 2, :, :], F)
        for i, j in T.Parallel(64, 16):
            G[i, j] += F[i, j]
        T.barrier_arrive(empty[k % 2])
with T.ws(0):
    T.copy(G, O[0, 0])
"""


def test_groups_hand_buffers_to_and_fro() -> None:
    found = on_card(RING, exact=False)
    wanted = found["A"].reshape(64, 4, 16).sum(axis=1, dtype=np.float32)
    np.testing.assert_allclose(found["O"][:, :16], wanted, rtol=1e-5, atol=1e-5)


def test_the_text_has_the_kernels_barriers_and_no_others() -> None:
    kernel = kernel_of(RING, threads=256).using(target="cuda:sm_90a")()
    text = kernel.stage("cuda")
    body = text[text.index("__global__") :]
    # The block meets once, when the barriers have been made.
    assert body.count("__syncthreads();  // barriers are made before they are used") == 1
    assert body.count("__syncthreads") == 1
    assert "bar.sync" not in body
    assert body.count("tb_mbarrier_init(") == 4
    assert "tb_mbarrier_wait(full + k % 2, k / 2 % 2);" in body
    assert "tb_mbarrier_arrive(empty + k % 2);" in body
    kernel.reach_code()


def test_barriers_keep_their_bytes_to_the_end() -> None:
    body = """
        full = T.alloc_barrier(128)
        with T.ws(0):
            T.barrier_arrive(full)
            T.barrier_wait(full, 0)
        S = T.alloc_shared((64, 64), "float32")
        R = T.alloc_shared((64, 64), "float32")
        T.copy(A, S)
        for i, j in T.Parallel(64, 64):
            R[i, j] = S[j, i]
        T.copy(R, O)
        """
    found = on_card(body)
    np.testing.assert_array_equal(found["O"], found["A"].T)
    text = kernel_of(body, threads=256).using(target="cuda:sm_90a")().stage("threaded")
    offsets = dict(re.findall(r"(\w+) = T.alloc_shared\(.*offset=(\d+)\)", text))
    assert len({offsets[name] for name in ("full", "S", "R")}) == 3


def test_a_group_may_wait_for_one_that_the_text_has_later() -> None:
    body = """
        S = T.alloc_shared((64, 64), "float32")
        R = T.alloc_shared((64, 64), "float32")
        there = T.alloc_barrier(128)
        back = T.alloc_barrier(128)
        tx = T.get_thread_binding()
        if tx < 128:
            T.mbarrier_wait_parity(mbarrier=there, parity=0)
            for i, j in T.Parallel(64, 64):
                R[i, j] = S[j, i] + 1.0
            T.mbarrier_arrive(mbarrier=back)
        else:
            T.copy(A, S)
            T.mbarrier_arrive(mbarrier=there)
            T.mbarrier_wait_parity(back, 0)
            T.copy(R, O)
        """
    found = on_card(body)
    np.testing.assert_array_equal(found["O"], found["A"].T + 1)
    text = kernel_of(body, threads=256).using(target="cuda:sm_90a")().stage("cuda")
    assert text[text.index("__global__") :].count("__syncthreads") == 1


def test_a_group_meets_for_what_it_did_itself() -> None:
    body = RING.replace(
        "        T.copy(S[k % 2, :, :], F)\n",
        "        for i, j in T.Parallel(64, 16):\n            R[i, j] = S[k % 2, i, 15 - j]\n"
        "        T.copy(R, F)\n",
    )
    found = on_card('R = T.alloc_shared((64, 16), "float32")' + body, exact=False)
    wanted = found["A"].reshape(64, 4, 16).sum(axis=1, dtype=np.float32)[:, ::-1]
    np.testing.assert_allclose(found["O"][:, :16], wanted, rtol=1e-5, atol=1e-5)
    kernel = kernel_of('R = T.alloc_shared((64, 16), "float32")' + body, threads=256)
    text = kernel.using(target="cuda:sm_90a")().stage("cuda")
    # Between the store and the load of R, and before the store of the next turn.
    assert text.count('"bar.sync 1, 128;"') == 2
    assert text[text.index("__global__") :].count("__syncthreads") == 1


def test_one_thread_arrives_for_its_group() -> None:
    body = """
        S = T.alloc_shared((64, 64), "float32")
        full = T.alloc_barrier(1)
        with T.ws(0):
            T.copy(A, S)
            T.sync_threads(1, 128)
            with T.threads(0, 1):
                T.barrier_arrive(full)
        with T.ws(1):
            T.barrier_wait(full, 0)
            T.copy(S, O)
        """
    found = on_card(body)
    np.testing.assert_array_equal(found["O"], found["A"])


def test_barriers_named_by_number() -> None:
    body = """
        S = T.alloc_shared((64, 64), "float32")
        T.create_list_of_mbarrier(128, 128)
        with T.ws(0):
            T.copy(A, S)
            T.ptx_arrive_barrier(T.get_mbarrier(1))
        with T.ws(1):
            T.mbarrier_wait_parity(T.get_mbarrier(1), 0)
            T.copy(S, O)
        """
    found = on_card(body)
    np.testing.assert_array_equal(found["O"], found["A"])


def test_a_block_that_waits_for_all_its_threads() -> None:
    body = """
        S = T.alloc_shared((64, 64), "float32")
        full = T.alloc_barrier(256)
        for k in T.serial(2):
            T.copy(A, S)
            T.barrier_arrive(full)
            T.barrier_wait(full, k % 2)
            T.copy(S, O)
        """
    found = on_card(body)
    np.testing.assert_array_equal(found["O"], found["A"])


REFUSED = {
    "no count": ("b = T.alloc_barrier(0)", "the count of arrivals of T.alloc_barrier is 0"),
    "no barrier": ("b = T.alloc_barrier([])", "T.alloc_barrier makes no barrier"),
    "a tile": (
        "S = T.alloc_shared((4,), 'uint64')\nT.barrier_arrive(S)",
        "T.barrier_arrive takes a barrier of T.alloc_barrier",
    ),
    "several at once": (
        "b = T.alloc_barrier([1, 1])\nT.barrier_arrive(b[0:2])",
        "T.barrier_arrive takes a barrier of T.alloc_barrier",
    ),
    "one that is not there": (
        "b = T.alloc_barrier([1, 1])\nT.barrier_arrive(b[2])", "index 2 is outside dimension 0 of b",
    ),
    "a parity": (
        "b = T.alloc_barrier(1)\nT.barrier_wait(b, 2)", "T.barrier_wait waits for a parity of 2",
    ),
    "another block": (
        "b = T.alloc_barrier(1)\nT.mbarrier_arrive(b, cta_id=1)",
        "T.mbarrier_arrive names another block of a cluster",
    ),
    "made again and again": (
        "for k in T.serial(2):\n    b = T.alloc_barrier(1)\n    T.barrier_wait(b, 1)",
        "a barrier is made once for the block, and this is done again and again, or by some threads",
    ),
    "no list": ("T.barrier_arrive(T.get_mbarrier(0))", "T.get_mbarrier stands behind"),
    "two lists": ("T.create_list_of_mbarrier(1)\nT.create_list_of_mbarrier(1)", "a kernel has one list"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_no_barrier_is_refused_at_its_line(name: str) -> None:
    body, said = REFUSED[name]
    with pytest.raises(TileError) as caught:
        kernel_of(body + "\nT.copy(A, O)", threads=256).using(target="cuda:sm_90a")().stage("threaded")
    assert caught.value.message.startswith(said)
    assert caught.value.place is not None
    assert caught.value.place.line > 8


def test_other_machines_have_none() -> None:
    for target, said in (
        ("cuda:sm_75", "cuda:sm_75 has no barriers in shared memory"),
        ("cpu", "cpu has no lowering of T.alloc_barrier"),
    ):  # fmt: skip
        with pytest.raises(TileError) as caught:
            kernel_of(RING, threads=256).using(target=target)().reach_code()
        assert caught.value.message == said
        assert caught.value.place is not None


# What is wrong in `RING`: a text there, what stands in its place, what the simulator says, and at which line.
WRONG = {
    "nobody waits for the tile": (
        ("        T.barrier_wait(full[k % 2], k // 2 % 2)\n", ""),
        "a race in shared memory: a read of S by thread 0, and thread 128 wrote it with no barrier between",
        "T.copy(S[k % 2, :, :], F)",
    ),
    "the parity of the first phase": (
        ("T.barrier_wait(full[k % 2], k // 2 % 2)", "T.barrier_wait(full[k % 2], (k // 2 + 1) % 2)"),
        "a deadlock: threads 0 to 127 wait for phase 1 of full[0], of parity 1 (0 of 128 arrivals have come)",
        "T.barrier_wait(full[k % 2], (k // 2 + 1) % 2)",
    ),
    "the parity of the last turn": (
        ("T.barrier_wait(empty[k % 2], (k // 2 + 1) % 2)", "T.barrier_wait(empty[k % 2], k // 2 % 2)"),
        "a deadlock: threads 0 to 127 wait for phase 0 of full[0], of parity 0 (0 of 128 arrivals have come)",
        "T.barrier_wait(full[k % 2], k // 2 % 2)",
    ),
    "nobody releases": (
        ("        T.barrier_arrive(empty[k % 2])\n", ""),
        "a deadlock: threads 0 to 127 wait for phase 1 of full[0], of parity 1 (0 of 128 arrivals have come)",
        "T.barrier_wait(full[k % 2], k // 2 % 2)",
    ),
    "arrived before it was written": (
        (
            "        T.copy(A[0, k * 16], S[k % 2, :, :])\n        T.barrier_arrive(full[k % 2])\n",
            "        T.barrier_arrive(full[k % 2])\n        T.copy(A[0, k * 16], S[k % 2, :, :])\n",
        ),
        "a race in shared memory: a read of S by thread 0, and thread 128 wrote it with no barrier between",
        "T.copy(S[k % 2, :, :], F)",
    ),
    "too few arrive": (
        ("full = T.alloc_barrier([128] * 2)", "full = T.alloc_barrier([256] * 2)"),
        (
            "a deadlock: threads 0 to 127 wait for phase 0 of full[0], of parity 0 (128 of 256 arrivals have "
            "come)"
        ),
        "T.barrier_wait(full[k % 2], k // 2 % 2)",
    ),
    "too many arrive": (
        ("empty = T.alloc_barrier([128] * 2)", "empty = T.alloc_barrier([64] * 2)"),
        "128 arrivals come to empty[0], and its phase takes 64 more of 64",
        "T.barrier_arrive(empty[k % 2])",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_kernels_are_told_at_the_users_line(name: str) -> None:
    (right, wrong), said, line = WRONG[name]
    assert RING.count(right) == 1
    with pytest.raises(SimulationError) as caught:
        simulated(RING.replace(right, wrong))
    assert caught.value.message == said
    assert caught.value.place is not None
    assert caught.value.place.text.strip() == line


def test_a_release_that_comes_early() -> None:
    early = RING.replace("        T.barrier_arrive(empty[k % 2])\n", "").replace(
        "        T.copy(S[k % 2, :, :], F)\n",
        "        T.barrier_arrive(empty[k % 2])\n        T.copy(S[k % 2, :, :], F)\n",
    )
    with pytest.raises(SimulationError) as caught:
        simulated(early)
    assert caught.value.message == (
        "a race in shared memory: a write of S by thread 128, and thread 0 read it with no barrier between"
    )
    assert caught.value.place is not None
    assert caught.value.place.text.strip() == "T.copy(A[0, k * 16], S[k % 2, :, :])"
    assert [place.text.strip() for _, place in caught.value.parts] == ["T.copy(S[k % 2, :, :], F)"]


def test_the_reference_tells_who_waits_for_whom() -> None:
    wrong = RING.replace("(k // 2 + 1) % 2", "k // 2 % 2")
    function = kernel_of(wrong, threads=256).using(target="cuda:sm_90a")().compilation.reference
    arrays = {name: np.zeros((64, 64), np.float32) for name in ("A", "O")}
    with pytest.raises(TileError) as caught:
        run_reference(function, arrays)
    assert str(caught.value).splitlines()[0] == (
        "language error: groups of threads wait for each other for ever: threads 0 to 127 wait for phase 0 "
        "of full[0], of parity 0 (0 of 128 arrivals have come)"
    )
    assert "threads 128 to 255 wait for phase 0 of empty[0], of parity 0" in str(caught.value)


def test_what_groups_hand_on_without_a_barrier_is_told() -> None:
    body = """
        S = T.alloc_shared((64, 64), "float32")
        there = T.alloc_barrier(128)
        with T.ws(0):
            T.barrier_wait(there, 0)
            T.copy(A, S)
        with T.ws(1):
            T.barrier_arrive(there)
            T.copy(S, O)
        """
    with pytest.raises(TileError) as caught:
        kernel_of(body, threads=256).using(target="cuda:sm_90a")().stage("threaded")
    assert caught.value.message == (
        "threads 128 to 255 read S, which threads 0 to 127 write, and no barrier of the kernel's is between"
    )
    assert caught.value.place is not None
    assert caught.value.place.text.strip() == "with T.ws(1):"
    assert [place.text.strip() for _, place in caught.value.parts] == ["T.barrier_wait(there, 0)"]


@tilebench.jit
def of_any_threads() -> Any:
    """How many threads it has is left to a schedule."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1):
            full = T.alloc_barrier(128)
            S = T.alloc_shared((256,), "float32")
            with T.ws(0):
                T.copy(A, S)
                T.barrier_arrive(full)
            with T.ws(1):
                T.barrier_wait(full, 0)
                T.copy(S, B)

    return main


def test_the_reference_runs_all_groups_of_a_kernel_that_leaves_its_threads_open() -> None:
    kernel = of_any_threads.using(target="cuda:sm_80", schedule=Schedule.of(threads=256))()
    given = {"A": np.arange(256, dtype=np.float32), "B": np.zeros(256, np.float32)}
    found = run_reference(kernel.compilation.functions["tile"], given)
    np.testing.assert_array_equal(found["B"], given["A"])


def test_what_threads_have_of_their_own_is_there_in_every_group() -> None:
    body = """
        full = T.alloc_barrier(128)
        own = T.alloc_local((4,), "float32")
        for k in T.serial(4):
            own[k] = A[0, k]
        zeros = T.alloc_local((4,), "float32")
        T.clear(zeros)
        v = A[1, T.Ramp(4, 1, 4)]
        S = T.alloc_shared((64, 64), "float32")
        with T.ws(0):
            T.copy(A, S)
            T.barrier_arrive(full)
        with T.ws(1):
            T.barrier_wait(full, 0)
            for i, j in T.Parallel(64, 64):
                O[i, j] = S[i, j] + own[1] + v[2] + zeros[3]
        """
    found = on_card(body)
    a = found["A"]
    np.testing.assert_array_equal(found["O"], a + a[0, 1] + a[1, 6])
