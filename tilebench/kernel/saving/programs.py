"""A kernel as a program in its target's own language."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import TargetError
from ...plain import to_plain
from ...record_files import write_files

if TYPE_CHECKING:
    from ..kernel import Kernel


def save_program(kernel: Kernel, path: Path, seed: int, overwrite: bool) -> Path:
    """See `Kernel.save_program`."""
    manifest = kernel.compilation.manifest
    if manifest.program is None:
        raise TargetError(
            "{target} has no form of a kernel that stands alone", target=kernel.target,
            hint=f"save() writes it as a Python file; of targets there is {_those_with()}",
        )  # fmt: skip
    call = kernel.call_of((), None)
    compilation = kernel.calls.compiled(kernel.calls.chooser(call.values, ()))
    texts = [step.name for step in manifest.steps if step.tier == "text"]
    compilation.reach(texts[-1])
    build = compilation.build
    assert build is not None  # a text has been made
    values = ", ".join(f"{k}={v}" for k, v in {**to_plain(kernel.parameters), **call.values}.items())
    title = [f"The kernel {kernel.name}({values}) for {kernel.target}, written by tilebench."]
    if compilation.edits:
        title.append(f"Edited by hand: {', '.join(edit.stage for edit in compilation.edits)}.")
    detail, name = kernel.target.partition(":")[2], path.with_suffix(manifest.program.suffix).name
    title.append(manifest.program.how.format(file=name, detail=detail, number=detail.partition("_")[2]))
    text = manifest.program.write(build, call.values, seed, title)
    return write_files({path.with_suffix(manifest.program.suffix): text}, overwrite)[0]


def _those_with() -> str:
    from ...targets import manifest, names

    return ", ".join(name for name in names() if manifest(name).program is not None)
