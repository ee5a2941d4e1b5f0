"""Faults of code of single threads: threads that do not meet, and rows of others."""

from __future__ import annotations

from ..fault import Fault

TEST = "tests/language/test_thread_code.py::test_"

FAULTS = (
    Fault(
        "thread-code/threads-do-not-meet",
        "a thread reads what another wrote in the same run",
        "tilebench.language.threads.meeting:Touches.apart",
        "all((name in covered for name, extent in self.extents.items() if extent > 1))",
        "True",
        (TEST + "threads_meet_by_themselves_where_one_reads_what_another_wrote",),
    ),
    Fault(
        "thread-code/name-of-memory-worked-out-again",
        "what a name read from memory before a barrier is read again behind it",
        "tilebench.language.threads.kept:RunNames.missing",
        "pure(let.value)",
        "True",
        (TEST + "what_a_thread_has_of_its_own_lives_across_barriers",),
    ),
    Fault(
        "thread-code/condition-read-again",
        "a condition on memory is read again in each run of its branch, when the branch has changed it",
        "tilebench.language.threads.split:Splitter.distribute",
        "not pure(condition)",
        "False",
        (TEST + "a_branch_that_changes_its_condition_is_the_same_branch_behind_a_meeting",),
    ),
    Fault(
        "thread-code/exchange-of-some",
        "threads of a warp exchange values where not all of them come",
        "tilebench.language.threads.conditions:same_in_warps",
        "bool(np.all(rows == rows[:, :1]))",
        "True",
        (TEST + "what_threads_cannot_do_is_refused_at_its_line",),
    ),
    Fault(
        "thread-code/another-lane",
        "a shuffle asks the thread's own lane",
        "tilebench.passes.laid_out.own_rows:_Rows.load",
        "who == numbers",
        "True",
        (TEST + "threads_of_a_warp_exchange_values",),
    ),
    Fault(
        "thread-code/store-of-one-that-a-condition-leaves-out",
        "of threads that store alike the first does, where a condition has left it out",
        "tilebench.passes.laid_out.own_rows:_Alike.first",
        "chosen & holds(test, dict(zip(names, grid, strict=True)))",
        "chosen",
        (TEST + "of_threads_under_a_condition_that_store_alike_the_first_does",),
    ),
    Fault(
        "threads/alike-in-warps",
        "what a thread has to itself counts as the same in all threads of its warp",
        "tilebench.language.threads.same_in_warps:SameInWarps._alike",
        "name not in self.differing.names or name in self.names",
        "True",
        ("tests/language/test_votes.py::test_threads_of_a_warp_that_leave_at_different_times_do_not_vote",),
    ),
    Fault(
        "threads/one-turn-too-few",
        "a loop of warps ends when any of them is done",
        "tilebench.language.threads.turns:_ask_again",
        'over_block(found, "max", splitter.fresh, place)',
        'over_block(found, "min", splitter.fresh, place)',
        ("tests/language/test_votes.py::test_a_loop_that_goes_on_while_the_warp_votes_for_it",),
    ),
    Fault(
        "threads/votes-of-others",
        "a lane's bit is another's in the loops of a processor",
        "tilebench.targets.cpu.lowerings.vote:vote",
        "Cast(other, type=uint32)",
        "Cast(mine, type=uint32)",
        ("tests/language/test_votes.py::test_matches",),
    ),
    Fault(
        "thread-code/turns-at-once",
        "turns of T.vectorized that need each other are done at once",
        "tilebench.passes.analysis.turns_apart:turns_apart",
        "written[name] != index",
        "False",
        ("tests/language/test_vectorized_threads.py::test_turns_that_need_each_other_stay_in_order",),
    ),
    Fault(
        "thread-code/wide-off-its-alignment",
        "moves of neighbours are wide wherever they start",
        "tilebench.passes.threads.vectorized:_own_width",
        "gcd(vector.width, vector.emitter.facts.divisor_of(linear(vector.spelled(offset))))",
        "vector.width",
        ("tests/language/test_vectorized_threads.py::test_an_odd_place_in_an_array_of_ones_own",),
    ),
)
