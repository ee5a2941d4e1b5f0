"""The front end: Python source to the `tile` stage."""

from __future__ import annotations

from .forms import form_of
from .source import SourceFunction, check_syntax, read_source, source_of
from .trace import Traced, knobs_of, trace

__all__ = [
    "SourceFunction",
    "Traced",
    "check_syntax",
    "form_of",
    "knobs_of",
    "read_source",
    "source_of",
    "trace",
]
