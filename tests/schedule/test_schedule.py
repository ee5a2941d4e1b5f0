"""Schedules: values, addresses, rules of a file, and which of two choices wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilebench
import tilebench.language as T
from tests import kernels
from tilebench.errors import ArgumentError, ScheduleError
from tilebench.frontend import trace
from tilebench.ir import Function, print_function
from tilebench.schedule import (
    OPTIONS,
    Schedule,
    candidates,
    load_schedule,
    parse_schedule,
    resolve,
    user_name,
)
from tilebench.schedule.choices import choices_schedule


def two_loops(M=64):
    @T.prim_func
    def main(A: T.Tensor((M, M), "float16"), C: T.Tensor((M, M), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((M, 16), "float16")
            c = T.alloc_fragment((M, M), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 16], a)
                T.gemm(a, a, c, transpose_B=True)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 16], a)
                T.gemm(a, a, c, transpose_B=True, label="second")
            T.copy(c, C)

    return main


def function() -> Function:
    return trace(two_loops, {}).function


# -- addresses


def test_addresses_of_every_kind() -> None:
    made = function()
    assert [each.address for each in candidates(made, "loop")] == ["k#1", "k#2"]
    assert [each.address for each in candidates(made, "buffer")] == ["a", "c"]
    assert [each.address for each in candidates(made, "gemm")] == ["c", "second"]
    assert [each.address for each in candidates(made, "copy")] == ["c", "a#1", "a#2", "C"]


def test_a_name_alone_or_with_its_number() -> None:
    made = function()
    assert resolve(made, "buffer", "a").node.place is not None
    first, second = resolve(made, "loop", "k#1").node, resolve(made, "loop", "k#2").node
    assert first.place is not None
    assert second.place is not None
    assert second.place.line == first.place.line + 3
    assert resolve(made, "gemm", "second").name == "second"


def test_an_ambiguous_address_lists_its_candidates_with_their_lines() -> None:
    with pytest.raises(ScheduleError, match="the address k of a loop is ambiguous") as caught:
        resolve(function(), "loop", "k")
    assert caught.value.hint == "write one of k#1, k#2"
    assert [why for why, _ in caught.value.also] == ["k#1", "k#2"]
    assert all("T.Pipelined" in place.text for _, place in caught.value.also)


def test_an_unknown_address_suggests_the_nearest() -> None:
    with pytest.raises(ScheduleError, match="the kernel main has no gemm secund") as caught:
        resolve(function(), "gemm", "secund")
    assert caught.value.hint == "did you mean second? gemm addresses: c, second"
    with pytest.raises(ScheduleError, match="has no loop k#3"):
        resolve(function(), "loop", "k#3")
    with pytest.raises(ScheduleError) as caught:
        resolve(trace(kernels.add_kernel.function, {"M": 8, "N": 8}).function, "gemm", "c")
    assert caught.value.hint == "it has no gemm at all"


def test_a_user_name_is_one_without_the_suffix_of_printing() -> None:
    assert [user_name(each) for each in ("k", "k__2", "k__", "k_2", "a__b__31")] == [
        "k",
        "k",
        "k__",
        "k_2",
        "a__b",
    ]


# -- values


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threads": 0}, "threads of a kernel cannot be 0"),
        ({"threads": 128.0}, "threads of a kernel cannot be 128.0"),
        ({"threads": True}, "threads of a kernel cannot be True"),
        ({"order": -1}, "order of a kernel cannot be -1"),
        ({"order": {"panels": 2, "axis": "diagonal"}}, "order of a kernel cannot be"),
        ({"loop": {"k": {"num_stages": 65}}}, "num_stages of a loop cannot be 65"),
        ({"loop": {"k": {"unroll": 4}}}, "unroll of a loop cannot be 4"),
        ({"buffer": {"a": {"swizzle": "yes"}}}, "swizzle of a buffer cannot be 'yes'"),
        ({"gemm": {"c": {"policy": "rows"}}}, "policy of a gemm cannot be 'rows'"),
        ({"gemm": {"c": {"stage_A": "registers"}}}, "stage_A of a gemm cannot be 'registers'"),
        ({"copy": {"a": {"vector": 0}}}, "vector of a copy cannot be 0"),
        ({"copy": {"a": 4}}, "copy a needs a table of choices"),
        ({"stages": 3}, "a schedule has no choice 'stages' for a kernel"),
        ({"loop": {"k": {"num_stage": 3}}}, "a schedule has no choice 'num_stage' for a loop"),
    ],
)
def test_choices_that_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule.of(**given)
    assert caught.value.message.startswith(message)
    assert "{" not in caught.value.explain().replace("{ panels = 8", "").replace("{'panels'", "")


def test_the_nearest_choice_is_suggested() -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule.of(loop={"k": {"num_stage": 3}})
    assert caught.value.hint == "did you mean num_stages? choices: num_stages, split, overlap, unroll"


@pytest.mark.parametrize(
    ("value", "kept"),
    [(False, (1,)), (None, (1,)), (1, (1,)), (2, (2,)), ([1, 2], (1, 2)), ((2, 1, 4), (2, 1, 4))],
)
def test_a_cluster_is_blocks_along_each_axis(value: object, kept: tuple[int, ...]) -> None:
    assert OPTIONS["kernel"]["cluster"].accept(value) == kept


@pytest.mark.parametrize("value", [True, 0, 17, -1, "2", [], [1, 0], [1, 1, 1, 2], 2.0, [True]])
def test_what_is_no_cluster_is_refused(value: object) -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule.of(cluster=value)
    assert caught.value.expected == "blocks along each axis of the grid, such as [2, 1]"


def test_equal_choices_have_equal_keys_and_others_not() -> None:
    one = Schedule.of(threads=64, loop={"k": {"num_stages": 2}}, params={"block": 3})
    assert one.key == Schedule.of(loop={"k": {"num_stages": 2}}, params={"block": 3}, threads=64).key
    assert one.key != Schedule.of(threads=64, loop={"k": {"num_stages": 3}}, params={"block": 3}).key
    assert one.key != Schedule.of(threads=64, loop={"k": {"num_stages": 2}}, params={"block": 3.0}).key
    assert (
        Schedule.of(threads=32).over(one).key
        == Schedule.of(threads=32, loop={"k": {"num_stages": 2}}, params={"block": 3}).key
    )
    assert {one.key: 1}[one.key] == 1


# -- files

RULES = """\
# for a small card
[[schedule]]
when = "M <= 128 and target == 'cuda:sm_80'"
threads = 64
[schedule.params]
block_M = 32
[schedule.loop.ko]
num_stages = 3

