"""How what a product leaves in lanes reaches global memory: by price, with the same results on every road."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of

# Two neighbours of a row, two rows 8 apart, four lanes a row: the atoms of a product, 2 by 2 warps.
PAIRS = """
acc = T.alloc_fragment(({m}, {n}), "{dtype}")
T.annotate_layout({{acc: T.Fragment(({m}, {n}), lambda i, j: (
    i // {m2} * 64 + j // {n2} * 32 + i % 8 * 4 + j % 8 // 2,
    j % 2 + i // 8 % 2 * 2 + j % {n2} // 8 * 4 + i % {m2} // 16 * ({n2} // 2)))}})
"""
EXCHANGED, ROWS, STRAIGHT = "in vectors that lanes have exchanged", "in whole rows", "as its fragments lie"


def body(m: int, n: int, dtype: str, statements: str) -> str:
    return PAIRS.format(m=m, n=n, m2=m // 2, n2=n // 2, dtype=dtype) + statements


def said(text: str, head: str) -> list[str]:
    """How each statement reaches global memory, in order."""
    remarks = kernel_of(text, head).using(target="cuda:sm_90a")().record().remarks
    return [r.message.partition("memory ")[2] for r in remarks if "reaches global memory" in r.message]


LOADED = """
T.copy(A, acc)
for i, j in T.Parallel({m}, {n}):
    acc[i, j] = acc[i, j] * 2
T.copy(acc, O)
"""


@pytest.mark.parametrize(
    ("stored", "ways"),
    [
        ("float16", [EXCHANGED] * 2),
        ("bfloat16", [EXCHANGED] * 2),
        ("float32", [STRAIGHT] * 2),
        ("int8", [EXCHANGED] * 2),
    ],
)
def test_pairs_become_vectors_where_the_elements_are_narrow(stored: str, ways: list[str]) -> None:
    """Pairs of float32 fill a sector with four lanes; narrower ones do not."""
    held = "int32" if stored == "int8" else "float32"
    text = body(64, 128, held, LOADED.format(m=64, n=128))
    head = f'A: T.Tensor((64, 128), "{stored}"), O: T.Tensor((64, 128), "{stored}")'
    everywhere(text, head)
    assert said(text, head) == ways


@pytest.mark.parametrize(("columns", "size"), [(96, 16), (48, 8), (160, 16), (80, 8)])
def test_pairs_of_rows_of_odd_multiples_become_vectors_too(columns: int, size: int) -> None:
    """Of three or five times a power of two the power is exchanged: whole vectors, or halves of them."""
    text = body(64, columns, "float32", LOADED.format(m=64, n=columns))
    text = text.replace(f"j // {columns // 2} * 32", "0").replace(f"j % {columns // 2}", "j")
    text = text.replace("i // 32 * 64", "i // 16 * 32").replace(f"i % 32 // 16 * ({columns // 2} // 2)", "0")
    head = f'A: T.Tensor((64, {columns}), "float16"), O: T.Tensor((64, {columns}), "float16")'
    everywhere(text, head)
    assert said(text, head) == [EXCHANGED] * 2
    stage = kernel_of(text, head).using(target="cuda:sm_90a")().stage("laid_out")
    assert stage.count(f'by=T.Instr("ld.st", bytes={size})') == 2


@pytest.mark.parametrize("columns", [128, 120, 97])
def test_a_bias_and_a_residual_are_added_in_the_layout_of_the_store(columns: int) -> None:
    text = body(64, 128, "float32", """
T.copy(A, acc)
for i, j in T.Parallel(64, 128):
    if i < 60 and j < COLUMNS:
        O[i, j] = T.cast(T.max(acc[i, j] + B[j], 0) + R[i, j], "float16")
""").replace("COLUMNS", str(columns))  # fmt: skip
    head = (
        'A: T.Tensor((64, 128), "float16"), B: T.Tensor((128,), "float32"), '
        f'R: T.Tensor((60, {columns}), "float16"), O: T.Tensor((60, {columns}), "float16")'
    )
    found = everywhere(text, head)
    wide = {name: array.astype(np.float64) for name, array in found.items()}
    right: Any = np.maximum(wide["A"] + wide["B"], 0)[:60, :columns] + wide["R"]
    np.testing.assert_allclose(wide["O"], right, rtol=2**-10, atol=2**-12)


def test_what_a_copy_narrows_changes_places_when_it_is_narrow() -> None:
    text = body(64, 128, "float32", LOADED.format(m=64, n=128))
    head = 'A: T.Tensor((64, 128), "float32"), O: T.Tensor((64, 128), "float16")'
    stage = kernel_of(text, head).using(target="cuda:sm_90a")().stage("laid_out")
    assert 'T.convert_layout(acc_narrow, acc_as, by=T.Instr("shfl")' in stage
    assert "acc_as = T.alloc_fragment((64, 128), T.float16" in stage


def test_a_width_that_is_asked_for_is_kept() -> None:
    text = body(
        64, 128, "float32", LOADED.format(m=64, n=128).replace("(acc, O)", "(acc, O, coalesced_width=2)")
    )
    head = 'A: T.Tensor((64, 128), "float16"), O: T.Tensor((64, 128), "float16")'
    assert said(text, head) == [EXCHANGED]


def test_rows_that_are_not_aligned_are_stored_as_they_lie() -> None:
    text = body(64, 128, "float32", LOADED.format(m=64, n=128)).replace(
        "T.copy(acc, O)", "T.copy(acc, O[0, 1])"
    )
    head = 'A: T.Tensor((64, 128), "float16"), O: T.Tensor((64, 129), "float16")'
    everywhere(text, head)
    assert said(text, head) == [EXCHANGED]


A_ROW_A_LANE = """
x = T.alloc_fragment((128, 64), "float16")
T.annotate_layout({x: T.Fragment((128, 64), lambda i, j: (i, j))})
T.copy(A, x)
T.copy(x, O)
"""
HEAD = 'A: T.Tensor((128, 64), "float16"), O: T.Tensor((128, 64), "float16")'


def test_rows_of_many_lanes_go_through_shared_memory_where_there_is_room() -> None:
    everywhere(A_ROW_A_LANE, HEAD)
    assert said(A_ROW_A_LANE, HEAD) == [ROWS] * 2
    # What is left beside a ring of four such tiles is too little for the one on its way.
    full = 'S = T.alloc_shared((27000,), "float16")\nS[0] = 1\n' + A_ROW_A_LANE
    stage = kernel_of(full, HEAD).using(target="cuda:sm_90a")().stage("laid_out")
    assert "T.convert_layout" in stage


def test_registers_in_another_order_make_vectors_of_pairs_that_lie_apart() -> None:
    """Where the lanes of a warp have nothing to exchange, renaming alone makes wide accesses."""
    text = A_ROW_A_LANE.replace("(128, 64)", "(32, 8)").replace("(i, j)", "(i, j // 2 + j % 2 * 4)")
    head = HEAD.replace("(128, 64)", "(32, 8)")
    everywhere(text, head, threads=32)
    stage = kernel_of(text, head, threads=32).using(target="cuda:sm_90a")().stage("laid_out")
    assert stage.count('by=T.Instr("rename"), price="nothing"') == 2
    assert stage.count('by=T.Instr("ld.st", bytes=16)') == 2
