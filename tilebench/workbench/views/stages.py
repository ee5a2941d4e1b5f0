"""The stages of one compilation side by side, each with what it decided standing out.

Without a script: panes fold by `<details>`, grow by CSS `resize`, and lines that come from the
same line of the kernel light up together by `:has()` rules written for that kernel. Pointing at a
line does it; a line number of the source pane holds it when focused (Tab, or a click).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ...record import CompileRecord, StageRecord
from ...targets import language
from ...targets.presentation import Language
from ..buffer_names import buffers_in
from ..diff import LineChange, TextDiff, text_diff
from ..highlight import CSS as TOKEN_CSS
from ..highlight import coloured_lines, line_html
from ..sizes import Sizes
from ..style import escape, page, seconds_text

MOST_LINES = 400
# Kernel lines that get a rule of their own; each costs about 150 bytes.
_MOST_LINKED = 60
# The languages of the common road. Their texts are compared with each other; a step to any other is a
# translation, and what a pane has to know of that one its target says.
_TILE_LANGUAGES = {"python": Language("python", "Python"), "tile-ir": Language("tile-ir", "tile IR")}

CSS = TOKEN_CSS + (
    ".tilebench .panes{display:flex;gap:0;overflow-x:auto;resize:vertical;height:var(--h,34em);"
    "min-height:11em;"
    "background:var(--bar)}"
    ".tilebench .pane{position:relative;flex:0 0 auto;height:100%;overflow:hidden;"
    "resize:horizontal;min-width:18ch;max-width:200ch;"
    "border-right:1px solid var(--line);background:var(--bg);margin:0;scroll-margin:12px}"
    ".tilebench .pane[open]{width:max(40ch,min(var(--w,64ch),46vw))}"
    ".tilebench .pane:not([open]){resize:none;width:auto!important;min-width:0;background:var(--bar)}"
    ".tilebench .pane>summary{display:flex;gap:1px 9px;align-items:baseline;white-space:nowrap;"
    "padding:5px 10px;"
    "background:var(--bar);border-bottom:1px solid var(--line);overflow:hidden;list-style:none;height:32px;"
    "line-height:21px}"
    ".tilebench .pane:not([open])>summary{writing-mode:vertical-rl;height:100%;width:30px;padding:10px 4px;"
    "border-bottom:0}"
    ".tilebench .pane>summary::-webkit-details-marker{display:none}"
    '.tilebench .pane>summary::before{content:"\\25be";color:var(--dim);font-size:11px}'
    '.tilebench .pane:not([open])>summary::before{content:"\\25b8"}'
    ".tilebench .pane .delta{margin-left:auto;font-variant-numeric:tabular-nums;color:var(--fg)}"
    ".tilebench .pane:not([open]) .delta{margin:0}"
    ".tilebench .code{position:absolute;inset:32px 0 0 0;overflow:auto;padding:4px 0 8px;"
    "background:var(--bg)}"
    ".tilebench .code pre{width:max-content;min-width:100%;white-space:pre}"
    # Where stages are compared, a line that changed is wrapped under its own indentation so that the
    # decision at its end is seen; a line that did not may run out of sight.
    ".tilebench .cmp pre{width:auto}.tilebench .cmp .w,.tilebench .cmp .p{white-space:pre-wrap;"
    "overflow-wrap:anywhere;padding-left:calc((var(--i,0) + 9)*1ch);text-indent:calc((var(--i,0) + 9)*-1ch)}"
    ".tilebench .l{display:block;padding-right:2ch;border-left:3px solid transparent}"
    ".tilebench .l.u{color:var(--dim)}.tilebench .l.w{background:var(--changed);border-color:var(--s2)}"
    ".tilebench .l.s{border-color:var(--dim)}"
    ".tilebench .l.p{background:var(--new);border-color:var(--s3)}"
    ".tilebench .l>i,.tilebench [data-src]>i{color:var(--dim);user-select:none;"
    "-webkit-user-select:none;font-style:normal}"
    ".tilebench [data-src]{display:block}"
    ".tilebench .l.cut{border-top:2px dotted var(--bad)}"
    ".tilebench .more{padding:6px 12px;color:var(--dim);font-style:italic}"
    ".tilebench .key{display:flex;flex-wrap:wrap;gap:2px 18px;padding:5px 12px;border-top:1px "
    "solid var(--line);"
    "background:var(--bar);color:var(--dim);font-size:12px}"
    ".tilebench .key i{font-style:normal;padding:0 6px;border-left:3px solid;color:var(--fg)}"
    ".tilebench .key .p{background:var(--new);border-color:var(--s3)}"
    ".tilebench .key .w{background:var(--changed);border-color:var(--s2)}"
    ".tilebench .key .s{border-color:var(--dim)}"
    ".tilebench .key .cut{border:0;border-top:2px dotted var(--bad)}"
)


@dataclass(frozen=True)
class LineLimits:
    """The most lines of a pane: of a stage in the tile language, and of a text that a target emits."""

    tile: int = MOST_LINES
    emitted: int = MOST_LINES

    def of(self, stage: StageRecord) -> int:
        return max(1, self.tile if stage.language in _TILE_LANGUAGES else self.emitted)


Limits = int | LineLimits


def language_of(record: CompileRecord, stage: StageRecord) -> Language:
    """How the language of a stage is shown: what the record's target says of it."""
    return _TILE_LANGUAGES.get(stage.language) or language(record.target, stage.language)


