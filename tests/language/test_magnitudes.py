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


def test_what_has_no_sign_is_refused() -> None:
    body = BODY.format(kind="fragment", dtype="uint8", how="max", dim=1, clear=True)
    head = 'A: T.Tensor((64, 64), "uint8"), O: T.Tensor((64, 64), "uint8")'
    with pytest.raises(DTypeError, match=r"T\.reduce_absmax takes numbers with a sign, found uint8"):
        kernel_of(body, head)()
