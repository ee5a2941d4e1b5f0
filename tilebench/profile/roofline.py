"""The roofline of one run: what it could reach, what bounds it, and whether its figures can be true.

Attainable rate = min(peak, bandwidth * intensity); Williams, Waterman and Patterson, "Roofline: an
insightful visual performance model", CACM 52(4), 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import OptionError

Bound = Literal["memory", "compute", "latency/overhead"]
# Below this part of both ceilings neither explains the time: it goes to launch, waiting, too little work.
EXPLAINED = 0.4
# A ceiling is itself measured. Rates above it by more than its noise are flagged, not shown as results.
TOLERANCE = 0.03


@dataclass(frozen=True)
class Roofline:
    """One run under its ceilings. Rates are per second; `intensity` is operations a byte.

    `attainable_flops_s` and `attainable_bytes_s` are what `intensity` allows. `of_memory` and
    `of_compute` are the reached parts of each ceiling, `of_attainable` that of the roof at this
    intensity. `flags` lists what cannot be true of these figures; with any there, they are no result.
    """

    seconds: float
    flops_s: float
    bytes_s: float
    intensity: float
    attainable_flops_s: float
    attainable_bytes_s: float
    least_seconds: float
    of_memory: float
    of_compute: float
    bound: Bound
    why: str
    flags: tuple[str, ...] = ()

    @property
    def of_attainable(self) -> float:
        return self.least_seconds / self.seconds

    @property
    def valid(self) -> bool:
        return not self.flags


def attainable(intensity: float, peak_flops_s: float, bandwidth_bytes_s: float) -> float:
    """Operations a second at `intensity` operations a byte."""
    return min(peak_flops_s, bandwidth_bytes_s * intensity)


def roofline(
    seconds: float,
    *,
    flops: float,
    bytes: float,
    peak_flops_s: float,
    bandwidth_bytes_s: float,
    most_bytes_s: float | None = None,
    cold: bool = True,
    overhead_s: float = 0.0,
) -> Roofline:
    """Place a run of `seconds` with `flops` operations and `bytes` of compulsory traffic.

    `most_bytes_s` is the rate above which traffic is not believable, when that is more than
    `bandwidth_bytes_s` (a kernel that only reads can beat a copy). With warm caches (`cold=False`)
    data that fits them never sees the memory, so a rate above it is said, not flagged.
    `overhead_s` is the known cost of an empty launch. `OptionError` for figures that are not positive.
    """
    _look_at(seconds, flops, bytes, peak_flops_s, bandwidth_bytes_s)
    memory_s, compute_s = bytes / bandwidth_bytes_s, flops / peak_flops_s
    least = max(memory_s, compute_s)
    intensity = flops / bytes if bytes else float("inf")
    flags: list[str] = []
    most = max(bandwidth_bytes_s, most_bytes_s or 0.0)
    if bytes / seconds > most * (1 + TOLERANCE) and cold:
        flags.append(
            f"{bytes / seconds / 1e9:.1f} GB/s is above this machine's {most / 1e9:.1f} GB/s: "
            "caches were not cold, bytes are counted too high, or the ceiling is out of date"
        )
    if compute_s > seconds * (1 + TOLERANCE):
        flags.append(
            f"{flops / seconds / 1e9:.1f} GFLOP/s is above this machine's {peak_flops_s / 1e9:.1f} GFLOP/s: "
            "work was skipped, operations are counted too high, or the ceiling is out of date"
        )
    bound, why = _classify(seconds, memory_s, compute_s, overhead_s, cold)
    return Roofline(
        seconds, flops / seconds, bytes / seconds, intensity,
        attainable(intensity, peak_flops_s, bandwidth_bytes_s) if bytes else peak_flops_s,
        bytes / least, least, memory_s / seconds, compute_s / seconds, bound, why, tuple(flags),
    )  # fmt: skip


def _classify(
    seconds: float, memory_s: float, compute_s: float, overhead_s: float, cold: bool
) -> tuple[Bound, str]:
    """The bound that explains most of the time, and the numbers that say so."""
    numbers = (
        f"{seconds * 1e6:.1f} us; its bytes need {memory_s * 1e6:.1f} us at the bandwidth of a copy "
        f"({memory_s / seconds:.0%}), its operations {compute_s * 1e6:.1f} us at the peak "
        f"({compute_s / seconds:.0%})"
    )
    if overhead_s > 0.5 * seconds:
        return "latency/overhead", f"{numbers}; an empty launch takes {overhead_s * 1e6:.1f} us of them"
    if max(memory_s, compute_s) < EXPLAINED * seconds:
        return "latency/overhead", f"{numbers}: neither explains it"
    if memory_s >= compute_s:
        note = "" if cold else "; with warm caches part of the bytes never reached the memory"
        return "memory", numbers + note
    return "compute", numbers


def _look_at(seconds: float, flops: float, bytes: float, peak: float, bandwidth: float) -> None:
    if not (seconds > 0 and peak > 0 and bandwidth > 0 and flops >= 0 and bytes >= 0 and flops + bytes > 0):
        raise OptionError(
            "a roofline needs positive figures",
            expected="seconds, peak and bandwidth above 0, and work to do (operations or bytes)",
            found="{seconds} s, {flops} operations, {bytes} bytes, peak {peak}, bandwidth {bandwidth}",
            seconds=seconds, flops=flops, bytes=bytes, peak=peak, bandwidth=bandwidth,
        )  # fmt: skip
