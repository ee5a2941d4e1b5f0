# ruff: noqa: E501 -- stages and CUDA text are one statement a line
"""The map of shared memory: reuse, alignment, and the arithmetic of what does not fit."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.passes.lowering import lower
from tilebench.errors import ResourceError
from tilebench.ir import parse_function, print_function
from tilebench.language.words import registry
from tilebench.passes.context import Context
from tilebench.passes.threaded.map_shared import map_shared
from tilebench.targets.cuda.machines import machine_of

KB = 1024


def ring_text(kb: int, stages: int) -> str:
    """Two buffers that together take `kb` KB a stage."""
    rows = kb * KB // 2 // 2 // 64
    layout = f"layout=T.SharedLayout(({rows}, 64), (64, 1)), versions={stages}"
    return f"""@T.prim_func
def ring(C: T.Tensor((64,), T.float32)):
    with T.Kernel(1, threads=64) as bx:
        A_s = T.alloc_shared(({rows}, 64), T.float16, {layout})
        B_s = T.alloc_shared(({rows}, 64), T.float16, {layout})
        T.fill(A_s.version(0), T.float16(0))
        T.fill(B_s.version(0), T.float16(0))
        T.copy(A_s.version(0), B_s.version(0))
"""


def mapped(text: str, arch: str = "sm_80") -> str:
    return print_function(map_shared(parse_function(text, registry()), Context(machine_of(arch)))).text


@pytest.mark.parametrize(("kb", "stages"), [(16, 10), (32, 5), (64, 2)])
def test_golden_rings_on_sm_80(kb: int, stages: int) -> None:
    assert f"shared_bytes={kb * KB * stages}" in mapped(ring_text(kb, stages))
    with pytest.raises(ResourceError) as caught:
        mapped(ring_text(kb, stages + 1))
    shown = caught.value.explain()
    half, more = kb * KB // 2, stages + 1
    assert f"A_s {more} stages x {half} bytes = {half * more}; B_s {more} stages x {half} bytes" in shown
    assert f"together {kb * KB * more}" in shown
    assert "at most 166912 bytes" in shown
    assert f"a stage takes {kb * KB} bytes, so at most {stages} stages fit" in shown


def test_an_error_without_a_ring_names_the_buffers() -> None:
    with pytest.raises(ResourceError) as caught:
        mapped(ring_text(256, 1))
    assert "A_s 131072 bytes; B_s 131072 bytes; together 262144" in caught.value.explain()
    assert "make the tiles smaller" in caught.value.explain()


def offsets(text: str) -> dict[str, int]:
    return {
        name: int(at) for name, at in re.findall(r"(\w+) = T\.alloc_shared\(.*offset=(\d+)", mapped(text))
    }


LIVES = """@T.prim_func
def lives(A: T.Tensor((64,), T.float32)):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((100,), T.float32)
        b = T.alloc_shared((50,), T.float32)
        c = T.alloc_shared((100,), T.float32)
        d = T.alloc_shared((20,), T.float32)
        T.fill(a, T.float32(0))
        T.copy(a[0 : 50], b)
        T.fill(c, T.float32(1))
        T.copy(b, c[0 : 50])
        for k in T.serial(4):
            T.copy(c[0 : 20], d)
            T.copy(d, c[0 : 20])
"""


def test_buffers_that_never_live_together_share_bytes() -> None:
    found = offsets(LIVES)
    assert found["a"] == found["c"] == 0
    assert found["b"] == 400
    assert found["d"] == 400
    assert "shared_bytes=600" in mapped(LIVES)


def test_what_a_loop_carries_lives_through_all_of_it() -> None:
    text = LIVES.replace("        T.copy(b, c[0 : 50])\n", "").replace(
        "            T.copy(d, c[0 : 20])\n",
        "            T.copy(d, c[0 : 20])\n            T.copy(b[0 : 20], c[0 : 20])\n",
    )
    found = offsets(text)
    ends = {"b": 200, "c": 400, "d": 80}
    spans = sorted((found[name], found[name] + size) for name, size in ends.items())
    assert all(one[1] <= two[0] for one, two in pairwise(spans))


def test_a_buffer_is_not_where_the_statement_that_fills_it_still_reads() -> None:
    text = """@T.prim_func
def chain(A: T.Tensor((64,), T.float32)):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((64,), T.float32)
        b = T.alloc_shared((64,), T.float32)
        c = T.alloc_shared((64,), T.float32)
        T.copy(A, a)
        T.copy(a, b)
        T.copy(b, c)
        T.copy(c, A)
"""
    found = offsets(text)
    assert abs(found["a"] - found["b"]) == abs(found["b"] - found["c"]) == 256
    assert found["a"] == found["c"]


def test_what_the_next_step_reads_is_not_in_the_bytes_of_what_this_step_makes() -> None:
    text = """@T.prim_func
def carried(A: T.Tensor((64,), T.float32)):
    with T.Kernel(1, threads=64) as bx:
        kept = T.alloc_shared((64,), T.float32)
        T.copy(A, kept)
        for k in T.serial(4):
            T.copy(kept, A)
            fresh = T.alloc_shared((64,), T.float32)
            T.fill(fresh, T.float32(1))
            T.copy(fresh, A)
"""
    found = offsets(text)
    assert found["kept"] != found["fresh"]


def test_a_swizzled_buffer_starts_on_its_pattern() -> None:
    text = """@T.prim_func
def aligned(A: T.Tensor((64,), T.float16)):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((3,), T.float16)
        b = T.alloc_shared((8, 64), T.float16, layout=T.SharedLayout((8, 64), (64, 1), swizzle=T.Swizzle(3, 3, 3)))
        c = T.alloc_shared((600,), T.float16)
        T.fill(a, T.float16(0))
        T.fill(b, T.float16(0))
        T.fill(c, T.float16(0))
        T.copy(a, b[0 : 1, 0 : 3])
        T.copy(c[0 : 5], b[0 : 1, 0 : 5])
"""
    found = offsets(text)
    # The larger c comes first, and b is not right behind it.
    assert (found["c"], found["b"]) == (0, 2048)
    assert all(at % 16 == 0 for at in found.values())


def test_a_machine_with_more_memory_takes_the_ring() -> None:
    assert "shared_bytes=196608" in mapped(ring_text(32, 6), "sm_90a")


def test_a_kernel_without_shared_memory_asks_for_none() -> None:
    text = """@T.prim_func
def none(C: T.Tensor((4,), T.int32)):
    with T.Kernel(1, threads=32) as bx:
        C[0] = 1
"""
    assert "shared_bytes" not in print_function(lower(text)[0]).text
