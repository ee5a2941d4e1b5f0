"""What a user's array is: where its memory lies, and how. Imports no array library but NumPy.

Whatever is not plain memory of the elements that it shows is refused here, with how to make it so: a kernel
sees neither masks nor signs, layouts or subclasses.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from ..errors import ArgumentError, Place
from ..ir.dtypes import ALL, DType, dtype_of
from ..targets.devices import CARD, HOST, card
from .dlpack import read_dlpack, row_major


class ArrayInfo(NamedTuple):
    """An array as a launch needs it. `pointer` is an address, `strides` count elements (bytes for
    strides that are no multiple of the element), `device` is one of `targets.devices`; `owner` keeps
    the memory alive.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    device: str
    writable: bool
    owner: object

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.numpy.itemsize  # here 4 bits take a byte


# NumPy's C interface fixes that the data pointer follows the object header. Reading it there takes
# 0.25 us; `__array_interface__` and `.ctypes.data` take 2.3 us each. Checked once, below.
_DATA = object.__basicsize__
_word = ctypes.c_size_t.from_address


def _pointer_by_layout(array: np.ndarray[Any, Any]) -> int:
    return _word(id(array) + _DATA).value


def _pointer_by_interface(array: np.ndarray[Any, Any]) -> int:
    return array.__array_interface__["data"][0]


def _choose_pointer() -> Any:
    for probe in (np.zeros(5, np.int8)[2:], np.zeros((3, 4), np.float64)[::-1, 1:]):
        if _pointer_by_layout(probe) != _pointer_by_interface(probe):
            return _pointer_by_interface
    return _pointer_by_layout


numpy_pointer = _choose_pointer()

_BY_NUMPY: dict[np.dtype[Any], DType] = {}


def _numpy_dtype(dtype: np.dtype[Any]) -> DType | None:
    if not _BY_NUMPY:
        _BY_NUMPY.update({each.numpy: each for each in ALL.values()})
    return _BY_NUMPY.get(dtype)


# The packages of JAX's classes.
JAX = ("jax", "jaxlib")
# Arrays of these never change, and not all versions say so in DLPack.
_IMMUTABLE = (*JAX, "tensorflow")


@lru_cache(maxsize=64)
def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def library(array: object) -> str:
    """The package that an array's class is from."""
    return _package(type(array))


def is_traced(array: object) -> bool:
    """Whether it only stands for an array of JAX's, inside of `jax.jit` and the like."""
    return "Tracer" in type(array).__name__ and library(array) in JAX


def is_gone(array: Any) -> bool:
    """Whether it is an array of JAX's whose memory was given away, by `delete` or as a donated argument."""
    return library(array) in JAX and bool(getattr(array, "is_deleted", lambda: False)())


def describe(array: Any, name: str = "the array", place: Place | None = None) -> ArrayInfo:
    """Describe a NumPy array, a torch or CuPy tensor, or anything with `__dlpack__`.

    Nothing is copied. `ArgumentError` when it is no array, or holds elements that no dtype here names.
    """
    if isinstance(array, np.ndarray):
        if isinstance(array, np.ma.MaskedArray):
            what, hint = "{name} is a masked array, and a kernel sees no masks", "pass {name}.filled(value)"
            raise ArgumentError(what, at=place, name=name, hint=hint)
        return _describe_numpy(cast(Any, array), name, place)
    if isinstance(array, type):
        raise _no_array(name, place, f"the class {array.__name__} itself")
    if hasattr(array, "data_ptr") and callable(getattr(array, "stride", None)):
        return _describe_torch(array, name, place)
    # JAX's has the interface too, which says neither when its elements are there nor that they never change.
    interface = None if library(array) in _IMMUTABLE else getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _by_interface(array, interface, name, place)
    if hasattr(array, "__dlpack__"):
        try:
            got = read_dlpack(array)
        except Exception as error:  # whatever the producer's own code raises
            if is_traced(array):
                raise _traced(array, name, place) from error
            if is_gone(array):
                what, hint = (
                    "{name} is an array of JAX's that is deleted",
                    "pass it before it is donated, or a copy",
                )
                raise ArgumentError(what, at=place, name=name, hint=hint) from error
            what = "{name} cannot be read through DLPack: {why}"
            hint = "numpy.asarray({name}) may make a copy"
            raise ArgumentError(what, at=place, name=name, why=error, hint=hint) from error
        dtype, writable = _named(got.dtype, name, place), got.writable and library(array) not in _IMMUTABLE
        return ArrayInfo(got.pointer, got.shape, got.strides, dtype, got.device, writable, got.owner)
    raise _no_array(name, place, type(array).__name__)


