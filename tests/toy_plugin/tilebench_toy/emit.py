"""Step 5: from the stage `threaded` to text. This is all of it; `clike` does the rest."""

from __future__ import annotations

from tilebench.language.structure import KernelLaunch
from tilebench.targets import Build
from tilebench.targets.clike.render import render

from .dialect import TOY_C
from .intrinsics import intrinsics


def emit_text(build: Build) -> None:
    """`threaded` to toy C. Leaves what a launch needs to know besides the code."""
    rendered = render(build.function, build.machine, TOY_C, intrinsics())
    build.texts["toy_c"], build.lines["toy_c"] = rendered.text, rendered.lines
    launch = next(statement for statement in build.function.body if isinstance(statement, KernelLaunch))
    build.data.update(entry=rendered.entry, grid=launch.grid, threads=launch.threads)
