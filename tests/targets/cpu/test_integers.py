"""Index arithmetic is that of its dtype: it wraps, converts and divides as the reference says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.roads import everywhere, jitted, on_cpu, on_reference

A, ZEROS = np.arange(100, 164, dtype=np.int32), np.zeros(64, np.int32)
BITS = np.array([2**30, 2**31 - 1, -(2**31), -1, 0, 1, 2**29, -(2**30)] * 8, np.int32)
# As lanes of a vector, as a counter, as what is the same in all lanes.
LOOPS = (
    "for i in T.Parallel(64):\n    O[i] = {value}",
    "for i in T.serial(64):\n    O[i] = {value}",
    "for i, j in T.Parallel(8, 8):\n    O[i * 8 + j] = {value}",
)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "value",
    [
        "T.cast(T.cast(i, 'float32'), 'int32')",
        "T.cast(T.cast(T.cast(i - 9, 'float16'), 'int64'), 'int32')",
        "T.cast(T.cast(T.cast(i, 'int64') * 3000000000, 'int32') % 7, 'int32')",
        "T.cast(T.cast(i - 5, 'uint32') // 2, 'int32')",
        "T.cast(T.cast(i - 9, 'uint64') * 7 % 1000, 'int32')",
        "T.cast(T.cast(i * 100, 'int8'), 'int32') + T.cast(T.cast(i * 100, 'uint8'), 'int32')",
        "1 if T.cast(i - 5, 'uint32') < 5 else 2",
        "T.cast(T.cast(i - 3, 'bool'), 'int32')",
        "A[T.cast(i * 300, 'uint8') // 5]",
    ],
)
def test_conversions_of_indices(value: str, loop: str) -> None:
    after = everywhere(loop.format(value=value), A=A, O=ZEROS)["O"]
    assert len(set(after.tolist())) > 1


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "value",
    [
        "A[(i * 1103515245) % 63]",
        "A[(i * 1103515245 + 12345) // 100000000 + 30]",
        "1 if i * 1073741824 < 5 else 2",
        "T.min(i * 1073741824, 77)",
        "A[BITS[i] * 4 + 3]",
        "A[(BITS[i] + BITS[i]) // 3]",
        "A[T.min(BITS[i] * 8, 5)]",
        "A[i * 1073741824 * 4 + 1]",
    ],
)
def test_indices_that_wrap(value: str, loop: str) -> None:
    arrays: dict[str, Any] = {"A": A, "BITS": BITS, "O": ZEROS}
    function = jitted(loop.format(value=value), **arrays)
    assert np.array_equal(on_cpu(function, arrays)["O"], on_reference(function, arrays)["O"])
