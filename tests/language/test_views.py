"""Two names for the same bytes: `T.view`, `T.reshape`, `T.Tensor(shape, dtype, A.data)`, on every road."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError


def _head(**arrays: tuple[tuple[int, ...], str]) -> str:
    return ", ".join(f'{name}: T.Tensor({shape}, "{dtype}")' for name, (shape, dtype) in arrays.items())


def test_an_array_under_another_shape() -> None:
    """Read and written, by element, by box and as a whole: what one name writes the other one reads."""
    head = _head(A=((3, 4, 8, 6), "float32"), O=((3, 4, 8, 6), "float32"), P=((96, 6), "float32"))
    body = """
    A_flat = T.Tensor((96, 6), "float32", A.data)
    O_flat = T.reshape(O, (96, 6))
    S = T.alloc_shared((8, 6), "float32")
    R = T.alloc_shared((24, 6), "float32")
    for k in T.serial(12):
        T.copy(A_flat[k * 8, 0], S)
        T.copy(S, O_flat[k * 8 : k * 8 + 8, :])
    for k in T.serial(4):
        T.copy(A_flat[k * 24, 0], R)
        T.copy(R, P[k * 24, 0])
    for i, j in T.Parallel(96, 6):
        O_flat[i, j] = O_flat[i, j] + 1.0
    T.copy(O[2, 3, 0:8, 0:6], S)
    T.copy(S, P[0:8, 0:6])
    """
    found = everywhere(body, head)
    np.testing.assert_array_equal(found["O"], found["A"] + 1)
    flat = found["A"].reshape(96, 6)
    np.testing.assert_array_equal(found["P"][8:], flat[8:])
    np.testing.assert_array_equal(found["P"][:8], flat[88:] + 1)


def test_outside_of_a_view_is_not_the_next_row() -> None:
    """Reads there give zero and stores are dropped, though the buffer behind has an element."""
    head = _head(A=((24,), "float32"), O=((4, 8), "float32"), B=((24,), "float32"))
    body = """
    V = T.view(A, (4, 6))
    W = T.view(B, [4, 6])
    S = T.alloc_shared((4, 8), "float32")
    T.copy(V[0, 0], S)
    T.copy(S, O)
    for i, j in T.Parallel(5, 8):
        W[i, j] = V[i, j] * 2.0
    """
    found = everywhere(body, head)
    wanted = np.zeros((4, 8), np.float32)
    wanted[:, :6] = found["A"].reshape(4, 6)
    np.testing.assert_array_equal(found["O"], wanted)
    np.testing.assert_array_equal(found["B"], found["A"] * 2)


@pytest.mark.parametrize("scope", ["shared", "fragment"])
def test_a_tile_under_another_shape(scope: str) -> None:
    """A reduction over a dimension that only the view has, and a product of what it holds."""
    head = _head(A=((32, 24), "float32"), O=((32, 6), "float32"), C=((48, 48), "float32"))
    body = f"""
    S = T.alloc_{scope}((32, 24), "float32")
    V = T.reshape(S, (32, 6, 4))
    s = T.alloc_fragment((32, 6), "float32")
    T.copy(A, S)
    for i, j, k in T.Parallel(32, 6, 4):
        V[i, j, k] = V[i, j, k] * (k + 1.0)
    T.reduce_sum(V, s, dim=2)
    T.copy(s, O)
    M = T.view(S, (48, 16))
    D = T.alloc_fragment((48, 48), "float32")
    T.clear(D)
    T.gemm(M, M, D, transpose_B=True)
    T.copy(D, C)
    """
    found = everywhere(body, head, exact=False)
    tile = found["A"].reshape(32, 6, 4) * np.arange(1, 5)
    np.testing.assert_allclose(found["O"], tile.sum(-1), rtol=1e-5, atol=1e-5)
    flat = tile.reshape(48, 16)
    np.testing.assert_allclose(found["C"], flat @ flat.T, rtol=1e-4, atol=1e-4)


WIDER = [
    ("bfloat16", "float32"), ("float16", "int32"), ("uint8", "float32"), ("int32", "float64"),
    ("int8", "int16"),
]  # fmt: skip


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
def test_a_wider_dtype_over_the_same_bytes(narrow: str, wide: str) -> None:
    """The tile that held one dtype holds another, and each is read through the other's name."""
    ratio = {"uint8": 4}.get(narrow, 2)
    count = 64 * ratio
    head = _head(A=((4, count), narrow), W=((4, 64), wide), O=((4, count), narrow), P=((4, 64), wide))
    body = f"""
    S = T.alloc_shared((4, {count}), "{narrow}")
    V = T.view(S, dtype="{wide}")
    T.copy(A, S)
    T.copy(V, P)
    T.copy(W, V)
    T.copy(S, O)
    """
    found = everywhere(body, head)
    assert found["P"].tobytes() == found["A"].tobytes()
    assert found["O"].tobytes() == found["W"].tobytes()


