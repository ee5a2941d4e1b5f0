"""Faults in sweeps: what is measured, checked, told apart and kept."""

from __future__ import annotations

from ..fault import Fault

SWEEPS = "tests/sweeps/test_sweeps.py"
RIGHT = "tests/sweeps/test_what_is_right.py"
BENCH = "tests/workbench/test_bench_sweep.py"

FAULTS = (
    Fault(
        "sweeps/another-result-passes",
        "configurations of one text that mean different results are not seen",
        "tilebench.sweeps.child:_check",
        "report.ok and _contradict(own, problem.expected)",
        "False",
        (f"{RIGHT}::test_another_result_is_seen_where_it_is_checked",),
    ),
    Fault(
        "sweeps/one-question-for-all",
        "kernels of the same arrays are held to the reference of the first",
        "tilebench.sweeps.child:problem_of",
        "(arguments, sweep or package.tile_text or package.stage_text)",
        "(arguments, '')",
        (f"{RIGHT}::test_what_is_right_in_one_sweep_says_nothing_of_the_next",),
    ),
    Fault(
        "sweeps/other-code-is-known",
        "rows of a file are taken for code that is another",
        "tilebench.sweeps.engine:SweepEngine._holds",
        'known.code == code or (known.code == "" and known.state == "timed")',
        "True",
        (f"{SWEEPS}::test_a_kernel_that_was_edited_is_measured_again",),
    ),
    Fault(
        "sweeps/numbers-of-another-seed",
        "a loaded kernel is run on the numbers of the seed that it was loaded with",
        "tilebench.sweeps.child:_session",
        "(code, problem.seed, package.tile_text, package.outputs, package.edited, package.flops)",
        "(code,)",
        (f"{RIGHT}::test_a_loaded_kernel_is_run_on_the_numbers_that_are_asked_for",),
    ),
    Fault(
        "sweeps/inputs-of-earlier-runs",
        "a check begins with what timed runs left in an output that is read",
        "tilebench.sweeps.child:_check",
        "param.read and param.written",
        "False",
        (f"{RIGHT}::test_what_earlier_runs_left_in_an_output_is_no_input_of_a_check",),
    ),
    Fault(
        "sweeps/pass-by-pass",
        "all runs of a configuration follow each other, and one good minute is its own",
        "tilebench.sweeps.engine:SweepEngine._steps",
        "first = number * count // self.method.repeats",
        "first = 0",
        (f"{SWEEPS}::test_each_configuration_gets_its_runs_with_all_others_between",),
    ),
    Fault(
        "sweeps/noise-is-coloured",
        "a position that noise explains gets a colour of its own",
        "tilebench.workbench.front.chart_data:step_of_position",
        "not found.decided",
        "False",
        (f"{BENCH}::test_positions_that_noise_covers_have_the_colour_of_the_fastest",),
    ),
    Fault(
        "sweeps/beaten-by-little",
        "a configuration that noise put behind gets no second run",
        "tilebench.sweeps.engine:SweepEngine._is_beaten",
        "self.method.within * self._least",
        "self._least",
        ("tests/compat/test_tuning_options.py::test_those_that_may_be_the_best_are_timed_in_turns",),
    ),
    Fault(
        "sweeps/references-thrash",
        "a third problem that alternates with two others has its reference computed in each run",
        "tilebench.sweeps.child:problem_of",
        "len(problems) > 2 and _a",
        "len(problems) > 2",
        ("tests/workbench/test_others.py::test_norms_are_found_by_their_results_and_looked_for_once",),
    ),
    Fault(
        "sweeps/compiled-by-one-code",
        "torch compiles all problems from one code: general ones, and after eight none",
        "tilebench.sweeps.others_child:_runner",
        "call.__code__.replace()",
        "call.__code__",
        ("tests/workbench/test_others.py::test_what_another_compiles_is_compiled_once_a_problem",),
    ),
    Fault(
        "sweeps/outside-is-within",
        "a large result is right wherever it is finite",
        "tilebench.reference.within:_measured",
        "(error <= limits).all()",
        "np.isfinite(error).all()",
        ("tests/reference/test_right_by_chunks.py",),
    ),
    Fault(
        "sweeps/results-of-the-kernel-before",
        "a turn begins with what another configuration left in the outputs on the device",
        "tilebench.kernel.measuring.measure:TimedKernel.renew",
        "self.device.restore()",
        "pass",
        ("tests/kernel/test_renewed_arrays.py",),
    ),
    Fault(
        "sweeps/stored-by-nobody",
        "what one process stores is taken from another that did not store it",
        "tilebench.kernel.measuring.shared_out:_joined",
        "np.copyto(array.reshape(-1)[here], its, where=part.stored)",
        "np.copyto(array.reshape(-1)[here], its)",
        ("tests/kernel/test_shared_out.py",),
    ),
)
