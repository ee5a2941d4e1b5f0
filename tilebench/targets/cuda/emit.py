"""The step from `threaded` to CUDA text."""

from __future__ import annotations

from ...passes.analysis.launches import launches_of, parts_of
from ..build import Build
from .tensor_maps import tensor_maps
from .text.render import render


def emit_cuda(build: Build) -> None:
    """`threaded` to CUDA text. Leaves `launches` for those who run them: entry, threads, shared bytes."""
    rendered = render(build.function, build.machine)
    build.texts["cuda"] = rendered.text
    build.lines["cuda"] = rendered.lines
    note_launches(build, rendered.entries)


def note_launches(build: Build, entries: tuple[str, ...]) -> None:
    """Keep what launches need to know besides the code."""
    launches = zip(entries, launches_of(build.function), strict=True)
    rows = tuple((entry, launch.threads, launch.shared_bytes) for entry, launch in launches)
    # What each launch tells the card of arrays, in words; it is encoded from the same statements.
    maps = tuple(tuple(each.told for each in tensor_maps(part)) for part in parts_of(build.function))
    build.data.update(
        launches=rows, threads=tuple(threads for _, threads, _ in rows), tensor_maps=maps,
    )  # fmt: skip
