"""Which threads of a block write which elements of its part of an array: the fragment of the last store."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir import Function, Store, walk
from ...language.copy import Copy
from ...language.structure import Parallel
from ...layout import Fragment


def writers(stages: Mapping[str, Function]) -> dict[str, Fragment]:
    """For each array that statements on tiles write the fragment by which they do, of stages by their names.

    An array that several statements write by different ones is left out: nobody says which wrote an element.
    """
    found: dict[str, set[Fragment]] = {}
    function = stages.get("laid_out")  # a road without threads has none
    for node in walk(function) if function is not None else ():
        if isinstance(node, Copy) and node.dst.buffer.scope == "global":
            names, fragment = [node.dst.buffer.name], node.map
        elif isinstance(node, Parallel):
            stores = (part for part in walk(node) if isinstance(part, Store))
            names, fragment = [s.buffer.name for s in stores if s.buffer.scope == "global"], node.map
        else:
            continue
        for name in names:
            if fragment is not None:
                found.setdefault(name, set()).add(fragment)
    return {name: next(iter(some)) for name, some in found.items() if len(some) == 1}
