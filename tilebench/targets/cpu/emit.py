"""The steps from `loops` to machine code: LLVM text, then assembly with the object file made from it.

Code generation runs once: LLVM writes assembly, and its own assembler turns that text into the
object file (2 ms for a GEMM, where a second code generation takes 18). So the assembly that is
shown is the code that runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...ir import line_numbers
from ...record import Resources
from ..build import Build, of_launches
from .machine import isa_of
from .render.kernel import render_llvm
from .render.renderer import Rendering
from .run.jit import assemble, assembly_of, can_assemble, check_edited, object_code

_LABEL = re.compile(
    r"^\.?[\w.$]+:.*# %(\w+)|^# %bb\.\d+:\s*# %(\w+)|^// %bb\.\d+:\s*// %(\w+)|^\.?[\w.$]+:.*// %(\w+)"
)


def emit_llvm(build: Build, renderings: Sequence[Rendering] = ()) -> None:
    """`loops` to LLVM text, `renderings` being those of a package's words.

    Leaves `scratch` (bytes a worker, for each launch) for those who run it.
    """
    lines = line_numbers(build.function)
    rendered = render_llvm(build.function, isa_of(build.machine), lines, renderings)
    build.texts["llvm"] = rendered.text
    build.lines["llvm"] = tuple((each,) if each else () for each in rendered.origins)
    build.data.update(scratch=rendered.scratch)


def emit_asm(build: Build) -> None:
    """LLVM text to assembly and object file."""
    isa = isa_of(build.machine)
    if "llvm" in build.edited:
        check_edited(build.texts["llvm"], build.edited["llvm"])
    text = assembly_of(build.texts["llvm"], isa)
    build.texts["asm"] = text
    build.lines["asm"] = asm_lines(text, build.texts["llvm"])
    build.code = assemble(text, isa) if can_assemble(isa) else object_code(build.texts["llvm"], isa)
    build.resources = of_launches([Resources(threads=1, shared_bytes=size) for size in build.data["scratch"]])


def asm_lines(asm: str, llvm: str) -> tuple[tuple[int, ...], ...]:
    """For each line of assembly the label line of the LLVM block it belongs to, as LLVM's comments name it.

    Coarse on purpose: inside a block LLVM reorders freely.
    """
    labels = {
        line[:-1]: number for number, line in enumerate(llvm.splitlines(), 1) if re.match(r"^\w+:$", line)
    }
    out: list[tuple[int, ...]] = []
    here: tuple[int, ...] = ()
    for line in asm.splitlines():
        found = _LABEL.match(line)
        if found is not None:
            name = next(each for each in found.groups() if each)
            here = (labels[name],) if name in labels else ()
        code = line.startswith("\t") and not line.startswith("\t.")
        out.append(here if code or found is not None else ())
    return tuple(out)
