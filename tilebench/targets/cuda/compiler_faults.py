"""Wrong code of NVIDIA's compilers, refused where a kernel meets it.

ptxas of CUDA 12.9 and 13.0 loses an operand of `wgmma` that stands in registers over turns of a loop: where
it runs out of registers it gives the operand's to another product, and brings nothing back. The PTX is right,
and so is all code of 13.1 and later (read in SASS; 13.0 and 13.5 run on an H200).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import Place, TargetError, install_command
from ...ir import Function, While, walk
from ...ir.effects import names_read_and_written
from ...language.structure import Serial
from .compiler.library import nvrtc_version
from .instructions.wgmma import Wgmma

# The first version of NVRTC whose ptxas keeps such operands.
KEEPS_OPERANDS = (13, 1)


def refuse_lost_operands(function: Function, spilled_bytes: int) -> None:
    """Raise `TargetError` where this compiler may have lost a product's operand: see the top of this file."""
    if not spilled_bytes or nvrtc_version() >= KEEPS_OPERANDS:
        return
    for name, place in kept_over_loops(function):
        raise TargetError(
            "this code cannot be trusted: NVRTC {version} spilled {spilled} bytes a thread, and then loses "
            "{name}, which a product reads from registers in every turn of a loop",
            version=".".join(map(str, nvrtc_version())), spilled=spilled_bytes, name=name, at=place,
            found="NVRTC {version}", expected="13.1 or newer, or a kernel without spills",
            hint=f"{install_command('cuda')} brings a newer one; smaller tiles need fewer registers, "
            "and so does {name} in shared memory",
        )  # fmt: skip


def kept_over_loops(function: Function) -> Iterator[tuple[str, Place | None]]:
    """Operands of products in registers that a loop reads in its turns and does not write, by name."""
    told: set[str] = set()
    for loop in walk(function):
        if not isinstance(loop, (Serial, While)):
            continue
        _, written = names_read_and_written(loop.body)
        for part in walk(loop):
            if not isinstance(part, Wgmma) or part.a_form is not None:
                continue
            name = part.a.buffer.name
            if name not in written and name not in told:
                told.add(name)
                yield name, part.place


__all__ = ["KEEPS_OPERANDS", "kept_over_loops", "refuse_lost_operands"]
