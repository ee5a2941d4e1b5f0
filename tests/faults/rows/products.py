"""Faults in products by tensor cores: where operands lie, what is behind their ends, how sums are cut off."""

from __future__ import annotations

from ..fault import Fault

MMA = ("tests/targets/cuda/test_mma.py",)
GROUPS = ("tests/targets/cuda/test_wgmma_recorded.py",)
CALLS = ("tests/library/test_calls.py",)
RECORDED = ("tests/targets/cuda/test_mma_recorded.py",)

FAULTS = (
    Fault(
        "products/ghosts-along-k",
        "the last step of k takes what lies behind the operands' ends",
        "tilebench.passes.threads.atoms:_steps",
        "issue.step(emitter, start + steps, ghosts=True)",
        "issue.step(emitter, start + steps)",
        MMA,
    ),
    Fault(
        "products/second-operand-of-one-fragment",
        "a fragment that is two operands is taken for both where it lies",
        "tilebench.passes.laid_out.spill_operands:_lies_twice",
        "len(same) > 1",
        "False",
        MMA,
    ),
    Fault(
        "products/float32-cut-off",
        "float32 is cut off to TF32 though the kernel does not say so",
        "tilebench.passes.laid_out.choose_instructions:is_meant",
        "not row.asked or getattr(statement, row.asked)",
        "True",
        MMA,
    ),
    Fault(
        "products/few-bits-of-a-long-sum",
        "sums of 8-bit floats stay in the matrix unit",
        "tilebench.passes.threads.atoms:gemm_by_atoms",
        "bool(row.exact_k) and not gemm.fast_accum",
        "False",
        MMA,
    ),
    Fault(
        "products/rows-in-parts-of-vectors",
        "a row of a matrix is taken to lie together where it does not",
        "tilebench.passes.threads.fetch_matrices:_whole",
        "layout.vector % rows.chunk == 0",
        "True",
        MMA,
    ),
    Fault(
        "products/rounded-sums",
        "a sum is rounded to float32 and not cut off",
        "tilebench.targets.cuda.instructions.tensor_sums:cut_off",
        "np.where(beyond, below, near)",
        "near",
        RECORDED,
    ),
    Fault(
        "products/scales-of-rows-as-one",
        "of a scale for each row the first is taken for all",
        "tilebench.library.binding:_one_or_each",
        "return bool(found)",
        "return False",
        CALLS,
    ),
    Fault(
        "products/bound-without-the-sum-before",
        "what a long sum loses of its terms is no part of its bound",
        "tilebench.library.scaled:sums_of_few_bits",
        "xp.maximum(largest, abs(inner) + lost)",
        "largest",
        CALLS,
    ),
    Fault(
        "products/eight-bit-sums-of-all-bits",
        "the total of products of 8-bit floats keeps more bits than a card's",
        "tilebench.targets.cuda.instructions.tensor_sums:_cut_sum",
        "np.trunc(np.ldexp(total, behind))",
        "np.ldexp(total, behind)",
        GROUPS,
    ),
    Fault(
        "products/eight-bit-sums-in-two",
        "products of 8-bit floats are added as many at once as those of 16-bit ones",
        "tilebench.targets.cuda.instructions.tensor_sums:product_sums",
        "NARROW if dtype.bits == 8 else WIDE",
        "Adder(16, 13, 13) if dtype.bits == 8 else WIDE",
        GROUPS,
    ),
    Fault(
        "products/exponents-below-the-smallest",
        "a subnormal operand is aligned as if it had an exponent of its own",
        "tilebench.targets.cuda.instructions.tensor_sums:_exponent",
        "np.maximum(np.frexp(x)[1] - 1, least)",
        "np.frexp(x)[1] - 1",
        RECORDED,
    ),
)
