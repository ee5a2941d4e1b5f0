"""Passes over the banks of shared memory as they are simulated, and layouts that are to have few of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.everywhere import arrays_of, kernel_of
from tests.passes.lowering import lower
from tests.simulated import card_words, run_threaded
from tilebench.ir import parse_function
from tilebench.pictures.warp_accesses import warp_accesses
from tilebench.simulator import Counters, Passes
from tilebench.targets import manifest

GEMM = """
A_s = T.alloc_shared({a}, "float16")
B_s = T.alloc_shared({b}, "float16")
C_l = T.alloc_fragment((64, {n}), "float32")
T.copy(A, A_s)
T.copy(B, B_s)
T.gemm(A_s, B_s, C_l, transpose_A={ta}, transpose_B={tb}, clear_accum=True)
T.copy(C_l, O)
"""


def counted(body: str, head: str, arch: str = "sm_90a", threads: int = 128) -> dict[str, Passes]:
    """The passes of each shared buffer of a kernel of one block."""
    kernel = kernel_of(body, head, threads).using(target=f"cuda:{arch}")()
    kernel.stage("cuda")
    machine = kernel.compilation.machine
    counters = Counters(machine.shared.banks, machine.shared.bank_bytes)
    arrays: dict[str, Any] = arrays_of(kernel.compilation.reference)
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32, counters=counters)
    return counters.shared


def gemm(n: int, k: int, ta: bool, tb: bool) -> dict[str, Passes]:
    a, b = (k, 64) if ta else (64, k), (n, k) if tb else (k, n)
    head = f'A: T.Tensor({a}, "float16"), B: T.Tensor({b}, "float16"), O: T.Tensor((64, {n}), "float16")'
    return counted(GEMM.format(a=a, b=b, n=n, ta=ta, tb=tb), head, "sm_90")


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    ("n", "k"), [(64, 32), (64, 64), (128, 64), (96, 64), (80, 32), (40, 96), (64, 80), (64, 40)]
)
def test_operands_of_products_have_no_conflicts(n: int, k: int, ta: bool, tb: bool) -> None:
    """Rows of heads that are no power of two too: copied in rows, read as matrices, turned or not."""
    passes = gemm(n, k, ta, tb)
    for name, columns in (("A_s", 64 if ta else k), ("B_s", k if tb else n)):
        assert passes[name].wavefronts > 0
        # Rows of five vectors are stored two vectors a row: no stride and no swizzle keeps these apart.
        most = passes[name].ideal * 0.25 if columns == 40 else 0
        assert passes[name].excess <= most, (name, passes[name])


@pytest.mark.parametrize("columns", [64, 96, 80, 40, 72, 100])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_a_tile_that_is_read_down_its_columns(columns: int, dtype: str) -> None:
    """Stored in rows and read in columns: what conflicts are left is told, and the simulator finds them."""
    body = f"""
S = T.alloc_shared((64, {columns}), "{dtype}")
T.copy(A, S)
for j, i in T.Parallel({columns}, 64):
    O[j, i] = S[i, j]
"""
    head = f'A: T.Tensor((64, {columns}), "{dtype}"), O: T.Tensor(({columns}, 64), "{dtype}")'
    kernel = kernel_of(body, head).using(target="cuda:sm_90a")()
    (told,) = [
        r
        for r in kernel.record(["laid_out"]).remarks
        if r.pass_name == "choose_shared" and "wavefronts" in r.values
    ]
    passes = counted(body, head)["S"]
    assert passes.wavefronts / passes.ideal == pytest.approx(float(told.values["wavefronts"]), rel=0.15)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("columns", [256, 48])
def test_parts_of_a_reduction_across_warps_meet_without_conflicts(columns: int, dtype: str) -> None:
    body = f"""
x = T.alloc_fragment((64, {columns}), "{dtype}")
s = T.alloc_fragment(({columns},), "float32")
T.copy(A, x)
T.reduce_sum(x, s, dim=0)
T.copy(s, O)
"""
    head = f'A: T.Tensor((64, {columns}), "{dtype}"), O: T.Tensor(({columns},), "float32")'
    passes = counted(body, head)["s_parts"]
    assert passes.instructions > 0
    assert passes.excess == 0


def test_a_copy_that_goes_on_by_itself_is_counted_once() -> None:
    """64 rows of 64 bytes in vectors of 16: 8 instructions of a warp, and 4 passes each, on either card."""
    body = """
S = T.alloc_shared((64, 32), "float16")
for k in T.Pipelined(4, num_stages=2):
    T.copy(A[k * 64, 0], S)
    for i, j in T.Parallel(64, 32):
        O[k * 64 + i, j] = S[i, j]
