"""Attention forward: softmax(q k^T / sqrt(D)) v."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import OptionError
from .calls import call, traced
from .definition import FLOATS, ArrayArgument, Effort, Operator, OptionArgument, Part, Problem, size_of
from .kernels.attention import ALL, attention_kernel
from .near import Exact, near

LEAST = float("-inf")
# Under this name `torch_attention` says what attention of tensors is that require a gradient.
WITH_GRADIENT = "attention with gradient"
# (batch, head, sequence, dim) in memory, and (batch, sequence, head, dim).
ORDERS = ((0, 1, 2, 3), (0, 2, 1, 3))


def has_window(problem: Problem) -> bool:
    """Whether a query does not see all keys, or all up to its own place."""
    right = problem.options["right"]
    return problem.options["left"] != ALL or (right != ALL and not problem.options["causal"])


def seen_keys(xp: Any, problem: Problem) -> Any:
    """Which keys each query sees: (SQ, SK), the last query and the last key being at one place."""
    sizes, options = problem.sizes, problem.options
    query = xp.arange(sizes["SQ"])[:, None] + (sizes["SK"] - sizes["SQ"])
    key = xp.arange(sizes["SK"])[None, :]
    left, right = options["left"], 0 if options["causal"] else options["right"]
    seen = (key >= 0) & (query == query)
    seen = seen & (key >= query - left) if left != ALL else seen
    return seen & (key <= query + right) if right != ALL else seen


def exact_attention(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
    sizes = problem.sizes
    head = xp.arange(sizes["H"]) // (sizes["H"] // sizes["KV"])
    q, k, v = near(xp, a["q"]), near(xp, a["k"])[:, head], near(xp, a["v"])[:, head]
    scores = q @ k.T * sizes["D"] ** -0.5
    seen = seen_keys(xp, problem)
    top = xp.amax(xp.where(seen, scores.value, LEAST), -1)[..., None]
    top = xp.where(top == LEAST, 0.0, top)
    weights = (scores - top).where(seen, 0.0).exp().where(seen, 0.0)
    total = weights.sum(-1, keepdims=True)
    nothing = total.value == 0
    total = total.where(~nothing, 1.0)
    return (weights.narrowed(problem.dtype).where(seen, 0.0) @ v / total).where(~nothing, 0.0).exact()


def attention_effort(problem: Problem) -> Effort:
    """Products of the keys that are seen; q, k, v and the result once."""
    b, h, kv, sq, sk, d = (problem.sizes[dim] for dim in ("B", "H", "KV", "SQ", "SK", "D"))
    left, right = problem.options["left"], 0 if problem.options["causal"] else problem.options["right"]
    query = np.arange(sq) + (sk - sq)
    first = np.maximum(query - left, 0) if left != ALL else 0
    last = np.minimum(query + right, sk - 1) if right != ALL else sk - 1
    pairs = float(np.maximum(last - first + 1 + 0 * query, 0).sum())
    return Effort(4 * b * h * d * pairs, 2 * b * d * (h * sq + kv * sk) * size_of(problem))


def heads_apart(problem: Problem) -> Iterable[Part]:
    """One part for each head of k: the scores of all heads are larger than a card's memory in float64."""
    sizes = problem.sizes
    group = sizes["H"] // sizes["KV"]
    one = Problem({**sizes, "B": 1, "H": group, "KV": 1}, problem.dtype, problem.options)
    for batch in range(sizes["B"]):
        for head in range(sizes["KV"]):
            b, own = slice(batch, batch + 1), slice(head, head + 1)
            many = slice(head * group, (head + 1) * group)
            yield (b, many), {"q": (b, many), "k": (b, own), "v": (b, own)}, one


SEEN = (
    OptionArgument("causal", False),
    OptionArgument("left", ALL, least=ALL),
    OptionArgument("right", ALL, least=ALL),
)
ATTENTION = Operator(
    "attention",
    attention_kernel,
    (
        ArrayArgument("q", ("B", "H", "SQ", "D"), FLOATS, orders=ORDERS),
        ArrayArgument("k", ("B", "KV", "SK", "D"), orders=ORDERS),
        ArrayArgument("v", ("B", "KV", "SK", "D"), orders=ORDERS),
    ),
    ArrayArgument("o", ("B", "H", "SQ", "D"), orders=ORDERS),
    exact_attention,
    attention_effort,
    (
        OptionArgument("causal", False),
        OptionArgument("left", ALL, least=ALL),
        OptionArgument("right", ALL, least=ALL),
    ),
    symbolic=("B",),
    parts=heads_apart,
    divides=(("KV", "H"),),
)


def sides_of(window: Any) -> dict[str, Any]:
    """A window as the options of an operator. Raises `OptionError` for what is no pair."""
    try:
        left, right = window
    except (TypeError, ValueError):
        raise OptionError(
            "window of attention cannot be {window!r}", window=window,
            expected="(left, right): how many keys a query sees before its own and behind it, -1 for all",
        ) from None  # fmt: skip
    return {"left": left, "right": right}


def attention(
    q: Any, k: Any, v: Any, causal: bool = False, window: tuple[int, int] = (ALL, ALL), *, out: Any = None
) -> Any:
    """softmax(q k^T / sqrt(D)) v: (B, H, SQ, D).

    q: (B, H, SQ, D), k and v: (B, KV, SK, D), all of one dtype of float16, bfloat16 and float32; H is a
    multiple of KV, and H / KV heads of q share one of k and v. Each may lie in memory as (B, H, S, D) or,
    as a transposed view, as (B, S, H, D); the result lies as q does. Query i is at the place p = i + SK -
    SQ, the last query and the last key being at one place. It sees the keys from p - left to p + right of
    `window`, all on a side of -1 (as `window_size` of FlashAttention); `causal` is a right side of 0.
    Keys that no query of a block sees are not read. A query that sees none gives 0. Scores and sums are
    float32, weights are rounded to the dtype before they meet v. Tensors of torch that require a gradient
    get one (once: not one of the gradient itself).
    """
    sides = sides_of(window)
    torch: Any = sys.modules.get("torch")
    if torch is not None and out is None and isinstance(q, torch.Tensor):
        asked = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
        if asked and WITH_GRADIENT not in traced:
            importlib.import_module(".torch_ops", __package__)
        if WITH_GRADIENT in traced and (asked or torch.compiler.is_compiling()):
            return traced[WITH_GRADIENT](q, k, v, causal, **sides)
    return call(ATTENTION, q, k, v, out=out, causal=causal, **sides)
