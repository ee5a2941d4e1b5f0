"""Stage panes: what stands out, what is left out, and that the HTML stands alone."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import pytest

from tilebench.errors import OptionError
from tilebench.record import StageRecord
from tilebench.workbench.diff import changed_spans, text_diff
from tilebench.workbench.highlight import coloured_lines, line_html
from tilebench.workbench.views.stages import panes_of, stages_html, stages_text

from .samples import gemm_record, text_of

VOID = {"meta", "br", "hr", "img"}


class Balanced(HTMLParser):
    """Collects text and fails on a tag closed out of order."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags, self.skip = [], [], [], 0

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open[-1] == tag, (self.open[-3:], tag)
        self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text.append(data)


def parse(html):
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def stands_alone(html):
    assert "<script" not in html
    assert not re.search(r"\son\w+=", html)
    assert "javascript:" not in html
    assert "@import" not in html
    assert "url(" not in html
    assert not re.search(r'(?<![-\w])(?:src|href)="(?!#)', html)
    return parse(html)


@pytest.fixture(scope="module")
def record():
    return gemm_record()


def test_html_stands_alone_and_holds_every_line(record):
    parser = stands_alone(stages_html(record))
    text = "".join(parser.text)
    for name in ("source", "tile", "laid_out", "pipelined", "threaded", "cuda"):
        for line in text_of(name).splitlines():
            assert line in text
    heads = [attrs.get("id") for tag, attrs in parser.tags if tag == "details"]
    assert heads == [stage.name for stage in record.stages]


def test_the_decision_is_marked_and_nothing_else(record):
    html = stages_html(record, ["tile", "scheduled"])
    marks = [
        re.sub("<[^>]+>", "", each)
        for each in re.findall(r"<mark>(.*?)</mark>", html.split('class="key"')[0])
    ]
    assert marks == [", order=T.panels(8)", ", swizzle=True", ", swizzle=True", ", policy=T.square"]
    assert html.count('class="l u"') == 7
    assert html.count('class="l w"') == 4


def test_diff_counts(record):
    changes = {pane.stage.name: pane.change for pane in panes_of(record)}
    assert changes["source"] is None
    assert changes["cuda"] is None
    assert changes["sass"] is None
    assert changes["scheduled"].summary() == "~4"
    assert changes["laid_out"].summary() == "~7"
    assert text_diff("for k in x(38):", "for k in y(38):").summary() == "~1"
    assert text_diff("a\nb", "a\nb").summary() == "unchanged"


def test_lines_gone_are_told():
    made = text_diff("a = 1\nzzz()\nb = 2", "a = 1\nb = 2")
    assert [line.kind for line in made.lines] == ["same", "same"]
    assert made.lines[1].removed == ("zzz()",)
    assert text_diff("a\nqqq()", "a").removed_at_end == ("qqq()",)


def test_changed_spans_are_characters_of_the_new_line():
    new = "    T.copy(A[0], s, within=(4, 5), fill=0)"
    spans = changed_spans("    T.copy(A[0], s)", new)
    assert [new[a:b] for a, b in spans] == [", within=(4, 5), fill=0"]


def test_line_html_marks_across_tokens():
    pieces = coloured_lines("x = T.cast(y)", "tile-ir")[0]
    html = line_html(pieces, [(2, 9)])
    assert re.sub("<[^>]+>", "", html) == "x = T.cast(y)"
    assert re.sub("<(?!/?mark)[^>]+>", "", html) == "x <mark>= T.cas</mark>t(y)"


def test_long_panes_show_the_loop_and_say_what_is_left_out(record):
    (pane,) = panes_of(record, ["sass"], 60)
    assert len(pane.lines) == 60
    assert pane.above > 0
    assert pane.below > 0
    assert pane.lines[0].startswith(".L_x_1:")
    shown = [line for line in text_of("sass").splitlines() if not line.strip().startswith("//## File")]
    assert pane.above + 60 + pane.below == len(shown)
    html = stages_html(record, ["sass"], limits=60)
    assert f"{pane.below} more lines" in html
    assert f"{pane.above} lines above" in html
    (whole,) = panes_of(record, ["sass"], 10_000)
    assert whole.above == whole.below == 0


