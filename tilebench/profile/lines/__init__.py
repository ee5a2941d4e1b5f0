"""Figures of lines: what is counted on a text's lines, led to the lines of every stage and of the kernel."""

from .counters import line_counters
from .sums import Figure, LineFigure, LineSums, line_sums

__all__ = ["Figure", "LineFigure", "LineSums", "line_counters", "line_sums"]
