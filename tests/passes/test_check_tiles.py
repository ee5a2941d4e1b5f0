"""Tiles that no block or thread can have are refused at their line, before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.roads import jitted
from tilebench.errors import ResourceError
from tilebench.ir import parse_function
from tilebench.language.words import registry
from tilebench.passes.context import Context
from tilebench.passes.laid_out.count_registers import count_registers
from tilebench.targets.cpu.run import pool
from tilebench.targets.cuda.machines import machine_of

OUT = np.zeros((4, 4), np.float32)
USE = "T.clear(s)\nT.copy(s[0:4, 0:4], O)"
ALLOCATIONS = {
    "fragment": "s = T.alloc_fragment((60000, 60000), 'float32')\n" + USE,
    "shared": "s = T.alloc_shared((60000, 60000), 'float32')\n" + USE,
    "local": "s = T.alloc_local((60000, 60000), 'float32')\ns[0, 0] = 1.0\nO[0, 0] = s[0, 0]",
    "past all integers": "s = T.alloc_shared((2147483647, 2147483647), 'int4')\nT.copy(A, O)",
}


def refusal(body: str, target: str) -> ResourceError:
    kernel = jitted(body, A=OUT, O=OUT).using(target=target)()
    with pytest.raises(ResourceError) as caught:
        kernel.stage("llvm" if target == "cpu" else "cuda")
    assert caught.value.place is not None
    assert caught.value.place.line == 7
    return caught.value


@pytest.mark.parametrize("kind", ALLOCATIONS)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_a_tile_of_gigabytes_is_refused(kind: str, target: str) -> None:
    assert "make the tile smaller: a block works on a part of the arrays" in str(
        refusal(ALLOCATIONS[kind], target)
    )


def test_what_is_said() -> None:
    text = str(refusal(ALLOCATIONS["fragment"], "cuda:sm_80"))
    assert "each thread would have 28125000 elements of s, more than a thread of cuda:sm_80 can" in text
    assert "at most 524288 bytes a thread, and 255 registers where it is to be fast" in text
    assert "s takes 14400000000 bytes" in str(refusal(ALLOCATIONS["fragment"], "cpu"))


REPLICATED = """
@T.prim_func
def f(A: T.Tensor((4,), T.float32)):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_fragment((200000,), T.float32, layout=T.Fragment((200000,), {layout}))
"""


def test_a_layout_that_gives_every_thread_all_of_a_tile_is_counted_too() -> None:
    text = REPLICATED.format(layout="thread=((128, -1, 0),), value=((200000, 0, 1),)")
    with pytest.raises(ResourceError, match="each thread would have 200000 elements of s"):
        count_registers(parse_function(text, registry()), Context(machine_of("sm_80")))


def test_more_registers_than_a_thread_has_are_remarked() -> None:
    body = "s = T.alloc_fragment((256, 256), 'float32')\n" + USE
    kernel = jitted(body, A=OUT, O=OUT).using(target="cuda:sm_80")()
    kernel.stage("cuda")
    remarks = [each for each in kernel.record().remarks if each.pass_name == "count_registers"]
    assert [each.kind for each in remarks] == ["missed"]
    assert "fill 512 registers and it has 255" in remarks[0].message


def test_a_system_without_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: int) -> Any:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(pool, "_fresh_memory", none)
    with pytest.raises(ResourceError, match="no 8192 bytes of memory for the tiles of a block"):
        pool.Scratch().address(8192)
