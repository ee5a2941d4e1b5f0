# ruff: noqa: E501 -- stages are one statement a line
"""Threads that go different ways and meet at barriers: right values, ways that meet again, words of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from tests.simulator.asynchronous_words import WORDS as ASYNCHRONOUS
from tests.simulator.asynchronous_words import meanings as with_asynchronous
from tilebench.errors import InternalError
from tilebench.ir import OpStmt, ScalarFunction, Word, attribute, node, parse_function, same_as_first
from tilebench.language.lowered.threads import SyncThreads, SyncWarp
from tilebench.language.memory import AllocFragment
from tilebench.language.scalars import FUNCTIONS as SCALARS
from tilebench.language.words import registry
from tilebench.simulator import FUNCTIONS, MEANINGS, Lanes, Meeting, SimulationError, run_threaded


@node
class Probe(OpStmt):
    """`T.probe()`: who passes here, and how often."""

    word = "probe"
    label: str = attribute()


@node
class Arrive(OpStmt):
    """`T.arrive(barrier=1, threads=64)`: counts at a barrier, and goes on."""

    word = "arrive"
    barrier: int = attribute(default=0)
    threads: int = attribute(default=0)


@node
class Meet(OpStmt):
    """`T.meet(barrier=1, threads=64)`: a wait that something might follow."""

    word = "meet"
    barrier: int = attribute(default=0)
    threads: int = attribute(default=0)


@node
class MeetTwice(OpStmt):
    """`T.meet_twice(1)`: a word with two waits in it."""

    word = "meet_twice"
    barrier: int = attribute()


@node
class Stranger(OpStmt):
    """`T.stranger()`: a word that nobody has told the simulator of."""

    word = "stranger"


def run(
    text: str, arrays: Mapping[str, Any], *, passed: list[tuple[str, int]] | None = None, **options: Any
) -> None:
    """Run a kernel that may hold the words above; `passed` gets (label, lanes) of each probe."""

    def probe(lanes: Lanes, stmt: Probe, mask: Any) -> None:
        assert passed is not None
        passed.append((stmt.label, int(lanes.full(mask).sum())))

    def arrive(lanes: Lanes, stmt: Arrive, mask: Any) -> Iterator[Meeting]:
        yield Meeting(stmt.barrier, stmt.threads, wait=False)

    def meet(lanes: Lanes, stmt: Meet, mask: Any) -> Iterator[Meeting]:
        yield Meeting(stmt.barrier, stmt.threads)

    def meet_twice(lanes: Lanes, stmt: MeetTwice, mask: Any) -> Iterator[Meeting]:
        yield Meeting(stmt.barrier)
        yield Meeting(stmt.barrier)

    words = [(cls.word, Word(cls)) for cls in (Probe, Arrive, Meet, MeetTwice, Stranger)]
    known = registry().extended([*words, *ASYNCHRONOUS], [ScalarFunction("cube", 1, same_as_first)])
    table = {**with_asynchronous(), Probe: probe, Arrive: arrive, Meet: meet, MeetTwice: meet_twice}
    run_threaded(parse_function(text, known), arrays, warp=32, meanings=table, **options)


def kernel(body: str, *, threads: int = 64, blocks: int = 1) -> str:
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    return f"""@T.prim_func
def kernel(A: T.Tensor((256,), T.float32), C: T.Tensor((256,), T.float32)):
    with T.Kernel({blocks}, threads={threads}, shared_bytes=1024) as bx:
        tid: T.int32 = T.thread_id()
{lines}
"""


def arrays() -> dict[str, Any]:
    return {"A": np.arange(256, dtype=np.float32), "C": np.zeros(256, np.float32)}


def producer_and_consumers(release: str = "late") -> str:
    """A GEMM over two stages: full on barriers 1 and 2, free again on barriers 3 and 4."""
    fill, use = "", ""
    for stage in range(2):
        k = f"(k * 2 + {stage})"
        fill += f"""
                T.sync_threads(barrier={3 + stage}, threads=96)
                for i in T.serial(8):
                    A_s[{stage * 256} + i * 32 + tid] = A[bx * 32 + tid, {k} * 8 + i]
                    B_s[{stage * 256} + i * 32 + tid] = B[{k} * 8 + i, tid]
                T.arrive(barrier={1 + stage}, threads=96)"""
        free = f"""
                if k < 2:
                    T.arrive(barrier={3 + stage}, threads=96)"""
        use += f"""
                T.sync_threads(barrier={1 + stage}, threads=96){free if release == "early" else ""}
                for i in T.unroll(16):
                    for j in T.serial(8):
                        c[i] = c[i] + A_s[{stage * 256} + j * 32 + row + i] * B_s[{stage * 256} + j * 32 + tid % 32]"""
        use += free if release == "late" else ""
    return f"""@T.prim_func
