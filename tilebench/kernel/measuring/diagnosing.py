"""A kernel's diagnosis: its compilation and what is known of its runs, put together."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import TileError
from ...ir import walk
from ...language.gemm import Gemm
from ...profile.diagnosis import Case, Diagnosis, diagnose
from ...profile.diagnosis.observe import observe
from ...record import CompileRecord, PlaceRecord, Remark, RunRecord
from ...recorder import work_remark
from .swizzles import swizzle_trades

if TYPE_CHECKING:
    from ...profile.ceilings import Ceilings
    from ..kernel import Kernel

# Where threads share elements out; a road without it has nothing to observe.
OBSERVED = "laid_out"


def case_of(
    kernel: Kernel,
    record: CompileRecord,
    runs: Sequence[RunRecord] = (),
    others: Sequence[RunRecord] = (),
    ceilings: tuple[float | None, float | None] = (None, None),
    checks: Mapping[str, bool] | None = None,
) -> Case:
    """All that is known of a kernel that is compiled so far; nothing is compiled or run for it."""
    machine = kernel.compilation.machine
    function = kernel.compilation.functions.get(OBSERVED)
    threads = record.resources.threads if record.resources is not None else 0
    seen = observe(function, machine, threads)
    record = _at_sizes(kernel, record)
    return Case(record, machine, seen, runs, others, ceilings, checks or {}, swizzle_trades(kernel))


def _at_sizes(kernel: Kernel, record: CompileRecord) -> CompileRecord:
    """The record with the work at the sizes of `Kernel.at`, which a compilation for all sizes has not."""
    if record.bytes or not kernel.sizes:
        return record
    work = kernel.compilation.work(kernel.calls.binder.of(kernel.sizes).values)
    remarks = record.remarks if work.doubt is None else (*record.remarks, work_remark(work.doubt))
    return replace(record, flops=work.flops if work.known else 0.0, bytes=work.bytes, remarks=remarks)


def with_diagnosis(kernel: Kernel, record: CompileRecord) -> CompileRecord:
    """The record with what bounds the kernel, and each cause with its evidence, as remarks of `diagnosis`."""
    found = diagnose(case_of(kernel, record))
    told = [Remark("diagnosis", "note", found.why, None, {"bound": found.bound})]
    for cause in found.findings:
        place = PlaceRecord(record.source_file, cause.line) if cause.line else None
        values = {"cause": cause.cause, "try": cause.to_try} | {e.name: e.value for e in cause.evidence}
        told.append(Remark("diagnosis", "missed", cause.what, place, values))
    return replace(record, remarks=(*record.remarks, *told))


def diagnose_kernel(kernel: Kernel, run: RunRecord | None, others: Sequence[RunRecord]) -> Diagnosis:
    """The diagnosis of a kernel, with the ceilings of its device where they are known."""
    runs = [run] if run is not None else []
    return diagnose(case_of(kernel, kernel.record(), runs, others, ceilings_of(kernel, run)))


def peak_dtype(kernel: Kernel) -> str:
    """The dtype whose arithmetic bounds a kernel: its first argument's, or TF32 that a product may be in."""
    tile = kernel.compilation.functions.get("tile")
    if tile is not None and any(isinstance(node, Gemm) and node.allow_tf32 for node in walk(tile)):
        return "tfloat32"
    return kernel.arguments[0].dtype if kernel.arguments else "float32"


def measured_ceilings(kernel: Kernel, cancel: threading.Event | None = None) -> Ceilings | None:
    """The ceilings of the device that a kernel runs on, measured once; None when they cannot be measured.

    Raises `Cancelled` when `cancel` is set meanwhile.
    """
    from ...profile.ceilings import ceilings, device_ceilings
    from ...runtime.cancel import Cancelled

    own = kernel.compilation.manifest.ceilings
    try:
        return device_ceilings(own, kernel.target, cancel) if own else ceilings(cancel=cancel)
    except Cancelled:
        raise
    except TileError:
        return None


def ceilings_of(kernel: Kernel, run: RunRecord | None) -> tuple[float | None, float | None]:
    """FLOP/s and bytes/s of the device; unknown without a run, which is what they explain."""
    found = measured_ceilings(kernel) if run is not None else None
    return (found.peak(peak_dtype(kernel)), found.most_bytes_s) if found is not None else (None, None)
