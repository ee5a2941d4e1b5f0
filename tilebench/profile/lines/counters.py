"""The counters of a record: what its target counts on its texts, and what was counted by running it."""

from __future__ import annotations

from ...record import CompileRecord, LineCounter
from ...targets import text_counters


def line_counters(record: CompileRecord) -> tuple[LineCounter, ...]:
    """Every counter of a record, those of its texts first."""
    texts = [
        counter
        for stage in record.stages
        if stage.made_of and not stage.pending
        for counter in text_counters(record.target, stage.name, stage.text)
    ]
    return (*texts, *record.counters)
