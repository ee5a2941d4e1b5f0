"""Loops over extents that only the running kernel knows, and vectors that start anywhere, on every road."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tests.frontend.cell import run_cell
from tilebench.errors import LanguageError, ShapeError

HEAD = 'N: T.Tensor((4,), "int32"), A: T.Tensor((300,), "int32"), O: T.Tensor((300,), "int32")'


@pytest.mark.parametrize("count", [-3, 0, 1, 31, 128, 129, 300])
def test_an_extent_that_is_loaded(count: int) -> None:
    found = everywhere(
        """
        n = N[0]
        for i in T.Parallel(n):
            O[i] = A[i] + i
        """,
        HEAD, N=np.array([count, 0, 0, 0], np.int32), O=np.zeros(300, np.int32),
    )  # fmt: skip
    want = np.where(np.arange(300) < count, found["A"] + np.arange(300), 0)
    assert found["O"].tolist() == want.tolist()


@pytest.mark.parametrize(("rows", "columns"), [(3, 7), (1, 50), (0, 9), (40, 2)])
@pytest.mark.parametrize("extents", ["N[0], N[1]", "{rows}, N[1]", "N[0], {columns}"])
def test_extents_of_two_axes(rows: int, columns: int, extents: str) -> None:
    head = 'N: T.Tensor((4,), "int32"), O: T.Tensor((40, 50), "int32")'
    found = everywhere(
        f"""
        for i, j in T.Parallel({extents.format(rows=rows, columns=columns)}):
            O[i, j] = i * 100 + j + 1
        """,
        head, N=np.array([rows, columns, 0, 0], np.int32), O=np.zeros((40, 50), np.int32),
    )["O"]  # fmt: skip
    i, j = np.indices((40, 50))
    assert found.tolist() == np.where((i < rows) & (j < columns), i * 100 + j + 1, 0).tolist()


def test_an_extent_is_read_once() -> None:
    found = everywhere(
        """
        v = T.alloc_var("int32", init=5)
        for i in T.Parallel(v):
            T.atomic_add(O[0], 1)
        for i in T.Parallel(N[0]):
            if i == 0:
                N[0] = 100
            O[i + 1] = 7
        """,
        HEAD, N=np.array([3, 0, 0, 0], np.int32), O=np.zeros(300, np.int32),
    )["O"]  # fmt: skip
    assert found[:6].tolist() == [5, 7, 7, 7, 0, 0]


def test_a_turn_may_end_and_sum_in_order() -> None:
    found = everywhere(
        """
        S = T.alloc_shared((300,), "int32")
        T.copy(A, S)
        for i in T.Parallel(N[0]):
            if S[i] < 0:
                continue
            s = T.alloc_var("int32", init=0)
            for k in T.serial(i):
                s += S[k]
                if s > 20:
                    break
            O[i] = s
        """,
        HEAD, N=np.array([77, 0, 0, 0], np.int32), O=np.zeros(300, np.int32),
    )  # fmt: skip
    want = np.zeros(300, np.int32)
    for i in range(77):
        if found["A"][i] >= 0:
            for k in range(i):
                want[i] += found["A"][k]
                if want[i] > 20:
                    break
    assert found["O"].tolist() == want.tolist()


SYMBOLIC = """\
import tilebench
import tilebench.language as T

@tilebench.jit
def made():
    m = T.dynamic("m")
    @T.prim_func
    def main(A: T.Tensor((m, 9), "float32"), O: T.Tensor((m, 9), "float32"), n: T.int32):
        with T.Kernel(1, threads=64):
            for i, j in T.Parallel(m, 9):
                O[i, j] = A[i, j] * 2
            for j in T.Parallel(n):
                O[0, j] = 1.0
    return main
