"""A picture as the state that the front end draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..chart import Chart, chart_of, config_text, method_lines
from ..position_text import position_text
from ..status import STOPPED, figures, remarks, said
from ..style import rate_text
from ..tiers import plain_config
from ..views.stages import language_of
from ..wish import EDITED
from .block_data import TabData
from .blocks import check_tab, diagnosis_tab, moves_tab, record_tabs
from .controls import controls_data, idle_text, targets_offered
from .edits_data import edits_data, left_note, problem_data
from .picture_tabs import with_pictures
from .state import BenchState, ChartData, Chip, EditsData, PointData, StatusData

if TYPE_CHECKING:
    from ..picture import Picture
    from ..slider import Slider

RUNNING = ("compiling", "checking", "measuring")


def bench_state(
    picture: Picture, name: str, kernel: str, knobs: Sequence[Slider] = (), *, live: bool = False
) -> BenchState:
    """The state of a picture. `knobs` are the controls of a live bench; a static one has none."""
    record, wish = picture.record, picture.wish
    target = record.target if record is not None and not picture.stale else wish.target or ""
    stages = picture.stage_names or tuple(stage.name for stage in record.stages if record) if record else ()
    chart = chart_data(picture) if picture.runs else None
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
        idle=idle_text(picture) if live else "",
        titles={s.language: language_of(record, s).title for s in record.stages}
        if record is not None
        else {},
        chips=chips(picture),
        notes=notes(picture, live),
        problem=problem_data(picture, picture.problem) if picture.problem is not None else None,
        tabs=tabs(picture, live),
        chart=chart,
        edits=edits_data(picture) if live else EditsData(),
        position=position_text(kernel, wish) if live else "",
        notice=picture.notice,
    )


def notes(picture: Picture, live: bool) -> tuple[str, ...]:
    """The sentences above the panes."""
    stopped = live and picture.status.phase == "cancelled"
    return (*remarks(picture), *left_note(picture), *([STOPPED] if stopped else []))


def tabs(picture: Picture, live: bool) -> tuple[TabData, ...]:
    """The chart first where there is or can be one, then what the record and a check say."""
    out = [TabData("chart", "Chart")] if live or picture.runs else []
    if picture.diagnosis is not None:
        out.append(diagnosis_tab(picture.diagnosis))
    if picture.record is not None:
        out += with_pictures(record_tabs(picture.record, picture.shared_limit), picture.pictures, live=live)
    if picture.report is not None:
        out.append(check_tab(picture.report))
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


def chart_data(picture: Picture) -> ChartData:
    """The chart of the runs, with the position of now marked."""
    chart = chart_of(picture.runs, picture.ceilings)
    now = plain_config(picture.wish.config)
    leader = chart.leader
    return ChartData(
        points=tuple(_point(chart, k, dict(p.config) == now) for k, p in enumerate(chart.points)),
        unit=chart.unit,
        ceiling=chart.ceiling,
        ceiling_text=f"measured ceiling {rate_text(chart.ceiling, chart.unit)}" if chart.ceiling else "",
        varied=chart.varied,
        leader=leader.point.number if leader is not None else None,
        decided=leader is not None and leader.decided,
        method=tuple(method_lines(chart)),
        target=chart.target,
        roof_flops=chart.ceilings.flops if chart.unit != "OP/s" else None,
        roof_bytes=chart.ceilings.bytes,
    )


def _point(chart: Chart, index: int, here: bool) -> PointData:
    point = chart.points[index]
    values = {name: config_text(point.config, [name]).partition("=")[2] for name in chart.varied}
    return PointData(
        point.number, point.label, point.seconds, point.low, point.high,
        point.time_text if point.seconds is not None else "", point.rate, point.rate_low, point.rate_high,
        point.rate_text(chart.unit), point.failure, point.flagged, point.runs_text, values, here,
        point.intensity, point.flops / point.seconds if point.flops and point.seconds else None,
        EDITED in point.config,
    )  # fmt: skip
