"""All operators, and the steps of operations of several kernels, by name."""

from __future__ import annotations

from ..errors import OptionError, nearest
from .batched import BATCHED_MATMUL, GROUPED_MATMUL
from .decoding import JOINED, PART
from .definition import KernelStep, Operator
from .elementwise import ADD, BIAS_GELU, TRANSPOSE
from .products import GEMV, MATMUL
from .rows import LAYER_NORM, RMS_NORM, SOFTMAX
from .scaled import INT_MATMUL, SCALED_MATMUL
from .scores import ATTENTION
from .sums import COLUMN_REDUCE, ROW_REDUCE
from .training import AFTER, BACKWARD, BEFORE, SAVING

OPERATORS: dict[str, Operator] = {
    each.name: each
    for each in (
        ADD, BIAS_GELU, SOFTMAX, RMS_NORM, LAYER_NORM, ROW_REDUCE, COLUMN_REDUCE, TRANSPOSE, GEMV, MATMUL,
        SCALED_MATMUL, INT_MATMUL, BATCHED_MATMUL, GROUPED_MATMUL, ATTENTION,
    )
}  # fmt: skip
# The kernels of operations that take several in turn.
STEPS: dict[str, KernelStep] = {step.name: step for step in (SAVING, BEFORE, BACKWARD, AFTER, PART, JOINED)}


def operator(name: str) -> Operator:
    """The operator of a name. Raises `OptionError` with the nearest where there is none."""
    if name in OPERATORS:
        return OPERATORS[name]
    close = nearest(name, list(OPERATORS), limit=1)
    raise OptionError(
        "the library has no operator {name}", name=name,
        hint=(f"did you mean {close[0]}? " if close else "") + "operators: " + ", ".join(OPERATORS),
    )  # fmt: skip


__all__ = ["OPERATORS", "STEPS", "operator"]
