"""What a kernel computes, found by its result: formulas that libraries have under a name.

A formula is taken for a kernel's only when its result on the kernel's own arrays is the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# Words of `against`, with what they call.
WORDS = {
    "numpy": "NumPy's own function, in float32 where the arrays are narrower",
    "torch": "torch's own function, as its users call it",
    "torch.compile": "the same through torch.compile",
    "cublas": "a product by torch.matmul on a card, which calls cuBLAS",
}


Call = Callable[[Any, Sequence[Any]], Any]


@dataclass(frozen=True)
class Formula:
    """`numpy` and `torch` compute it from that module and the inputs; `product` says that cuBLAS has it."""

    name: str
    inputs: int
    numpy: Call
    torch: Call
    product: bool = False


def _softmax(np: Any, x: Sequence[Any]) -> Any:
    e = np.exp(x[0] - x[0].max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


FORMULAS = (
    Formula("A @ B", 2, lambda np, x: x[0] @ x[1], lambda torch, x: torch.matmul(x[0], x[1]), True),
    Formula("A @ B.T", 2, lambda np, x: x[0] @ x[1].T, lambda torch, x: torch.matmul(x[0], x[1].mT), True),
    Formula("A.T @ B", 2, lambda np, x: x[0].T @ x[1], lambda torch, x: torch.matmul(x[0].mT, x[1]), True),
    Formula("A + B", 2, lambda np, x: x[0] + x[1], lambda torch, x: x[0] + x[1]),
    Formula("A * B", 2, lambda np, x: x[0] * x[1], lambda torch, x: x[0] * x[1]),
    Formula("softmax(A)", 1, _softmax, lambda torch, x: torch.softmax(x[0], -1)),
    Formula("sum(A)", 1, lambda np, x: x[0].sum(-1), lambda torch, x: torch.sum(x[0], -1)),
    Formula("max(A)", 1, lambda np, x: x[0].max(-1), lambda torch, x: torch.amax(x[0], -1)),
    Formula("relu(A)", 1, lambda np, x: np.maximum(x[0], 0), lambda torch, x: torch.relu(x[0])),
    Formula("exp(A)", 1, lambda np, x: np.exp(x[0]), lambda torch, x: torch.exp(x[0])),
    Formula("A.T", 1, lambda np, x: np.ascontiguousarray(x[0].T), lambda torch, x: x[0].mT.contiguous()),
    Formula("2 * A", 1, lambda np, x: x[0] * 2, lambda torch, x: x[0] * 2),
    Formula("A", 1, lambda np, x: x[0].copy(), lambda torch, x: x[0].clone()),
)
