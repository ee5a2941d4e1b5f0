"""Inputs from a seed: the same arrays, element for element and stride for stride, in every process."""

from __future__ import annotations

import importlib
import math
import sys
import zlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError, ResourceError
from ..ir import Buffer, DType, Function
from ..language.meanings.rounding import narrowed
from ..passes.analysis.reads_writes import reads_and_writes
from .check import poison

Kind = Literal["uniform", "normal", "wide", "zeros", "ones"]
KINDS: tuple[Kind, ...] = ("uniform", "normal", "wide", "zeros", "ones")
SMALL = 8


def strided_empty(shape: Sequence[int], dtype: DType, strides: Sequence[int] | None = None) -> NDArray[Any]:
    """An array of a shape with strides in elements (row-major when None); contents are zero."""
    if strides is None:
        return np.zeros(tuple(shape), dtype.numpy)
    reach = 1 + sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))
    size = dtype.numpy.itemsize
    # NumPy's own `as_strided` does not know the types of `ml_dtypes`.
    held = np.zeros(max(reach, 1) * size, np.uint8)
    return np.ndarray(tuple(shape), dtype.numpy, held, strides=[step * size for step in strides])


def random_array(
    shape: Sequence[int], dtype: DType, seed: int | Sequence[int], kind: Kind = "uniform",
    strides: Sequence[int] | None = None,
) -> NDArray[Any]:  # fmt: skip
    """An array of random values.

    `uniform`: floats in [-1, 1), integers in [-8, 8] (unsigned [0, 8]; int4 [-8, 7]), whose products
    summed over any extent below 2**24 stay in int32. `normal`: a standard normal, integers as before.
    `wide`: floats of either sign over half the dtype's exponents, integers over their full range.
    Bools are even.
    Raises `OptionError` for another kind.
    """
    if kind not in KINDS:
        raise OptionError(
            "there are no inputs of kind {kind!r}", kind=kind, known=", ".join(KINDS), expected="{known}"
        )
    array = strided_empty(shape, dtype, strides)
    if kind in ("zeros", "ones"):
        array[...] = np.asarray(kind == "ones", dtype.numpy)
        return array
    random = np.random.default_rng(seed)
    size = tuple(shape)
    if dtype.kind == "bool":
        array[...] = random.integers(0, 2, size, np.uint8) != 0
    elif dtype.is_integer and kind == "wide":
        array[...] = _integers(random, int(dtype.least), int(dtype.most), size, dtype)
    elif dtype.is_integer:
        low = 0 if dtype.kind == "uint" else -SMALL
        array[...] = _integers(random, low, min(SMALL, int(dtype.most)), size, dtype)
    else:
        array[...] = narrowed(_floats(random, size, dtype, kind), dtype)
    return array


def _integers(
    random: np.random.Generator, low: int, high: int, size: tuple[int, ...], dtype: DType
) -> NDArray[Any]:
    drawn = np.dtype(np.int8) if dtype.per_byte > 1 else dtype.numpy
    return random.integers(low, high, size, drawn, endpoint=True).astype(dtype.numpy)


def _floats(random: np.random.Generator, size: tuple[int, ...], dtype: DType, kind: Kind) -> NDArray[Any]:
    # Single precision is drawn for all narrower types: half the time of doubles.
    draw: Any = random
    native = np.float64 if dtype.bits == 64 else np.float32
    if kind == "normal":
        return draw.standard_normal(size, native)
    if kind == "uniform":
        return draw.random(size, native) * 2 - 1
    finfo: Any = importlib.import_module("ml_dtypes").finfo
    half = int(finfo(dtype.numpy).maxexp) // 2
    exponents = random.uniform(-half, half, size)
    return np.exp2(exponents) * random.choice([-1.0, 1.0], size)


def input_for(buffer: Buffer, seed: int = 0, kind: Kind = "uniform") -> NDArray[Any]:
    """Random values for one parameter; its name is part of the seed."""
    seeds = (seed, zlib.crc32(buffer.name.encode()))
    return random_array(buffer.extents, buffer.dtype, seeds, kind, buffer.fixed_strides)


def make_inputs(function: Function, seed: int = 0, kind: Kind = "uniform") -> dict[str, NDArray[Any]]:
    """An array for each parameter: random where the function reads it, poison where it only writes.

    Each array depends on the seed and its own name alone, and has the strides of its parameter.
    Raises `ResourceError` where one takes more memory than there is.
    """
    read, written = reads_and_writes(function)
    arrays: dict[str, NDArray[Any]] = {}
    for param in function.arrays:
        try:
            if math.prod(param.extents) > sys.maxsize // param.dtype.numpy.itemsize:
                raise MemoryError("no address reaches its last element")
            if param.name in written and param.name not in read:
                arrays[param.name] = strided_empty(param.extents, param.dtype, param.fixed_strides)
                poison(arrays[param.name])
            else:
                arrays[param.name] = input_for(param, seed, kind)
        except MemoryError as error:
            raise ResourceError(
                "{name} takes more memory than there is: {why}", name=param.name, why=error,
                at=function.place, found="the shape {shape}", shape=tuple(param.extents),
                hint="give smaller sizes",
            ) from None  # fmt: skip
    return arrays
