"""Hints of TileLang's: those that choose something do, the others are told at their line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError

COPY = "for i, j in T.Parallel(64, 64):\n    O[i, j] = A[i, j]\n"


def told(kernel: Any) -> list[str]:
    """The notes among the remarks of a kernel's compilation."""
    return [each.message for each in kernel.record().remarks if each.pass_name == "tell_notes"]


def test_hints_that_hold_anyway() -> None:
    body = """
        base = T.alloc_fragment((1,), "int32", "local")
        S = T.alloc_fragment((64, 64), "float32", "shared")
        T.no_set_max_nreg()
        T.disable_warp_group_reg_alloc()
        base[0] = 0
        T.copy(A, S, disable_tma=True, prefer_instruction="sync")
        for i, j in T.Parallel(64, 64):
            O[i, j] = S[j, i + base[0]]
        """
    found = everywhere(body)
    np.testing.assert_array_equal(found["O"], found["A"].T)
    assert not told(kernel_of(body).using(target="cuda:sm_80")())


TILES = (
    "S = T.alloc_shared((64, 64), 'float32')\nF = T.alloc_fragment((64, 64), 'float32')\n"
    "r = T.alloc_fragment((64,), 'float32')\nT.copy(A, S)\nT.copy(S, F)\n"
)
# What a remark names; behind it stands that it chooses nothing here.
OPTIONS = [
    ("T.copy(A, O, prefer_instruction='tma')", "T.copy(prefer_instruction='tma')"),
    ("T.copy(A, O, annotations={'x': 1})", "T.copy(annotations={'x': 1})"),
    ("for i in T.Parallel(64, prefer_async=True):\n    O[i, 0] = A[i, 0]", "T.Parallel(prefer_async=True)"),
    ("for i in T.serial(64, annotations={'x': 1}):\n    T.copy(A, O)", "T.serial(annotations={'x': 1})"),
    (TILES + "T.reduce_sum(F, r, batch=4)", "T.reduce_sum(batch=4)"),
    (TILES + "T.gemm(S, S, F, k_pack=2)", "T.gemm(k_pack=2)"),
    ("T.atomic_add(O[0, 0], 1.0, use_tma=True)", "T.atomic_add(use_tma=True)"),
    ("T.annotate_l2_hit_ratio({A: 0.5})", "T.annotate_l2_hit_ratio(A: 0.5)"),
    ("T.annotate_restrict_buffers(A, O)", "T.annotate_restrict_buffers(A, O)"),
    ("T.annotate_pass_configs({'tl.x': True})", "T.annotate_pass_configs(tl.x: True)"),
    ("T.annotate_compile_flags(['-O3', '-g'])", "T.annotate_compile_flags(-O3 -g)"),
    ("T.annotate_producer_reg_dealloc()", "T.annotate_producer_reg_dealloc(24)"),
    ("T.annotate_consumer_reg_alloc(232)", "T.annotate_consumer_reg_alloc(232)"),
    ("for k in T.Pipelined(4, group=[[0]]):\n    T.copy(A, O)", "T.Pipelined(group=[[0]])"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "remark"), OPTIONS)
def test_what_chooses_nothing_is_told_at_its_line(body: str, remark: str) -> None:
    kernel = kernel_of(body + "\n" + COPY).using(target="cuda:sm_80")()
    assert [text.split(" chooses nothing here")[0] for text in told(kernel)] == [remark]
    lines = [each.place for each in kernel.record().remarks if each.pass_name == "tell_notes"]
    assert all(place is not None for place in lines)


REFUSED = [
    ("T.copy(A, O, eviction_policy='later')", "T.copy has no eviction_policy 'later'"),
    ("T.copy(A, O, prefer_instruction='cp')", "T.copy has no prefer_instruction 'cp'"),
    ("T.set_max_nreg(41, 0)", "T.set_max_nreg gives a thread 41 registers"),
    ("T.annotate_min_blocks_per_sm(0)", "T.annotate_min_blocks_per_sm"),
    ("T.annotate_l2_hit_ratio(A)", "T.annotate_l2_hit_ratio takes a dict"),
    ("T.annotate_restrict_buffers(3)", "T.annotate_restrict_buffers takes arrays"),
    ("T.annotate_safe_value({A: A[0, 0]})", "the safe value of A is a constant"),
    ("T.annotate_safe_value({A: 1})\nT.annotate_safe_value({A: 2})", "A is given two safe values"),
    ("S = T.alloc_shared((4,), 'float32')\nT.annotate_safe_value({S: 1})", "is for arrays in global memory"),
    ("T.assume(1 > 2)", "what T.assume says never holds"),
    ("for i in T.Parallel(64, loop_layout=3):\n    O[i, 0] = 1.0", "takes a T.Fragment"),
    ("for i in T.Parallel(64, loop_layout=T.Fragment((32,), lambda i: (i, 0))):\n    O[i, 0] = 1.0",
     r"a mapping of extents \(32,\) does not fit a loop over \(64,\)"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "said"), REFUSED)
def test_what_is_refused(body: str, said: str) -> None:
    kernel = kernel_of(body)
    with pytest.raises(TileError, match=said):
        kernel()


def test_blocks_on_a_multiprocessor() -> None:
    body = "T.annotate_min_blocks_per_sm(3)\n" + COPY
    everywhere(body)
    kernel = kernel_of(body).using(target="cuda:sm_80")()
    assert "T.Kernel(1, threads=128, min_blocks=3)" in kernel.stage("tile")
    assert "__launch_bounds__(128, 3)" in kernel.stage("cuda")
    host = kernel_of(body).using(target="cpu")()
    found = [each for each in host.record().choices if each.name == "min_blocks"]
    assert [(each.value, each.why) for each in found] == [
        ("3", "not used by cpu: blocks of a processor share no registers")
    ]


