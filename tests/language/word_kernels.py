"""Kernels for the table of words: each word of the two tiers that is here stands in one of them at least."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import NamedTuple

HEAD = """\
import tilebench
import tilebench.language as T

@tilebench.jit
def kernel():
    @T.prim_func
    def main({head}):
        with T.Kernel({grid}, threads={threads}) as {blocks}:
{body}
    return main
"""


class WordKernel(NamedTuple):
    """A kernel as text, with the sizes at which it is run; `only` are the words it tells of, if not all.

    `simulated` is the card whose code the simulator runs.
    """

    text: str
    sizes: dict[str, int]
    only: tuple[str, ...] = ()
    simulated: str = "sm_80"


def _kernel(head: str, body: str, grid: str = "2", blocks: str = "bx", threads: int = 64) -> WordKernel:
    lines = indent(dedent(body).strip(), " " * 12)
    return WordKernel(HEAD.format(head=head, grid=grid, threads=threads, blocks=blocks, body=lines), {})


_GEMM = """
S = T.alloc_shared((32, 32), "{ab}")
R = T.alloc_shared((32, 32), "{ab}")
F = T.alloc_fragment((32, 32), "{c}")
T.clear(F)
T.use_swizzle(4)
T.annotate_layout({{S: T.Layout((32, 32), lambda i, j: [i, j])}})
for k in T.Pipelined(2, num_stages=2):
    T.copy(A[bx * 32, k * 32], S)
    T.copy(B[k * 32 : k * 32 + 32, 0:32], R)
    T.gemm(S, R, F, policy=T.GemmWarpPolicy.Square)
T.copy(F, O[bx * 32, 0])
"""
_ARRAYS = "A: T.Tensor((64, 64), T.{ab}), B: T.Tensor((64, 32), T.{ab}), O: T.Tensor((64, 32), T.{c})"
_ROW = 'A: T.Tensor((8, 64), "float32"), O: T.Tensor((8, 64), "float32")'
_VECTOR = "A: T.Tensor((64,), T.{a}), O: T.Tensor((64,), T.{o})"


def _product(ab: str, c: str) -> WordKernel:
    return _kernel(_ARRAYS.format(ab=ab, c=c), _GEMM.format(ab=ab, c=c))


def _elements(body: str, a: str = "float32", o: str = "float32") -> WordKernel:
    loop = f"for i in T.Parallel(64):\n{indent(dedent(body).strip(), '    ')}"
    return _kernel(_VECTOR.format(a=a, o=o), loop, grid="1")


_EAGER = """\
import tilebench
import tilebench.language as T

@tilebench.jit
def kernel(A):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] = A[bx * 32 + i] * 2
    return B
"""
_SIZES = """\
import tilebench
import tilebench.language as T

@tilebench.jit
def kernel():
    m = T.{word}("m")

    @T.prim_func
    def main(A: T.StridedTensor((m, 16), (20, 1), "float32"), B: T.Buffer((m, 16), "float32")):
        with T.Kernel(T.ceildiv(m, 8), threads=32) as bx:
            for i, j in T.Parallel(8, 16):
                B[bx * 8 + i, j] = A[bx * 8 + i, j]
    return main