def gemm(A: T.Tensor((64, 48), T.float32), B: T.Tensor((48, 32), T.float32), C: T.Tensor((64, 32), T.float32)):
    with T.Kernel(2, threads=96, shared_bytes=4096) as bx:
        tid: T.int32 = T.thread_id()
        A_s = T.alloc_shared((512,), T.float32, offset=0)
        B_s = T.alloc_shared((512,), T.float32, offset=2048)
        if tid < 32:
            for k in T.serial(3):{fill}
        else:
            row: T.int32 = (tid - 32) // 32 * 16
            c = T.alloc_local((16,), T.float32)
            for i in T.unroll(16):
                c[i] = T.float32(0)
            T.arrive(barrier=3, threads=96)
            T.arrive(barrier=4, threads=96)
            for k in T.serial(3):{use}
            for i in T.unroll(16):
                C[bx * 32 + row + i, tid % 32] = c[i]
"""


def matrices() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((64, 48), (48, 32)))
    return {"A": a, "B": b, "C": np.zeros((64, 32), np.float32)}


def test_a_gemm_of_a_producer_warp_and_two_consumer_warps() -> None:
    given = matrices()
    run(producer_and_consumers(), given)
    assert np.array_equal(given["C"], given["A"] @ given["B"])


def test_a_consumer_that_releases_a_stage_before_it_reads_is_seen() -> None:
    with pytest.raises(SimulationError, match="a write of A_s by thread 0, and thread 63 read it"):
        run(producer_and_consumers("early"), matrices())
    with pytest.raises(SimulationError, match=r"threads 0 to 31 wait for barrier 3 \(32 of 96"):
        run(producer_and_consumers("never"), matrices())


def test_who_only_announces_himself_knows_nothing_of_the_others() -> None:
    body = """
S = T.alloc_shared((64,), T.float32, offset=0)
S[tid] = A[tid]
if tid < 32:
    T.arrive(barrier=1, threads=64)
    C[tid] = S[63 - tid]
else:
    T.sync_threads(barrier=1, threads=64)
"""
    with pytest.raises(SimulationError, match="a read of S by thread 0, and thread 63 wrote it"):
        run(kernel(body), arrays())
    run(
        kernel(
            body.replace("C[tid] = S[63 - tid]", "C[tid] = S[tid]").replace(
                "64)\n\n", "64)\n    C[tid] = S[63 - tid]\n"
            )
        ),
        arrays(),
    )
    late = body.replace("C[tid] = S[63 - tid]", "S[tid] = T.float32(0)") + "    C[tid] = S[63 - tid]\n"
    with pytest.raises(SimulationError, match="a read of S by thread 32, and thread 31 wrote it"):
        run(kernel(late), arrays())
    twice = body.replace("C[tid] = S[63 - tid]", "T.arrive(barrier=1, threads=64)")
    with pytest.raises(SimulationError, match="a warp comes to barrier 1 twice before it opens"):
        run(kernel(twice.replace("else:", "if tid >= 32:")), arrays())


def test_blocks_take_turns_of_their_own_in_roles() -> None:
    body = """
S = T.alloc_shared((32,), T.float32, offset=0)
if tid < 32:
    for k in T.serial(bx + 1):
        S[tid] = A[k * 32 + tid]
        T.sync_threads(barrier=1, threads=64)
        T.sync_threads(barrier=2, threads=64)
if tid >= 32:
    for k in T.serial(bx + 1):
        T.sync_threads(barrier=1, threads=64)
        C[bx * 32 + tid - 32] = C[bx * 32 + tid - 32] + S[63 - tid]
        T.sync_threads(barrier=2, threads=64)
