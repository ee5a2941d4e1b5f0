"""Which tiles, extents and dtypes the tile operations take."""

from __future__ import annotations

import pytest

from tests.frontend.cell import refused, stage
from tilebench.errors import DTypeError, ShapeError


@pytest.mark.parametrize(
    ("operand", "accumulator", "good"),
    [
        ("float16", "float32", True),
        ("float16", "float16", True),
        ("bfloat16", "float32", True),
        ("bfloat16", "float16", False),
        ("float32", "float32", True),
        ("float32", "bfloat16", False),
        ("float64", "float64", True),
        ("float64", "float32", False),
        ("float8_e4m3fn", "float32", True),
        ("int8", "int32", True),
        ("uint8", "int32", True),
        ("int8", "int8", False),
        ("int32", "int32", True),
        ("int32", "float32", False),
        ("bool", "int32", False),
    ],
)
def test_gemm_dtypes(operand: str, accumulator: str, good: bool) -> None:
    body = f"""
        a = T.alloc_shared((16, 8), "{operand}")
        b = T.alloc_shared((8, 16), "{operand}")
        c = T.alloc_fragment((16, 16), "{accumulator}")
        T.gemm(a, b, c)
    """
    if good:
        assert stage(body).splitlines()[-1] == "T.gemm(a, b, c)"
    else:
        error = refused(body)
        assert isinstance(error, DTypeError)
        assert [place.line for _, place in error.also] == [7, 9]


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("wrong", ["", "m", "n", "k"])
def test_gemm_extents(transpose_a: bool, transpose_b: bool, wrong: str) -> None:
    m, n, k, other = 16, 32, 8, 24
    a = (k, m) if transpose_a else (m, k)
    b = (n, k) if transpose_b else (k, n)
    if wrong == "k":
        b = (n, other) if transpose_b else (other, n)
    c = (other if wrong == "m" else m, other if wrong == "n" else n)
    body = f"""
        a = T.alloc_shared({a}, "float16")
        b = T.alloc_fragment({b}, "float16")
        c = T.alloc_fragment({c}, "float32")
        T.gemm(a, b, c, transpose_A={transpose_a}, transpose_B={transpose_b})
    """
    if not wrong:
        assert "T.gemm(a, b, c" in stage(body)
        return
    error = refused(body)
    assert isinstance(error, ShapeError)
    assert error.message == f"the operands of this gemm disagree on {wrong}"
    assert {place.line for _, place in error.also} == {"m": {7, 9}, "n": {8, 9}, "k": {7, 8}}[wrong]


def test_a_gemm_of_a_slice_with_a_dimension_left_out_says_what_to_do() -> None:
    error = refused("""
        a = T.alloc_shared((16, 4, 8), "float16")
        b = T.alloc_shared((8, 32), "float16")
        c = T.alloc_fragment((16, 32), "float32")
        T.gemm(a[:, 1, :], b, c)
    """)
    assert error.message == "the leading extents of an operand of T.gemm must be 1"
    assert "T.copy the slice to a shared tile of two dimensions" in error.explain()


@pytest.mark.parametrize(
    ("src", "dst", "good"),
    [
        ((64, 32), (64, 32), True),
        ((64, 32), (32, 64), False),
        ((1, 64, 32), (64, 32), True),
        ((64, 1, 32), (64, 32), True),
        ((64, 32), (64, 32, 1), True),
        ((64,), (64, 1), True),
        ((2048,), (64, 32), False),
        ((1, 1), (1,), True),
        ((1,), (2,), False),
    ],
)
def test_copy_extents(src: tuple[int, ...], dst: tuple[int, ...], good: bool) -> None:
    body = f"""
        a = T.alloc_shared({src}, "float16")
        b = T.alloc_fragment({dst}, "float32")
        T.copy(a, b)
    """
    if good:
        assert stage(body).splitlines()[-1] == "T.copy(a, b)"
    else:
        error = refused(body)
        assert isinstance(error, ShapeError)
        assert [place.line for _, place in error.also] == [7, 8]


@pytest.mark.parametrize(
    ("shape", "dim", "out", "good"),
    [
        ((8, 4), 0, (4,), True),
        ((8, 4), -2, (1, 4), True),
        ((8, 4), 1, (8, 1), True),
        ((8, 4), 1, (1, 8), False),
        ((8,), 0, (1,), True),
        ((8,), 0, (8,), False),
        ((2, 3, 4), 1, (2, 4), True),
        ((2, 3, 4), 1, (2, 3), False),
        ((2, 3), -3, (3,), False),
    ],
)
def test_reduce_shapes(shape: tuple[int, ...], dim: int, out: tuple[int, ...], good: bool) -> None:
    body = f"""
        x = T.alloc_fragment({shape}, "float32")
        s = T.alloc_shared({out}, "float32")
        T.reduce_max(x, s, dim={dim})
    """
    if good:
        assert "T.reduce_max(x, s" in stage(body)
    else:
        assert isinstance(refused(body), ShapeError)
