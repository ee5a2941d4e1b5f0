"""Reading a DLPack capsule by ctypes: the one way to arrays of any library without importing it.

The structures are those of the DLPack specification (dmlc/dlpack, `dlpack.h`, versions 0.8 and 1.x).
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from ..targets.devices import dlpack_device

# Flags: not to be written; and a copy that the producer's own array does not see.
_READ_ONLY, _COPIED = 1, 2
# The type of device of a card, and the number of its legacy default stream there.
_CUDA, _DEFAULT_STREAM = 2, 1
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool", 10: "float8_e4m3fn", 12: "float8_e5m2"}


class _Tensor(ctypes.Structure):
    _fields_ = [
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
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class Described(NamedTuple):
    """What a capsule says. `strides` in elements; `dtype` is a name; `owner` keeps the memory alive."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    writable: bool
    owner: object


def _pointer(capsule: object, name: bytes) -> int | None:
    api: Any = ctypes.pythonapi
    api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    if not api.PyCapsule_IsValid(capsule, name):
        return None
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    return api.PyCapsule_GetPointer(capsule, name)


def _on_card(array: Any) -> bool:
    try:
        return int(array.__dlpack_device__()[0]) == _CUDA
    except Exception:  # what is wrong with the array, its capsule says better
        return False


def read_dlpack(array: Any) -> Described:
    """Describe an object that has `__dlpack__`. The capsule stays unused and frees itself with `owner`.

    An array of a card is whole for what follows on the default stream, which launches on it take.
    """
    order = {"stream": _DEFAULT_STREAM} if _on_card(array) else {}
    try:
        capsule = array.__dlpack__(max_version=(1, 0), **order)
    except TypeError:  # a producer from before version 1
        capsule = array.__dlpack__(**order)
    writable = True
    address = _pointer(capsule, b"dltensor_versioned")
    if address is not None:
        versioned = _Versioned.from_address(address)
        tensor, writable = versioned.tensor, not versioned.flags & (_READ_ONLY | _COPIED)
    else:
        address = _pointer(capsule, b"dltensor")
        if address is None:
            raise TypeError("__dlpack__ returned no DLPack capsule")
        tensor = _Tensor.from_address(address)
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else row_major(shape)
    kind = _CODES.get(tensor.code, f"code{tensor.code}")
    name = kind if kind == "bool" or "8_" in kind else f"{kind}{tensor.bits}"
    if tensor.lanes != 1:
        name += f"x{tensor.lanes}"
    device = dlpack_device(tensor.device_type, tensor.device_id)
    pointer = (tensor.data or 0) + tensor.byte_offset
    return Described(pointer, shape, strides, name, device, writable, (array, capsule))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a contiguous row-major array."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