def _no_array(name: str, place: Place | None, kind: str) -> ArgumentError:
    return ArgumentError(
        "{name} is no array", at=place, name=name, found="{kind}", kind=kind,
        expected="a NumPy array, a torch or CuPy tensor, or an object with __dlpack__",
        hint="numpy.asarray(...) makes an array of a list or number; its dtype then has to fit too",
    )  # fmt: skip


def _traced(array: object, name: str, place: Place | None) -> ArgumentError:
    return ArgumentError(
        "{name} stands for an array of JAX's that is not there yet", at=place, name=name, found="{kind}",
        kind=type(array).__name__, expected="a jax.Array with its elements",
        hint="call the kernel outside of jax.jit, grad and vmap, or through jax.pure_callback",
    )  # fmt: skip


# torch's name of bytes with two elements each: they are bytes to a kernel too (`packed.py`).
_PAIRS = {"float4_e2m1fn_x2": "uint8"}


def dtype_name(dtype: object) -> str:
    """What kernels call the dtype of an array of any library."""
    text = str(dtype).removeprefix("torch.")
    return _PAIRS.get(text, text)


def _named(dtype: object, name: str, place: Place | None) -> DType:
    text = dtype_name(dtype)
    if text not in ALL:
        what = "{name} has elements of type {dtype}, which kernels do not have"
        raise ArgumentError(what, at=place, name=name, dtype=text, hint="known: " + ", ".join(ALL))
    return dtype_of(text)


