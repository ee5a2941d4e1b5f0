"""What a bench is compared with, as plain data: its name, and how its resources differ from those shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..style import bytes_text, number
from .state import ComparedData

if TYPE_CHECKING:
    from ...record import Resources
    from ..comparison import Compared
    from ..picture import Picture


def compared_data(picture: Picture) -> ComparedData | None:
    """What the texts are compared with; None where that is the bench's own."""
    against = picture.wish.against
    if against is None:
        return None
    found = picture.compared
    if found is None or found.against != against:
        return ComparedData(
            against.kind, against.name, f"compiling for {against.name} \N{HORIZONTAL ELLIPSIS}"
        )
    return ComparedData(against.kind, against.name, said(picture, found))


def said(picture: Picture, found: Compared) -> str:
    """How what is shown differs from it in resources; or why there is nothing to compare with."""
    if found.problem and found.record is None:
        return f"{found.against.name}: {found.problem}"
    facts: list[str] = []
    if picture.record is not None and found.record is not None:
        here, there = picture.record, found.record
        # A card's figures are not a processor's.
        same = here.target.partition(":")[0] == there.target.partition(":")[0]
        if same and here.resources is not None and there.resources is not None:
            facts = _facts(there.resources, here.resources)
    told = f"{found.against.name} has {', '.join(facts)}" if facts else f"compared with {found.against.name}"
    return f"{told}; {found.problem}" if found.problem else told


def _facts(there: Resources, here: Resources) -> list[str]:
    """`96 registers (88 here)` for each resource that both have and that differs."""
    out: list[str] = []

    def tell(one: float | None, other: float | None, text: str, other_text: str) -> None:
        if one is not None and other is not None:
            out.append(f"{text} ({other_text} here)" if one != other else text)

    tell(there.threads, here.threads, f"{there.threads} threads", str(here.threads))
    tell(there.registers, here.registers, f"{there.registers} registers", str(here.registers))
    tell(
        there.shared_bytes,
        here.shared_bytes,
        f"{bytes_text(there.shared_bytes)} shared",
        bytes_text(here.shared_bytes),
    )
    one, other = (
        number(each.occupancy * 100) if each.occupancy is not None else "" for each in (there, here)
    )
    tell(there.occupancy, here.occupancy, f"occupancy {one} %", f"{other} %")
    return out
