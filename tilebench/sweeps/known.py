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
    "triton": "a kernel in Triton for products, softmax, norms, sums and products of elements, on a card",
}


Call = Callable[[Any, Sequence[Any]], Any]


@dataclass(frozen=True)
class Formula:
    """`numpy` and `torch` compute it from that module and the inputs; `product` says that cuBLAS has it.

    `triton` computes it from the module `triton_kernels`; None where that has no kernel for it.
    """

    name: str
    inputs: int
    numpy: Call
    torch: Call
    product: bool = False
    triton: Call | None = None


# What norms add to a mean square: others take 1e-6, and a result of usual numbers does not show it.
EPSILON = 1e-5


def _softmax(np: Any, x: Sequence[Any]) -> Any:
    e = np.exp(x[0] - x[0].max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _rms_norm(np: Any, x: Sequence[Any]) -> Any:
    scaled = x[0] / np.sqrt((x[0] * x[0]).mean(-1, keepdims=True) + EPSILON)
    return scaled * x[1] if len(x) > 1 else scaled


def _layer_norm(np: Any, x: Sequence[Any]) -> Any:
    scaled = _rms_norm(np, [x[0] - x[0].mean(-1, keepdims=True), *x[1:2]])
    return scaled + x[2] if len(x) > 2 else scaled


def _torch_rms_norm(torch: Any, x: Sequence[Any]) -> Any:
    return torch.nn.functional.rms_norm(x[0], x[0].shape[-1:], *x[1:], eps=EPSILON)


def _torch_layer_norm(torch: Any, x: Sequence[Any]) -> Any:
    return torch.nn.functional.layer_norm(x[0], x[0].shape[-1:], *x[1:], eps=EPSILON)


FORMULAS = (
    Formula(
        "A @ B", 2, lambda np, x: x[0] @ x[1], lambda torch, x: torch.matmul(x[0], x[1]), True,
        lambda kernels, x: kernels.product(x[0], x[1]),
    ),
    Formula(
        "A @ B.T", 2, lambda np, x: x[0] @ x[1].T, lambda torch, x: torch.matmul(x[0], x[1].mT), True,
        lambda kernels, x: kernels.product(x[0], x[1].mT),
    ),
    Formula(
        "A.T @ B", 2, lambda np, x: x[0].T @ x[1], lambda torch, x: torch.matmul(x[0].mT, x[1]), True,
        lambda kernels, x: kernels.product(x[0].mT, x[1]),
    ),
    Formula(
        "A + B", 2, lambda np, x: x[0] + x[1], lambda torch, x: x[0] + x[1],
        triton=lambda kernels, x: kernels.add(x[0], x[1]),
    ),
    Formula(
        "A * B", 2, lambda np, x: x[0] * x[1], lambda torch, x: x[0] * x[1],
        triton=lambda kernels, x: kernels.multiply(x[0], x[1]),
    ),
    Formula(
        "softmax(A)", 1, _softmax, lambda torch, x: torch.softmax(x[0], -1),
        triton=lambda kernels, x: kernels.softmax(x[0]),
    ),
    *(
        Formula(f"rms_norm({', '.join('AB'[:n])})", n, _rms_norm, _torch_rms_norm,
                triton=lambda kernels, x: kernels.rms_norm(*x, eps=EPSILON))
        for n in (1, 2)
    ),
    *(
        Formula(f"layer_norm({', '.join('ABC'[:n])})", n, _layer_norm, _torch_layer_norm,
                triton=lambda kernels, x: kernels.layer_norm(*x, eps=EPSILON))
        for n in (1, 2, 3)
    ),
    Formula("sum(A)", 1, lambda np, x: x[0].sum(-1), lambda torch, x: torch.sum(x[0], -1)),
    Formula("max(A)", 1, lambda np, x: x[0].max(-1), lambda torch, x: torch.amax(x[0], -1)),
    Formula("relu(A)", 1, lambda np, x: np.maximum(x[0], 0), lambda torch, x: torch.relu(x[0])),
    Formula("exp(A)", 1, lambda np, x: np.exp(x[0]), lambda torch, x: torch.exp(x[0])),
    Formula("A.T", 1, lambda np, x: np.ascontiguousarray(x[0].T), lambda torch, x: x[0].mT.contiguous()),
    Formula("2 * A", 1, lambda np, x: x[0] * 2, lambda torch, x: x[0] * 2),
    Formula("A", 1, lambda np, x: x[0].copy(), lambda torch, x: x[0].clone()),
)  # fmt: skip
