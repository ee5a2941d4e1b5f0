"""Attention of one query a sequence over the keys that are kept of it: plain, or in pages.

The context is taken in parts, as many as keep the machine at work, and a second kernel joins them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import ArgumentError, OptionError
from ..kernel import Kernel
from ..kernel.calls.host_arrays import empty_like
from ..targets import resolve
from .alignment import are_aligned
from .binding import Bound, bind, target_of
from .calls import MOST_READY, MemoryView, kernel_for, key_of, maker, traced
from .definition import FLOATS, ArrayArgument, Effort, KernelStep, Operator, OptionArgument, Problem, size_of
from .kernels.decode import decode_join_kernel, decode_kernel, keys_at_a_time
from .near import Exact, near
from .scores import ORDERS

LEAST = float("-inf")
# The most parts of a context, and what a part takes besides its keys, in blocks of keys; what the join takes.
MOST_PARTS, AROUND, JOIN = 64, 3, 4
PART = KernelStep("decode", decode_kernel, ("B", "S"))
JOINED = KernelStep("decode_join", decode_join_kernel, ("B",))


def exact_decode(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    """Of keys in each sequence's own memory."""
    sizes = problem.sizes
    head = xp.arange(sizes["H"]) // (sizes["H"] // sizes["KV"])
    q, k, v = near(xp, a["q"][:, :, None, :]), near(xp, a["k"])[:, head], near(xp, a["v"])[:, head]
    key = xp.arange(sizes["S"])[None, None, None, :]
    seen = key < (a["lengths"][:, None, None, None] if "lengths" in a else sizes["S"])
    scores = q @ k.T * sizes["D"] ** -0.5
    top = xp.amax(xp.where(seen, scores.value, LEAST), -1)[..., None]
    top = xp.where(top == LEAST, 0.0, top)
    weights = (scores - top).where(seen, 0.0).exp().where(seen, 0.0)
    total = weights.sum(-1, keepdims=True)
    nothing = total.value == 0
    total = total.where(~nothing, 1.0)
    o = (weights.narrowed(problem.dtype).where(seen, 0.0) @ v / total).where(~nothing, 0.0)
    return o[:, :, 0].exact()


def decode_effort(problem: Problem) -> Effort:
    """Products, and each key and value once."""
    b, h, kv, s, d = (problem.sizes[dim] for dim in ("B", "H", "KV", "S", "D"))
    return Effort(4.0 * b * h * s * d, 2.0 * b * d * (kv * s + h) * size_of(problem))


_QUERY = ArrayArgument("q", ("B", "H", "D"), FLOATS)
_RESULT = ArrayArgument("o", ("B", "H", "D"))
# Not among `OPERATORS`, each of which is one kernel.
DECODE = Operator(
    "decode",
    decode_kernel,
    (
        _QUERY,
        ArrayArgument("k", ("B", "KV", "S", "D"), orders=ORDERS),
        ArrayArgument("v", ("B", "KV", "S", "D"), orders=ORDERS),
        ArrayArgument("lengths", ("B",), ("int32",), optional=True),
    ),
    _RESULT,
    exact_decode,
    decode_effort,
    divides=(("KV", "H"),),
)
PAGED = Operator(
    "decode_paged",
    decode_kernel,
    (
        _QUERY,
        ArrayArgument("k", ("P", "page", "KV", "D")),
        ArrayArgument("v", ("P", "page", "KV", "D")),
        ArrayArgument("lengths", ("B",), ("int32",)),
        ArrayArgument("table", ("B", "most"), ("int32",)),
    ),
    _RESULT,
    exact_decode,
    decode_effort,
    (OptionArgument("has_lengths", True), OptionArgument("k_order", 0), OptionArgument("v_order", 0)),
    divides=(("KV", "H"),),
)


