"""`T.print` and `T.device_assert`: what a kernel says comes back with shapes and indices, from every road."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tests.frontend.cell import refused, run_cell
from tilebench.errors import LaunchError

LINE = 'A: T.Tensor((8,), "int32"), O: T.Tensor((8,), "int32")'


def said(capsys: Any, body: str, head: str = LINE, **given: Any) -> str:
    """What a call on the CPU prints; all roads keep the same numbers."""
    everywhere(body, head=head, **given)
    return capsys.readouterr().out


def test_scalars_elements_and_tiles(capsys: Any) -> None:
    out = said(
        capsys,
        """
        v = T.alloc_var("int32", init=3)
        T.print("begin")
        T.print(v, "v is")
        for k in T.serial(2):
            v = v + k
            T.print(v)
        S = T.alloc_shared((8,), "int32")
        T.copy(A, S)
        T.print(S)
        T.print(S[2:4], "part")
        F = T.alloc_fragment((2, 2), "bfloat16")
        T.fill(F, 1.5)
        T.print(F, msg="F")
        T.print(A[7])
        T.print(A[7] > 100)
        L = T.alloc_local((2,), "float32")
        L[0] = 0.1
        L[1] = 2
        T.print(L)
        """,
        A=np.arange(8, dtype=np.int32),
    )
    assert out == (
        "block (0,): begin\n"
        "block (0,): v is v = 3\n"
        "block (0,): v = 3\n"
        "block (0,): v = 4\n"
        "block (0,): S [8] int32\n[0, 1, 2, 3, 4, 5, 6, 7]\n"
        "block (0,): part S[2 : 4] [2] int32\n[2, 3]\n"
        "block (0,): F F [2, 2] bfloat16\n[[1.5, 1.5],\n [1.5, 1.5]]\n"
        "block (0,): A[7] = 7\n"
        "block (0,): A[7] > 100 = False\n"
        "block (0,): L [2] float32\n[0.1, 2. ]\n"
    )


def test_iterations_of_a_parallel_loop(capsys: Any) -> None:
    out = said(
        capsys,
        """
        for i, j in T.Parallel(2, 4):
            T.print(i * 4 + j, "all")
            if A[j] > 2:
                T.print(A[j])
            for k in T.serial(1, 3):
                if j == 3:
                    T.print(k, "inner")
            O[i * 4 + j] = A[j]
        """,
        A=np.arange(8, dtype=np.int32),
    )
    assert out == (
        "block (0,): all i * 4 + j at i, j of [2, 4] int32\n[[0, 1, 2, 3],\n [4, 5, 6, 7]]\n"
        "block (0,): A[j] = 3 at i = 0, j = 3\n  A[j] = 3 at i = 1, j = 3\n"
        "block (0,): inner k = 1 at i = 0, j = 3, k = 1\n"
        "  k = 2 at i = 0, j = 3, k = 2\n  k = 1 at i = 1, j = 3, k = 1\n  k = 2 at i = 1, j = 3, k = 2\n"
    )


def test_a_pipelined_loop_and_a_group_of_threads(capsys: Any) -> None:
    out = said(
        capsys,
        """
        S = T.alloc_shared((2,), "int32")
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[k * 2 : k * 2 + 2], S)
            if k % 2 == 1:
                T.print(S)
            T.copy(S, O[k * 2 : k * 2 + 2])
        with T.threads(32, 32):
            T.print(7, "group")
        T.print(8, "block")
        """,
        A=np.arange(8, dtype=np.int32),
    )
    assert out == (
        "block (0,): S [2] int32\n[2, 3]\nblock (0,): S [2] int32\n[6, 7]\n"
        "block (0,): block 8 = 8\nblock (0,): group 7 = 7\n"
    )


def test_threads_that_say_something_of_their_own(capsys: Any) -> None:
    out = said(
        capsys,
        """
        tx = T.get_thread_binding()
        L = T.alloc_local((2,), "int32")
        L[0] = tx
        L[1] = A[tx % 8]
        if tx % 64 == 3:
            T.print(L[1], "mine")
        if tx < 2:
            T.print(L)
        T.print(5, "all alike")
        for i in T.serial(2):
            T.print(tx // 64 + i)
        if tx < 8:
            O[tx] = 1
        """,
        A=np.arange(8, dtype=np.int32) * 10,
    )
    lines = out.splitlines()
    assert lines[:8] == [
        "block (0,): mine L[1] = 30 at tx = 3", "  L[1] = 30 at tx = 67",
        "block (0,): L = 0 at tx = 0, i0 = 0", "  L = 0 at tx = 0, i0 = 1", "  L = 1 at tx = 1, i0 = 0",
        "  L = 10 at tx = 1, i0 = 1", "block (0,): all alike 5 = 5",
        "block (0,): tx // 64 + i at tx of [128] int32",
    ]  # fmt: skip


def test_an_assertion_on_the_number_of_a_thread() -> None:
    jit = kernel_of("tx = T.get_thread_binding()\nT.device_assert(tx < 70)\nif tx < 8:\n    O[tx] = 1", LINE)
    with pytest.raises(LaunchError, match=r"found: block \(0,\), tx = 70"):
        jit.using(target="cpu")()(np.zeros(8, np.int32), np.zeros(8, np.int32))


BLOCKS = """
import tilebench
import tilebench.language as T

@tilebench.jit
def kernel(A, limit=2):
    M = T.dynamic("M")
    A: T.Tensor((M,), "float32")
    B = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, 4), 2, threads=32) as (bx, by):
        if bx >= limit:
            T.print(A[bx * 4], "first")
        for i in T.Parallel(4):
            assert A[bx * 4 + i] >= 0, "no root"
            B[bx * 4 + i] = T.sqrt(A[bx * 4 + i])
    return B
