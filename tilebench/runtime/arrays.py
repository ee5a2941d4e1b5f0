"""What a user's array is, and whether it fits a kernel's parameter. Imports no array library but NumPy."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from ..errors import ArgumentError, Place
from ..ir.dtypes import ALL, DType, dtype_of
from ..record import ParamRecord
from ..targets.devices import CARD, HOST, card
from .dlpack import read_dlpack, row_major
from .packed import packed_argument, packed_bytes


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


def describe(array: Any, name: str = "the array", place: Place | None = None) -> ArrayInfo:
    """Describe a NumPy array, a torch or CuPy tensor, or anything with `__dlpack__`.

    Nothing is copied. `ArgumentError` when it is no array, or holds elements that no dtype here names.
    """
    if isinstance(array, np.ndarray):
        if isinstance(array, np.ma.MaskedArray):
            what, hint = "{name} is a masked array, and a kernel sees no masks", "pass {name}.filled(value)"
            raise ArgumentError(what, at=place, name=name, hint=hint)
        return _describe_numpy(cast(Any, array), name, place)
    if hasattr(array, "data_ptr") and callable(getattr(array, "stride", None)):
        return _describe_torch(array, name, place)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _by_interface(array, interface, name, place)
    if hasattr(array, "__dlpack__"):
        try:
            got = read_dlpack(array)
        except Exception as error:  # whatever the producer's own code raises
            what = "{name} cannot be read through DLPack: {why}"
            raise ArgumentError(what, at=place, name=name, why=error) from error
        return ArrayInfo(*got[:3], _named(got.dtype, name, place), *got[4:])
    raise ArgumentError(
        "{name} is no array", at=place, name=name, found="{kind}", kind=type(array).__name__,
        expected="a NumPy array, a torch or CuPy tensor, or an object with __dlpack__",
        hint="numpy.asarray(...) makes an array of a list or number; its dtype then has to fit too",
    )  # fmt: skip


def _named(dtype: object, name: str, place: Place | None) -> DType:
    text = str(dtype).removeprefix("torch.")
    if text not in ALL:
        what = "{name} has elements of type {dtype}, which kernels do not have"
        raise ArgumentError(what, at=place, name=name, dtype=text, hint="known: " + ", ".join(ALL))
    return dtype_of(text)


def _in_elements(strides: Sequence[int], size: int) -> tuple[int, ...]:
    return tuple(each // size for each in strides) if all(s % size == 0 for s in strides) else tuple(strides)


def _describe_numpy(array: np.ndarray[Any, Any], name: str, place: Place | None) -> ArrayInfo:
    dtype = _numpy_dtype(array.dtype)
    if dtype is None:
        dtype = _named(
            array.dtype if array.dtype.isnative else f"{array.dtype.name} (swapped bytes)", name, place
        )
    strides = _in_elements(array.strides, array.dtype.itemsize)
    return ArrayInfo(numpy_pointer(array), array.shape, strides, dtype, HOST, array.flags.writeable, array)


def _describe_torch(array: Any, name: str, place: Place | None) -> ArrayInfo:
    device = array.device
    kind = getattr(device, "type", str(device))
    where = card(device.index or 0) if kind == CARD else kind
    return ArrayInfo(
        array.data_ptr(), tuple(array.shape), tuple(array.stride()), _named(array.dtype, name, place), where,
        not getattr(array, "requires_grad", False), array,
    )  # fmt: skip


def _by_interface(array: Any, interface: Mapping[str, Any], name: str, place: Place | None) -> ArrayInfo:
    dtype = _numpy_dtype(np.dtype(getattr(array, "dtype", interface["typestr"])))
    if dtype is None:
        dtype = _named(interface["typestr"], name, place)
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    elements = row_major(shape) if strides is None else _in_elements(strides, dtype.numpy.itemsize)
    pointer, read_only = interface["data"]
    device = card(getattr(getattr(array, "device", None), "id", 0))
    return ArrayInfo(pointer, shape, elements, dtype, device, not read_only, array)


def is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Contiguous row-major? The stride of an extent of 1 does not matter, nor any of an empty array."""
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 0:
            return True
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to behind the last; 0 of an empty array."""
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


class ArgumentChecker:
    """Checks the arguments of one kernel; made once, called at each launch.

    `device` is where the arrays have to be: `HOST`, `CARD` (any card) or a certain `card(N)`. `places` are
    the parameters' places in the source, by name. Three fitting NumPy arrays take about 3 us.
    """

    def __init__(
        self, params: Sequence[ParamRecord], device: str = HOST, places: Mapping[str, Place] | None = None
    ) -> None:
        self.params = tuple(params)
        self.device = device
        self.places = dict(places or {})
        self._rows = [
            (
                p.extents,
                dtype_of(p.dtype),
                dtype_of(p.dtype).numpy,
                p.steps or row_major(p.extents),
                p.written,
            )
            for p in self.params
        ]
        # Bytes from the first element to behind the last; strides of its own may leave gaps.
        pairs = list(zip(self.params, self._rows, strict=True))
        self._sizes = [packed_bytes(p) or row[1].bytes_of(_span(row[0], row[3])) for p, row in pairs]
        self._plain = [not p.strides and row[1].per_byte == 1 for p, row in pairs]
        # What a device tensor that passed the slow way looked like, by parameter: (class, dtype, shape).
        # A tensor that looks the same again is described in 1 us instead of 7.
        self._seen: list[tuple[type, Any, Any] | None] = [None] * len(self.params)
        # Pairs that must not overlap: each output with every other parameter.
        self._pairs = [
            (i, j)
            for i, p in enumerate(self.params)
            for j in range(len(self.params))
            if p.written and j != i and not (self.params[j].written and j < i)
        ]

    def __call__(self, arrays: Sequence[Any]) -> list[ArrayInfo]:
        """The arrays described, in order. `ArgumentError` for the first that does not fit."""
        rows = self._rows
        if len(arrays) != len(rows):
            raise self._count(len(arrays))
        on_cpu = self.device == HOST
        infos: list[ArrayInfo] = []
        for index, array in enumerate(arrays):
            shape, dtype, numpy_dtype, strides, written = rows[index]
            if not self._plain[index]:
                infos.append(self._slow(index, array))
                continue
            if on_cpu and type(array) is np.ndarray and array.shape == shape and array.dtype == numpy_dtype:
                flags = array.flags
                if flags.carray:
                    infos.append(ArrayInfo(numpy_pointer(array), shape, strides, dtype, HOST, True, array))
                    continue
                if not written and flags.c_contiguous and flags.aligned:
                    infos.append(ArrayInfo(numpy_pointer(array), shape, strides, dtype, HOST, False, array))
                    continue
            tensor: Any = array
            seen: Any = self._seen[index]
            if (
                seen is not None
                and type(tensor) is seen[0]
                and tensor.dtype is seen[1]
                and tensor.shape == seen[2]
                and tensor.is_contiguous()
                and not (written and tensor.requires_grad)
                and (ordinal := tensor.get_device()) >= 0
            ):
                where = card(ordinal)
                infos.append(ArrayInfo(tensor.data_ptr(), shape, strides, dtype, where, True, tensor))
                continue
            infos.append(self._slow(index, array))
        for i, j in self._pairs:
            # A shared byte: each starts before the other's end (which no empty array does).
            start, other = infos[i].pointer, infos[j].pointer
            if start < other + self._sizes[j] and other < start + self._sizes[i]:
                self._overlap(i, j)
        return infos

    def _slow(self, index: int, array: Any) -> ArrayInfo:
        """Everything the fast path could not see at a glance, in the order a person would ask."""
        param = self.params[index]
        place = self.places.get(param.name)
        info = describe(array, param.name, place)
        if info.device != self.device and not (self.device == CARD and info.device.startswith(CARD + ":")):
            raise self._device(param, info)
        dtype = self._rows[index][1]
        if dtype.per_byte > 1:
            return packed_argument(info, param, place)
        if info.shape != tuple(param.shape):
            raise self._shape(param, info)
        if info.dtype != dtype:
            raise ArgumentError(
                "{name} has the wrong dtype", at=place, name=param.name, expected=str(dtype),
                found=str(info.dtype), hint=_convert_hint(param.name, dtype, info.owner),
            )  # fmt: skip
        self._strides(param, info)
        size = dtype.bytes_of(1)
        if info.pointer % size and info.bytes:
            raise ArgumentError(
                "{name} does not start at a whole element", at=place, name=param.name,
                expected=f"an address that is a multiple of {size} bytes",
                found=f"{info.pointer % size} bytes past one", hint=f"{param.name}.copy() is aligned",
            )  # fmt: skip
        if param.written and not info.writable:
            gradient = getattr(info.owner, "requires_grad", False)
            mend = f"pass {param.name}.detach()" if gradient else f"pass {param.name}.copy(), or a new array"
            raise ArgumentError(
                "{name} is written by the kernel but cannot be", at=place, name=param.name, hint=mend,
                found="a tensor that requires a gradient" if gradient else "a read-only array",
            )  # fmt: skip
        torch_like = hasattr(array, "get_device") and hasattr(array, "is_contiguous")
        if self._plain[index] and self.device == CARD and torch_like:
            self._seen[index] = (type(array), array.dtype, array.shape)
        return info

    def _strides(self, param: ParamRecord, info: ArrayInfo) -> None:
        """`T.Tensor` takes arrays contiguous in rows; `T.StridedTensor` takes exactly its strides.

        The strides of extents of 1 do not matter, nor any of an empty array.
        """
        place = self.places.get(param.name)
        if not param.strides and not is_row_major(info.shape, info.strides):
            raise ArgumentError(
                "{name} is not contiguous in rows", at=place, name=param.name, want=row_major(info.shape),
                expected="strides {want} in elements (T.Tensor is contiguous, row-major)",
                found="strides {got}", got=info.strides,
                hint=_contiguous_hint(param.name, info.owner, param.written),
            )  # fmt: skip
        if not param.strides or 0 in info.shape:
            return
        same = zip(info.shape, info.strides, param.strides, strict=True)
        if any(extent != 1 and got != want for extent, got, want in same):
            raise ArgumentError(
                "{name} has other strides than its parameter", at=place, name=param.name,
                expected="strides {want} in elements", found="strides {got}", want=tuple(param.strides),
                got=info.strides,
                hint="T.StridedTensor takes these strides only; T.Tensor takes arrays contiguous in rows",
            )  # fmt: skip

    def _count(self, got: int) -> ArgumentError:
        return ArgumentError(
            "the kernel takes {want} arrays, {got} were given",
            want=len(self.params),
            got=got,
            expected="({names})",
            names=", ".join(f"{p.name}: {p.dtype}{list(p.shape)}" for p in self.params),
            hint="outputs are passed too, after or between the inputs as the kernel's signature has them",
        )

    def _device(self, param: ParamRecord, info: ArrayInfo) -> ArgumentError:
        if self.device == HOST:
            hint = (
                f"copy it to the host ({param.name}.cpu() or cupy.asnumpy({param.name})), or compile for cuda"
            )
        elif info.device == HOST:
            hint = (
                f"copy it to the card (cupy.asarray({param.name}) or {param.name}.cuda()), or compile for cpu"
            )
        else:
            hint = "all arrays of a launch live on the card of the launch"
        return ArgumentError(
            "{name} is on the wrong device", at=self.places.get(param.name), name=param.name,
            expected=self.device, found=info.device, hint=hint,
        )  # fmt: skip

    def _shape(self, param: ParamRecord, info: ArrayInfo) -> ArgumentError:
        want, got = tuple(param.shape), info.shape
        what = "{name} has the wrong shape"
        hint = "the kernel was compiled for this shape; call the kernel function again for another"
        if len(want) != len(got):
            what = f"{{name}} has {len(got)} dimension{'s' * (len(got) != 1)}, the kernel wants {len(want)}"
            if math.prod(want) == math.prod(got):
                hint = f"as many elements: {param.name}.reshape{want} fits"
        elif want == got[::-1]:
            hint = f"it is transposed: numpy.ascontiguousarray({param.name}.T)"
        return ArgumentError(
            what, at=self.places.get(param.name), name=param.name, expected="{want}", found="{got}",
            want=want, got=got, hint=hint,
        )  # fmt: skip

    def _overlap(self, i: int, j: int) -> None:
        out, other = self.params[i], self.params[j]
        raise ArgumentError(
            "{out} is written by the kernel and shares memory with {other}",
            at=self.places.get(out.name),
            also=[("the other parameter", self.places.get(other.name))],
            out=out.name,
            other=other.name,
            expected="an output with memory of its own: blocks run in any order",
            hint=f"pass a new array for {out.name} and copy the result afterwards",
        )


def _library(owner: Any) -> str:
    # What came through DLPack is owned by the pair of the array and its capsule.
    array = cast(tuple[Any, ...], owner)[0] if isinstance(owner, tuple) else owner
    return type(array).__module__.partition(".")[0]


def _contiguous_hint(name: str, owner: object, written: bool) -> str:
    library = _library(owner)
    if library == "torch":
        mended = f"{name}.contiguous()"
    else:
        mended = f"{'cupy' if library == 'cupy' else 'numpy'}.ascontiguousarray({name})"
    return f"{mended} makes a copy; keep it, the result is written there" if written else f"pass {mended}"


def _convert_hint(name: str, dtype: DType, owner: object) -> str:
    if _library(owner) == "torch":
        return f"{name}.to(torch.{dtype}) converts (values may round), or compile the kernel for this dtype"
    home = "ml_dtypes" if dtype.numpy.type.__module__.startswith("ml_dtypes") else "numpy"
    return f"{name}.astype({home}.{dtype}) converts (values may round), or compile the kernel for this dtype"


@lru_cache(maxsize=256)
def _checker(params: tuple[ParamRecord, ...], device: str) -> ArgumentChecker:
    return ArgumentChecker(params, device)


def check_arguments(
    params: Sequence[ParamRecord],
    arrays: Sequence[Any],
    *,
    device: str = HOST,
    places: Mapping[str, Place] | None = None,
) -> list[ArrayInfo]:
    """Check the arguments of a launch against its parameters; see `ArgumentChecker`.

    `ArgumentError` names the parameter, what was expected and found, and what to do, for a wrong
    count, kind, device, rank, shape, dtype, stride or alignment, a read-only output, and an output
    that shares memory with another argument.
    """
    checker = ArgumentChecker(params, device, places) if places else _checker(tuple(params), device)
    return checker(arrays)