[[schedule]]
when = "M * N // 2 > 5000 or not K % 3"
order = { panels = 4, axis = "column" }

[[schedule]]
threads = 128
"""


def test_the_first_rule_that_holds_wins() -> None:
    file = parse_schedule(RULES)
    small = {"M": 100, "N": 8, "K": 8, "target": "cuda:sm_80"}
    assert [rule.number for rule in file.rules] == [1, 2, 3]
    assert file.choose(small) is file.rules[0].schedule
    assert file.choose({**small, "target": "cpu", "N": 200}) is file.rules[1].schedule
    assert file.choose({**small, "target": "cpu", "K": 9}) is file.rules[1].schedule
    assert file.choose({**small, "M": 129}) is file.rules[2].schedule
    assert file.rules[0].schedule.params == {"block_M": 32}
    assert [str(each) for each in file.rules[0].schedule.directives] == [
        "kernel threads",
        "loop ko num_stages",
    ]
    assert {each.origin.why for each in file.rules[0].schedule.directives} == {
        "schedule.toml rule 1: M <= 128 and target == 'cuda:sm_80'"
    }


def test_no_rule_may_hold() -> None:
    assert parse_schedule('[[schedule]]\nwhen = "M < 3"\nthreads = 32\n').choose({"M": 3}) is None


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[[schedule]]\nthreads = \n", 2, "this is not TOML"),
        ("[[schedule]]\nthreads = 64\nthreads = 32\n", 3, "this is not TOML"),
        ("[schedule]\nthreads = 3\n", 1, "a schedule file holds [[schedule]] rules"),
        ("[[schedule]]\nthreads = 32\n[other]\nx = 1\n", 1, "a schedule file holds [[schedule]] rules"),
        ("[[schedule]]\nthreads = 32\n\n[[schedule]]\nwhen = 3\n", 4, "`when` is text"),
        ("[[schedule]]\n\n[[ schedule ]] # second\nthreads = 0\n", 3, "threads of a kernel cannot be 0"),
        ("[[schedule]]\nthread = 32\n", 1, "a schedule has no choice 'thread' for a kernel"),
        ("[[schedule]]\nloop = 3\n", 1, "loop needs a table of addresses"),
        ("[[schedule]]\nparams = 3\n", 1, "params needs a table of values"),
        ("[[schedule]]\nloop.ko = 3\n", 1, "loop ko needs a table of choices"),
        ("schedule = 3\n", 1, "a schedule file holds [[schedule]] rules"),
        ("schedule = [3]\n", 1, "a schedule file holds [[schedule]] rules"),
        ("", 1, "a schedule file holds [[schedule]] rules"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_at_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(text, "card.toml")
    assert caught.value.message.startswith(message)
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line) == ("card.toml", line)


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("M <", "is not an expression"),
        ("Q < 3", "the condition names Q, which the kernel has not"),
        ("print(M)", "a condition cannot hold 'print(M)'"),
        ("M.real < 3", "a condition cannot hold 'M.real'"),
        ("M ** 99999 > 3", "a condition cannot hold 'M ** 99999'"),
        ("M // (M - M) > 1", "cannot be decided"),
        ("M < 'three'", "cannot be decided"),
        ("M < 3 < [1]", "a condition cannot hold"),
        ("M in (1, 2)", "cannot"),
    ],
)
def test_conditions_that_cannot_be_decided(when: str, message: str) -> None:
    file = parse_schedule(f'[[schedule]]\nwhen = "{when}"\nthreads = 32\n')
    with pytest.raises(ScheduleError) as caught:
        file.choose({"M": 2})
    assert message in caught.value.message
    assert caught.value.place is not None
    assert caught.value.place.line == 1


def test_conditions_are_evaluated_as_python_does() -> None:
    def holds(when: str, **values: Any) -> bool:
        return parse_schedule(f'[[schedule]]\nwhen = "{when}"\nthreads = 32\n').choose(values) is not None

    assert holds("1 < M <= 4", M=4)
    assert not holds("1 < M <= 4", M=1)
    assert holds("-M < 0 and M % 2 == 0", M=2)
    assert holds("flag or M > 9", flag=True, M=0)
    assert holds("dtype != 'float16'", dtype="float32")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match="cannot be read: No such file"):
        load_schedule(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScheduleError, match="cannot be read"):
        load_schedule(tmp_path / "bytes.toml")


# -- what wins


def test_a_call_wins_over_the_schedule_over_the_default(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(RULES, encoding="utf-8")
    scheduled = kernels.gemm_kernel.using(target="cuda:sm_80", schedule=path)
    by_rule = scheduled(100, 64, 64)
    assert by_rule.parameters["block_M"] == 32
    assert by_rule.parameters["block_N"] == 128
    by_call = scheduled(100, 64, 64, block_M=16)
    assert by_call.parameters["block_M"] == 16
    for each in (by_rule, by_call):
        found = {(c.address, c.name): (c.value, c.origin) for c in each.record(("scheduled",)).choices}
        assert found["kernel", "threads"] == ("64", "rule")
        assert found["loop ko", "num_stages"] == ("3", "rule")
        assert found["kernel", "order"] == ("row by row", "default")
    why = [c.why for c in by_rule.record(("scheduled",)).choices if c.origin == "rule"]
    assert why == ["s.toml rule 1: M <= 128 and target == 'cuda:sm_80'"] * 2
    big = scheduled(1000, 64, 64)
    assert [c.origin for c in big.record(("scheduled",)).choices][:2] == ["kernel", "rule"]


@tilebench.jit
def hinted(written: bool):
    if written:

        @T.prim_func
        def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128):
                T.use_swizzle(4, enable=False)
                a = T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.clear(c)
                for _k in T.Pipelined(1, num_stages=0):
                    T.copy(A, a)
                    T.gemm(a, a, c, policy=T.GemmWarpPolicy.Square)
                T.copy(c, C)
    else:

        @T.prim_func
        def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
            with T.Kernel(1):
                a = T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.clear(c)
                for _k in T.Pipelined(1):
                    T.copy(A, a)
                    T.gemm(a, a, c)
                T.copy(c, C)

    return main


@pytest.mark.parametrize(("written", "origin"), [(True, "kernel"), (False, "default")])
def test_a_hint_equal_to_its_default_is_the_kernels(written: bool, origin: str) -> None:
    kernel = hinted.using(target="cuda:sm_80")(written)
    found = {c.name: (c.value, c.origin) for c in kernel.record(("scheduled",)).choices}
    assert found["threads"] == ("128", origin)
    assert found["order"] == ("row by row", origin)
    assert found["num_stages"] == ("0", origin)
    assert found["policy"] == ("square", origin)
    # What was written stands in `tile`; what holds, in `scheduled`.
    tile, scheduled = kernel.stage("tile"), kernel.stage("scheduled")
    assert ("threads=128" in tile, "num_stages=0" in tile) == (written, written)
    assert "threads=128" in scheduled
    assert "num_stages=0" in scheduled
    assert "Panels" not in scheduled


def test_params_that_the_kernel_has_not() -> None:
    scheduled = kernels.add_kernel.using(target="null", schedule=Schedule.of(params={"block_Q": 3}))
    with pytest.raises(ArgumentError, match="add_kernel has no parameter block_Q"):
        scheduled(8, 8)


THREE = {
    "shallow": Schedule.of(loop={"ko": {"num_stages": 1}}, threads=64),
    "deep": Schedule.of(loop={"ko": {"num_stages": 4}}, buffer={"A_shared": {"swizzle": False}}),
    "wide": Schedule.of(
        params={"block_M": 64, "block_N": 64}, gemm={"C_local": {"stage_A": "shared"}}, order=4,
        copy={"A_shared": {"vector": 2}},
    ),
}  # fmt: skip


def test_three_schedules_on_one_kernel_text() -> None:
    texts: dict[str, list[str]] = {}
    for name, schedule in THREE.items():
        kernel = kernels.gemm_regions.compile(512, 512, 512, target="cuda:sm_80", schedule=schedule)
        texts[name] = kernel.stage("scheduled").splitlines()
        assert kernel.stage("threaded")
    plain = kernels.gemm_regions.using(target="cuda:sm_80")(512, 512, 512).stage("scheduled").splitlines()
    changed = {name: [b for a, b in zip(plain, text, strict=True) if a != b] for name, text in texts.items()}
    assert [line.strip() for line in changed["shallow"]] == [
        "with T.Kernel(4, 4, threads=64) as (bx, by):",
        "for ko in T.Pipelined(16, num_stages=1):",
    ]
    assert [line.strip() for line in changed["deep"]] == [
        "A_shared = T.alloc_shared((128, 32), T.float16, swizzle=False)",
        "for ko in T.Pipelined(16, num_stages=4):",
    ]
    assert len(changed["wide"]) == 7
    assert changed["wide"][0].strip() == "with T.Kernel(8, 8, threads=256, order=T.Panels(4)) as (bx, by):"


def test_a_directive_on_a_loop_that_is_not_pipelined() -> None:
    kernel = kernels.reduce_kernel.using(target="null", schedule=Schedule.of(loop={"k": {"num_stages": 2}}))
    with pytest.raises(ScheduleError, match="the loop k is not pipelined") as caught:
        kernel(64, 512).stage("scheduled")
    assert caught.value.place is not None
    assert "T.serial" in caught.value.place.text


def test_the_printed_kernel_does_not_change_under_an_empty_schedule() -> None:
    plain = kernels.gemm_kernel.using(target="null")(64, 64, 64).compilation
    empty = kernels.gemm_kernel.using(target="null", schedule=Schedule.of())(64, 64, 64).compilation
    for each in (plain, empty):
        each.reach("bounded")
    assert print_function(plain.functions["bounded"]).text == print_function(empty.functions["bounded"]).text


def test_a_schedule_is_part_of_the_version_of_tilebench() -> None:
    assert tilebench.Schedule is Schedule


def test_an_option_of_several_kinds_is_of_the_one_that_takes_its_value() -> None:
    """`instruction` is a copy's and a product's: the word says which."""
    wished = {"A_s.instruction": "tma", "C_l.instruction": "wgmma", "B_s.instruction": "cp.async"}
    found = choices_schedule(wished)
    assert [(d.kind, d.address, d.value) for d in found.directives] == [
        ("gemm", "C_l", "wgmma"), ("copy", "A_s", "tma"), ("copy", "B_s", "cp.async"),
    ]  # fmt: skip
    with pytest.raises(ScheduleError, match="instruction of a copy cannot be 'none'"):
        choices_schedule({"A_s.instruction": "none"})
