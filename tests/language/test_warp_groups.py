"""Warp groups by hand: registers that they hand over, and barriers with a number that several come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tests.simulated import run_threaded
from tilebench.errors import TileError
from tilebench.ir import parse_function
from tilebench.simulator import SimulationError
from tilebench.targets import manifest

GROUPS = """
S = T.alloc_shared((64, 64), "float32")
F = T.alloc_fragment((64, 64), "float32")
with T.ws(0):
    T.set_max_nreg(24, 0)
    T.copy(A, S)
    T.named_barrier_arrive(2, 384)
with T.ws(1, 2):
    T.set_max_nreg(240, 1)
    T.sync_threads(2, 384)
    T.copy(S, F)
    for i, j in T.Parallel(64, 64):
        F[i, j] = F[i, j] * 2.0
    T.copy(F, O)
"""


def test_groups_hand_over_registers_and_meet_at_their_own_barrier() -> None:
    found = everywhere(GROUPS, threads=384, arch="sm_90a")
    np.testing.assert_array_equal(found["O"], found["A"] * 2)
    kernel = kernel_of(GROUPS, threads=384).using(target="cuda:sm_90a")()
    assert "with T.threads(0, 128):\n            T.set_max_nreg(24, False)" in kernel.stage("tile")
    text = kernel.stage("cuda")
    assert text.count('asm volatile("setmaxnreg.dec.sync.aligned.u32 24;"') == 1
    assert text.count('asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"') == 1
    assert text.count('asm volatile("bar.arrive 2, 384;"') == 1
    assert text.count('asm volatile("bar.sync 2, 384;"') == 1
    # The groups are in order by their own barrier: the block needs none.
    assert "__syncthreads" not in text


def test_what_threads_have_is_told_and_is_what_the_compiler_gives() -> None:
    kernel = kernel_of(GROUPS, threads=384).using(target="cuda:sm_90a")()
    kernel.reach_code()
    record = kernel.record()
    told = [each.message for each in record.remarks if each.pass_name == "count_registers"]
    assert told == [
        (
            "a thread begins with 168 registers, and has 24 in threads 0 to 127, 240 in threads 128 to 255, "
            "240 in threads 256 to 383 in the end: 64512 of the block's 64512"
        )
    ]
    assert record.resources is not None
    assert record.resources.registers == 168


@pytest.mark.parametrize(
    ("threads", "blocks", "entry"),
    [(256, 1, 240), (512, 1, 128), (384, 2, 80)],
)
def test_the_compiler_gives_as_many_at_the_entry(threads: int, blocks: int, entry: int) -> None:
    body = f"T.annotate_min_blocks_per_sm({blocks})\n"
    groups = threads // 128
    least, most = (24, entry) if groups == 1 else (24, entry + (groups - 1) * (entry - 24) // 8 * 8)
    body += f"with T.ws(0):\n    T.set_max_nreg({min(240, most)}, 1)\n    T.fill(O, 1.0)\n"
    body += "".join(f"with T.ws({k}):\n    T.set_max_nreg({least}, 0)\n" for k in range(1, groups))
    kernel = kernel_of(body, threads=threads).using(target="cuda:sm_90a")()
    kernel.reach_code()
    note = next(each for each in kernel.record().remarks if each.pass_name == "count_registers")
    assert note.values["entry"] == entry
    assert kernel.record().resources.registers == entry


def test_a_fragment_is_of_the_group_that_uses_it() -> None:
    kernel = kernel_of(GROUPS, threads=384).using(target="cuda:sm_90a")()
    # 64 x 64 elements in 256 threads, not in 384.
    assert "F = T.alloc_local((16,), T.float32)" in kernel.stage("threaded")


def test_fragments_fit_the_registers_of_their_group() -> None:
    body = """
        F = T.alloc_fragment((128, 64), "float32")
        with T.ws(0):
            T.set_max_nreg(40, 0)
            T.fill(F, 1.0)
            T.copy(F[0:64, 0:64], O)
        """
    kernel = kernel_of(body, threads=256).using(target="cuda:sm_90a")()
    kernel.stage("threaded")
    told = [each.message for each in kernel.record().remarks if each.kind == "missed"]
    assert (
        "the fragments of a thread of 0 to 127 fill 64 registers and it has 40: what does not fit "
        "lies in memory; F takes 64"
    ) in told


WRONG = {
    "a number": ("T.set_max_nreg(250, 1)", "T.set_max_nreg gives a thread 250 registers"),
    "too few": ("T.dec_max_nreg(16)", "T.dec_max_nreg gives a thread 16 registers"),
    "a way": ("T.set_max_nreg(240, 2)", "T.set_max_nreg takes 1 to take registers and 0 to give them"),
    "half a group": (
        "with T.threads(0, 64):\n    T.set_max_nreg(24, 0)",
        "threads 0 to 63 are no whole warp groups, which hand registers over together",
    ),
    "more than there are": (
        "with T.ws(0):\n    T.set_max_nreg(40, 0)\nwith T.ws(1, 2):\n    T.set_max_nreg(240, 1)",
        "a group would wait for ever: all groups together take 66560 registers, and the block has 64512",
    ),
    "a lesser number taken": (
        "with T.ws(0):\n    T.set_max_nreg(240, 1)\n    T.set_max_nreg(232, 1)",
        "232 registers are fewer than the 240 that threads 0 to 127 have here",
    ),
    "a barrier of fewer": (
        "with T.ws(0):\n    T.sync_threads(1, 64)",
        "a barrier of 64 threads, where 128 come to it",
    ),
    "a barrier of more": (
        "with T.ws(0):\n    T.named_barrier_arrive(1, 512)",
        "a barrier of 512 threads, where 128 come to it",
    ),
    "no such barrier": (
        "with T.ws(0):\n    T.sync_threads(16, 128)",
        "there is no barrier 16 for some threads of a block",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_what_groups_cannot_do_is_refused_at_its_line(name: str) -> None:
    body, message = WRONG[name]
    with pytest.raises(TileError) as caught:
        kernel_of(body + "\nT.copy(A, O)", threads=384).using(target="cuda:sm_90a")().stage("threaded")
    assert caught.value.message == message
    assert caught.value.place is not None
    assert caught.value.place.line > 8


def test_other_cards_keep_their_registers() -> None:
    with pytest.raises(TileError) as caught:
        kernel_of(GROUPS, threads=384).using(target="cuda:sm_80")().stage("cuda")
    assert caught.value.message == "threads of cuda:sm_80 keep the registers that they have"


def test_the_compiler_leaves_numbers_of_barriers_to_the_kernel() -> None:
    body = """
        S = T.alloc_shared((64, 64), "float32")
        R = T.alloc_shared((64, 64), "float32")
        with T.ws(0):
            T.copy(A, S)
            for i, j in T.Parallel(64, 64):
                R[i, j] = S[j, i]
            T.sync_threads(1, 256)
        with T.ws(1):
            T.sync_threads(1, 256)
            T.copy(R, O)
        """
    found = everywhere(body, threads=256)
    np.testing.assert_array_equal(found["O"], found["A"].T)
    text = kernel_of(body, threads=256).using(target="cuda:sm_80")().stage("cuda")
    # The group's own barrier between its store and its load has another number.
    assert '"bar.sync 2, 128;"' in text
    assert text.count('"bar.sync 1, 256;"') == 2


HEAD = """@T.prim_func
def kernel(A: T.Tensor((384,), T.float32), C: T.Tensor((384,), T.float32)):
    with T.Kernel(2, threads=384) as bx:
        tid: T.int32 = T.thread_id()
