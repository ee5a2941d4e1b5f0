"""A second look at an array: where it lies, when one of its class, dtype and shape has passed every check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..targets.devices import HOST, card

# The address and device of an array that can be used as it is, else None. Asked with the shape that it has to
# have, whether it has to lie on the host, and whether it is written.
Glance = Callable[[Any, Any, bool, bool], "tuple[int, str] | None"]

_TORCH = ("get_device", "is_neg", "is_cpu", "data_ptr")


def _at_torch(tensor: Any, shape: Any, on_host: bool, written: bool) -> tuple[int, str] | None:
    ordinal = -1
    try:
        if (
            tensor.shape == shape
            and tensor.is_contiguous()
            and not tensor.is_neg()
            and not (written and tensor.requires_grad)
            and (tensor.is_cpu if on_host else (ordinal := tensor.get_device()) >= 0)
            and (pointer := tensor.data_ptr())
        ):
            return pointer, HOST if on_host else card(ordinal)
    except RuntimeError:  # a sparse tensor has no contiguity, a nested one no shape to ask for
        pass
    return None


def _at_cupy(array: Any, shape: Any, on_host: bool, written: bool) -> tuple[int, str] | None:
    memory = array.data
    pointer = memory.ptr
    if pointer and array.shape == shape and array.flags.c_contiguous and not on_host:
        return pointer, card(memory.device_id)
    return None


def is_torch(array: Any) -> bool:
    """Whether an array answers what is asked of torch's tensors."""
    return all(hasattr(array, name) for name in _TORCH)


def glance_of(array: Any) -> Glance | None:
    """How arrays of this class are looked at again; None for a library that has to be asked everything."""
    if is_torch(array):
        return _at_torch
    # Asked last: an array of NumPy's raises for its data where a buffer cannot say its dtype.
    if hasattr(array, "__cuda_array_interface__") and hasattr(getattr(array, "data", None), "device_id"):
        return _at_cupy
    return None


__all__ = ["Glance", "glance_of", "is_torch"]
