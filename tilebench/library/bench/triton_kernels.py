"""The kernels of the peer Triton. Imported where Triton is."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

GROUP = 8


@triton.jit
def _product(
    a, b, c, M, N, K, block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr,
    group: tl.constexpr, workers: tl.constexpr, specialized: tl.constexpr, transposed: tl.constexpr,
):  # fmt: skip
    down, across = tl.cdiv(M, block_m), tl.cdiv(N, block_n)
    for tile in tl.range(tl.program_id(0), down * across, workers, warp_specialize=specialized):
        start = tile // (group * across) * group
        height = min(down - start, group)
        row = (start + tile % (group * across) % height) * block_m
        column = tile % (group * across) // height * block_n
        total = tl.zeros((block_m, block_n), dtype=tl.float32)
        for step in range(tl.cdiv(K, block_k)):
            left = a.load([row, step * block_k])
            if transposed:
                right = b.load([column, step * block_k]).T
            else:
                right = b.load([step * block_k, column])
            total = tl.dot(left, right, total)
        c.store([row, column], total.to(c.dtype))


@triton.jit
def _gemv(w, x, y, M, K, block_m: tl.constexpr, block_k: tl.constexpr):
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    total = tl.zeros((block_m, block_k), dtype=tl.float32)
    for start in range(0, K, block_k):
        k = start + tl.arange(0, block_k)
        inside = (rows[:, None] < M) & (k[None, :] < K)
        part = tl.load(w + rows[:, None] * K + k[None, :], mask=inside, other=0.0).to(tl.float32)
        total += part * tl.load(x + k, mask=k < K, other=0.0).to(tl.float32)[None, :]
    tl.store(y + rows, tl.sum(total, 1).to(y.type.element_ty), mask=rows < M)


@triton.jit
def _transpose(x, y, M, N, block_m: tl.constexpr, block_n: tl.constexpr):
    m = tl.program_id(0) * block_m + tl.arange(0, block_m)
    n = tl.program_id(1) * block_n + tl.arange(0, block_n)
    tile = tl.load(x + m[:, None] * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N))
    tl.store(y + n[:, None] * M + m[None, :], tl.trans(tile), mask=(n[:, None] < N) & (m[None, :] < M))


def product(a, b, orders, config):
    """C = A B, of A row-major and B row-major or transposed."""
    block_m, block_n, block_k, warps, stages, specialized = config
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, device=a.device, dtype=a.dtype)
    transposed = orders == "nt"
    memory = b.t() if transposed else b
    describe = TensorDescriptor.from_tensor
    operands = (
        describe(a, [block_m, block_k]),
        describe(memory, [block_n, block_k] if transposed else [block_k, block_n]),
        describe(c, [block_m, block_n]),
    )
    workers = torch.cuda.get_device_properties(a.device).multi_processor_count
    grid = (min(workers, triton.cdiv(m, block_m) * triton.cdiv(n, block_n)),)

    def run():
        _product[grid](
            *operands, m, n, k, block_m, block_n, block_k, GROUP, workers, specialized, transposed,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return c

    return run


def gemv(w, x, config):
    block_m, block_k, warps = config
    y = torch.empty(w.shape[0], device=w.device, dtype=w.dtype)

    def run():
        _gemv[(triton.cdiv(w.shape[0], block_m),)](w, x, y, *w.shape, block_m, block_k, num_warps=warps)
        return y

    return run


def transpose(x, config):
    block_m, block_n, warps = config
    m, n = x.shape
    y = torch.empty(n, m, device=x.device, dtype=x.dtype)

    def run():
        grid = (triton.cdiv(m, block_m), triton.cdiv(n, block_n))
        _transpose[grid](x, y, m, n, block_m, block_n, num_warps=warps)
        return y

    return run
