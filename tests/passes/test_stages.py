"""The whole road on the shared kernels and on kernels that ask for trouble, stage by stage."""

from __future__ import annotations

from typing import Any

import pytest

from tests import kernels
from tilebench.compiler import Compilation
from tilebench.errors import IRError, TileError
from tilebench.frontend import trace
from tilebench.ir import Function, parse_function, print_function, verify
from tilebench.language.words import registry
from tilebench.passes.forms import (
    BOUNDED_FORMS,
    LAID_OUT_FORMS,
    PIPELINED_FORMS,
    SCHEDULED_FORMS,
    THREADED_FORMS,
    TILE_FORMS,
)
from tilebench.targets import resolve

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "add": (kernels.add_kernel, {"M": 1000, "N": 1100}),
    "add_small": (kernels.add_kernel, {"M": 7, "N": 3, "block_M": 5, "block_N": 9, "dtype": "float64"}),
    "gemm": (kernels.gemm_kernel, {"M": 1000, "N": 1100, "K": 1200}),
    "gemm_odd": (
        kernels.gemm_kernel,
        {"M": 100, "N": 75, "K": 90, "block_M": 48, "block_N": 100, "block_K": 7, "threads": 96},
    ),
    "gemm_regions": (kernels.gemm_regions, {"M": 1000, "N": 1100, "K": 1200, "num_stages": 3}),
    "sum": (kernels.reduce_kernel, {"M": 1000, "N": 1100}),
    "max": (kernels.reduce_kernel, {"M": 33, "N": 77, "block_M": 3, "block_N": 100, "kind": "max"}),
    "softmax": (kernels.softmax_kernel, {"M": 1000, "N": 1000}),
    "softmax_odd": (
        kernels.softmax_kernel,
        {"M": 3, "N": 47, "block_M": 1, "dtype": "float32", "threads": 32},
    ),
}
TARGETS = ("null", "cuda:sm_80", "cuda:sm_90a")


def compilation(name: str, target: str) -> Compilation:
    kernel, values = CASES[name]
    manifest, machine = resolve(target)
    return Compilation(trace(kernel.function, values), manifest, machine)


def stages_of(made: Compilation) -> dict[str, Function]:
    made.reach(made.rows[-1].name)
    return made.functions


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", list(CASES))
def test_every_stage_prints_and_parses_back_equal(name: str, target: str) -> None:
    made = compilation(name, target)
    stages = stages_of(made)
    road = ["scheduled", "bounded"] + ([] if target == "null" else ["laid_out", "pipelined", "threaded"])
    assert list(stages) == ["tile", *road]
    rows = {row.name: row.forms for row in made.rows}
    for stage, function in stages.items():
        text = print_function(function).text
        again = parse_function(text, made.manifest.registry, stage)
        assert again == function, stage
        assert print_function(again).text == text
        verify(again, rows.get(stage, TILE_FORMS))


@pytest.mark.parametrize("name", list(CASES))
def test_every_statement_keeps_a_place_in_the_kernel(name: str) -> None:
    made = compilation(name, "cuda:sm_80")
    first = made.traced.first_line
    lines = range(first, first + len(made.traced.text.splitlines()))
    for stage, function in stages_of(made).items():
        printed = print_function(function)
        for line, place in zip(printed.text.splitlines(), printed.places, strict=True):
            if line.strip() in ("pass", "") or line.startswith("@"):
                continue
            assert place is not None, f"{stage}: {line}"
            assert place.user.file == made.traced.file, f"{stage}: {line}"
            assert place.user.line in lines, f"{stage}: {line}"


def test_targets_of_one_road_share_its_common_stages() -> None:
    null, cuda = compilation("gemm", "null"), compilation("gemm", "cuda:sm_80")
    assert stages_of(null)["bounded"] == stages_of(cuda)["bounded"]