@dataclass(frozen=True)
class Pane:
    """One stage as it is drawn: its lines, their numbers in the stage's text, what is left out."""

    stage: StageRecord
    change: TextDiff | None
    rows: tuple[int, ...]
    lines: tuple[str, ...]
    total: int
    above: int
    below: int
    sources: tuple[tuple[int, ...], ...]


def source_word(record: CompileRecord) -> str:
    """What a line of the source is called: `cell line`, or the file's name."""
    name = PurePath(record.source_file).name
    in_cell = (
        not name or name.startswith(("<", "In[")) or "ipykernel" in record.source_file or " cell [" in name
    )
    return "cell line " if in_cell else f"{name}:"


def _sources(record: CompileRecord, stage: StageRecord, total: int) -> tuple[tuple[int, ...], ...]:
    if stage.lines:
        return stage.lines
    if stage.name == "source":
        return tuple((record.source_first_line + at,) for at in range(total))
    return ()


def panes_of(
    record: CompileRecord, stages: Sequence[str] | None = None, limits: Limits = MOST_LINES
) -> list[Pane]:
    """The panes to draw, each compared with the one drawn before it where the languages are kin.

    Raises `OptionError` for a stage that the record has not.
    """
    chosen = list(record.stages) if stages is None else [record.stage(name) for name in stages]
    limits = LineLimits(limits, limits) if isinstance(limits, int) else limits
    out: list[Pane] = []
    before: StageRecord | None = None
    for stage in chosen:
        change = None
        if before is not None and not stage.pending and _comparable(before, stage):
            change = text_diff(before.text, stage.text, Sizes.of(record.parameters, record.parameters))
        out.append(_pane(record, stage, change, limits.of(stage)))
        before = stage
    return out


def _comparable(before: StageRecord, stage: StageRecord) -> bool:
    return before.language in _TILE_LANGUAGES and stage.language in _TILE_LANGUAGES


def _pane(record: CompileRecord, stage: StageRecord, change: TextDiff | None, limit: int) -> Pane:
    whole = stage.text.splitlines()
    shown_as = language_of(record, stage)
    # Where the record has the origin of each line as a map, lines that only say it are left out.
    hidden = shown_as.says_origin if stage.lines else None
    rows = [number for number, line in enumerate(whole) if hidden is None or not hidden(line)]
    start, end = 0, len(rows)
    # Hiding three lines behind a note that takes one helps nobody.
    if len(rows) > limit + 3:
        start = shown_as.start([whole[number] for number in rows], limit)
        start = start if start > 3 else 0
        end = min(start + limit, len(rows))
    kept = tuple(rows[start:end])
    shorten = shown_as.shorten or str
    lines = tuple(shorten(whole[number]) for number in kept)
    sources = _sources(record, stage, len(whole))
    return Pane(
        stage, change, kept, lines, len(whole), start, len(rows) - end,
        tuple(sources[number] if number < len(sources) else () for number in kept),
    )  # fmt: skip


def _title(word: str, lines: Sequence[int]) -> str:
    return word + ", ".join(map(str, lines)) if lines else ""


