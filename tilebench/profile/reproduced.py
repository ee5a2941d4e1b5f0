"""A measurement beside its repetition: what was recorded, what is measured now, and whether they differ."""

from __future__ import annotations

from collections.abc import Sequence

from ..record import RunRecord
from .figures import percent_text, rate_text, seconds_text, span_text
from .positions import Position, difference


def reproduced(recorded: Sequence[RunRecord], now: Sequence[RunRecord]) -> str:
    """Recorded runs of one position beside runs of now, as text: times with their spread, rates, machines.

    The verdict follows the rule of `profile.positions`: a difference counts where the ranges of both lie
    apart and chance seldom does that. Figures of two machines are told, and not compared.
    """
    old, new = Position(tuple(recorded)), Position(tuple(now))
    rows = [("", "recorded", "now")]
    for name, told in (
        ("when", _when),
        ("target", _target),
        ("time", _time),
        ("rate", _rate),
        ("inputs", _inputs),
    ):
        rows.append((name, told(old), told(new)))
    for name in dict.fromkeys((*old.last.environment, *new.last.environment)):
        sides = (old.last.environment.get(name, ""), new.last.environment.get(name, ""))
        if sides[0] != sides[1]:
            rows.append((name, *sides))
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"{name:<{first}}  {was:<{second}}  {now_}".rstrip() for name, was, now_ in rows]
    return "\n".join([*lines, "", _verdict(old, new)])


def _verdict(old: Position, new: Position) -> str:
    if new.last.failure:
        return f"now it failed: {new.last.failure}"
    if old.last.failure or not old.seconds or not new.seconds:
        return f"no time was recorded: {old.last.failure or 'it was not measured'}"
    if old.last.target != new.last.target or _machine(old) != _machine(new):
        return f"now / recorded {new.seconds / old.seconds:.3g}, of two machines: that compares the machines"
    found = difference(new, old)
    if found is None:
        return "they do not compute the same amount, and cannot be compared"
    part = percent_text(found.part, found.low, found.high)
    return f"{part} to what was recorded: {found.why}"


def _machine(position: Position) -> dict[str, str]:
    said = position.last.environment
    return {k: v for k, v in said.items() if k == "processor" or k.endswith("_name")}


def _when(position: Position) -> str:
    return position.last.when or "unknown"


def _target(position: Position) -> str:
    edited = f", {' and '.join(position.last.edited)} edited by hand" if position.last.edited else ""
    return position.last.target + edited


def _time(position: Position) -> str:
    if not position.seconds or position.range is None:
        return position.last.failure or "not measured"
    count = len(position.timed)
    of = f"{count} run{'s' if count > 1 else ''}"
    return f"{seconds_text(position.seconds, 4)} ({span_text(*position.range)}, {of})"


def _rate(position: Position) -> str:
    run, seconds = position.last, position.seconds
    if not seconds:
        return ""
    told = [rate_text(run.flops / seconds, f"{run.operation}/s")] if run.flops else []
    return ", ".join([*told, *([rate_text(run.bytes / seconds, "B/s")] if run.bytes else [])])


def _inputs(position: Position) -> str:
    seed = position.last.seed
    return f"random, seed {seed}" if seed is not None else "the caller's arrays"
