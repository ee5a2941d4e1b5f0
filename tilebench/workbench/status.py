"""What is said of a picture in a few words: the state of the thread, the figures of now, remarks."""

from __future__ import annotations

from ..record import CompileRecord
from .chart import chart_of
from .picture import Picture
from .style import bytes_text, number
from .tiers import absent_stages, plain_config

_SAID = {
    "idle": ("", "idle"), "queued": ("on", "queued"), "compiling": ("on", "compiling"),
    "counting": ("on", "counting"), "checking": ("on", "checking"), "measuring": ("on", "measuring"),
    "done": ("good", "up to date"), "stale": ("warn", "stale"),
    "cancelled": ("warn", "stopped"), "failed": ("bad", "failed"),
}  # fmt: skip

STOPPED = "Stopped. Any control goes on from here; Again takes up what was stopped."


def said(picture: Picture) -> tuple[str, str]:
    """What the thread does, as a tone and a word."""
    kind, word = _SAID.get(picture.status.phase, ("", picture.status.phase))
    if picture.problem is not None and picture.status.phase == "done":
        kind, word = ("bad", "refused") if picture.stale else ("warn", "partly done")
    if picture.status.total:
        word += f" {picture.status.done}/{picture.status.total}"
    return kind, word


def remarks(picture: Picture) -> tuple[str, ...]:
    """Which wished stages another target has, and on what the times were taken."""
    record = picture.record
    if record is None or picture.stale:
        return picture.notes
    absent = absent_stages(record.target, picture.stage_names, picture.wish.stages)
    return (*edited_note(record), *absent, *picture.notes)


def edited_note(record: CompileRecord) -> tuple[str, ...]:
    """That stages of a record are a person's, where some are."""
    if not record.edits:
        return ()
    names = " and ".join(edit.stage for edit in record.edits)
    last = record.edits[-1].stage
    return (f"{names} edited by hand: what stands there and below {last} is not what the compiler makes",)


def figures(picture: Picture) -> list[str]:
    """The figures that a mover of sliders looks at: from the record, and the last time."""
    record = picture.record
    if record is None or picture.stale:
        return []
    out: list[str] = []
    used = record.resources
    if used is not None and picture.shared_limit:  # a CPU has neither registers a thread nor shared memory
        out.append(f"{used.threads} threads")
        out += [f"{used.registers} registers"] if used.registers is not None else []
        out.append(f"{bytes_text(used.shared_bytes)} shared")
        bound = "occupancy" if used.registers is not None else "occupancy at most"
        out += [f"{bound} {number(used.occupancy * 100)} %"] if used.occupancy is not None else []
    # Of this position, by whichever move it was measured.
    now = plain_config(picture.wish.config)
    last = next((run for run in reversed(picture.runs) if dict(run.config) == now), None)
    if last is not None and last.seconds:
        chart = chart_of(picture.runs, picture.ceilings)
        point = next(p for p in chart.points if p.config == last.config)
        here = "" if last.target == record.target else f" on {last.target.partition(':')[0]}"
        several = f" ({len(point.medians)} runs)" if len(point.medians) > 1 else ""
        out.append(point.time_text + here + several)
        out += [point.rate_text(chart.unit)] if point.rate else []
    return out
