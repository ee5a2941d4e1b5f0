"""Drawing a source line with carets."""

from __future__ import annotations

import unicodedata

from .place import Place

# Call sites drawn of a longer chain, from each end: a helper that calls itself has a thousand.
FIRST_CALLS, LAST_CALLS = 3, 1

_RED, _DIM, _END = "\x1b[31m", "\x1b[2m", "\x1b[0m"


def _width(text: str) -> int:
    """Columns that `text` takes in a terminal: wide characters take two, combining ones none."""
    total = 0
    for ch in text:
        if unicodedata.combining(ch):
            continue
        total += 2 if unicodedata.east_asian_width(ch) in "WF" else 1
    return total


def draw_place(place: Place, *, color: bool = False) -> str:
    """`file:line` and the quoted line with carets, for the place and each call site above it."""
    out: list[str] = []
    chain = place.chain
    left_out = len(chain) - FIRST_CALLS - LAST_CALLS
    for step, here in enumerate(chain):
        if left_out > 1 and FIRST_CALLS <= step < FIRST_CALLS + left_out:
            if step == FIRST_CALLS:
                out.append(f"  ... {left_out} calls more ...")
            continue
        lead = "  at" if step == 0 else "  called from"
        inside = f", in {here.function}" if here.function else ""
        out.append(f"{lead} {here.file}:{here.line}{inside}")
        raw = here.text
        if not raw.strip():
            continue
        text = raw.expandtabs(4)
        # Columns count characters of the raw line; tabs before them have been widened.
        start = len(raw[: here.column].expandtabs(4))
        last = (
            here.end_column if here.end_line in (0, here.line) and here.end_column > here.column else len(raw)
        )
        end = len(raw[:last].expandtabs(4))
        indent = len(text) - len(text.lstrip())
        start, end = max(start, indent), max(end, start + 1)
        carets = " " * _width(text[indent:start]) + "^" * max(1, _width(text[start:end]))
        if color:
            carets = f"{_RED}{carets}{_END}"
        out.append(f"    {text[indent:].rstrip()}")
        out.append(f"    {carets}")
    return "\n".join(out)


def nearest(name: object, known: list[str], limit: int = 3) -> list[str]:
    """The names of `known` closest to `name` in spelling, best first; none for what is no text."""
    import difflib

    if not isinstance(name, str):
        return []

    # Case is the commonest slip (`T.pipelined`), so compare without it and give the real spelling.
    lower: dict[str, str] = {}
    for candidate in known:
        lower.setdefault(candidate.lower(), candidate)
    close = difflib.get_close_matches(name.lower(), list(lower), n=limit, cutoff=0.6)
    return [lower[each] for each in close]
