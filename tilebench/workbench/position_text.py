"""A position of the controls as one line of text, and back: `gemm M=1024 block_M=64 ko.num_stages=3
target=cpu`.

The words are those of a `%%tile` line, so that a line can be carried from a bench to a cell, a shell or a
mail.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import OptionError
from .options import parse_line, parse_value
from .wish import EDITED, Wish


@dataclass(frozen=True)
class PositionWords:
    """What a position's text says: the kernel (may be empty), values by name, target, and the number of an
    edit.
    """

    kernel: str = ""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    target: str | None = None
    edit: int | None = None


def position_text(kernel: str, wish: Wish) -> str:
    """The position of a wish, whole: every parameter, each choice that overrides, a call's values, the
    target.
    """
    named = wish.position if wish.edit is None else {**wish.position, EDITED: wish.edit.number}
    return " ".join([kernel, *(shlex.quote(f"{name}={spelled(value)}") for name, value in named.items())])


def spelled(value: Any) -> str:
    """A value as a line spells it, which `parse_value` reads back."""
    if isinstance(value, str):
        text = str(value)
        try:
            return text if parse_value(text) == text and text == text.strip() and text else repr(text)
        except OptionError:
            return repr(text)
    return repr(value)


def read_position(text: str) -> PositionWords:
    """The position that a text says. `OptionError` for what is no `NAME=VALUE`, or options of a cell."""
    option = next((word for word in text.split() if word.startswith("--")), None)
    if option is not None:
        raise OptionError(
            "{option} is no part of a position", option=option, expected="KERNEL NAME=VALUE ... target=TARGET"
        )
    options = parse_line(text)
    values = dict(options.position)
    edit = values.pop(EDITED, None)
    if edit is not None and type(edit) is not int:
        raise OptionError(
            "edited={edit} names no edit", edit=edit, expected="the number of an edit of this bench"
        )
    return PositionWords(options.kernel, values, options.target, edit)