def _pane_lines(record: CompileRecord, pane: Pane, is_source: bool) -> str:
    """The lines of a pane; neighbours that come from the same source lines share one element."""
    stage, word = pane.stage, source_word(record)
    # An unchanged line is grey: its colours are not asked for.
    kept = [pane.change is None or pane.change.lines[at].kind != "same" for at in pane.rows]
    wanted = "\n".join(line if keep else "" for line, keep in zip(pane.lines, kept, strict=True))
    coloured = coloured_lines(
        wanted, stage.language, buffers_in(stage.text), quiet=language_of(record, stage).quiet_registers
    )
    first = record.source_first_line if is_source else 1
    digits = len(str(first + (pane.rows[-1] if pane.rows else 0)))
    out: list[str] = []
    group: tuple[int, ...] = ()
    for line, row, pieces, sources in zip(pane.lines, pane.rows, coloured, pane.sources, strict=False):
        if sources != group:
            out.append("</span>" * bool(group))
            if sources:
                joined = " ".join(map(str, sources))
                out.append(f'<span data-src="{joined}" title="{escape(_title(word, sources))}">')
            group = sources
        number = f"{row + first:>{digits}}"
        focus = f' tabindex="0" aria-label="{escape(word)}{row + first}"' if is_source and sources else ""
        change = pane.change.lines[row] if pane.change else None
        says = stage.names.get(line.partition(" = ")[0].strip(), "")
        out.append(_line(line, number, focus, pieces, change, says))
    out.append("</span>" * bool(group))
    return "".join(out)


_SIGNS = {"same": (" ", "u"), "sized": ("\N{ALMOST EQUAL TO}", "s"), "changed": ("~", "w"), "new": ("+", "p")}


def _line(
    line: str,
    number: str,
    focus: str,
    pieces: Sequence[tuple[str, str]],
    change: LineChange | None,
    says: str,
) -> str:
    """One line; `says` is what is told of the name that it defines."""
    title = f' title="{escape(says)}"' if says else ""
    if change is None:
        return f"<span class=l{title}><i{focus}>{number}  </i>{line_html(pieces)}\n</span>"
    sign, kind = _SIGNS[change.kind]
    body = escape(line) if change.kind == "same" else line_html(pieces, change.spans)
    more = title
    if change.removed:
        gone = " | ".join(each.strip() for each in change.removed)
        kind, more = f"{kind} cut", f' title="gone before this line: {escape(gone)}"'
    if change.kind != "same" and len(line) > 40:  # shorter ones never wrap, and need no indentation
        more += f' style="--i:{len(line) - len(line.lstrip())}"'
    return f'<span class="l {kind}"{more}><i{focus}>{number}{sign} </i>{body}\n</span>'


def _pane_html(record: CompileRecord, pane: Pane, prefix: str) -> str:
    stage = pane.stage
    is_source = stage.name == "source"
    shown_as = language_of(record, stage)
    facts = [shown_as.title]
    if not stage.pending:
        facts.append(f"{pane.total} line{'s' * (pane.total != 1)}")
    if stage.seconds:
        facts.append(seconds_text(stage.seconds))
    head = f'<h3>{escape(stage.name)}</h3> <span class="q">{escape(" · ".join(facts))}</span>'
    if pane.change:
        told = pane.change.told()
        head += f' <span class="delta" title="{told}" aria-label="{told}">{pane.change.summary()}</span>'
    if stage.pending:
        body = '<p class="more">not made yet</p>'
    else:
        above = f'<div class="more">{pane.above} lines above</div>' if pane.above else ""
        below = f'<div class="more">{pane.below} more lines</div>' if pane.below else ""
        body = f"{above}<pre>{_pane_lines(record, pane, is_source)}</pre>{below}"
    kind = "pane cmp" if pane.change else "pane"
    return (
        f'<details class="{kind}" open id="{prefix}{escape(stage.name)}" style="--w:{_width(pane)}ch">'
        f'<summary>{head}</summary><div class="code" tabindex="0" role="group" '
        f'aria-label="stage {escape(stage.name)}">{body}</div></details>'
    )


