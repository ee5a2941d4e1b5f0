"""From a compilation and its runs to one MIME bundle that every front end can show.

Three forms: our own JSON for the extension and the widget, HTML that stands alone, plain text. The
JSON carries the whole record, packed: PTX and SASS of a GEMM are 165 KB as text, 16 KB packed.
"""

from __future__ import annotations

import base64
import json
import math
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..errors import OptionError
from ..record import CompileRecord, RunRecord, to_plain
from ..record_files import MOST_BYTES, from_plain, parse_json
from .chart import ChartCeilings, chart_of
from .history import MoveHistory, history_body, history_text
from .style import page
from .views import resources, stages
from .views.runs import chart_body, chart_text
from .views.stages import Limits, LineLimits

MIME = "application/vnd.tilebench.record.v1+json"
FORMAT = 1
# Lines of a pane inside a saved notebook. A line of PTX or SASS costs about 170 bytes as HTML; with
# these a GEMM's output stays near 60 KB, so a notebook with four of them stays under 300 KB.
LIMITS = LineLimits(tile=120, emitted=60)
# Lines of a stage in the plain form, which shows what changed and the low languages by their first lines.
TEXT_LIMITS = LineLimits(tile=24, emitted=12)


def _finite(value: Any) -> Any:
    """`value` without NaN and infinities, which JSON has not: the greatest double stands for them.

    They are errors of a wrong result, and so stay greater than any bound.
    """
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_finite(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float) and not math.isfinite(value):
        return -sys.float_info.max if value < 0 else sys.float_info.max
    return value


def pack(value: Any) -> str:
    """JSON of a plain value, deflated (zlib), as base64: a browser's `DecompressionStream` reads it."""
    try:
        body = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        body = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False).encode()
    return base64.b64encode(zlib.compress(body, 6)).decode()


def unpack(text: str) -> Any:
    """The value that `pack` made `text` from; `OptionError` if it is none."""
    try:
        # What unpacks to more than a record is refused by its length, and never unpacked whole.
        body = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), MOST_BYTES + 1)
        return parse_json(body, "this output")
    except (ValueError, TypeError, zlib.error) as error:
        raise OptionError("this output holds no packed record: {error}", error=error) from None


def record_json(
    record: CompileRecord, runs: Sequence[RunRecord] = (), history: MoveHistory | None = None
) -> dict[str, Any]:
    """The compact JSON form: what a front end lists at once, and the rest packed."""
    return {
        "format": FORMAT,
        "kernel": record.kernel,
        "target": record.target,
        "parameters": to_plain(record.parameters),
        "stages": [
            {"name": s.name, "language": s.language, "lines": len(s.text.splitlines()), "pending": s.pending}
            for s in record.stages
        ],
        "diagnostics": to_plain(record.diagnostics),
        "packed": pack(
            {
                "record": to_plain(record),
                "runs": [_short(run) for run in runs],
                "history": history.to_plain() if history is not None else [],
            }
        ),
    }


def _short(run: RunRecord) -> dict[str, Any]:
    """A run as a plain value, its samples to 5 digits: finer than any clock here, a third of the bytes."""
    return {**to_plain(run), "samples": [float(f"{sample:.4e}") for sample in run.samples]}


def from_json(shown: Mapping[str, Any]) -> tuple[CompileRecord, tuple[RunRecord, ...]]:
    """The record and the runs (samples to 5 digits) that `record_json` was given.

    Raises `OptionError` for another format.
    """
    if shown.get("format") != FORMAT or "packed" not in shown:
        raise OptionError(
            "this output has record format {given}", given=shown.get("format"), expected=f"format {FORMAT}"
        )
    raw = unpack(shown["packed"])
    held = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    if not isinstance(held.get("runs"), list):
        raise OptionError("this output holds no packed record: its runs are missing")
    runs = tuple(from_plain(RunRecord, run, "this output") for run in held["runs"])
    return from_plain(CompileRecord, held.get("record"), "this output"), runs


@dataclass(frozen=True)
class RecordView:
    """A compilation with what is shown beside it.

    `stage_names` chooses and orders the panes (all by default). `shared_limit` is the bytes of shared
    memory that a block may take, 0 where blocks share none.
    """

    record: CompileRecord
    runs: Sequence[RunRecord] = ()
    history: MoveHistory | None = None
    ceilings: ChartCeilings | None = None
    stage_names: Sequence[str] | None = None
    shared_limit: int = 0

    @property
    def moves(self) -> MoveHistory | None:
        """The history where there is something in it."""
        return self.history if self.history is not None and self.history.moves else None


def bundle_html(view: RecordView, theme: str = "auto", limits: Limits = LIMITS) -> str:
    """Stages, chart, resources, choices, remarks and history in one piece of HTML that stands alone."""
    record = view.record
    panes, rules = stages.stages_body(record, view.stage_names, limits)
    sections = resources.detail_sections(record, view.shared_limit)
    if view.runs:
        sections.insert(0, ("Runs", chart_body(chart_of(view.runs, view.ceilings))))
    parts = [stages.heading(record), panes, resources.sections_html(sections)]
    if view.moves is not None:
        rows = history_body(view.moves, view.ceilings, 20)
        parts.append(f'<section class="sec"><h3>History</h3>{rows}</section>')
    return page("".join(parts), theme, stages.CSS + resources.CSS + rules, record.kernel)


def bundle_text(view: RecordView) -> str:
    """The same in plain text: each stage's changes only, the low languages by their first lines."""
    parts = [stages.stages_text(view.record, view.stage_names, limits=TEXT_LIMITS, changed_only=True)]
    if view.runs:
        parts.append(chart_text(view.runs, view.ceilings))
    parts.append(resources.details_text(view.record, view.shared_limit))
    if view.moves is not None:
        parts.append(history_text(view.moves, view.ceilings))
    return "\n\n".join(parts)


def mime_bundle(view: RecordView, theme: str = "auto") -> dict[str, Any]:
    """The MIME bundle of a compilation with its runs and history; the JSON holds every stage.

    Raises `OptionError` for an unknown stage or theme.
    """
    return {
        MIME: record_json(view.record, view.runs, view.history),
        "text/html": bundle_html(view, theme),
        "text/plain": bundle_text(view),
    }
