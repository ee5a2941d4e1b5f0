"""Pygments lexers for the two languages Pygments has not: tile IR and NVIDIA SASS.

Both are built from `tokens.json`, which the CodeMirror modes of the extension read as well, so
that a notebook cell, a pane and a saved output colour the same word alike. (`sass` is the alias of
a style-sheet language in Pygments, hence `nvsass`.)
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

from pygments.lexer import Lexer, RegexLexer
from pygments.token import (
    Comment,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

from .buffer_names import buffers_in

_TYPES: dict[str, Any] = {
    "space": Whitespace, "comment": Comment.Single, "string": String, "type": Keyword.Type,
    "control": Keyword.Reserved, "decision": Name.Decorator, "builtin": Name.Builtin,
    "decorator": Name.Decorator, "number": Number, "keyword": Keyword, "constant": Keyword.Constant,
    "argument": Name.Attribute, "buffer": Name.Variable, "name": Name, "operator": Operator,
    "punctuation": Punctuation, "text": Text, "address": Comment.Hashbang, "place": Comment.Special,
    "schedule": Comment.Preproc, "predicate": Name.Exception, "label": Name.Label,
    "directive": Keyword.Namespace, "special": Name.Constant, "register": Name.Variable,
    "barrier": Name.Constant, "matrix": Name.Function.Magic, "memory": Name.Class,
    "modifier": Name.Attribute, "opcode": Name.Function,
}  # fmt: skip
_NVSASS_CONSTANT = Literal


@lru_cache(maxsize=1)
def token_table() -> dict[str, Any]:
    """`tokens.json`: for each language its `words` and ordered `rules`."""
    return cast("dict[str, Any]", json.loads(Path(__file__).with_name("tokens.json").read_text("utf-8")))


def _rules(language: str) -> list[tuple[str, Any]]:
    table = token_table()[language]
    rules: list[tuple[str, Any]] = []
    if language == "tile-ir":
        # The one token that crosses lines; an editor's line-wise mode keeps it as state instead.
        rules.append((r"[rbufRBUF]{0,2}(?:\"{3}(?:.|\n)*?\"{3}|'{3}(?:.|\n)*?'{3})", String.Doc))
    for pattern, kind in table["rules"]:
        for name, words in table["words"].items():
            # Longest first: `int8` must not be taken out of `int8_t`, nor LD out of LDG.
            pattern = pattern.replace("{" + name + "}", "|".join(sorted(words, key=len, reverse=True)))
        token = _NVSASS_CONSTANT if (language, kind) == ("nvsass", "constant") else _TYPES[kind]
        rules.append((pattern, token))
    return rules


class TileIRLexer(RegexLexer):
    """Python syntax in the words of the tile language: kernels and every stage up to `threaded`."""

    name = "Tile IR"
    aliases: ClassVar[Sequence[str]] = ["tile-ir", "tileir"]
    filenames: ClassVar[Sequence[str]] = [
        "*.tile",
        "*.scheduled",
        "*.bounded",
        "*.laid_out",
        "*.pipelined",
        "*.threaded",
    ]
    url = ""
    version_added = ""
    tokens: ClassVar[dict[str, Any]] = {"root": _rules("tile-ir")}

    def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[Any]:
        """Tokens with their offsets; a name that the text makes a buffer is one wherever it stands."""
        buffers = buffers_in(text) | self.buffers
        for offset, kind, value in RegexLexer.get_tokens_unprocessed(self, text, stack):
            yield offset, (Name.Variable if kind is Name and value in buffers else kind), value

    def __init__(self, **options: Any) -> None:
        """`buffers`: names to colour as buffers although the text does not make them."""
        self.buffers: frozenset[str] = frozenset(options.pop("buffers", ()))
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType]


class NvSassLexer(RegexLexer):
    """NVIDIA SASS as `nvdisasm` and `cuobjdump` print it, plain or with line information."""

    name = "NVIDIA SASS"
    aliases: ClassVar[Sequence[str]] = ["nvsass"]
    filenames: ClassVar[Sequence[str]] = ["*.nvsass"]
    url = ""
    version_added = ""
    tokens: ClassVar[dict[str, Any]] = {"root": _rules("nvsass")}


@lru_cache(maxsize=32)
def lexer_for(language: str, buffers: frozenset[str] = frozenset()) -> Lexer:
    """The lexer of a stage's language; plain text for a language nobody knows."""
    if language in ("tile-ir", "python"):
        # Kernels are Python, and the tile language's words are what a reader looks for in them.
        return TileIRLexer(buffers=buffers, stripnl=False, ensurenl=False)
    if language == "nvsass":
        return NvSassLexer(stripnl=False, ensurenl=False)
    from pygments.lexers.special import TextLexer
    from pygments.util import ClassNotFound

    by_name: Any = importlib.import_module("pygments.lexers").get_lexer_by_name
    try:
        found: Lexer = by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False, ensurenl=False)
    return found
