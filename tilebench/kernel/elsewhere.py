"""The kernel of the same text for another target or schedule."""

from __future__ import annotations

from ..machine import Machine
from ..schedule import Schedule
from ..targets import Manifest
from .kernel import Kernel


def kernel_for(kernel: Kernel, manifest: Manifest, machine: Machine, schedule: Schedule | None) -> Kernel:
    """The same kernel for a target and schedule; itself, with its edits, where both are its own.

    Raises `TargetError` where a stage below `tile` was edited and they are others.
    """
    if schedule is kernel.schedule and machine.name == kernel.target:
        return kernel
    compilation = kernel.compilation
    compilation.refuse_edited("a kernel for another target or schedule")
    # Not the compilation's: that one relies on what aligned calls have, and other calls would get it too.
    return Kernel(
        kernel.calls.traced, manifest, machine, schedule, out_idx=kernel.outputs,
        start=compilation.start, meaning=kernel.meaning,
    )  # fmt: skip
