"""Arrays of several libraries, as NumPy's: copies of them, and empty ones like them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..ir.dtypes import dtype_of
from ..targets.devices import CARD, HOST


def empty_like(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """An uninitialised array of the same library and device as `like` (NumPy when there is none)."""
    root = type(like).__module__.partition(".")[0]
    if root == "torch":
        torch: Any = importlib.import_module("torch")
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)
    if root == "cupy":
        cupy: Any = importlib.import_module("cupy")
        return cupy.empty(shape, dtype=dtype)
    return np.empty(shape, dtype_of(dtype).numpy)


def on_host(array: Any) -> bool:
    """Whether a torch tensor (or anything with a `device`) lies in host memory."""
    is_cpu = getattr(array, "is_cpu", None)  # of a torch tensor: its device as text takes 1 us
    return str(getattr(array, "device", CARD)) == HOST if is_cpu is None else bool(is_cpu)


def host_copy(array: Any) -> np.ndarray[Any, Any]:
    """A NumPy copy of a NumPy array, torch tensor or CuPy array; bfloat16 stays bfloat16."""
    if isinstance(array, np.ndarray):
        return array.copy()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    root = type(array).__module__.partition(".")[0]
    if root == "torch":
        host = array.detach().cpu().contiguous()
        name = str(host.dtype).removeprefix("torch.")
        dtype = dtype_of(name).numpy
        return host.view(_bits(host, dtype.itemsize)).numpy().view(dtype).copy()
    return np.array(array.get() if hasattr(array, "get") else array)


def _bits(tensor: Any, size: int) -> Any:
    """torch's integer type of the same size: NumPy has no bfloat16 of torch's."""
    torch: Any = importlib.import_module("torch")
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
