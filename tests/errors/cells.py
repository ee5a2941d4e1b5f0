"""Cells that are wrong, by the name of the golden text that their error must give.

Each defines `kernel`; it is traced with the parameters of `PARAMETERS`, if it has a row there.
"""

from __future__ import annotations

HEAD = """\
import tilebench.language as T

def kernel(M=256, N=256, K=256, block=64):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
"""
TAIL = "    return main\n"


def in_function(*lines: str) -> str:
    """A cell whose kernel has these lines."""
    return HEAD + "".join(f"        {line}\n" for line in lines) + TAIL


def in_kernel(*lines: str) -> str:
    """A cell whose kernel has these lines inside `with T.Kernel`."""
    return in_function("with T.Kernel(4, 4) as (bx, by):", *(f"    {line}" for line in lines))


def in_sizes(size: str, line: str = "T.clear(t)") -> str:
    """A cell whose array has `size` rows, with a line in its kernel after a tile `t` was made."""
    return f"""\
import tilebench.language as T

def kernel():
    M = {size}
    @T.prim_func
    def main(A: T.Tensor((M, 32), "float16")):
        with T.Kernel(4) as bx:
            t = T.alloc_shared((16, 32), "float16")
            {line}
    return main
"""


CELLS: dict[str, str] = {
    # shapes, ranks, extents
    "copy_extents": in_kernel(
        'A_s = T.alloc_shared((block, 32), "float16")',
        'A_l = T.alloc_fragment((block, 48), "float16")',
        "T.copy(A[by * block, 0], A_s)",
        "T.copy(A_s, A_l)",
    ),
    "copy_region_extents": in_kernel(
        'A_s = T.alloc_shared((block, 32), "float16")', "T.copy(A[by * block : by * block + 32, 0 : 32], A_s)"
    ),
    "copy_rank": in_kernel('t = T.alloc_shared((2, block, 32), "float16")', "T.copy(A[by * block, 0], t)"),
    "copy_number": in_kernel('A_s = T.alloc_shared((block, 32), "float16")', "T.copy(0, A_s)"),
    "copy_reach": in_kernel(
        'a = T.alloc_shared((block, 32), "float16")',
        'b = T.alloc_shared((block, 32), "float16")',
        "T.copy(a[8, 0], b)",
    ),
    "gemm_k": in_kernel(
        'A_s = T.alloc_shared((block, 32), "float16")',
        'B_s = T.alloc_shared((64, block), "float16")',
        'C_l = T.alloc_fragment((block, block), "float32")',
        "T.gemm(A_s, B_s, C_l)",
    ),
    "gemm_transposed": in_kernel(
        'A_s = T.alloc_shared((64, 32), "float16")',
        'B_s = T.alloc_shared((32, 128), "float16")',
        'C_l = T.alloc_fragment((64, 128), "float32")',
        "T.gemm(A_s, B_s, C_l, transpose_B=True)",
    ),
    "gemm_dtype": in_kernel(
        'A_s = T.alloc_shared((64, 32), "float32")',
        'B_s = T.alloc_shared((32, 64), "float32")',
        'C_l = T.alloc_fragment((64, 64), "float16")',
        "T.gemm(A_s, B_s, C_l)",
    ),
    "gemm_mixed": in_kernel(
        'A_s = T.alloc_shared((64, 32), "float16")',
        'B_s = T.alloc_shared((32, 64), "bfloat16")',
        'C_l = T.alloc_fragment((64, 64), "float32")',
        "T.gemm(A_s, B_s, C_l)",
    ),
    "gemm_into_global": in_kernel(
        'A_s = T.alloc_shared((64, 32), "float16")',
        'B_s = T.alloc_shared((32, 64), "float16")',
        "T.gemm(A_s, B_s, C[by * 64 : by * 64 + 64, bx * 64 : bx * 64 + 64])",
    ),
    "gemm_policy": in_kernel(
        'C_l = T.alloc_fragment((64, 64), "float32")',
        'T.gemm(A[0:64, 0:32], B[0:32, 0:64], C_l, policy="rows")',
    ),
    "reduce_shape": in_kernel(
        'x = T.alloc_fragment((64, 32), "float32")',
        's = T.alloc_fragment((32,), "float32")',
        "T.reduce_sum(x, s, dim=1)",
    ),
    "reduce_dim": in_kernel(
        'x = T.alloc_fragment((64, 32), "float32")',
        's = T.alloc_fragment((64,), "float32")',
        "T.reduce_max(x, s, dim=2)",
    ),
    "reduce_global": in_kernel('s = T.alloc_fragment((256,), "float32")', "T.reduce_sum(A, s)"),
    "index_rank": in_kernel("for i in T.Parallel(64):", "    C[i] = A[i, 0]"),
    "index_range": in_kernel("C[256, 0] = 1"),
    "index_float": in_kernel("for i in T.Parallel(64):", "    C[i, i * 0.5] = 0"),
    "slice_extent": in_kernel(
        'a = T.alloc_shared((64, 64), "float16")', "T.copy(A[bx * 64 : by * 64, 0:64], a)"
    ),
    "slice_empty": in_kernel('a = T.alloc_shared((64, 64), "float16")', "T.copy(A[64:64, 0:64], a)"),
    "parallel_names": in_kernel("for i in T.Parallel(64, 64):", "    C[i, i] = 0"),
    "kernel_names": in_function("with T.Kernel(4, 4) as (bx, by, bz):", "    T.clear(C)"),
    "zero_block": in_kernel('a = T.alloc_shared((block, 32), "float16")', "T.copy(A[0, 0], a)"),
    "negative_grid": in_function("with T.Kernel(T.ceildiv(N, block), 4) as (bx, by):", "    T.clear(C)"),
    "zero_division": in_function("with T.Kernel(T.ceildiv(N, block), 4) as (bx, by):", "    T.clear(C)"),
    "no_threads": in_function("with T.Kernel(4, threads=0) as bx:", "    T.clear(C)"),
    "parallel_negative": in_kernel("for i in T.Parallel(block - 128):", "    C[i, 0] = 0"),
    "num_stages": in_kernel("for k in T.Pipelined(4, num_stages=-1):", "    T.clear(C)"),
    "traced_extent": in_kernel('a = T.alloc_shared((bx, 32), "float16")'),
    "tensor_extent": HEAD.replace("(M, K)", "(M, K - 300)") + "        pass\n" + TAIL,
    "tensor_dtype": HEAD.replace('(M, K), "float16"', '(M, K), "flaot16"') + "        pass\n" + TAIL,
    # names
    "unknown_word": in_kernel("for i, j in T.paralel(64, 64):", "    C[i, j] = 0"),
    "later_word": in_kernel("for i, j in T.Parallel(64, 64):", "    T.ptx_mma_sp(C[i, j])"),
    "unknown_name": in_kernel('A_shared = T.alloc_shared((64, 64), "float16")', "T.copy(A[0, 0], A_shard)"),
    "unknown_attribute": in_kernel('A_s = T.alloc_shared(A.shap, "float16")'),
    "unknown_option": in_kernel("for k in T.Pipelined(4, num_stage=2):", "    T.clear(C)"),
    "ended_name": in_kernel("for k in T.serial(4):", "    row = k * 64", "C[row, 0] = 0"),
    "ended_buffer": in_kernel(
        "for k in T.serial(4):", '    a = T.alloc_shared((64, 64), "float16")', "T.copy(A[0, 0], a)"
    ),
    # what Python has and the language has not
    "while": in_kernel("while bx < 4:", "    T.clear(C)"),
    "try": in_kernel("try:", "    T.clear(C)", "finally:", "    pass"),
    "class": in_kernel("class Tile:", "    pass"),
    "break": in_kernel("for k in T.Parallel(4):", "    break"),
    "return": in_kernel("return C"),
    "inner_def": in_kernel("def helper(x):", "    return x"),
    "walrus": in_kernel("C[(n := 4), 0] = 0"),
    "assign_loop_variable": in_kernel("for k in T.serial(4):", "    k = k + 1"),
    "assign_buffer": in_kernel("C = A"),
    "assign_region": in_kernel("C[0:64, :] = 0"),
    "assign_outer": in_kernel("row = bx * 64", "for k in T.serial(4):", "    row = row + 1"),
    "buffer_arithmetic": in_kernel("for i, j in T.Parallel(64, 64):", "    C[i, j] = A + B[i, j]"),
    "huge_integer": in_kernel("C[0, 0] = 10**400"),
    "huge_extent": in_kernel('a = T.alloc_shared((2**31, 2), "float16")'),
    "shift_out": in_kernel("C[bx << 40, 0] = 0"),
    "integer_power": in_kernel("C[bx**by, 0] = 0"),
    "integer_division": in_kernel("C[bx / 2, 0] = 0"),
    "traced_list_index": in_kernel("sizes = [1, 2, 3]", "C[sizes[bx], 0] = 0"),
    # where things may stand
    "no_kernel": in_function("rows = M // block"),
    "kernel_in_kernel": in_kernel("with T.Kernel(4) as inner:", "    T.clear(A)"),
    "workspace_in_kernel": in_kernel('W = T.alloc_global((64, 64), "float32")'),
    "before_kernel": in_function(
        'a = T.alloc_shared((64, 64), "float16")', "with T.Kernel(4) as bx:", "    T.clear(C)"
    ),
    "after_kernel": in_function("with T.Kernel(4) as bx:", "    T.clear(C)", "T.clear(A)"),
    "tile_in_parallel": in_kernel(
        'a = T.alloc_shared((64, 64), "float16")', "for i in T.Parallel(64):", "    T.copy(A[0, 0], a)"
    ),
    "nested_parallel": in_kernel(
        "for i in T.Parallel(64):", "    C[i, 0] = 0", "    for j in T.Parallel(64):", "        C[i, j] = 0"
    ),
    "fragment_element": in_kernel(
        'a = T.alloc_fragment((64, 64), "float32")',
        'S = T.alloc_shared((64, 64), "float16")',
        "T.clear(S)",
        "T.gemm(S, S, a)",
        "if a[0, 0] > 0:",
        "    T.clear(C)",
    ),
    "lone_loop": in_kernel("T.serial(4)"),
    # helpers that Python runs
    "helper_branch": "def relu(x):\n    return x if x > 0 else 0\n\n"
    + in_kernel("for i, j in T.Parallel(64, 64):", "    C[i, j] = relu(A[i, j])"),
    "helper_copy": "def load(source, tile):\n    T.copy(source, tile[0:32, :])\n\n"
    + in_kernel('a = T.alloc_shared((64, 64), "float16")', "load(A[0:64, 0:64], a)"),
    "helper_math": "import math\n\n"
    + in_kernel("for i, j in T.Parallel(64, 64):", "    C[i, j] = math.exp(A[i, j])"),
    # the function around the kernel
    "returns_nothing": in_kernel("T.clear(C)").replace(TAIL, ""),
    # parameters and sizes
    "scalar_parameter": HEAD.replace("def main(", "def main(n: T.float8_e5m2, ") + "        pass\n" + TAIL,
    "parameter_annotation": HEAD.replace("def main(", "def main(n: 5, ") + "        pass\n" + TAIL,
    "dynamic_name": in_sizes('T.dynamic("2m")'),
    "dynamic_dtype": in_sizes('T.dynamic("m", "int64")'),
    "dynamic_shape": in_sizes('T.dynamic("m") / 2'),
    "dynamic_parameter": in_sizes('T.dynamic("A")'),
    "dynamic_product": in_sizes('T.dynamic("m") * T.dynamic("n")'),
    "dynamic_alone": in_sizes("16", 'T.copy(A[T.dynamic("m"), 0], t)'),
    "dynamic_tile": in_sizes('T.dynamic("m")', 'u = T.alloc_shared((M, 32), "float16")'),
    "dynamic_whole": in_sizes('T.dynamic("m")', "T.copy(A, t)"),
    "outer_python": "import tilebench.language as T\n\n"
    "def kernel(M=256):\n    tiles = M // 0\n    return tiles\n",
    "eager": "import tilebench.language as T\n\n"
    "def kernel(A, M=256):\n    with T.Kernel(4) as bx:\n        T.clear(A)\n",
    "eager_return": "import tilebench.language as T\n\n"
    "def kernel(A, M=256):\n    A: T.Tensor((M,), T.float32)\n    B = T.empty((M,), T.float32)\n"
    "    with T.Kernel(4) as bx:\n        T.clear(A)\n    return A\n",
    "eager_inside": "import tilebench.language as T\n\n"
    "def kernel(A, M=256):\n    A: T.Tensor((M,), T.float32)\n"
    "    with T.Kernel(4) as bx:\n        B = T.empty((M,), T.float32)\n    return B\n",
    "wide_characters": in_kernel(
        '名前 = T.alloc_shared((64, 32), "float16")', "T.copy(A[0:64, 0:16], 名前)  # 複写"
    ),
}

PARAMETERS: dict[str, dict[str, int]] = {
    "zero_block": {"block": 0},
    "negative_grid": {"block": -64},
    "zero_division": {"block": 0},
    "eager": {"A": 0},
}