"""
KERNELS: list[WordKernel] = [
    WordKernel(_EAGER, {"N": 70}),
    WordKernel(_SIZES.format(word="dynamic"), {"m": 13}),
    WordKernel(_SIZES.format(word="symbolic"), {"m": 13}),
    _product("float16", "float32"), _product("bfloat16", "float32"), _product("float32", "float32"),
    _kernel(
        _ROW,
        """
        F = T.alloc_fragment((4, 64), "float32")
        r = T.alloc_fragment((4,), "float32")
        m = T.alloc_fragment((4,), "float32")
        T.copy(A[bx * 4, 0], F)
        T.fill(m, -T.infinity("float32"))
        T.reduce_max(F, m, dim=1, clear=False)
        for i, j in T.Parallel(4, 64):
            F[i, j] = T.exp2(F[i, j] - m[i])
        T.reduce_sum(F, r, dim=1)
        for i, j in T.Parallel(4, 64):
            F[i, j] = F[i, j] / r[i]
        T.reduce_min(F, m, dim=1)
        T.reduce_absmax(F, r, dim=1)
        for i, j in T.Parallel(4, 64):
            F[i, j] = F[i, j] + m[i] * r[i]
        T.copy(F, O[bx * 4, 0])
        """,
    ),
    _elements("O[i] = T.if_then_else(A[i] > 0, T.log2(A[i] + 1), T.max(A[i], T.min(i, 3)))"),
    _elements("O[i] = T.exp(T.clamp(A[i], -1.0, 1.0)) * T.rsqrt(A[i] * A[i] + 1)"),
    _elements("O[i] = T.cast(A[i], T.float64) + T.floordiv(i, 3) + T.floormod(i, 5)", o="float64"),
    _elements("O[i] = T.reinterpret(A[i], 'uint32')", o="uint32"),
    *[_elements(f"O[i] = T.{name}(A[i]) + T.{name}(i % 2)", a="int32", o=name)
      for name in ("int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64", "int32", "float")],
    _elements("O[i] = T.bool(A[i] > 0)", o="bool"),
    *[_elements("O[i] = A[i]", o=name) for name in ("float8_e4m3fn", "float8_e5m2")],
    _kernel(
        'A: T.Tensor((64,), T.dtype("float32")), O: T.Tensor((64,), "float32")',
        """
        v = T.alloc_var("float32", init=1.0)
        L = T.alloc_local((4,), "float32")
        for k in T.serial(4):
            L[k] = k
            v = v + L[k]
        for k in T.unroll(4):
            v = v * 0.5 + L[k]
        for j, k in T.grid(2, 2):
            v = v + j * k
        for i in T.Parallel(64):
            O[i] = A[i] + v
        T.disable_warp_group_reg_alloc()
        """,
        grid="1",
    ),
    _kernel(
        _VECTOR.format(a="float32", o="float32"),
        """
        @T.macro
        def twice(x):
            return x * 2
        S = T.alloc_shared((64,), "float32")
        T.copy(A, S)
        G = T.reshape(S, (8, 8))
        H = T.view(S, (8, 8))
        for i, j in T.Parallel(8, 8):
            O[i * 8 + j] = twice(G[i, j]) + H[j, i]
        """,
        grid="1",
    ),
    _kernel(_VECTOR.format(a="float32", o="float32"),
            "for i in T.Parallel(64):\n    T.atomic_add(O[i], A[i])", grid="1"),
    _kernel(
        _VECTOR.format(a="float32", o="float32"),
        """
        tx = T.get_thread_binding()
        if tx < 32:
            T.copy(A[0:32], O[0:32])
        with T.ws(1):
            T.copy(A[32:64], O[32:64])
        """,
        grid="1", threads=256,
    ),
    _kernel(
        'A: T.Tensor((64, 4), "float32"), O: T.Tensor((64, 4), "float32")',
        """
        for i in T.Parallel(64):
            for v in T.vectorized(4):
                O[i, v] = A[i, v] + 1
        """,
        grid="1",
    ),
    _kernel(
        'A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")',
        """
        tx = T.get_thread_binding()
        with T.attr(T.comm_reducer(lambda x, y: T.max(x, y), [T.int32(-100)]), "reduce_scope", 0):
            T.evaluate(T.tvm_thread_allreduce(T.uint32(1), A[tx], True, O[tx], tx))
        """,
        grid="1",
    ),
    _kernel(
        _VECTOR.format(a="float32", o="float32"),
        """
        T.import_source("__device__ float twice(float x) { return x * 2; }")
        for i in T.Parallel(64):
            O[i] = T.call_extern("float32", "twice", A[i], meaning=lambda x: x * 2)
        """,
        grid="1",
    )._replace(only=("call_extern", "import_source")),
    _kernel(
        'A: T.Tensor((1, 8, 8, 4), "float32"), O: T.Tensor((64, 36), "float32")',
        """
        S = T.alloc_shared((64, 36), "float32")
        T.im2col(A, S, 0, 0, 3, 1, 1, 1)
        T.copy(S, O)
        """,
        grid="1",
    ),
    _kernel(
        _VECTOR.format(a="float32", o="float32"),
        """
        S = T.alloc_shared((64,), "float32")
        tx = T.get_thread_binding()
        for t in T.thread_binding(64, thread="threadIdx.x"):
            S[t] = A[t]
        T.sync_threads()
        O[tx] = S[63 - tx]
        """,
        grid="1",
    ),
    _kernel(
        _VECTOR.format(a="float32", o="float32"),
        """
        S = T.alloc_shared((64,), "float32")
        with T.ws(0):
            T.dec_max_nreg(24)
            T.copy(A, S)
            T.named_barrier_arrive(1, 256)
        with T.ws(1):
            T.set_max_nreg(240, 1)
            T.sync_threads(1, 256)
            T.copy(S, O)
        """,
        grid="1",
        threads=256,
    )._replace(only=("dec_max_nreg", "set_max_nreg", "named_barrier_arrive"), simulated="sm_90a"),
    _kernel(
        _VECTOR.format(a="float32", o="float32"),
        """
        S = T.alloc_shared((64,), "float32")
        full = T.alloc_barrier([64, 64])
        with T.threads(0, 64):
            T.copy(A, S)
            T.barrier_arrive(full[0])
        with T.threads(64, 64):
            T.barrier_wait(full[0], 0)
            T.mbarrier_arrive(full[1])
            T.mbarrier_wait_parity(full[1], 0)
            T.copy(S, O)
        """,
        grid="1",
        threads=128,
    )._replace(
        only=("alloc_barrier", "barrier_arrive", "barrier_wait", "mbarrier_arrive", "mbarrier_wait_parity")
    ),
    _kernel(
        'A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float32")',
        """
        S = T.alloc_shared((64, 64), "float16")
        F = T.alloc_fragment((64, 64), "float32")
        T.copy(A, S)
        T.wgmma_gemm(S, S, F, clear_accum=True)
        T.wait_wgmma(0)
        T.copy(F, O)
        """,
        grid="1",
        threads=128,
    )._replace(only=("wgmma_gemm", "wait_wgmma"), simulated="sm_90a"),
    _kernel(
        'A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float16")',
        """
        S = T.alloc_shared((64, 64), "float16")
        full = T.alloc_barrier(1)
        with T.threads(0, 1):
            T.tma_copy(A, S, barrier=full)
            T.barrier_arrive(full)
        T.barrier_wait(full, 0)
        T.copy(S, O)
        """,
        grid="1",
        threads=128,
    )._replace(only=("tma_copy",), simulated="sm_90a"),
]  # fmt: skip
