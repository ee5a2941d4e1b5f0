"""Faults in edited stages and in what leaves a notebook as a file."""

from __future__ import annotations

from ..fault import Fault

EDITED = "tests/kernel/test_edited.py"
BENCH = "tests/workbench/test_edits.py"
SAVED = "tests/kernel/test_saving.py"

FAULTS = (
    Fault(
        "keep/variant-without-the-edit",
        "arrays that need another variant run the compiler's code in place of the edited text",
        "tilebench.kernel.calls.calling:Calls._compile",
        "first.start != 'tile' or any((edit.stage != 'tile' for edit in first.edits))",
        "first.start != 'tile'",
        (f"{EDITED}::test_nothing_takes_the_unedited_code_in_place_of_the_edited",),
    ),
    Fault(
        "keep/record-hides-the-edit",
        "a record of an edited kernel says that all of it is the compiler's",
        "tilebench.recorder:make_record",
        "compilation.edits",
        "()",
        (f"{EDITED}::test_what_stands_above_an_edit_stays_and_the_record_says_what_was_edited",),
    ),
    Fault(
        "keep/run-hides-the-edit",
        "a measurement of an edited kernel passes as one of the compiler's",
        "tilebench.kernel.measuring.package:pack",
        "tuple((edit.stage for edit in compilation.edits))",
        "()",
        (f"{EDITED}::test_a_run_of_an_edited_kernel_says_so",),
    ),
    Fault(
        "keep/edit-moves-along",
        "an edit of one position stands for the kernel of another",
        "tilebench.workbench.wish:Wish.without_left_edit",
        "",
        "return self",
        (f"{BENCH}::test_a_move_leaves_an_edit_that_can_be_brought_back",),
    ),
    Fault(
        "keep/edit-shares-a-point",
        "runs of an edit are taken for runs of the position without it",
        "tilebench.workbench.wish:Wish.config",
        "",
        "return self.position",
        (f"{BENCH}::test_a_run_of_an_edit_is_a_point_of_its_own",),
    ),
    Fault(
        "keep/saved-unseen",
        "a saved kernel sees what names mean now, and not when it was compiled",
        "tilebench.kernel.saving.plan:_check",
        "again.stage('tile') != kernel.stage('tile')",
        "False",
        (f"{SAVED}::test_a_name_that_has_changed_since_is_seen",),
    ),
    Fault(
        "keep/overwritten",
        "a file that is there is taken away without a word",
        "tilebench.record_files:write_files",
        "there and (not overwrite)",
        "False",
        (f"{SAVED}::test_nothing_that_is_there_is_overwritten",),
    ),
    Fault(
        "keep/shared-not-allowed",
        "a CUDA file launches with more shared memory than it asked the driver for",
        "tilebench.targets.cuda.text.standalone:_launch",
        "shared > ALLOWED_SHARED",
        "shared > 1024 * 1024",
        (f"{SAVED}::test_a_cuda_file_has_the_launch_of_the_kernel",),
    ),
    Fault(
        "keep/other-inputs",
        "a repeated measurement runs on other inputs than it says",
        "tilebench.kernel.saving.measurements:save_measurement",
        "f', seed={last.seed}'",
        "''",
        (f"{SAVED}::test_a_measurement_is_repeated_beside_what_was_recorded",),
    ),
)
