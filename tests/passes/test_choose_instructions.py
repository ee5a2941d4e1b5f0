"""Which row of a machine's table carries out an operation: by dtypes, features, name, memory and cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilebench.errors import LayoutError
from tilebench.ir import parse_function, print_function, verify
from tilebench.language.words import registry
from tilebench.machine import Instruction, Machine, OperandForm
from tilebench.passes.context import Context
from tilebench.passes.laid_out.choose_instructions import choose_instructions
from tilebench.targets.cuda.machines import machine_of

F16, F32 = ("float16", "float16", "float32"), ("float32", "float32", "float32")


def gemm(name: str, **fields: object) -> Instruction:
    return Instruction(**{"operation": "gemm", "name": name, "dtypes": F16, "cost": 2.0, **fields})  # type: ignore[arg-type]


def machine(*rows: Instruction) -> Machine:
    return replace(machine_of("sm_80"), instructions=rows)


TEXT = """@T.prim_func
def f(A: T.Tensor((64, 64), T.float16)):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((64, 64), T.{dtype})
        r = T.alloc_fragment((64, 64), T.{dtype})
        c = T.alloc_fragment((64, 64), T.float32)
        T.gemm({a}, a, c{by})
"""


def chosen(on: Machine, dtype: str = "float16", a: str = "a", by: str = "") -> str:
    function = parse_function(TEXT.format(dtype=dtype, a=a, by=by), registry())
    verify(function)
    text = print_function(choose_instructions(function, Context(on))).text
    return text.partition('by=T.Instr("')[2].partition('"')[0]


def test_a_row_is_for_its_dtypes() -> None:
    on = machine(gemm("half"), gemm("single", dtypes=F32, cost=1.0), gemm("any", dtypes=(), cost=9.0))
    assert chosen(on, "float16") == "half"
    assert chosen(on, "float32") == "single"
    assert chosen(on, "bfloat16") == "any"


def test_a_row_is_for_machines_with_what_it_needs() -> None:
    on = machine(gemm("new", cost=1.0, needs=("wgmma",)), gemm("old", needs=("mma",)))
    assert chosen(on) == "old"
    assert chosen(replace(on, features=on.features | {"wgmma"})) == "new"


def test_the_cheapest_row_by_cost_and_by_what_its_operands_cost() -> None:
    from_shared = OperandForm("a", ("shared",))
    on = machine(gemm("one"), gemm("two", cost=1.5))
    assert chosen(on) == "two"
    # Through shared memory a fragment costs more than half of an issue cycle.
    on = machine(gemm("registers", cost=2.0), gemm("shared", cost=1.99, operands=(from_shared,)))
    assert chosen(on, a="a") == "shared"
    assert chosen(on, a="r") == "registers"


def test_what_is_asked_for_is_taken_or_refused_with_the_table() -> None:
    on = machine(gemm("fast", cost=1.0), gemm("slow"), gemm("single", dtypes=F32))
    assert chosen(on, by=', by=T.Instr("slow")') == "slow"
    for name in ("single", "nonsense"):
        with pytest.raises(LayoutError) as caught:
            chosen(on, by=f', by=T.Instr("{name}")')
        assert caught.value.place is not None
        assert caught.value.place.line == 7
        shown = caught.value.explain()
        assert "cuda:sm_80 has no instruction for T.gemm of float16, float16, float32" in shown
        assert f"found: by='{name}'" in shown
        assert "fast (float16 float16 float32); slow (float16 float16 float32); single" in shown


def test_a_copy_is_asynchronous_only_where_the_plan_lets_it_run_ahead() -> None:
    plain = Instruction("copy", "ld.st", cost=2.0)
    fast = Instruction("copy", "cp.async", cost=1.0, asynchronous=True, completes="group")
    text = """@T.prim_func
def f(A: T.Tensor((64, 64), T.float16)):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((64, 64), T.float16)
        T.copy(A, a{stage})
"""
    for stage, name in (
        ("", "ld.st"),
        (", at_stage=T.Stage(0)", "ld.st"),
        (", at_stage=T.Stage(0, can_be_async=True)", "cp.async"),
    ):
        function = parse_function(text.format(stage=stage), registry())
        made = print_function(choose_instructions(function, Context(machine(plain, fast)))).text
        assert f'by=T.Instr("{name}")' in made


def test_an_optional_row_is_taken_only_where_it_is_named() -> None:
    on = machine(gemm("new", cost=1.0, optional=True), gemm("old"))
    assert chosen(on) == "old"
    assert chosen(on, by=', by=T.Instr("new")') == "new"
