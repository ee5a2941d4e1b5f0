"""The stages by name, and the sets of them in which a word may stand: each word's class says its own."""

from __future__ import annotations

# From a kernel as it was written to the code of one thread, in order. Targets may leave the road.
ORDER = ("tile", "scheduled", "bounded", "laid_out", "pipelined", "threaded")

EVERY = frozenset(ORDER)
# Whole tiles: what a block does.
TILES = EVERY - {"threaded"}
# Tiles before the ring of a pipelined loop is made.
RINGS = frozenset({"pipelined"})
PLANNED = TILES - RINGS
# What one thread does.
THREAD = frozenset({"threaded"})
