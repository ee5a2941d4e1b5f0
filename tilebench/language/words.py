"""The registry of the language, gathered from its files; the parser and verifier are given it."""

from __future__ import annotations

from functools import cache

from ..ir import Registry
from ..layout import Fragment, Layout, SharedLayout, Swizzle
from .addresses import WORDS as ADDRESSES
from .copy import WORDS as COPY
from .extensions import word_of
from .extern import WORDS as EXTERN
from .gemm import WORDS as GEMM
from .lowered.clocks import WORDS as CLOCKS
from .lowered.clusters import WORDS as CLUSTERS
from .lowered.copy_barriers import WORDS as COPY_BARRIERS
from .lowered.decisions import Instr, Panels, Plan, Stage
from .lowered.lanes import WORDS as LANES
from .lowered.launches import WORDS as LAUNCHES
from .lowered.layouts import WORDS as LAYOUTS
from .lowered.mbarriers import WORDS as MBARRIERS
from .lowered.settle import WORDS as SETTLE
from .lowered.threads import FUNCTIONS as EXCHANGES
from .lowered.threads import WORDS as THREADS
from .lowered.tokens import WORDS as TOKENS
from .mbarriers import WORDS as HAND_BARRIERS
from .memory import WORDS as MEMORY
from .notes import WORDS as NOTES
from .placement import WORDS as PLACEMENT
from .promises import WORDS as PROMISES
from .reduce import WORDS as REDUCE
from .registers import WORDS as REGISTERS
from .scalars import FUNCTIONS as SCALARS
from .structure import WORDS as STRUCTURE
from .votes import WORDS as VOTES

VALUES = (Panels, Plan, Stage, Instr, Layout, SharedLayout, Swizzle, Fragment)
# The modules `copy` and `gemm` share their names with words of the language, so that
# `from . import copy` would find the word: the tables are imported from the modules by path.
FAMILIES = (
    STRUCTURE,
    MEMORY,
    COPY,
    GEMM,
    REDUCE,
    PLACEMENT,
    NOTES,
    PROMISES,
    THREADS,
    MBARRIERS,
    COPY_BARRIERS,
    CLUSTERS,
    LAUNCHES,
    TOKENS,
    LANES,
    SETTLE,
    LAYOUTS,
    CLOCKS,
    EXTERN,
    ADDRESSES,
    VOTES,
    REGISTERS,
    HAND_BARRIERS,
)


@cache
def registry() -> Registry:
    """All words of all families."""
    words = [word for family in FAMILIES for word in family]
    return Registry.of(words, (*SCALARS, *EXCHANGES), VALUES, word_of)
