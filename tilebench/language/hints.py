"""Hints as TileLang spells them: `T.annotate_layout({S: make_swizzled_layout(S)})`, registers of warp groups.

Of layouts the two that change no address in global memory are here: a swizzle of a shared tile, and none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import LanguageError
from .memory import swizzle
from .tracing.builder import inside_kernel, shown
from .tracing.values import BufferView


@dataclass(frozen=True)
class SharedLayoutHint:
    """What is asked for: a swizzle or a plain layout."""

    swizzled: bool


def make_swizzled_layout(
    buffer: BufferView, k_major: bool = True, allow_pad: bool = True
) -> SharedLayoutHint:
    """A layout without bank conflicts; which one is the compiler's to choose."""
    return SharedLayoutHint(True)


def make_linear_layout(buffer: BufferView) -> SharedLayoutHint:
    """Rows one behind the other."""
    return SharedLayoutHint(False)


def annotate_layout(layouts: Mapping[BufferView, Any]) -> None:
    """Ask for layouts of shared tiles, of `make_swizzled_layout` or `make_linear_layout`; no result changes.

    Raises `LanguageError` for a layout of another kind, and for memory that is not shared.
    """
    inside_kernel("T.annotate_layout")
    if not isinstance(layouts, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own
        raise LanguageError("T.annotate_layout takes {{buffer: layout}}", text=shown(layouts), found="{text}")
    for buffer, layout in layouts.items():
        if not isinstance(layout, SharedLayoutHint):
            raise LanguageError(
                "T.annotate_layout with a layout of one's own is TileLang's, not here yet",
                text=shown(layout), found="{text}",
                expected="make_swizzled_layout(S) or make_linear_layout(S)",
            )  # fmt: skip
        swizzle(buffer, layout.swizzled)


def no_set_max_nreg() -> None:
    """Leave the registers of warp groups as they are, which they are: no group here hands any over."""
    inside_kernel("T.no_set_max_nreg")


def disable_warp_group_reg_alloc() -> None:
    """`T.no_set_max_nreg()` by its other name."""
    inside_kernel("T.disable_warp_group_reg_alloc")
