"""Barriers in phases: their text for the cards, what a card without them says, and right values of a ring."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import kernel_of
from tests.simulated import card_words, run_threaded
from tilebench.errors import TargetError
from tilebench.ir import parse_function
from tilebench.kernel.edited import compile_from

# Half of the block brings rows of A into a ring, the other half takes them out.
RING = """@T.prim_func
def main(A: T.Tensor(({steps}, 32), T.float32), O: T.Tensor(({steps}, 32), T.float32)):
    with T.Kernel(2, threads=64, shared_bytes=1024) as bx:
        tid: T.int32 = T.thread_id()
        S = T.alloc_shared(({width},), T.float32, offset=512)
        full = T.alloc_shared(({stages},), T.uint64, offset=0)
        empty = T.alloc_shared(({stages},), T.uint64, offset={after})
        if tid < {stages}:
            T.mbarrier_init(full[tid : tid + 1], {count})
            T.mbarrier_init(empty[tid : tid + 1], 32)
{fences}        T.sync_threads()
        if tid < 32:
            for k in T.serial({steps}):
                T.mbarrier_wait(empty[k % {stages} : k % {stages} + 1], (k // {stages} + 1) % 2)
                S[k % {stages} * 32 + tid] = A[k, tid]
{arrive}
        else:
            for k in T.serial({steps}):
                T.mbarrier_wait(full[k % {stages} : k % {stages} + 1], k // {stages} % 2)
                if bx == 0:
                    O[k, tid - 32] = S[k % {stages} * 32 + 63 - tid]
                T.mbarrier_arrive(empty[k % {stages} : k % {stages} + 1])
"""
SINGLE = "                T.mbarrier_arrive(full[k % {stages} : k % {stages} + 1])"
# Of sm_90: a warp's arrivals as one, bytes announced apart and with an arrival.
COUNTED = """                T.sync_warp()
                if tid == 0:
                    T.mbarrier_expect(full[k % {stages} : k % {stages} + 1], 0)
                    T.mbarrier_arrive(full[k % {stages} : k % {stages} + 1], count=31)
                    T.mbarrier_arrive(full[k % {stages} : k % {stages} + 1], bytes=0)"""
FENCES = "        T.fence_mbarrier_init()\n        T.fence_async_shared()\n"


def ring(steps: int, stages: int, arrive: str = SINGLE, fences: str = "") -> str:
    text = RING.replace("{arrive}", arrive).replace("{fences}", fences)
    values = {"steps": steps, "count": 32, "stages": stages, "width": stages * 32, "after": stages * 8}
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


@pytest.mark.parametrize("arrive", [SINGLE, COUNTED])
@pytest.mark.parametrize(("steps", "stages"), [(0, 2), (1, 3), (2, 2), (7, 3), (9, 4), (5, 1)])
def test_a_ring_between_two_halves_of_a_block(steps: int, stages: int, arrive: str) -> None:
    rows = max(1, steps)
    text = ring(steps, stages, arrive).replace(f"T.Tensor(({steps}, 32)", f"T.Tensor(({rows}, 32)")
    a = np.arange(rows * 32, dtype=np.float32).reshape(rows, 32)
    o = np.zeros_like(a)
    run_threaded(parse_function(text, card_words()), {"A": a, "O": o}, warp=32)
    np.testing.assert_array_equal(o[:steps], a[:steps, ::-1])


def compiled(text: str, arch: str):
    head = 'A: T.Tensor((9, 32), "float32"), O: T.Tensor((9, 32), "float32")'
    like = kernel_of("T.copy(A, O)", head).using(target=f"cuda:{arch}")()
    return compile_from("threaded", text, like=like)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120a"])
def test_they_are_the_instructions_of_those_names(arch: str) -> None:
    ninety = arch != "sm_80"
    made = compiled(ring(9, 4, COUNTED if ninety else SINGLE, FENCES if ninety else ""), arch)
    text = made.stage("cuda")
    assert "tb_mbarrier_wait(empty + k % 4, (k / 4 + 1) % 2);" in text.replace("  ", " ")
    ptx, sass = made.stage("ptx"), made.stage("sass")
    wait = "try_wait.parity.shared::cta.b64" if ninety else "test_wait.parity.shared"
    assert f"mbarrier.{wait}" in ptx
    assert "mbarrier.init.shared" in ptx
    assert "SYNCS" in sass if ninety else "ATOMS" in sass
    if ninety:
        for name in ("mbarrier.expect_tx.relaxed.cta", "mbarrier.arrive.expect_tx", "fence.mbarrier_init",
                     "fence.proxy.async.shared::cta", "mbarrier.arrive.shared::cta.b64 _,"):  # fmt: skip
            assert name in ptx, name


def test_its_bytes_are_free_again_behind_inval() -> None:
    text = ring(9, 4).rstrip() + (
        "\n        T.sync_threads()\n        if tid < 4:\n"
        "            T.mbarrier_inval(full[tid : tid + 1])\n            S[tid] = A[0, tid]\n"
    )
    assert "mbarrier.inval.shared.b64" in compiled(text, "sm_90a").stage("ptx")
    a = np.ones((9, 32), np.float32)
    run_threaded(parse_function(text, card_words()), {"A": a, "O": np.zeros_like(a)}, warp=32)


@pytest.mark.parametrize(
    ("arch", "text", "said"),
    [
        ("sm_75", ring(9, 4),
         "T.mbarrier_init needs barriers in shared memory (sm_80), which cuda:sm_75 has not"),
        ("sm_80", ring(9, 4, COUNTED),
         "T.mbarrier_expect needs copies of the tensor memory accelerator (sm_90), which cuda:sm_80 has not"),
        ("sm_90a", ring(9, 4).replace("(4,), T.uint64, offset=32", "(4,), T.int32, offset=32"),
         "empty is no barrier: barriers are uint64 in shared memory"),
        ("sm_90a", ring(9, 4, COUNTED).replace("bytes=0", "count=2, bytes=0"),
         "an arrival that announces bytes is one: it has no count"),
    ],
)  # fmt: skip
def test_what_has_no_code_is_refused_at_its_line(arch: str, text: str, said: str) -> None:
    with pytest.raises(TargetError) as caught:
        compiled(text, arch).stage("cuda")
    assert caught.value.message == said
    assert caught.value.place is not None
