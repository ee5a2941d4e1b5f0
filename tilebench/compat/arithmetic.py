"""Helpers of TileLang's that compute with Python numbers."""

from __future__ import annotations

from typing import Any


def cdiv(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    """The least power of two that is at least n; 1 for numbers below."""
    return 1 << max(0, n - 1).bit_length()


def determine_fp8_type(fp8_format: str = "e4m3") -> Any:
    """The dtype of a format of 8-bit floats, `e4m3` or `e5m2`: cards of NVIDIA's have the finite e4m3."""
    from ..errors import OptionError
    from ..language.tracing.expressions import WORDS

    name = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}.get(fp8_format)
    if name is None:
        raise OptionError(
            "there is no format {name!r} of 8-bit floats", name=fp8_format, expected="e4m3 or e5m2"
        )
    return WORDS[name]
