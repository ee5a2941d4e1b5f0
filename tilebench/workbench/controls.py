"""The controls of a workbench: sliders, target, stages, buttons. They only say what is wanted.

Callbacks come on whatever thread the notebook chose, so none does more than `Session.want`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import OptionError
from .options import parse_value
from .session import Picture
from .slider import Slider
from .subject import Wish

_WIDE = "330px"


def targets_offered(now: str | None) -> list[str]:
    """Every target a person can choose, as the dropdown lists them: the one of now first."""
    from ..targets import manifest, names

    offered = [machine for name in names() for machine in manifest(name).presentation.machines]
    return offered if now is None or now in offered else [now, *offered]


def label_of(value: Any) -> str:
    """A value as a slider shows it."""
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def typed(text: str) -> Any:
    """The value of what was typed, None for nothing; what is no value stays text, which is then refused."""
    try:
        return parse_value(text.strip()) if text.strip() else None
    except OptionError:
        return text


class Controls:
    """Widgets for the knobs of one workbench. `box` is shown; `want(**changes)` gets every move."""

    def __init__(
        self,
        knobs: Sequence[Slider],
        wish: Wish,
        target: str,
        want: Callable[..., None],
        stop: Callable[[], None],
        again: Callable[[], None],
    ) -> None:
        self._widgets: Any = importlib.import_module("ipywidgets")
        self._want, self._stop, self._again = want, stop, again
        self._quiet = False
        self._by_name: dict[str, Any] = {}
        self._stages: dict[str, Any] = {}
        w = self._widgets
        self.target = w.Dropdown(
            options=targets_offered(target), value=target, description="target",
            layout=w.Layout(width="240px"), style={"description_width": "50px"},
        )  # fmt: skip
        self.run = self._toggle("Measure", wish.run, "play", "time each position in a child process")
        self.check = self._toggle("Check", wish.check, "check", "compare every element with the reference")
        self.again = self._button("Again", "repeat", "another run of this position; go on after a stop")
        self.stop = self._button("Stop", "stop", "drop what is running or waiting")
        self.again.on_click(self._asked_again)
        self.stop.on_click(self._stopped)
        self._watch("target", self.target)
        self._watch("run", self.run)
        self._watch("check", self.check)
        top = w.HBox(
            [self.target, self.run, self.check, self.again, self.stop], layout=w.Layout(flex_flow="row wrap")
        )
        sliders = [self._slider(knob) for knob in knobs]
        self._grid = w.Box(sliders, layout=w.Layout(flex_flow="row wrap", display="flex"))
        self._stage_row = w.HBox([], layout=w.Layout(flex_flow="row wrap", align_items="center"))
        self._more = w.Accordion([], selected_index=None, layout=w.Layout(display="none"))
        self.box = w.VBox([top, self._grid, self._more, self._stage_row])
        self.box.add_class("tilebench-controls")

    def show(self, picture: Picture) -> None:
        """Add what only a compiled kernel tells: its stages, and the schedule choices it has."""
        if picture.stage_names and tuple(self._stages) != picture.stage_names:
            self._show_stages(picture)
        if picture.offered and not self._more.children:
            self._offer(picture.offered)

    def set(self, changes: dict[str, Any]) -> None:
        """Move controls without telling anybody."""
        self._quiet = True
        try:
            for name, value in changes.items():
                widget = {"target": self.target, "run": self.run, "check": self.check, **self._by_name}.get(
                    name
                )
                if widget is not None:
                    self._put(widget, value)
        finally:
            self._quiet = False

    def close(self) -> None:
        """Close every widget with its layout and style: each is a model that lives until it is closed."""
        for widget in list(all_below(self.box)):
            widget.close()
        self._by_name.clear()
        self._stages.clear()

    def _put(self, widget: Any, value: Any) -> None:
        options: Any = getattr(widget, "options", None)
        if options is not None and all(option != value and option[-1] != value for option in options):
            widget.options = [*options, (label_of(value), value)]
        if isinstance(widget, self._widgets.Text):
            value = "" if value is None else str(value)
        widget.value = value

    def _toggle(self, name: str, on: bool, icon: str, tip: str) -> Any:
        return self._widgets.ToggleButton(
            value=on, description=name, icon=icon, tooltip=tip, layout=self._widgets.Layout(width="auto")
        )

    def _button(self, name: str, icon: str, tip: str) -> Any:
        return self._widgets.Button(
            description=name, icon=icon, tooltip=tip, layout=self._widgets.Layout(width="auto")
        )

    def _watch(self, name: str, widget: Any) -> None:
        def moved(change: Any) -> None:
            if not self._quiet:
                self._want(**{name: change["new"]})

        widget.observe(moved, "value")

    def _slider(self, knob: Slider) -> Any:
        w = self._widgets
        if not knob.values:
            return self._field(knob)
        slider = w.SelectionSlider(
            options=[(label_of(v), v) for v in knob.values], value=knob.value, description=knob.name,
            continuous_update=False, layout=w.Layout(width=_WIDE), style={"description_width": "90px"},
        )  # fmt: skip
        self._by_name[knob.name] = slider
        self._watch_knob(knob.name, slider)
        return slider

    def _field(self, knob: Slider) -> Any:
        """A value of the call that nobody gave a range for: typed, as on the line."""
        w = self._widgets
        field = w.Text(
            value="" if knob.value is None else str(knob.value), placeholder="a value of the call",
            description=knob.name, continuous_update=False, layout=w.Layout(width=_WIDE),
            style={"description_width": "90px"},
        )  # fmt: skip
        self._by_name[knob.name] = field

        def moved(change: Any) -> None:
            if not self._quiet:
                self._want(**{knob.name: typed(change["new"])})

        field.observe(moved, "value")
        return field

    def _watch_knob(self, name: str, widget: Any) -> None:
        def moved(change: Any) -> None:
            if not self._quiet:
                self._want(**{name: change["new"]})

        widget.observe(moved, "value")

    def _offer(self, knobs: Sequence[Slider]) -> None:
        """Dropdowns of the schedule's choices, folded away: the kernel's own hints are the usual case."""
        w = self._widgets
        boxes: list[Any] = []
        for knob in knobs:
            box = w.Dropdown(
                options=[(label_of(v), v) for v in knob.values], value=knob.value, description=knob.name,
                layout=w.Layout(width="300px"), style={"description_width": "150px"},
            )  # fmt: skip
            self._by_name[knob.name] = box
            self._watch_knob(knob.name, box)
            boxes.append(box)
        self._more.children = [w.Box(boxes, layout=w.Layout(flex_flow="row wrap", display="flex"))]
        self._more.set_title(0, "Schedule")
        self._more.layout.display = None

    def _show_stages(self, picture: Picture) -> None:
        w = self._widgets
        shown = [widget.name for widget in picture.record.stages] if picture.record else []
        gone = [widget for child in self._stage_row.children for widget in all_below(child)]
        self._stages = {}
        for name in picture.stage_names:
            self._stages[name] = w.ToggleButton(
                value=name in shown, description=name, tooltip=f"show the stage {name}",
                layout=w.Layout(width="auto", height="26px"),
            )  # fmt: skip
            self._stages[name].observe(self._stages_moved, "value")
        label = w.Label("stages", layout=w.Layout(width="54px"))
        self._stage_row.children = [label, *self._stages.values()]
        for widget in gone:
            widget.close()

    def _stopped(self, _: Any) -> None:
        self._stop()

    def _asked_again(self, _: Any) -> None:
        self._again()

    def _stages_moved(self, _: Any) -> None:
        chosen = [name for name, button in self._stages.items() if button.value]
        if chosen and not self._quiet:
            self._want(stages=chosen)


def all_below(widget: Any) -> Any:
    """A widget, its layout and style, and those of all its children."""
    yield widget
    for name in ("layout", "style"):
        part = getattr(widget, name, None)
        if part is not None and hasattr(part, "close"):
            yield part
    for child in getattr(widget, "children", ()):
        yield from all_below(child)
