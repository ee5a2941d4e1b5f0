"""A record with what stands around it as the JSON of a notebook's output, packed and unpacked.

The JSON carries the whole record: PTX and SASS of a GEMM are 165 KB as text, 16 KB packed.
"""

from __future__ import annotations

import base64
import json
import math
import sys
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..errors import OptionError
from ..plain import to_plain
from ..record import FORMAT, CompileRecord, RunRecord
from ..record_files import MOST_BYTES, from_plain, parse_json

MIME = f"application/vnd.tilebench.record.v{FORMAT}+json"


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


def pack(value: Any, level: int = 6) -> str:
    """JSON of a plain value, deflated (zlib), as base64: a browser's `DecompressionStream` reads it.

    `level` is zlib's: what is kept is made small, what a slider waits for is made soon.
    """
    try:
        body = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        body = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False).encode()
    return base64.b64encode(zlib.compress(body, level)).decode()


def unpack(text: str) -> Any:
    """The value that `pack` made `text` from; `OptionError` if it is none."""
    try:
        # What unpacks to more than a record is refused by its length, and never unpacked whole.
        body = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), MOST_BYTES + 1)
        return parse_json(body, "this output")
    except (ValueError, TypeError, zlib.error) as error:
        raise OptionError("this output holds no packed record: {error}", error=error) from None


def record_json(
    record: CompileRecord, runs: Sequence[RunRecord] = (), state: Any = None, gutters: Any = ()
) -> dict[str, Any]:
    """The compact JSON form: what a front end lists at once, and the rest packed.

    `state` is what it draws beside the record (`front.state.BenchState`); without one it draws nothing.
    `gutters` are the columns beside the lines (`front.gutters.plain_gutters`).
    """
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
                "state": to_plain(state),
                "gutters": list(gutters),
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