"""


def test_blocks_in_order_of_a_size_that_a_call_brings(capsys: Any) -> None:
    kernel = run_cell(BLOCKS)["kernel"].using(target="cpu")
    numbers = np.arange(14, dtype=np.float32)
    np.testing.assert_array_equal(kernel(numbers), np.sqrt(numbers))
    assert capsys.readouterr().out == "".join(
        f"block ({x}, {y}): first A[bx * 4] = {4 * x}.0\n" for y in range(2) for x in (2, 3)
    )


def test_a_failed_assertion_stands_at_its_line_and_the_next_call_is_whole() -> None:
    kernel = run_cell(BLOCKS)["kernel"].using(target="cpu")
    numbers = np.full(14, 4, np.float32)
    numbers[[9, 6]] = -1
    with pytest.raises(LaunchError) as caught:
        kernel(numbers, limit=9)
    assert str(caught.value) == (
        "launch error: the assertion failed: no root\n"
        "  at cell:14, in kernel\n"
        '    assert A[bx * 4 + i] >= 0, "no root"\n'
        "           ^^^^^^^^^^^^^^^^^^\n"
        "  expected: A[bx * 4 + i] >= T.float32(0)\n"
        "  found: block (1, 0), i = 2"
    )
    assert kernel(np.full(14, 4, np.float32), limit=9)[0] == 2


def test_checks_and_texts_of_a_kernel_that_speaks(capsys: Any) -> None:
    jit = kernel_of("T.print(A[0])\nT.device_assert(A[1] != 77)\nO[0] = A[0]", LINE)
    kernel = jit.using(target="cpu")()
    kernel.check().raise_if_wrong()
    numbers = np.zeros(8, np.int32)
    kernel.check(numbers, numbers.copy()).raise_if_wrong()
    numbers[1] = 77
    with pytest.raises(LaunchError, match="the assertion failed"):
        kernel.check(numbers, numbers.copy())
    assert capsys.readouterr().out == ""
    kernel(A=np.ones(8, np.int32), O=numbers)
    assert capsys.readouterr().out == "block (0,): A[0] = 1\n"
    jit.using(target="cuda:sm_90a")().reach_code()


TWICE = """
import tilebench
import tilebench.language as T

@tilebench.jit
def kernel():
    @T.prim_func
    def main(A: T.Tensor((8,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            A[bx] = bx + 1
            T.print(A[bx])
        with T.Kernel(1, 2, threads=32) as (bx, by):
            T.print(A[by], "second")
            T.device_assert(A[by] < 2)
    return main
"""


def test_several_launches(capsys: Any) -> None:
    kernel = run_cell(TWICE)["kernel"].using(target="cpu")()
    with pytest.raises(LaunchError, match=r"found: block \(0, 1\)"):
        kernel(np.zeros(8, np.int32))
    assert capsys.readouterr().out == (
        "block (0,): A[bx] = 1\nblock (1,): A[bx] = 2\n"
        "block (0, 0): second A[by] = 1\nblock (0, 1): second A[by] = 2\n"
    )


def test_much_is_cut_short(capsys: Any) -> None:
    jit = kernel_of("for k in T.serial(100000):\n    T.print(k)\nO[0] = 1", LINE)
    jit.using(target="cpu")()(np.zeros(8, np.int32), np.zeros(8, np.int32))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 66
    assert lines[63] == "block (0,): k = 63"
    assert lines[64].endswith(" more prints of this call are not shown")
    assert lines[65] == "... 1 blocks printed more than the 65536 numbers that are kept of each"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("T.print(T)", "T.print takes a value, an element or a tile of the kernel"),
        ("S = T.alloc_shared((8, 8), 'int32')\nfor i in T.Parallel(8):\n    T.print(S)",
         "T.print works on a whole tile, with all threads, and cannot stand inside T.Parallel"),
        ("for i in T.Parallel(8):\n    for k in T.serial(I[i]):\n        T.print(k)",
         "T.print stands in a loop inside T.Parallel whose number of iterations is not known"),
        ("S = T.alloc_shared((8, 8), 'int32')\ntx = T.get_thread_binding()\nif tx == 0:\n    T.print(S)",
         "T.print of a tile stands under a condition on the number of a thread"),
        ("T.device_assert(M < 3, 'too many')", "the assertion failed: too many"),
        ("assert M < 3", "the assertion failed"),
        ("T.device_assert(I)", "T.device_assert of I, a tile, which has no truth value"),
    ],
)  # fmt: skip
def test_refused(body: str, message: str) -> None:
    assert refused(body).message == message


def test_prints_on_both_sides_of_a_barrier_of_the_grid(capsys: Any) -> None:
    """Each launch has rows of its own; nothing that counts along is kept over the barrier."""
    out = said(
        capsys,
        """
        T.print(A[0])
        O[1] = A[0] + 1
        T.sync_grid()
        if b0 == 0:
            T.print(O[0:2])
        T.device_assert(O[1] == A[0] + 1)
        T.sync_grid()
        T.print("end")
        """,
        A=np.arange(3, 11, dtype=np.int32),
        O=np.zeros(8, np.int32),
    )
    lines = ["A[0] = 3", "O[0 : 2] [2] int32\n[0, 4]", "end"]
    assert out == "".join(f"block (0,): {line}\n" for line in lines)


def test_an_array_of_no_elements_is_printed_everywhere(capsys: Any) -> None:
    head = 'A: T.Tensor((0,), "int32"), O: T.Tensor((8,), "int32")'
    assert said(capsys, "T.print(A)\nO[0] = 1", head) == "block (0,): A [0] int32\n[]\n"
