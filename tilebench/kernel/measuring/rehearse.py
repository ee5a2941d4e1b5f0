"""The rehearsal: the first launch of new code runs in the measuring child, not on the person's arrays.

A wild store or an endless loop then ends a child process; the notebook keeps its tensors. Only in
IPython, and only for targets whose code can take the process down; `TILEBENCH_GUARD` switches it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ... import settings
from ...errors import OptionError
from ...ir.sizes import Number
from ...runtime.job import Job, in_child
from .package import Package, pack

if TYPE_CHECKING:
    from ...compiler import Compilation

CHOICES = ("auto", "first", "off")
# Hashes of code that has run to its end in the child once.
_rehearsed: set[int] = set()


def wanted() -> bool:
    """Whether first launches are rehearsed in this process. `OptionError` for an unknown choice."""
    choice = settings.guard()
    if choice not in CHOICES:
        known = ", ".join(CHOICES)
        raise OptionError(
            "TILEBENCH_GUARD is {choice!r}", choice=choice, known=known, expected="one of {known}"
        )  # fmt: skip
    if choice != "auto":
        return choice == "first"
    shell: Any = sys.modules.get("IPython")
    return shell is not None and shell.get_ipython() is not None


def rehearse(compilation: Compilation, values: Mapping[str, Number]) -> None:
    """Run a kernel once in the child on random arrays of these sizes, unless this code has been.

    Raises `LaunchError` when the child dies or does not come back; the person's arrays are untouched.
    """
    if in_child() or not wanted():
        return
    build = compilation.build
    key = hash(build.code) if build is not None else 0
    if key in _rehearsed:
        return
    # A process that rehearses nothing has no use for what starts and feeds a child.
    from ...runtime.worker import default_worker

    package = pack(compilation, values)
    name = f"rehearsing {compilation.traced.name}"
    default_worker().call(Job("tilebench.kernel.measuring.rehearse:run_once", (package,), name=name))
    _rehearsed.add(key)


def run_once(package: Package) -> bool:
    """What runs in the child: one launch on random inputs, waited for."""
    from .measure import TimedKernel, random_inputs

    session = TimedKernel(package, random_inputs(package, 0))
    session.run()
    session.outputs()
    return True
