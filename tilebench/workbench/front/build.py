"""A picture as the state that the front end draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..chart import config_text
from ..position_text import position_text
from ..status import STOPPED, figures, remarks, said
from ..views.stages import language_of
from .block_data import TabData
from .blocks import check_tab, diagnosis_tab, moves_tab, record_tabs
from .chart_data import chart_data, here, moved_name, now_values
from .compared_data import compared_data
from .controls import controls_data, idle_text, targets_offered
from .edits_data import edits_data, left_note, problem_data
from .lane_blocks import timeline_tab
from .picture_tabs import with_pictures
from .state import BenchState, Chip, CountWay, EditsData, StatusData
from .sweep_data import sweep_data, sweep_tab

if TYPE_CHECKING:
    from ..picture import Picture
    from ..slider import Slider

RUNNING = ("compiling", "counting", "checking", "measuring")


def bench_state(
    picture: Picture,
    name: str,
    kernel: str,
    knobs: Sequence[Slider] = (),
    *,
    live: bool = False,
    charted: bool = True,
) -> BenchState:
    """The state of a picture. `knobs` are the controls of a live bench; a static one has none.

    Without `charted` the chart is left out, which is sent apart where it has not changed.
    """
    record, wish = picture.record, picture.wish
    target = record.target if record is not None and not picture.stale else wish.target or ""
    stages = picture.stage_names or tuple(stage.name for stage in record.stages if record) if record else ()
    made = record.stages if record is not None else ()
    return BenchState(
        id=name,
        kernel=kernel,
        live=live,
        status=status_data(picture),
        target=target,
        targets=tuple(targets_offered(target)) if live else (target,),
        stages=tuple(stages),
        shown=picture.shown or tuple(stages),
        asked=bool(wish.stages),
        stale=stale_text(picture),
        run=wish.run,
        check=wish.check,
        controls=controls_data(knobs, picture) if live else (),
        heard=wish.heard if live else {},
        idle=idle_text(picture) if live else "",
        titles={each.language: language_of(record, each).title for each in made} if record else {},
        chips=chips(picture),
        notes=notes(picture, live),
        problem=problem_data(picture, picture.problem) if picture.problem is not None else None,
        tabs=tabs(picture, live, charted),
        chart=chart_data(picture) if charted else None,
        here=here(picture),
        now=now_values(picture),
        moved=moved_name(picture),
        sweep=sweep_data(picture) if live or picture.sweep is not None else None,
        edits=edits_data(picture) if live else EditsData(),
        position=position_text(kernel, wish) if live else "",
        notice=picture.notice,
        countable=tuple(CountWay(*way) for way in _ways(picture)) if live else (),
        pins=picture.pins if live else (),
        compared=compared_data(picture) if live else None,
    )


def notes(picture: Picture, live: bool) -> tuple[str, ...]:
    """The sentences above the panes."""
    stopped = live and picture.status.phase == "cancelled"
    compared = compared_data(picture) if live else None
    said = (compared.said,) if compared is not None else ()
    return (*remarks(picture), *left_note(picture), *said, *([STOPPED] if stopped else []))


def _ways(picture: Picture) -> list[tuple[str, str]]:
    """The ways to have figures of lines that have not been gone at this position."""
    record = picture.record
    if record is None or picture.stale:
        return []
    there = {each.name.partition("_")[0] for each in record.counters}
    made = {stage.name for stage in record.stages if stage.text}
    gone = {"simulator": "sim" in there, "card": "ncu" in there, "code": set(picture.stage_names) <= made}
    return [way for way in picture.countable if not gone.get(way[0], False)]


def tabs(picture: Picture, live: bool, charted: bool = True) -> tuple[TabData, ...]:
    """The chart first where there is or can be one, then what the record and a check say."""
    out = [TabData("chart", "Chart")] if live or picture.runs else []
    out += sweep_tab(picture, charted)
    if picture.diagnosis is not None:
        out.append(diagnosis_tab(picture.diagnosis))
    if picture.record is not None:
        out += with_pictures(record_tabs(picture.record, picture.shared_limit), picture.pictures, live=live)
    if picture.report is not None:
        out.append(check_tab(picture.report))
    if picture.record is not None and (live or picture.clocks is not None):
        out.append(timeline_tab(picture, live))
    if len(picture.history) > 1:
        out.append(moves_tab(picture.history, picture.ceilings))
    return tuple(out)


def status_data(picture: Picture) -> StatusData:
    """What the thread does, and since when."""
    status = picture.status
    tone, word = said(picture)
    running = status.phase in RUNNING
    part = status.done / status.total if status.total and running else None
    return StatusData(status.phase, word, tone, round(status.elapsed, 2) if running else None, part)


def chips(picture: Picture) -> tuple[Chip, ...]:
    """The figures that a mover of sliders looks at."""
    edit = picture.wish.edit
    edited = [] if edit is None else [Chip(f"{' and '.join(s.stage for s in edit.stages)} edited", "warn")]
    return (*edited, *(Chip(each) for each in figures(picture)))


def stale_text(picture: Picture) -> str:
    """Of which position the picture is, where that is not the wished one."""
    if not picture.stale or picture.record is None:
        return ""
    differs = {k: v for k, v in picture.record.parameters.items() if picture.wish.values.get(k) != v}
    if picture.wish.edit is not None and not differs:
        return "Below: the last text that compiled."
    return f"Below: the last good picture, of {config_text(differs) or 'the last good choice'}."
