"""Names of TileLang that are not here yet, and what to say about a name that is not here."""

from __future__ import annotations

from ..errors import LanguageError, nearest

# One string, because a list of a hundred quoted names is hard to read.
_LATER = """
    AtomicAdd ClusterKernel Persistent
    PersistentTileScheduler Ramp Broadcast Shuffle CUDASourceCodeKernel access_ptr
    activemask address_of all_of all_sync alloc_barrier alloc_global alloc_reducer alloc_tmem
    alloc_cluster_barrier annotate_l2_hit_ratio annotate_min_blocks_per_sm
    annotate_pass_configs annotate_compile_flags annotate_restrict_buffers annotate_safe_value
    annotate_producer_reg_dealloc annotate_consumer_reg_alloc any_of any_sync assume async_copy
    atomic_addx2 atomic_addx4 atomic_load atomic_or atomic_store attr ballot
    ballot_sync barrier_arrive barrier_wait call_extern comm_reducer copy_cluster
    cp_async_barrier_noinc cummax cumsum device_assert dp4a dyn
    evaluate finalize_reducer float4_e2m1fn float8_e8m0fnu gemm_sp get_block_binding
    get_block_bindings get_lane_idx get_thread_bindings get_thread_extent
    get_thread_extents get_warp_group_idx get_warp_idx get_warp_idx_sync im2col import_source
    make_tensor match_all match_any mbarrier_arrive mbarrier_expect_tx
    mbarrier_wait_parity meta_class pdl_trigger pdl_sync print ptr
    ptx_commit_group ptx_cp_async ptx_wait_group reduce reduce_bitand
    reduce_bitor reduce_bitxor reducer_init reducer_update reshape rng_init rng_rand
    rng_rand_float set_max_nreg shfl_down shfl_sync shfl_up shfl_xor
    sync_grid sync_threads sync_warp syncthreads_and syncthreads_count syncthreads_or tfloat32
    thread_binding tma_copy tma_store_wait transpose tvm_thread_allreduce
    tvm_warp_shuffle view wait_wgmma warp_reduce_bitand warp_reduce_bitor warp_reduce_max warp_reduce_min
    warp_reduce_sum wgmma_gemm
    ieee_fmaf ieee_frsqrt
"""
LATER = frozenset(_LATER.split())


class MissingWord(LanguageError, AttributeError):
    """`T.name` is not there: a `LanguageError` that `hasattr` and completion understand."""


def explain_missing(name: str, known: list[str]) -> tuple[str, str]:
    """What to say about `T.name`, which is not there, and the hint.

    A name of TileLang that is still to come is told apart from a slip of the pen.
    """
    if name in LATER:
        return f"T.{name} is TileLang's, not here yet", ""
    close = nearest(name, known)
    if close:
        return f"there is no T.{name}", "did you mean " + " or ".join(f"T.{each}" for each in close) + "?"
    later = nearest(name, sorted(LATER), limit=1)
    return f"there is no T.{name}", f"T.{later[0]} is TileLang's, not here yet" if later else ""
