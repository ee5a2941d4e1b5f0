"""Kernels of stage `threaded` with copies by the tensor memory accelerator, as text."""

from __future__ import annotations

from typing import Any

from tilebench.ir.dtypes import DType

# One box of an array to shared memory, and from there, as it lies, to O.
BOX = """@T.prim_func
def main(A: T.Tensor({shape}, T.{dtype}), O: T.Tensor(({count},), T.{dtype})):
    with T.Kernel(1, threads=64, shared_bytes={bytes}) as bx:
        tid: T.int32 = T.thread_id()
        S = T.alloc_shared(({count},), T.{dtype}, offset=1024)
        full = T.alloc_shared((1,), T.uint64, offset=0)
        if tid == 0:
            T.mbarrier_init(full[0:1], 1)
            T.fence_mbarrier_init()
        T.sync_threads()
        if tid == 0:
            T.mbarrier_arrive(full[0:1], bytes={moved})
            T.tma_load(S[0:{count}], A[{box}], full[0:1]{swizzle})
        T.mbarrier_wait(full[0:1], 0)
        for i in T.serial({turns}):
            if i * 64 + tid < {count}:
                O[i * 64 + tid] = S[i * 64 + tid]
"""


def box(shape: tuple[int, ...], dtype: DType, start: Any, extent: tuple[int, ...], swizzle: int = 0) -> str:
    """The kernel that copies one box."""
    count = 1
    for size in extent:
        count *= size
    moved = count * dtype.bits // 8
    parts = ", ".join(f"{first} : {first + size}" for first, size in zip(start, extent, strict=True))
    return BOX.format(
        shape=shape, dtype=dtype.name, count=count, bytes=1024 + moved, moved=moved, box=parts,
        swizzle=f", swizzle={swizzle}" if swizzle else "", turns=-(-count // 64),
    )  # fmt: skip