@lru_cache(4096)
def parts_of(rows: int, blocks: int, slots: int) -> int:
    """How many parts a context of `blocks` blocks of keys is taken in, for `rows` heads of k and v in all
    sequences, where `slots` parts run at a time."""

    def cost(parts: int) -> float:
        waves = -(-rows * parts // slots)
        return waves * (-(-blocks // parts) + AROUND) + (JOIN + parts / 16 if parts > 1 else 0)

    return min(range(1, max(1, min(blocks, MOST_PARTS)) + 1), key=cost)


def _slots(kernel: Kernel, target: str | None) -> int:
    """How many blocks of a kernel run at a time; 1 in the host's memory, where parts are of no use."""
    machine = resolve(target)[1]
    return machine.units * (kernel.resources.blocks_per_sm or 1) if machine.warp > 1 else 1


@dataclass(frozen=True)
class ReadyDecode:
    """A call with everything chosen: the kernel of parts, the one that joins them (None for one part), how
    they see k and v, arrays for parameters that they do not touch, and what makes the result, the parts and
    their logarithms."""

    kernel: Kernel
    join: Kernel | None
    views: tuple[MemoryView, MemoryView]
    lengths: Any
    table: Any
    result: Callable[[Any], Any]
    part: Callable[[Any], Any] | None
    lse: Callable[[Any], Any]

    def __call__(self, q: Any, k: Any, v: Any, lengths: Any = None, table: Any = None) -> Any:
        given = (
            q, self.views[0](k), self.views[1](v), self.lengths if lengths is None else lengths,
            self.table if table is None else table,
        )  # fmt: skip
        o, lse = self.result(q), self.lse(q)
        if self.part is None or self.join is None:
            self.kernel(*given, o.reshape(1, *o.shape), lse)
            return o
        part = self.part(q)
        self.kernel(*given, part, lse)
        self.join(part, lse, o)
        return o


_ready: dict[Any, ReadyDecode] = {}


def _made_ready(bound: Bound, q: Any, longest: int) -> ReadyDecode:
    """The kernels of a problem, in as many parts as keep the machine at work."""
    problem, sizes, target = bound.problem, bound.problem.sizes, target_of(bound.device)
    straight = are_aligned(bound.infos.values())
    page = sizes.get("page", 0)
    options = {"has_lengths": True, "k_order": 0, "v_order": 0, **problem.options, "page": page}
    own = {"S": longest, **{dim: sizes[dim] for dim in ("B", "H", "KV", "D")}}

    def made(step: KernelStep, **more: Any) -> Kernel:
        return kernel_for(step, Problem(own, problem.dtype, {**options, **more}), target, straight)

    kernel = made(PART, alone=False)
    heads = sizes["KV"] * -(-(sizes["H"] // sizes["KV"]) // kernel.parameters["block_H"])
    blocks = -(-longest // keys_at_a_time(page, kernel.parameters["block_N"]))
    parts = parts_of(sizes["B"] * heads, blocks, _slots(kernel, target))
    join = made(JOINED, most=1 << (parts - 1).bit_length()) if parts > 1 else None
    kernel = made(PART, alone=True) if join is None else kernel
    views = [MemoryView(ORDERS[n] if n else None) for n in (options["k_order"], options["v_order"])]
    shape = (sizes["B"], sizes["H"], sizes["D"])
    return ReadyDecode(
        kernel, join, (views[0], views[1]), empty_like(q, (sizes["B"],), "int32"),
        empty_like(q, (sizes["B"], 1), "int32"), maker(q, shape, problem.dtype),
        maker(q, (parts, *shape), "float32") if join is not None else None,
        maker(q, (parts, *shape[:2]), "float32"),
    )  # fmt: skip


def decode(
    q: Any, k: Any, v: Any, lengths: Any = None, table: Any = None, *, longest: int | None = None
) -> Any:
    """softmax(q k^T / sqrt(D)) v of one query a sequence, over the keys kept of it: (B, H, D).

    q: (B, H, D); k and v: (B, KV, S, D), in memory also (B, S, KV, D); all of one dtype of float16, bfloat16
    and float32. H is a multiple of KV, and H / KV heads share one of k and v. `lengths` (B,) of int32 says
    how many keys each sequence has (S without it); what lies behind them is not used. With `table` (B, n) of
    int32, k and v are pages (P, page, KV, D), and key j of sequence b is in page table[b, j // page].
    `longest` is the most keys that a sequence has, where it is known to be less than there is room for: by it
    the context is taken apart. A sequence without keys gives 0. Raises what `attention` raises.
    """
    operator = DECODE if table is None else PAGED
    arrays = (q, k, v, lengths) if table is None else (q, k, v, lengths, table)
    torch: Any = sys.modules.get("torch")
    if torch is not None and DECODE.name in traced and torch.compiler.is_compiling():
        return traced[DECODE.name](q, k, v, lengths, table, longest)
    key = key_of(operator, arrays, {"longest": longest})
    ready = _ready.get(key) if key is not None else None
    if ready is None:
        bound = bind(operator, arrays, {})
        ready = _made_ready(bound, q, _most_keys(bound, longest))
        if key is not None:
            if len(_ready) >= MOST_READY:
                _ready.clear()
            _ready[key] = ready
    return ready(*arrays)


def _most_keys(bound: Bound, longest: int | None) -> int:
    """The keys by which a context is taken apart. Raises for a call without elements, or more than there
    are."""
    sizes = bound.problem.sizes
    if 0 in sizes.values():
        raise ArgumentError(
            "decode of no elements has no value", found=", ".join(f"{d} = {n}" for d, n in sizes.items())
        )
    room = sizes["S"] if "page" not in sizes else sizes["most"] * sizes["page"]
    if longest is not None and not 0 < longest <= room:
        raise OptionError(
            "longest of decode cannot be {n}", n=longest, expected=f"a number of keys from 1 to {room}"
        )
    return longest or room


__all__ = ["DECODE", "PAGED", "decode", "exact_decode", "parts_of"]