"""
    given = arrays()
    run(kernel(body, blocks=4), given)
    rows = given["A"].reshape(8, 32)[:, ::-1]
    assert np.array_equal(
        given["C"][:128].reshape(4, 32), np.stack([rows[: b + 1].sum(axis=0) for b in range(4)])
    )


def test_ways_meet_again_behind_a_branch_and_a_loop() -> None:
    passed: list[tuple[str, int]] = []
    body = """
if tid < 32:
    T.probe("then")
    T.sync_threads(barrier=1, threads=32)
else:
    T.probe("else")
    T.sync_threads(barrier=2, threads=32)
T.probe("behind the branch")
for k in T.serial(tid // 32 + 1):
    T.probe("turn")
    if tid < 32:
        T.sync_threads(barrier=1, threads=32)
    else:
        T.sync_threads(barrier=2, threads=32)
T.probe("behind the loop")
"""
    run(kernel(body, blocks=3), arrays(), passed=passed)
    assert passed == [
        ("then", 96), ("else", 96), ("behind the branch", 192), ("turn", 192), ("turn", 96), ("behind the loop", 192)
    ]  # fmt: skip


def test_who_stands_behind_a_branch_goes_on_alone_when_the_others_wait_for_him() -> None:
    passed: list[tuple[str, int]] = []
    body = """
if tid < 32:
    T.sync_threads(barrier=1, threads=64)
T.probe("")
if tid >= 32:
    T.sync_threads(barrier=1, threads=64)
"""
    run(kernel(body), arrays(), passed=passed)
    assert passed == [("", 32), ("", 32)]


def test_roles_that_go_on_alone_count_their_turns_alone() -> None:
    body = """
for k in T.serial(3):
    if tid < 32:
        T.sync_threads(barrier=1, threads=64)
    if tid >= 32:
        T.sync_threads(barrier=1, threads=64)
    C[k * 64 + tid] = A[tid]
"""
    given = arrays()
    run(kernel(body), given)
    assert np.array_equal(given["C"].reshape(4, 64), np.stack([*[given["A"][:64]] * 3, np.zeros(64)]))


def test_a_word_of_ones_own_may_wait_more_than_once() -> None:
    body = """
S = T.alloc_shared((64,), T.float32, offset=0)
if tid < 32:
    T.meet_twice(1)
    S[tid] = A[tid]
else:
    S[tid] = A[tid]
    T.sync_threads(barrier=1)
    T.sync_threads(barrier=1)
    T.probe("behind both")
T.sync_threads()
C[tid] = S[63 - tid]
"""
    given, passed = arrays(), list[tuple[str, int]]()
    run(kernel(body), given, passed=passed)
    assert passed == [("behind both", 32)]
    assert np.array_equal(given["C"][:64], given["A"][63::-1])


def test_a_ring_of_asynchronous_copies_gives_what_it_copies() -> None:
    body = """
S = T.alloc_shared((192,), T.float32, offset=0)
for p in T.unroll(2):
    T.async_copy(S[p * 64 + tid : p * 64 + tid + 1], A[p * 64 + tid : p * 64 + tid + 1])
    T.commit_group()
for k in T.serial(4):
    T.wait_group(pending=1)
    T.sync_threads()
    if k + 2 < 4:
        T.async_copy(S[(k + 2) % 3 * 64 + tid : (k + 2) % 3 * 64 + tid + 1], A[(k + 2) * 64 + tid : (k + 2) * 64 + tid + 1])
    T.commit_group()
    C[k * 64 + tid] = S[k % 3 * 64 + 63 - tid]
"""
    given = arrays()
    run(kernel(body), given)
    assert np.array_equal(given["C"].reshape(4, 64), given["A"].reshape(4, 64)[:, ::-1])
    with pytest.raises(SimulationError, match=r"S is read while T\.async_copy of line"):
        run(kernel(body.replace("pending=1", "pending=2")), arrays())


def test_a_meaning_of_ones_own_for_a_known_word_is_believed() -> None:
    def announce(lanes: Lanes, stmt: SyncThreads, mask: Any) -> Iterator[Meeting]:
        yield Meeting(stmt.barrier, stmt.threads, wait=False)

    body = "S = T.alloc_shared((64,), T.float32, offset=0)\nS[tid] = A[tid]\nT.sync_threads()\nC[tid] = S[63 - tid]"
    function = parse_function(kernel(body), registry())
    run_threaded(function, arrays(), warp=32)
    with pytest.raises(SimulationError, match="a read of S by thread 0, and thread 63 wrote it"):
        run_threaded(function, arrays(), warp=32, meanings={**MEANINGS, SyncThreads: announce})


def test_nothing_is_done_in_silence() -> None:
    with pytest.raises(InternalError, match="the simulator has no meaning of Stranger") as caught:
        run(kernel("T.stranger()"), arrays())
    assert caught.value.place is not None
    assert caught.value.place.line == 5
    with pytest.raises(InternalError, match="no meaning of Stranger"):
        run(kernel("for i in T.serial(2):\n    if tid < i:\n        T.stranger()"), arrays())
    with pytest.raises(InternalError, match="no meaning of SyncWarp"):
        run_threaded(
            parse_function(kernel("T.sync_warp()"), registry()), arrays(), warp=32,
            meanings={cls: meaning for cls, meaning in MEANINGS.items() if cls is not SyncWarp},
        )  # fmt: skip
    with pytest.raises(InternalError, match="the simulator has no function cube"):
        run(kernel("C[tid] = T.cube(A[tid])"), arrays())
    given = arrays()
    run(kernel("C[tid] = T.cube(A[tid])"), given, functions={**FUNCTIONS, "cube": lambda x: x**3})
    assert given["C"][:3].tolist() == [0, 1, 8]
    with pytest.raises(InternalError, match="the simulator has no memory fragment for f"):
        run_threaded(
            parse_function(kernel("f = T.alloc_fragment((4,), T.float32)\nC[tid] = f[0]"), registry()), arrays(),
            warp=32, meanings={**MEANINGS, AllocFragment: lambda *_: None},
        )  # fmt: skip


def test_every_function_of_the_language_has_a_meaning() -> None:
    known = {*FUNCTIONS, "if_then_else"}
    assert {function.name for function in SCALARS} - known == set()


def test_blocks_that_do_not_run_together_race_too() -> None:
    wide = {"A": np.zeros(256, np.float32), "C": np.zeros(256, np.float32)}
    body = "if bx == 0 or bx == 299:\n    C[tid] = A[tid]"
    with pytest.raises(SimulationError, match=r"by block \(299, 0, 0\), and block \(0, 0, 0\) wrote it"):
        run(kernel(body, blocks=300), wide)
    run(kernel(body, blocks=300), wide, blocks=[(299, 0, 0)])


BLOCKS_THAT_PART = """
if tid < 32:
    {wait}
    if bx == 0:
        T.sync_threads(barrier=2, threads=64)
    C[bx * 32 + tid] = A[tid]
elif tid < 64:
    T.sync_threads(barrier=2, threads=64)
    if bx == 1:
        T.sync_threads(barrier=1, threads=64)
elif tid < 96:
    if bx == 0:
        T.sync_threads(barrier=1, threads=64)
else:
    if bx == 1:
        T.sync_threads(barrier=2, threads=64)
"""


def test_blocks_whose_warps_meet_in_different_orders_run_on_their_own() -> None:
    """Block 0 needs the first warp behind its wait before the second, block 1 the other way round."""
    given = arrays()
    run(
        kernel(BLOCKS_THAT_PART.format(wait="T.sync_threads(barrier=1, threads=64)"), threads=128, blocks=2),
        given,
    )
    assert np.array_equal(given["C"][:64].reshape(2, 32), np.stack([given["A"][:32]] * 2))


def test_blocks_cannot_part_in_the_middle_of_a_word() -> None:
    text = kernel(BLOCKS_THAT_PART.format(wait="T.meet(barrier=1, threads=64)"), threads=128, blocks=2)
    with pytest.raises(InternalError, match="have parted in the middle of a word"):
        run(text, arrays())
    run(text, arrays(), blocks=[(1, 0, 0)])
