"""Why an access to memory is narrower than the widest that a machine has, in words.

Asked of the same figures that the passes take the width from: the strides and starts of the array, what a
thread has side by side, what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

from ..ir import Function, Stmt, walk
from ..ir.arith import linear
from ..ir.expr import Var
from ..ir.expr_walks import mentions
from ..language.memory import AllocShared
from ..language.scopes import entry_facts
from ..language.structure import Parallel
from ..layout import Fragment, SharedLayout
from ..machine import Machine
from ..passes.analysis.sites import Site, SiteAccess, row_offset, sites_of
from .tile_layouts import line_of


def narrow_reasons(function: Function, machine: Machine) -> dict[tuple[int, str, bool], str]:
    """The reason by (line, buffer, whether it is written), of one launch in the stage `laid_out`.

    Nothing for accesses of the widest kind, and for those of instructions that name their own.
    """
    divisors = entry_facts(function).divisors
    tiles = [node for node in walk(function) if isinstance(node, AllocShared)]
    shared = {node.buffer.name: node.layout for node in tiles if node.layout is not None}
    found: dict[tuple[int, str, bool], str] = {}
    for site in sites_of(function):
        box: Fragment | None = getattr(site.node, "map", None)
        if box is None or not site.extents:
            continue
        for access in site.accesses:
            reason = why_narrow(site, access, box, machine, divisors, shared.get(access.buffer.name))
            # Code of a loop stands at its statements' lines, which a copy has none of.
            for line in {line_of(part) for part in walk(site.node) if isinstance(part, Stmt)}:
                if reason:
                    found.setdefault((line, access.buffer.name, access.written), reason)
    return found


def why_narrow(
    site: Site, access: SiteAccess, box: Fragment, machine: Machine, divisors: Mapping[str, int],
    shared: SharedLayout | None = None,
) -> str:  # fmt: skip
    """Why this access is not as wide as the machine's widest; empty where nothing keeps it from that."""
    buffer, last = access.buffer, len(access.index) - 1
    widest = max(machine.vector_bytes)
    most = max(1, buffer.dtype.elements_in(widest))
    var = site.vars[-1]
    moving = [k for k, position in enumerate(access.index) if mentions(position, var)]
    if not moving:
        return "neighbours along the last index are one element of it"
    if moving != [last] or buffer.element_strides[last] != 1:
        return f"neighbours along the last index do not lie side by side in {buffer.name}"
    if linear(access.index[last]).coefficient(Var(var)) != 1:
        return f"the last index of {buffer.name} does not move by one"
    limits = list(_limits(site, access, box, widest, divisors, shared))
    least, reason = min(limits, key=lambda limit: limit[0])
    return reason if least < most else ""


def _limits(
    site: Site, access: SiteAccess, box: Fragment, widest: int, divisors: Mapping[str, int],
    shared: SharedLayout | None,
) -> Iterable[tuple[int, str]]:  # fmt: skip
    """The most elements that each circumstance leaves an access, in words; the first of equals counts."""
    buffer, var = access.buffer, site.vars[-1]
    most = max(1, buffer.dtype.elements_in(widest))
    asked = site.node.coalesced_width if isinstance(site.node, Parallel) else None
    if asked:
        yield asked, f"coalesced_width={asked} asks for it"
    if buffer.scope == "global":
        start = f"{buffer.name} begins at a multiple of {buffer.align} bytes"
        yield buffer.dtype.elements_in(buffer.align), start
        unit = gcd(most, row_offset(buffer, access.index, var).divisor(divisors))
        size = unit * buffer.dtype.bits / 8
        yield unit, f"rows of {buffer.name} begin at multiples of {size:g} bytes"
    elif shared is not None:
        yield gcd(most, shared.vector), f"the layout of {buffer.name} keeps {shared.vector} elements together"
    row = site.extents[-1]
    yield gcd(most, row), f"a row of {row} elements is no multiple of {widest} bytes"
    have = box.contiguous_values(len(box.extents) - 1)
    yield gcd(have, most), f"a thread has {have} neighbour{'s' * (have != 1)} of a row"