def test_the_mapping_of_a_loop_is_the_kernels() -> None:
    body = """
        F = T.alloc_fragment((64, 64), "float32")
        R = T.alloc_fragment((64,), "float32")
        S = T.alloc_shared((64, 64), "float32")
        T.copy(A, S, loop_layout=T.Fragment(
            (64, 64), lambda i, j: (j % 32 + i % 2 * 32, i // 2 * 2 + j // 32)))
        for i, j in T.Parallel(64, 64, loop_layout=T.Fragment(
                (64, 64), lambda i, j: (i * 2 + j % 2, j // 2))):
            F[i, j] = S[j, i] + 1
        T.reduce_sum(F, R, dim=1)
        for i, j in T.Parallel(64, 64, coalesced_width=2):
            F[i, j] = F[i, j] + R[i]
        for i, j in T.Parallel(64, 64, loop_layout=T.Fragment(
                (64, 64), lambda i, j, r: (i + r * 64, j), replicate=2)):
            T.atomic_add(O[i, j], F[i, j])
        """
    everywhere(body, exact=False)
    text = kernel_of(body).using(target="cuda:sm_80")().stage("laid_out")
    assert "thread=((32, 1, 1), (2, 0, 1), (2, -1, 0)), value=((2, 1, 32), (32, 0, 2))" in text
    assert "thread=((2, 1, 1), (64, 0, 1)), value=((32, 1, 2),)" in text
    assert "thread=((64, 0, 1), (2, -1, 0)), value=((64, 1, 1),)" in text


def test_a_mapping_of_a_shorter_loop_over_a_fragment() -> None:
    found = everywhere(
        """
        F = T.alloc_fragment((64, 64), "float32")
        T.clear(F)
        for i, j in T.Parallel(32, 64, loop_layout=T.Fragment(
                (32, 64), lambda i, j: (i * 4 + j % 4, j // 4))):
            F[i, j] = A[i, j]
        T.copy(F, O)
        """
    )
    np.testing.assert_array_equal(found["O"][:32], found["A"][:32])
    assert not found["O"][32:].any()


def test_what_lies_outside_an_array_is_its_safe_value() -> None:
    a = np.random.default_rng(1).uniform(-2, 2, (64, 64)).astype(np.float32)
    found = everywhere(
        """
        T.annotate_safe_value({A: -T.infinity("float32")})
        S = T.alloc_shared((80, 64), "float32")
        F = T.alloc_fragment((64, 64), "float32")
        m = T.alloc_fragment((80,), "float32")
        G = T.alloc_fragment((80, 64), "float32")
        T.copy(A[0:80, 0:64], S)
        T.copy(S, G)
        T.copy(A[8:72, 3:67], F)
        T.reduce_max(G, m, dim=1)
        for i, j in T.Parallel(64, 64):
            O[i, j] = F[i, j] + T.max(A[i + 60, j], 5.0) + T.max(m[i + 15], -3.0)
        """,
        A=a,
    )
    padded = np.full((160, 80), -np.inf, np.float32)
    padded[:64, :64] = a
    rows = np.maximum(padded[15:79, :64].max(1), -3)
    wanted = padded[8:72, 3:67] + np.maximum(padded[60:124, :64], 5) + rows[:, None]
    np.testing.assert_array_equal(found["O"], wanted)


def test_a_safe_value_is_converted() -> None:
    found = everywhere(
        "T.annotate_safe_value({A: T.infinity('float32')})\nT.copy(A[32:96, 0:64], O)",
        head='A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float16")',
    )
    assert np.isposinf(found["O"][32:]).all()


def test_a_safe_value_and_a_layout_of_one_array() -> None:
    found = everywhere(
        """
        T.annotate_layout({A: lambda i, j: (j, i)})
        T.annotate_safe_value({A: 7})
        T.copy(A[32:96, 0:64], O)
        """
    )
    np.testing.assert_array_equal(found["O"][:32], found["A"].T[32:])
    assert (found["O"][32:] == 7).all()


ASSUMED = """
T.assume(b0 < 1)
for i in T.serial(T.cast(A[0, 0], "int32")):
    T.assume(i < 64)
    for j in T.Parallel(64):
        O[i, j] = A[i, j]
"""


def test_what_is_assumed_is_not_tested_and_the_reference_checks_it() -> None:
    a = np.full((64, 64), 3, np.float32)
    found = everywhere(ASSUMED, A=a)
    assert (found["O"][:3] == 3).all()
    text = kernel_of(ASSUMED).using(target="cuda:sm_80")().stage("bounded")
    assert "if " not in text
    assert "T.assume" not in text
    kernel = kernel_of(ASSUMED).using(target="cpu")()
    with pytest.raises(TileError, match=r"what T\.assume says does not hold"):
        kernel.check(np.full((64, 64), 65, np.float32), np.zeros((80, 64), np.float32)[:64])


def test_loops_are_written_out_by_a_factor() -> None:
    body = """
        for i in T.unroll(64, explicit=True, unroll_factor=4):
            for j in T.Parallel(64):
                O[i, j] = A[i, j]
        """
    everywhere(body)
    kernel = kernel_of(body).using(target="cuda:sm_80")()
    lines = [line.strip() for line in kernel.stage("cuda").splitlines()]
    assert lines[lines.index("#pragma unroll 4") + 1].startswith("for (int i = 0; i < 64; ++i)")
    host = kernel_of(body).using(target="cpu")()
    said = [each.message for each in host.record().remarks if each.pass_name == "to_loops"]
    assert "T.unroll of i stays a loop: the compiler unrolls by a factor of its own" in said
