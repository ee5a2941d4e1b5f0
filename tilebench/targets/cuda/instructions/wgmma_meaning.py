"""What products of warp groups do in the simulator: they read shared memory where their descriptors say.

Addresses are worked out from the descriptors alone, so that a layout and a descriptor that do not fit each
other give wrong numbers or a refusal here as they would on a card. A product's operands and its sums are in
flight until its group has been waited for; products that follow each other on the same sums need no wait.
Sums are formed as `tensor_sums` says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import Region
from ....language.lowered.settle import Settle
from ....layout import Fragment
from ....simulator.asynchrony import Hold, told
from ....simulator.lanes import Lanes, elements
from ....simulator.refusal import refuse
from ....simulator.state import Mask
from ..warp_groups import GROUP, ROWS, WGMMA, MatrixForm, WgmmaShape, shape_of
from .tensor_sums import product_sums
from .wgmma import Wgmma, WgmmaCommit, WgmmaFence, WgmmaWait

# Bytes that an address in a descriptor counts in.
_UNIT = 16


def wgmma(lanes: Lanes, statement: Wgmma, mask: Mask) -> None:
    """The product of each warp group."""
    _whole_groups(lanes, statement, mask)
    shape = _shape(statement)
    who = lanes.active(mask).reshape(-1, GROUP)
    _check_fence(lanes, statement, mask)
    holds: list[Hold] = []
    a = _operand(lanes, statement, statement.a, statement.a_form, (ROWS, shape), who, mask, holds)
    b = _operand(lanes, statement, statement.b, statement.b_form, (shape.n, shape), who, mask, holds)
    c, number = _sums(lanes, statement, shape, who, mask)
    dtype = statement.a.buffer.dtype
    total = product_sums(a, b.swapaxes(1, 2), c, dtype)
    own = lanes.own(statement.c.buffer, statement.c)
    parts = total[(slice(None), *shape.c.all_coordinates)]
    for k in range(parts.shape[2]):
        own.values[number + k, who] = parts[:, :, k]
    holds.append(Hold(own, lanes.register_cells(number, parts.shape[2])[lanes.active(mask)], writes=True))
    lanes.hold(WGMMA, statement, mask, holds)


def wgmma_fence(lanes: Lanes, statement: WgmmaFence, mask: Mask) -> None:
    """What the threads wrote to registers stands for products from here on."""
    _whole_groups(lanes, statement, mask)
    lanes.settle_registers(mask)


def wgmma_commit(lanes: Lanes, statement: WgmmaCommit, mask: Mask) -> None:
    """The warp groups' products are closed as a group."""
    _whole_groups(lanes, statement, mask)
    lanes.commit(WGMMA, mask)


def wgmma_wait(lanes: Lanes, statement: WgmmaWait, mask: Mask) -> None:
    """The warp groups wait for their own products."""
    _whole_groups(lanes, statement, mask)
    lanes.wait(WGMMA, statement.pending, statement, mask)


def settle(lanes: Lanes, statement: Settle, mask: Mask) -> None:
    """Where registers are computed says nothing of what they hold."""
    lanes.read(statement.what, mask)


def _whole_groups(lanes: Lanes, statement: Any, mask: Mask) -> None:
    active = lanes.full(mask)
    if lanes.threads % GROUP == 0:
        counts = active.reshape(-1, GROUP).sum(axis=1)
        if ((counts == 0) | (counts == GROUP)).all():
            return
    refuse(
        "not all threads of a warp group take part in T.{word}", statement, word=statement.word, n=GROUP,
        expected="all {n} threads of each warp group",
    )  # fmt: skip


def _shape(statement: Wgmma) -> WgmmaShape:
    shape = shape_of(statement.shape, statement.a.buffer.dtype.bits)
    if shape is None or elements(statement.c) != shape.c.values:
        refuse(
            "T.wgmma has no shape {shape} for these operands", statement, shape=statement.shape,
            expected="m64nNk of 32 bytes, N a multiple of 8 up to 256, and N / 2 registers of sums",
        )  # fmt: skip
    return shape