def test_a_long_cuda_text_starts_at_its_kernel(record):
    texts = [f"helper {at}" for at in range(50)] + ["__global__ void main_()"] + ["body"] * 30
    stage = dataclasses.replace(record.stage("cuda"), text="\n".join(texts), lines=())
    stages = [stage if each.name == "cuda" else each for each in record.stages]
    (pane,) = panes_of(dataclasses.replace(record, stages=tuple(stages)), ["cuda"], 70)
    assert pane.lines[0].startswith("__global__")
    assert (pane.above, len(pane.lines), pane.below) == (50, 31, 0)


def test_lines_link_to_the_cell(record):
    html = stages_html(record, ["source", "tile"])
    assert '<span data-src="14" title="cell line 14">' in html
    assert 'aria-label="cell line 14"' in html
    assert '.panes:has([data-src~="14"]:hover' in html
    named = dataclasses.replace(record, source_file="/home/a/gemm.py")
    assert 'title="gemm.py:14"' in stages_html(named, ["source", "tile"])


def test_pending_and_unknown(record):
    late = dataclasses.replace(
        record, stages=(*record.stages[:2], StageRecord("sass", "nvsass", "", pending=True))
    )
    assert "not made yet" in stages_html(late)
    assert "not made yet" in stages_text(late)
    with pytest.raises(OptionError, match="there is no stage 'ptz'"):
        stages_html(record, ["ptz"])
    with pytest.raises(OptionError, match="there is no theme 'blue'"):
        stages_html(record, theme="blue")


def test_text_of_a_stranger_stays_text(record):
    evil = StageRecord("tile", "tile-ir", "x = '</pre><script>alert(1)</script>'\n", ((1,),))
    html = stages_html(dataclasses.replace(record, kernel="<b>", stages=(evil,)))
    stands_alone(html)
    assert "&lt;script&gt;" in html
    assert "<b>" not in html


def test_plain_text_shows_changes_only(record):
    text = stages_text(record, ["tile", "scheduled"], changed_only=True)
    assert " 2~     with T.Kernel(9, 8, threads=128, order=T.panels(8)) as (bx, by):" in text
    assert "== scheduled (tile IR, 11 lines, 600 us, ~4)" in text
    assert text.count("T.copy(A[by * 128, ko * 32], A_s)") == 1


def test_colours_line_by_line_are_those_of_the_whole_text():
    text = 's = T.empty((4,))\nT.copy(s, "a")  # b\n'
    assert coloured_lines(text, "tile-ir") == (
        (("v", "s"), ("", " = "), ("b", "T.empty"), ("", "(("), ("n", "4"), ("", ",))")),
        (("b", "T.copy"), ("", "("), ("v", "s"), ("", ", "), ("s", '"a"'), ("", ")  "), ("m", "# b")),
        (),
    )
    over = coloured_lines("/* one\ntwo */ int x;", "cuda")
    assert over[0] == (("m", "/* one"),)
    assert over[1][0] == ("m", "two */")
    assert coloured_lines('"""for\nwith"""', "tile-ir") == ((("s", '"""for'),), (("s", 'with"""'),))


def test_a_definition_says_what_its_name_stands_for(record):
    said = "64 x 32 elements & more"
    old = record.stage("laid_out")
    new = dataclasses.replace(
        old, text="    A_s_map = T.Fragment(...)\n    with x:\n", names={"A_s_map": said}
    )
    stages = tuple(new if stage is old else stage for stage in record.stages)
    parser = Balanced()
    parser.feed(stages_html(dataclasses.replace(record, stages=stages), ("laid_out",)))
    titles = [attrs["title"] for _, attrs in parser.tags if "elements" in attrs.get("title", "")]
    assert titles == [said]
