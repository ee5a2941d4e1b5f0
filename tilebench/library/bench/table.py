"""The table that a run prints: each work's time and rate, and each peer's time as a multiple of ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...record import RunRecord
from .run import BenchRow


def line_of(work: str, rows: Sequence[BenchRow]) -> str:
    """Ours first: time, rate, error of what is allowed; then the peers."""
    ours = rows[0].record
    text = f"{work:44s} "
    if ours.seconds is None:
        text += f"{'-':>9s}  {ours.failure}"
    else:
        text += f"{ours.seconds * 1e6:9.2f} us  {_rate(ours)}"
    for record, ratio in ((row.record, row.ratio) for row in rows[1:]):
        name = record.config["by"]
        if record.seconds is None:
            text += f"\n{'':6s}{name}: {record.failure}"
            continue
        compared = f", {ratio} of it" if ratio is not None else ""
        text += f"\n{'':6s}{name}: {record.seconds * 1e6:.2f} us, {_rate(record)}{compared}"
    return text


def _rate(record: RunRecord) -> str:
    """Operations a second of what does more than 100 of them for a byte, else bytes."""
    seconds = record.seconds or math.inf
    by_bytes = bool(record.bytes) and record.flops < 100 * record.bytes
    rate, unit = (record.bytes, "B") if by_bytes else (record.flops, record.operation)
    power = 12 if not by_bytes and rate / seconds >= 1e12 else 9
    return f"{rate / seconds / 10**power:7.1f} {'T' if power == 12 else 'G'}{unit}/s"


def head(machine: str, on_host: bool) -> str:
    """The line above a table."""
    note = " A measurement of the host ranks nothing for a card." if on_host else ""
    return (
        f"On {machine}. A peer's figure behind its rate is its time as a multiple of ours, with its "
        f"interval: above 1 it is slower.{note}"
    )


def method_of(rows: Sequence[BenchRow]) -> str:
    """How the last work was measured, and on what."""
    record = next((row.record for row in rows if row.record.method), None)
    if record is None:
        return "nothing was measured"
    words = ("processor", "name", "sm_clock", "memory_clock", "power", "driver")
    about = [f"{k}: {v}" for k, v in record.environment.items() if k.endswith(words)]
    return f"Method: {record.method}.\nMachine: {'; '.join(about)}."
