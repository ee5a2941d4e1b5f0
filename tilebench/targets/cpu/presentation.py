"""How the CPU target is told to people: its texts, and what `doctor` looks at."""

from __future__ import annotations

from collections.abc import Iterator

from ..presentation import Finding, Language, Presentation
from .machine import cpu_machine


def check_processor() -> Iterator[Finding]:
    """The processor that code is made for here."""
    machine = cpu_machine(None)
    features = ", ".join(sorted(machine.features)) or "none of note"
    yield Finding("good", "code for", f"{machine.name}: {features}")


def presentation() -> Presentation:
    """What people are told of the CPU."""
    return Presentation(
        machines=("cpu",),
        told="cpu (this machine's processor)",
        shown=("loops", "llvm"),
        languages=(Language("llvm", "LLVM IR"), Language("gas", "assembly")),
        checks=(("CPU code", check_processor),),
    )
