"""The null target: the common road and nothing after it. Tests run the whole compiler on it."""

from __future__ import annotations

from typing import NoReturn

from ...errors import TargetError
from ...ir import print_function
from ...machine import SM, Machine, MemoryLevel
from ..build import Build, EmitStep
from ..manifest import Manifest
from ..presentation import Presentation


def _describe(detail: str | None) -> Machine:
    if detail:
        raise TargetError("the null target has no variants, found {detail!r}", detail=detail)
    shared = MemoryLevel("shared", per_block=1 << 20, banks=32)
    return Machine(
        name="null", warp=32, max_threads=1024, vector_bytes=(16, 8, 4, 2, 1), transaction_bytes=32,
        sm=SM(2048, 32, 65536, 256, 255), memory={"shared": shared},
    )  # fmt: skip


def _emit(build: Build) -> None:
    printed = print_function(build.function)
    build.texts["listing"] = printed.text
    build.lines["listing"] = tuple((k + 1,) for k in range(len(printed.nodes)))


def _load(build: Build) -> NoReturn:
    raise TargetError("the null target compiles {name} but runs nothing", name=build.function.name)


manifest = Manifest(
    name="null",
    describe=_describe,
    road=(),
    steps=(EmitStep("listing", "tile-ir", _emit),),
    load=_load,
    programs=True,
    available=lambda: (False, "the null target runs nothing"),
    # Nobody is offered it: it is there for tests.
    present=Presentation,
)
