"""`cp.async`: which copies it takes, zeros at edges, groups and waits, and its text for the cards."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tests.simulated import card_words, run_threaded
from tilebench.errors import LayoutError, TargetError
from tilebench.ir import parse_function
from tilebench.ir.sizes import for_sizes
from tilebench.kernel.edited import compile_from
from tilebench.simulator import SimulationError

# Rows of A pass through a ring, and each step's rows go out: a copy of what lies inside, zeros elsewhere.
RING = """
S = T.alloc_shared(({m}, {n}), "{dtype}")
for k in T.Pipelined({turns}, num_stages={stages}):
    T.copy(A[k * {m}, {at}], S)
    T.copy(S, O[k * {m}, 0])
"""


def ring(rows: int, columns: int, box: tuple[int, int], dtype: str = "float16", stages: int = 3, at: int = 0):
    """The body and parameters of a ring over an array."""
    m, n = box
    turns = -(-rows // m)
    head = f'A: T.Tensor(({rows}, {columns}), "{dtype}"), O: T.Tensor(({turns * m}, {n}), "{dtype}")'
    return RING.format(m=m, n=n, dtype=dtype, turns=turns, stages=stages, at=at), head


# Rows, columns, the box, dtype, where the box starts in a row; bytes of one access.
CASES = [
    ((64, 64), (16, 64), "float16", 0, 16),
    ((50, 64), (16, 64), "float16", 0, 16),
    ((50, 60), (16, 64), "float16", 0, 8),
    ((50, 58), (16, 64), "float16", 0, 4),
    ((50, 60), (16, 64), "float16", 4, 8),
    ((33, 40), (8, 64), "float32", 0, 16),
    ((33, 42), (8, 64), "float32", 0, 8),
    ((33, 41), (8, 64), "float32", 0, 4),
    ((33, 41), (8, 64), "float32", 3, 4),
    ((20, 12), (8, 32), "float64", 0, 16),
    ((20, 11), (8, 16), "float64", 1, 8),
    ((70, 80), (32, 64), "int8", 32, 16),
    ((40, 68), (16, 64), "int8", 4, 4),
    ((40, 96), (16, 128), "float8_e4m3fn", 0, 16),
    ((70, 128), (32, 128), "int4", 0, 16),
    ((40, 72), (16, 64), "int4", 8, 4),
    ((11, 8), (4, 8), "float32", 0, 4),
]


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize(("shape", "box", "dtype", "first", "width"), CASES)
def test_what_is_inside_arrives_and_the_rest_is_zero(
    shape: tuple[int, int], box: tuple[int, int], dtype: str, first: int, width: int, stages: int
) -> None:
    body, head = ring(*shape, box, dtype, stages, first)
    text = kernel_of(body, head).using(target="cuda:sm_80")().stage("laid_out")
    assert f'by=T.Instr("cp.async", bytes={width})' in text
    found = everywhere(body, head)
    wanted = np.zeros_like(found["O"])
    part = found["A"][:, first : first + box[1]]
    wanted[: part.shape[0], : part.shape[1]] = part
    np.testing.assert_array_equal(found["O"], wanted)


@tilebench.jit
def ring_of_rows():
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 64), "float16"), B: T.Tensor((m, 64), "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((16, 64), "float16")
            for k in T.Pipelined(T.ceildiv(m, 16), num_stages=3):
                T.copy(A[k * 16, 0], S)
                T.copy(S, B[k * 16, 0])

    return main


def told(kernel: Any) -> list[str]:
    """What was said of copies."""
    return [r.message for r in kernel.compilation.context.remarks if "copy" in r.message]


@pytest.mark.parametrize(
    ("shape", "dtype", "first", "why"),
    [
        ((50, 61), "float16", 0, "cp.async does not take this copy: its accesses are of 2 bytes"),
        ((50, 64), "float16", 1, "cp.async does not take this copy: its accesses are of 2 bytes"),
        ((50, 62), "int8", 0, "cp.async does not take this copy: its accesses are of 2 bytes"),
    ],
)
def test_narrower_than_four_bytes_goes_through_registers(
    shape: tuple[int, int], dtype: str, first: int, why: str
) -> None:
    body, head = ring(*shape, (16, 64), dtype, 3, first)
    kernel = kernel_of(body, head).using(target="cuda:sm_80")()
    assert "T.cp_async" not in kernel.stage("threaded")
    assert why in told(kernel)
    everywhere(body, head)


def test_a_layout_of_the_kernel_without_neighbours_goes_through_registers() -> None:
    body, head = ring(48, 64, (16, 64))
    body = body.replace("for k", "T.annotate_layout({S: T.Layout((16, 64), lambda i, j: i * 65 + j)})\nfor k")
    kernel = kernel_of(body, head).using(target="cuda:sm_80")()
    assert "T.cp_async" not in kernel.stage("threaded")
    assert "cp.async does not take this copy: its accesses are of 2 bytes" in told(kernel)
    everywhere(body, head)


def test_a_card_without_it_goes_through_registers() -> None:
    body, head = ring(50, 64, (16, 64))
    kernel = kernel_of(body, head).using(target="cuda:sm_75")()
    assert "T.cp_async" not in kernel.stage("threaded")
    everywhere(body, head, arch="sm_75")


def test_rows_of_a_size_that_a_launch_brings() -> None:
    made = ring_of_rows.using(target="cuda:sm_80")()
    assert "T.cp_async(" in made.stage("threaded")
    for rows in (0, 1, 16, 50):
        a, b = np.ones((rows, 64), np.float16), np.zeros((rows, 64), np.float16)
        sized = for_sizes(made.compilation.functions["threaded"], {"m": rows})
        run_threaded(sized, {"A": a, "B": b}, warp=32)
        np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("inside", [57, 58, 61, 63, 64, 65])
def test_an_end_within_an_access_is_filled_behind_it(inside: int) -> None:
    head = 'A: T.Tensor((16, 72), "float16"), O: T.Tensor((64, 64), "float16")'
    body = ring(64, 72, (16, 64))[0].replace("A[k * 16, 0]", "A[0, k * 16]")
    source = kernel_of(body, head).using(target="cuda:sm_80")()
    text = source.stage("laid_out")
    # A person may state another end of what is read: here one within an access.
    edited = text.replace("src_within=(None, 72)", f"src_within=(None, {inside})")
    assert edited != text
    made = compile_from("laid_out", edited, like=source)
    made.stage("cuda")
    a, o = np.ones((16, 72), np.float16), np.zeros((64, 64), np.float16)
    run_threaded(made.compilation.functions["threaded"], {"A": a, "O": o}, warp=32)
    wanted = np.zeros((4, 16, 64))
    for k in range(4):
        wanted[k, :, : max(0, inside - k * 16)] = 1
    np.testing.assert_array_equal(o.reshape(4, 16, 64), wanted)


def threaded(body: str, head: str) -> Any:
    return kernel_of(body, head).using(target="cuda:sm_80")().stage("threaded")


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (("T.cp_async_wait(pending=1)", "T.cp_async_wait(pending=2)"), "S is read while T.cp_async of line"),
        (("            T.cp_async_wait(pending=1)\n", ""), "S is read while T.cp_async of line"),
        (("        T.cp_async_wait()\n", ""), "nobody waits"),
        (("8, 0)", "8, 9)"), "T.cp_async reads 9 of 8 elements"),
        (("8, 0)", "8, 8)"), "A is accessed outside: index 63 in dimension 0 of extent 50"),
        (('            T.sync_threads(why="S: write after write")\n', ""), "a race in shared memory"),
    ],
)
def test_a_ring_that_is_wrong_is_refused_by_the_simulator(change: tuple[str, str], refusal: str) -> None:
    body, head = ring(50, 64, (16, 64))
    # Rows that other threads brought.
    loop = "for i, j in T.Parallel(16, 64):\n        O[k * 16 + i, j] = S[15 - i, j]"
    text = threaded(body.replace("T.copy(S, O[k * 16, 0])", loop), head)
    if change[1] == "":  # waits and ends: groups of the last steps are left in flight
        text = text.replace("if k + 2 < 4:", "if k + 2 < 6:") if "wait()" in change[0] else text
    assert change[0] in text
    function = parse_function(text.replace(*change), card_words())
    arrays = {"A": np.ones((50, 64), np.float16), "O": np.zeros((64, 64), np.float16)}
    with pytest.raises(SimulationError, match=refusal):
        run_threaded(function, arrays, warp=32)


def test_a_step_waits_once_and_meets_once() -> None:
    lines = [line.strip() for line in threaded(*ring(160, 64, (16, 64), stages=4)).splitlines()]
    start = next(k for k, line in enumerate(lines) if line.startswith("for k in"))
    step = lines[start:]
    assert step[1] == "T.cp_async_wait(pending=2)"
    assert sum(line.startswith("T.sync_threads") for line in step) == 1
    assert sum(line.startswith("T.cp_async_wait") for line in step) == 2  # and what is left at the end


def test_told_to_be_asynchronous_outside_a_ring_it_is_waited_for_at_once() -> None:
    body = 'S = T.alloc_shared((16, 64), "float16")\nT.copy(A, S)\nT.copy(S, O)'
    head = 'A: T.Tensor((16, 64), "float16"), O: T.Tensor((16, 64), "float16")'
    kernel = kernel_of(body, head).using(target="cuda:sm_80")()
    text = kernel.stage("laid_out").replace('S, by=T.Instr("ld.st"', 'S, by=T.Instr("cp.async"')
    lines = compile_from("laid_out", text, like=kernel).stage("threaded").splitlines()
    words = [line.split("(")[0].split(".")[-1].strip() for line in lines if "T." in line]
    at = words.index("cp_async")
    assert words[at : at + 4] == ["cp_async", "cp_async_commit", "cp_async_wait", "sync_threads"]


def test_widths_and_groups_that_there_are_not_are_refused_at_their_line() -> None:
    kernel = kernel_of(*ring(50, 64, (16, 64))).using(target="cuda:sm_80")()
    text = kernel.stage("pipelined")
    wide = text.replace('T.wait("k_ahead", pending=1, by=T.Instr("cp.async"))',
                        'T.wait("k_ahead", pending=1, by=T.Instr("cp.async", bytes=16))')  # fmt: skip
    with pytest.raises(LayoutError, match="groups of copies have no width"):
        compile_from("pipelined", wide, like=kernel).stage("threaded")
    narrow = threaded(*ring(50, 64, (16, 64))).replace(" + 8]", " + 1]").replace("8, 0)", "1, 0)")
    with pytest.raises(TargetError, match=r"T\.cp_async of 2 bytes from global to shared memory has no code"):
        compile_from("threaded", narrow, like=kernel).stage("cuda")


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90a"])
def test_it_is_the_instruction_of_that_name(arch: str) -> None:
    kernel = kernel_of(*ring(50, 60, (16, 64))).using(target=f"cuda:{arch}")()
    assert "cp.async.ca.shared.global" in kernel.stage("ptx")
    assert "LDGSTS.E.64 " in kernel.stage("sass")
    kernel = kernel_of(*ring(64, 64, (16, 64))).using(target=f"cuda:{arch}")()
    assert "cp.async.cg.shared.global" in kernel.stage("ptx")
    assert "LDGSTS.E.BYPASS.128" in kernel.stage("sass")


def test_a_kernel_that_prefers_to_wait_has_no_copy_that_goes_on() -> None:
    body, head = ring(50, 64, (16, 64))
    sync = body.replace("{at}", "0").replace("], S)", '], S, prefer_instruction="sync")')
    assert "T.cp_async(" in threaded(body, head)
    assert "T.cp_async(" not in threaded(sync, head)
    found = everywhere(sync, head)
    np.testing.assert_array_equal(found["O"][:50], found["A"])
    ahead = body.replace("], S)", '], S, prefer_instruction="cp_async")')
    assert threaded(ahead, head) == threaded(body, head)


@pytest.mark.parametrize(("dtype", "at"), [("int4", 8), ("uint4", 16)])
def test_the_address_of_elements_that_share_a_byte_counts_bytes(dtype: str, at: int) -> None:
    """Where the simulator counts elements a pointer counts bytes, on both sides of a copy."""
    body, head = ring(40, 72, (16, 64), dtype, at=at)
    text = kernel_of(body, head).using(target="cuda:sm_80")().stage("cuda")
    calls = [line for line in text.splitlines() if "tb_cp_async_" in line and "(S + " in line]
    assert calls
    assert all(re.search(r"\(S \+ \(.*?\) / 2, A \+ \(.*\) / 2[,)]", line) for line in calls), calls