def _width(pane: Pane) -> int:
    """Columns of a pane: nine lines of ten fit, between 44 and 82 (a `ch` of the 13px font is wider)."""
    lengths = sorted(len(line) for line in pane.lines) or [0]
    fitting = lengths[min(len(lengths) - 1, len(lengths) * 9 // 10)] + 8
    return min(82, max(44, fitting))


def _height(panes: Sequence[Pane]) -> int:
    """Pixels for the tallest pane, between 9 and 26 lines of 18; wrapped lines take about two each."""
    most = 9
    for pane in panes:
        wrapped = 0
        if pane.change:
            changed = [
                line
                for line, row in zip(pane.lines, pane.rows, strict=True)
                if pane.change.lines[row].kind != "same"
            ]
            wrapped = sum(len(line) // 76 for line in changed)
        most = max(most, len(pane.lines) + wrapped)
    return 32 + 34 + 18 * min(26, most)


def _link_rules(panes: Sequence[Pane]) -> str:
    """A rule for each kernel line: when a line that came from it is pointed at, all of them light up."""
    known = sorted({line for pane in panes for lines in pane.sources for line in lines})
    out: list[str] = []
    for line in known[:_MOST_LINKED]:
        same_line = f'[data-src~="{line}"]'
        out.append(f".tilebench .panes:has({same_line}:hover,{same_line} :focus) {same_line} .l")
    return ",".join(out) + "{background:var(--link)}" if out else ""


def stages_body(
    record: CompileRecord,
    stages: Sequence[str] | None = None,
    limits: Limits = MOST_LINES,
    prefix: str = "",
) -> tuple[str, str]:
    """The panes without root and style sheet, and the rules they need beside `CSS`."""
    panes = panes_of(record, stages, limits)
    drawn = "".join(_pane_html(record, pane, prefix) for pane in panes)
    key = ""
    if any(pane.change for pane in panes):
        key = (
            '<div class="key"><span><i class="p">+</i> new line</span>'
            '<span><i class="w">~</i> changed, <mark>what is new in it</mark></span>'
            '<span><i class="s">\N{ALMOST EQUAL TO}</i> changed in sizes alone</span>'
            '<span><i class="cut">&nbsp;</i> lines gone (hover)</span><span>grey: as in the pane '
            "before</span>"
            "<span>pointing at a line lights up its relatives</span></div>"
        )
    return f'<div class="panes" style="--h:{_height(panes)}px">{drawn}</div>{key}', _link_rules(panes)


def heading(record: CompileRecord) -> str:
    """The bar above a record: kernel, target, parameters, time."""
    chosen = " ".join(f"{name}={value}" for name, value in record.parameters.items())
    grids = record.grids or (record.grid,)
    grid = ", then ".join(" x ".join(map(str, each)) for each in grids)
    facts = [f"target {record.target}", f"grid {grid}"]
    if record.edits:
        facts.append(f"edited by hand: {', '.join(edit.stage for edit in record.edits)}")
    made = [stage.name for stage in record.stages if not stage.pending]
    if record.seconds and made:
        facts.append(f"compiled to {made[-1]} in {seconds_text(record.seconds)}")
    return (
        f'<div class="hd"><h2>{escape(record.kernel)}</h2><span class="mono q">{escape(chosen)}</span>'
        f'<span class="q">{escape(" · ".join(facts))}</span></div>'
    )


def stages_html(
    record: CompileRecord,
    stages: Sequence[str] | None = None,
    theme: str = "auto",
    *,
    limits: Limits = MOST_LINES,
) -> str:
    """The stages side by side, as HTML that stands alone.

    `stages` names those to show, in that order (all by default); `limits` is the most lines of a
    pane, one number or `LineLimits`. Raises `OptionError` for an unknown stage or theme.
    """
    body, rules = stages_body(record, stages, limits)
    return page(heading(record) + body, theme, CSS + rules, f"stages of {record.kernel}")


def stages_text(
    record: CompileRecord,
    stages: Sequence[str] | None = None,
    *,
    limits: Limits = MOST_LINES,
    changed_only: bool = False,
) -> str:
    """The stages one below the other; `+` marks a new line, `~` a changed one, `≈` one in sizes alone.

    `changed_only` leaves out what is as in the stage before.
    """
    chosen = " ".join(f"{name}={value}" for name, value in record.parameters.items())
    out = [f"{record.kernel} for {record.target}: {chosen}".rstrip(": ")]
    for pane in panes_of(record, stages, limits):
        stage = pane.stage
        facts = f"{language_of(record, stage).title}, {pane.total} lines"
        facts += f", {seconds_text(stage.seconds)}" if stage.seconds else ""
        facts += f", {pane.change.summary()}" if pane.change else ""
        out.append(f"\n== {stage.name} ({'not made yet' if stage.pending else facts})")
        first = record.source_first_line if stage.name == "source" else 1
        digits = len(str(first + (pane.rows[-1] if pane.rows else 0)))
        if pane.above:
            out.append(f"   ({pane.above} lines above)")
        for line, row in zip(pane.lines, pane.rows, strict=True):
            kind = pane.change.lines[row].kind if pane.change else "all"
            if changed_only and kind == "same":
                continue
            sign = _SIGNS[kind][0] if kind in _SIGNS else " "
            out.append(f"{row + first:>{digits}}{sign} {line}".rstrip())
        if pane.below:
            out.append(f"   ({pane.below} more lines)")
    return "\n".join(out)
