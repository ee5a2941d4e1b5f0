"""The steps from CUDA text to machine code: PTX with the cubin, SASS.

One NVRTC compile gives PTX and cubin together; the cubin is what is loaded, because a driver older
than the compiler refuses its PTX and takes its cubin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from ...errors import Place
from ...record import Diagnostic, Resources
from ..build import Build, of_launches
from .compiler.elf import read_cubin
from .compiler.log import CompileIssue, FunctionResources, ptx_lines
from .compiler.nvrtc import MINIMAL, Compiled, CudaCompileError, compile_cuda
from .compiler.sass import disassemble, disassemble_later
from .compiler_faults import refuse_lost_operands
from .occupancy import kernel_resources


def emit_ptx(build: Build) -> None:
    """CUDA text to PTX and cubin, with registers and spills from the compiler's own report.

    Raises `CudaCompileError` that quotes the lines of the CUDA stage.
    """
    try:
        compiled = _compiled(build)
    except CudaCompileError as error:
        lines = build.texts["cuda"].splitlines()
        quoted = [
            f"{issue.line}: {lines[issue.line - 1].strip()}"
            for issue in error.issues
            if 0 < issue.line <= len(lines)
        ]
        if "cuda" in build.edited:
            error.place = _place(error.issues, build.edited["cuda"], lines)
        error.hint = error.hint or (
            "in the cuda stage, line " + quoted[0].replace("{", "{{").replace("}", "}}")
            if quoted and error.place is None
            else ""
        )
        raise
    build.texts["ptx"] = compiled.ptx
    build.lines["ptx"] = ptx_lines(compiled.ptx)
    build.code = compiled.cubin
    found: list[Resources] = []
    for entry, threads, shared in build.data["launches"]:
        report = compiled.resources.get(entry) or report_of(compiled.cubin, entry)
        if report is not None:
            found.append(kernel_resources(build.machine, threads, report, shared))
    if len(found) == len(build.data["launches"]):
        build.resources = of_launches(found)
    if "cuda" not in build.edited:
        refuse_lost_operands(build.function, max((each.spill_store_bytes or 0 for each in found), default=0))
    for issue in compiled.advisories:
        build.context.diagnostics.append(Diagnostic("warning", f"{issue.code}: {issue.message}"))


def _compiled(build: Build) -> Compiled:
    """The text compiled without declarations that ours never names; with them where it is refused so."""
    text, machine = build.texts["cuda"], build.machine
    with suppress(CudaCompileError):
        return compile_cuda(text, machine, options=(MINIMAL,))
    return compile_cuda(text, machine)


def _place(issues: Sequence[CompileIssue], file: str, lines: Sequence[str]) -> Place | None:
    """Where a person's own CUDA text is wrong: the first error whose line is known."""
    for issue in issues:
        if issue.severity == "error" and 0 < issue.line <= len(lines):
            line = lines[issue.line - 1]
            indent = len(line) - len(line.lstrip())
            start = indent + issue.column if issue.column >= 0 else indent
            word = re.match(r"\w+|.", line[start:])
            end = start + len(word.group()) if issue.column >= 0 and word else len(line)
            return Place(file, issue.line, start, issue.line, end)
    return None


def report_of(cubin: bytes, entry: str) -> FunctionResources | None:
    """Registers and frame read from the cubin itself, where the compiler's log does not say them."""
    kernel = read_cubin(cubin).get(entry)
    if kernel is None:
        return None
    return FunctionResources(entry, kernel.registers, kernel.frame_bytes, 0, 0, 0, 0, 0.0)


def begin_sass(build: Build) -> None:
    """Start nvdisasm now: it takes 0.4 s on another core while the panes so far are drawn."""
    disassemble_later(build.code)


def emit_sass(build: Build) -> None:
    """Cubin to SASS by nvdisasm, a process start of 0.2 to 0.4 s; hence made in the background."""
    listing = disassemble(build.code)
    build.texts["sass"] = listing.text
    build.lines["sass"] = listing.lines
    build.beside["sass"] = listing.controls
