"""Arrays behind addresses that a kernel reads: T.make_tensor and tables of T.ptr."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.roads import jitted
from tests.simulated import run_threaded
from tilebench.errors import LanguageError, TargetError, TileError, remember_source
from tilebench.ir import parse_function, print_function
from tilebench.kernel.calls.variants import Chooser, Variant
from tilebench.language import registry
from tilebench.reference import run_reference


@tilebench.jit(target="cuda:sm_80")
def scaled_groups(groups: int = 3, m: int = 100, n: int = 72, dtype: str = "float16") -> Any:
    """Each group's array has a place of its own; `strides` say how far apart the rows of B are."""

    @T.prim_func
    def main(
        A_ptrs: T.Tensor((groups,), T.ptr), B_ptrs: T.Tensor((groups,), T.ptr),
        by: T.Tensor((groups,), "float32"),
    ):  # fmt: skip
        with T.Kernel(groups, T.ceildiv(m, 32), threads=128) as (g, bm):
            S = T.alloc_shared((32, n), dtype)
            A = T.make_tensor(A_ptrs[g], (m, n), dtype)
            B = T.make_tensor_from_addr(B_ptrs[g], (m, n), dtype, (80, 1))
            T.copy(A[bm * 32, 0], S)
            for i, j in T.Parallel(32, n):
                if bm * 32 + i < m:
                    B[bm * 32 + i, j] = S[i, j] * by[g]

    return main


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_an_array_is_a_pointer_of_its_element(arch: str) -> None:
    kernel = scaled_groups.using(target=f"cuda:{arch}")()
    text = kernel.stage("cuda")
    assert "tb_half* const A = (tb_half*)(A_ptrs[g]);" in text
    assert "tb_half* const B = (tb_half*)(B_ptrs[g]);" in text
    # Rows of A are whole vectors, and what lies outside is not touched.
    assert "tb_ld_global_16(" in text
    assert "< 100" in text
    kernel.reach_code()
    assert b"ELF" in kernel.compilation.build.code[:8]
    assert [(p.name, p.dtype, p.read, p.written) for p in kernel.arguments] == [
        ("A_ptrs", "int64", True, False), ("B_ptrs", "int64", True, False), ("by", "float32", True, False),
    ]  # fmt: skip


def test_its_stages_parse_back() -> None:
    kernel = scaled_groups()
    kernel.stage("cuda")
    assert "A = T.make_tensor((100, 72), T.float16, A_ptrs[g])" in kernel.stage("tile")
    assert "B = T.make_tensor((100, 72), T.float16, B_ptrs[g], strides=(80, 1))" in kernel.stage("tile")
    for stage in kernel.compilation.functions.values():
        text = print_function(stage).text
        assert print_function(parse_function(text, registry())).text == text


def test_only_a_card_knows_what_lies_there() -> None:
    with pytest.raises(TargetError) as caught:
        scaled_groups.using(target="cpu")().executable()
    assert "A is known by its address alone, which the CPU does not trust" in str(caught.value)
    kernel = scaled_groups()
    kernel.stage("cuda")
    arrays = {"A_ptrs": np.zeros(3, np.int64), "B_ptrs": np.zeros(3, np.int64), "by": np.ones(3, np.float32)}
    with pytest.raises(LanguageError, match="A is known by its address alone, so only a card can run it"):
        run_reference(kernel.compilation.functions["tile"], arrays)
    with pytest.raises(LanguageError, match="A is known by its address alone, so only a card can run it"):
        run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ('A = T.make_tensor(P[0], (4, 4), "float32", (4,))', "T.make_tensor has 1 strides for 2 dimensions"),
        ('A = T.make_tensor(T.cast(P[0], "int32"), (4,))', "T.make_tensor takes an address"),
        ("A = T.make_tensor(P[0], (4,), align=2)", "T.make_tensor has align=2"),
        ("A = T.make_tensor(P[0], (4,), align=12)", "T.make_tensor has align=12"),
        ('A = T.make_tensor_from_addr(P[0], (4,), "float32", None, "shared")',
         "T.make_tensor_from_addr has no storage_scope 'shared'"),
        ("for k in T.Pipelined(2):\n    A = T.make_tensor(P[k], (4,))",
         "T.make_tensor stands inside T.Pipelined"),
        ("tx = T.get_thread_binding()\nA = T.make_tensor(P[tx], (4,))\nP[tx] = T.cast(A[0], 'int64')",
         "the address of A is another in each thread, by tx"),
    ],
)  # fmt: skip
def test_what_is_refused(body: str, what: str) -> None:
    with pytest.raises(TileError) as caught:
        jitted(body, P=np.zeros(128, np.int64)).using(target="cuda:sm_80")()
    assert what in str(caught.value)


@tilebench.jit(target="cuda:sm_80")
def in_front() -> Any:
    """Arrays of the whole function, of sizes that a call passes, in two launches."""

    @T.prim_func
    def main(a: T.ptr, b: T.ptr, m: T.int32, n: T.int32, s: T.int32):
        A = T.make_tensor(a, (m, n), "float16")
        B = T.make_tensor(b, (m, n), "float16", (s, 1))
        with T.Kernel(T.ceildiv(m, 32), T.ceildiv(n, 64)) as (bx, by):
            S = T.alloc_shared((32, 64), "float16")
            T.copy(A[bx * 32, by * 64], S)
            T.copy(S, B[bx * 32, by * 64])
        with T.Kernel(T.ceildiv(m, 32)) as bx:
            for i in T.Parallel(32):
                if bx * 32 + i < m:
                    B[bx * 32 + i, 0] = 0

    return main


def test_in_front_of_the_kernel_its_sizes_come_with_a_call() -> None:
    kernel = in_front()
    tile = kernel.stage("tile")
    assert tile.count("B = T.make_tensor((m, n), T.float16, b, strides=(s, 1))") == 2
    text = kernel.stage("cuda")
    assert text.count("tb_half* const A = (tb_half*)(a);") == 2
    # Rows of whole vectors are what the aligned variant is for.
    assert "tb_ld_global_16(A_v" in text
    kernel.reach_code()
    choose = Chooser(kernel.compilation.traced.function, kernel.compilation.machine)
    call = {"a": 0, "b": 0, "m": 100, "n": 64, "s": 72}
    assert choose(call, ()) == Variant()
    assert choose({**call, "n": 63}, ()) == choose({**call, "s": 70}, ()) == Variant(aligned=False)
    assert choose({**call, "m": 2**17, "s": 2**16}, ()) == Variant(wide=True)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("A = T.make_tensor(P[0], (4,))", "must stand inside `with T.Kernel(...)`"),
        ("A = T.make_tensor(p, (0, 'n'))", "extent 1 of T.make_tensor"),
        ("A = T.make_tensor(p, (4, 4), 'float32', (0, 1))", "a stride of T.make_tensor"),
    ],
)
def test_what_is_refused_in_front(line: str, what: str) -> None:
    name = "addresses_in_front"
    text = f"""\
import tilebench
import tilebench.language as T

@tilebench.jit(target="cuda:sm_80")
def kernel():
    @T.prim_func
    def main(p: T.ptr, P: T.Tensor((4,), T.ptr), O: T.Tensor((4,), "float32")):
        {line}
        with T.Kernel(1):
            O[0] = 1.0
    return main
"""
    remember_source(name, text)
    space: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), space)
    with pytest.raises(TileError) as caught:
        space["kernel"]()
    assert what in str(caught.value)
    assert line in str(caught.value)
