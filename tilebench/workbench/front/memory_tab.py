"""The tab of shared memory, and a launch on other cards: map, stages that fit, waves and tail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..style import bytes_text, number
from ..table import Cell, Value
from .block_data import BarData, Block, ChoiceBlock, Drawing, MapDrawing, OptionBlocks, SpanDrawing
from .blocks import table

if TYPE_CHECKING:
    from ...pictures.collect import KernelPictures, SliderFit
    from ...pictures.residency import CardResidency
    from ...pictures.shared_map import SharedMap, SharedSpan

_NAMES = {"registers": "registers", "shared": "shared memory", "warps": "warps", "blocks": "block slots"}
NO_SHARED = "The kernel uses no shared memory."


def memory_blocks(pictures: KernelPictures) -> tuple[Block, ...]:
    """The map of each launch, its buffers, and what other values of the sliders would take."""
    if not pictures.maps:
        return ()
    out: list[Block] = []
    for number_, one in enumerate(pictures.maps, 1):
        head = f"Launch {number_}: " if len(pictures.maps) > 1 else ""
        out += _map(one, head)
    return (*out, *fit_blocks(pictures.fits))


def _map(one: SharedMap, head: str) -> list[Block]:
    if not one.spans:
        return [Block(head + NO_SHARED)]
    said = f"{head}{bytes_text(one.total)} of the {bytes_text(one.limit)} that a block may have."
    saved = one.without_reuse - one.total
    if saved > 0:
        said += f" {bytes_text(saved)} are saved by buffers that take another's place."
    out = [Block(said, "" if one.fits else "bad")]
    rings = [span for span in one.spans if span.versions > 1]
    if one.stages is not None and rings:
        stage = sum(span.stage_bytes for span in rings)
        used = max(span.versions for span in rings)
        out.append(
            Block(f"{one.stages} stages of {bytes_text(stage)} fit, {used} are used.",
                  "good" if used <= one.stages else "bad")
        )  # fmt: skip
    spans = tuple(
        SpanDrawing(s.name, s.offset, s.bytes, s.versions, s.first, s.last, _words(s)) for s in one.spans
    )
    out.append(Block(drawing=Drawing(map=MapDrawing(spans, one.total, one.limit, one.lines))))
    out.append(Block(bars=_bars(one)))
    return [*out, _spans(one)]


def _words(span: SharedSpan) -> str:
    stages = f" in {span.versions} stages of {bytes_text(span.stage_bytes)}" if span.versions > 1 else ""
    return f"{span.name}: {bytes_text(span.bytes)}{stages} from byte {span.offset}, {_lines(span)}"


def _lines(span: SharedSpan) -> str:
    if span.first_line == span.last_line:
        return f"line {span.first_line}"
    return f"lines {span.first_line} to {span.last_line}"


def _spans(one: SharedMap) -> Block:
    """The buffers as a table; of rings and of shared bytes where there are some."""
    rings = any(span.versions > 1 for span in one.spans)
    shared = any(one.shares(span) for span in one.spans)
    heads = ["buffer", "bytes", "from byte", "lines"]
    heads += ["stages", "a stage"] * rings + ["shares bytes with"] * shared
    rows: list[list[Value]] = []
    for span in one.spans:
        row: list[Value] = [span.name, str(span.bytes), str(span.offset), _lines(span).partition(" ")[2]]
        row += [str(span.versions), str(span.stage_bytes)] if rings else []
        rows.append([*row, ", ".join(one.shares(span))] if shared else row)
    return table(heads, rows, numeric=(1, 2, *((4, 5) if rings else ())), mono=(0,))


def _bars(one: SharedMap) -> tuple[BarData, ...]:
    total = BarData("all", one.total / one.limit, f"{_percent(one.total / one.limit)}", not one.fits)
    parts = [
        BarData(span.name, span.bytes / one.limit, bytes_text(span.bytes), span.bytes > one.limit)
        for span in one.spans
    ]
    return (total, *parts) if len(parts) > 1 else (total,)


def _percent(part: float) -> str:
    return f"{number(100 * part)} %" if part else "0 %"


FIT_HEADS = ("slider", "value", "a block", "fits", "stages that fit")


def fit_blocks(fits: Sequence[SliderFit]) -> list[Block]:
    """What each value of each slider takes, the other sliders as they are."""
    if not fits:
        return []
    rows: list[list[Value]] = []
    rings = any(fit.stages is not None for fit in fits)
    before = ""
    for fit in fits:
        value = Cell(f"{fit.value} (now)", "on") if fit.here else fit.value
        slider, before = "" if fit.slider == before else fit.slider, fit.slider
        if fit.total is None:
            rows.append([slider, value, "", Cell("refused", "warn", title=fit.why), *([""] if rings else [])])
            continue
        fits_ = Cell("yes", "good") if fit.fits else Cell("no", "bad")
        stages = "" if fit.stages is None else str(fit.stages)
        rows.append([slider, value, bytes_text(fit.total), fits_, *([stages] if rings else [])])
    caption = "Shared memory with other values of one slider, the others as they are"
    return [
        table(
            FIT_HEADS if rings else FIT_HEADS[:-1],
            rows,
            caption=caption,
            numeric=(1, 2, *((4,) if rings else ())),
            mono=(0,),
        )
    ]


def card_blocks(pictures: KernelPictures) -> tuple[Block, ...]:
    """What each card holds of each launch: limits, waves and tail."""
    if not pictures.cards or not pictures.cards[0]:
        return ()
    own = pictures.machine.name
    said = (
        f"On any card, with the registers and shared memory of the code for {own}: what is compiled for "
        "another may take others. Multiprocessors (SMs) are those of a common large card of the kind, or of "
        "the one that is here. Empty: part of all places in all waves, if every block takes as long."
    )
    several = len(pictures.cards) > 1
    options = tuple(
        OptionBlocks(f"launch {k}, {card.card}" if several else card.card, _card(card, bars=card.card != own))
        for k, found in enumerate(pictures.cards, 1)
        for card in found
    )
    out = [Block(choice=ChoiceBlock("card", "card", options)), Block(said, "quiet")]
    for k, found in enumerate(pictures.cards, 1):
        caption = f"Launch {k} on each card" if several else "The launch on each card"
        rows = [_card_row(card) for card in found]
        out.append(table(CARD_HEADS, rows, caption=caption, numeric=tuple(range(1, len(CARD_HEADS) - 1))))
    return tuple(out)


CARD_HEADS = ("card", "SMs", "blocks each", "occupancy", "waves", "empty", "limited by")


def _card_row(card: CardResidency) -> list[Value]:
    if card.refused:
        return [card.card, str(card.units), Cell("0", "bad", title=card.refused), "", "", "", card.refused]
    waves, limited = card.waves, _NAMES.get(card.limited_by, card.limited_by)
    return [
        card.card, str(card.units), str(card.blocks), _percent(card.occupancy),
        number(waves) if waves is not None else "", _idle_cell(card.idle), limited,
    ]  # fmt: skip


def _idle_cell(idle: float | None) -> Value:
    if idle is None:
        return ""
    return Cell(f"{round(100 * idle)} %", "bad" if idle >= 0.5 else "warn" if idle >= 0.2 else "")


def _card(card: CardResidency, bars: bool) -> tuple[Block, ...]:
    """Waves and tail in words; bars of the limits where they do not stand above already."""
    if card.refused:
        return (Block(f"Not one block runs there: {card.refused}.", "bad"),)
    if not bars:
        return (Block(wave_sentence(card)),)
    most = max(card.limits.values(), default=1)
    limits = [BarData("occupancy", card.occupancy, f"{card.warps} of {card.max_warps} warps")]
    for name, blocks in sorted(card.limits.items(), key=lambda item: item[1]):
        mark = " \N{BLACK LEFT-POINTING SMALL TRIANGLE} limits" if name == card.limited_by else ""
        limits.append(BarData(f"blocks by {_NAMES.get(name, name)}", blocks / most, f"{blocks}{mark}"))
    if card.registers is None:
        said = [Block("Registers are not known before the code is compiled: no limit here.", "quiet")]
    else:
        said = []
    return (Block(wave_sentence(card)), *said, Block(bars=tuple(limits)))


def wave_sentence(card: CardResidency) -> str:
    """Waves and tail in words."""
    places = f"{card.units} multiprocessors with {card.blocks} block{'s' * (card.blocks != 1)} each are "
    places += f"{card.places} places"
    waves, idle = card.waves, card.idle
    if waves is None or idle is None or card.grid is None:
        return f"{places}; how many blocks there are is known at a launch."
    if waves <= 1:
        filled = f"{card.grid} blocks fill {_percent(waves)} of them at once"
        return f"{places}; {filled}." if waves < 1 else f"{places}, and as many blocks fill them once."
    said = f"{places}; {card.grid} blocks are {number(waves)} waves, the last of {card.last} blocks: "
    return f"{said}{round(100 * idle)} % of all places are empty if every block takes as long."