def _in_elements(
    shape: Sequence[int], strides: Sequence[int], size: int, name: str, place: Place | None
) -> tuple[int, ...]:
    """Strides of whole elements. Those of extents of 1, and of empty arrays, mean nothing."""
    moving = 0 not in shape
    for extent, stride in zip(shape, strides, strict=True):
        if stride % size and extent != 1 and moving:
            raise ArgumentError(
                "{name} has elements that do not lie a whole number of elements apart", at=place, name=name,
                found="strides {got} in bytes", got=tuple(strides), size=size,
                expected="multiples of the {size} bytes of an element",
                hint="a field of a packed record looks so; {name}.copy() is an array of its own",
            )  # fmt: skip
    return tuple(stride // size for stride in strides)


def _describe_numpy(array: np.ndarray[Any, Any], name: str, place: Place | None) -> ArrayInfo:
    if not array.dtype.isnative:
        raise ArgumentError(
            "{name} has the bytes of its elements in the other order", at=place, name=name,
            found="{dtype!r}", dtype=array.dtype.str, expected="{native!r}",
            native=array.dtype.newbyteorder("=").str,
            hint='{name}.astype({name}.dtype.newbyteorder("=")) turns them round',
        )  # fmt: skip
    dtype = _numpy_dtype(array.dtype) or _named(array.dtype, name, place)
    strides = _in_elements(array.shape, array.strides, array.dtype.itemsize, name, place)
    return ArrayInfo(numpy_pointer(array), array.shape, strides, dtype, HOST, array.flags.writeable, array)


def _describe_torch(array: Any, name: str, place: Place | None) -> ArrayInfo:
    device = array.device
    kind = getattr(device, "type", str(device))
    where = card(device.index or 0) if kind == CARD else kind
    _refuse_other_forms(array, kind, name, place)
    try:
        pointer, shape, strides = array.data_ptr(), tuple(array.shape), tuple(array.stride())
    except (RuntimeError, TypeError) as error:  # subclasses that only wrap others, fake and batched tensors
        raise _no_memory(array, name, place, str(error).partition("\n")[0]) from error
    dtype = _named(array.dtype, name, place)
    _refuse_missing_memory(array, pointer, shape, strides, name, place)
    writable = not getattr(array, "requires_grad", False)
    return ArrayInfo(pointer, shape, strides, dtype, where, writable, array)


# What a tensor may say of itself that its memory alone does not: the attribute, and how to undo it.
_FORMS: tuple[tuple[str, str, str], ...] = (
    (
        "is_nested",
        "is a nested tensor, of rows of several lengths",
        "{name}.to_padded_tensor(0.0) is one array",
    ),
    ("is_quantized", "is quantized", "{name}.dequantize(), or {name}.int_repr() for its integers"),
    ("is_neg", "is the negative of what its memory holds", "pass {name}.resolve_neg()"),
    ("is_conj", "is the conjugate of what its memory holds", "pass {name}.resolve_conj()"),
)


def _refuse_other_forms(tensor: Any, kind: str, name: str, place: Place | None) -> None:
    """Raise `ArgumentError` for a tensor whose memory is not simply its elements."""
    if kind == "meta":
        what, hint = "{name} is a meta tensor, which has a shape and no elements", "make it on a device"
        raise ArgumentError(what, at=place, name=name, hint=hint)
    for attribute, what, hint in _FORMS:
        is_so = getattr(tensor, attribute, False)
        if is_so() if callable(is_so) else is_so:
            raise ArgumentError("{name} " + what, at=place, name=name, hint=hint)
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise ArgumentError(
            "{name} has the layout {layout}", at=place, name=name, layout=layout,
            expected="torch.strided: every element in memory", hint="pass {name}.to_dense()",
        )  # fmt: skip


def _refuse_missing_memory(
    tensor: Any,
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    name: str,
    place: Place | None,
) -> None:
    """Raise `ArgumentError` where the memory is gone or too short for the shape (a storage of size zero)."""
    if 0 in shape:
        return
    if not pointer:
        raise _no_memory(tensor, name, place, "its address is 0")
    storage = getattr(tensor, "untyped_storage", None)
    if storage is None:
        return
    reach = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    need, has = (tensor.storage_offset() + reach + 1) * tensor.element_size(), storage().nbytes()
    if has < need:
        raise _no_memory(
            tensor, name, place, f"its storage has {has} bytes of the {need} that its shape needs"
        )


def _no_memory(tensor: Any, name: str, place: Place | None, why: str) -> ArgumentError:
    return ArgumentError(
        "{name} is a {kind} without memory of its own: {why}", at=place, name=name, why=why,
        kind=type(tensor).__name__, expected="a tensor whose elements lie in memory",
        hint="pass the plain tensor that it stands for, outside of tracing and vmap",
    )  # fmt: skip


def _by_interface(array: Any, interface: Mapping[str, Any], name: str, place: Place | None) -> ArrayInfo:
    if interface.get("mask") is not None:
        what, hint = "{name} is a masked array, and a kernel sees no masks", "pass its data alone"
        raise ArgumentError(what, at=place, name=name, hint=hint)
    dtype = _numpy_dtype(np.dtype(getattr(array, "dtype", interface["typestr"])))
    if dtype is None:
        dtype = _named(interface["typestr"], name, place)
    shape = tuple(interface["shape"])
    given = interface.get("strides")
    size = dtype.numpy.itemsize
    strides = row_major(shape) if given is None else _in_elements(shape, given, size, name, place)
    pointer, read_only = interface["data"]
    device = card(getattr(getattr(array, "device", None), "id", 0))
    return ArrayInfo(pointer, shape, strides, dtype, device, not read_only, array)
