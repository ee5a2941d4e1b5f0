"""Where a fragment changes its layout, by which way, and what the other ways would have cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir import Function, walk
from ..language.lowered.layouts import ConvertLayout
from ..language.memory import AllocFragment
from ..machine import Machine
from ..passes.analysis.conversions import ways
from ..record import Remark
from .tile_layouts import line_of

# What the values of a remark that weighs ways begin with (`passes/laid_out/choose_maps.py`).
CYCLES = "cycles_"


@dataclass(frozen=True)
class ConversionWay:
    """One way: `cycles` are those in which a warp issues, `words` the instructions of a thread."""

    name: str
    cycles: float
    words: str


@dataclass(frozen=True)
class LayoutChange:
    """A conversion of the fragment `source` to the layout of `target`, `way` the one that is carried out.

    `price` is what the stage states. `ways` are all that the machine has for it, the cheapest first; the one
    that is taken need not be among them where a person has edited the stage.
    """

    source: str
    target: str
    dtype: str
    line: int
    way: str
    price: str
    ways: tuple[ConversionWay, ...]


@dataclass(frozen=True)
class MapChoice:
    """How a statement that reaches global memory was mapped, of several ways: `cycles` of a warp by way.

    `chosen` says it in words; the ways are accesses as fragments lie, in vectors that lanes have exchanged,
    and in whole rows by way of shared memory, each with the conversions that it needs.
    """

    line: int
    chosen: str
    cycles: tuple[tuple[str, float], ...]


def map_choices(remarks: Sequence[Remark]) -> tuple[MapChoice, ...]:
    """The choices that a compilation's remarks tell with the price of each way, in order."""
    found: list[MapChoice] = []
    for remark in remarks:
        cycles = tuple(
            (name.removeprefix(CYCLES), float(value))
            for name, value in remark.values.items()
            if name.startswith(CYCLES) and isinstance(value, (int, float))
        )
        # Conversions tell their ways too; these have the accesses as they would lie without one.
        if any(name == "as_it_lies" for name, _ in cycles):
            line = remark.place.line if remark.place is not None else 0
            found.append(MapChoice(line, remark.message, cycles))
    return tuple(found)


def layout_changes(function: Function, machine: Machine) -> tuple[LayoutChange, ...]:
    """The conversions of one launch in the stage `laid_out`, in order."""
    nodes = list(walk(function))
    layouts = {node.buffer.name: node.layout for node in nodes if isinstance(node, AllocFragment)}
    found: list[LayoutChange] = []
    for node in nodes:
        if not isinstance(node, ConvertLayout):
            continue
        source, target = node.src.buffer, node.dst.buffer
        here, there = layouts.get(source.name), layouts.get(target.name)
        known = ways(here, there, source.dtype, machine) if here is not None and there is not None else ()
        priced = tuple(ConversionWay(way.by.name, way.cycles, way.words) for way in known)
        way = node.by.name if node.by is not None else ""
        found.append(
            LayoutChange(source.name, target.name, source.dtype.name, line_of(node), way, node.price, priced)
        )
    return tuple(found)
