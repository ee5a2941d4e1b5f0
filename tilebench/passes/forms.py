"""Legal forms per stage: which words, which memories, and what every node must carry by then."""

from __future__ import annotations

from ..ir import LegalForms, Node, effects_of
from ..language.copy import Copy, Fill
from ..language.gemm import Gemm
from ..language.memory import AllocFragment, AllocLocal, AllocShared
from ..language.reduce import Reduce
from ..language.structure import Parallel, Pipelined

TILE_WORDS = frozenset(
    {
        "Kernel", "serial", "unroll", "vectorized", "Parallel", "Pipelined",
        "alloc_shared", "alloc_fragment", "alloc_local", "alloc_var",
        "copy", "fill", "gemm", "reduce_sum", "reduce_max", "reduce_min",
    }
)  # fmt: skip
TILE_SCOPES = frozenset({"shared", "fragment", "local", "var"})


def _undecided(node: Node) -> str | None:
    """Before `laid_out` nothing of a layout is decided."""
    if isinstance(node, (AllocShared, AllocFragment)) and node.layout is not None:
        return "a layout is decided only by laid_out"
    if isinstance(node, (Copy, Fill, Parallel)) and node.map is not None:
        return "a thread mapping is decided only by laid_out"
    return None


def _staged(node: Node) -> str | None:
    """Operands of a gemm are in shared memory or fragments once staging has been inserted."""
    if isinstance(node, Gemm) and "global" in (node.a.buffer.scope, node.b.buffer.scope):
        return "an operand of a gemm still lies in global memory"
    return None


def _extents_known(node: Node) -> str | None:
    for effect in effects_of(node):
        if effect.region is not None and effect.region.extent is None:
            return f"the region {effect.field} of {effect.buffer.name} has no extents"
    return None


def _planned(node: Node) -> str | None:
    return "a pipelined loop has no plan" if isinstance(node, Pipelined) and node.plan is None else None


def _laid_out(node: Node) -> str | None:
    """Every buffer has a layout, every parallel statement a mapping and an instruction."""
    if isinstance(node, (AllocShared, AllocFragment)) and node.layout is None:
        return f"{node.buffer.name} has no layout"
    if isinstance(node, (Copy, Fill, Parallel)) and node.map is None:
        return "a statement of many elements has no thread mapping"
    if isinstance(node, (Gemm, Reduce)) and node.by is None:
        return "an operation has no instruction"
    return None


TILE_FORMS = LegalForms("tile", TILE_WORDS, TILE_SCOPES, (_undecided,))
SCHEDULED_FORMS = LegalForms("scheduled", TILE_WORDS, TILE_SCOPES, (_undecided, _staged))
BOUNDED_FORMS = LegalForms(
    "bounded", TILE_WORDS, TILE_SCOPES, (_undecided, _staged, _extents_known, _planned)
)
LAID_OUT_FORMS = LegalForms(
    "laid_out", TILE_WORDS, TILE_SCOPES, (_staged, _extents_known, _planned, _laid_out)
)
PIPELINED_FORMS = LegalForms(
    "pipelined", TILE_WORDS - {"Pipelined"}, TILE_SCOPES, (_staged, _extents_known, _laid_out)
)

THREADED_WORDS = frozenset(
    {
        "Kernel", "serial", "unroll", "alloc_shared", "alloc_local", "alloc_var",
        "vector_load", "vector_store", "sync_threads", "sync_warp",
    }
)  # fmt: skip


def _flat(node: Node) -> str | None:
    """One thread's code addresses shared memory and registers by one number."""
    if isinstance(node, (AllocShared, AllocLocal)) and node.buffer.rank != 1:
        return f"{node.buffer.name} has {node.buffer.rank} dimensions; a thread addresses it by one number"
    if isinstance(node, AllocShared) and node.offset is None:
        return f"{node.buffer.name} has no place in the map of shared memory"
    return None


THREADED_FORMS = LegalForms("threaded", THREADED_WORDS, frozenset({"shared", "local", "var"}), (_flat,))
