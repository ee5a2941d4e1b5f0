"""Kernel text for the tests of the live workbench, as a person types it into a cell."""

from __future__ import annotations

IMPORTS = "import tilebench\nimport tilebench.language as T\n"

GEMM = """@tilebench.jit
def gemm(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=2, threads=128):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), "float16")
            B_s = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])
    return main
"""

DOUBLE = """@tilebench.jit
def double(N, block: tilebench.Knob(32, 64, 128) = 64):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2.0
    return main
"""

SHAPES = "--with M=200 N=170 K=130"


def functions() -> dict[str, object]:
    """The kernel functions, run as a module would."""
    from tilebench.errors import remember_source

    text = IMPORTS + GEMM + DOUBLE
    remember_source("bench_kernels", text)
    space: dict[str, object] = {"__name__": "bench_kernels"}
    exec(compile(text, "bench_kernels", "exec"), space)
    return space
