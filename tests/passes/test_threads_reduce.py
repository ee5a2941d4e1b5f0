"""Reductions from `pipelined` text to one thread's code, run in the simulator against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import kernels
from tests.passes.lowering import lower, random
from tests.simulated import run_threaded
from tilebench.errors import LayoutError
from tilebench.ir import print_function
from tilebench.layout import Fragment, spread

NUMPY: dict[str, tuple[Any, Any]] = {
    "sum": (np.sum, np.add),
    "max": (np.max, np.maximum),
    "min": (np.min, np.minimum),
}


def squeezed(fragment: Fragment) -> Fragment:
    """The mapping of a copy: dimensions of extent 1 are dropped."""
    keep = [k for k, extent in enumerate(fragment.extents) if extent != 1] or [0]
    new = {dim: k for k, dim in enumerate(keep)}
    thread = tuple((c, new[d], s) if d in new else (c, -1, 0) for c, d, s in fragment.thread)
    value = tuple((c, new[d], s) for c, d, s in fragment.value if d in new)
    return Fragment(tuple(fragment.extents[k] for k in keep), thread, value)


def reduce_text(kind: str, shape: tuple[int, int], threads: int, dim: int, dtype: str, clear: bool) -> str:
    width = 16 // (2 if dtype == "bfloat16" else np.dtype(dtype).itemsize)
    src = spread(shape, threads, width, 32, reduce_dim=dim)
    dst = src.reduce(dim)
    return f"""@T.prim_func
def reduce(A: T.Tensor({shape}, T.{dtype}), D: T.Tensor({dst.extents}, T.{dtype})):
    with T.Kernel(1, threads={threads}) as bx:
        x = T.alloc_fragment({shape}, T.{dtype}, layout={src})
        y = T.alloc_fragment({dst.extents}, T.{dtype}, layout={dst})
        T.copy(A, x, map={squeezed(src)})
        T.copy(D, y, map={squeezed(dst)})
        T.reduce_{kind}(x, y, dim={dim}, clear={clear})
        T.copy(y, D, map={squeezed(dst)})
"""


def exact(kind: str, a: NDArray[Any], dim: int, old: NDArray[Any] | None) -> NDArray[Any]:
    whole, two = NUMPY[kind]
    out = whole(a.astype(np.float64), axis=dim)
    return out if old is None else two(out, old.astype(np.float64))


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("shape", [(7, 33), (64, 64), (3, 1000), (100, 5), (1, 77), (2, 1024)])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("threads", [32, 256])
def test_reduce_against_numpy(kind: str, shape: tuple[int, int], dim: int, threads: int) -> None:
    clear = sum(shape) % 2 == 0
    a = random(shape, np.float32, 3)
    # Zero is neutral for a sum only: a ghost read as zero would show in these.
    a = a - 2 if kind == "max" else a + 2 if kind == "min" else a
    d = random((shape[1 - dim],), np.float32, 4)
    old = d.copy()
    function, _ = lower(reduce_text(kind, shape, threads, dim, "float32", clear))
    run_threaded(function, {"A": a, "D": d}, warp=32)
    wanted = exact(kind, a, dim, None if clear else old)
    if kind == "sum":
        assert (np.abs(d - wanted) <= shape[dim] * 2.0**-24 * (np.abs(a).sum(axis=dim) + 1)).all()
    else:
        assert np.array_equal(d, wanted.astype(np.float32))


@pytest.mark.parametrize(
    ("dtype", "kind"), [("float16", "sum"), ("bfloat16", "max"), ("int32", "sum"), ("int8", "min")]
)
def test_reduce_of_narrow_and_integer_types(dtype: str, kind: str) -> None:
    held = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    a, d = random((16, 64), held, 3), np.zeros((16,), held)
    function, _ = lower(reduce_text(kind, (16, 64), 64, 1, dtype, True))
    run_threaded(function, {"A": a, "D": d}, warp=32)
    # The sum is kept in float32 and rounded once.
    assert np.allclose(
        d.astype(np.float64), exact(kind, a, 1, None), rtol=2.0**-10, atol=0 if kind != "sum" else 2.0**-10
    )


def test_the_exchange_follows_the_layout() -> None:
    inside = print_function(lower(reduce_text("sum", (64, 64), 64, 1, "float32", True))[0]).text
    assert "T.shfl_xor(y_part[r0], 4)" in inside
    assert "y_parts" not in inside
    across = print_function(lower(reduce_text("sum", (2, 1024), 256, 1, "float32", True))[0]).text
    assert "y_parts = T.alloc_shared(" in across
    assert 'T.sync_threads(why="parts of y meet in y_parts")' in across


def test_lanes_that_are_not_neighbours() -> None:
    # The reduced dimension sits on lanes 4, 8 and 16; the rows on the low ones.
    src = Fragment((4, 24), ((4, 0, 1), (8, 1, 1)), ((3, 1, 8),))
    dst = src.reduce(1)
    text = f"""@T.prim_func
def reduce(A: T.Tensor((4, 24), T.float32), D: T.Tensor((4,), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_fragment((4, 24), T.float32, layout={src})
        y = T.alloc_fragment((4,), T.float32, layout={dst})
        T.copy(A, x, map={src})
        T.reduce_sum(x, y)
        T.copy(y, D, map={dst})
"""
    function, _ = lower(text)
    shown = print_function(function).text
    assert [f"T.shfl_xor(y_part[0], {k})" in shown for k in (1, 2, 4, 8, 16)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    a, d = random((4, 24), np.float32), np.zeros((4,), np.float32)
    run_threaded(function, {"A": a, "D": d}, warp=32)
    assert np.allclose(d, a.sum(axis=1), atol=1e-5)


def test_a_result_that_lies_elsewhere_is_refused() -> None:
    text = reduce_text("sum", (64, 64), 64, 1, "float32", True)
    kept = spread((64, 64), 64, 4, 32, reduce_dim=1).reduce(1)
    other = Fragment((64,), ((64, 0, 1),))
    text = text.replace(f"layout={kept}", f"layout={other}").replace(f"map={kept}", f"map={other}")
    with pytest.raises(LayoutError, match="does not lie where"):
        lower(text)


@pytest.mark.parametrize("columns", [1002, 1100, 4096])
def test_sums_along_rows_stay_within_a_warp(columns: int) -> None:
    # Across warps every result takes the shuffles of a warp, and two barriers and a read a warp besides.
    kernel = kernels.reduce_kernel.using(target="cuda:sm_90a")(1001, columns)
    assert 'by=T.Instr("shfl", lanes=' in kernel.stage("laid_out")
    (seeds,) = [r.values for r in kernel.compilation.context.remarks if "seeds" in r.message]
    assert seeds["cost_memory"] > 1.25 * seeds["cost_reduce_dim_1"]
