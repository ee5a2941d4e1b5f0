"""What a target has code for, as a table: read off the rows that compile, so that it is true.

Operations on tiles by the instructions that carry them out, words of one thread, and functions of
elements by dtype. A command prints it; nothing is compiled for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir import OpStmt
from ..machine import Machine
from .manifest import Manifest


@dataclass(frozen=True)
class Abilities:
    """What one machine of a target can do.

    `operations` has for each operation on tiles the names of its instructions there, empty where it
    needs none. `words` are those of the stage `threaded` besides values, loops and allocations.
    `functions` has for each function of elements the dtypes of its result.
    """

    machine: str
    operations: Mapping[str, tuple[str, ...]]
    words: tuple[str, ...]
    functions: Mapping[str, tuple[str, ...]]


def abilities(manifest: Manifest, machine: Machine) -> Abilities:
    """The table of a target for one of its machines."""
    return Abilities(
        machine=machine.name,
        operations=_operations(manifest, machine),
        words=tuple(sorted(cls.word for cls in manifest.intrinsic_rows)),
        functions={word: tuple(sorted(dtypes)) for word, dtypes in sorted(manifest.scalars().items())},
    )


def _operations(manifest: Manifest, machine: Machine) -> dict[str, tuple[str, ...]]:
    """Operations with a lowering, by the words that a kernel writes.

    An instruction counts where the machine's own table has it: the features that it needs are there.
    """
    words = manifest.registry.statements
    found: dict[str, set[str]] = {}
    for cls, instruction in manifest.lowered():
        spellings = [spelling for spelling, word in words.items() if word.cls is cls]
        if not issubclass(cls, OpStmt) or not spellings:
            continue
        known = {row.name for row in machine.instructions_for(cls.word)}
        for spelling in spellings:
            if not instruction:
                found.setdefault(spelling, set())
            elif instruction in known:
                found.setdefault(spelling, set()).add(instruction)
    return {spelling: tuple(sorted(names)) for spelling, names in sorted(found.items())}
