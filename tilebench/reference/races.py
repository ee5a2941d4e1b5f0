"""Races between statements of one parallel loop: an element reads, or overwrites, what another stores.

Only buffers that the body touches at more than one index are watched, so that the usual loop costs
nothing. A race inside one store is found where it happens (`boxes.check_race`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from ..errors import LanguageError, Place
from ..ir import Buffer, Expr, Load, LoopStmt, Store, Var, walk
from ..language.structure import Parallel
from .boxes import position, spread_indices, within
from .scope import BoxAxis, LoopScope
from .state import State


@dataclass(frozen=True)
class TouchedLocations:
    """Locations (row-major) that elements of a loop touch: `lanes` are theirs, `value` what was stored.

    Of atomics `atomic` says how they combine, and `told` whether what they find is used, or others may see
    what was between them: then their order is one of those that a kernel is run in.
    """

    locations: Any
    lanes: Any
    value: Any
    place: Place | None
    atomic: str = ""
    told: bool = False

    @cached_property
    def ordered(self) -> tuple[Any, Any]:
        """What sorts the locations, and these: a loop inside makes many pairs of each."""
        order: Any = np.argsort(self.locations, kind="stable")
        return order, self.locations[order]

    def meets(self, other: TouchedLocations) -> bool:
        """Whether an order between the two would have to be known: what combines in one way needs none."""
        if self.atomic and other.atomic:
            return self.atomic != other.atomic and not (self.told or other.told)
        return True


def suspects(loop: Parallel, scope: LoopScope) -> frozenset[str]:
    """Names of the stored buffers in which an element might meet what another one stores.

    Safe is a buffer that every access takes at the same place: one index for each axis of the loop,
    moved by nothing that changes inside; and one that is only combined with, in one way. `scope` is that
    of the loop, with its lets.
    """
    seen: dict[str, list[tuple[Expr, ...]]] = {}
    done: dict[str, set[str]] = {}
    inner = {v.name for n in walk(loop) if isinstance(n, LoopStmt) and n is not loop for v in n.vars}
    for node in walk(loop):
        if isinstance(node, (Load, Store)) and node.buffer.scope not in ("local", "var"):
            seen.setdefault(node.buffer.name, []).append(tuple(scope.inlined(k) for k in node.index))
            how = (node.atomic or "write") if isinstance(node, Store) else "read"
            done.setdefault(node.buffer.name, set()).add(how)
    stored = [name for name, ways in done.items() if "write" in ways or len(ways) > 1]
    return frozenset(name for name in stored if not _apart(seen[name], scope, inner))


def _apart(accesses: list[tuple[Expr, ...]], scope: LoopScope, inner: set[str]) -> bool:
    """Whether no two elements of the loop can meet, other than inside one store."""
    moved = any(isinstance(n, Var) and n.name in inner for index in accesses for k in index for n in walk(k))
    if len(accesses) == 1 and not moved:
        return True
    places: set[tuple[tuple[int, BoxAxis], ...]] = set()
    wanted = {k for k, extent in enumerate(scope.extents) if extent > 1}
    for index in accesses:
        plan = scope.box_of(index)
        if plan is None:
            return False
        own = tuple((dim, each) for dim, each in enumerate(plan) if each.axis is not None)
        if not wanted <= {each.axis for _, each in own}:
            return False
        if any(isinstance(n, Var) and n.name in inner for _, each in own for n in walk(each.start)):
            return False
        places.add(own)
    return len(places) == 1


def note(
    state: State,
    buffer: Buffer,
    index: list[Any],
    value: Any,
    place: Place | None,
    atomic: Store | None = None,
) -> None:
    """Remember an access; `value` None is a load, and `atomic` the statement where it is one."""
    spread = [np.broadcast_to(each, state.box) for each in spread_indices(state, index)]
    ok = within(buffer, spread)
    active = np.broadcast_to(ok if state.mask is None else np.logical_and(ok, state.mask), state.box)
    locations: Any = np.ravel_multi_index(tuple(each[active] for each in spread), buffer.extents)
    stored = None
    if value is not None:
        stored = np.broadcast_to(np.asarray(getattr(value, "value", value)), state.box)[active]
    state.watched.setdefault(buffer.name, []).append(
        TouchedLocations(locations, np.flatnonzero(active), stored, place, *_of_atomic(atomic))
    )


def _of_atomic(store: Store | None) -> tuple[str, bool]:
    if store is None:
        return "", False
    return store.atomic, store.found is not None or store.atomic == "store"


def check(state: State) -> None:
    """Compare what the elements of the finished loop touched. Raises `LanguageError` for a race."""
    for name, accesses in state.watched.items():
        if _apart_by_element(accesses):
            continue
        stores = [each for each in accesses if each.value is not None]
        for store in stores:
            for other in accesses:
                if other is not store and store.meets(other):
                    _compare(name, state.box, store, other)
    state.watched.clear()


def _apart_by_element(accesses: list[TouchedLocations]) -> bool:
    """Whether no location that is stored to is touched by two elements, by one sort of all: the usual."""
    locations: Any = np.concatenate([each.locations for each in accesses])
    if not locations.size:
        return True
    lanes: Any = np.concatenate([each.lanes for each in accesses])
    stored: Any = np.repeat(
        [each.value is not None for each in accesses], [len(each.lanes) for each in accesses]
    )
    order: Any = np.argsort(locations, kind="stable")
    locations, lanes, stored = locations[order], lanes[order], stored[order]
    starts: Any = np.flatnonzero(np.concatenate([[True], locations[1:] != locations[:-1]]))
    several: Any = np.minimum.reduceat(lanes, starts) != np.maximum.reduceat(lanes, starts)
    return not bool((several & np.logical_or.reduceat(stored, starts)).any())


def _compare(name: str, box: tuple[int, ...], store: TouchedLocations, other: TouchedLocations) -> None:
    (order, sorted_), there = store.ordered, other.ordered[1]
    if not sorted_.size or not there.size or sorted_[-1] < there[0] or there[-1] < sorted_[0]:
        return
    locate: Any = np.searchsorted
    slot: Any = locate(sorted_[1:], other.locations, side="right")
    owner = order[slot]
    clash = (sorted_[slot] == other.locations) & (store.lanes[owner] != other.lanes)
    if other.value is not None and not (store.atomic or other.atomic):
        a, b = store.value[owner], other.value
        clash &= (a != b) & ~((a != a) & (b != b))
    if clash.any():
        first = int(np.argmax(clash))
        _fail(name, box, store, other, int(store.lanes[owner[first]]), int(other.lanes[first]))


def _fail(
    name: str, box: tuple[int, ...], store: TouchedLocations, other: TouchedLocations, a: int, b: int
) -> NoReturn:
    one, two = position(a, box), position(b, box)
    does = "reads" if other.value is None else "stores"
    raise LanguageError(
        "an element of T.Parallel {does} what another one stores in {name}", name=name, does=does,
        at=store.place, a=one, b=two, expected="elements that do not need each other: they run in no order",
        found="element {a} stores what element {b} {does}",
        also=[("element {b} {does} it here", other.place)],
        hint="split the loop in two, or use another buffer for the result",
    )  # fmt: skip
