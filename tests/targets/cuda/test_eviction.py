"""How long caches keep what copies in boxes move: hints of kernels and schedules, and where none is taken."""

from __future__ import annotations

from typing import Any

from tests.everywhere import kernel_of
from tests.targets.cuda.test_clusters import product
from tests.targets.cuda.test_tma_rings import by_boxes, run
from tilebench.schedule import Schedule

HEAD = 'A: T.Tensor((256, 64), "float16"), O: T.Tensor((256, 64), "float16")'
BODY = """
S = T.alloc_shared((64, 64), "float16")
for k in T.Pipelined(4, num_stages=2):
    T.copy(A[k * 64, 0], S, eviction_policy="evict_first")
    T.copy(S, O[k * 64, 0], eviction_policy="evict_last")
"""


def remarks(kernel: Any) -> list[str]:
    return [remark.message for remark in kernel.record().remarks]


def test_a_kernel_says_it_of_a_load_and_of_a_store() -> None:
    schedule = Schedule.of(copy={"S": {"instruction": "tma"}, "O": {"instruction": "tma"}})
    kernel = kernel_of(BODY, HEAD, 128).using(target="cuda:sm_90a", schedule=schedule)()
    text, code = kernel.stage("threaded"), kernel.stage("sass")
    assert 'eviction="evict_first")' in text
    assert 'eviction="evict_last")' in text
    assert "createpolicy.fractional.L2::evict_first.b64" in kernel.stage("cuda")
    assert "createpolicy.fractional.L2::evict_normal" not in kernel.stage("cuda")
    for word in ("UTMALDG", "UTMASTG"):
        assert all(".desc" in line or "desc[" in line for line in code.splitlines() if word in line)
    run(kernel)


def test_a_schedule_says_it_and_overrules_the_kernel() -> None:
    kernel = by_boxes(BODY, HEAD, "S")
    assert 'eviction="evict_first")' in kernel.stage("threaded")
    named = {"S": {"instruction": "tma", "eviction": "evict_normal"}}
    schedule = Schedule.of(copy=named)
    other = kernel_of(BODY, HEAD, 128).using(target="cuda:sm_90a", schedule=schedule)()
    loads = [line for line in other.stage("threaded").splitlines() if "T.tma_load(" in line]
    assert loads
    assert not any("eviction" in line for line in loads)


def test_what_goes_to_several_blocks_has_it_too() -> None:
    copies = {"A_s": {"instruction": "tma"}, "B_s": {"instruction": "tma", "eviction": "evict_last"}}
    kernel = product(cluster=[1, 2], copy=copies)
    assert "tb_tma_send_2d_evict_last(" in kernel.stage("cuda")
    assert "tb_tma_load_2d(" in kernel.stage("cuda")
    assert kernel.record().resources.spill_store_bytes == 0


def test_another_instruction_is_told_nothing_and_says_so() -> None:
    kernel = kernel_of(BODY, HEAD, 128).using(target="cuda:sm_90a")()
    told = "evict_first is told of a copy in boxes alone, and this goes by another instruction"
    assert told in remarks(kernel)
    assert "eviction" not in kernel.stage("threaded")


def test_a_processor_is_told_nothing() -> None:
    kernel = kernel_of(BODY, HEAD, 128).using(target="cpu")()
    rows = [choice for choice in kernel.record().choices if choice.name == "eviction"]
    assert [(row.origin, row.why) for row in rows] == [
        ("kernel", "not used by cpu: its caches are told nothing")
    ] * 2


def test_a_copy_by_hand_says_it() -> None:
    body = """
S = T.alloc_shared((64, 64), "float16")
full = T.alloc_barrier(128)
T.tma_copy(A[0, 0], S, barrier=full, eviction_policy="evict_first")
T.barrier_arrive(full)
T.barrier_wait(full, 0)
T.copy(S, O[0, 0])
"""
    kernel = kernel_of(body, HEAD, 128).using(target="cuda:sm_90a")()
    assert 'eviction="evict_first")' in kernel.stage("threaded")
    assert "tb_tma_load_2d_evict_first(" in kernel.stage("cuda")
