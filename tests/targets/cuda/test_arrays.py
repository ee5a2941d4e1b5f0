"""Device arrays of each kind, made of stand-ins with the protocols' own fields."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilebench.errors import ArgumentError
from tilebench.targets.cuda import arrays
from tilebench.targets.cuda.arrays import DeviceArray, current_stream, device_pointer, packed_strides


class Tensor:
    """The attributes of a torch tensor."""

    is_cuda = True
    shape = (4, 6)
    dtype = "torch.bfloat16"
    device = SimpleNamespace(index=1, type="cuda")

    def data_ptr(self) -> int:
        return 0x7F0000001000

    def stride(self) -> tuple[int, ...]:
        return (1, 4)


class Interface:
    def __init__(self, **changes: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (3, 5), "typestr": "<f2", "data": (0x2000, False), "version": 3, "strides": None,
            **changes,
        }  # fmt: skip


class Packed:
    """A DLPack producer over a hand-made DLTensor."""

    def __init__(
        self, device: int = 2, code: int = 2, bits: int = 16, strides: bool = True, lanes: int = 1
    ) -> None:
        self.shape = (ctypes.c_int64 * 2)(3, 5)
        self.steps = (ctypes.c_int64 * 2)(7, 1)
        tensor = arrays._DLTensor(0x3000, device, 1, 2, code, bits, lanes)
        tensor.shape = self.shape
        if strides:
            tensor.strides = self.steps
        tensor.byte_offset = 0x40
        self.tensor = tensor
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 1)

    def __dlpack__(self, stream: int | None = None) -> Any:
        assert stream == -1
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def test_torch_like() -> None:
    assert device_pointer(Tensor()) == DeviceArray(0x7F0000001000, (4, 6), (1, 4), "bfloat16", 1)


def test_torch_like_on_the_host() -> None:
    tensor = Tensor()
    tensor.is_cuda = False  # type: ignore[misc]
    with pytest.raises(ArgumentError, match="move it to the device"):
        device_pointer(tensor)


def test_array_interface_with_and_without_strides() -> None:
    assert device_pointer(Interface()) == DeviceArray(0x2000, (3, 5), (5, 1), "float16", 0)
    assert device_pointer(Interface(strides=(2, 6))).strides == (1, 3)
    with pytest.raises(ArgumentError, match="no multiples"):
        device_pointer(Interface(strides=(3, 6)))
    with pytest.raises(ArgumentError, match="masked"):
        device_pointer(Interface(mask=object()))


@pytest.mark.parametrize(
    ("code", "bits", "name"),
    [(2, 16, "float16"), (4, 16, "bfloat16"), (0, 32, "int32"), (1, 8, "uint8"), (6, 8, "bool"),
     (10, 8, "float8_e4m3fn"), (12, 8, "float8_e5m2")],
)  # fmt: skip
def test_dlpack(code: int, bits: int, name: str) -> None:
    assert device_pointer(Packed(code=code, bits=bits)) == DeviceArray(0x3040, (3, 5), (7, 1), name, 1)
    assert device_pointer(Packed(strides=False)).strides == (5, 1)


def test_dlpack_that_cannot_be_used() -> None:
    with pytest.raises(ArgumentError, match="on the host"):
        device_pointer(Packed(device=1))
    with pytest.raises(ArgumentError, match="lanes"):
        device_pointer(Packed(lanes=4))


def test_numpy_and_other_things() -> None:
    with pytest.raises(ArgumentError, match="on the host"):
        device_pointer(np.zeros(3, np.float32))
    with pytest.raises(ArgumentError, match="a list is no array"):
        device_pointer([1, 2])


def test_packed_strides() -> None:
    assert packed_strides((2, 3, 4)) == (12, 4, 1)
    assert packed_strides(()) == ()
    assert packed_strides((2, 0, 4)) == (4, 4, 1)


def test_default_stream_for_other_arrays() -> None:
    assert current_stream(Interface(), 0) == 0
