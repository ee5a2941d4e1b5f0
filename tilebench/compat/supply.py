"""`tilelang.utils.tensor`: makers of random tensors, and a comparison that forgives a share of elements."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from ..kernel.calls.host_arrays import as_torch
from ..kernel.measuring.profiler import TensorSupplyType, compare
from ..targets.devices import CARD


def get_tensor_supply(supply_type: Any = TensorSupplyType.Auto) -> Callable[[Any], Any]:
    """A function from anything with `shape` and `dtype`, a kernel's parameter say, to a random tensor."""
    kind = TensorSupplyType(supply_type.value)
    seeds = count()

    def supply(param: Any) -> Any:
        shape = tuple(int(extent) for extent in param.shape)
        return as_torch(kind.array(shape, str(param.dtype).removeprefix("torch."), next(seeds)), CARD)

    return supply


def torch_assert_close(
    tensor_a: Any, tensor_b: Any, rtol: float = 1e-2, atol: float = 1e-3, max_mismatched_ratio: float = 0.001,
    **_: Any,
) -> bool:  # fmt: skip
    """Raise `AssertionError` where more than a share of the elements differ; warn where some do."""
    compare("the first tensor", tensor_a, tensor_b, atol, rtol, max_mismatched_ratio)
    return True


__all__ = ["TensorSupplyType", "get_tensor_supply", "torch_assert_close"]
