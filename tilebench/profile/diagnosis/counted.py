"""What was counted on lines, by the card or in the simulator: evidence beside what layouts say of a cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..lines import line_sums
from .case import Case, Cause, Evidence

# By cause: what is counted too often, of what, and how both are called.
_COUNTED = {
    "uncoalesced": ("wasted", "sectors", "sectors in vain"),
    "bank_conflicts": ("conflicts", "passes", "passes for conflicts"),
    "swizzle_breaks_vectors": ("conflicts", "passes", "passes for conflicts"),
}
# Counters of a record by the beginning of their names, the card's own before those of one simulated block.
_BY = (("ncu", "counted by the card"), ("sim", "counted in a simulated block"))


def with_counts(case: Case, cause: Cause) -> Cause:
    """The cause with what a record's counters say of its line; unchanged where nothing was counted."""
    found = tuple(_evidence(case, cause)) if case.record.counters else ()
    return replace(cause, evidence=(*cause.evidence, *found)) if found else cause


def _evidence(case: Case, cause: Cause) -> Iterator[Evidence]:
    """Of the cause's line; a tile has none that accesses it, so that of the line where most is in vain."""
    if cause.cause not in _COUNTED:
        return
    part, whole, words = _COUNTED[cause.cause]
    for prefix, how in _BY:
        bad, of = (_by_line(case, f"{prefix}_{name}") for name in (part, whole))
        line = cause.line if of.get(cause.line) else max(bad, key=lambda n: bad[n], default=0)
        if of.get(line):
            name = f"{words} in line {line}, {how},"
            yield Evidence(name, f"{bad.get(line, 0.0):.0f} of {of[line]:.0f}")


def _by_line(case: Case, name: str) -> Mapping[int, float]:
    """A counter's figures by the kernel's lines."""
    counter = next((one for one in case.record.counters if one.name == name), None)
    if counter is None:
        return {}
    return {line: figure.value for line, figure in line_sums(case.record, counter).user.items()}
