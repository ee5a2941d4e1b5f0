"""The live view as a widget: one anywidget whose traits are pieces of HTML.

The script is given as text, not as a path: with a path anywidget watches the file, and a widget that
is watched never dies. Where anywidget is missing, plain HTML widgets show the same pieces, without
keeping what a reader folded or scrolled.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from .parts import (
    chart_part,
    check_part,
    details_part,
    history_part,
    problem_part,
    sheet,
    stages_part,
    status_part,
)
from .session import Picture

PARTS = ("status", "problem", "stages", "check", "chart", "details", "history")


@lru_cache(maxsize=1)
def _view_class() -> Any:
    anywidget: Any = importlib.import_module("anywidget")
    traitlets: Any = importlib.import_module("traitlets")
    text = (Path(__file__).parent / "view.js").read_text(encoding="utf-8")
    body: dict[str, Any] = {
        part: traitlets.Unicode("").tag(sync=True) for part in (*PARTS, "sheet", "name", "kernel")
    }
    return type("TilebenchView", (anywidget.AnyWidget,), {"_esm": text, "__module__": __name__, **body})


class _Plain:
    """The same traits on plain HTML widgets."""

    def __init__(self, sheet: str, name: str, kernel: str) -> None:
        widgets: Any = importlib.import_module("ipywidgets")
        style = widgets.HTML(f'<style>{sheet}[data-tilebench-fallback="{name}"]{{display:none}}</style>')
        self.places = {part: widgets.HTML() for part in PARTS}
        self.widget: Any = widgets.VBox([style, *self.places.values()])

    def set(self, part: str, value: str) -> None:
        self.places[part].value = f'<div class="tilebench">{value}</div>' if value else ""


class View:
    """Shows pictures. `widget` goes into a box. Safe from any thread that publishes one at a time."""

    def __init__(self, name: str, kernel: str) -> None:
        self._last: dict[str, Any] = {}
        if importlib.util.find_spec("anywidget") is not None:
            self._plain: _Plain | None = None
            self.widget: Any = _view_class()(sheet=sheet(), name=name, kernel=kernel)
        else:
            self._plain = _Plain(sheet(), name, kernel)
            self.widget = self._plain.widget
        self._prefix = f"{name}-"

    def show(self, picture: Picture) -> None:
        """Draw what has changed since the last picture; one message for all of it."""
        values = self._values(picture)
        if self._plain is not None:
            for part, value in values.items():
                self._plain.set(part, value)
            return
        with self.widget.hold_sync():
            for part, value in values.items():
                setattr(self.widget, part, value)

    def _stages(self, picture: Picture) -> str:
        return stages_part(picture, self._prefix)

    def _values(self, picture: Picture) -> dict[str, str]:
        """The parts whose inputs are others than before; making HTML costs more than comparing."""
        drawn_from = (picture.record, picture.stale, picture.stale and picture.wish)
        keys: dict[str, tuple[Any, Any]] = {
            "problem": (picture.problem, problem_part),
            "stages": (drawn_from, self._stages),
            "check": (picture.report, check_part),
            "chart": ((picture.runs, picture.ceilings), chart_part),
            "details": ((*drawn_from, picture.shared_limit), details_part),
            "history": ((picture.history, picture.ceilings), history_part),
        }  # fmt: skip
        out = {"status": status_part(picture)}
        for part, (key, draw) in keys.items():
            if part not in self._last or not _same(self._last[part], key):
                out[part] = draw(picture)
                self._last[part] = key
        return out


def _same(before: Any, now: Any) -> bool:
    """Whether two inputs are the same objects; pictures are immutable, so this is enough."""
    if isinstance(before, tuple) and isinstance(now, tuple):
        pairs = cast("tuple[tuple[Any, ...], tuple[Any, ...]]", (before, now))
        return len(pairs[0]) == len(pairs[1]) and all(map(_same, *pairs))
    return before is now
