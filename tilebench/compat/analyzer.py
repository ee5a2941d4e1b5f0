"""`tilelang.tools.Analyzer`: operations and bytes of a kernel, and the time that a machine needs at least.

Operations are those on true elements, and bytes those of each array, moved once: less than TileLang's
count, which has every block's copies. The time is known of this host alone, by its measured ceilings; else it
is NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..ir import Function
from ..passes.analysis.count_work import count_work
from ..profile.ceilings import ceilings
from ..targets.devices import HOST
from .machines import TileDevice


@dataclass(frozen=True)
class AnalysisResult:
    """Floating operations, bytes of global memory, seconds, and the rates that follow from them."""

    total_flops: float
    total_global_bytes: float
    estimated_time: float
    expected_tflops: float
    expected_bandwidth_GBps: float


class Analyzer:
    """`Analyzer.analysis(function, device)`, of what `kernel.get_tir(...)` gives."""

    @staticmethod
    def analysis(fn: Function, device: TileDevice) -> AnalysisResult:
        """The work of a function, and what it takes on a machine."""
        work = count_work(fn)
        seconds = math.nan
        if device.machine.target == HOST:
            most = ceilings()
            dtype = min((each.dtype for each in fn.arrays), key=lambda each: each.bits).name
            rate = most.flops_s.get(dtype) or max(most.flops_s.values())
            seconds = max(work.flops / rate, work.bytes / most.bandwidth_bytes_s)
        rates = (work.flops / seconds / 1e12, work.bytes / seconds / 1e9) if seconds else (math.nan, math.nan)
        return AnalysisResult(work.flops, work.bytes, seconds, *rates)
