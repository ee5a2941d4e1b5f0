"""Products of many matrices at once: of a batch, and of rows that lie group by group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .calls import call
from .definition import ArrayArgument, Effort, Operator, Problem, size_of
from .kernels.batched_matmul import batched_matmul_kernel, grouped_matmul_kernel
from .near import Exact, near
from .products import DTYPES

# Row-major, and the transposed view of row-major memory, matrix by matrix.
EITHER_MATRIX = ((0, 1, 2), (0, 2, 1))


def exact_batched_matmul(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    return (near(xp, a["a"]) @ near(xp, a["b"])).exact()


def batched_matmul_effort(problem: Problem) -> Effort:
    b, m, n, k = (problem.sizes[dim] for dim in ("B", "M", "N", "K"))
    return Effort(2.0 * b * m * n * k, b * (m * k + k * n + m * n) * size_of(problem))


BATCHED_MATMUL = Operator(
    "batched_matmul",
    batched_matmul_kernel,
    (
        ArrayArgument("a", ("*B", "M", "K"), DTYPES, orders=EITHER_MATRIX),
        ArrayArgument("b", ("*B", "K", "N"), orders=EITHER_MATRIX),
    ),
    ArrayArgument("c", ("*B", "M", "N")),
    exact_batched_matmul,
    batched_matmul_effort,
)


def batched_matmul(a: Any, b: Any, *, out: Any = None) -> Any:
    """a @ b of each matrix: (..., M, N).

    a: (..., M, K), b: (..., K, N), with the same dimensions in front, of one dtype of float16, bfloat16,
    float32 and float64. Where there is one dimension in front, each of a and b may lie transposed in memory,
    matrix by matrix, as `w.transpose(1, 2)` of torch does. Sums are float32 (float64 of float64), and the
    result is rounded once.

    >>> import numpy as np
    >>> from tilebench import library
    >>> a = np.float32([[[1, 2]], [[3, 4]]])
    >>> print(library.batched_matmul(a, a.transpose(0, 2, 1)).ravel())
    [ 5. 25.]
    """
    return call(BATCHED_MATMUL, a, b, out=out)


def group_bounds(ends: Any, rows: int) -> list[tuple[int, int]]:
    """The first row of each group and the one behind its last, as a kernel reads them."""
    start, found = 0, list[tuple[int, int]]()
    for end in ends.tolist():
        found.append((start, max(min(int(end), rows), start)))
        start = found[-1][1]
    return found


def exact_grouped_matmul(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    left, right = a["a"], a["b"]
    value = left[:, :1] @ right[0, :1] * 0.0
    error = value * 0.0
    for number, (first, last) in enumerate(group_bounds(a["ends"], left.shape[0])):
        part = near(xp, left[first:last]) @ near(xp, right[number])
        value[first:last], error[first:last] = part.value, part.error
    return Exact(value, error)


def grouped_matmul_effort(problem: Problem) -> Effort:
    m, n, k, g = (problem.sizes[dim] for dim in ("M", "N", "K", "G"))
    return Effort(2.0 * m * n * k, (m * k + g * k * n + m * n) * size_of(problem) + 4 * g)


def even_groups(sizes: Mapping[str, int], random: np.random.Generator) -> Any:
    """Groups of about as many rows each, one of them empty where there are several."""
    cuts = np.sort(random.integers(0, sizes["M"] + 1, sizes["G"]))
    cuts[-1] = sizes["M"]
    if len(cuts) > 2:
        cuts[1] = cuts[0]
    return cuts.astype(np.int32)


GROUPED_MATMUL = Operator(
    "grouped_matmul",
    grouped_matmul_kernel,
    (
        ArrayArgument("a", ("M", "K"), DTYPES),
        ArrayArgument("b", ("G", "K", "N"), orders=EITHER_MATRIX),
        ArrayArgument("ends", ("G",), ("int32",), drawn=even_groups),
    ),
    ArrayArgument("c", ("M", "N")),
    exact_grouped_matmul,
    grouped_matmul_effort,
)


def grouped_matmul(a: Any, b: Any, ends: Any, *, out: Any = None) -> Any:
    """a[first:last] @ b[g] of each group g of rows: (M, N), as experts are applied to sorted tokens.

    a: (M, K) of float16, bfloat16, float32 or float64, whose rows lie group by group; b: (G, K, N) of the
    same, row-major or transposed in memory matrix by matrix; ends: (G,) int32, the row behind each group's
    last one, which is where the next begins. A group may be empty, and rows behind the last are zero in the
    result. The ends stay on the device: nothing waits for them. Sums are as those of `batched_matmul`.

    >>> import numpy as np
    >>> from tilebench import library
    >>> a, b = np.ones((3, 2), np.float32), np.float32([[[1], [1]], [[5], [5]]])
    >>> print(library.grouped_matmul(a, b, np.int32([1, 3])).ravel())
    [ 2. 10. 10.]
    """
    return call(GROUPED_MATMUL, a, b, ends, out=out)


__all__ = ["BATCHED_MATMUL", "GROUPED_MATMUL", "batched_matmul", "group_bounds", "grouped_matmul"]