def _check_fence(lanes: Lanes, statement: Wgmma, mask: Mask) -> None:
    """Registers that threads have written stand for an instruction only behind a fence."""
    for region in (statement.c, statement.a):
        if region.buffer.scope != "shared" and not lanes.is_settled(region.buffer, region, mask):
            refuse(
                "{name} was written after the last T.wgmma_fence, and T.wgmma uses it", statement,
                name=region.buffer.name, hint="put T.wgmma_fence() in front of the products",
            )  # fmt: skip


def _operand(
    lanes: Lanes, statement: Wgmma, region: Region, form: MatrixForm | None,
    extents: tuple[int, WgmmaShape], who: Any, mask: Mask, holds: list[Hold],
) -> Any:  # fmt: skip
    """A tile of each group, (groups, rows or columns, k)."""
    others, shape = extents
    if form is None:
        values = lanes.read(region, mask)
        number = lanes.register_of(region.buffer, region.start, mask, region, len(values))
        cells = lanes.register_cells(number, len(values))[lanes.active(mask)]
        holds.append(Hold(lanes.own(region.buffer, region), cells, writes=False))
        return _gathered(values[:, who], shape.a)
    if region.buffer.scope != "shared":
        refuse("{name} is no shared memory, and a descriptor names it", statement, name=region.buffer.name)
    start = _uniform(lanes, statement, region, who, mask)
    dtype = region.buffer.dtype
    base = lanes.shared_base.get(region.buffer.name, 0) // 8
    size = dtype.bits // 8
    first = base + start * size
    if (first % _UNIT).any():
        refuse(
            "T.wgmma reads {name} from an address that 16 does not divide", statement, name=region.buffer.name
        )
    places = form.bytes_of(first, others, shape.k, size)
    cells, values = lanes.read_by_proxy(statement, region.buffer, places, who, mask)
    holds.append(Hold(lanes.shared, cells, writes=False))
    return values


def _uniform(lanes: Lanes, statement: Wgmma, region: Region, who: Any, mask: Mask) -> Any:
    """Where each group's operand starts, in elements."""
    start = lanes.wide(lanes.value(region.start[-1], mask), np.int64)[who]
    if (start != start[:, :1]).any():
        refuse(
            "the threads of a warp group name different parts of {name}", statement, name=region.buffer.name
        )
    return start[:, 0]


def _sums(lanes: Lanes, statement: Wgmma, shape: WgmmaShape, who: Any, mask: Mask) -> tuple[Any, int]:
    """The sums so far, (groups, 64, n), and the number of their first register."""
    region = statement.c
    number = lanes.register_of(region.buffer, region.start, mask, region, shape.c.values)
    if not isinstance(number, int):
        number = int(np.unique(number[lanes.active(mask)])[0])
    own = lanes.own(region.buffer, region)
    _check_chain(own, lanes.register_cells(number, shape.c.values)[lanes.active(mask)], statement)
    values = own.values[number : number + shape.c.values][:, who]
    clear = lanes.wide(lanes.value(statement.clear, mask), np.bool_)[who][:, 0]
    kept = np.where(clear[None, :, None], np.zeros((), values.dtype), values)
    return _gathered(kept, shape.c), number


def _check_chain(own: Any, cells: Any, statement: Wgmma) -> None:
    """What is in flight on the sums has to be products of the same shape, or nothing; none may read them."""
    for operation in own.flight.users(cells):
        refuse(
            "{name} is written while {by} still reads it", statement, name=statement.c.buffer.name,
            by=told(operation), hint="wait for its group first: T.wgmma_wait, or sum in other registers",
        )  # fmt: skip
    for operation in own.flight.holders(cells):
        if not isinstance(operation, Wgmma) or operation.shape != statement.shape:
            refuse(
                "{name} is used while {by} is still at work on it", statement, name=statement.c.buffer.name,
                by=told(operation), hint="wait for its group first: T.wgmma_wait",
            )  # fmt: skip


def _gathered(values: Any, fragment: Fragment) -> Any:
    """(values, groups, threads) to (groups, rows, columns)."""
    tile = np.empty((values.shape[1], *fragment.extents), values.dtype)
    tile[(slice(None), *fragment.all_coordinates)] = values.transpose(1, 2, 0)
    return tile
