"""What a compiled kernel takes, why more does not fit, and every choice with its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...record import Choice, CompileRecord, Diagnostic, PlaceRecord, Remark, Resources
from ..style import bytes_text, escape, number, page
from ..table import Cell, Value, table_html, table_text
from .stages import heading, source_word

CSS = (
    ".tilebench .bars{display:grid;grid-template-columns:minmax(0,max-content) minmax(36px,1fr) max-content;"
    "gap:5px 12px;"
    "align-items:center}"
    ".tilebench .bars .tr{height:10px;background:var(--track);border-radius:3px;overflow:hidden}"
    ".tilebench .bars .tr>span{display:block;height:100%;background:var(--fill);min-width:1px}"
    ".tilebench .bars .tr>.over{background:var(--bad)}"
    ".tilebench .bars .v{text-align:right;font-variant-numeric:tabular-nums}"
    ".tilebench .flow{columns:2 600px;column-gap:0;column-rule:1px solid var(--line);"
    "border-top:1px solid var(--line)}"
    ".tilebench .flow>.sec{break-inside:avoid;border-top:0;border-bottom:1px solid var(--line);"
    "margin-bottom:-1px}"
    ".tilebench .diag u{text-decoration:underline wavy var(--warn);text-underline-offset:3px}"
    ".tilebench .res>:first-child{flex:0 0 auto}.tilebench .res>*{flex-basis:300px}"
    ".tilebench .say{margin:8px 0 0}"
)
NO_RESOURCES = "no resources: this target reports none, or the kernel is not compiled yet"
_NAMES = {"shared": "shared memory", "threads": "threads", "registers": "registers", "blocks": "block slots"}
_KINDS = {"applied": ("applied", "good"), "missed": ("missed", "warn"), "note": ("note", "q")}
_ORIGINS = {"kernel": "kernel", "rule": "schedule rule", "call": "this call", "default": "default"}
_BAR = "▏▎▍▌▋▊▉█"


def unicode_bar(fraction: float, width: int = 20) -> str:
    """A bar of `width` characters in eighths of one; fractions are held within 0 and 1."""
    eighths = round(max(0.0, min(1.0, fraction)) * width * 8)
    full, rest = divmod(eighths, 8)
    return (_BAR[7] * full + (_BAR[rest - 1] if rest else "")).ljust(width, "·")


def facts(resources: Resources, shared_limit: int) -> list[tuple[str, str, str]]:
    """(name, value, kind) of the figures a reader looks for first; unknown ones are left out."""
    shared = bytes_text(resources.shared_bytes)
    kind = ""
    if shared_limit:
        shared += f" of {bytes_text(shared_limit)}"
        kind = "bad" if resources.shared_bytes > shared_limit else ""
    if (
        resources.threads == 1 and not shared_limit
    ):  # a worker of a host: no threads of a block share anything
        return [("scratch memory a worker", shared, "")]
    out = [("threads a block", str(resources.threads), ""), ("shared memory a block", shared, kind)]
    if resources.registers is not None:
        out.insert(1, ("registers a thread", str(resources.registers), ""))
    if resources.spill_store_bytes is not None or resources.spill_load_bytes is not None:
        stored, loaded = resources.spill_store_bytes or 0, resources.spill_load_bytes or 0
        text = f"{stored} B stored, {loaded} B loaded" if stored or loaded else "none"
        out.append(("spills a thread", text, "bad" if stored or loaded else "good"))
    if resources.local_bytes:
        out.append(("local memory a thread", bytes_text(resources.local_bytes), "warn"))
    if resources.barriers is not None:
        out.append(("barriers", str(resources.barriers), ""))
    return out


def occupancy_sentence(resources: Resources) -> str:
    """Occupancy in words, with what keeps another block from fitting; empty when it is unknown."""
    if resources.occupancy is None or resources.blocks_per_sm is None:
        return ""
    blocks = resources.blocks_per_sm
    percent = number(resources.occupancy * 100)
    text = f"{blocks} block{'s' * (blocks != 1)} a multiprocessor, {percent} % of its warps"
    if not resources.limited_by:
        return text
    limiting = _limiting(resources)
    limiters = [_NAMES.get(k, k) for k in limiting]
    others = [(n, _NAMES.get(k, k)) for k, n in resources.limits.items() if k not in limiting and n > blocks]
    one = len(limiters) == 1 and not limiters[0].endswith("s")
    text += f"; {' and '.join(limiters)} allow{'s' * one} no more"
    if others:
        count, name = min(others)
        text += f" (then {name}, at {count})"
    return text


def _limiting(resources: Resources) -> list[str]:
    """The resources that allow no more blocks than there are: `limited_by`, and what is as tight."""
    tight = [
        k for k, n in resources.limits.items() if k != resources.limited_by and n == resources.blocks_per_sm
    ]
    return [resources.limited_by, *tight] if resources.limited_by else []


def bar_rows(resources: Resources, shared_limit: int) -> list[tuple[str, float, str, bool]]:
    """(name, part, value, over): occupancy, shared memory, the blocks that each resource would allow."""
    rows: list[tuple[str, float, str, bool]] = []
    if resources.occupancy is not None:
        rows.append(("occupancy", resources.occupancy, f"{number(resources.occupancy * 100)} %", False))
    if shared_limit:
        over = resources.shared_bytes > shared_limit
        rows.append(("shared memory", resources.shared_bytes / shared_limit,
                     f"{bytes_text(resources.shared_bytes)} / {bytes_text(shared_limit)}", over))  # fmt: skip
    most = max(resources.limits.values(), default=0)
    for name, blocks in sorted(resources.limits.items(), key=lambda item: item[1]):
        mark = " ◂ limits" if name in _limiting(resources) else ""
        rows.append(
            (f"blocks by {_NAMES.get(name, name)}", blocks / most if most else 0, f"{blocks}{mark}", False)
        )
    return rows


def _bars(resources: Resources, shared_limit: int) -> str:
    out: list[str] = []
    for name, part, value, over in bar_rows(resources, shared_limit):
        width = max(0.0, min(1.0, part)) * 100
        fill = (
            f'<span class="over" style="width:{width:.1f}%"></span>'
            if over
            else f'<span style="width:{width:.1f}%"></span>'
        )
        out.append(
            f'<div>{escape(name)}</div><div class="tr" role="img" aria-label="{escape(name)} '
            f'{escape(value)}">{fill}</div>'
            f'<div class="v">{escape(value)}</div>'
        )
    return f'<div class="bars">{"".join(out)}</div>' if out else ""


def resources_body(resources: Resources | None, shared_limit: int = 0) -> str:
    """The panel of figures and bars. `shared_limit`: bytes one block may take, 0 when unknown."""
    if resources is None:
        return f'<p class="q">{NO_RESOURCES}</p>'
    rows: list[list[Value]] = [
        [name, Cell(value, kind)] for name, value, kind in facts(resources, shared_limit)
    ]
    left = table_html(("resource", "value"), rows, numeric=(1,))
    said = occupancy_sentence(resources)
    words = f'<p class="say">{escape(said)}.</p>' if said else ""
    left += table_html(LAUNCH_HEADS, launch_rows(resources)) if resources.launches else ""
    return f'<div class="cols res"><div>{left}</div><div>{_bars(resources, shared_limit)}{words}</div></div>'


LAUNCH_HEADS = ("launch", "threads", "registers", "shared bytes", "spilled bytes")


def launch_rows(resources: Resources) -> list[list[str]]:
    """What each launch takes, of which the figures above are the largest."""
    return [
        [
            str(number),
            *(
                ("?" if n is None else str(n))
                for n in (one.threads, one.registers, one.shared_bytes, one.spill_store_bytes)
            ),
        ]
        for number, one in enumerate(resources.launches, 1)
    ]


def resources_text(resources: Resources | None, shared_limit: int = 0) -> str:
    """The same in plain text."""
    if resources is None:
        return "no resources"
    out = [table_text(("resource", "value"), [[n, v] for n, v, _ in facts(resources, shared_limit)])]
    if resources.launches:
        out.append(table_text(LAUNCH_HEADS, launch_rows(resources)))
    if resources.occupancy is not None:
        out.append(f"occupancy [{unicode_bar(resources.occupancy)}] {number(resources.occupancy * 100)} %")
        out.append(occupancy_sentence(resources))
    if resources.limits:
        most = max(resources.limits.values())
        rows = [
            [
                _NAMES.get(k, k),
                str(n),
                unicode_bar(n / most if most else 0, 16),
                "limits" if k == resources.limited_by else "",
            ]
            for k, n in sorted(resources.limits.items(), key=lambda item: item[1])
        ]
        out.append(table_text(("blocks by", "n", "", ""), rows, numeric=(1,)))
    return "\n".join(line for line in out if line)


def choice_rows(choices: Sequence[Choice]) -> list[list[Value]]:
    return [
        [
            choice.address or "(launch)",
            choice.name,
            choice.value,
            # A default is the quiet case; what a person or a file asked for is coloured.
            Cell(_ORIGINS.get(choice.origin, choice.origin), "q" if choice.origin == "default" else "good"),
            choice.why,
        ]
        for choice in choices
    ]


CHOICE_HEADS = ("where", "choice", "value", "origin", "why")


def choices_body(choices: Sequence[Choice]) -> str:
    """A table of every effective choice with its origin."""
    if not choices:
        return '<p class="q">no choices recorded</p>'
    return table_html(CHOICE_HEADS, choice_rows(choices), mono=(0, 2))


def choices_text(choices: Sequence[Choice]) -> str:
    """The choices in plain text."""
    return table_text(CHOICE_HEADS, choice_rows(choices)) if choices else "no choices recorded"


def place_text(place: PlaceRecord | None, word: str) -> str:
    """`cell line 7` or `file.py:7`; empty without a place."""
    return f"{word}{place.line}" if place is not None else ""


def _values_text(values: Mapping[str, float | int | str]) -> str:
    return ", ".join(f"{k}={number(v) if isinstance(v, float) else v}" for k, v in values.items())


def remark_rows(remarks: Sequence[Remark], word: str) -> list[list[Value]]:
    # What was missed is what a reader can act on: it comes first.
    ranked = sorted(remarks, key=lambda remark: {"missed": 0, "applied": 1}.get(remark.kind, 2))
    return [
        [
            Cell(*_KINDS.get(remark.kind, (remark.kind, ""))),
            remark.pass_name,
            Cell(remark.message, "note"),
            _values_text(remark.values),
            Cell(place_text(remark.place, word), "nw"),
        ]
        for remark in ranked
    ]


REMARK_HEADS = ("remark", "pass", "what", "numbers", "where")


def remarks_body(remarks: Sequence[Remark], word: str) -> str:
    """A table of remarks, missed ones first. `word` is what a source line is called."""
    if not remarks:
        return '<p class="q">no remarks</p>'
    return table_html(REMARK_HEADS, remark_rows(remarks, word), mono=(3,))


def remarks_text(remarks: Sequence[Remark], word: str) -> str:
    """The remarks in plain text."""
    return table_text(REMARK_HEADS, remark_rows(remarks, word)) if remarks else "no remarks"


def carets(diagnostic: Diagnostic) -> str:
    """The quoted line with carets below it, cut free of its indentation; empty without a quote."""
    place, line = diagnostic.place, diagnostic.text.rstrip("\n").split("\n")[0]
    if not line.strip():
        return ""
    if place is None:
        return line.strip()
    indent = len(line) - len(line.lstrip())
    # A quote may have lost its indentation already; then the columns count from where it was.
    start = place.column if place.column < len(line) and indent <= place.column else 0
    end = (
        place.end_column
        if place.end_line in (0, place.line) and place.end_column > place.column
        else len(line)
    )
    if indent == 0 and place.column:
        start, end = 0, end - place.column
    end = max(start + 1, min(end, len(line)))
    return f"{line[indent:]}\n{' ' * (start - indent)}{'^' * (end - start)}"


def diagnostics_body(diagnostics: Sequence[Diagnostic], word: str) -> str:
    """Each diagnostic with its quoted line; errors before warnings."""
    out: list[str] = []
    for diagnostic in sorted(diagnostics, key=lambda d: d.severity != "error"):
        kind = "bad" if diagnostic.severity == "error" else "warn"
        location = place_text(diagnostic.place, word)
        where = f' <span class="q">{escape(location)}</span>' if location else ""
        quote = carets(diagnostic)
        shown = f'<pre class="diag">{escape(quote)}</pre>' if quote else ""
        out.append(
            f'<div><span class="tag {kind}">{escape(diagnostic.severity)}</span> {escape(diagnostic.message)}'
            f"{where}{shown}</div>"
        )
    return "".join(out)


def diagnostics_text(diagnostics: Sequence[Diagnostic], word: str) -> str:
    """The diagnostics in plain text."""
    out: list[str] = []
    for diagnostic in sorted(diagnostics, key=lambda d: d.severity != "error"):
        location = place_text(diagnostic.place, word)
        out.append(f"{diagnostic.severity}: {diagnostic.message}" + (f" ({location})" if location else ""))
        out += ["    " + line for line in carets(diagnostic).splitlines()]
    return "\n".join(out)


def detail_sections(record: CompileRecord, shared_limit: int = 0) -> list[tuple[str, str]]:
    """(heading, HTML) of diagnostics, resources, choices and remarks; empty ones are left out."""
    word = source_word(record)
    out: list[tuple[str, str]] = []
    if record.diagnostics:
        out.append(("Diagnostics", diagnostics_body(record.diagnostics, word)))
    out.append(("Resources", resources_body(record.resources, shared_limit)))
    if record.choices:
        out.append((f"Choices ({len(record.choices)})", choices_body(record.choices)))
    if record.remarks:
        out.append((f"Remarks ({len(record.remarks)})", remarks_body(record.remarks, word)))
    return out


def sections_html(sections: Sequence[tuple[str, str]]) -> str:
    """Sections in as many columns as the page has room for."""
    parts = "".join(
        f'<section class="sec"><h3>{escape(name)}</h3>{body}</section>' for name, body in sections
    )
    return f'<div class="flow">{parts}</div>'


def details_body(record: CompileRecord, shared_limit: int = 0) -> str:
    """Resources, diagnostics, choices and remarks of a record, as sections."""
    return sections_html(detail_sections(record, shared_limit))


def resources_html(record: CompileRecord, theme: str = "auto", *, shared_limit: int = 0) -> str:
    """The panel of a record as HTML that stands alone: resources, choices, remarks, diagnostics.

    `shared_limit` is the shared memory one block may take on the target, in bytes; 0 leaves it out.
    """
    return page(
        heading(record) + details_body(record, shared_limit), theme, CSS, f"resources of {record.kernel}"
    )


def details_text(record: CompileRecord, shared_limit: int = 0) -> str:
    """The panel in plain text."""
    word = source_word(record)
    out = [resources_text(record.resources, shared_limit)]
    if record.diagnostics:
        out.append(diagnostics_text(record.diagnostics, word))
    if record.choices:
        out.append(choices_text(record.choices))
    if record.remarks:
        out.append(remarks_text(record.remarks, word))
    return "\n\n".join(out)
