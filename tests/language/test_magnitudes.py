"""`T.reduce_absmax` and `T.reduce_abssum`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import DTypeError

BODY = """
rows = T.alloc_{kind}((64, 64), "{dtype}")
out = T.alloc_fragment((64,), "{dtype}")
T.copy(A, rows)
T.fill(out, 3)
T.reduce_abs{how}(rows, out, dim={dim}, clear={clear})
T.copy(out, O[0, 0:64])
"""


@pytest.mark.parametrize("kind", ["fragment", "shared"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize(("how", "dim", "clear"), [("max", 1, True), ("sum", 1, False), ("max", 0, False)])
def test_magnitudes(how: str, dim: int, clear: bool, dtype: str, kind: str) -> None:
    a = np.random.default_rng(0).integers(-5, 4, (64, 64)).astype(dtype)
    head = f'A: T.Tensor((64, 64), "{dtype}"), O: T.Tensor((64, 64), "{dtype}")'
    body = BODY.format(kind=kind, dtype=dtype, how=how, dim=dim, clear=clear)
    found = everywhere(body, head, A=a, O=np.zeros((64, 64), dtype))["O"][0]
    wanted = np.abs(a).max(dim) if how == "max" else np.abs(a).sum(dim)
    if not clear:
        wanted = np.maximum(wanted, 3) if how == "max" else wanted + 3
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("how", ["max", "sum"])
def test_numbers_without_a_sign_are_their_magnitudes(how: str) -> None:
    a = np.random.default_rng(0).integers(0, 2**32, (64, 64), np.uint32)
    head = 'A: T.Tensor((64, 64), "uint32"), O: T.Tensor((64, 64), "uint32")'
    body = BODY.format(kind="fragment", dtype="uint32", how=how, dim=1, clear=True)
    found = everywhere(body, head, A=a, O=np.zeros((64, 64), np.uint32))["O"][0]
    np.testing.assert_array_equal(found, a.max(1) if how == "max" else a.sum(1, dtype=np.uint32))


def test_bools_are_refused() -> None:
    body = BODY.format(kind="fragment", dtype="bool", how="max", dim=1, clear=True)
    head = 'A: T.Tensor((64, 64), "bool"), O: T.Tensor((64, 64), "bool")'
    with pytest.raises(DTypeError, match=r"T\.reduce_absmax takes numbers, found bool"):
        kernel_of(body, head)()
