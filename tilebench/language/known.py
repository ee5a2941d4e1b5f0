"""Names of TileLang that are not here yet, and what to say about a name that is not here."""

from __future__ import annotations

import re

from ..errors import LanguageError, nearest

# One string, because a list of a hundred quoted names is hard to read.
_LATER = """
    AtomicAdd CUDASourceCodeKernel async_copy dyn gemm_sp
    ptx_commit_group ptx_cp_async ptx_wait_group
    BaseTileScheduler allocate c2d_im2col loop_break tma_load_2sm ptx_ldmatrix ptx_mma ptx_mma_sp nextafter
"""
LATER = frozenset(_LATER.split())

_COPIES = "T.copy does the same and waits for it; in T.Pipelined its loads run ahead"
_PRODUCTS = "T.gemm does the same and waits for its result"
_SPARSE = "T.gemm takes the operand with its zeros"
# Words of Hopper's instructions that are not here, by what to write without them.
_HOPPER = {
    "T.tma_copy brings a box of an array; T.copy does, and waits for it": """
        tma_load create_tma_descriptor ptx_cp_async_bulk ptx_cp_async_barrier
    """,
    _COPIES: "tma_gather4 tma_scatter4",
    f"T.wgmma_gemm goes on until T.wait_wgmma(n); {_PRODUCTS}": """
        wgmma_mma ptx_wgmma_ss ptx_wgmma_rs alloc_wgmma_desc initialize_wgmma_descriptor
        compute_gmma_descriptor
    """,
    _SPARSE: "wgmma_gemm_sp ptx_wgmma_sp_ss ptx_wgmma_sp_rs",
    "leave it out: T.wgmma_gemm and T.wait_wgmma do it themselves": """
        warpgroup_arrive warpgroup_commit_batch warpgroup_fence_operand
    """,
    "leave it out: what T.copy has to wait for is the compiler's to know": "cp_async_barrier_noinc",
    "T.alloc_barrier(128) makes a barrier of 128 arrivals ready": "ptx_init_barrier_thread_count",
    "leave it out: a launch begins when the one before it has ended": "pdl_trigger pdl_sync",
    "T.ws(0) is the same: the block's first warp group": "WarpSpecialize",
    "write the kernel for one block: a schedule's cluster = [2, 1] has blocks share what they read": """
        cluster_arrive cluster_arrive_relaxed cluster_sync cluster_wait copy_cluster
        alloc_cluster_barrier ptx_arrive_cluster_barrier
    """,
}
HOPPER = {name: cure for cure, names in _HOPPER.items() for name in names.split()}

# Words of machines that no target here is, and of the compiler that TileLang is built on.
_BLACKWELL = """
    alloc_tmem deallocate_tmem alloc_descriptor alloc_tcgen05_instr_desc alloc_tcgen05_smem_desc
    compute_umma_descriptor initialize_tcgen05_descriptor mma_gemm_blockscaled make_blockscaled_gemm_layout
    tma_gather4_bytes clc_get_first_ctaid_x clc_get_first_ctaid_y clc_get_first_ctaid_z clc_is_canceled
    clc_try_cancel clc_try_cancel_multicast float4_e2m1_unpacked float8_e8m0fnu annotate_ws_schedule ws_op
    WSSchedule WSRole WSPipeline WSScope WSSync WSSyncKind WSInstr WSOpRef WSID
"""
_OF_TVM = """
    sblock sblock_attr block reads writes launch_thread func_attr match_buffer decl_buffer alloc_buffer
    tvm_access_ptr type_annotation handle Var BufferLoad BufferStore IntImm FloatImm StringImm Let LetStmt
    tirx register_object realize where axis remap allocate_const thread_axis env_thread get_let_value
    has_let_value Add And Any Assert Call CallEffectKind CommReducer Div EQ Else FloorDiv FloorMod GE GT If
    IterVar LE LT Max Min Mod Mul NE Not Or PrimExpr ProducerLoad Range Reduce SizeVar Sub Then While arg
    block_attr buffer buffer_decl buffer_store buffer_var call_intrin call_packed call_pure_extern
    call_llvm_intrin call_llvm_pure_intrin func_name func_ret index_map init iter_var meta_var
    prefetch ret target undef var void isnullptr tvm_storage_sync tvm_stack_alloca tvm_tuple
"""
# Vectors made of parts of others.
_OF_VECTORS = "Shuffle vscale vectorlow vectorhigh vectorcombine"
_VECTOR = re.compile(r"(u?int|float|bfloat)\d+(_e\dm\d(fn)?)?x\d+")
_PARTS = "make a vector of elements of others, T.float32x2(v[2], v[3])"
_COMPILERS = "the compiler's under TileLang, and no word of kernels"
# Of those, what a kernel writes.
_WITHOUT_TVM = {
    "write T.if_then_else(condition, a, b)": "where",
    "write `if`, `else` and `while`": "If Then Else While",
    "write the operator: a + b, a // b, a < b, a and b": """
        Add Sub Mul Div Mod FloorDiv FloorMod EQ NE LT LE GT GE And Or Not
    """,
    "write T.max(a, b) or T.min(a, b)": "Max Min",
    "write the name: x = value": "Let LetStmt",
    "write A[i, j]": "BufferLoad BufferStore buffer_store ProducerLoad",
    "T.Kernel(grid, threads=128) has the threads, and T.get_thread_binding() the number of one": """
        launch_thread thread_axis env_thread
    """,
    "T.alloc_shared, T.alloc_fragment and T.alloc_local make tiles": "alloc_buffer decl_buffer buffer_decl",
    'a parameter says what it is: A: T.Tensor((M, N), "float32")': "match_buffer",
    "write T.sync_threads()": "tvm_storage_sync",
}
_COPY_OR_GEMM = "write it with T.copy and T.gemm, which take the instructions that the card has"
ELSEWHERE = {
    **dict.fromkeys(_BLACKWELL.split(), ("for Blackwell, which is no target here", _COPY_OR_GEMM)),
    **dict.fromkeys(_OF_TVM.split(), (_COMPILERS, "")),
    **{name: (_COMPILERS, cure) for cure, names in _WITHOUT_TVM.items() for name in names.split()},
    "ramp": (_COMPILERS, "write T.Ramp(first, 1, lanes)"),
    "broadcast": (_COMPILERS, "write T.Broadcast(value, lanes)"),
    **dict.fromkeys(_OF_VECTORS.split(), ("one of the words of vectors that are not here", _PARTS)),
}
_CURES = {
    "ptx_cp_async": _COPIES, "async_copy": _COPIES, "ptx_commit_group": _COPIES,
    "ptx_wait_group": _COPIES, "ptx_ldmatrix": _PRODUCTS, "ptx_mma": _PRODUCTS, "ptx_mma_sp": _PRODUCTS,
    "AtomicAdd": "write T.atomic_add(A[i], x)", "allocate": "write T.alloc_shared or T.alloc_local",
    "CUDASourceCodeKernel": "T.import_source takes the text, and T.call_extern calls its functions",
    "BaseTileScheduler": "T.PersistentTileScheduler hands out the tiles",
    "gemm_sp": _SPARSE,
    "loop_break": "write `break`", "dyn": 'write T.dynamic("m")', "c2d_im2col": "write T.im2col",
}  # fmt: skip


