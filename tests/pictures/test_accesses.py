"""Accesses of warps as the pictures count them: the simulator, and counting by hand, are the oracles."""

from __future__ import annotations

from typing import Any

import pytest

from tests.everywhere import arrays_of, kernel_of
from tests.kernels import add_kernel, gemm_kernel, reduce_kernel, softmax_kernel
from tests.simulated import run_threaded
from tilebench import Schedule
from tilebench.pictures.collect import AccessPicture, accesses
from tilebench.simulator import Counters

COUNTS = ("instructions", "passes", "least")


def kernel_at(function: Any, target: str = "cuda:sm_90", schedule: Any = None, **values: Any) -> Any:
    return function.using(target=target, schedule=schedule).kernel((), values)


def simulated(kernel: Any) -> dict[str, tuple[int, int, int]]:
    """What the first block does to each shared buffer, as the simulator counts it while it runs."""
    kernel.stage("threaded")
    machine = kernel.compilation.machine
    counters = Counters(machine.shared.banks, machine.shared.bank_bytes)
    function = kernel.compilation.functions["threaded"]
    run_threaded(function, arrays_of(kernel.compilation.reference), [(0, 0, 0)], warp=32, counters=counters)
    return {name: (p.instructions, p.wavefronts, p.ideal) for name, p in counters.shared.items()}


def drawn(kernel: Any, **options: Any) -> dict[str, tuple[int, ...]]:
    """The same from the pictures."""
    out: dict[str, tuple[int, ...]] = {}
    for picture in accesses(kernel.compilation, **options):
        access = picture.access
        if access.scope == "shared":
            before = out.get(access.buffer, (0, 0, 0))
            out[access.buffer] = tuple(a + getattr(access, b) for a, b in zip(before, COUNTS, strict=True))
    return out


def one(kernel: Any, buffer: str, *, written: bool) -> AccessPicture:
    (found,) = [p for p in kernel.accesses() if p.access.buffer == buffer and p.access.written == written]
    return found


@pytest.mark.parametrize("target", ["cuda:sm_90", "cuda:sm_75"])
@pytest.mark.parametrize(
    ("dtype", "sizes", "stages"),
    [("float16", (128, 128, 96), 3), ("float32", (64, 64, 64), 2), ("float16", (64, 64, 64), 1)],
)
def test_a_product_touches_shared_memory_as_the_simulator_counts(
    target: str, dtype: str, sizes: tuple[int, int, int], stages: int
) -> None:
    m, n, k = sizes
    kernel = kernel_at(
        gemm_kernel,
        target,
        M=m,
        N=n,
        K=k,
        block_M=64,
        block_N=64,
        threads=128,
        num_stages=stages,
        dtype=dtype,
    )
    assert drawn(kernel, whole=True) == simulated(kernel)


def test_what_a_product_reads_by_itself_is_no_access_of_a_warp() -> None:
    by_threads = {name: {"instruction": "cp.async"} for name in ("A_s", "B_s")}
    schedule = Schedule.of(gemm={"C_l": {"instruction": "wgmma"}}, copy=by_threads)
    sizes = {"M": 128, "N": 128, "K": 96, "block_M": 64, "block_N": 64, "threads": 128, "num_stages": 3}
    kernel = kernel_at(gemm_kernel, "cuda:sm_90a", schedule, **sizes)
    assert "T.wgmma(" in kernel.stage("threaded")
    assert drawn(kernel, whole=True) == simulated(kernel)
    assert {p.access.word for p in kernel.accesses()} == {"cp_async", "vector_store"}


@pytest.mark.parametrize("swizzle", [False, True])
def test_conflicts_of_a_tile_are_counted_as_the_simulator_does(swizzle: bool) -> None:
    schedule = Schedule.of(buffer={"A_s": {"swizzle": swizzle}, "B_s": {"swizzle": swizzle}})
    kernel = kernel_at(
        gemm_kernel, schedule=schedule, M=64, N=64, K=64, block_M=64, block_N=64, threads=128, num_stages=2
    )
    found = drawn(kernel, whole=True)
    assert found == simulated(kernel)
    conflicts = {name: passes / least for name, (_, passes, least) in found.items()}
    assert conflicts == {"A_s": 1.0, "B_s": 1.0} if swizzle else all(v > 2 for v in conflicts.values())


@pytest.mark.parametrize("columns", [64, 96, 40])
def test_a_tile_that_is_read_down_its_columns(columns: int) -> None:
    body = f"""
S = T.alloc_shared((64, {columns}), "float16")
T.copy(A, S)
for j, i in T.Parallel({columns}, 64):
    O[j, i] = S[i, j]
"""
    head = f'A: T.Tensor((64, {columns}), "float16"), O: T.Tensor(({columns}, 64), "float16")'
    kernel = kernel_of(body, head).using(target="cuda:sm_90a")()
    assert drawn(kernel, whole=True) == simulated(kernel)


def test_partial_sums_and_a_guard_by_thread() -> None:
    kernel = kernel_at(reduce_kernel, M=32, N=512, block_M=2, block_N=512)
    assert drawn(kernel, whole=True) == simulated(kernel)
    assert list(drawn(kernel)) == ["acc_parts"]


