"""T.im2col: the box of an image's columns on every road, and the errors' exact texts."""

from __future__ import annotations

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.roads import everywhere, refused_everywhere

HEAD = """
    X_s = T.alloc_shared((8, 12), "float32")
"""


def columns(x: np.ndarray, size: int, stride: int, dilation: int, pad: int) -> np.ndarray:
    """The whole matrix, element by element."""
    n, h, w, c = x.shape
    oh, ow = ((each + 2 * pad - dilation * (size - 1) - 1) // stride + 1 for each in (h, w))
    out = np.zeros((n * oh * ow, size * size * c), x.dtype)
    for m, k in np.ndindex(out.shape):
        row = m % (oh * ow) // ow * stride + k // c // size * dilation - pad
        column = m % ow * stride + k // c % size * dilation - pad
        if 0 <= row < h and 0 <= column < w:
            out[m, k] = x[m // (oh * ow), row, column, k % c]
    return out


@pytest.mark.parametrize("taps", [(3, 1, 1, 1), (3, 2, 1, 1), (2, 1, 3, 2), (1, 1, 1, 0), (1, 2, 1, 0)])
@pytest.mark.parametrize("step", [(0, 0), (1, 1), (9, 0), (2, 9)])
def test_boxes(taps: tuple[int, int, int, int], step: tuple[int, int]) -> None:
    x = np.arange(1, 2 * 5 * 6 * 3 + 1, dtype=np.float32).reshape(2, 5, 6, 3)
    whole = np.pad(columns(x, *taps), ((0, 90), (0, 120)))
    (down, across), size = step, ", ".join(map(str, taps))
    body = f"""
        X_s = T.alloc_shared((8, 12), "float32")
        T.im2col(X, X_s, b0 + {down}, {across}, {size})
        T.copy(X_s, C)
    """
    found = everywhere(body, X=x, C=np.full((8, 12), np.nan, np.float32))["C"]
    np.testing.assert_array_equal(found, whole[8 * down : 8 * down + 8, 12 * across : 12 * across + 12])


def test_extents_of_the_image_may_come_with_the_call() -> None:
    @tilebench.jit
    def flattened(block_M=16, block_K=16):
        N, H, W, C, M, K = T.dynamic("N, H, W, C, M, K")

        @T.prim_func
        def main(X: T.Tensor((N, H, W, C), "float16"), Y: T.Tensor((M, K), "float32")):
            with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(K, block_K)) as (bx, by):
                x = T.alloc_fragment((block_M, block_K), "float32")
                T.im2col(X, x, bx, by, 3, 1, 1, 1, eviction_policy="evict_first")
                T.copy(x, Y[bx * block_M, by * block_K])

        return main

    kernel = flattened.using(target="cpu")()
    for shape in ((1, 3, 4, 5), (2, 7, 3, 2)):
        x = np.random.default_rng(0).integers(1, 100, shape).astype(np.float16)
        right = columns(x, 3, 1, 1, 1)
        y = np.full(right.shape, np.nan, np.float32)
        kernel(x, y)
        np.testing.assert_array_equal(y, right)
    (remark,) = [each.message for each in kernel.record(()).remarks if "eviction" in each.message]
    assert remark == "T.im2col(eviction_policy='evict_first') chooses nothing here"


def test_what_does_not_fit_is_refused() -> None:
    x, c = np.zeros((2, 5, 6), np.float32), np.zeros((8, 12), np.float32)
    error = refused_everywhere(HEAD + "    T.im2col(X, X_s, b0, 0, 3, 1, 1, 1)", X=x, C=c)
    assert error.message == "T.im2col reads a whole image (batch, height, width, channels)"
    x4 = np.zeros((2, 5, 6, 3), np.float32)
    error = refused_everywhere(HEAD + "    T.im2col(X, X_s[0:2, 0:12], b0, 0, 3, 1, 1, 1)", X=x4, C=c)
    assert error.message == "T.im2col takes whole buffers, found a part of X_s"
    tile = 'Y_s = T.alloc_shared((8, 3, 4), "float32")\nT.im2col(X, Y_s, b0, 0, 3, 1, 1, 1)'
    error = refused_everywhere(tile, X=x4, C=c)
    assert error.message == "T.im2col fills a tile of two dimensions"
    error = refused_everywhere(HEAD + "    T.im2col(X, X_s, b0, 0, 3, 0, 1, 1)", X=x4, C=c)
    assert error.message == "stride of T.im2col is 0"
