"""The notebook side: views, charts, controls and the `%%tile` magic.

`tilebench.workbench` is this package and also a function: `tilebench.workbench(kernel, with_={...})`
opens a workbench. A package is found under one name only, so an attribute of `tilebench` that is a
function would hide the package (`tilebench.workbench.bundle`) as soon as either is imported; hence the
module itself can be called.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..kernel import JitFunction, Kernel
    from ..schedule import Schedule, ScheduleFile
    from .live import Workbench


def open_workbench(
    kernel: JitFunction | Kernel,
    *,
    with_: Mapping[str, Any] | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    target: str | None = None,
    stages: Sequence[str] | None = None,
    schedule: Schedule | ScheduleFile | str | Path | None = None,
    run: bool = False,
    check: bool = False,
    at: str | None = None,
) -> Workbench:
    """A workbench for a kernel function, or for a kernel with the values it has.

    `with_` gives values of its parameters, `sweep` the values that a slider walks, by parameter or by
    schedule choice (`threads`, `ko.num_stages`, `A_s.swizzle`). `target`, `stages` and `schedule` as on the
    `%%tile` line, and `at` is a position as text, as `position` of a bench gives it; `run` measures,
    `check` compares with the reference. In a notebook with widgets it comes with controls; elsewhere it is
    a value whose `.set(block_M=64)` answers at once. Running its cell again closes it; another cell may
    open the same kernel. Raises the `TileError` of what is wrong.
    """
    from .live import open_live

    return open_live(
        kernel,
        with_=with_,
        sweep=sweep,
        target=target,
        stages=stages,
        schedule=schedule,
        run=run,
        check=check,
        at=at,
    )


class _CallableModule(ModuleType):
    """This package's class: a module that opens a workbench when it is called."""

    def __call__(self, kernel: JitFunction | Kernel, **options: Any) -> Workbench:
        return open_workbench(kernel, **options)


_CallableModule.__call__.__doc__ = open_workbench.__doc__
sys.modules[__name__].__class__ = _CallableModule
