"""Whether the width of an access that a stage states is one that the statement can have."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from ...errors import LayoutError
from ...ir import Stmt
from ...language.copy import Copy
from ...language.lowered.decisions import Instr
from ...language.structure import Parallel
from ...layout import Fragment
from ...machine import Machine
from ..analysis.sites import Site, site_of, site_vector, unaligned_vector
from .emitter import Emitter


def check_vector(emitter: Emitter, loop: Parallel, mapping: Fragment, vector: int) -> None:
    """Raises `LayoutError` for elements of one access that the loop's accesses cannot have."""
    if vector == 1:
        return
    most = widest_access(emitter.machine, loop, mapping, *_known(emitter))
    if vector not in _powers_up_to(most):
        raise LayoutError(
            "no access of this loop has {vector} elements", at=loop.place, vector=vector,
            expected="vector= a power of two, at most {most}", most=most, found="vector={vector}",
            hint="neighbours in memory that one thread has one after another can be accessed together",
        )  # fmt: skip


def check_bytes(emitter: Emitter, copy: Copy, mapping: Fragment, by: Instr, reached: int) -> None:
    """Raises `LayoutError` for bytes of one access, of the narrower side, that a copy cannot have.

    `reached` are the elements of its widest access: with those bytes there is nothing to look for.
    """
    bits = min(copy.src.buffer.dtype.bits, copy.dst.buffer.dtype.bits)
    if by.bytes & (by.bytes - 1) == 0 and by.bytes in range(max(1, bits // 8), reached * bits // 8 + 1):
        return
    most, known = 1, [0]
    # One of these has it where the width was chosen and not written: the other is not counted then.
    for divisors in _known(emitter):
        most = max(most, widest_access(emitter.machine, copy, mapping, divisors))
        known = sorted({max(1, width * bits // 8) for width in _powers_up_to(most)})
        if by.bytes in known:
            break
    else:
        raise LayoutError(
            "no access of this copy has {bytes} bytes", at=copy.place, bytes=by.bytes, name=by.name,
            found="by=T.Instr({name!r}, bytes={bytes})", expected="bytes= one of {known}",
            known=", ".join(map(str, known)),
            hint="neighbours in memory that one thread has one after another can be accessed together",
        )  # fmt: skip


def _powers_up_to(most: int) -> list[int]:
    return [1 << k for k in range(most.bit_length()) if most % (1 << k) == 0]


def _known(emitter: Emitter) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """What divides names here, and what was known of sizes alone when widths were chosen.

    The inference knows of no loop around: an access that starts anywhere, as far as it sees, goes element by
    element and holds up no other. Here such a one may be seen to start at every second element.
    """
    known = emitter.facts.divisors
    return known, {name: by for name, by in known.items() if name in emitter.sizes}


def widest_access(machine: Machine, statement: Stmt, mapping: Fragment, *divisors: Mapping[str, int]) -> int:
    """The most elements of one access, as `infer_layouts` counts them with one of these `divisors`."""
    site: Site | None = site_of(statement)
    if site is None:
        return 1
    widest = max(machine.vector_bytes)
    known = divisors or ({},)
    aligned = [site_vector(site, widest, (), each) for each in known]
    loads = [unaligned_vector(site, machine.unaligned_bytes, widest, each) for each in known]
    neighbours = max(*aligned, *loads)
    return gcd(neighbours, mapping.contiguous_values(len(mapping.extents) - 1)) or 1
