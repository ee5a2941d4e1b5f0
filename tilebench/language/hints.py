"""Hints as TileLang spells them about registers of warp groups."""

from __future__ import annotations

from .tracing.builder import inside_kernel


def no_set_max_nreg() -> None:
    """Leave the registers of warp groups as they are, which they are: no group here hands any over."""
    inside_kernel("T.no_set_max_nreg")


def disable_warp_group_reg_alloc() -> None:
    """`T.no_set_max_nreg()` by its other name."""
    inside_kernel("T.disable_warp_group_reg_alloc")