HEAD = "@T.prim_func\ndef f(A: T.Tensor((64, 64), T.float32)):\n    with T.Kernel(1, threads=128) as bx:\n"
REFUSED = {
    "map_early": (
        BOUNDED_FORMS,
        "T.fill(A, T.float32(1), map=T.Fragment((64, 64), value=((64, 1, 1), (64, 0, 1))))",
        "map of T.fill is decided only by laid_out",
    ),
    "unstaged": (
        SCHEDULED_FORMS,
        "c = T.alloc_fragment((64, 64), T.float32)\n        T.gemm(A, A, c)",
        "an operand of a gemm still lies in global memory",
    ),
    "no_extents": (
        BOUNDED_FORMS,
        "x = T.alloc_shared((4, 4), T.float32)\n        T.copy(A[0, 0], x)",
        "the region src of A has no extents",
    ),
    "no_fill_extents": (
        BOUNDED_FORMS,
        "T.fill(A[0, 0], T.float32(0))",
        "the region dst of A has no extents",
    ),
    "used_hint": (
        LAID_OUT_FORMS,
        "x = T.alloc_shared((4, 4), T.float32, swizzle=True, layout=T.SharedLayout((4, 4), (4, 1)))",
        "swizzle of T.alloc_shared has no effect any more: laid_out has used it",
    ),
    "settled_map": (
        LAID_OUT_FORMS,
        (
            "x = T.alloc_fragment((4,), T.float32, layout=T.Fragment((4,), thread=((4, 0, 1),)))\n"
            "        T.fill(x, T.float32(0), map=T.Fragment((4,), thread=((4, 0, 1),)))"
        ),
        "map of T.fill decides nothing here: leave it out",
    ),
    "bounds_of_another_rank": (
        BOUNDED_FORMS,
        "T.fill(A[0:4, 0:4], T.float32(0), dst_within=(4,))",
        "dst_within has 1 bounds, and A has 2 dimensions",
    ),
    "bounds_past_the_buffer": (
        BOUNDED_FORMS,
        "T.fill(A[0:4, 0:4], T.float32(0), dst_within=(None, 1000000))",
        "dst_within=(None, 1000000) reaches past A",
    ),
    "no_plan": (
        BOUNDED_FORMS,
        "for k in T.Pipelined(4):\n            pass",
        "T.Pipelined has no plan",
    ),
    "no_stages": (
        SCHEDULED_FORMS,
        "for k in T.Pipelined(4):\n            pass",
        "T.Pipelined has no num_stages",
    ),
    "no_layout": (
        LAID_OUT_FORMS,
        "x = T.alloc_shared((4, 4), T.float32)",
        "T.alloc_shared has no layout",
    ),
    "no_map": (
        LAID_OUT_FORMS,
        "for i in T.Parallel(4):\n            A[i, 0] = T.float32(1)",
        "T.Parallel has no map",
    ),
    "no_instruction": (
        LAID_OUT_FORMS,
        (
            "x = T.alloc_fragment((4, 4), T.float32, layout=T.Fragment((4, 4), value=((4, 0, 1), (4, 1, "
            "1))))\n"
            "        T.gemm(A, A, x)"
        ),
        "T.gemm has no by",
    ),
    "pipelined": (
        PIPELINED_FORMS,
        "for k in T.Pipelined(4, plan=T.Plan(1)):\n            pass",
        "T.Pipelined is not legal",
    ),
    "copy_threaded": (
        THREADED_FORMS,
        "T.fill(A, T.float32(0))",
        "T.fill is not legal",
    ),
    "fragment_threaded": (
        THREADED_FORMS,
        "x = T.alloc_fragment((4,), T.float32)",
        "T.alloc_fragment is not legal",
    ),
    "no_offset": (
        THREADED_FORMS,
        "x = T.alloc_shared((4,), T.float32)",
        "x has no place in the map of shared memory",
    ),
    "two_dimensions": (
        THREADED_FORMS,
        "x = T.alloc_shared((4, 4), T.float32, offset=0)",
        "x has 2 dimensions",
    ),
    "thread_word_early": (
        TILE_FORMS,
        "T.vector_store(A[0:1, 0:4], A[1:2, 0:4])",
        "T.vector_store is not legal",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_not_legal_in_a_stage_is_refused_at_its_line(name: str) -> None:
    forms, line, message = REFUSED[name]
    function = parse_function(HEAD + "        " + line + "\n", registry(), "stage")
    with pytest.raises(IRError) as caught:
        verify(function, forms)
    assert message in caught.value.message
    assert caught.value.message.endswith(f"in stage {forms.stage}")
    place = caught.value.place
    assert place is not None
    # A second statement is the wrong one where there are two.
    assert place.line == (5 if "\n        T." in line else 4)


def test_the_schedule_choices_of_a_whole_road_have_origins() -> None:
    made = compilation("gemm_regions", "null")
    stages_of(made)
    found = {(each.address, each.name): each.origin for each in made.context.choices}
    assert found == {
        ("gemm C_local", "stage_A"): "default", ("gemm C_local", "stage_B"): "default",
        ("kernel", "threads"): "kernel", ("kernel", "order"): "default", ("loop ko", "num_stages"): "kernel",
        ("buffer A_shared", "swizzle"): "default", ("buffer B_shared", "swizzle"): "default",
        ("gemm C_local", "policy"): "default",
    }  # fmt: skip


def test_too_many_threads_are_told_before_anything_else() -> None:
    manifest, machine = resolve("cuda:sm_80")
    values = {"M": 64, "N": 64, "threads": 2048}
    made = Compilation(trace(kernels.add_kernel.function, values), manifest, machine)
    with pytest.raises(TileError, match="2048 threads"):
        made.reach("scheduled")


def test_a_launch_of_one_threads_code_says_its_threads() -> None:
    text = "@T.prim_func\ndef k(A: T.Tensor((4,), T.float32)):\n    with T.Kernel(1) as bx:\n        pass\n"
    with pytest.raises(IRError, match=r"T\.Kernel has no threads in stage threaded"):
        verify(parse_function(text, registry()), THREADED_FORMS)
    verify(parse_function(text.replace("(1)", "(1, threads=32)"), registry()), THREADED_FORMS)
