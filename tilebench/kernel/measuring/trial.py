"""Edited text of a host's compiler is compiled in the measuring child first.

A compiler that runs in this process may end it over a text that no compiler of ours wrote (LLVM's assembler
does, over an instruction that there is not). In the child that costs a message.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ...errors import LaunchError, TargetError, remember_source
from ...ir import parse_function
from ...passes.context import Context
from ...runtime.job import Job
from ...runtime.worker import default_worker
from ...targets import Build, resolve_machine
from ...targets.devices import HOST

if TYPE_CHECKING:
    from ..kernel import Kernel


def try_edited(kernel: Kernel, cancel: threading.Event | None = None) -> None:
    """Compile a kernel's edited text of a host's compiler in the child; nothing for any other kernel.

    Raises `TargetError` for text that the compiler refuses, or ends its process over.
    """
    compilation = kernel.compilation
    build = compilation.build
    if build is None or not build.edited or build.code or compilation.manifest.device != HOST:
        return
    (stage, *_) = build.edited
    last = next(reversed(compilation.functions))
    plain: dict[str, Any] = {
        k: v for k, v in build.data.items() if isinstance(v, (int, str, float, tuple, bool))
    }
    job = Job(
        f"{__name__}:compile_texts",
        (kernel.target, compilation.print(last).text, dict(build.texts), plain, dict(build.edited)),
        name=f"compiling the edited {stage} of {kernel.name}",
    )
    try:
        default_worker().call(job, cancel=cancel)
    except LaunchError as error:
        raise TargetError(
            "the compiler of {target} ended its process over the edited text of {stage}: {why}",
            target=kernel.target, stage=stage, why=error.message,
            hint="take back what was changed last: it trusts that instructions in a text are there",
        ) from None  # fmt: skip


def compile_texts(
    target: str, stage_text: str, texts: dict[str, str], data: dict[str, Any], edited: dict[str, str]
) -> None:
    """What runs in the child: the steps that make code, over texts that stand."""
    manifest, machine = resolve_machine(target)
    build = Build(parse_function(stage_text, manifest.registry, "<stage>"), machine, Context(machine))
    build.texts.update(texts)
    build.data.update(data)
    build.edited.update(edited)
    for stage, file in edited.items():
        remember_source(file, texts[stage])
    for step in manifest.steps:
        if step.name not in texts and step.tier != "later":
            step.run(build)
