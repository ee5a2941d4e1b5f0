"""Triton kernels of well-known formulas, for `against triton`. Imported where Triton is.

Each is what a user of Triton would write first for it: a product in tiles, in an order that keeps operands in
the cache, with a few configurations that Triton itself tries; a row to a program; elements in blocks.
"""

import torch
import triton
import triton.language as tl

from ..errors import TargetError

# Elements of a row that one program holds.
MOST_ROW = 65536
GROUP = 8
_BLOCKS = ((128, 256, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 32, 4, 4), (64, 64, 32, 4, 4))
_CONFIGS = [
    triton.Config({"block_m": m, "block_n": n, "block_k": k}, num_warps=warps, num_stages=stages)
    for m, n, k, warps, stages in _BLOCKS
]


@triton.jit
def _product(
    a, b, c, M, N, K, a_row, a_column, b_row, b_column, precision: tl.constexpr, group: tl.constexpr,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr,
):  # fmt: skip
    down, across = tl.cdiv(M, block_m), tl.cdiv(N, block_n)
    tile = tl.program_id(0)
    start = tile // (group * across) * group
    height = min(down - start, group)
    rows = (start + tile % (group * across) % height) * block_m + tl.arange(0, block_m)
    columns = tile % (group * across) // height * block_n + tl.arange(0, block_n)
    total = tl.zeros((block_m, block_n), dtype=tl.float32)
    for first in range(0, K, block_k):
        k = first + tl.arange(0, block_k)
        left_in = (rows[:, None] < M) & (k[None, :] < K)
        right_in = (k[:, None] < K) & (columns[None, :] < N)
        left = tl.load(a + rows[:, None] * a_row + k[None, :] * a_column, mask=left_in, other=0.0)
        right = tl.load(b + k[:, None] * b_row + columns[None, :] * b_column, mask=right_in, other=0.0)
        total = tl.dot(left, right, total, input_precision=precision)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


_tuned_product = triton.autotune(configs=_CONFIGS, key=["M", "N", "K", "a_row", "b_row"])(_product)


@triton.jit
def _elements(a, b, c, count, again, times: tl.constexpr, repeats: tl.constexpr, block: tl.constexpr):
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < count
    left = tl.load(a + place, mask=inside)
    right = tl.load(b + (place % again if repeats else place), mask=inside)
    tl.store(c + place, left * right if times else left + right, mask=inside)


@triton.jit
def _softmax(x, y, N, block: tl.constexpr):
    place = tl.arange(0, block)
    row = tl.program_id(0).to(tl.int64) * N
    values = tl.load(x + row + place, mask=place < N, other=float("-inf")).to(tl.float32)
    raised = tl.exp(values - tl.max(values, 0))
    tl.store(y + row + place, (raised / tl.sum(raised, 0)).to(y.dtype.element_ty), mask=place < N)


@triton.jit
def _norm(
    x, w, b, y, N, eps, centred: tl.constexpr, weighted: tl.constexpr, biased: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    place = tl.arange(0, block)
    row = tl.program_id(0).to(tl.int64) * N
    values = tl.load(x + row + place, mask=place < N, other=0.0).to(tl.float32)
    if centred:
        values = tl.where(place < N, values - tl.sum(values, 0) / N, 0.0)
    values *= tl.rsqrt(tl.sum(values * values, 0) / N + eps)
    if weighted:
        values *= tl.load(w + place, mask=place < N, other=0.0).to(tl.float32)
    if biased:
        values += tl.load(b + place, mask=place < N, other=0.0).to(tl.float32)
    tl.store(y + row + place, values.to(y.dtype.element_ty), mask=place < N)


def product(a, b):
    """A product of two matrices in any order of their elements; float32 is not rounded to fewer bits."""
    if not a.dtype.is_floating_point:
        raise TargetError("the Triton kernel of a product is for floats", found="{dtype}", dtype=a.dtype)
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, device=a.device, dtype=a.dtype)
    precision = "ieee" if a.dtype == torch.float32 else "tf32"
    args = (a, b, c, m, n, k, *a.stride(), *b.stride(), precision, GROUP)

    def grid(meta):
        return (triton.cdiv(m, meta["block_m"]) * triton.cdiv(n, meta["block_n"]),)

    _tuned_product[grid](*args)
    return c


def add(a, b):
    """a + b, where b has the shape of a or of its last dimensions."""
    return _elementwise(a, b, times=False)


def multiply(a, b):
    """a * b, where b has the shape of a or of its last dimensions."""
    return _elementwise(a, b, times=True)


def softmax(x):
    """Softmax of each row."""
    y = torch.empty_like(x)
    block, warps = _row_block(x)
    _softmax[(x.numel() // x.shape[-1],)](x, y, x.shape[-1], block, num_warps=warps)
    return y


def rms_norm(x, w=None, eps=1e-5):
    """Each row over the root of its mean square, times a weight where there is one."""
    return _normed(x, w, None, eps, centred=False)


def layer_norm(x, w=None, b=None, eps=1e-5):
    """Each row less its mean over its deviation, times a weight plus a bias where there are any."""
    return _normed(x, w, b, eps, centred=True)


def _elementwise(a, b, times):
    if b.dim() > a.dim() or a.shape[a.dim() - b.dim() :] != b.shape:
        raise TargetError(
            "the Triton kernel takes a second array of the first one's shape, or of its last dimensions",
            found=f"{tuple(a.shape)} and {tuple(b.shape)}",
        )
    c = torch.empty_like(a)
    count, again = a.numel(), b.numel()
    _elements[(triton.cdiv(count, 1024),)](a, b, c, count, again, times, again != count, 1024)
    return c


def _normed(x, w, b, eps, centred):
    y = torch.empty_like(x)
    block, warps = _row_block(x)
    _norm[(x.numel() // x.shape[-1],)](
        x, x if w is None else w, x if b is None else b, y, x.shape[-1], eps, centred, w is not None,
        b is not None, block, num_warps=warps,
    )  # fmt: skip
    return y


def _row_block(x):
    """Elements of a block that holds a row, and warps for it."""
    if x.shape[-1] > MOST_ROW:
        raise TargetError(
            "the Triton kernel holds a row in one program", found=f"rows of {x.shape[-1]}",
            expected=f"at most {MOST_ROW} elements",
        )  # fmt: skip
    block = triton.next_power_of_2(x.shape[-1])
    return block, 4 if block <= 2048 else 8 if block <= 8192 else 16
