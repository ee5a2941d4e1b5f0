"""The live bench as one anywidget: a packed record, a state, and messages back.

The script is given as text, not as a path: with a path anywidget watches the file, and a widget that is
watched never dies.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import is_, is_not
from typing import TYPE_CHECKING, Any

from ...plain import to_plain
from ...record import CompileRecord
from ..packed import pack
from ..picture import Picture
from ..slider import Slider
from .build import RUNNING, bench_state, status_data
from .chart_data import chart_data
from .gutters import plain_gutters
from .picture_tabs import picture_blocks
from .script import loader, script, shared_script
from .sweep_data import sweep_tab

if TYPE_CHECKING:
    from ...pictures.collect import KernelPictures


_NOT_MEASURED: dict[str, Any] = {"chart": None, "sweep": []}


@lru_cache(maxsize=1)
def _view_class() -> Any:
    anywidget: Any = importlib.import_module("anywidget")
    traitlets: Any = importlib.import_module("traitlets")
    body: dict[str, Any] = {
        "_esm": loader(),
        "script": traitlets.Unicode("").tag(sync=True),
        "__module__": __name__,
        "state": traitlets.Dict({}).tag(sync=True),
        # Of the state what changes most often, by itself: while work runs nothing else is sent.
        "status": traitlets.Dict({}).tag(sync=True),
        "record": traitlets.Unicode("").tag(sync=True),
        "apart": traitlets.Unicode("").tag(sync=True),
        "other": traitlets.Unicode("").tag(sync=True),
        # Apart from the state, so that a move does not send again what it has not changed.
        "measured": traitlets.Dict(_NOT_MEASURED).tag(sync=True),
    }
    return type("TilebenchBench", (anywidget.AnyWidget,), body)


def packed_other(record: CompileRecord | None) -> str:
    """A record that texts are compared with; empty for none."""
    return "" if record is None else pack({"record": to_plain(record), "runs": [], "gutters": []}, level=1)


# Time in which Jupyter's thread takes a message and gives it to the socket; it needs a tenth of that.
SENDING_S = 0.001

# What an answer changes before there is anything of it.
_BEGUN = ("status", "history", "edits", "pins", "notice")


def _only_begun(old: Picture, new: Picture) -> bool:
    """Whether nothing has come but word of what the thread does and of the move that it is at.

    Pictures share what has not changed. The list of moves is drawn with the first that comes of one: drawn
    before, it stands in the way of what a mover waits for.
    """
    names = (each.name for each in fields(Picture) if each.name not in _BEGUN)
    return (
        all(getattr(old, name) is getattr(new, name) for name in names)
        and (old.edits, old.pins) == (new.edits, new.pins)
        and new.notice in ("", old.notice)
        and len(old.runs) == len(new.runs)
        and all(map(is_, old.runs, new.runs))
    )


def measured_plain(picture: Picture) -> dict[str, Any]:
    """What is measured, as the browser gets it beside the state."""
    sweep = [block for tab in sweep_tab(picture) for block in tab.blocks]
    return {"chart": to_plain(chart_data(picture)), "sweep": to_plain(sweep)}


class View:
    """Shows pictures. `box` is what stands in the cell. One thread at a time may call `show`."""

    def __init__(
        self,
        name: str,
        kernel: str,
        knobs: Sequence[Slider],
        first: Picture,
        asked: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.name, self.kernel, self.knobs = name, kernel, knobs
        self._record: CompileRecord | None = None
        self._accesses: object = None
        self._pictures: KernelPictures | None = None
        self._other: CompileRecord | None = None
        # What the chart was made of.
        self._charted: tuple[object, ...] = (None,)
        self._shown = first
        state = self._state(first)
        self.widget: Any = _view_class()(state=state, status=state["status"], script=shared_script.name())
        widgets: Any = importlib.import_module("ipywidgets")
        # A box is marked by ipywidgets when its kernel is gone; a widget of one's own is not.
        self.box: Any = widgets.VBox([self.widget])

        def said(_widget: Any, content: Any, _buffers: Any) -> None:
            if content == {"kind": "script"}:
                self.widget.send({"kind": "script", "text": script()})
            elif isinstance(content, dict):
                asked(content)  # pyright: ignore[reportUnknownArgumentType]

        self.widget.on_msg(said)

    def _state(self, picture: Picture) -> dict[str, Any]:
        state = bench_state(picture, self.name, self.kernel, self.knobs, live=True, charted=False)
        return to_plain(state)

    def _show_measured(self, picture: Picture) -> None:
        """The chart and the table of a sweep, where another run, ceiling or row has come."""
        sweep = picture.sweep
        about = (*sweep.rows, sweep.why, sweep.record.repeats) if sweep is not None else ()
        parts = (*picture.runs, *about, *picture.others, picture.ceilings)
        if len(parts) != len(self._charted) or any(map(is_not, parts, self._charted)):
            self._charted = parts
            self.widget.measured = measured_plain(picture)

    def show(self, picture: Picture) -> None:
        """Draw what has changed since the last picture; one message for all of it."""
        running = picture.status.phase in ("queued", *RUNNING)
        begun = _only_begun(self._shown, picture)
        self._shown = picture
        if running and begun:
            self.widget.status = to_plain(status_data(picture))
            return
        with self.widget.hold_sync():
            own = picture.own_pictures
            accesses = own.accesses if own is not None else None
            if picture.record is not None and (
                picture.record is not self._record or accesses is not self._accesses
            ):
                self._record, self._accesses = picture.record, accesses
                held = {
                    "record": to_plain(picture.record),
                    "runs": [],
                    "gutters": plain_gutters(picture.record, pictures=own),
                }
                self.widget.record = pack(held, level=1)
            self._draw_apart(picture)
            self._draw_other(picture)
            self._show_measured(picture)
            state = self._state(picture)
            self.widget.status = state["status"]
            if not running or {**state, "status": self.widget.state["status"]} != self.widget.state:
                self.widget.state = state
        if running:
            # What computes goes on in this thread, and Python changes threads every 5 ms: the one that sends
            # is let in front.
            time.sleep(SENDING_S)

    def _draw_apart(self, picture: Picture) -> None:
        """The long blocks, where they have changed."""
        if picture.pictures is not self._pictures:
            self._pictures = picture.pictures
            self.widget.apart = pack(to_plain(picture_blocks(picture.pictures)), level=1)

    def _draw_other(self, picture: Picture) -> None:
        """The record that texts are compared with, where it has changed."""
        other = picture.compared.record if picture.compared is not None else None
        if other is not self._other:
            self._other = other
            self.widget.other = packed_other(other)

    def close(self) -> None:
        """End the widgets and their layouts: each is a model that lives until it is closed.

        In a page also after that: hence without what is long.
        """
        with self.widget.hold_sync():
            self.widget.record = self.widget.apart = self.widget.other = ""
            self.widget.state, self.widget.measured = {}, _NOT_MEASURED
        # A model there keeps what it was before its last change, too.
        self.widget.status = {}
        for widget in (self.widget, self.box):
            widget.layout.close()
            widget.close()
