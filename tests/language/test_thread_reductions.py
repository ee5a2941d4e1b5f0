"""Reductions over threads, and matrix-vector products, on every road and as NumPy has them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError

VECTOR = 'A: T.Tensor((96,), "float32"), B: T.Tensor((40, 96), "float32"), C: T.Tensor((40,), "float32")'

GEMV = {
    "a thread a row": (
        (64,),
        """
        tn = T.get_thread_binding(0)
        a = T.alloc_shared((32,), "float32")
        b = T.alloc_shared((64, 32), "float32")
        c = T.alloc_local((1,), "float32")
        T.clear(c)
        for bk in T.serial(3):
            for k in T.serial(32):
                a[k] = A[bk * 32 + k]
                b[tn, k] = B[tn, bk * 32 + k]
            for k in T.serial(32):
                c[0] += a[k] * b[tn, k]
        C[tn] = c[0]
        """,
    ),
    "threads share a row by atomics": (
        (64, 4),
        """
        tn, tk = T.get_thread_bindings()
        total = T.alloc_shared((64,), "float32")
        part = T.alloc_var("float32", init=0.0)
        if tk == 0:
            total[tn] = 0
        for bk in T.serial(24):
            part = part + A[bk * 4 + tk] * B[tn, bk * 4 + tk]
        T.atomic_add(total[tn], part)
        C[tn] = total[tn]
        """,
    ),
    "threads share a row by a reduction": (
        (8, 16),
        """
        tn, tk = T.get_thread_bindings()
        for bn in T.serial(5):
            a = T.alloc_local((2,), "float32")
            b = T.alloc_local((2,), "float32")
            part = T.alloc_local((1,), "float32")
            T.clear(part)
            for bk in T.serial(3):
                for k in T.vectorized(2):
                    a[k] = A[bk * 32 + tk * 2 + k]
                    b[k] = B[bn * 8 + tn, bk * 32 + tk * 2 + k]
                for k in T.serial(2):
                    part[0] += a[k] * b[k]
            total = T.alloc_local((1,), "float32")
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.cast(0, "float32")]), "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), part[0], True, total[0], tk, dtype="handle"))
            C[bn * 8 + tn] = total[0]
        """,
    ),
    "a warp a row by shuffles": (
        (128,),
        """
        tx = T.get_thread_binding()
        lane, warp = T.get_lane_idx(), T.get_warp_idx()
        for bn in T.serial(10):
            part = T.alloc_var("float32", init=0.0)
            for k in T.serial(3):
                part = part + A[k * 32 + lane] * B[bn * 4 + warp, k * 32 + lane]
            total = T.warp_reduce_sum(part)
            if lane == 0:
                C[bn * 4 + warp] = total
        """,
    ),
    "a reducer": (
        (128,),
        """
        s = T.alloc_reducer((40,), "float32", replication="all")
        T.clear(s)
        for bk in T.serial(3):
            for i, k in T.Parallel(40, 32):
                s[i] += A[bk * 32 + k] * B[i, bk * 32 + k]
        T.finalize_reducer(s)
        T.copy(s, C)
        """,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", list(GEMV))
def test_a_matrix_by_a_vector(form: str) -> None:
    threads, body = GEMV[form]
    out = everywhere(body, VECTOR, threads=threads, exact=False)  # type: ignore[arg-type]
    np.testing.assert_allclose(out["C"], out["B"] @ out["A"], rtol=1e-4, atol=1e-4)


def test_all_threads_of_a_block_agree_on_the_greatest() -> None:
    out = everywhere(
        """
        tx, ty = T.get_thread_bindings()
        most = T.alloc_var("int32", init=0)
        with T.attr(T.comm_reducer(lambda x, y: T.max(x, y), [T.int32(-100)]), "reduce_scope", 0):
            T.evaluate(T.tvm_thread_allreduce(T.uint32(1), I[ty, tx], True, O[ty, tx], tx, ty))
        O[ty, tx] = O[ty, tx] + T.get_block_binding(0)
        """,
        'I: T.Tensor((8, 16), "int32"), O: T.Tensor((8, 16), "int32")',
        threads=(16, 8),  # type: ignore[arg-type]
    )
    np.testing.assert_array_equal(out["O"], np.full((8, 16), out["I"].max()))


def test_products_of_four_bytes() -> None:
    out = everywhere(
        """
        tx = T.get_thread_binding()
        a = T.alloc_local((4,), "int8")
        c = T.alloc_local((1,), "int32")
        c[0] = tx
        for k in T.serial(4):
            a[k] = A[tx, k + 4]
        T.dp4a(a, B[tx, 0], c)
        T.dp4a(A[tx, 0], B[tx, 4], c[0])
        C[tx] = c[0]
        """,
        'A: T.Tensor((128, 8), "int8"), B: T.Tensor((128, 8), "int8"), C: T.Tensor((128,), "int32")',
    )
    a, b = out["A"].astype(np.int32), out["B"].astype(np.int32)
    wanted = (a[:, 4:] * b[:, :4]).sum(1) + (a[:, :4] * b[:, 4:]).sum(1) + np.arange(128)
    np.testing.assert_array_equal(out["C"], wanted)


REFUSED = {
    "another function": (
        "r = T.comm_reducer(lambda x, y: x * y, [T.float32(1)])",
        "T.comm_reducer combines two values by something else than a sum, T.max or T.min",
    ),
    "another attribute": (
        'with T.attr(A, "pragma", 1):\n    pass',
        "T.attr('pragma') is TileLang's, not here yet",
    ),
    "products of floats": (
        "c = T.alloc_local((1,), 'int32')\nT.dp4a(A, A, c)",
        "T.dp4a sums products of bytes in int32, and A is of float32",
    ),
    "sums of bytes in floats": (
        "a = T.alloc_local((4,), 'uint8')\nT.dp4a(a, a, C)",
        "T.dp4a sums products of bytes in int32, and C is of float32",
    ),
    "no number of a thread": (
        "T.tvm_thread_allreduce(1, A[0], True, C[0], b0)",
        "T.tvm_thread_allreduce reduces over threads by their numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_no_reduction_can_do_is_refused_at_its_line(name: str) -> None:
    body, message = REFUSED[name]
    with pytest.raises(TileError) as caught:
        kernel_of(body, VECTOR).using(target="cpu")()
    assert caught.value.message == message