# What other languages for kernels and arrays have, by how it is written here.
_WRITTEN = {
    "write T.max(x, 0)": "relu",
    "write x * T.sigmoid(x)": "silu swish",
    "write 0.5 * x * (1.0 + T.erf(x * 0.70710678))": "gelu",
    "write x * x": "square",
    "write T.min(T.max(x, low), high) or T.clamp(x, low, high)": "clip",
    "write T.max(a, b)": "maximum",
    "write T.min(a, b)": "minimum",
    "write T.reduce_sum(tile, out, dim=1)": "sum",
    "T.reduce_sum, and a division of its result": "mean reduce_mean average",
    "T.reduce_sum of the elements, and of their squares": "variance norm",
    "T.reduce_max of the rows, T.exp(x[i, j] - m[i]) in T.Parallel, T.reduce_sum, a division": """
        softmax log_softmax
    """,
    "T.reduce_max (or T.reduce_min) has the value; its first place is T.reduce_min of "
    "T.if_then_else(x[i, j] == best[i], j, n)": "argmax argmin reduce_argmax reduce_argmin",
    "write T.gemm(A, B, C)": "dot matmul mma einsum",
    "write T.ceildiv(a, b)": "cdiv",
    "write T.fill(tile, value) or T.clear(tile)": "full zeros ones zeros_like full_like",
    "write T.copy(A[i, j], tile), or A[i, j] for an element": "load",
    "write T.copy(tile, A[i, j]), or A[i, j] = x for an element": "store",
    "with T.Kernel(gx, gy, threads=128) as (bx, by): has the numbers of the block": "program_id blockIdx",
    "write tx = T.get_thread_binding()": "threadIdx thread_idx",
    "write T.sync_threads()": "syncthreads barrier debug_barrier",
    "the variables of T.Parallel are numbers": "arange",
    "T.reduce_max of 0 and 1": "any",
    "T.reduce_min of 0 and 1": "all",
}  # fmt: skip
WRITTEN = {name: cure for cure, names in _WRITTEN.items() for name in names.split()}


class MissingWord(LanguageError, AttributeError):
    """`T.name` is not there: a `LanguageError` that `hasattr` and completion understand."""


def explain_missing(name: str, known: list[str]) -> tuple[str, str]:
    """What to say about `T.name`, which is not there, and the hint.

    A name of TileLang that is still to come, or of another machine, is told apart from a slip of the pen.
    """
    if name in HOPPER:
        return f"T.{name} is one of Hopper's words that are not here yet", HOPPER[name]
    if _VECTOR.fullmatch(name):
        return f"there is no T.{name}", "vectors have 2, 4, 8 or 16 elements, each of 8 bits or more"
    if name in ELSEWHERE or name.startswith("tcgen05_"):
        what, hint = ELSEWHERE.get(name, ELSEWHERE["alloc_tmem"])
        return f"T.{name} is {what}", hint
    if name in LATER:
        return f"T.{name} is TileLang's, not here yet", _CURES.get(name, "")
    if name in WRITTEN:
        return f"there is no T.{name}", WRITTEN[name]
    close = nearest(name, known)
    if close:
        return f"there is no T.{name}", "did you mean " + " or ".join(f"T.{each}" for each in close) + "?"
    later = nearest(name, sorted(LATER | HOPPER.keys()), limit=1)
    return f"there is no T.{name}", f"T.{later[0]} is TileLang's, not here yet" if later else ""
