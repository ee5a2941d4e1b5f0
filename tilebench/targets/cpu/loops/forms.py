"""What may stand in the `loops` stage."""

from __future__ import annotations

from ....ir import LegalForms, Node
from .words import AllocScratch, Fold, MicroGemm, Vectors


def _decided(node: Node) -> str | None:
    if isinstance(node, AllocScratch) and node.layout is None:
        return f"{node.buffer.name} has no layout"
    if isinstance(node, MicroGemm) and node.block is None:
        return "a micro-kernel has no register block"
    if isinstance(node, (Vectors, Fold)) and node.lanes < 1:
        return "a vector has at least one lane"
    return None


LOOPS_FORMS = LegalForms(
    "loops",
    frozenset(
        {
            "Kernel", "serial", "unroll", "vectors", "alloc_scratch", "alloc_var", "micro_gemm",
            "pack_transposed", "prefetch",
            "fold_sum", "fold_max", "fold_min", "accumulate_sum", "accumulate_max", "accumulate_min",
        }
    ),
    frozenset({"scratch", "var"}),
    (_decided,),
)  # fmt: skip
