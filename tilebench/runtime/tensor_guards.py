"""torch's own look at tensors, where it has one: class, keys, dtype, card, sizes and strides in one call.

It is what torch.compile asks before it takes code that it has compiled. It is no public name, so it is taken
only after it has told tensors apart that differ in each of these, on tensors made here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

# Whether tensors are as those that it was made of, in all but their addresses.
Guard = Callable[..., bool]


def guard_of(tensors: Sequence[Any]) -> Guard | None:
    """The look for tensors like these; None where torch has none that can be relied on."""
    make = _maker()
    if make is None:
        return None
    try:
        return make(tensors)
    except (TypeError, RuntimeError):
        return None


@cache
def _maker() -> Callable[[Sequence[Any]], Guard] | None:
    torch: Any = sys.modules.get("torch")
    try:
        guards: Any = torch._C._dynamo.guards.TensorGuards

        def make(tensors: Sequence[Any]) -> Guard:
            return guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check

        return make if _tells_apart(torch, make) else None
    except (AttributeError, TypeError, RuntimeError):
        return None


def _tells_apart(torch: Any, make: Callable[[Sequence[Any]], Guard]) -> bool:
    plain = torch.zeros(4, 6)
    check = make([plain, plain])
    others = [
        torch.zeros(4, 6, dtype=torch.float64),
        torch.zeros(6, 4),
        torch.zeros(6, 4).T,
        torch.zeros(4, 12)[:, ::2],
        torch.zeros(24),
        torch._neg_view(plain),
        torch.zeros(4, 6, requires_grad=True),
        torch.zeros(4, 6, device="meta"),
        torch.zeros(4, 6).to_sparse(),
        torch.nn.Parameter(plain, requires_grad=False),
    ]
    same = check(torch.ones(4, 6), torch.ones(4, 6))
    return bool(same) and not any(check(plain, other) or check(other, plain) for other in others)


__all__ = ["Guard", "guard_of"]
