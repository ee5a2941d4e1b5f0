"""Faults on the CPU's road."""

from __future__ import annotations

from ..fault import Fault

KERNELS = ("tests/targets/cpu/test_cpu_kernels.py",)
GEMM = ("tests/targets/cpu/test_gemm.py",)
REGIONS = ("tests/targets/cpu/test_gemm_regions.py",)

FAULTS = (
    Fault(
        "cpu/blocks-without-end",
        "a block of instructions gets as long as the kernel",
        "tilebench.targets.cpu.render.renderer:Renderer.body",
        "self.f.in_block > LONGEST_BLOCK",
        "False",
        ("tests/targets/cpu/test_long_kernels.py",),
    ),
    Fault(
        "cpu/own-arrays-in-lanes",
        "lanes share an array of a thread that was made before their loop",
        "tilebench.targets.cpu.lowerings.elementwise:_keeps_state",
        "('var', 'local')",
        "('var',)",
        ("tests/language/test_shared_state.py::test_what_each_iteration_has_to_itself",),
    ),
    Fault(
        "cpu/angles-of-two-parts",
        "large angles are reduced by the first bits of pi/2 alone",
        "tilebench.targets.cpu.numbers.angles:_reduced",
        "f.compare('ogt', size, constant(x, _NEAR))",
        "f.compare('ogt', size, constant(x, math.inf))",
        ("tests/targets/cpu/test_math.py::test_angles_of_any_size",),
    ),
    Fault(
        "cpu/depth-of-the-shorter",
        "a product leaves out what lies outside one of its arrays, where the other may be infinite",
        "tilebench.targets.cpu.loops.inside:_end_together",
        "",
        "return True",
        ("tests/targets/cpu/test_gemm_outside.py::test_zeros_outside_meet_infinity",),
    ),
    Fault(
        "cpu/vector-of-one-byte",
        "two lanes of a packed array are loaded as a vector of one byte",
        "tilebench.targets.cpu.render.packed:_in_pairs",
        "lanes.count == 2",
        "False",
        ("tests/targets/cpu/test_packed.py::test_vectors_of_one_byte",),
    ),
    Fault(
        "cpu/indices-never-wrap",
        "index arithmetic goes on in 64 bits where its dtype wraps",
        "tilebench.targets.cpu.render.state:State.never_wraps",
        "",
        "return True",
        ("tests/targets/cpu/test_integers.py::test_conversions_of_indices",),
    ),
    Fault(
        "cpu/lanes-inside-lanes",
        "turns of a loop become lanes though there are lanes inside",
        "tilebench.targets.cpu.lowerings.elementwise:elementwise",
        "isinstance(node, Vectors)",
        "False",
        ("tests/passes/test_loop_nests.py::test_loops_in_loops",),
    ),
    Fault(
        "cpu/edge-tile-one-short",
        "the last tile of an axis lacks its last element",
        "tilebench.targets.cpu.loops.boxes:tests_of",
        "axis.stop = count if shorter else _a",
        "axis.stop = count - 1 if shorter else _a",
        KERNELS,
    ),
    Fault(
        "cpu/packing-stride",
        "panels of packed columns lie one element too close",
        "tilebench.targets.cpu.microkernel.pack:TileOperand.offset",
        "f.mul(which, self.panel_stride)",
        "f.mul(which, f.sub(self.panel_stride, 1))",
        GEMM,
    ),
    Fault(
        "cpu/no-zeros-behind-a-row",
        "what lies behind the end of a row stays in a tile",
        "tilebench.targets.cpu.lowerings.copy:_row",
        "return copied, _a",
        "return (copied,)",
        (*REGIONS, *KERNELS),
    ),
    Fault(
        "cpu/ghosts-are-always-unread",
        "zeros of an accumulator are left out though they are read",
        "tilebench.targets.cpu.loops.ghosts:ghosts_are_unread",
        "",
        "return True",
        REGIONS,
    ),
    Fault(
        "cpu/zeros-are-not-waited-for",
        "a clear moves into a gemm over a statement that reads the zeros",
        "tilebench.targets.cpu.loops.clear_first:_body",
        "_touches(body[later], name)",
        "isinstance(body[later], LoopStmt)",
        ("tests/targets/cpu/test_texts.py::test_text[to_loops.zeros_read_first]",),
    ),
    Fault(
        "cpu/exact-sums",
        "int8 products are summed in float past 24 bits",
        "tilebench.targets.cpu.microkernel.gemm:",
        "{'int8': 1024, 'uint8': 256}",
        "{'int8': 4096, 'uint8': 4096}",
        GEMM,
    ),
    Fault(
        "cpu/result-of-a-kept-dimension",
        "the results of a reduction that keeps its dimension stand in another order",
        "tilebench.targets.cpu.lowerings.reduce:_result",
        "axis if index else 0",
        "0",
        ("tests/targets/cpu/test_texts.py::test_text[to_loops.kept_dimension]",),
    ),
    Fault(
        "cpu/clear-every-turn",
        "a gemm that clears in the first turn of a loop clears in all",
        "tilebench.targets.cpu.loops.clear_first:_clearing",
        "loop.vars[0].compare('==', start)",
        "loop.vars[0].compare('>=', start)",
        KERNELS,
    ),
    Fault(
        "cpu/last-block-is-left-out",
        "the last chunk of blocks ends one early",
        "tilebench.targets.cpu.run.pool:",
        "f.imin(f.add(begin, chunk), total)",
        "f.imin(f.add(begin, chunk), f.sub(total, 1))",
        ("tests/targets/cpu/test_pool.py::test_every_block_runs_once",),
    ),
)
