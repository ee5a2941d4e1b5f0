"""Faults in what functions of a kernel's own text do through pointers."""

from __future__ import annotations

from ..fault import Fault

POINTERS = ("tests/language/test_pointers.py",)

FAULTS = (
    Fault(
        "pointers/what-is-written-is-read",
        "a function writes nothing through its pointers",
        "tilebench.ir.effects:_behind_pointers",
        "Effect(kind, mark.name, buffer, box, node)",
        "Effect(READS, mark.name, buffer, box, node)",
        POINTERS,
    ),
    Fault(
        "pointers/tiles-may-be-swizzled",
        "a shared tile that is pointed into lies as any other",
        "tilebench.passes.laid_out.choose_shared:_pointed",
        "frozenset(region.buffer.name for call in calls for region in call.regions)",
        "frozenset()",
        POINTERS,
    ),
    Fault(
        "pointers/an-address-is-of-one-element",
        "a function touches the element alone that T.address_of names",
        "tilebench.ir.effects:_behind_pointers",
        "whole(buffer, region.version) if anywhere and fixed else region",
        "region",
        POINTERS,
    ),
)
