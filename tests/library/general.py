"""The kernels that calls of arrays off the alignment take, of all large problems and cards: what they spill.

`python -m tests.library.general` compiles each, which takes some minutes; the tests compile those that need
most registers (`test_unaligned.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.library.test_right import CARDS, LARGE
from tilebench.kernel.calls.variants import Variant
from tilebench.library import kernel_for
from tilebench.library.definition import Problem
from tilebench.library.table import STEPS
from tilebench.recorder import resources_of

GENERAL = Variant(aligned=False)
TRAINING = ("attention_saving", "attention_before", "attention_backward", "attention_after")


@dataclass(frozen=True)
class GeneralCase:
    """An operator or step of one on a large problem, for arrays that start anywhere."""

    operator: Any
    problem: Problem
    arch: str
    name: str

    def __str__(self) -> str:
        return f"{self.name}-{self.arch}"

    def compiled(self) -> Any:
        """The compilation that such a call takes, of the rule for such calls."""
        kernel = kernel_for(self.operator, self.problem, f"cuda:{self.arch}", aligned=False)
        return kernel.calls.compiled(GENERAL)

    def spilled(self) -> tuple[int, int]:
        """Bytes of spilled stores, and of local memory."""
        made = self.compiled()
        made.reach_code()
        found = resources_of(made)
        assert found is not None
        assert found.blocks_per_sm
        return found.spill_store_bytes, found.local_bytes


def large() -> Iterator[GeneralCase]:
    """Every large problem for every card, and the steps of training and decoding."""
    for arch in CARDS:
        for case in LARGE:
            yield GeneralCase(case.operator, case.problem, arch, str(case))
        sizes = {"B": 4, "H": 32, "KV": 8, "SQ": 4096, "SK": 4096}
        orders = {f"{name}_order": 0 for name in "qkvog"}
        for step in TRAINING:
            for dim in (64, 96, 128):
                for causal in (False, True):
                    problem = Problem({**sizes, "D": dim}, "float16", {"causal": causal, **orders})
                    name = f"{step} {dim}" + (" causal" if causal else "")
                    yield GeneralCase(STEPS[step], problem, arch, name)
        if arch == "sm_75":
            continue  # decoding's tiles do not fit its shared memory
        for page in (0, 16, 256):
            options = {"k_order": 0, "v_order": 0, "page": page, "has_lengths": True, "alone": False}
            problem = Problem({"B": 8, "H": 32, "KV": 8, "S": 8192, "D": 128}, "float16", options)
            yield GeneralCase(STEPS["decode"], problem, arch, f"decode of pages of {page}")


def main() -> int:
    """Compile all of them; what is spilled is printed, and makes the status 1."""
    count, bad = 0, 0
    for case in large():
        spilled, count = case.spilled(), count + 1
        if spilled != (0, 0):
            bad += 1
            print(f"{case}: {spilled[0]} bytes of spilled stores, {spilled[1]} of local memory", flush=True)
    print(f"{count} compilations, {bad} of them spill")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
