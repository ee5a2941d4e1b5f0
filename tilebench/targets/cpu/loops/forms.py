"""What may stand in the `loops` stage."""

from __future__ import annotations

from collections.abc import Iterable

from ....ir import LegalForms, Node
from .words import WORDS, AllocScratch, Fold, MicroGemm, Vectors


def _decided(node: Node) -> str | None:
    if isinstance(node, AllocScratch) and node.layout is None:
        return f"{node.buffer.name} has no layout"
    if isinstance(node, MicroGemm) and node.block is None:
        return "a micro-kernel has no register block"
    if isinstance(node, (Vectors, Fold)) and node.lanes < 1:
        return "a vector has at least one lane"
    return None


# Words of the language that keep their form in `loops`.
_KEPT = frozenset({"Kernel", "alloc_global", "serial", "unroll", "alloc_var"})


def loops_forms(more: Iterable[str] = ()) -> LegalForms:
    """The legal forms of `loops`; `more` are words that a package brings and renders."""
    words = _KEPT | {word for word, _ in WORDS} | frozenset(more)
    return LegalForms("loops", words, frozenset({"scratch", "var"}), (_decided,))


LOOPS_FORMS = loops_forms()
