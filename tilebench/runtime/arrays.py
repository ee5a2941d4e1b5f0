"""Whether a user's arrays fit a kernel's parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError, Place
from ..ir.dtypes import DType, dtype_of
from ..record import ParamRecord
from ..targets.devices import CARD, HOST
from .describe import JAX, ArrayInfo, describe, library, numpy_pointer
from .dlpack import row_major
from .glances import Glance, glance_of
from .packed import packed_argument, packed_bytes


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


def may_share_elements(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements may lie at one place: a stride does not step over all that smaller ones reach.

    A few layouts that interleave without meeting, such as shape (2, 3) with strides (3, 2), count too.
    """
    reach = 0
    for stride, extent in sorted((abs(stride), n) for n, stride in zip(shape, strides, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += (extent - 1) * stride
    return False


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
        self._on_host = device == HOST
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
        self.sizes = [packed_bytes(p) or row[1].bytes_of(_span(row[0], row[3])) for p, row in pairs]
        self.plain = [not p.strides and row[1].per_byte == 1 for p, row in pairs]
        # What an array that passed the slow way looked like, by parameter: (class, dtype, shape, glance).
        # One that looks the same again is described in 1 us instead of 7.
        self._seen: list[tuple[type, Any, Any, Glance] | None] = [None] * len(self.params)
        # Pairs that must not overlap: each output with every other parameter.
        self.pairs = [
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
        on_cpu = self._on_host
        infos: list[ArrayInfo] = []
        for index, array in enumerate(arrays):
            shape, dtype, numpy_dtype, strides, written = rows[index]
            if not self.plain[index]:
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
            infos.append(self._seen_before(index, array) or self._slow(index, array))
        for i, j in self.pairs:
            # A shared byte: each starts before the other's end (which no empty array does).
            start, other = infos[i].pointer, infos[j].pointer
            if start < other + self.sizes[j] and other < start + self.sizes[i]:
                self._overlap(i, j)
        return infos

    def _seen_before(self, index: int, array: Any) -> ArrayInfo | None:
        """An array of torch's or CuPy's that looks as one that passed; None for any other."""
        seen = self._seen[index]
        if seen is None or type(array) is not seen[0] or array.dtype is not seen[1]:
            return None
        shape, dtype, _, strides, written = self._rows[index]
        found = seen[3](array, seen[2], self._on_host, written)
        return None if found is None else ArrayInfo(found[0], shape, strides, dtype, found[1], True, array)

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
            found, hint = _unwritable(param.name, info.owner)
            raise ArgumentError(
                "{name} is written by the kernel but cannot be", at=place, name=param.name, found=found,
                hint=hint,
            )  # fmt: skip
        glance = glance_of(array)
        if self.plain[index] and self.device in (CARD, HOST) and glance is not None:
            self._seen[index] = (type(array), array.dtype, array.shape, glance)
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
        if param.written and may_share_elements(info.shape, info.strides):
            raise ArgumentError(
                "{name} is written by the kernel, and elements of it share memory", at=place, name=param.name,
                found="shape {shape} with strides {got}", shape=info.shape, got=info.strides,
                expected="an output whose every element has memory of its own",
                hint="pass a new array and copy the result afterwards",
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
    return library(cast(tuple[Any, ...], owner)[0] if isinstance(owner, tuple) else owner)


def _unwritable(name: str, owner: object) -> tuple[str, str]:
    """What an array is that cannot be written, and what to pass for it."""
    if getattr(owner, "requires_grad", False):
        return "a tensor that requires a gradient", f"pass {name}.detach()"
    if _library(owner) in JAX:
        hint = f"name {name} in out_idx, and the call returns a new one; or pass numpy.array({name})"
        return "an array of JAX's, which never changes", hint
    return "a read-only array", f"pass {name}.copy(), or a new array"


def _contiguous_hint(name: str, owner: object, written: bool) -> str:
    source = _library(owner)
    if source == "torch":
        mended = f"{name}.contiguous()"
    else:
        mended = f"{'cupy' if source == 'cupy' else 'numpy'}.ascontiguousarray({name})"
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
