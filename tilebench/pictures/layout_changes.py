"""Where a fragment changes its layout, by which way, and what the other ways would have cost."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import Function, walk
from ..language.lowered.layouts import ConvertLayout
from ..language.memory import AllocFragment
from ..machine import Machine
from ..passes.analysis.conversions import ways
from .tile_layouts import line_of


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
