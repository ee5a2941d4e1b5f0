"""Comparing what a target returned with the reference, element by element, against error bounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, TileError
from ..ir import DType, Function, dtype_of
from ..language.meanings.inexact import limits
from ..layout import Fragment
from .bounds import Bounded, run_bounded
from .boxes import position
from .error_map import (
    INFINITE,
    NOT_A_NUMBER,
    NOT_COMPARED,
    UNWRITTEN,
    ErrorMap,
    digits_of,
    error_map,
)
from .heat import HeatMap, heat_map
from .numbers import NothingWritten, poison_value
from .run import run_reference

WORST = 8
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class CheckError(TileError):
    """A result is outside its error bounds."""

    title = "wrong result"


@dataclass(frozen=True)
class WorstElement:
    """One element: where, what came, the reference, the absolute error, and the bound there.

    `relative` is the error as a part of the reference's magnitude, `ulps` in steps of the dtype at the
    reference: the distance from it to the next number that the dtype has.
    """

    index: tuple[int, ...]
    got: float
    expected: float
    error: float
    bound: float
    relative: float = 0.0
    ulps: float = 0.0


@dataclass(frozen=True)
class OutputReport:
    """What a check found in one array; plain data.

    `checked` of `total` elements were compared: all, unless only some blocks were asked for.
    `outside` counts elements whose error exceeds their bound, `unwritten` those that still hold
    poison where the kernel stores and those where it never does, `unbounded` those of which any value
    passes (bound infinity). An element that the kernel never stores is outside too where the call itself
    makes the array; one that was passed in keeps there what it held. `error` is the largest error
    with `bound` at that element, `ratio` the largest error as a part of its bound. `worst` are the
    elements with the largest ratios, worst first. `not_finite` counts wrong elements that are NaN or
    infinite. `map` says where the errors are, by tiles, where there is one or an unwritten element.
    `any_order` counts elements that were compared in whichever order they came, because atomics decide it.
    `heat` is the largest ratio in each of a grid of patches of `patch` elements a side.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    total: int
    checked: int
    outside: int
    unwritten: int
    unbounded: int
    error: float
    bound: float
    ratio: float
    worst: tuple[WorstElement, ...] = ()
    not_finite: int = 0
    heat: HeatMap = ()
    patch: tuple[int, int] = (1, 1)
    any_order: int = 0
    map: ErrorMap | None = None

    @property
    def ok(self) -> bool:
        return self.outside == 0


@dataclass(frozen=True)
class CheckReport:
    """The check of all outputs; `how` says where the bounds come from.

    `unfilled` is, of a wrong result, where the kernel reads elements that nothing has written; else empty.
    """

    outputs: tuple[OutputReport, ...]
    how: str = "running error bounds of the reference; no element is forgiven"
    unfilled: str = ""

    @property
    def ok(self) -> bool:
        """Whether every element of every output is within its bound."""
        return all(each.ok for each in self.outputs)

    @property
    def largest(self) -> OutputReport:
        """The output with the largest error as a part of its bound. `ValueError` without outputs."""
        return max(self.outputs, key=lambda output: output.ratio)

    @property
    def verdict(self) -> str:
        """What a check found, in a few words."""
        wrong = sum(each.outside for each in self.outputs)
        found = "all within bounds" if self.ok else f"wrong result: {wrong} elements outside their bound"
        return found + (f", {self.unwritten} never written" if self.unwritten else "")

    @property
    def unwritten(self) -> int:
        """How many elements of all outputs were never written."""
        return sum(each.unwritten for each in self.outputs)

    def output(self, name: str) -> OutputReport:
        """The report of one output. `KeyError` when there is none of that name."""
        for output in self.outputs:
            if output.name == name:
                return output
        raise KeyError(name)

    def __str__(self) -> str:
        head = ("output", "checked", "outside", "unwritten", "largest error", "bound there", "worst ratio")
        rows: list[tuple[str, ...]] = [head]
        for output in self.outputs:
            shape = " x ".join(map(str, output.shape))
            counts = (str(output.checked), str(output.outside), str(output.unwritten))
            sizes = tuple(f"{x:.3g}" for x in (output.error, output.bound, output.ratio))
            rows.append((f"{output.name} ({shape} {output.dtype})", *counts, *sizes))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines: list[str] = []
        for row in rows:
            numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("  ".join([row[0].ljust(widths[0]), *numbers]))
        for output in self.outputs:
            if not output.ok:
                lines += ["", *_worst_lines(output)]
            if output.unwritten:
                lines.append(f"{output.name}: {output.unwritten} elements were never written")
            if output.unbounded:
                lines.append(
                    f"{output.name}: {output.unbounded} elements have no bound and were not compared"
                )
            if output.any_order:
                lines.append(
                    f"{output.name}: {output.any_order} elements come in the order of atomics, and were"
                    " compared in any order"
                )
        if self.unfilled:
            lines += [
                "",
                f"What is expected is not settled: the kernel reads what it never wrote.\n{self.unfilled}",
            ]
        lines.append(("all within bounds" if self.ok else "WRONG") + f" ({self.how})")
        return "\n".join(lines)

    def raise_if_wrong(self) -> None:
        """Raise `CheckError` with the table when an element is outside its bound."""
        if self.ok:
            return
        wrong = [each for each in self.outputs if not each.ok]
        raise CheckError(
            "{count} of {total} elements of {names} are outside their error bounds\n{table}",
            count=sum(each.outside for each in wrong), total=sum(each.checked for each in wrong),
            names=", ".join(each.name for each in wrong), table=str(self),
        )  # fmt: skip


