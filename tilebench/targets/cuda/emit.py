"""The step from `threaded` to CUDA text."""

from __future__ import annotations

from ...ir import walk
from ...language.structure import KernelLaunch
from ..build import Build
from .text.render import render


def emit_cuda(build: Build) -> None:
    """`threaded` to CUDA text. Leaves `entry`, `threads`, `shared_bytes` for the launch."""
    rendered = render(build.function, build.machine)
    build.texts["cuda"] = rendered.text
    build.lines["cuda"] = rendered.lines
    note_launch(build, rendered.entry)


def note_launch(build: Build, entry: str) -> None:
    """Keep what a launch needs to know besides the code."""
    launch = next(statement for statement in walk(build.function) if isinstance(statement, KernelLaunch))
    build.data.update(entry=entry, threads=launch.threads, shared_bytes=launch.shared_bytes)
