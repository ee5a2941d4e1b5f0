"""`tilebench help`: the words of the language, and what one of them does and where."""

from __future__ import annotations

import inspect

from ..profile.symptoms import list_of_symptoms, symptom
from . import Parser, overview


def help(parser: Parser, words: list[str]) -> int:
    """Print what a word such as T.copy does; without one, the commands and all words."""
    parser.add_argument(
        "word",
        metavar="WORD",
        nargs="?",
        help="a name of the language (T.copy), or of a page: slower-than-expected",
    )
    options = parser.parse_all(words)
    if options.word is None:
        print(overview())
        print(f"\nWhen something is not as it should be, `tilebench help` has a page:\n{list_of_symptoms()}")
        print(f"\n{_listed()}")
        return 0
    if (page := symptom(options.word)) is not None:
        print(page)
        return 0
    print(_told(options.word.removeprefix("T.")))
    return 0


def _listed() -> str:
    """All words by tier, and the names of the tiers that are not here."""
    from .. import language
    from ..language.word_table import rows

    table = rows(language)
    lines: list[str] = []
    for tier in dict.fromkeys(row.tier for row in table):
        lines.append(f"{tier} words:")
        lines += [f"  T.{row.name:<22} {row.line}" for row in table if row.tier == tier]
    return "\n".join([*lines, "", "`tilebench help T.copy` tells all of one."])


def _told(name: str) -> str:
    """Signature, documentation and targets. Raises `MissingWord` for what is no word."""
    from .. import language
    from ..language.word_table import known_roads, row_of

    word = getattr(language, name)
    row = row_of(language, name)
    if row.roads is None:
        ran = "no kernel of its own among the tests of the table"
    else:
        ran = ", ".join(f"{road} {'yes' if road in row.roads else 'no'}" for road in known_roads())
    return f"{row.signature}\n\n{inspect.getdoc(word) or ''}\n\ntier: {row.tier}\ntests pass on: {ran}"
