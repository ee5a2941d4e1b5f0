"""Small functions in front of a kernel: only the parts whose names the kernel's text uses.

The names of a prelude begin with `tb_`, which no name of a user's does in the text. The parts that a
kernel needs are found from its text, so a renderer need not keep count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from ...errors import InternalError

OURS = "tb_"
# Where a name begins is asked behind its letters, of which a search looks for the first: a text is long.
_NAME = re.compile(rf"{OURS}(?<!\w{OURS})\w+")
# Sets of names for which a prelude's text is kept.
MOST_KEPT = 64


class Wanted(NamedTuple):
    """What is asked for: the names of the parts, and the names in the kernel's text (None: all)."""

    parts: frozenset[str]
    names: frozenset[str] | None = None

    def has(self, name: str) -> bool:
        return self.names is None or name in self.names


@dataclass(frozen=True)
class Part:
    """One part: `uses` is a pattern of the names that need it; `text` is empty where nothing is left."""

    name: str
    uses: str
    text: str | Callable[[Wanted], str]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(rf"\b(?:{self.uses})\b")


@dataclass(frozen=True)
class Prelude:
    """Parts in the order in which they are written, behind `head`, which any of them needs."""

    head: str = ""
    parts: tuple[Part, ...] = ()

    def names_in(self, text: str) -> frozenset[str]:
        return frozenset(_NAME.findall(text))

    def parts_of(self, text: str) -> frozenset[str]:
        """The parts whose functions or types `text` names."""
        return self._parts_for(self.names_in(text))

    def _parts_for(self, names: frozenset[str]) -> frozenset[str]:
        joined = " ".join(names)
        return frozenset(part.name for part in self.parts if part.pattern.search(joined))

    def text_for(self, parts: Iterable[str], text: str | None = None) -> str:
        """The prelude with these parts, ending in a newline; empty for none.

        With the kernel's `text`, a part may leave out functions that the text does not name.
        Raises `InternalError` for a part that there is not.
        """
        wanted = Wanted(frozenset(parts), None if text is None else self.names_in(text))
        unknown = wanted.parts - {part.name for part in self.parts}
        if unknown:
            raise InternalError("the prelude has no part {names}", names=", ".join(sorted(unknown)))
        return self._text(wanted)

    def _text(self, wanted: Wanted) -> str:
        if not wanted.parts:
            return ""
        chosen = [part.text for part in self.parts if part.name in wanted.parts]
        texts = [self.head, *(text if isinstance(text, str) else text(wanted) for text in chosen)]
        return "\n".join(filter(None, texts)) + "\n"

    def before(self, body: str) -> tuple[str, int]:
        """`body` behind the prelude that it needs, and the number of lines in front of it."""
        prelude = self._for_names(self.names_in(body))
        return prelude + body, prelude.count("\n")

    @cached_property
    def _for_names(self) -> Callable[[frozenset[str]], str]:
        """The prelude that a kernel with these names needs, kept: with other parameters it names the same."""

        @lru_cache(MOST_KEPT)
        def made(names: frozenset[str]) -> str:
            return self._text(Wanted(self._parts_for(names), names))

        return made
