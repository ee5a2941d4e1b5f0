"""Faults in products of warp groups: descriptors, sums and operands in flight, fences, versions of a ring."""

from __future__ import annotations

from ..fault import Fault

WGMMA = "tests/targets/cuda/test_wgmma.py"
BITS = f"{WGMMA}::test_products_to_the_last_bit"
RINGS = "tests/targets/cuda/test_wgmma_rings.py"

FAULTS = (
    Fault(
        "warp-groups/unchecked-descriptor",
        "an instruction reads panels across k as if their rows ran along it",
        "tilebench.targets.cuda.instructions.wgmma_gemm:form_of",
        "MatrixForm(line, read.plain(0, 8) * read.size, lead, turned=True)",
        "MatrixForm(line, read.plain(0, 8) * read.size, lead)",
        (BITS,),
    ),
    Fault(
        "warp-groups/rows-of-one-group",
        "all warp groups read the first one's rows",
        "tilebench.targets.cuda.instructions.wgmma_gemm:_origin",
        "total + emitter.uniform_digit(divisor, count) * step",
        "total",
        (BITS,),
    ),
    Fault(
        "warp-groups/panels-as-wide-as-the-tile",
        "a tile has no rows for what an instruction reads past it",
        "tilebench.passes.laid_out.place_operands:_candidates",
        "max(shape[demand.other], first + demand.reach)",
        "shape[demand.other]",
        (BITS,),
    ),
    Fault(
        "warp-groups/no-fence",
        "what threads wrote passes no fence on its way to an instruction",
        "tilebench.passes.threaded.insert_barriers:_Search._fence",
        "a.write and a.buffer.name in self.read_apart",
        "False",
        (BITS, RINGS),
    ),
    Fault(
        "warp-groups/filled-while-read",
        "a step does not wait for the product whose tile it fills again",
        "tilebench.passes.pipelined.products_ahead:ProductsAhead.waited",
        "Wait(self.token, pending=1, by=self.by, place=place)",
        "Wait(self.token, pending=2, by=self.by, place=place)",
        (RINGS,),
    ),
    Fault(
        "warp-groups/part-used-in-flight",
        "a part of a sum is added before it has been waited for",
        "tilebench.targets.cuda.instructions.wgmma_gemm:_in_parts",
        "_added(emitter, issue, parts[(number - 1) % 2], pending=1)",
        "_added(emitter, issue, parts[(number - 1) % 2], pending=2)",
        (f"{WGMMA}::test_few_bits_of_a_sum_are_added_up_in_float32",),
    ),
    Fault(
        "warp-groups/part-over-part",
        "a part of a sum is formed where the one before it still is",
        "tilebench.targets.cuda.instructions.wgmma_gemm:_in_parts",
        "part = parts[number % len(parts)]",
        "part = parts[0]",
        (f"{WGMMA}::test_few_bits_of_a_sum_are_added_up_in_float32",),
    ),
    Fault(
        "warp-groups/sum-used-in-flight",
        "a product goes on though the loop uses its sum",
        "tilebench.passes.pipelined.products_ahead:_waited_for",
        "gemm.c.buffer.name in used",
        "False",
        (f"{RINGS}::test_a_sum_that_the_loop_uses_is_waited_for_there",),
    ),
    Fault(
        "warp-groups/old-sum-forgotten",
        "a sum starts afresh in a product behind what reads its zeros",
        "tilebench.passes.laid_out.start_sums:_started",
        "any((e.buffer.name == name for e in effects_in(out[k])))",
        "isinstance(out[k], Gemm) and out[k].c.buffer.name == name",
        ("tests/passes/test_texts.py::test_text[start_sums.clears]",),
    ),
    Fault(
        "warp-groups/registers-moved-in-flight",
        "steps of rows in registers are a loop, whose next turn has others in the same ones",
        "tilebench.targets.cuda.instructions.wgmma_gemm:_steps",
        "issue.a.form is None",
        "False",
        (f"{RINGS}::test_rows_in_registers_are_written_out",),
    ),
    Fault(
        "warp-groups/few-bits-of-a-long-sum",
        "sums of 8-bit floats stay in the matrix unit",
        "tilebench.targets.cuda.instructions.wgmma_gemm:product",
        "bool(row.exact_k) and not gemm.fast_accum",
        "False",
        (f"{WGMMA}::test_few_bits_of_a_sum_are_added_up_in_float32",),
    ),
    Fault(
        "warp-groups/one-writer-at-a-time",
        "a sum counts as done when the first of the products that add to it is",
        "tilebench.simulator.asynchrony:InFlight.end",
        "self.writers[cells] -= 1",
        "self.writers[cells] = 0",
        (f"{RINGS}::test_a_ring_that_fills_too_early_is_refused",),
    ),
    Fault(
        "warp-groups/taken-unasked",
        "an instruction that asks more of tiles is chosen by its cost alone",
        "tilebench.passes.laid_out.choose_instructions:fitting_rows",
        "not row.optional",
        "True",
        (
            "tests/targets/cuda/test_default_road.py::test_what_is_named_stays_and_small_tiles_are_as_they_were",
        ),
    ),
)