"""


@pytest.mark.parametrize("m", [1, 33, 100])
def test_sizes_and_scalars_of_a_launch(m: int) -> None:
    kernel = run_cell(SYMBOLIC)["made"].using(target="cpu")()
    a, o = np.random.default_rng(0).uniform(-1, 1, (m, 9)).astype(np.float32), np.zeros((m, 9), np.float32)
    kernel.check(a, o.copy(), 4).raise_if_wrong()
    kernel(a, o, 4)
    want = a * 2
    want[0, :4] = 1
    assert (o == want).all()


def test_a_vector_that_starts_somewhere() -> None:
    found = everywhere(
        """
        for i in T.vectorized(3, 7):
            O[i] = i
        b = N[0]
        for i in T.vectorized(b, b + 4):
            O[i + 100] = i
        """,
        HEAD, N=np.array([5, 0, 0, 0], np.int32), O=np.zeros(300, np.int32),
    )["O"]  # fmt: skip
    assert found[:8].tolist() == [0, 0, 0, 3, 4, 5, 6, 0]
    assert found[104:110].tolist() == [0, 5, 6, 7, 8, 0]


def test_annotations_of_a_loop_are_told() -> None:
    body = "for i in T.serial(4, annotations={'pragma': 1}):\n    O[i] = i"
    kernel = kernel_of(body, HEAD).using(target="cpu")()
    kernel.reach_code()
    told = [each.message for each in kernel.record().remarks]
    assert "T.serial(annotations={'pragma': 1}) chooses nothing here" in told


ERRORS = [
    (
        "for i in T.Parallel(N[0]):\n    for j in T.Parallel(4):\n        O[j] = i",
        "a T.Parallel whose extent only the running kernel knows, and another one inside", LanguageError,
    ),
    (
        "for i in T.Parallel(4):\n    for j in T.Parallel(N[0]):\n        O[j] = i",
        "the T.Parallel inside this one has an extent that only the running kernel knows", LanguageError,
    ),
    (
        "for i in T.Parallel(N[0]):\n    if A[i] > 0:\n        break\n    O[i] = 1",
        "`break` cannot leave T.Parallel: its iterations run in no order", LanguageError,
    ),
    ("for i in T.Parallel(N[0] * 1.5):\n    O[i] = 1", "extent 0 of T.Parallel must be", LanguageError),
    ("for i in T.vectorized(N[0]):\n    O[i] = 1", "the extent of T.vectorized is not a number", ShapeError),
    ("for i in T.vectorized(4, 2):\n    O[i] = 1", "the extent of T.vectorized is -2", ShapeError),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message", "kind"), ERRORS)
def test_what_is_refused(body: str, message: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as error:
        kernel_of(body, HEAD).using(target="cpu")()
    assert message in str(error.value)


@pytest.mark.parametrize("count", [0, 1, 5, 200])
def test_parts_whose_extents_are_loaded(count: int) -> None:
    found = everywhere(
        """
        n = N[0]
        lo = N[1]
        hi = lo + n
        T.copy(A[lo:hi], O[7 : 7 + n])
        T.fill(O[n : 2 * n], 5)
        S = T.alloc_shared((300,), "int32")
        T.clear(S)
        T.copy(A[0:n], S[0:n])
        T.copy(S[0:n], R[1, 0:n])
        T.copy(A[0:n], R[0, 2])
        T.clear(R[0:n, 299])
        """,
        HEAD + ', R: T.Tensor((2, 300), "int32")',
        N=np.array([count, 3, 0, 0], np.int32), O=np.zeros(300, np.int32), R=np.full((2, 300), 9, np.int32),
    )  # fmt: skip
    a, o, r = found["A"], np.zeros(300, np.int32), np.full((2, 300), 9, np.int32)
    o[7 : 7 + count] = a[3 : 3 + count]
    o[count : 2 * count] = 5
    r[1, :count] = a[:count]
    r[0, 2 : 2 + count] = a[:count]
    r[:count, 299] = 0
    assert found["O"].tolist() == o.tolist()
    assert found["R"].tolist() == r.tolist()


def test_what_a_fill_reads_is_what_was_there_when_it_began() -> None:
    found = everywhere(
        """
        T.fill(N[N[0] : N[0] + N[1]], N[1])
        """,
        'N: T.Tensor((9,), "int32"), A: T.Tensor((1,), "int32")',
        N=np.array([0, 4, 7, 7, 7, 7, 7, 7, 7], np.int32),
    )["N"]  # fmt: skip
    assert found.tolist() == [4, 4, 4, 4, 7, 7, 7, 7, 7]


def test_parts_of_two_axes_and_another_dtype() -> None:
    head = 'N: T.Tensor((4,), "int32"), A: T.Tensor((40, 50), "float32"), O: T.Tensor((40, 50), "float16")'
    found = everywhere(
        """
        n, m = N[0], N[1]
        F = T.alloc_fragment((40, 50), "float32")
        T.clear(F)
        T.copy(A[0:n, 4 : 4 + m], F[0:n, 0:m])
        T.copy(F[0:n, 0:m], O[1 : 1 + n, 0:m])
        """,
        head, N=np.array([7, 13, 0, 0], np.int32), O=np.zeros((40, 50), np.float16),
    )  # fmt: skip
    want = np.zeros((40, 50), np.float16)
    want[1:8, :13] = found["A"][:7, 4:17].astype(np.float16)
    assert (found["O"] == want).all()


PARTS = [
    ("T.copy(A[0 : N[0]], O[0 : N[1]])", "the two sides of this copy have different extents"),
    ("T.copy(A[0 : N[0]], O[0:4])", "is not a number known at compile time"),
    (
        "T.copy(A[0 : N[0]], A[4 : 4 + N[0]])",
        "a copy within A of an extent that only the",
    ),
    ("T.reduce_sum(A[0 : N[0]], O[0:1])", "is not a number known at compile time"),
]


@pytest.mark.parametrize(("body", "message"), PARTS)
def test_parts_that_are_refused(body: str, message: str) -> None:
    with pytest.raises(ShapeError) as error:
        kernel_of(body, HEAD).using(target="cpu")()
    assert message in str(error.value)
