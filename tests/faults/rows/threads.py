"""Faults in the code of one thread: vectors, masks, owners, registers, names, the order of blocks."""

from __future__ import annotations

from ..fault import Fault

TEST = "tests/passes/test_to_threads.py::test_"
GUARDS = (f"{TEST}a_guard_holds_for_each_element_of_a_vector",)
REPLICAS = (f"{TEST}replicas_compute_what_only_one_of_them_stores",)
GHOSTS = (f"{TEST}ghosts_and_threads_left_over_write_nothing_twice",)
ONE_BUFFER = (f"{TEST}a_buffer_read_and_written_in_one_body",)
TEXT = "tests/passes/test_texts.py::test_text"
COPY = (f"{TEXT}[to_threads.copy]", f"{TEXT}[to_threads.edges]")
BLOCK = (f"{TEXT}[to_threads.block]",)
EMITTER = ("tests/passes/test_emitter.py",)
GEMM = ("tests/passes/test_threads_gemm.py",)
VECTOR = "tilebench.passes.threads.vector:Vector"
ELEMENTS = "tilebench.passes.threads.elements"

NAMES = ("tests/passes/test_hostile_kernels.py::test_names_of_coordinates_are_taken_by_the_kernel",)

FAULTS = (
    Fault(
        "names/coordinates-always-i-and-j",
        "the coordinates of a copy are i and j, also in a kernel's loop over j",
        "tilebench.passes.threads.rows.copy:coordinates",
        "emitter.unbound(letter)",
        "letter",
        NAMES,
    ),
    Fault(
        "names/sizes-are-not-bound",
        "a coordinate may be called as a size of the kernel is",
        "tilebench.passes.threads.to_threads:to_threads",
        "emitter.coordinate(variable.name)",
        "pass",
        NAMES,
    ),
    Fault(
        "vector/falling-guards",
        "a guard that falls along a vector is asked of the end where it holds longest",
        f"{VECTOR}.all_inside",
        "rising = _a",
        "rising = True",
        GUARDS,
    ),
    Fault(
        "vector/first-element-speaks-for-all",
        "a guard is asked of the first element of a vector alone",
        f"{VECTOR}.all_inside",
        "self.width - 1",
        "0",
        GUARDS,
    ),
    Fault(
        "vector/width-doubled",
        "a vector is twice as wide as the address allows",
        f"{VECTOR}._access_width",
        "return width if step == 1 else 1",
        "return width * 2 if step == 1 else 1",
        COPY,
    ),
    Fault(
        "vector/edges-are-uniform",
        "a guard whose edge cuts a vector is taken to hold for all of it or none",
        f"{VECTOR}._kind",
        "UNIFORM if factor == 1 and aligned else ENDS",
        "UNIFORM",
        GUARDS,
    ),
    Fault(
        "vector/edge-of-less-or-equal",
        "`<=` is aligned where `<` is",
        f"{VECTOR}._kind",
        "1 if condition.op in ('<=', '>') else 0",
        "0",
        GUARDS,
    ),
    Fault(
        "vector/order-of-one-buffer",
        "a buffer that is read after it was written is read in front",
        "tilebench.passes.threads.vector_body:scalar_buffers",
        "",
        "return set()",
        ONE_BUFFER,
    ),
    Fault(
        "vector/guards-of-another-load",
        "a load takes the registers that were filled under other guards",
        "tilebench.passes.threads.vector_body:_with_vectors",
        "lower(a, (*guards, condition))",
        "lower(a, guards)",
        GUARDS,
    ),
    Fault(
        "elements/ghosts-are-written",
        "ghost elements of a mapping are not masked",
        f"{ELEMENTS}:element_loops",
        "padded > extent",
        "False",
        GHOSTS,
    ),
    Fault(
        "elements/ghosts-off-by-one",
        "the mask of a mapping lets one ghost through",
        f"{ELEMENTS}:element_loops",
        "name.compare('<', extent)",
        "name.compare('<=', extent)",
        GHOSTS,
    ),
    Fault(
        "elements/owners-are-not-asked",
        "threads that do not own an element store it too",
        f"{ELEMENTS}:_owned",
        "touched.stores <= set(MEMORY)",
        "True",
        REPLICAS,
    ),
    Fault(
        "elements/replicas-store",
        "all replicas of an element store it",
        f"{ELEMENTS}:_owned",
        "owner = _a",
        "owner: list[Expr] = []",
        (*GHOSTS, *REPLICAS),
    ),
    Fault(
        "owner/threads-left-over",
        "threads that have no part in a mapping take part",
        "tilebench.passes.threads.emitter:Emitter.owner",
        "fragment.threads < self.threads.count",
        "False",
        BLOCK,
    ),
    Fault(
        "emitter/facts-outlive-their-scope",
        "what was known in a loop is known behind it",
        "tilebench.passes.threads.emitter:Emitter.scope",
        "self.facts = facts.with_ranges(_a)",
        "pass",
        EMITTER,
    ),
    Fault(
        "emitter/names-released-too-early",
        "a name is free again while its scope is open",
        "tilebench.passes.threads.emitter:Emitter._bind",
        "self._bound.add(name)",
        "pass",
        EMITTER,
    ),
    Fault(
        "emitter/digit-range",
        "the last digit of a thread number is believed to be one less",
        "tilebench.passes.threads.emitter:Emitter.digit",
        "min(count, _a) - 1",
        "max(min(count, _a) - 2, 0)",
        EMITTER,
    ),
    Fault(
        "emitter/digit-without-remainder",
        "the digit of a thread number counts on past its end",
        "tilebench.passes.threads.emitter:Emitter.digit",
        "divisor * count < self.threads.count",
        "divisor * count * 2 < self.threads.count",
        EMITTER,
    ),
    Fault(
        "address/version-of-a-ring",
        "every version of a ring is the first",
        "tilebench.passes.threads.addresses:shared_offset",
        "version * tile.layout.cosize",
        "version * 0",
        COPY,
    ),
    Fault(
        "registers/strides-swapped",
        "registers of a fragment are numbered as if its values stood the other way",
        "tilebench.passes.threads.registers:value_strides",
        "strides.append(matches[0])",
        "strides.insert(0, matches[0])",
        COPY,
    ),
    Fault(
        "copy/mask-off-by-one",
        "a copy reads one element behind its array",
        "tilebench.passes.threads.rows.copy:inside",
        "part.compare('<', bound)",
        "part.compare('<=', bound)",
        COPY,
    ),
    Fault(
        "copy/start-below-zero",
        "a box that may start before its array is not tested there",
        "tilebench.passes.threads.rows.copy:inside",
        "if not _a: tests.append(_b)",
        "pass",
        COPY,
    ),
    Fault(
        "block/every-thread-stores",
        "a store of the block is done by all threads",
        "tilebench.passes.threads.to_threads:_Lowering.statement",
        "If(self.emitter.tid.compare('==', 0), (store[-1],), ())",
        "store[-1]",
        BLOCK,
    ),
    Fault(
        "gemm/narrow-sums",
        "a gemm sums in the dtype of its accumulator, however narrow",
        "tilebench.passes.accumulation:gemm_sum_dtype",
        "",
        "return accumulator",
        ("tests/passes/test_threads_gemm.py::test_a_narrow_accumulator_is_rounded_once_a_step",),
    ),
    Fault(
        "gemm/ghost-rows-clamped-one-short",
        "ghost rows of a gemm read behind the tile",
        "tilebench.passes.threads.rows.gemm_fma:_axis",
        "extent - 1 if _a else None",
        "extent if _a else None",
        GEMM,
    ),
    Fault(
        "order/last-panel",
        "the last panel of blocks is as high as the others",
        "tilebench.passes.threads.rasterize:block_order",
        "not emitter.facts.divides(size, across)",
        "False",
        BLOCK,
    ),
    Fault(
        "order/axes-swapped",
        "panels of rows are swept as if they were of columns",
        "tilebench.passes.threads.rasterize:block_order",
        "(0, 1) if by_row else (1, 0)",
        "(1, 0) if by_row else (0, 1)",
        BLOCK,
    ),
    Fault(
        "elements/loop-over-a-part",
        "a loop over a part of a fragment writes all of it",
        "tilebench.passes.spill_elements:_widened",
        "loop.but(extents=_a, body=(If(all_of(tests), loop.body, (), place=_b),))",
        "loop.but(extents=_a)",
        ("tests/passes/test_elements_of_fragments.py::test_a_loop_over_three_elements_writes_three",),
    ),
    Fault(
        "elements/old-values-lost",
        "a shared tile in a fragment's place does not start with what the fragment has",
        "tilebench.passes.spill_elements:_on_shared_tiles",
        "[allocation, Copy(fragment, tile, place=_a)]",
        "[allocation]",
        ("tests/passes/test_elements_of_fragments.py::test_any_index_of_a_row",),
    ),
    Fault(
        "elements/read-by-those-that-share",
        "threads that share an element read what one of them has just stored",
        "tilebench.passes.body_accesses:BodyAccesses.reads_its_stores",
        "",
        "return False",
        ("tests/passes/test_elements_of_fragments.py::test_an_element_reads_what_it_wrote",),
    ),
    Fault(
        "elements/stores-guarded-one-by-one",
        "of an element that stays in memory only the stores are one thread's, and all read it",
        "tilebench.passes.body_accesses:BodyAccesses.stays_in_memory",
        "",
        "return self.stores <= {'global', 'shared'}",
        ("tests/passes/test_elements_of_fragments.py::test_an_element_reads_what_it_wrote",),
    ),
)
