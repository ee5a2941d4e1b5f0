"""All there is to draw of a compilation, by its stages: the one place that knows where each is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..compiler import Compilation
from ..ir import Function
from ..machine import Machine
from ..passes.analysis.launches import launches_of, parts_of
from ..record import Resources
from .layout_changes import LayoutChange, MapChoice, layout_changes, map_choices
from .narrow_accesses import narrow_reasons
from .other_layouts import OtherLayout, in_other_layouts, tiles_of
from .residency import CardResidency, blocks_of, residency
from .shared_map import SharedMap, placed_functions, shared_map
from .tile_layouts import SHARED, TileLayout, tile_layouts
from .warp_accesses import WarpAccess, counted_groups, joined

# Where layouts are decided, where rings have their versions, and where the code of a thread stands.
LAID_OUT, PIPELINED, THREADED = "laid_out", "pipelined", "threaded"


@dataclass(frozen=True)
class AccessPicture:
    """An access with what can be said of it: `narrow` is why it is not wider (empty: it is as wide as can be,
    or nobody asked), `other` the same in another layout of its tile, `launch` the number of its launch."""

    access: WarpAccess
    narrow: str = ""
    other: OtherLayout | None = None
    launch: int = 1


@dataclass(frozen=True)
class SliderFit:
    """Whether a kernel fits with another value of one slider, and with how many stages of its rings.

    `total` is the shared memory of a block in bytes; None with `why` where the value is refused for another
    reason. `here` marks the value of now. `stages` is None where there is no ring.
    """

    slider: str
    value: str
    total: int | None
    fits: bool
    stages: int | None = None
    here: bool = False
    why: str = ""


@dataclass(frozen=True)
class KernelPictures:
    """All that is drawn of one compilation.

    `cards` are of each launch in turn, the own card first; `fault` is why there is nothing, in words.
    """

    machine: Machine
    layouts: tuple[TileLayout, ...] = ()
    accesses: tuple[AccessPicture, ...] = ()
    conversions: tuple[LayoutChange, ...] = ()
    maps: tuple[SharedMap, ...] = ()
    cards: tuple[tuple[CardResidency, ...], ...] = ()
    fits: tuple[SliderFit, ...] = ()
    ways: tuple[MapChoice, ...] = ()
    fault: str = ""


def pictures_of(
    compilation: Compilation, resources: Resources | None = None, sizes: Mapping[str, Any] | None = None
) -> KernelPictures:
    """Everything that the stages made so far and `resources` (those of the code, or the static ones) give.

    Raises the `TileError` of a stage that refuses the kernel.
    """
    return KernelPictures(
        compilation.machine, layouts(compilation), accesses(compilation, sizes), conversions(compilation),
        shared_maps(compilation), cards(compilation, resources),
        ways=map_choices(compilation.context.remarks),
    )  # fmt: skip


def cards(compilation: Compilation, resources: Resources | None) -> tuple[tuple[CardResidency, ...], ...]:
    """What each card that the target offers holds of each launch, the own one first; none without a rule."""
    if resources is None or compilation.manifest.occupancy is None:
        return ()
    own = compilation.machine.name
    offered = compilation.manifest.presentation.machines
    names = [None, *(name for name in offered if name != own and ":" in name)]
    out: list[tuple[CardResidency, ...]] = []
    for launch in range(1, len(launches_of(compilation.last)) + 1):
        found = [occupancy(compilation, resources, name, launch) for name in names]
        out.append(tuple(card for card in found if card is not None))
    return tuple(out)


def fit_of(compilation: Compilation, slider: str, value: str, *, here: bool = False) -> SliderFit:
    """How a kernel with another value of a slider fits; of several launches the largest counts."""
    found = shared_maps(compilation)
    if not found:
        return SliderFit(slider, value, 0, fits=True, here=here)
    largest = max(found, key=lambda one: one.total)
    stages = [one.stages for one in found if one.stages is not None]
    fits = all(one.fits for one in found)
    return SliderFit(slider, value, largest.total, fits, min(stages, default=None), here)


def _parts(compilation: Compilation, stage: str) -> tuple[Function, ...]:
    """The launches of a stage, made if need be; none on a road without it."""
    if stage not in [row.name for row in compilation.rows] or stage not in compilation.stage_names:
        return ()
    # What is made is not asked for again: that waits for whoever compiles at the same time.
    if stage not in compilation.functions:
        compilation.reach(stage)
    return parts_of(compilation.functions[stage])


def layouts(compilation: Compilation) -> tuple[TileLayout, ...]:
    """The layouts of all launches, with the versions that rings have."""
    machine = compilation.machine
    rings = [one for part in _parts(compilation, PIPELINED) for one in tile_layouts(part, machine)]
    # What runs ahead stands twice behind a ring; the stage before has each mapping once.
    found = [one for part in _parts(compilation, LAID_OUT) for one in tile_layouts(part, machine)]
    versions = {one.name: one for one in rings if one.kind == SHARED}
    found = [versions.get(one.name, one) if one.kind == SHARED else one for one in found]
    return tuple(dict.fromkeys(found))


def accesses(
    compilation: Compilation, sizes: Mapping[str, Any] | None = None, *, whole: bool = False
) -> tuple[AccessPicture, ...]:
    """The accesses of all launches, in order of the code; `whole` counts every turn of every loop."""
    machine, out = compilation.machine, list[AccessPicture]()
    known = {name: int(value) for name, value in (sizes or {}).items() if isinstance(value, int)}
    threaded = _parts(compilation, THREADED)
    laid_out = _parts(compilation, LAID_OUT) if threaded else ()
    for number, (above, part) in enumerate(zip(laid_out, threaded, strict=True), 1):
        groups = counted_groups(part, machine, whole=whole, sizes=known)
        others = in_other_layouts(groups, tiles_of(above, part), machine)
        reasons = narrow_reasons(above, machine)
        widest = max(machine.vector_bytes)
        for k, group in enumerate(groups):
            access = joined(group)
            reason = reasons.get((access.line, access.buffer, access.written), "")
            out.append(AccessPicture(access, reason if access.width < widest else "", others.get(k), number))
    return tuple(out)


def conversions(compilation: Compilation) -> tuple[LayoutChange, ...]:
    """The conversions of all launches."""
    return tuple(
        one for part in _parts(compilation, LAID_OUT) for one in layout_changes(part, compilation.machine)
    )


def shared_maps(compilation: Compilation) -> tuple[SharedMap, ...]:
    """The map of shared memory of each launch."""
    return tuple(shared_map(part, compilation.machine) for part in placed_functions(compilation))


def occupancy(
    compilation: Compilation, resources: Resources, card: str | None = None, launch: int = 1
) -> CardResidency | None:
    """What a card holds of a launch; None where its blocks do not share a multiprocessor.

    `resources` are those of the compilation so far: without registers they are no limit. Raises `TargetError`
    for a card that there is not.
    """
    from ..targets import resolve

    manifest, machine = (compilation.manifest, compilation.machine) if card is None else resolve(card)
    if manifest.occupancy is None:
        return None
    launches: Sequence[Any] = launches_of(compilation.last)
    own = resources.launches[launch - 1] if resources.launches else resources
    grid = blocks_of(tuple(n if isinstance(n, int) else "" for n in launches[launch - 1].grid))
    return residency(manifest.occupancy, machine, own.threads, own.registers, own.shared_bytes, grid)
