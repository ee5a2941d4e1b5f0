"""The emitter's scopes: names and facts end with them, digits of the thread number stay."""

from __future__ import annotations

import pytest

from tilebench.ir import Const, Expr, Let, Var, show
from tilebench.ir.arith import evaluate
from tilebench.layout import Fragment
from tilebench.passes.analysis.thread_groups import Threads
from tilebench.passes.threads.emitter import Emitter
from tilebench.targets.cuda.machines import machine_of


def emitter(threads: int = 128, reserved: set[str] | None = None) -> Emitter:
    return Emitter(machine_of("sm_80"), Threads(0, threads), reserved or set())


def test_a_name_is_free_again_when_its_scope_ends_and_not_before() -> None:
    code = emitter(reserved={"i"})
    with code.scope():
        assert code.name("r0") == "r0"
        assert code.name("r0") == "r0__2"
        with code.scope():
            assert code.name("r0") == "r0__3"
        assert code.name("r0") == "r0__3"
        assert code.name("i") == "i__2"
        assert code.coordinate("i") == "i"
        assert code.coordinate("i") == "i__3"
    assert code.name("r0") == "r0"
    with code.scope(opened=False):
        assert code.name("r1") == "r1"
    assert code.name("r1") == "r1__2"


def test_what_was_known_in_a_scope_is_forgotten_behind_it() -> None:
    code = emitter()
    with code.scope():
        variable = code.variable("k", 4)
        code.let(Var("twice"), variable * 2)
        assert code.facts.bounds(variable) == (0, 3)
        assert code.facts.proves(Var("twice").compare("<", 7))
    assert not code.facts.proves(variable.compare("<", 4))
    assert not code.facts.proves(Var("twice").compare("<", 7))


@pytest.mark.parametrize("threads", [32, 96, 128])
@pytest.mark.parametrize(
    ("divisor", "count"), [(1, 8), (8, 4), (4, 32), (32, 2), (1, 256), (3, 5), (16, 100)]
)
def test_a_digit_is_what_it_says_for_every_thread(threads: int, divisor: int, count: int) -> None:
    code = emitter(threads)
    digit = code.digit(divisor, count)
    lets: dict[str, Expr] = {let.var.name: let.value for let in code.prologue}
    low, high = code.facts.bounds(digit)
    for thread in range(threads):
        value = evaluate(lets.get(show(digit), digit), {code.tid.name: thread})
        assert value == thread // divisor % count
        assert low <= value <= high


def test_digits_stay_known_when_the_scope_that_asked_first_ends() -> None:
    code = emitter()
    with code.scope():
        digit = code.digit(8, 4)
    assert code.facts.bounds(digit) == (0, 3)
    assert code.digit(8, 4) is digit
    assert [show(let.value) for let in code.prologue] == ["tid // 8 % 4"]


def test_owners_are_first_among_replicas_and_among_those_that_take_part() -> None:
    code = emitter()
    shown = [show(test) for test in code.owner(Fragment((4,), ((4, 0, 1), (2, -1, 0), (8, -1, 0))))]
    assert shown == ["tid_4_2 == 0", "tid_8_8 == 0", "tid < 64"]
    assert code.owner(Fragment((128,), ((128, 0, 1),))) == []


def test_a_group_has_numbers_and_digits_of_its_own() -> None:
    code = emitter()
    outside = code.digit(1, 8)
    with code.acting(Threads(64, 32, whole=False), Const(64)) as head:
        assert code.threads.count == 32
        inside = code.digit(8, 4)
        assert [(let.var.name, show(let.value)) for let in head if isinstance(let, Let)] == [
            ("tid_in_group", "tid + -64"),
            ("tid_in_group_8_4", "tid_in_group // 8"),
        ]
        assert code.facts.bounds(inside) == (0, 3)
    assert code.tid == Var("tid")
    assert code.digit(1, 8) is outside
    assert not code.facts.proves(Var("tid_in_group").compare("<", 32))
