"""A compiled kernel as plain data, so that another process can load and run it.

The measuring child gets a package, not a compilation: the last IR stage as text, the emitted
texts, the code, and what a launch needs. Loading it parses one stage and asks the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..compiler import Compilation
from ..ir import parse_function, print_function
from ..passes.context import Context
from ..record import ParamRecord
from ..recorder import arguments_of
from ..targets import Build, Executable, resolve_machine


@dataclass(frozen=True)
class Package:
    """What a process needs to run a kernel: plain data and bytes only.

    `tile_text` is what the reference runs, empty where nothing says what the kernel means.
    """

    kernel: str
    target: str
    stage_text: str
    texts: dict[str, str]
    code: bytes
    data: dict[str, Any]
    arguments: tuple[ParamRecord, ...]
    tile_text: str
    flops: float
    bytes: float


def pack(compilation: Compilation) -> Package:
    """The package of a compilation, whose code is made now if it is not yet.

    Texts travel only where a target loads them, having made no code.
    """
    for step in compilation.manifest.steps:
        if step.tier != "later":
            compilation.reach(step.name)
    build = compilation.build
    assert build is not None  # every manifest has a step
    from ..passes.count_work import count_work

    meaning = compilation.reference
    work = count_work(meaning or compilation.traced.function)
    last = next(reversed(compilation.functions))
    plain: dict[str, Any] = {
        k: v for k, v in build.data.items() if isinstance(v, (int, str, float, tuple, bool))
    }
    return Package(
        compilation.traced.name,
        compilation.machine.name,
        compilation.print(last).text,
        {} if build.code else dict(build.texts),
        build.code,
        plain,
        arguments_of(compilation),
        print_function(meaning).text if meaning is not None else "",
        work.flops,
        work.bytes,
    )


def load_package(package: Package) -> Executable:
    """The executable that a package describes, loaded in this process."""
    manifest, machine = resolve_machine(package.target)
    function = parse_function(package.stage_text, manifest.registry, "<package>")
    build = Build(function, machine, Context(machine))
    build.texts.update(package.texts)
    build.code = package.code
    build.data.update(package.data)
    return manifest.load(build)
