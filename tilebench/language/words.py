"""The registry of the language, gathered from its files; the parser and verifier are given it."""

from __future__ import annotations

from functools import cache

from ..ir import Registry
from ..layout import Fragment, Layout, SharedLayout, Swizzle
from . import copy, gemm, memory, reduce, scalars, structure, threads
from .decisions import Instr, Panels, Plan, Stage

VALUES = (Panels, Plan, Stage, Instr, Layout, SharedLayout, Swizzle, Fragment)
FAMILIES = (structure, memory, copy, gemm, reduce, threads)


@cache
def registry() -> Registry:
    """All words of all families."""
    words = [word for family in FAMILIES for word in family.WORDS]
    return Registry.of(words, (*scalars.FUNCTIONS, *threads.FUNCTIONS), VALUES)
