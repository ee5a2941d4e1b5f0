"""What a kernel said while it ran: the arrays that its call brings for it, and how a person reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LaunchError
from ..ir.dtypes import dtype_of
from ..ir.sizes import size_value
from ..language.closing.printed_rows import FIRST, ITERATIONS, Rows, Saying, Speech
from .calls.host_arrays import empty_for, empty_like, host_copy

if TYPE_CHECKING:
    from .kernel import Kernel

# Records of one call that are shown, and elements of one that are shown as they are.
MOST_RECORDS, MOST_ELEMENTS = 64, 200


@dataclass(frozen=True)
class Said:
    """One record: which print, in which block (x first), its values, and which iterations `reached` it."""

    site: Saying
    block: tuple[int, ...]
    values: np.ndarray[Any, Any]
    reached: np.ndarray[Any, Any] | None = None


def empty_rows(kernel: Kernel, arrays: Sequence[Any]) -> list[Any]:
    """Arrays of zeros for what one call of a kernel says, where its own arrays lie."""
    out: list[Any] = []
    for buffer in kernel.printed.arrays if kernel.printed is not None else ():
        shape, dtype = buffer.extents, buffer.dtype.name
        device = kernel.compilation.manifest.device
        array = empty_like(arrays[0], shape, dtype) if arrays else empty_for(device, shape, dtype)
        array[...] = 0
        out.append(array)
    return out


def with_rows(kernel: Kernel, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The arrays that a person gave, with those for what the kernel says; none where none were given."""
    return (*arrays, *empty_rows(kernel, arrays)) if arrays else ()


def tell(kernel: Kernel, arrays: Sequence[Any]) -> None:
    """Print what a call has printed, then raise `LaunchError` for an assertion that failed."""
    printed = kernel.printed
    assert printed is not None  # asked of a kernel that speaks
    values = kernel.calls.described(arrays)[0].values
    kept = [host_copy(arrays[k]) for k in kernel.hidden]
    for k, rows in enumerate(printed.rows):
        for line in _lines(printed, rows, kept[2 * k], kept[2 * k + 1], values):
            print(line)
    if printed.failed is not None:
        raise_failed(printed, kept[2 * len(printed.rows)], values)


def refuse_failed(kernel: Kernel, arrays: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Raise `LaunchError` for an assertion that failed in a call on these arrays."""
    printed = kernel.printed
    if printed is not None and printed.failed is not None:
        raise_failed(printed, arrays[printed.failed.name], values)


def raise_failed(printed: Speech, failed: Any, values: Mapping[str, Any]) -> None:
    """Raise `LaunchError` at the line of the first assertion of the text that failed."""
    for site, mark in zip(printed.sites, np.asarray(failed).tolist(), strict=True):
        if not mark:
            continue
        row, iteration = divmod(FIRST - mark, ITERATIONS)
        where = [f"block {_block(row, _sizes(site.grid, values))}"]
        if site.counts:
            where.append(site.at(_index_of(iteration, site.counts)))
        raise LaunchError(
            "the assertion failed: {said}" if site.message else "the assertion failed", at=site.place,
            said=site.message, condition=site.what, expected="{condition}", found="{where}",
            where=", ".join(where),
        )  # fmt: skip


def records(
    printed: Speech, rows: Rows, integers: Any, floats: Any, values: Mapping[str, Any]
) -> Iterator[Said]:
    """What one array of rows holds, block by block, as far as it was kept."""
    grid = _sizes(rows.grid, values)
    for row in np.flatnonzero(integers[:, 0]).tolist():
        end, place = min(int(integers[row, 0]), integers.shape[1]), 1
        while place + 2 <= end:
            number, count = (int(word) for word in integers[row, place : place + 2])
            site = printed.sites[number - 1]
            each = 2 if site.counts else 1
            stop = place + 2 + each * count
            if stop > end:
                break
            source = floats if site.dtype and dtype_of(site.dtype).is_float else integers
            found, block = source[row, place + 2 : stop], _block(row, grid)
            if site.counts:
                reached = integers[row, place + 2 : stop : 2] != 0
                yield Said(site, block, found[1::2].reshape(site.counts), reached.reshape(site.counts))
            else:
                yield Said(site, block, found.reshape(site.shape or (count,)))
            place = stop


def _lines(
    printed: Speech, rows: Rows, integers: Any, floats: Any, values: Mapping[str, Any]
) -> Iterator[str]:
    shown = 0
    for said in records(printed, rows, integers, floats, values):
        shown += 1
        if shown <= MOST_RECORDS:
            yield _text(said)
    if shown > MOST_RECORDS:
        yield f"... {shown - MOST_RECORDS} more prints of this call are not shown"
    full = int(np.count_nonzero(integers[:, 0] > integers.shape[1]))
    if full:
        yield f"... {full} blocks printed more than the {integers.shape[1]} numbers that are kept of each"
    blocks = int(np.prod(_sizes(rows.grid, values)))
    if blocks > len(integers):
        yield f"... what blocks from number {len(integers)} of {blocks} on print is not kept"


def _text(said: Said) -> str:
    site = said.site
    head = f"block {said.block}: " + (f"{site.message} " if site.message and site.what else site.message)
    if not site.what:
        return head
    if said.reached is not None:
        return head + _of_iterations(said)
    if not site.shape:
        return f"{head}{site.what} = {_narrow(said.values, site.dtype)[0]!s}"
    # Narrow floats have few digits: more would be those of the wide ones that they travel as.
    return f"{head}{site.what} {list(site.shape)} {site.dtype}\n{_array(_narrow(said.values, site.dtype))}"


def _of_iterations(said: Said) -> str:
    site, reached = said.site, said.reached
    assert reached is not None
    names, values = ", ".join(site.loops), _narrow(said.values, site.dtype)
    if reached.all() and values.size > 1:
        return f"{site.what} at {names} of {list(site.counts)} {site.dtype}\n{_array(values)}"
    indices = np.argwhere(reached)
    parts = [f"{site.what} = {values[tuple(index)]!s} at {site.at(index)}" for index in indices[:8]]
    more = [f"... and at {len(indices) - 8} more"] if len(indices) > 8 else []
    return "\n  ".join([*parts, *more]) if parts else f"{site.what}: no iteration reached it"


def _narrow(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    kind = dtype_of(dtype)
    return values.astype(np.bool_) if dtype == "bool" else values.astype(kind.numpy)


def _array(values: np.ndarray[Any, Any]) -> str:
    wide = values.astype(np.float32) if values.dtype.kind == "V" or values.dtype.itemsize < 2 else values
    return np.array2string(wide, threshold=MOST_ELEMENTS, edgeitems=3, separator=", ")


def _sizes(grid: Sequence[Any], values: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(size_value(count, values)) for count in grid)


def _index_of(number: int, counts: tuple[int, ...]) -> tuple[int, ...]:
    """The index of an element by its number, the last dimension fastest."""
    return _block(number, counts[::-1])[::-1]


def _block(row: int, grid: tuple[int, ...]) -> tuple[int, ...]:
    out: list[int] = []
    for count in grid:
        row, place = divmod(row, count)
        out.append(place)
    return tuple(out)
