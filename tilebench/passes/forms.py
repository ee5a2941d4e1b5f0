"""Legal forms per stage: which memories there are, and what every node must carry by then.

Which words may stand in a stage is said by the words; which fields have been decided, by the marks of
the fields. What is left are the few rules that concern one operation.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import LegalForms, LoopStmt, Node, OpStmt, Region, WordStmt, show
from ..ir.effects import read_while_written
from ..language.copy import Copy
from ..language.gemm import Gemm
from ..language.memory import AllocLocal, AllocShared
from ..language.stages import ORDER
from ..language.structure import KernelLaunch
from .analysis.accesses import reads_its_target

TILE_SCOPES = frozenset({"shared", "fragment", "local", "var"})
Rule = Callable[[Node], str | None]


def decided_by(stage: str) -> Rule:
    """The rule that decisions are there from their stage on, used hints are not, nor, but for early ones,
    decisions before their stage."""
    number = ORDER.index(stage)

    def rule(node: Node) -> str | None:
        for mark in node.decisions:
            value = getattr(node, mark.name)
            if mark.used and ORDER.index(mark.used) <= number:
                if value != mark.default:
                    return f"{mark.name} of T.{_word(node)} has no effect any more: {mark.used} has used it"
                continue
            if not mark.decided:
                continue
            if isinstance(node, WordStmt) and mark.name in node.settled():
                if value is not None:
                    return f"{mark.name} of T.{_word(node)} decides nothing here: leave it out"
                continue
            due = ORDER.index(mark.decided) <= number
            if due and value is None:
                return f"T.{_word(node)} has no {mark.name}"
            if not due and value is not None and not mark.early:
                return f"{mark.name} of T.{_word(node)} is decided only by {mark.decided}"
        return None

    return rule


def _word(node: Node) -> str:
    return node.spelling() if isinstance(node, WordStmt) else type(node).__name__


def _staged(node: Node) -> str | None:
    """Operands of a gemm are in shared memory or fragments once staging has been inserted."""
    if isinstance(node, Gemm) and "global" in (node.a.buffer.scope, node.b.buffer.scope):
        return "an operand of a gemm still lies in global memory"
    return None


def _extents_known(node: Node) -> str | None:
    for mark in node.effect_marks:
        region = getattr(node, mark.name)
        if isinstance(region, Region) and region.extent is None:
            return f"the region {mark.name} of {region.buffer.name} has no extents"
    return None


def _within_its_buffer(node: Node) -> str | None:
    """A bound that a copy tests is one of its buffer's, for each dimension."""
    for mark in node.effect_marks:
        within = getattr(node, f"{mark.name}_within", None)
        if within is None:
            continue
        buffer = getattr(node, mark.name).buffer
        name, shape = buffer.name, buffer.shape
        if len(within) != len(shape):
            return f"{mark.name}_within has {len(within)} bounds, and {name} has {len(shape)} dimensions"
        # Sizes that are known at run time only are left to those who bound them.
        pairs = zip(within, shape, strict=True)
        known = [pair for pair in pairs if all(isinstance(number, int) for number in pair)]
        if any(not 0 < bound <= extent for bound, extent in known):
            return f"{mark.name}_within={show(within)} reaches past {name}, which is {show(shape)}"
    return None


def _reads_before(node: Node) -> str | None:
    """A loop or an operation reads nothing of what it writes: it would be read again in each turn."""
    if isinstance(node, (LoopStmt, OpStmt)) and (names := read_while_written(node)):
        name = min(names)
        return f"T.{_word(node)} reads {name}, which it writes: give what it reads a name in front of it"
    if isinstance(node, Copy) and node.src.extent is not None and reads_its_target(node):
        return f"T.copy reads parts of {node.src.buffer.name} that it writes: copy them to a fragment first"
    if isinstance(node, Gemm) and node.c.buffer.name in (node.a.buffer.name, node.b.buffer.name):
        return f"T.gemm adds to {node.c.buffer.name}, which it reads: copy that to a fragment first"
    return None


def _flat(node: Node) -> str | None:
    """One thread's code addresses shared memory and registers by one number."""
    if isinstance(node, (AllocShared, AllocLocal)) and node.buffer.rank != 1:
        return f"{node.buffer.name} has {node.buffer.rank} dimensions; a thread addresses it by one number"
    if isinstance(node, AllocShared) and node.offset is None:
        return f"{node.buffer.name} has no place in the map of shared memory"
    if isinstance(node, KernelLaunch) and node.threads is None:  # pyright: ignore[reportUnnecessaryComparison]
        return "T.Kernel has no threads"
    return None


def _forms(stage: str, *rules: Rule) -> LegalForms:
    return LegalForms(stage, None, TILE_SCOPES, (decided_by(stage), *rules))


TILE_FORMS = _forms("tile")
SCHEDULED_FORMS = _forms("scheduled", _staged)
BOUNDED_FORMS = _forms("bounded", _staged, _extents_known, _within_its_buffer, _reads_before)
LAID_OUT_FORMS = _forms("laid_out", _staged, _extents_known, _within_its_buffer, _reads_before)
PIPELINED_FORMS = _forms("pipelined", _staged, _extents_known, _within_its_buffer, _reads_before)
THREADED_FORMS = LegalForms("threaded", None, frozenset({"shared", "local", "var"}), (_flat, _reads_before))
