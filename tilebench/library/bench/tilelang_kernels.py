"""The kernels of the peer TileLang, as its users write them. Imported where TileLang is."""

import tilelang
import tilelang.language as T

LOG2E = 1.4426950408889634


# Without Hopper's own instructions: what TileLang makes of a product for the cards before.
_OLDER = {
    getattr(tilelang.PassConfigKey, name): True
    for name in ("TL_DISABLE_WGMMA", "TL_DISABLE_TMA_LOWER", "TL_DISABLE_WARP_SPECIALIZED")
    if hasattr(tilelang.PassConfigKey, name)
}


def _product(M, N, K, dtype, transposed, block_M, block_N, block_K, stages, threads):
    shape = (N, K) if transposed else (K, N)
    tile = (block_N, block_K) if transposed else (block_K, block_N)

    @T.prim_func
    def main(a: T.Tensor((M, K), dtype), b: T.Tensor(shape, dtype), c: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            a_s = T.alloc_shared((block_M, block_K), dtype)
            b_s = T.alloc_shared(tile, dtype)
            c_s = T.alloc_shared((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), "float32")
            T.use_swizzle(panel_size=10)
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                T.copy(a[by * block_M, k * block_K], a_s)
                if transposed:
                    T.copy(b[bx * block_N, k * block_K], b_s)
                else:
                    T.copy(b[k * block_K, bx * block_N], b_s)
                T.gemm(a_s, b_s, acc, transpose_B=transposed)
            T.copy(acc, c_s)
            T.copy(c_s, c[by * block_M, bx * block_N])

    return main


@tilelang.jit(out_idx=[-1], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def _attention(B, H, S, D, dtype, causal, block_M, block_N, stages, threads):
    scale = D**-0.5 * LOG2E
    shape = (B, H, S, D)

    @T.prim_func
    def main(
        q: T.Tensor(shape, dtype), k: T.Tensor(shape, dtype), v: T.Tensor(shape, dtype),
        o: T.Tensor(shape, dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(S, block_M), H, B, threads=threads) as (bx, by, bz):
            q_s = T.alloc_shared((block_M, D), dtype)
            k_s = T.alloc_shared((block_N, D), dtype)
            v_s = T.alloc_shared((block_N, D), dtype)
            o_s = T.alloc_shared((block_M, D), dtype)
            s = T.alloc_fragment((block_M, block_N), "float32")
            p = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, D), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(q[bz, by, bx * block_M : (bx + 1) * block_M, :], q_s)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            steps = T.ceildiv((bx + 1) * block_M, block_N) if causal else T.ceildiv(S, block_N)
            for kb in T.Pipelined(steps, num_stages=stages):
                T.copy(k[bz, by, kb * block_N : (kb + 1) * block_N, :], k_s)
                if causal:
                    for i, j in T.Parallel(block_M, block_N):
                        s[i, j] = T.if_then_else(
                            bx * block_M + i >= kb * block_N + j, 0, -T.infinity("float32")
                        )
                else:
                    T.clear(s)
                T.gemm(q_s, k_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(top, before)
                T.reduce_max(s, top, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    before[i] = T.exp2(before[i] * scale - top[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    s[i, j] = T.exp2(s[i, j] * scale - top[i] * scale)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * before[i] + part[i]
                T.copy(s, p)
                for i, j in T.Parallel(block_M, D):
                    acc[i, j] *= before[i]
                T.copy(v[bz, by, kb * block_N : (kb + 1) * block_N, :], v_s)
                T.gemm(p, v_s, acc, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, D):
                acc[i, j] /= total[i]
            T.copy(acc, o_s)
            T.copy(o_s, o[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main


_PRODUCT = tilelang.jit(out_idx=[-1])(_product)
_OLDER_PRODUCT = tilelang.jit(out_idx=[-1], pass_configs=_OLDER)(_product)


def product(a, b, transposed, config, older=False):
    """C = A B of A row-major and B row-major or transposed; `older` without wgmma and TMA."""
    made = _OLDER_PRODUCT if older else _PRODUCT
    kernel = made(a.shape[0], b.shape[1], a.shape[1], str(a.dtype)[6:], transposed, *config)
    memory = b.t() if transposed else b
    return lambda: kernel(a, memory)


def attention(q, k, v, causal, config):
    kernel = _attention(*q.shape, str(q.dtype)[6:], causal, *config)
    return lambda: kernel(q, k, v)
