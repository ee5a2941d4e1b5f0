"""Whether a value that a text gives an attribute is of the types that its field says."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .expr import Const, Expr
from .node import FieldMark

_WORDS = {
    "int": "a whole number", "bool": "True or False", "str": "a text", "None": "None",
    "Expr": "a size of whole numbers", "float": "a number",
}  # fmt: skip


@lru_cache(maxsize=512)
def _kinds(note: str, star: bool) -> tuple[str, ...]:
    """The names of types in a field's annotation; of one element where elements stand as arguments."""
    if star:
        note = note.removeprefix("tuple[").removesuffix("]").removesuffix(", ...")
    return tuple(part.strip() for part in note.split("|"))


def fits(value: Any, mark: FieldMark) -> bool:
    """Whether the value is of a type that the field takes. Counts of a launch or loop are not negative."""
    kinds = _kinds(mark.note, mark.star)
    if value is None:
        return "None" in kinds
    if isinstance(value, Expr) and not isinstance(value, Const):
        return "Expr" in kinds and value.dtype.is_integer
    if type(value) is int:
        return "int" in kinds and not (mark.star and value < 0)
    if isinstance(value, (bool, float, str)):
        return type(value).__name__ in kinds
    # Of a value class the text has its name; others are names of tuples.
    return not set(kinds) <= set(_WORDS)


def expected_by(mark: FieldMark) -> str:
    """The types that a field takes, in words."""
    return " or ".join(_WORDS.get(kind, f"T.{kind}") for kind in _kinds(mark.note, mark.star))