"""
    head = 'A: T.Tensor((256, 32), "float16"), O: T.Tensor((256, 32), "float16")'
    by_itself, by_registers = (counted(body, head, arch)["S"] for arch in ("sm_90a", "sm_75"))
    # Four times stored and four times read.
    assert by_itself.instructions == by_registers.instructions == 4 * 8 * 2
    assert by_itself.ideal == 4 * 8 * 2 * 4


def test_passes_are_counted_by_warp_and_phase() -> None:
    """Lanes 128 bytes apart meet in one bank; of a block of 48 threads the second warp is half a one."""
    function, _ = lower("""
@T.prim_func
def main(O: T.Tensor((48,), T.float32)):
    with T.Kernel(1, threads=64) as bx:
        S = T.alloc_shared((64, 32), T.float32, layout=T.SharedLayout((64, 32), (32, 1)))
        for i in T.Parallel(64, map=T.Fragment((64,), thread=((64, 0, 1),))):
            S[i, 0] = T.float32(1)
""")  # fmt: skip
    counters = Counters(32, 4)
    run_threaded(function, {"O": np.zeros(48, np.float32)}, warp=32, counters=counters)
    assert counters.shared["S"] == Passes(instructions=2, wavefronts=64, ideal=2)
    own = Counters(32, 4)
    own.count("S", np.arange(48) * 4, 4, np.arange(48), threads=48, warp=32)
    own.count("S", np.arange(96) * 4, 4, np.arange(96), threads=48, warp=32)
    assert own.shared["S"] == Passes(instructions=2 + 4, wavefronts=6, ideal=6)


def sectors_of(text: str, **arrays: Any) -> tuple[int, int, int]:
    """Requests, sectors moved and the fewest, of a text of stage `threaded`."""
    counters = Counters(32, 4)
    run_threaded(parse_function(text, card_words()), arrays, warp=32, counters=counters)
    found = [line.sectors for line in counters.lines.values()]
    return sum(s.requests for s in found), sum(s.moved for s in found), sum(s.ideal for s in found)


def test_an_instruction_that_reads_a_part_is_one_request() -> None:
    """Rows of 64 bytes, of which lane k reads k % 9 elements of 2 bytes: no sector where it reads none."""
    text = """@T.prim_func
def main(A: T.Tensor((32, 32), T.float16)):
    with T.Kernel(1, threads=32, shared_bytes=512) as bx:
        tid: T.int32 = T.thread_id()
        n: T.int32 = tid % 9
        S = T.alloc_shared((256,), T.float16, offset=0)
        T.cp_async(S[tid * 8 : tid * 8 + 8], A[tid, 0:8], valid=n)
        T.cp_async_commit()
        T.cp_async_wait()
"""
    bytes_read = sum(lane % 9 * 2 for lane in range(32))
    lanes_reading = sum(lane % 9 > 0 for lane in range(32))
    found = sectors_of(text, A=np.zeros((32, 32), np.float16))
    assert found == (1, lanes_reading, -(-bytes_read // 32))
    # The picture of accesses says the same without a run.
    machine = manifest("cuda").describe("sm_80")
    (read,) = [a for a in warp_accesses(parse_function(text, card_words()), machine) if a.buffer == "A"]
    assert (read.instructions, read.passes, read.least) == found


def test_an_access_from_any_address_is_two_requests() -> None:
    """Lanes 16 bytes apart, from byte 2 on: 32 pieces of 16 bytes, and 32 that begin one later."""
    text = """@T.prim_func
def main(A: T.Tensor((512,), T.float16)):
    with T.Kernel(1, threads=32, shared_bytes=0) as bx:
        tid: T.int32 = T.thread_id()
        p = T.alloc_local((16,), T.float16)
        T.load_pieces(p[0:16], A[tid * 8 + 1 : tid * 8 + 9])
"""
    assert sectors_of(text, A=np.zeros(512, np.float16)) == (2, 16 + 17, 16)


def test_rows_lie_where_their_strides_say() -> None:
    """A column of rows that are 16 elements of 4 bytes apart: 64 bytes, a sector each."""
    text = """@T.prim_func
def main(A: T.StridedTensor((32, 4), (16, 1), T.float32), O: T.Tensor((32,), T.float32)):
    with T.Kernel(1, threads=32, shared_bytes=0) as bx:
        tid: T.int32 = T.thread_id()
        O[tid] = A[tid, 0]
"""
    memory = np.zeros((32, 16), np.float32)[:, :4]
    assert sectors_of(text, A=memory, O=np.zeros(32, np.float32)) == (2, 32 + 4, 4 + 4)
