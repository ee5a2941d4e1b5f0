"""Where a user's device array lies: torch and CuPy by their attributes, others by the two protocols.

Four `__dlpack__` calls cost 9 us, four tensors' pointer, shape, stride and dtype 2 us, so the
direct attributes come first.
"""

from __future__ import annotations

import ctypes
import importlib
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ...errors import ArgumentError

_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_DLPACK_KINDS = {
    0: "int",
    1: "uint",
    2: "float",
    4: "bfloat",
    6: "bool",
    10: "float8_e4m3fn",
    12: "float8_e5m2",
}


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """A view of device memory. `strides` count elements, `dtype` is a name such as "float16".

    `keep` holds what must live as long as the pointer is used.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int
    keep: Any = field(default=None, compare=False, repr=False)


def packed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a C-contiguous array of that shape."""
    out, step = list[int](), 1
    for extent in reversed(shape):
        out.append(step)
        step *= max(extent, 1)
    return tuple(reversed(out))


def device_pointer(array: Any) -> DeviceArray:
    """The device memory behind a torch tensor, a CuPy array, or anything with
    `__cuda_array_interface__` or DLPack.

    Raises `ArgumentError` for host arrays and for what none of these describes.
    """
    root = type(array).__module__.partition(".")[0]
    if root == "torch" or hasattr(array, "data_ptr"):
        return _from_torch(array)
    if root == "cupy":
        return _from_cupy(array)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(array, interface)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array)
    raise ArgumentError(
        "a {kind} is no array on a CUDA device",
        kind=type(array).__name__,
        expected="a torch tensor, a CuPy array, or an object with __cuda_array_interface__ or __dlpack__",
    )


def _from_torch(tensor: Any) -> DeviceArray:
    if not tensor.is_cuda:
        raise _on_host("tensor", str(tensor.device))
    dtype = str(tensor.dtype).rpartition(".")[2]
    return DeviceArray(
        tensor.data_ptr(),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        dtype,
        tensor.device.index or 0,
        tensor,
    )


def _from_cupy(array: Any) -> DeviceArray:
    size = array.itemsize
    strides = _in_elements(array.strides, size, array.dtype)
    return DeviceArray(array.data.ptr, tuple(array.shape), strides, array.dtype.name, array.device.id, array)


def _in_elements(strides: tuple[int, ...], size: int, dtype: object) -> tuple[int, ...]:
    if any(each % size for each in strides):
        raise ArgumentError(
            "an array's strides {strides} are no multiples of its element, {size} bytes of {dtype}",
            strides=strides, size=size, dtype=dtype,
        )  # fmt: skip
    return tuple(each // size for each in strides)


def _on_host(what: str, where: str) -> ArgumentError:
    return ArgumentError(
        "a {what} on {where} was given to a CUDA kernel",
        what=what, where=where, expected="memory of a CUDA device",
        hint="move it to the device, or compile the kernel for the CPU",
    )  # fmt: skip


def _from_interface(array: Any, interface: dict[str, Any]) -> DeviceArray:
    import numpy as np

    if interface.get("mask") is not None:
        raise ArgumentError("a masked array was given to a CUDA kernel", expected="an array without a mask")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    raw = interface.get("strides")
    strides = packed_strides(shape) if raw is None else _in_elements(tuple(raw), dtype.itemsize, dtype)
    return DeviceArray(int(interface["data"][0]), shape, strides, dtype.name, _ordinal(array), array)


def _ordinal(array: Any) -> int:
    """The device's number where an array says it; the interface itself does not."""
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[1])
    return int(getattr(getattr(array, "device", None), "id", 0) or 0)


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def _from_dlpack(array: Any) -> DeviceArray:
    kind, ordinal = (int(each) for each in array.__dlpack_device__())
    if kind not in _DLPACK_CUDA:
        raise _on_host(type(array).__name__, "the host")
    # Stream -1 asks the producer not to wait: the launch goes to the producer's own stream.
    capsule = array.__dlpack__(stream=-1)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    strides = (
        tuple(tensor.strides[k] for k in range(tensor.ndim)) if tensor.strides else packed_strides(shape)
    )
    pointer = (tensor.data or 0) + tensor.byte_offset
    return DeviceArray(pointer, shape, strides, _dlpack_dtype(tensor), ordinal, (array, capsule))


def _dlpack_dtype(tensor: _DLTensor) -> str:
    word = _DLPACK_KINDS.get(tensor.code)
    if word is None or tensor.lanes != 1:
        raise ArgumentError(
            "a DLPack array has an unknown element type: code {code}, {lanes} lanes, {bits} bits",
            code=tensor.code, lanes=tensor.lanes, bits=tensor.bits,
        )  # fmt: skip
    return word if word == "bool" or word.startswith("float8") else f"{word}{tensor.bits}"


@cache
def _torch_stream() -> Any:
    """torch's function from a device number to its current stream: the raw one where it exists."""
    torch: Any = importlib.import_module("torch")
    # current_stream() builds a Stream object, 1.5 us; the raw handle takes 0.1 us.
    raw: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def public(ordinal: int) -> int:
        return int(torch.cuda.current_stream(ordinal).cuda_stream)

    return raw or public


def current_stream(array: Any, ordinal: int) -> int:
    """The stream that the array's library works on now, on that device; 0 (the default stream) for others."""
    root = type(array).__module__.partition(".")[0]
    if root == "torch":
        return _torch_stream()(ordinal)
    if root == "cupy":
        cupy: Any = importlib.import_module("cupy")
        return int(cupy.cuda.get_current_stream().ptr)
    return 0
