"""Resources, charts, history, check reports, errors, the bundle and the report."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from tilebench.errors import OptionError, Place, ShapeError, remember_source
from tilebench.ir.dtypes import dtype_of
from tilebench.profile.ceilings import Ceilings
from tilebench.profile.positions import median_interval
from tilebench.record import Diagnostic, RunRecord
from tilebench.reference.bounds import Bounded
from tilebench.reference.check import CheckReport, compare_output
from tilebench.workbench import parts
from tilebench.workbench.bundle import RecordView, mime_bundle
from tilebench.workbench.chart import (
    ChartCeilings,
    chart_of,
    chart_rows,
    machine_ceilings,
    method_lines,
)
from tilebench.workbench.check_view import check_html, check_text, heat_svg, step_of
from tilebench.workbench.errors_view import error_html, error_text
from tilebench.workbench.figure import MIME as PLOTLY
from tilebench.workbench.figure import UIREVISION, run_figure
from tilebench.workbench.history import Move, MoveHistory, history_html, history_text
from tilebench.workbench.packed import MIME, from_json, pack, record_json, unpack
from tilebench.workbench.report import Runs, Section, Table, report_html
from tilebench.workbench.style import bytes_text, css, number, rate_text, rules_for, seconds_text
from tilebench.workbench.svg import chart_svg, nice_ticks
from tilebench.workbench.table import Cell, table_html, table_text
from tilebench.workbench.views.resources import (
    details_text,
    diagnostics_text,
    occupancy_sentence,
    resources_html,
    unicode_bar,
)
from tilebench.workbench.views.runs import chart_bundle, chart_text

from .samples import FILE, gemm_record, gemm_run, gemm_runs, place
from .test_stages import parse, stands_alone

CEILINGS = ChartCeilings(7.2e14, 4.26e12, "NVIDIA H200", "largest f16 GEMM and copy")


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (seconds_text(2.61e-3), "2.61 ms"), (seconds_text(9.996e-4), "1.00 ms"),
        (seconds_text(5e-7), "500 ns"),
        (seconds_text(0.0), "0 s"), (bytes_text(49152), "48 KiB"), (bytes_text(1000), "1000 B"),
        (bytes_text(1536 * 1024), "1.50 MiB"), (rate_text(6.79e14, "FLOP/s"), "679 TFLOP/s"),
        (rate_text(4.2e9, "B/s"), "4.20 GB/s"), (number(0.012345), "0.0123"), (number(1e-9), "1.00e-09"),
    ],
)  # fmt: skip
def test_formats(made, wanted):
    assert made == wanted


def test_resources():
    record = gemm_record()
    html = resources_html(record, shared_limit=166912)
    stands_alone(html)
    assert "48 KiB of 163 KiB" in html
    assert "220" in html
    assert occupancy_sentence(record.resources) == (
        "2 blocks a multiprocessor, 12.5 % of its warps; registers allow no more (then shared memory, at 3)"
    )
    tight = dataclasses.replace(record.resources, limits={"registers": 2, "shared": 2, "warps": 16})
    assert occupancy_sentence(tight).endswith("registers and shared memory allow no more (then warps, at 16)")
    spilled = dataclasses.replace(record.resources, spill_store_bytes=64, spill_load_bytes=96)
    assert "64 B stored, 96 B loaded" in resources_html(dataclasses.replace(record, resources=spilled))
    assert "no resources" in resources_html(dataclasses.replace(record, resources=None))


def test_unicode_bar():
    assert unicode_bar(0.5, 4) == "██··"
    assert unicode_bar(0.125, 2) == "▎·"
    assert unicode_bar(7.0, 3) == "███"
    assert unicode_bar(0.0, 3) == "···"


def test_details_text_ranks_what_was_missed_first():
    text = details_text(gemm_record(), 166912)
    assert text.index("missed   vectorise") < text.index("applied  bound")
    assert "schedule rule" in text
    assert "gemm.toml rule 2: M > 512" in text


def test_diagnostic_carets():
    line = "        T.gemm(A_s, B_s, C_l)"
    each = Diagnostic("error", "no", place(14, 15, 18), line)
    assert diagnostics_text([each], "cell line ") == (
        "error: no (cell line 14)\n    T.gemm(A_s, B_s, C_l)\n           ^^^"
    )


def test_median_interval_is_the_binomial_one():
    # Tables of the sign test: n = 10 gives ranks 2 and 9 (coverage 0.9785), n = 101 ranks 41 and 61.
    assert median_interval(range(1, 11)) == (2, 9)
    low, high = median_interval(range(1, 102))
    cover = sum(math.comb(101, k) for k in range(low, high)) / 2**101
    inner = sum(math.comb(101, k) for k in range(low + 1, high - 1)) / 2**101
    assert cover >= 0.95 > inner
    assert median_interval([3.0]) == (3.0, 3.0)
    assert median_interval([]) is None
    assert median_interval([5, 1, 3]) == (1, 5)
    assert median_interval(range(2001)) == (956, 1044)


def test_chart_flags_what_cannot_be():
    chart = chart_of(gemm_runs(), CEILINGS)
    assert chart.unit == "FLOP/s"
    assert chart.varied == ("block_M", "block_N", "num_stages")
    assert [bool(p.flagged) for p in chart.points] == [False] * 6 + [True]
    assert chart.points[3].failure
    assert chart.points[3].seconds is None
    assert any("Position 7 is flagged" in line for line in method_lines(chart))
    # The intervals drawn are the chart's own, so only those are told.
    told = dataclasses.replace(gemm_run(2e-3), method="median; intervals: 95 % bootstrap, seed 1; checked")
    lines = method_lines(chart_of([told]))
    assert lines[0] == "Method: median; checked."
    assert lines[1].startswith("Range of each time: 95 % interval of the median")
    wrong = dataclasses.replace(gemm_run(2e-3), error=0.5, bound=0.1)
    assert "outside its bound" in chart_of([wrong]).points[0].flagged
    assert "outside its bound" in chart_of([dataclasses.replace(wrong, error=math.nan)]).points[0].flagged


def test_streaming_work_is_a_rate_of_bytes():
    run = RunRecord("add", "cpu", {"n": 1}, (1e-3,) * 7, flops=1e6, bytes=6e6)
    chart = chart_of([run])
    assert chart.unit == "B/s"
    assert chart.points[0].rate == 6e9
    assert chart_rows(chart)[0][5] == "6.00 GB/s"


def test_figure_is_plain_and_complete():
    figure = run_figure(gemm_runs(), CEILINGS)
    assert json.loads(json.dumps(figure)) == figure
    rate, time, failed = figure["data"]
    assert rate["x"] == [1, 2, 3, 5, 6, 7]
    assert failed["x"] == [4]
    assert rate["y"][3] == pytest.approx(2 * 8192**3 / 1.62e-3 / 1e12, rel=0.01)
    assert time["y"][0] == pytest.approx(2.61, rel=0.01)
    assert rate["marker"]["symbol"][-1] == "triangle-up-open"
    assert all(
        a >= 0 and b >= 0
        for a, b in zip(rate["error_y"]["array"], rate["error_y"]["arrayminus"], strict=True)
    )
    assert "block_M=128" in rate["text"][1]
    assert figure["layout"]["uirevision"] == UIREVISION
    assert figure["layout"]["shapes"][0]["y0"] == 720
    assert run_figure([])["data"][0]["x"] == []


def test_figure_is_what_plotly_accepts():
    graph = pytest.importorskip("plotly.graph_objects")
    for kind in ("history", "roofline"):
        made = graph.Figure(run_figure(gemm_runs(), CEILINGS, kind=kind, theme="dark"))
        assert made.layout.uirevision == UIREVISION
    with pytest.raises(OptionError, match="there is no chart 'pie'"):
        run_figure(gemm_runs(), kind="pie")


def test_svg_places_points_by_value():
    svg = chart_svg(chart_of(gemm_runs(), CEILINGS))
    stands_alone(svg)
    spots = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
    assert len(spots) == 5
    heights = [float(y) for _, y in spots]
    assert heights[0] > heights[1] > heights[2] > heights[3]
    assert heights[4] > heights[3]
    assert "measured ceiling 720 TFLOP/s" in svg
    assert svg.count('stroke-width="2.5"') == 2
    assert "ridge 169 FLOP a byte" in chart_svg(chart_of(gemm_runs(), CEILINGS), "roofline")
    assert chart_svg(chart_of(gemm_runs()), "roofline") == ""
    parse(chart_svg(chart_of([])))


def test_nice_ticks():
    assert nice_ticks(735) == [0, 200, 400, 600, 800]
    assert nice_ticks(0) == [0, 1]


def test_chart_bundle():
    bundle = chart_bundle(gemm_runs(), CEILINGS)
    assert set(bundle) == {PLOTLY, "text/html", "text/plain"}
    stands_alone(bundle["text/html"])
    assert "Method: median of 101 launches" in bundle["text/html"]
    assert "262144 bytes" in chart_text(gemm_runs(), CEILINGS)
    assert len(json.dumps(bundle)) < 40_000


def history():
    made = MoveHistory()
    for at, run in enumerate(gemm_runs(), 1):
        made = made.add(Move(at, run.config)).compiled(at, gemm_record()).measured(at, run)
    return made


def test_history():
    made = history()
    assert [move.state for move in made] == ["done"] * 3 + ["failed"] + ["done"] * 3
    assert made.best().generation == 7
    assert made.best(CEILINGS).generation == 5
    html = history_html(made, ceilings=CEILINGS)
    stands_alone(html)
    assert html.index(">7<") < html.index(">1<")
    assert '<td class="num" title="was 64"><mark>128</mark></td>' in html
    line = next(each for each in history_text(made).splitlines() if each.startswith("2 "))
    assert "128*" in line
    assert "\N{MINUS SIGN}14.9 %" in line
    assert made.change(99, state="stale") == made
    assert history_text(MoveHistory()) == "no moves yet"


def checked(name, got, reference, bound, how="from |A||B|"):
    limit = np.broadcast_to(np.asarray(bound, np.float64), got.shape)
    found = compare_output(got, Bounded(reference.astype(np.float64), limit), dtype_of(got.dtype), name)
    return CheckReport((found,), how)


def test_check_view_shows_the_wrong_elements():
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((100, 110)).astype(np.float32)
    got = reference + np.float32(1e-4)
    got[64:72, 96:] += 0.5
    got[3, 4] = np.nan
    report = checked("C", got, reference, 2e-3)
    output = report.outputs[0]
    assert output.outside == 8 * 14 + 1
    assert output.not_finite == 1
    assert not report.ok
    assert output.worst[0].index == (3, 4)
    assert len(output.worst) == 8
    assert output.patch == (4, 4)
    assert len(output.heat) == 25
    assert len(output.heat[0]) == 28
    outside = {(i, j) for i, row in enumerate(output.heat) for j, v in enumerate(row) if step_of(v) == 5}
    assert outside == {(0, 1)} | {(i, j) for i in (16, 17) for j in (24, 25, 26, 27)}
    stands_alone(check_html(report))
    assert "Where the errors are" in check_html(report)
    assert check_text(report).startswith(
        "WRONG: C: 11000 elements, 113 outside their bounds (1.03 %), 1 of them not finite"
    )


def test_check_view_of_right_results():
    values = np.array([1.0, np.inf, np.nan, 0.0], np.float32)
    report = checked("x", values, values.copy(), 0.0)
    assert report.ok
    assert report.outputs[0].not_finite == 0
    assert "all exact" in check_text(report)
    assert "<svg" not in check_html(report)
    empty = checked("x", np.zeros((0, 3)), np.zeros((0, 3)), 0.0)
    assert empty.ok
    assert heat_svg(empty.outputs[0]) == ""
    assert "no elements" in check_html(empty)
    single = checked("x", np.float64(1.0) * np.ones(()), np.ones(()), 0.0)
    assert single.outputs[0].worst[0].index == ()


def error():
    remember_source(FILE, "%%tile\nA_s = T.alloc_shared((4,))\n    T.copy(A[0], {s})")
    return ShapeError(
        "the tiles of {name} do not match", at=Place(FILE, 3, 11, 3, 15), expected="{shape}", found="<4>",
        hint="make {name} larger", also=[("made here", Place(FILE, 2, 0, 2, 3))], name="{s}", shape=(8,),
    )  # fmt: skip


def test_error_view():
    html = error_html(error())
    stands_alone(html)
    assert "T.copy(<u>A[0]</u>, {s})" in html
    assert "<u>A_s</u>" in html
    assert "&lt;4&gt;" in html
    assert 'role="alert"' in html
    assert "make {s} larger" in html
    assert "    T.copy(A[0], {s})\n           ^^^^" in error_text(error())


def test_bundle_is_small_and_whole():
    record = gemm_record()
    bundle = mime_bundle(RecordView(record, gemm_runs(), history(), ceilings=CEILINGS, shared_limit=166912))
    assert set(bundle) == {MIME, "text/html", "text/plain"}
    stands_alone(bundle["text/html"])
    sizes = {name: len(json.dumps(value)) for name, value in bundle.items()}
    assert sizes["text/html"] < 110_000, sizes
    assert sizes[MIME] < 45_000, sizes
    assert sizes["text/plain"] < 16_000, sizes
    back, runs = from_json(json.loads(json.dumps(bundle[MIME])))
    assert back == record
    assert [run.config for run in runs] == [run.config for run in gemm_runs()]
    assert runs[0].seconds == pytest.approx(gemm_runs()[0].seconds, rel=1e-4)
    with pytest.raises(OptionError, match="record format 7"):
        from_json({**record_json(record), "format": 7})
    with pytest.raises(OptionError, match="no packed record"):
        unpack("AAAA")


def test_report():
    record = gemm_record()
    check = checked("C", np.ones((4, 4)), np.ones((4, 4)), 0.0)
    html = report_html(
        "tilebench demo",
        [
            Section("GEMM", ["A GEMM of <any> size.", record, record]),
            Section("Runs", [Runs(gemm_runs(), CEILINGS, ("history", "roofline")), history()]),
            Section("Checks", [check, error(), Table(("a", "b"), [["1", Cell("2", "good")]], (1,))]),
        ],
        note="made on a CPU",
    )
    # One script of our own, behind everything it draws; without it the page reads the same and stands alone.
    plain, behind = html.split('<script type="module">')
    text, end = behind.split("</script>")
    assert end == "</body></html>"
    assert not re.search(r"\bfetch\(|XMLHttpRequest|import\(|https?://(?!www.w3.org)", text)
    parser = stands_alone(plain + end)
    ids = [attrs["id"] for _, attrs in parser.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    benches = [attrs["data-tilebench"] for _, attrs in parser.tags if "data-tilebench" in attrs]
    assert [unpack(packed)["record"]["kernel"] for packed in benches] == [record.kernel] * 2
    assert "r2-tile" in ids
    assert "r3-tile" in ids
    assert html.startswith("<!doctype html>")
    assert "A GEMM of &lt;any&gt; size." in html
    assert '#r2 .panes:has([data-src~="14"]' in html


def test_tables():
    rows = [["a", Cell("1", "good", True)], ["中文", "22"]]
    assert table_text(("k", "v"), rows, numeric=(1,)) == "k      v\n----  --\na     1*\n中文  22"
    assert '<th scope="row">a</th><td class="num good"><mark>1</mark></td>' in table_html(
        ("k", "v"), rows, numeric=(1,)
    )


def test_ceilings_of_this_machine():
    held = Ceilings(
        2e10, 3e10, {"float32": 1e11, "float64": 5e10}, 2, "best of 4", "2026-11-29", "A CPU", True
    )
    made = machine_ceilings(held, "float64")
    assert (made.flops, made.bytes, made.machine) == (5e10, 3e10, "A CPU, 2 threads")
    assert "busy" in made.how
    assert machine_ceilings(held, "float16").flops == 1e11


def test_packed_json_has_no_nan():
    wrong = dataclasses.replace(gemm_run(1e-3), error=math.nan, bound=0.1)
    (back,) = from_json(record_json(gemm_record(), [wrong]))[1]
    assert math.isfinite(back.error)
    assert back.error > 1e300
    assert unpack(pack([-math.inf, 1.0])) == [-1.7976931348623157e308, 1.0]


def test_an_output_has_the_rules_that_it_needs() -> None:
    rules = (
        ".tilebench .a,.tilebench .b:not(.c){x:1}.jp-Page .tilebench :is(th,td):not(.num){x:2}"
        ".tilebench .c{x:3}.tilebench table{x:4}"
    )
    assert rules_for(rules, '<i class="b d"></i>') == (
        ".tilebench .b:not(.c){x:1}.jp-Page .tilebench :is(th,td):not(.num){x:2}.tilebench table{x:4}"
    )
    small, whole = css("auto", parts.sheet(), '<i class="good">'), css("auto", parts.sheet())
    assert ".tilebench .good{color:var(--good)}" in small
    assert "--good:" in small
    assert "--tk:" not in small
    assert len(small) < len(whole) / 2