def test_a_wider_element_that_reads_itself() -> None:
    head = _head(A=((128,), "bfloat16"), O=((64,), "float32"))
    body = """
    S = T.alloc_shared((128,), "bfloat16")
    V = T.view(S, (64,), T.float32)
    T.copy(A, S)
    for i in T.Parallel(64):
        V[i] = V[i] * 3.0 + 1.0
    T.copy(V, O)
    """
    rng = np.random.default_rng(0)
    import ml_dtypes

    a = rng.uniform(1, 2, 64).astype(np.float32)
    found = everywhere(body, head, A=a.view(ml_dtypes.bfloat16), exact=False)
    np.testing.assert_allclose(found["O"], a * 3 + 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("wide", "narrow"), [("float32", "uint8"), ("int32", "float16"), ("float32", "int32")]
)
def test_a_narrower_dtype_is_read(wide: str, narrow: str) -> None:
    ratio = {"uint8": 4, "float16": 2, "int32": 1}[narrow]
    head = _head(A=((8, 16), wide), O=((8, 16 * ratio), narrow))
    body = f"""
    V = T.view(A, dtype="{narrow}")
    for i, j in T.Parallel(8, {16 * ratio}):
        O[i, j] = V[i, j]
    """
    found = everywhere(body, head)
    assert found["O"].tobytes() == found["A"].tobytes()


def test_a_copy_onto_the_same_memory() -> None:
    head = _head(A=((8, 12), "float32"), O=((8, 12), "float32"))
    body = """
    S = T.alloc_shared((8, 12), "float32")
    V = T.view(S, (12, 8))
    T.copy(A, S)
    T.copy(V[0:8, 0:8], S[0:8, 4:12])
    T.copy(S, O)
    """
    found = everywhere(body, head)
    wanted = found["A"].copy()
    wanted[:, 4:12] = found["A"].reshape(12, 8)[:8].copy()
    np.testing.assert_array_equal(found["O"], wanted)


def test_sizes_of_a_launch() -> None:
    """A view of an array whose extents each call brings."""
    import tilebench
    import tilebench.language as T

    m, n = T.dynamic("m, n")

    @tilebench.jit(target="cpu")
    def kernel():
        @T.prim_func
        def main(A: T.Tensor((m, n, 4), "float32"), C: T.Tensor((m * n, 4), "float32")):
            with T.Kernel(T.ceildiv(m * n, 8), threads=32) as bx:
                V = T.view(A, (m * n, 4))
                S = T.alloc_shared((8, 4), "float32")
                T.copy(V[bx * 8, 0], S)
                T.copy(S, C[bx * 8, 0])

        return main

    a = np.arange(5 * 7 * 4, dtype=np.float32).reshape(5, 7, 4)
    out: Any = np.zeros((35, 4), np.float32)
    kernel()(a, out)
    np.testing.assert_array_equal(out, a.reshape(35, 4))


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("V = T.view(S, (64, 32))", "T.view gives S another size"),
        ('V = T.view(S, dtype="bool")', "T.view of float32 as bool"),
        ("V = T.reshape(T.exp, (64, 64))", "T.reshape takes a buffer"),
        ('V = T.view(S, dtype="int8")\nV[0, 0] = 1', "a store to V would write a part of an element of S"),
        (
            'V = T.view(S, dtype="int32")\nT.atomic_add(V[0, 0], 1)',
            "an atomic of V would combine elements of S as another dtype",
        ),
    ],
)
def test_what_is_refused(statement: str, what: str) -> None:
    body = f'S = T.alloc_shared((64, 64), "float32")\nT.copy(A, S)\n{statement}\nT.copy(S, O)'
    with pytest.raises(TileError) as error:
        kernel_of(body).using(target="cuda:sm_80")()
    assert str(error.value).splitlines()[0].split("error: ")[1] == what


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "T.copy(A[0 : k + 1], V[2 : k + 3])",
            "a copy within A of an extent that only the running kernel knows",
        ),
        ("T.transpose(S, T.view(S, (4, 8)))", "T.transpose of S into itself"),
    ],
)
def test_a_view_is_its_buffer_where_sides_may_not_overlap(statement: str, message: str) -> None:
    body = f"""
    V = T.view(A, (64,))
    S = T.alloc_shared((8, 4), "float32")
    for k in T.serial(3):
        {statement}
    """
    with pytest.raises(TileError) as caught:
        kernel_of(body, _head(A=((64,), "float32"))).using(target="cpu")()
    assert caught.value.message == message


def test_a_while_loop_ends_by_another_name_of_its_memory() -> None:
    body = """
    S = T.alloc_shared((4,), "int32")
    V = T.view(S, (2, 2))
    T.fill(S, 5)
    while V[0, 0] > 0:
        for i in T.Parallel(2):
            S[i] = S[i] - 1
    T.copy(S, O)
    """
    assert everywhere(body, _head(O=((4,), "int32")))["O"].tolist() == [0, 0, 5, 5]


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_a_fill_with_one_of_its_own_elements(dtype: str) -> None:
    """What is filled in is the value of before, as without the view."""
    head = f'A: T.Tensor((64, 64), "{dtype}"), O: T.Tensor((64, 64), "{dtype}")'
    out = everywhere(
        f"""
        b = T.alloc_shared((2, 8), "{dtype}")
        T.copy(A[0:2, 0:8], b)
        s = T.view(b, (16,), "{dtype}")
        T.fill(s, s[11] + 1)
        T.copy(s, O[0, 0:16])
        """,
        head,
    )
    assert (out["O"][0, :16] == out["A"][1, 3] + 1).all()
