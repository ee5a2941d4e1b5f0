"""Faults of functions with several launches."""

from __future__ import annotations

from ..fault import Fault

TEST = "tests/kernel/test_programs.py::test_"
SYNC = "tests/language/test_sync_grid.py::test_"

FAULTS = (
    Fault(
        "repeated/alignment-is-not-asked",
        "a tensor at another address takes the code of whole vectors",
        "tilebench.kernel.calls.repeated:_aligned",
        "bits % entry.alignment",
        "False",
        ("tests/kernel/test_repeated.py",),
    ),
    Fault(
        "repeated/overlap-by-one-side",
        "an output that ends in an input's memory is launched",
        "tilebench.kernel.calls.repeated:RepeatedCalls.__call__",
        "pointers[i] < pointers[j] + second and pointers[j] < pointers[i] + first",
        "pointers[i] < pointers[j] + second and pointers[i] > pointers[j]",
        ("tests/kernel/test_repeated.py",),
    ),
    Fault(
        "repeated/dtype-is-not-asked",
        "tensors of the same shapes and another dtype are handed over",
        "tilebench.kernel.calls.repeated:_addresses",
        "tensor.dtype is not dtype",
        "False",
        ("tests/kernel/test_repeated.py",),
    ),
    Fault(
        "library/alignment-is-not-asked",
        "a tensor at another address takes the kernel that was made for aligned ones",
        "tilebench.library.calls:likeness",
        "array.shape, array.strides, array.dtype, is_aligned(array)",
        "array.shape, array.strides, array.dtype",
        ("tests/library/test_unaligned.py::test_a_result_off_the_alignment_is_enough",),
    ),
    Fault(
        "library/result-stays-in-the-copy",
        "a result whose array starts off the alignment is not copied back",
        "tilebench.library.calls:ReadyCall.__call__",
        "result is not out",
        "False",
        ("tests/library/test_unaligned.py::test_calls",),
    ),
    Fault(
        "library/copies-are-never-worth-it",
        "large products of tensors off the alignment read them element by element",
        "tilebench.library.alignment:is_copied",
        "effort.flops >= WORTH_A_COPY * effort.bytes",
        "False",
        ("tests/library/test_unaligned.py::test_how_much_is_worth_a_copy",),
    ),
    Fault(
        "library/kernels-of-aligned-arrays",
        "arrays off the alignment take the schedule of those that are not",
        "tilebench.library.calls:kernel_for",
        "schedule_for(operator, problem, machine, aligned)",
        "schedule_for(operator, problem, machine)",
        ("tests/library/test_unaligned.py::test_code",),
    ),
    Fault(
        "launches/last-first",
        "the launches of a call run from the last",
        "tilebench.targets.cpu.run.load:CpuProgram.__call__",
        "self.launches",
        "self.launches[::-1]",
        (TEST + "launches_see_what_earlier_ones_wrote",),
    ),
    Fault(
        "launches/memory-shared-by-calls",
        "memory of a call is given to the next one while it is used",
        "tilebench.targets.cpu.run.workspace:WorkspacePool._smallest",
        "self._free.remove(piece)",
        "None",
        (TEST + "memory_of_calls_is_kept_and_bounded",),
    ),
    Fault(
        "launches/workspaces-overlap",
        "each array of a call begins at the same byte",
        "tilebench.targets.workspaces:Workspaces._laid_out",
        "offsets.append(size)",
        "offsets.append(0)",
        (TEST + "arrays_of_a_call_lie_apart",),
    ),
    Fault(
        "launches/stream-of-nobody",
        "launches of several go to the default stream",
        "tilebench.targets.cuda.run.program:CudaProgram.__call__",
        "current_stream(infos[0].owner, ordinal)",
        "0",
        ("tests/targets/cuda/test_program.py",),
    ),
    Fault(
        "launches/kept-over-the-barrier",
        "a tile that is not written anew behind T.sync_grid is read there",
        "tilebench.language.closing.grid_barriers:_Flow.use",
        "name in self.kept and name not in written",
        "False",
        (SYNC + "a_block_keeps_nothing",),
    ),
    Fault(
        "launches/part-of-a-tile-is-all",
        "what is written in part counts as written anew",
        "tilebench.language.closing.grid_barriers:_is_whole",
        "tuple(extent for _, extent in reached) == shape",
        "True",
        (SYNC + "a_block_keeps_nothing",),
    ),
    Fault(
        "launches/outside-said-once",
        "what reads outside an array give is said to the first launch of a kernel alone",
        "tilebench.language.closing.grid_barriers:_launches",
        "isinstance(each, (AnnotatedLayout, SafeValue))",
        "isinstance(each, AnnotatedLayout)",
        (SYNC + "what_lies_outside_an_array_is_said_for_the_whole_kernel",),
    ),
    Fault(
        "launches/outside-said-to-others",
        "what reads outside an array give is said to later kernels too, by the reference",
        "tilebench.reference.statements:StatementRunner.kernel",
        "state.safe.clear()",
        "pass",
        (SYNC + "what_lies_outside_an_array_is_said_for_no_other_kernel",),
    ),
)
