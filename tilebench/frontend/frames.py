"""Places inside helpers that Python itself runs: read from frames and tracebacks."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from ..errors import Place, source_lines
from .texts import shown_name

_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep
_LIBRARY = _PACKAGE + "library" + os.sep
_PYTHON = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))

Step = tuple[CodeType, int]


@lru_cache(maxsize=1024)
def is_users(file: str) -> bool:
    """Whether a code object's file is the user's: neither ours, nor Python's, nor an installed package."""
    if file.startswith(_PACKAGE):
        return file.startswith(_LIBRARY)
    return not file.startswith(("<frozen", *_PYTHON))


def is_ours(file: str) -> bool:
    """Whether a code object's file belongs to this package."""
    return file.startswith(_PACKAGE) and not file.startswith(_LIBRARY)


def place_of(step: Step, caller: Place | None) -> Place:
    """The place of an instruction of a code object."""
    code, instruction = step
    line, end_line, column, end_column = next(
        islice(code.co_positions(), instruction // 2, None), (None, None, None, None)
    )
    file = shown_name(code.co_filename)
    line = line or code.co_firstlineno
    lines = source_lines(file)
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    start, stop = (len(text.encode()[: each or 0].decode(errors="ignore")) for each in (column, end_column))
    return Place(file, line, start, end_line or 0, stop, code.co_name, caller)


def chained(steps: Iterable[Step], caller: Place | None) -> Place | None:
    """The place of the innermost step, each called from the one before, the first from `caller`."""
    for step in steps:
        caller = place_of(step, caller)
    return caller


def users_steps(trace: TracebackType | None) -> list[Step]:
    """The user's frames of a traceback, outermost first."""
    out: list[Step] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_users(code.co_filename) and not _is_generated(trace.tb_frame):
            out.append((code, trace.tb_lasti))
        trace = trace.tb_next
    return out


def _is_generated(frame: FrameType) -> bool:
    """Whether Python made the code for a class of ours: a dataclass's `__init__` has no file."""
    module = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_filename == "<string>" and module.startswith("tilebench.")


def running_steps(until: CodeType) -> list[Step]:
    """The user's running frames above the nearest frame of `until`, outermost first."""
    out: list[Step] = []
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    caller = frame
    while caller is not None and caller.f_code is not until:
        if is_users(caller.f_code.co_filename):
            out.append((caller.f_code, caller.f_lasti))
        caller = caller.f_back
    return out[::-1]


def innermost(trace: TracebackType | None) -> CodeType | None:
    """The code in which an exception was raised."""
    found: CodeType | None = None
    while trace is not None:
        found = trace.tb_frame.f_code
        trace = trace.tb_next
    return found
