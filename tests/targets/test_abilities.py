"""What a target says it can do is what it does: each function and dtype of the table is compiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tilebench
import tilebench.language as T
from tilebench.errors import TargetError, TileError
from tilebench.ir.dtypes import ALL
from tilebench.language.scalars import FUNCTIONS
from tilebench.targets import resolve
from tilebench.targets.abilities import Abilities, abilities

ARITY = {function.name: function.arity for function in FUNCTIONS}


# Functions that kernels write by other words.
WRITTEN: dict[str, Any] = {
    "bit_length": lambda x: T.clz(x),
    "fma": lambda _, x, y: T.ieee_fmaf(x, y, x),
    "ldexp": lambda x, _: T.ldexp(x, 3),
}


def table(target: str) -> Abilities:
    return abilities(*resolve(target))


@tilebench.jit
def applied(word: str, dtype: str) -> Any:
    function, arity = WRITTEN.get(word) or getattr(T, word), ARITY[word]

    @T.prim_func
    def main(A: T.Tensor((32,), dtype), B: T.Tensor((32,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if arity == 1:
                    B[i] = function(A[i])
                elif arity == 2:
                    B[i] = function(A[i], A[31 - i])
                else:
                    B[i] = function(i < 4, A[i], A[31 - i])

    return main


def compiles(target: str, word: str, dtype: str) -> bool:
    """Whether a kernel that applies the function has text, and not a refusal of the target."""
    kernel = applied.using(target=target)
    try:
        made = kernel(word, dtype)
        made.stage(made.compilation.manifest.steps[0].name)
    except TargetError:
        return False
    return True


def calls(word: str, dtype: str) -> bool:
    """Whether the language asks the target for the function at the dtype.

    It does not where it has done it itself (floor of int32), or asks at another dtype (tanh of int32).
    """
    try:
        text = applied.using(target="null")(word, dtype).stage("tile")
    except TileError:
        return False
    return f"T.{word}(" in text and "T.cast(A[i], " not in text


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "toy"])
# Philox has one dtype, and kernels draw its numbers.
@pytest.mark.parametrize("word", sorted(ARITY.keys() - {"philox"}))
@pytest.mark.usefixtures("toy")
def test_functions_compile_for_the_dtypes_of_the_table_and_no_others(target: str, word: str) -> None:
    told = table(target).functions.get(word, ())
    asked = [dtype for dtype in ALL if calls(word, dtype)]
    assert asked
    assert [dtype for dtype in asked if compiles(target, word, dtype)] == [d for d in asked if d in told]


def test_the_cpus_operations_and_instructions() -> None:
    found = table("cpu")
    assert found.machine.startswith("cpu")
    assert found.words == ()
    assert {"copy", "fill", "gemm", "reduce_sum", "reduce_max", "reduce_min"} <= set(found.operations)
    assert "Parallel" not in found.operations


def test_operations_and_instructions_of_a_card() -> None:
    found = table("cuda:sm_80").operations
    assert found["copy"] == ("cp.async", "ld.st")
    assert table("cuda:sm_75").operations["copy"] == ("ld.st",)
    assert found["gemm"] == ("fma", "mma")
    assert found["reduce_sum"] == ("shared", "shfl", "thread")
    assert found["fill"] == ()


def test_an_instruction_counts_where_the_machine_has_it() -> None:
    manifest, machine = resolve("cuda:sm_80")
    others = tuple(row for row in machine.instructions if row.operation != "gemm")
    found = abilities(manifest, replace(machine, instructions=others)).operations
    assert "gemm" not in found
    assert "copy" in found


def test_the_words_of_threads() -> None:
    copies = ("cp_async", "cp_async_commit", "cp_async_wait")
    assert table("cuda:sm_80").words == (
        *copies, "fence_async_shared", "fence_mbarrier_init", "from_pieces", "launch_dependents", "ldmatrix",
        "load_pieces", "mbarrier_arrive", "mbarrier_expect", "mbarrier_init", "mbarrier_inval",
        "mbarrier_wait", "mma", "move_bits", "named_barrier_arrive", "read_clock", "set_max_nreg", "settle",
        "sync_cluster", "sync_threads", "sync_warp", "tma_commit", "tma_load", "tma_store", "tma_wait",
        "vector_add", "vector_load", "vector_store", "wait_for_launches", "wgmma", "wgmma_commit",
        "wgmma_fence", "wgmma_wait",
    )  # fmt: skip
    assert table("null").functions == {}