def _worst_lines(report: OutputReport) -> list[str]:
    lines = [f"{report.name}, worst elements:"]
    for element in report.worst:
        where = ", ".join(map(str, element.index))
        lines.append(
            f"  [{where}]: got {element.got:.9g}, expected {element.expected:.9g}, "
            f"error {element.error:.3g}, bound {element.bound:.3g}"
        )
    return lines


def poison(array: NDArray[Any]) -> None:
    """Fill an array with what no kernel writes: a NaN with a payload, or bytes 0xA5 for integers."""
    array[...] = poison_value(dtype_of(array.dtype))


def poisoned(array: NDArray[Any], dtype: DType) -> NDArray[np.bool_]:
    """Where an array still holds poison, bit by bit. Bools and dtypes of 4 bits have no poison."""
    if dtype.kind == "bool" or dtype.per_byte > 1:
        return np.zeros(array.shape, np.bool_)
    bits: Any = _BITS[dtype.numpy.itemsize]
    same: Any = np.ascontiguousarray(array).view(bits) == np.asarray(poison_value(dtype)).view(bits)
    return same.reshape(array.shape)


def compare(got: NDArray[Any], bounded: Bounded, dtype: DType, name: str = "result") -> CheckReport:
    """Check one array: every element must satisfy |got - value| <= error; NaN and infinities must match.

    `got` has the shape of the reference and the NumPy type of `dtype`. Raises `ArgumentError` else.
    """
    return CheckReport((compare_output(got, bounded, dtype, name),))


def compare_output(
    got: NDArray[Any], bounded: Bounded, dtype: DType, name: str, *, fresh: bool = False,
    fragment: Fragment | None = None,
) -> OutputReport:  # fmt: skip
    """`compare` for one of several outputs. A `fresh` one, made by the call, must be stored everywhere.

    `fragment` says which threads of a block write its tile, for the words of what is wrong.
    """
    if got.shape != bounded.value.shape or got.dtype != dtype.numpy:
        raise ArgumentError(
            "{name} cannot be compared", name=name, expected="{a} of {b}", a=bounded.value.shape, b=dtype,
            found="{c} of {d}", c=got.shape, d=got.dtype,
        )  # fmt: skip
    bounded = _in_any_order(got, bounded)
    a: Any = got.astype(np.float64)
    b: Any = bounded.value.astype(np.float64)
    limit = bounded.error
    with np.errstate(all="ignore"):
        if dtype.is_float:
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            error: Any = np.where(same, 0.0, np.abs(a - b))
            error = np.where(np.isnan(error), np.inf, error)
        else:
            # Integers are compared as such: doubles near 2**63 fall together.
            same = got == bounded.value
            error = np.where(same, 0.0, np.maximum(np.abs(a - b), 1.0))
        if bounded.known is not None:
            error = np.where(bounded.known, error, 0.0)
        never: Any = np.False_ if bounded.stored is None or bounded.known is not None else ~bounded.stored
        if fresh:
            error = np.where(never, np.inf, error)
        outside = error > limit
        ratio: Any = np.where(limit > 0, error / limit, np.where(error > 0, np.inf, 0.0))
        ratio = np.where(np.isposinf(limit), 0.0, ratio)
    checked = int(a.size if bounded.known is None else np.count_nonzero(bounded.known))
    unwritten = (poisoned(got, dtype) & outside) | never
    top = int(np.argmax(np.where(np.isposinf(limit), 0.0, error))) if error.size else 0
    return OutputReport(
        name, dtype.name, tuple(got.shape), int(a.size), checked, int(np.count_nonzero(outside)),
        int(np.count_nonzero(unwritten)), int(np.count_nonzero(np.isposinf(limit))),
        float(error.flat[top]) if a.size else 0.0, float(limit.flat[top]) if a.size else 0.0,
        float(ratio.max(initial=0.0)), _worst(a, b, error, limit, ratio, dtype),
        int(np.count_nonzero(~np.isfinite(a) & outside)), *heat_map(ratio),
        0 if bounded.either is None else int(np.count_nonzero(bounded.either)),
        _mapped(a, ratio, outside, unwritten, bounded, fragment),
    )  # fmt: skip