@pytest.mark.parametrize("stages", [3, 4])
def test_long_loops_are_counted_by_their_ends(stages: int) -> None:
    """Of 128 turns a few are looked at; what stands under a ring's guard counts as often as it runs."""
    kernel = kernel_at(
        gemm_kernel, M=64, N=64, K=4096, block_M=64, block_N=64, threads=128, num_stages=stages
    )
    assert drawn(kernel) == drawn(kernel, whole=True)
    assert any(p.access.about for p in kernel.accesses())
    assert not any(p.access.about for p in accesses(kernel.compilation, whole=True))


def test_sectors_by_hand() -> None:
    """Rows of 1000 float16 are 2000 bytes: 62 sectors and a half, so that every second row begins in one."""
    kernel = kernel_at(softmax_kernel, M=64, N=1000)
    read = one(kernel, "A", written=False).access
    assert (read.scope, read.width, read.line) == ("global", 16, 95)
    starts = [[(row * 1000 + 256 * turn + 8 * lane) * 2 for lane in range(32) if 256 * turn + 8 * lane < 1000]
              for row in range(4) for turn in range(4)]  # fmt: skip
    sectors = [len({(s + b) // 32 for s in warp for b in range(16)}) for warp in starts]
    assert read.instructions == 16
    assert read.passes == sum(sectors)
    assert read.least == sum(-(-len(warp) * 16 // 32) for warp in starts)
    assert (read.worst, read.worst_least) == (17, 16)


def test_lanes_far_apart_move_a_sector_each() -> None:
    body = """
for i in T.Parallel(32):
    O[i] = A[i, 0]
"""
    head = 'A: T.Tensor((32, 64), "float32"), O: T.Tensor((32,), "float32")'
    kernel = kernel_of(body, head, threads=32).using(target="cuda:sm_90a")()
    read = one(kernel, "A", written=False)
    assert (read.access.passes, read.access.least, read.access.ways) == (32, 4, 8.0)
    assert read.access.lanes == tuple(256 * lane for lane in range(32))
    assert read.narrow == "neighbours along the last index do not lie side by side in A"


def test_an_address_that_data_decide_is_not_counted() -> None:
    body = """
for i in T.Parallel(32):
    O[i] = A[I[i]]
"""
    head = 'A: T.Tensor((64,), "float32"), I: T.Tensor((32,), "int32"), O: T.Tensor((32,), "float32")'
    kernel = kernel_of(body, head, threads=32).using(target="cuda:sm_90a")()
    read = one(kernel, "A", written=False).access
    assert read.by_data
    assert (read.instructions, read.lanes) == (0, ())


@pytest.mark.parametrize(
    ("function", "values", "buffer", "written", "width", "reason"),
    [
        (add_kernel, {"M": 64, "N": 1024}, "A", False, 16, ""),
        (reduce_kernel, {"M": 64, "N": 1024}, "C", True, 2, "a thread has 1 neighbour of a row"),
        (add_kernel, {"M": 64, "N": 1028}, "A", False, 8, "rows of A begin at multiples of 8 bytes"),
        (add_kernel, {"M": 64, "N": 1028, "block_N": 4}, "A", False, 4, "a thread has 2 neighbours of a row"),
    ],
)
def test_why_an_access_is_narrow(
    function: Any, values: dict[str, Any], buffer: str, written: bool, width: int, reason: str
) -> None:
    found = one(kernel_at(function, **values), buffer, written=written)
    assert (found.access.width, found.narrow) == (width, reason)


def test_without_its_swizzle_is_what_a_kernel_without_has() -> None:
    """The comparison is worked out from the swizzled code; the kernel that is compiled without one agrees."""
    values: dict[str, Any] = {
        "M": 64,
        "N": 64,
        "K": 64,
        "block_M": 64,
        "block_N": 64,
        "threads": 128,
        "num_stages": 2,
    }
    plain = Schedule.of(buffer={"A_s": {"swizzle": False}, "B_s": {"swizzle": False}})
    without = simulated(kernel_at(gemm_kernel, schedule=plain, **values))
    pictures = accesses(kernel_at(gemm_kernel, **values).compilation, whole=True)
    for name in ("A_s", "B_s"):
        others = [p.other for p in pictures if p.access.buffer == name]
        assert all(other is not None and other.words == "without its swizzle" for other in others)
        assert sum(other.passes for other in others if other) == without[name][1]
        assert sum(other.least for other in others if other) == without[name][2]


def test_a_swizzle_that_would_help_is_shown_where_there_is_none() -> None:
    plain = Schedule.of(buffer={"A_s": {"swizzle": False}, "B_s": {"swizzle": False}})
    kernel = kernel_at(
        gemm_kernel, schedule=plain, M=64, N=64, K=64, block_M=64, block_N=64, threads=128, num_stages=2
    )
    for name in ("A_s", "B_s"):
        found = [p for p in kernel.accesses() if p.access.buffer == name]
        now = sum(p.access.passes for p in found)
        then = sum(p.other.passes for p in found if p.other)
        assert then < now / 2
        assert all(p.other is not None and p.other.words.startswith("with Swizzle(") for p in found)


def test_a_road_without_threads_has_no_pictures() -> None:
    kernel = kernel_at(add_kernel, "cpu", M=64, N=1024)
    assert (kernel.accesses(), kernel.layouts(), kernel.conversions(), kernel.shared_maps()) == (
        (),
        (),
        (),
        (),
    )
