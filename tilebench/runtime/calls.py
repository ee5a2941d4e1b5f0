"""What a call passes, for kernels with sizes and scalars: names bound to the values of this call.

`A: T.Tensor((m, 1024), ...)` binds m to the first extent of the array given for A. A name that several
arrays have must agree. Scalars are converted to the dtype of their parameter, never rounded to another
integer.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from ..errors import ArgumentError, OptionError, Place, ShapeError, nearest
from ..ir import Buffer, DType, Expr, Function, Var, show
from ..ir.arith import linear
from ..ir.sizes import Number, size_value
from ..language.scopes import MOST_SIZE
from ..record import ParamRecord
from .describe import describe

# Shapes of calls that are kept with what they decide. A call of kept ones takes 4 us more than one of fixed
# sizes, and 11 us more where they are read anew (16 by 16, on the CPU).
_MOST_SHAPES = 256
# What a scalar is given as, by the kind of its dtype.
_EXPECTED = {"float": "a number", "bool": "True or False"}


class Sized(NamedTuple):
    """What the shapes of a call decide: its sizes by name, and the records of what its arrays must be."""

    values: Mapping[str, Number]
    records: tuple[ParamRecord, ...]


class BoundCall(NamedTuple):
    """One call: its sizes and scalars by name, its arrays in order, and the records of what they must be."""

    values: Mapping[str, Number]
    arrays: tuple[Any, ...]
    records: tuple[ParamRecord, ...]


class _Given(NamedTuple):
    """Which arguments a call passes: their records, and the positions of arrays and of scalars by name."""

    records: tuple[ParamRecord, ...]
    arrays: tuple[int, ...]
    scalars: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class _Source:
    """Where a size can be read: `factor * size + constant` is an extent (or a stride) of an array."""

    array: Buffer
    position: int
    axis: int
    stride: bool
    factor: int
    constant: int

    @property
    def what(self) -> str:
        return f"{'stride' if self.stride else 'extent'} {self.axis} of {self.array.name}"


class CallBinder:
    """Binds the arguments of one kernel's calls. `records` are its parameters as a caller sees them."""

    def __init__(
        self, function: Function, records: Sequence[ParamRecord], places: Mapping[str, Place] | None = None
    ) -> None:
        self.function = function
        self.records = tuple(records)
        self.places = dict(places or {})
        self.sizes = function.dimensions
        self.scalars = {var.name: var for var in function.scalars}
        self._largest = {n: float(v.type.largest) for n, v in self.scalars.items() if v.type.is_float}
        self.buffers = {buffer.name: buffer for buffer in function.arrays}
        self._sources = {var.name: self._where(var) for var in self.sizes}
        self._given: dict[tuple[int, ...], _Given] = {}
        # By what a call leaves out and the shapes of its arrays; not where strides say sizes.
        self._shapes: dict[Hashable, Sized] = {}
        self._by_shape = not any(source.stride for rows in self._sources.values() for source in rows)
        # Records by the sizes of a call: to make them takes longer than to launch.
        self._known: dict[tuple[Number, ...], tuple[ParamRecord, ...]] = {}
        params = function.params
        self._array_slots = [k for k, param in enumerate(params) if isinstance(param, Buffer)]
        self._value_slots = [(k, p.name) for k, p in enumerate(params) if not isinstance(p, Buffer)]

    @property
    def plain(self) -> bool:
        """Whether there is nothing to bind: every size is a number and every argument an array."""
        return not self.sizes and not self.scalars

    @property
    def takes(self) -> str:
        """What its calls pass, in a word."""
        return "arguments" if self.scalars else "arrays"

    def _where(self, var: Var) -> list[_Source]:
        out: list[_Source] = []
        for position, array in enumerate(self.function.arrays):
            for stride, sizes in ((False, array.shape), (True, array.strides or ())):
                for axis, size in enumerate(sizes):
                    form = linear(size) if isinstance(size, Expr) else None
                    if form is not None and len(form.terms) == 1 and form.terms[0][0] == var:
                        factor = form.terms[0][1]
                        out.append(_Source(array, position, axis, stride, factor, form.constant))
        return out

    # -- from the arguments of a call
    def __call__(self, arguments: Sequence[Any], without: Sequence[int] = ()) -> BoundCall:
        """The call with these arguments in order; those at positions `without` are still to be made.

        Raises `ArgumentError` for a wrong number of them, sizes that do not agree, a scalar that does not
        fit. What arrays otherwise must be is checked by their records.
        """
        without = tuple(without)
        given = self._given.get(without) or self._passed(without)
        if len(arguments) != len(given.records):
            raise ArgumentError(
                "{name} takes {want} {what}, {got} were given", name=self.function.name, what=self.takes,
                want=len(given.records), got=len(arguments), at=self.function.place, expected="({shown})",
                shown=", ".join(shown_param(record) for record in given.records),
            )  # fmt: skip
        arrays = tuple([arguments[k] for k in given.arrays])
        sized = self._sized_by(given, arrays)
        if not given.scalars:
            return BoundCall(sized.values, arrays, sized.records)
        values = {name: self.scalar(name, arguments[k]) for k, name in given.scalars}
        return BoundCall({**sized.values, **values}, arrays, sized.records)

    def ordered(self, call: BoundCall, infos: Sequence[Any]) -> list[Any]:
        """The arguments of an executable: arrays (described, in order) and values, as parameters stand."""
        out: list[Any] = [None] * (len(self._array_slots) + len(self._value_slots))
        for k, info in zip(self._array_slots, infos, strict=True):
            out[k] = info
        values = call.values
        for k, name in self._value_slots:
            out[k] = values[name]
        return out

    def _passed(self, without: tuple[int, ...]) -> _Given:
        records = tuple(record for k, record in enumerate(self.records) if k not in without)
        names = {record.name: k for k, record in enumerate(records)}
        arrays = tuple(names[name] for name in self.buffers if name in names)
        scalars = tuple((k, name) for name, k in names.items() if name in self.scalars)
        found = self._given[without] = _Given(records, arrays, scalars)
        return found

    def _sized_by(self, given: _Given, arrays: tuple[Any, ...]) -> Sized:
        """The sizes of these arrays, read anew only where their shapes have not been seen."""
        try:
            key = (given.arrays, tuple([array.shape for array in arrays])) if self._by_shape else None
            found = self._shapes.get(key) if key is not None else None
        except (AttributeError, RuntimeError, TypeError):  # no arrays, or of a kind of its own
            key = found = None
        if found is not None:
            return found
        names = [given.records[k].name for k in given.arrays]
        values = self._read(dict(zip(names, arrays, strict=True)))
        sized = Sized(values, self._records(values))
        if key is not None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            self._shapes[key] = sized
        return sized

    def _read(self, arrays: Mapping[str, Any]) -> dict[str, Number]:
        """The sizes that these arrays have."""
        shapes = {name: self._shape(name, array) for name, array in arrays.items()} if self.sizes else {}
        out: dict[str, Number] = {}
        for var in self.sizes:
            first: tuple[_Source, int] | None = None
            for source in self._sources[var.name]:
                if source.array.name not in shapes:
                    continue
                found = self._size(var, source, shapes, arrays)
                if found is None:
                    continue
                if first is not None and first[1] != found:
                    self._disagree(var, first, (source, found))
                first = first or (source, found)
            if first is None:
                first = self._any_stride(var, arrays)
            if first is None:
                raise ArgumentError(
                    "no array that was given says what {name} is", name=var.name, at=var.place,
                    hint="an array that it is an extent of must be passed",
                )  # fmt: skip
            out[var.name] = self._fits(var, first[1], first[0].what)
        return out

    def _any_stride(self, var: Var, arrays: Mapping[str, Any]) -> tuple[_Source, int] | None:
        """A stride of an extent of 1, which means nothing: any number will do."""
        for source in self._sources[var.name]:
            if source.stride and source.array.name in arrays:
                return source, max(0, describe(arrays[source.array.name]).strides[source.axis])
        return None

    def _shape(self, name: str, array: Any) -> tuple[int, ...]:
        try:
            found = getattr(array, "shape", None)
        except RuntimeError:  # a nested tensor has none; `describe` says so
            found = None
        shape = tuple(found) if found is not None else describe(array, name, self.places.get(name)).shape
        want = self.buffers[name].rank
        if len(shape) != want:
            raise ArgumentError(
                f"{{name}} has {len(shape)} dimension{'s' * (len(shape) != 1)}, the kernel wants {want}",
                at=self.places.get(name), name=name, expected="{want}", found="{got}", got=shape,
                want=self.shown(name),
            )  # fmt: skip
        return shape

    def _size(
        self, var: Var, source: _Source, shapes: Mapping[str, tuple[int, ...]], arrays: Mapping[str, Any]
    ) -> int | None:
        name = source.array.name
        if source.stride:
            info = describe(arrays[name], name, self.places.get(name))
            if shapes[name][source.axis] == 1:
                return None  # the stride of an extent of 1 means nothing
            number = info.strides[source.axis]
        else:
            number = shapes[name][source.axis]
        found, rest = divmod(number - source.constant, source.factor)
        if rest:
            raise ArgumentError(
                "{what} is {number}, which is no {size}", what=source.what, number=number,
                at=self.places.get(name), size=self._shown_size(source), hint=f"{var.name} is a whole number",
            )  # fmt: skip
        return found

    def _shown_size(self, source: _Source) -> str:
        sizes = (source.array.strides or ()) if source.stride else source.array.shape
        size = sizes[source.axis]
        return show(size) if isinstance(size, Expr) else str(size)

    def _disagree(self, var: Var, first: tuple[_Source, int], second: tuple[_Source, int]) -> NoReturn:
        a, b = first[0].array.name, second[0].array.name
        raise ArgumentError(
            "{name} is {x} by {first} and {y} by {second}", at=self.places.get(b), name=var.name, x=first[1],
            y=second[1], first=first[0].what, second=second[0].what,
            also=[(f"{a} has it here", self.places.get(a))] if a != b else [],
            hint="the same name is the same number in one call",
        )  # fmt: skip

    def _fits(self, var: Var, value: int, what: str) -> int:
        if not 0 <= value <= MOST_SIZE:
            raise ArgumentError(
                "{name} is {value} by {what}", name=var.name, value=value, what=what, at=var.place,
                most=MOST_SIZE, expected="a size from 0 to {most}: an index has 32 bits",
            )  # fmt: skip
        return value

    # -- from sizes alone
    @property
    def names(self) -> tuple[str, ...]:
        """The sizes and scalars of a call."""
        return (*(var.name for var in self.sizes), *self.scalars)

    def refuse_unknown(self, sizes: Mapping[str, Any]) -> None:
        """Raise `OptionError`, with the nearest, for a name that calls of this kernel do not have."""
        for name in sizes:
            if name not in self.names:
                close = nearest(name, list(self.names), limit=1)
                raise OptionError(
                    "{function} has no size or scalar {name}", function=self.function.name, name=name,
                    hint=f"did you mean {close[0]}?" if close else "known: " + ", ".join(self.names),
                )  # fmt: skip

    def of(self, sizes: Mapping[str, Any]) -> BoundCall:
        """The call without arrays, for these sizes and scalars by name.

        Raises `OptionError` for an unknown name, `ShapeError` for a size that is missing.
        """
        self.refuse_unknown(sizes)
        missing = [name for name in self.names if name not in sizes]
        if missing:
            raise ShapeError(
                "{function} needs a value for {missing}", function=self.function.name,
                missing=", ".join(missing), at=self.function.place,
                hint="give them ({example}); sizes can be read from arrays, too",
                example=", ".join(f"{name}={1 if name in self.scalars else 1000}" for name in missing),
            )  # fmt: skip
        values: dict[str, Number] = {name: self.scalar(name, sizes[name]) for name in self.scalars}
        for var in self.sizes:
            values[var.name] = self._fits(var, self._integer(var.name, sizes[var.name], var.type), "the call")
        return BoundCall(values, (), self._records(values))

    def _records(self, values: Mapping[str, Number]) -> tuple[ParamRecord, ...]:
        """The arrays' records for these sizes."""
        key = tuple([values[var.name] for var in self.sizes])
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            found = self._known[key] = self._sized(values)
        return found

    def _sized(self, values: Mapping[str, Number]) -> tuple[ParamRecord, ...]:
        out: list[ParamRecord] = []
        for record in self.records:
            if record.is_scalar:
                continue
            array = self.buffers[record.name]
            shape = tuple(size_value(size, values) for size in array.shape)
            strides = tuple(size_value(size, values) for size in array.strides or ())
            out.append(replace(record, shape=shape, strides=strides))
        return tuple(out)

    # -- scalars
    def scalar(self, name: str, value: Any) -> Number:
        """A scalar argument as a Python number of its dtype. Raises `ArgumentError` for what does not fit."""
        dtype = self.scalars[name].type
        if type(cast(object, value)) is float and abs(value) <= self._largest.get(name, -1.0):
            return value  # most calls' scalars: there is nothing to convert or to lose
        if isinstance(cast(object, value), np.ma.MaskedArray):  # `item()` of a masked one is 0
            self._no_scalar(name, dtype, value)
        number = value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value
        if isinstance(number, bool) and dtype.kind != "bool":
            number = int(number)
        if not isinstance(number, (int, float)) or (dtype.kind == "bool" and not isinstance(number, bool)):
            self._no_scalar(name, dtype, value)
        if dtype.is_float:
            return self._float(name, float(number), dtype)
        return number if isinstance(number, bool) else self._integer(name, number, dtype)

    def _float(self, name: str, value: float, dtype: DType) -> float:
        with np.errstate(over="ignore"):
            stored = float(dtype.numpy.type(value))
        if math.isfinite(value) and not math.isfinite(stored):
            self._outside(name, value, dtype)
        return value

    def _integer(self, name: str, value: Any, dtype: DType) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            whole = getattr(value, "__index__", None)
            if whole is None:
                self._no_scalar(name, dtype, value)
            value = whole()
        if not dtype.least <= value <= dtype.most:
            self._outside(name, value, dtype)
        return int(value)

    def _no_scalar(self, name: str, dtype: DType, value: object) -> NoReturn:
        address = hasattr(value, "data_ptr") and dtype.is_integer and dtype.bits == 64
        raise ArgumentError(
            "{name} is a scalar of dtype {dtype}", at=self.places.get(name), name=name, dtype=dtype,
            found="{value!r}" if not hasattr(value, "shape") else "an array", value=value,
            expected=_EXPECTED.get(dtype.kind, "a whole number"),
            hint=f"an address is {name}.data_ptr()" if address else "",
        )  # fmt: skip

    def _outside(self, name: str, value: float, dtype: DType) -> NoReturn:
        raise ArgumentError(
            "{name} is {value}, which {dtype} cannot hold", at=self.places.get(name), name=name, value=value,
            dtype=dtype,
        )  # fmt: skip

    def shown(self, name: str) -> str:
        """The shape of a parameter as its signature has it."""
        return next(f"({', '.join(map(str, r.shape))})" for r in self.records if r.name == name)


def shown_param(record: ParamRecord) -> str:
    """`A: float16[m, 1024]`, or `n: int32` for a scalar."""
    return f"{record.name}: {record.dtype}" + (
        "" if record.is_scalar else f"[{', '.join(map(str, record.shape))}]"
    )
