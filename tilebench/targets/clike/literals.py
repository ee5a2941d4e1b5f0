"""Literals of exactly a value and type: floats in hexadecimal where decimals would be long."""

from __future__ import annotations

import math
from typing import Any

from ...errors import TargetError
from ...ir import DType
from ...language.meanings.rounding import number_in
from .dialect import Dialect

# The ending of names of a float type's own, as in `tb_inf_f16`.
FLOAT_SUFFIX = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
                "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float4_e2m1fn": "e2m1"}  # fmt: skip


def literal(value: Any, dtype: DType, dialect: Dialect) -> str:
    """The text of a constant. Raises `TargetError` for a dtype that the language has not."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    if dtype.is_integer:
        return _integer(int(value), dtype, dialect)
    suffix = FLOAT_SUFFIX.get(dtype.name)
    if suffix is None:
        raise TargetError(
            "there is no {language} code for {dtype} yet", language=dialect.language, dtype=dtype
        )
    number = float(number_in(value, dtype))
    if math.isnan(number):
        return dialect.special.format(word="nan", suffix=suffix)
    if math.isinf(number):
        return ("-" if number < 0 else "") + dialect.special.format(word="inf", suffix=suffix)
    if dtype.name == "float64":
        return _float(number)
    single = _float(number) + dialect.suffixes.get("float32", "")
    if dtype.name == "float32":
        return single
    return dialect.narrow_float.format(type=dialect.type_of(dtype), value=single)


def _float(number: float) -> str:
    short = repr(number)
    # Few digits are exact in C too; a long decimal is written in hexadecimal, so nothing is rounded.
    exact = len(short) <= 8 and "e" not in short and number == float(f"{number:.6g}")
    return short if exact else number.hex()


def _integer(value: int, dtype: DType, dialect: Dialect) -> str:
    suffix = dialect.suffixes.get(dtype.name, "")
    # In C the least number is no literal: the minus stands in front of one that does not fit.
    if dtype.name in ("int32", "int64") and value == dtype.least:
        return f"({value + 1}{suffix} - 1)"
    return f"{value}{suffix}"
