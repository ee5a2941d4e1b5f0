"""What commands print beside a kernel's stages: its diagnosis, its swizzles, its check on every target."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ..profile.diagnosis.measured_causes import wrong_on
from ..profile.figures import aligned

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..kernel import Kernel
    from ..pictures.collect import AccessPicture
    from ..record import RunRecord


def diagnosis_text(kernel: Kernel, run: RunRecord | None = None, others: Sequence[RunRecord] = ()) -> str:
    """What bounds a kernel and what keeps it from being faster; where the page of the symptom is."""
    if run is None:
        kernel.reach_code()
    return f"{kernel.diagnose(run, others)}\n\n`tilebench help` lists pages by what is seen."


def lines_text(kernel: Kernel, stage: str) -> str:
    """A stage with the lines of the user's file that each of its lines came from, in front."""
    found = kernel.record([stage]).stage(stage)
    told = [",".join(map(str, lines)) for lines in found.lines]
    width = max([len(each) for each in told], default=0)
    rows = zip(found.text.splitlines(), [*told, *[""] * len(found.text.splitlines())], strict=False)
    return "\n".join(f"{where:>{width}}  {line}" for line, where in rows)


def swizzle_text(kernel: Kernel) -> str:
    """Accesses to swizzled tiles as they are and without the swizzle: width, instructions, passes."""
    rows = [
        ("tile", "line", "with: bytes", "instructions", "passes", "without: bytes", "instructions", "passes")
    ]
    both = [(each, each.other) for each in kernel.accesses()]
    swizzled = [(each, other) for each, other in both if other is not None and "without" in other.words]
    for each, other in swizzled:
        access = each.access
        fewer = access.instructions * access.width // max(1, other.width)
        rows.append((
            access.buffer, str(access.line or ""), str(access.width), str(access.instructions),
            str(access.passes), str(other.width), str(fewer), str(other.passes),
        ))  # fmt: skip
    if len(rows) == 1:
        return "No tile is swizzled."
    return "\n".join([*aligned(rows), _vectors(kernel), _winner(each for each, _ in swizzled)])


def _vectors(kernel: Kernel) -> str:
    """Whether a swizzle breaks vector accesses, and what the kernel takes without it."""
    from ..kernel.measuring.swizzles import swizzle_trades

    told = [
        f"The swizzle of {trade.tile} breaks vector accesses (line {trade.line}: {trade.width} bytes for "
        f"{trade.plain_width}): {trade.instructions} instructions and {trade.passes} passes of a block "
        f"with it, {trade.plain_instructions} and {trade.plain_passes} of the kernel laid out without it."
        for trade in swizzle_trades(kernel)
    ]
    return "\n".join(told) if told else "No swizzle breaks a vector access."


def _winner(swizzled: Iterable[AccessPicture]) -> str:
    """Which takes fewer passes over the banks in all, and whether the swizzle broke vectors."""
    accesses = list(swizzled)
    with_it = sum(each.access.passes for each in accesses)
    without = sum(each.other.passes for each in accesses if each.other is not None)
    better = "with the swizzle" if with_it < without else "without it" if without < with_it else "either way"
    return f"Passes over the banks: {with_it} with it, {without} without; fewer {better}."


def swizzle_sweep(kernel: Kernel) -> list[str]:
    """The choices that switch the swizzles of a kernel's tiles, as a sweep takes them."""
    names = dict.fromkeys(each.access.buffer for each in kernel.accesses() if each.other is not None)
    return [f"{name}.swizzle" for name in names]


def everywhere(subject: Any, wish: Any) -> int:
    """Check a kernel on every target: those that are not here in the simulator.

    What a target refuses has no result there. 1 where a result is wrong, or none is there.
    """
    from dataclasses import replace

    from ..errors import TileError

    rows = [("target", "ran", "result")]
    checks: dict[str, bool] = {}
    refused: list[str] = []
    for target in _targets(wish.target):
        try:
            kernel = subject.make(replace(wish, target=target))
            ran, result, checks[kernel.target] = _checked(kernel)
        except TileError as error:
            refused.append(target)
            ran, result = "", f"refused: {error.message}"
        rows.append((target, ran, result))
    print("\n".join(aligned(rows)))
    if refused:
        print(f"no result on {', '.join(refused)}: the kernel is refused there, for the reasons above")
    cause = wrong_on(checks)
    if cause is not None:
        print(cause)
    return 0 if checks and all(checks.values()) else 1


def _checked(kernel: Kernel) -> tuple[str, str, bool]:
    """Where a kernel was checked, what came of it, and whether it is right. Raises what compiling refuses."""
    from ..errors import TileError
    from ..workbench import tiers

    here = tiers.runs_here(kernel)
    if here:
        kernel.reach_code()
    else:
        kernel.compilation.reach(kernel.compilation.rows[-1].name)
    where = "here" if here else "in the simulator"
    try:
        report = tiers.check(kernel, cancel=threading.Event())
    except TileError as error:
        return where, f"failed: {error.message}", False
    return where, report.verdict, report.ok


def _targets(own: str | None) -> list[str]:
    """The kernel's own target, this machine's, and of every kind of target the cards that its list offers."""
    from ..targets import manifest, names

    offered = [each for name in names() for each in manifest(name).presentation.machines]
    return list(dict.fromkeys([*([own] if own else []), *offered]))
