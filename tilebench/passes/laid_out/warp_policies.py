"""How the warps of a block share products out: one policy for those that follow from each other.

Where one product's sum becomes an operand of the next (attention: P = softmax(Q K), O += P V), warps that
have whole rows of both hand it on in their registers. Otherwise each product is split as is cheapest for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...language.gemm import Gemm
from ..analysis.thread_groups import Threads
from ..context import Context
from .choose_instructions import row_of

NAME = "infer_layouts"
SQUARE, ROWS = "square", "full_row"


def warp_policies(gemms: Sequence[Gemm], threads: Mapping[int, Threads], context: Context) -> dict[int, str]:
    """The policy of each product, by its identity: the kernel's own, or that of the chain it is in."""
    policies: dict[int, str] = {}
    for first in gemms:
        policies[id(first)] = first.policy or SQUARE
        partners = [
            other
            for other in gemms
            if threads[id(other)] == threads[id(first)] and (_feeds(first, other) or _feeds(other, first))
        ]
        if first.policy is None and partners:
            given = [other.policy for other in partners if other.policy is not None]
            if given or all(_has_rows(each, threads, context) for each in (first, *partners)):
                chosen = policies[id(first)] = given[0] if given else ROWS
                what = f"products that follow from each other share warps by {chosen}"
                context.remark(NAME, "applied", what, first)
    return policies


def _feeds(first: Gemm, second: Gemm) -> bool:
    """Whether the second may take what becomes of the first one's sum: a fragment of the same extents."""
    return first is not second and second.a.buffer.scope == "fragment" and first.mnk[:2] == (
        second.mnk[0], second.mnk[2],
    )  # fmt: skip


def _has_rows(gemm: Gemm, threads: Mapping[int, Threads], context: Context) -> bool:
    """Whether each warp gets rows of its own."""
    row = row_of(gemm, context.machine)
    groups = threads[id(gemm)].count // max(row.group, 1)
    return row.operand("c").fragment is not None and gemm.mnk[0] >= groups * row.shape[0]
