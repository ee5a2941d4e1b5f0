"""What the accesses of a site cost under a mapping, in issue cycles of a warp, counted over coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod
from typing import Any

import numpy as np

from ...ir import Expr, Var, walk
from ...ir.arith import evaluate, linear
from ...ir.expr_walks import mentions
from ...layout import Fragment, coalescing
from ...machine import Machine
from .conversions import OPERATION as CONVERT
from .conversions import SHUFFLE
from .sites import Site, SiteAccess, vector_of

# Instructions of an access that are looked at; they stand for all that it issues.
LOOKED_AT = 4
# A multiprocessor exchanges 64 bytes a cycle with the cache behind its own.
SECTORS_A_PASS = 2
# What stands for a size that a launch brings: rows are far apart.
FAR = 4096


def one_pass(machine: Machine) -> float:
    """The issue cycles in which the banks of a multiprocessor's own memory are gone through once."""
    return next((row.cost for row in machine.instructions_for(CONVERT) if row.name == SHUFFLE), 1.0)


def site_cycles(site: Site, box: Fragment, machine: Machine, divisors: Mapping[str, int]) -> float:
    """All accesses of a site to memory: each instruction, and the passes that it takes."""
    return sum(_access_cycles(site, access, box, machine, divisors) for access in site.accesses)


def access_width(
    site: Site, access: SiteAccess, box: Fragment, machine: Machine, divisors: Mapping[str, int]
) -> int:
    """The elements of one access: 0 where it does not move along the last dimension."""
    widest = vector_of(access, site.vars[-1], max(machine.vector_bytes), divisors)
    return gcd(widest, box.contiguous_values(len(box.extents) - 1)) if widest else 0


def _access_cycles(
    site: Site, access: SiteAccess, box: Fragment, machine: Machine, divisors: Mapping[str, int]
) -> float:
    width = access_width(site, access, box, machine, divisors)
    last = len(box.extents) - 1
    # What does not move along a row is read once for all that a thread has of the row.
    along = prod(count for count, dim, _ in box.value if dim == last) if width == 0 else max(1, width)
    count = box.values // along
    size = max(1, width) * access.buffer.dtype.bits
    passes = _passes(site, access, box, along, max(1, size // 8), machine)
    return count * (1.0 + one_pass(machine) * passes)


def _passes(
    site: Site, access: SiteAccess, box: Fragment, step: int, width_bytes: int, machine: Machine
) -> float:
    """Passes of an instruction: one a line that it touches, and one for each two sectors.

    Of shared memory they are wavefronts without conflicts.
    """
    lanes = np.arange(min(machine.warp, box.threads))
    line = machine.shared.banks * machine.shared.bank_bytes
    if access.buffer.scope != "global":
        return max(1.0, len(lanes) * width_bytes / line)
    values = np.arange(0, box.values, step)[:LOOKED_AT]
    where = dict(zip(site.vars, box.coordinates(lanes[None, :], values[:, None]), strict=True))
    offset: Any = 0
    for position, stride in zip(access.index, access.buffer.element_strides, strict=True):
        offset = offset + _place(position, where) * _known(stride)
    first = np.broadcast_to(offset, (len(values), len(lanes))) * access.buffer.dtype.bits // 8
    lines = coalescing(first, width_bytes, line).sectors
    sectors = coalescing(first, width_bytes, machine.transaction_bytes).sectors
    return float(np.maximum(lines, sectors / SECTORS_A_PASS).mean())


def _place(position: Expr, where: Mapping[str, Any]) -> Any:
    """How an index moves with the coordinates: the terms that they are in, wherever the tile starts."""
    moving: Any = 0
    for term, factor in linear(position).terms:
        if any(mentions(term, name) for name in where):
            moving = moving + factor * evaluate(term, where)
    return moving


def _known(stride: int | Expr) -> int:
    if isinstance(stride, int):
        return stride
    return int(evaluate(stride, {part.name: FAR for part in walk(stride) if isinstance(part, Var)}))