def _mapped(
    a: Any, ratio: Any, outside: Any, unwritten: Any, bounded: Bounded, fragment: Fragment | None
) -> ErrorMap | None:
    """The map of an output that is wrong somewhere, or was not written."""
    if not (np.any(outside) or np.any(unwritten)):
        return None
    digits: Any = digits_of(ratio)
    digits[outside & np.isinf(a)] = INFINITE
    digits[outside & np.isnan(a)] = NOT_A_NUMBER
    digits[np.broadcast_to(unwritten, digits.shape)] = UNWRITTEN
    if bounded.known is not None:
        digits[~bounded.known] = NOT_COMPARED
    return error_map(ratio, digits, bounded.blocks, fragment)


def _in_any_order(got: Any, bounded: Bounded) -> Bounded:
    """The reference with what atomics leave open as it came: the least for the least, and so on."""
    if bounded.either is None:
        return bounded
    places: Any = np.flatnonzero(bounded.either)
    mine, theirs = np.argsort(got.flat[places]), np.argsort(bounded.value.flat[places])
    value, error = bounded.value.copy(), bounded.error.copy()
    value.flat[places[mine]] = bounded.value.flat[places[theirs]]
    error.flat[places[mine]] = bounded.error.flat[places[theirs]]
    return replace(bounded, value=value, error=error)


def _worst(a: Any, b: Any, error: Any, limit: Any, ratio: Any, dtype: DType) -> tuple[WorstElement, ...]:
    flat = ratio.reshape(-1)
    count = min(WORST, flat.size)
    if not count:
        return ()
    picked = np.argpartition(flat, flat.size - count)[flat.size - count :]
    order = picked[np.lexsort((-error.reshape(-1)[picked], -flat[picked]))]
    worst: list[WorstElement] = []
    for spot in order.tolist():
        numbers = [float(each.flat[spot]) for each in (a, b, error, limit)]
        got, expected, off, bound = numbers
        relative = off / abs(expected) if expected else (np.inf if off else 0.0)
        steps = off / step_at(expected, dtype) if off else 0.0
        worst.append(
            WorstElement(position(spot, ratio.shape), got, expected, off, bound, float(relative), steps)
        )
    return tuple(worst)


def step_at(value: float, dtype: DType) -> float:
    """The distance from a value to the next greater magnitude that a dtype has; of integers 1.

    Of what the dtype cannot hold it is that at its greatest number, and of NaN infinity.
    """
    if not dtype.is_float:
        return 1.0
    known = limits(dtype)
    if np.isnan(value):
        return float(np.inf)
    size = min(max(abs(value), known.normal), known.overflow * (1 - dtype.unit_roundoff))
    return max(known.subnormal, float(2.0 ** np.floor(np.log2(size))) * 2 * dtype.unit_roundoff)


def check_function(
    function: Function, before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]], *,
    fresh: Collection[str] = (), blocks: int | None = None, seed: int = 0,
    threads: Mapping[str, Fragment] | None = None,
) -> CheckReport:  # fmt: skip
    """Check what a target made of `before`: `after` holds each written array as it left it.

    `before` is what the target was given (outputs poisoned), one array a parameter of the function.
    `fresh` names those that the call itself makes: no element of them may be left out.
    With `blocks` only what that many blocks store is compared, for results too large to redo whole.
    `threads` has the fragments by which threads write the outputs (`analysis.writers`), where they are known.
    """
    bounded = run_bounded(function, before, blocks=blocks, seed=seed)
    dtypes = {each.name: each.dtype for each in function.arrays}
    for name in bounded:
        if name not in after:
            raise ArgumentError("the output {name} is missing", name=name)
    reports = [
        compare_output(
            after[name], each, dtypes[name], name, fresh=name in fresh, fragment=(threads or {}).get(name)
        )
        for name, each in bounded.items()
    ]
    how = CheckReport(()).how
    if any(each.known is not None for each in bounded.values()):
        how += f"; what {blocks} blocks store, picked by seed {seed}"
    unfilled = ""
    if blocks is None and not all(each.ok for each in reports):
        unfilled = _unfilled(function, before)
    return CheckReport(tuple(reports), how, unfilled)


def _unfilled(function: Function, before: Mapping[str, NDArray[Any]]) -> str:
    """Where a kernel reads what nothing has written, as the error that says so."""
    try:
        run_reference(function, before, uninitialised="raise")
    except NothingWritten as error:
        return str(error)
    except TileError:  # another fault, which the kernel's own run has told
        pass
    return ""