"""
# (the body, what is said, at which of its lines)
SIMULATED = {
    "enough": ("if tid < 128:\n    T.set_max_nreg(24, False)\nelse:\n    T.set_max_nreg(240, True)", "", 0),
    "handed back and taken again": (
        (
            "if tid < 128:\n    T.set_max_nreg(240, True)\n    T.set_max_nreg(24, False)\n"
            "    T.sync_threads(barrier=1, threads=256)\n"
            "elif tid < 256:\n    T.set_max_nreg(80, False)\n    T.sync_threads(barrier=1, threads=256)\n"
            "    T.set_max_nreg(240, True)\n"
            "else:\n    T.set_max_nreg(160, False)"
        ),
        "", 0,
    ),
    "nobody gives": (
        "if tid < 128:\n    T.set_max_nreg(240, True)\nelse:\n    T.sync_warp()",
        (
            "a deadlock: threads 0 to 127 wait for 240 registers each, of which they have 168, and the block "
            "has 0 to give; the other threads have ended"
        ),
        2,
    ),
    "part of a group": (
        "if tid < 64:\n    T.set_max_nreg(24, False)",
        "not all warps of a warp group come here, and they hand registers over together",
        2,
    ),
    "more given back than there": (
        "if tid < 128:\n    T.set_max_nreg(24, False)\n    T.set_max_nreg(40, False)",
        "40 registers are more than the 24 that the threads have",
        3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SIMULATED))
def test_registers_in_the_simulator(name: str) -> None:
    body, said, line = SIMULATED[name]
    text = HEAD + "".join(f"        {each}\n" for each in body.splitlines())
    function: Any = parse_function(text, manifest("cuda").registry)
    arrays = {name: np.zeros(384, np.float32) for name in ("A", "C")}
    if not said:
        run_threaded(function, arrays, warp=32)
        return
    with pytest.raises(SimulationError) as caught:
        run_threaded(function, arrays, warp=32)
    assert caught.value.message == said
    assert caught.value.place is not None
    assert caught.value.place.line == HEAD.count("\n") + line
