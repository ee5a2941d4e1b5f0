"""`T.transpose`, `T.any_of` and `T.all_of`: words that others express."""

from __future__ import annotations

import numpy as np
import pytest

import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError


@pytest.mark.parametrize("scope", ["shared", "fragment"])
def test_a_tile_is_transposed(scope: str) -> None:
    """Whole, and a box of one, with a conversion on the way."""
    head = (
        'A: T.Tensor((48, 33), "float32"), O: T.Tensor((33, 48), "float16"), P: T.Tensor((8, 16), "float32")'
    )
    body = f"""
    S = T.alloc_shared((48, 33), "float32")
    D = T.alloc_{scope}((33, 48), "float16")
    E = T.alloc_shared((8, 16), "float32")
    T.copy(A, S)
    T.transpose(S, D)
    T.transpose(src=S[16:32, 4:12], dst=E)
    T.copy(D, O)
    T.copy(E, P)
    """
    found = everywhere(body, head)
    np.testing.assert_array_equal(found["O"], found["A"].T.astype(np.float16))
    np.testing.assert_array_equal(found["P"], found["A"][16:32, 4:12].T)


def test_conditions_over_elements() -> None:
    head = 'M: T.Tensor((8, 5), "bool"), N: T.Tensor((8, 4), "int32"), O: T.Tensor((8, 4), "int32")'
    body = """
    S = T.alloc_shared((8, 5), "bool")
    T.copy(M, S)
    for i in T.serial(8):
        O[i, 0] = T.cast(T.any_of(S[i, :]), "int32")
        O[i, 1] = T.cast(T.all_of(S[i, 1:4]), "int32")
        if T.any_of(N[i, 0:4]) and not T.all_of(M[i, 0:2]):
            O[i, 2] = 7
        else:
            O[i, 2] = 1
        O[i, 3] = T.if_then_else(T.all_of(M), 5, 6)
    """
    rng = np.random.default_rng(3)
    m, n = rng.integers(0, 2, (8, 5)).astype(bool), rng.integers(0, 2, (8, 4)).astype(np.int32)
    n[2] = 0
    m[4], m[5] = True, False
    found = everywhere(body, head, M=m, N=n)
    wanted = [
        m.any(1), m[:, 1:4].all(1), np.where(n.any(1) & ~m[:, :2].all(1), 7, 1), np.full(8, 6),
    ]  # fmt: skip
    np.testing.assert_array_equal(found["O"], np.stack(wanted, 1))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_products_of_bytes_in_float32(dtype: str) -> None:
    head = f'A: T.Tensor((32, 48), "{dtype}"), B: T.Tensor((48, 16), "{dtype}")'
    head += ", O: T.Tensor((32, 16), T.tfloat32)"
    body = f"""
    X = T.alloc_shared((32, 48), "{dtype}")
    Y = T.alloc_shared((48, 16), "{dtype}")
    C = T.alloc_fragment((32, 16), "float32")
    T.copy(A, X)
    T.copy(B, Y)
    T.clear(C)
    T.gemm(X, Y, C)
    T.copy(C, O)
    """
    info, rng = np.iinfo(dtype), np.random.default_rng(8)
    a, b = (rng.integers(info.min, info.max, s, dtype=dtype, endpoint=True) for s in ((32, 48), (48, 16)))
    found = everywhere(body, head, A=a, B=b)
    np.testing.assert_array_equal(found["O"], (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float32))
    assert T.tfloat32 == "float32"


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("T.transpose(S, A)", "T.transpose of (64, 64) gives (64, 64), but A has (32, 64)"),
        ("T.transpose(S, S)", "T.transpose of S into itself"),
        ("x = T.any_of(S)", "T.any_of of 4096 elements"),
    ],
)
def test_what_is_refused(statement: str, what: str) -> None:
    head = 'A: T.Tensor((32, 64), "float32"), O: T.Tensor((64, 64), "float32")'
    body = f'S = T.alloc_shared((64, 64), "float32")\n{statement}'
    with pytest.raises(TileError) as error:
        kernel_of(body, head).using(target="cuda:sm_80")()
    assert str(error.value).splitlines()[0].split("error: ")[1] == what
