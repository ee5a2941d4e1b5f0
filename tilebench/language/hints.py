"""Hints of TileLang's for a whole kernel: those that choose something here, and those that a remark tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import LanguageError
from .notes import note
from .tracing.builder import in_trace, shown
from .tracing.operands import positive
from .tracing.values import BufferView

__all__ = [
    "annotate_compile_flags",
    "annotate_l2_hit_ratio",
    "annotate_min_blocks_per_sm",
    "annotate_pass_configs",
    "annotate_restrict_buffers",
]


def annotate_min_blocks_per_sm(n: int) -> None:
    """Have code of at most so many registers that `n` blocks run on one multiprocessor of a card at a time.

    Results do not change. Raises `ShapeError` for less than 1, `LanguageError` for what is no number.
    """
    builder = in_trace("T.annotate_min_blocks_per_sm")
    builder.launch_hints["min_blocks"] = positive(n, "T.annotate_min_blocks_per_sm", "n")


def annotate_l2_hit_ratio(l2_hit_ratio_map: Mapping[BufferView, float]) -> None:
    """Shares of arrays to keep in the second cache, `{A: 0.8}`; a remark tells that nothing is reserved."""
    for buffer, ratio in _named("T.annotate_l2_hit_ratio", l2_hit_ratio_map):
        if buffer.scope != "global":
            raise LanguageError(
                "T.annotate_l2_hit_ratio names arrays, and {name} is in {scope} memory", name=buffer.name,
                scope=buffer.scope,
            )  # fmt: skip
        note(f"T.annotate_l2_hit_ratio({buffer.name}: {ratio}) chooses nothing here")


def annotate_restrict_buffers(*buffers: BufferView) -> None:
    """Arrays that may overlap; a remark tells that calls with such arrays are refused here."""
    for buffer in buffers:
        if not isinstance(buffer, BufferView):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own
            raise LanguageError(
                "T.annotate_restrict_buffers takes arrays", text=shown(buffer), found="{text}"
            )
    if buffers:
        names = ", ".join(buffer.name for buffer in buffers)
        note(f"T.annotate_restrict_buffers({names}) chooses nothing here: arrays that overlap are refused")


def annotate_pass_configs(configs: Mapping[str, Any]) -> None:
    """TileLang's pass configurations; a remark tells that they choose nothing here."""
    for name, value in _items("T.annotate_pass_configs", configs):
        note(f"T.annotate_pass_configs({getattr(name, 'value', name)}: {value!r}) chooses nothing here")


def annotate_compile_flags(flags: str | list[str]) -> None:
    """Flags for TileLang's compiler of the generated code; a remark tells that they choose nothing here."""
    given = [flags] if isinstance(flags, str) else list(flags)
    note(f"T.annotate_compile_flags({' '.join(given)}) chooses nothing here")


def _items(word: str, given: object) -> list[tuple[object, object]]:
    if not isinstance(given, Mapping):
        raise LanguageError("{word} takes a dict", word=word, text=shown(given), found="{text}")
    return list(given.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _named(word: str, given: object) -> list[tuple[BufferView, object]]:
    """The buffers that a dict names, with what it says of them."""
    found: list[tuple[BufferView, object]] = []
    for buffer, value in _items(word, given):
        if not isinstance(buffer, BufferView):
            raise LanguageError("{word} names buffers", word=word, text=shown(buffer), found="{text}")
        buffer.check_scope()
        found.append((buffer, value))
    return found
