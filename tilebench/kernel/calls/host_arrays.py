"""Arrays of several libraries: copies of them as NumPy's, empty ones like them, and results handed back."""

from __future__ import annotations

import ctypes
import importlib
import sys
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...ir.dtypes import dtype_of
from ...runtime.describe import JAX, ArrayInfo, describe, is_gone, is_traced, library
from ...targets.devices import CARD, HOST

# NumPy's integers, which torch takes, by their bytes.
_PLAIN = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}


def empty_for(device: str | None, shape: tuple[int, ...], dtype: str) -> Any:
    """An uninitialised array for a call that brings none along.

    A program that has imported torch gets a tensor, in the memory of the target where there is such, on
    torch's current card; another one an array of NumPy.
    """
    torch: Any = sys.modules.get("torch")
    kind = getattr(torch, dtype, None)
    if kind is None:
        return np.empty(shape, dtype_of(dtype).numpy)
    on_card = device == CARD and torch.cuda.is_available()
    return torch.empty(shape, dtype=kind, device=CARD if on_card else HOST)


def empty_like(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """An uninitialised array of the same library and device as `like`, NumPy's for those of others.

    JAX's never change: what a call makes for one is NumPy's, and `handed_back` makes it JAX's. Raises
    `ArgumentError` where it could not.
    """
    root = library(like)
    if root == "torch":
        torch: Any = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)
    if root == "cupy":
        cupy: Any = importlib.import_module("cupy")
        with like.device:
            return cupy.empty(shape, dtype=dtype_of(dtype).numpy)
    # What is not there is refused by its name, as every parameter's array.
    if root in JAX and not is_traced(like) and not is_gone(like):
        _refuse_for_jax(like, dtype)
    return np.empty(shape, dtype_of(dtype).numpy)


def _refuse_for_jax(like: Any, dtype: str) -> None:
    """Raise `ArgumentError` for a result that JAX has no array for."""
    jax: Any = importlib.import_module("jax")
    if not on_host(like):
        raise ArgumentError(
            "a call of JAX's arrays on a card cannot return any", found="an array on {there}",
            there=str(like.device), expected="an output that the call brings along",
            hint="pass cupy.from_dlpack(x) or torch.from_dlpack(x): what the call returns is theirs then",
        )  # fmt: skip
    kept = str(jax.dtypes.canonicalize_dtype(dtype_of(dtype).numpy))
    if kept != dtype:
        raise ArgumentError(
            "a result of {dtype} would be {kept} in JAX", dtype=dtype, kept=kept,
            hint='jax.config.update("jax_enable_x64", True) keeps it; or pass arrays of NumPy',
        )  # fmt: skip


def handed_back(like: Any, results: list[Any]) -> list[Any]:
    """What a call returns: JAX's arrays to who passed JAX's, the others as they were made."""
    if library(like) not in JAX:
        return results
    jax: Any = importlib.import_module("jax")
    return [jax.numpy.asarray(result) for result in results]


def on_host(array: Any) -> bool:
    """Whether a torch tensor (or anything with a `device`) lies in host memory."""
    is_cpu = getattr(array, "is_cpu", None)  # of a torch tensor: its device as text takes 1 us
    # JAX numbers its processors: cpu:0.
    return str(getattr(array, "device", CARD)).startswith(HOST) if is_cpu is None else bool(is_cpu)


def host_copy(array: Any) -> np.ndarray[Any, Any]:
    """A NumPy copy of a NumPy array, torch tensor or CuPy array; bfloat16 stays bfloat16."""
    if isinstance(array, np.ndarray):
        # Without the subclass: a row of a matrix would stay a matrix in the reference.
        return np.asarray(array).copy()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
    root = library(array)
    if root == "torch":
        host = array.detach().cpu().contiguous()
        name = str(host.dtype).removeprefix("torch.")
        dtype = dtype_of(name).numpy
        return host.view(_bits(host, dtype.itemsize)).numpy().view(dtype).copy()
    if hasattr(array, "get"):
        return np.array(array.get())
    return _from_memory(describe(array))


def _from_memory(info: ArrayInfo) -> np.ndarray[Any, Any]:
    """A copy of an array of host memory, whatever library it is of."""
    if info.device != HOST:
        raise ArgumentError(
            "an array on {device} cannot be copied to the host from here", device=info.device,
            found="{kind}", kind=type(info.owner).__name__, hint="copy it to NumPy by its own library",
        )  # fmt: skip
    size = info.dtype.numpy.itemsize
    reach = (
        1 + sum((n - 1) * s for n, s in zip(info.shape, info.strides, strict=True))
        if 0 not in info.shape
        else 0
    )
    memory: Any = (ctypes.c_char * (reach * size)).from_address(info.pointer)
    strides = [stride * size for stride in info.strides]
    return np.ndarray(info.shape, info.dtype.numpy, memory, strides=strides).copy()


def as_torch(array: np.ndarray[Any, Any], device: str | None) -> Any:
    """A NumPy array as torch's tensor, in the memory of the target, where the program has imported torch."""
    torch: Any = sys.modules.get("torch")
    name = dtype_of(array.dtype).name
    kind = getattr(torch, name, None)
    if kind is None:
        return array
    bits = np.ascontiguousarray(array).view(_PLAIN[array.dtype.itemsize])
    tensor = torch.from_numpy(bits.reshape(array.shape)).view(kind)
    return tensor.cuda() if device == CARD and torch.cuda.is_available() else tensor


def _bits(tensor: Any, size: int) -> Any:
    """torch's integer type of the same size: NumPy has no bfloat16 of torch's."""
    torch: Any = importlib.import_module("torch")
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
