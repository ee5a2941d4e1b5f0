"""Tab on the line of `%%tile`, for every front end that asks IPython: terminal, VS Code, Colab, Lab."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from .options import TILE_LINE

_IDENTIFIER = "tilebench_tile_line"


def register(shell: Any) -> None:
    """Answer Tab on the lines of the magic in a shell."""
    completer: Any = importlib.import_module("IPython.core.completer")

    @completer.context_matcher(identifier=_IDENTIFIER)
    def tile_line(context: Any) -> Any:
        before = context.text_until_cursor
        if not TILE_LINE.match(before):
            return {"completions": [], "suppress": False}
        from .completing import kernels_of, offers

        lines = context.full_text.split("\n")
        found = offers(before, "\n".join(lines[context.cursor_line + 1 :]), kernels_of(shell.user_ns))
        return {
            "completions": [completer.SimpleCompletion(word.text, type=word.kind) for word in found.words],
            "matched_fragment": found.fragment,
            "ordered": True,
            # Words of Python mean nothing here, also where none of ours fits.
            "suppress": True,
        }

    shell.Completer.custom_matchers.append(tile_line)
    _tell_roads()


def _tell_roads() -> None:
    """Let `T.copy?` say on which roads its tests are right: what `tilebench help T.copy` says."""
    from .. import language
    from ..language.word_table import roads_line

    for name in language.NAMES:
        word: Any = getattr(language, name)
        line = roads_line(name)
        # A dtype is a value, whose documentation is its class's.
        if line and callable(word) and hasattr(word, "__name__") and line not in (word.__doc__ or ""):
            word.__doc__ = f"{inspect.getdoc(word)}\n\n{line}"


def unregister(shell: Any) -> None:
    """Take the answers away."""
    shell.Completer.custom_matchers[:] = [
        each
        for each in shell.Completer.custom_matchers
        if getattr(each, "matcher_identifier", "") != _IDENTIFIER
    ]
