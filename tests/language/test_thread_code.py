"""Code of single threads: the same on the reference, the CPU and the simulator, and as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError
from tilebench.reference import run_reference
from tilebench.schedule import Schedule

ROWS = 'A: T.Tensor((128,), "float32"), I: T.Tensor((128,), "int32"), O: T.Tensor((128,), "float32")'
NUMBERS = 'I: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")'


def found(body: str, head: str = NUMBERS, **options: Any) -> dict[str, Any]:
    """What a kernel leaves in its arrays on every road, and what it was given under `given`."""
    return everywhere(body, head, **options)


def lanes(values: Any) -> Any:
    return np.asarray(values).reshape(-1, 32)


def test_a_thread_works_on_the_element_of_its_number() -> None:
    out = found("tx = T.get_thread_binding()\nO[tx] = I[tx] * 2 + tx")
    np.testing.assert_array_equal(out["O"], out["I"] * 2 + np.arange(128))


def test_what_a_thread_has_of_its_own_lives_across_barriers() -> None:
    out = found(
        """
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "int32")
        x = T.alloc_local((3,), "int32")
        total = T.alloc_var("int32", init=0)
        for k in T.serial(3):
            x[k] = I[tx] + k
        for k in T.serial(4):
            s[tx] = x[k % 3]
            T.sync_threads()
            total = total + s[(tx + 5) % 128]
            T.sync_threads()
        seen = s[tx] * 3
        s[tx] = total
        O[tx] = s[127 - tx] + seen
        """
    )
    i = out["I"]
    total = 4 * np.roll(i, -5) + 0 + 1 + 2 + 0
    np.testing.assert_array_equal(out["O"], total[::-1] + 3 * i)


def test_threads_meet_by_themselves_where_one_reads_what_another_wrote() -> None:
    out = found(
        """
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "int32")
        s[tx] = I[tx]
        left = s[(tx + 127) % 128]
        s[tx] = left + s[tx]
        O[tx] = s[tx ^ 1]
        """
    )
    both = out["I"] + np.roll(out["I"], 1)
    np.testing.assert_array_equal(out["O"], both.reshape(-1, 2)[:, ::-1].ravel())


def test_a_condition_that_differs_stands_around_each_part_of_what_meets() -> None:
    out = found(
        """
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "int32")
        O[tx] = -1
        if I[tx] > 0:
            s[tx] = I[tx]
            O[tx] = s[tx] + 1
        else:
            s[tx] = 7
            if tx % 2 == 0:
                O[tx] = s[tx ^ 1] + s[tx]
        """,
        I=np.tile(np.array([3, -1, 0, 0], np.int32), 32),
    )
    i = out["I"]
    s = np.where(i > 0, i, 7)
    wanted = np.where(i > 0, s + 1, np.where(np.arange(128) % 2 == 0, s[np.arange(128) ^ 1] + s, -1))
    np.testing.assert_array_equal(out["O"], wanted)


def test_threads_run_loops_of_lengths_of_their_own() -> None:
    out = found(
        """
        tx = T.get_thread_binding()
        total = T.alloc_var("int32", init=0)
        for k in T.serial(tx % 5):
            total = total + I[(tx + k) % 128]
        O[tx] = total
        """
    )
    i = out["I"]
    wanted = [sum(i[(t + k) % 128] for k in range(t % 5)) for t in range(128)]
    np.testing.assert_array_equal(out["O"], wanted)


def test_tiles_and_threads_go_together() -> None:
    out = found(
        """
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "int32")
        f = T.alloc_fragment((128,), "int32")
        r = T.alloc_fragment((1,), "int32")
        T.copy(I, f)
        for i in T.Parallel(128):
            s[127 - i] = f[i] * 2
        mine = s[tx] + 1
        if tx < 32:
            T.copy(I[0:32], s[0:32])
            O[tx] = s[tx] + mine
        if tx >= 32:
            O[tx] = mine
        T.reduce_sum(f, r)
        if tx == 5:
            O[tx] = r[0]
        """
    )
    i = out["I"]
    mine = i[::-1] * 2 + 1
    wanted = np.where(np.arange(128) < 32, i + mine, mine)
    wanted[5] = i.sum()
    np.testing.assert_array_equal(out["O"], wanted)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "uint64"])
def test_threads_of_a_warp_exchange_values(dtype: str) -> None:
    head = f'A: T.Tensor((128,), "{dtype}"), O: T.Tensor((7, 128), "{dtype}")'
    out = found(
        """
        tx = T.get_thread_binding()
        x = A[tx]
        O[0, tx] = T.shfl_xor(x, 5)
        O[1, tx] = T.shfl_up(x, 3)
        O[2, tx] = T.shfl_down(x, 2, width=8)
        O[3, tx] = T.shfl_sync(x, (tx + 1) % 32)
        O[4, tx] = T.shfl_xor(x, 8, width=8)
        O[5, tx] = T.shfl_sync(x, 3, 16)
        O[6, tx] = T.tvm_warp_shuffle(0xFFFFFFFF, x, tx % 32 ^ 1, 32, 32)
        """,
        head,
    )
    a, lane = lanes(out["A"]), np.arange(32)
    takes = [
        lane ^ 5, np.where(lane >= 3, lane - 3, lane), np.where(lane % 8 + 2 < 8, lane + 2, lane),
        (lane + 1) % 32,
        np.where((lane ^ 8) < lane - lane % 8 + 8, lane ^ 8, lane), lane - lane % 16 + 3, lane ^ 1,
    ]  # fmt: skip
    for row, source in zip(out["O"], takes, strict=True):
        np.testing.assert_array_equal(lanes(row), a[:, source])


def test_a_warp_reduces_its_values() -> None:
    head = 'I: T.Tensor((128,), "int32"), O: T.Tensor((5, 128), "int32")'
    out = found(
        """
        tx = T.get_thread_binding()
        O[0, tx] = T.warp_reduce_sum(I[tx])
        O[1, tx] = T.warp_reduce_max(I[tx])
        O[2, tx] = T.warp_reduce_min(I[tx])
        O[3, tx] = T.warp_reduce_bitand(I[tx] | 5)
        O[4, tx] = T.warp_reduce_bitor(I[tx])
        """,
        head,
        I=np.random.default_rng(1).integers(0, 200, 128).astype(np.int32),
    )
    i = lanes(out["I"])
    wanted = [
        i.sum(1), i.max(1), i.min(1), np.bitwise_and.reduce(i | 5, axis=1), np.bitwise_or.reduce(i, axis=1)
    ]  # fmt: skip
    for row, values in zip(out["O"], wanted, strict=True):
        np.testing.assert_array_equal(lanes(row), np.repeat(values[:, None], 32, 1))


def test_threads_vote() -> None:
    head = 'I: T.Tensor((128,), "int32"), O: T.Tensor((8, 128), "uint64")'
    i = np.random.default_rng(2).integers(0, 3, 128).astype(np.int32)
    i[32:64] = 2
    out = found(
        """
        tx = T.get_thread_binding()
        O[0, tx] = T.any_sync(I[tx] == 1)
        O[1, tx] = T.all_sync(I[tx] == 2)
        O[2, tx] = T.ballot(I[tx] == 0)
        O[3, tx] = T.match_any_sync(I[tx])
        O[4, tx] = T.match_all_sync(I[tx])
        O[5, tx] = T.syncthreads_count(I[tx] == 1)
        O[6, tx] = T.syncthreads_and(I[tx] < 3) * 2 + T.syncthreads_or(I[tx] == 7)
        O[7, tx] = T.activemask()
        """,
        head,
        I=i,
    )
    rows, bit = lanes(i), 1 << np.arange(32, dtype=np.uint64)
    same = [[(bit[row == x]).sum() for x in row] for row in rows]
    everyone = (1 << 32) - 1
    wanted = [
        [[int((row == 1).any())] * 32 for row in rows],
        [[int((row == 2).all())] * 32 for row in rows],
        [[bit[row == 0].sum()] * 32 for row in rows],
        same,
        [[everyone if len(set(row)) == 1 else 0] * 32 for row in rows],
        np.full((4, 32), (i == 1).sum()),
        np.full((4, 32), 2),
        np.full((4, 32), everyone),
    ]
    for row, values in zip(out["O"], wanted, strict=True):
        np.testing.assert_array_equal(lanes(row), np.asarray(values, np.uint64))


def test_threads_are_numbered_in_three_dimensions_x_first() -> None:
    head = 'O: T.Tensor((6, 64), "int32")'
    body = """
        tx, ty, tz = T.get_thread_bindings()
        nx, ny, nz = T.get_thread_extents()
        n = (tz * ny + ty) * nx + tx
        O[0, n] = tx + 10 * ty + 100 * tz
        O[1, n] = T.get_lane_idx()
        O[2, n] = T.get_warp_idx() + T.get_warp_idx_sync()
        O[3, n] = T.get_warp_group_idx(8, 4)
        O[4, n] = T.shfl_xor(tx, 7)
        O[5, n] = T.get_thread_extent(1) + nz
    """
    out = everywhere(body, head, threads=(8, 4, 2))  # type: ignore[arg-type]
    n = np.arange(64)
    wanted = [
        n % 8 + 10 * (n // 8 % 4) + 100 * (n // 32), n % 32, n // 32 * 2, n // 32, 7 - n % 8, np.full(64, 6)
    ]  # fmt: skip
    np.testing.assert_array_equal(out["O"], wanted)


def test_turns_of_a_loop_are_given_to_threads() -> None:
    out = found(
        """
        for tx in T.thread_binding(128, thread="threadIdx.x"):
            O[tx] = I[127 - tx]
        """
    )
    np.testing.assert_array_equal(out["O"], out["I"][::-1])


def test_a_histogram_of_a_block_in_shared_memory() -> None:
    out = found(
        """
        tx = T.get_thread_binding()
        bins = T.alloc_shared((16,), "int32")
        if tx < 16:
            bins[tx] = 0
        T.sync_threads()
        for k in T.serial(7):
            x = I[tx * 7 + k]
            if x >= 0:
                T.atomic_add(bins[x % 16], 1)
        T.sync_threads()
        if tx < 16:
            O[tx] = bins[tx]
        """,
        'I: T.Tensor((900,), "int32"), O: T.Tensor((16,), "int32")',
        I=np.random.default_rng(3).integers(0, 99, 900).astype(np.int32),
    )
    # Threads past the end of I read zeros, as everybody does there.
    wanted = np.bincount(out["I"][:896] % 16, minlength=16)
    np.testing.assert_array_equal(out["O"], wanted)


def test_arrays_of_a_thread_are_filled_and_copied_by_it() -> None:
    out = found(
        """
        tx = T.get_thread_binding()
        x = T.alloc_local((4,), "int32")
        y = T.alloc_local((4,), "int32")
        T.fill(y, tx)
        T.copy(I[tx * 4 : tx * 4 + 4], x)
        for k in T.vectorized(4):
            y[k] += x[k]
        T.copy(y, O[tx * 4 : tx * 4 + 4])
        """,
        'I: T.Tensor((512,), "int32"), O: T.Tensor((512,), "int32")',
    )
    np.testing.assert_array_equal(out["O"], out["I"] + np.arange(512) // 4)


# -- refusals, at the user's line

REFUSED = {
    "a barrier of some": (
        "if I[tx] > 0:\n    T.sync_threads()",
        "a barrier of the block stands under a condition that differs from thread to thread",
    ),
    "a barrier of some turns": (
        "for k in T.serial(tx):\n    T.sync_threads()\n    O[tx] = k",
        "threads run this loop differently (by tx), and all of them have to take part inside",
    ),
    "a meeting in some turns": (
        ("s = T.alloc_shared((128,), 'int32')\n"
        "for k in T.serial(tx):\n    s[tx] = k\n    O[tx] = s[(tx + k) % 128]"),
        "threads run this loop differently (by tx), and they have to meet for s",
    ),
    "an exchange of some": (
        "if tx % 2 == 0:\n    O[tx] = T.shfl_xor(I[tx], 1)",
        "threads of a warp exchange values under a condition that differs among them",
    ),
    "a part of a warp": (
        "O[tx] = T.shfl_xor(I[tx], 1, mask=255)",
        "T.shfl_xor takes part of a warp's threads by its mask",
    ),
    "a number in a loop of all": (
        "for i in T.Parallel(128):\n    O[i] = I[tx]",
        "all threads do this together, and tx is another in each thread",
    ),
    "a tile of some": (
        "if I[tx] > 0:\n    T.fill(O, 1)",
        ("a condition on the number of a thread chooses a group that works together: "
        "this is no range of threads"),
    ),
    "a dimension that is not there": (
        "y = T.get_thread_binding(1)",
        "T.get_thread_binding takes dimension 1, and the threads of this block have 1",
    ),
    "a loop over fewer": (
        "for t in T.thread_binding(64):\n    O[t] = 1",
        "T.thread_binding is over 64 threads, and the block has 128 along threadIdx.x",
    ),
    "a barrier of others": (
        "if tx < 32:\n    T.sync_threads(1, 64)",
        "a barrier of 64 threads, where 32 come to it",
    ),
    "a barrier of whoever": (
        "if I[tx] < 32:\n    T.sync_threads(1, 64)",
        "a barrier of 64 threads, where nobody knows how many come to it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_threads_cannot_do_is_refused_at_its_line(name: str) -> None:
    body, message = REFUSED[name]
    with pytest.raises(TileError) as caught:
        kernel_of("tx = T.get_thread_binding()\n" + body, NUMBERS).using(target="cpu")()
    assert caught.value.message == message
    assert caught.value.place is not None
    assert caught.value.place.line > 8


def test_threads_that_a_block_has_not_are_refused_on_every_target() -> None:
    for target in ("cpu", "cuda:sm_80"):
        with pytest.raises(TileError) as caught:
            kernel_of("with T.threads(4096, 7):\n    T.fill(O, 1)", NUMBERS).using(target=target)().stage(
                "bounded"
            )
        assert caught.value.message == "the block has no threads 4096 to 4102: it has 128"


def test_a_schedule_with_other_threads_is_refused() -> None:
    kernel = kernel_of("tx = T.get_thread_binding()\nO[tx] = I[tx]", NUMBERS)
    with pytest.raises(TileError) as caught:
        kernel.using(target="cpu", schedule=Schedule.of(threads=64))().stage("bounded")
    assert caught.value.message == "the kernel works with the numbers of 128 threads, and the block has 64"


def test_threads_that_store_different_values_to_one_element_race() -> None:
    kernel = kernel_of("tx = T.get_thread_binding()\nO[tx // 2] = I[tx]", NUMBERS).using(target="cpu")()
    arrays = {"I": np.arange(128, dtype=np.int32), "O": np.zeros(128, np.int32)}
    with pytest.raises(TileError):
        run_reference(kernel.compilation.reference, arrays)
    # The same value is no race: what stands there does not depend on who came last.
    run_reference(kernel.compilation.reference, {**arrays, "I": np.ones(128, np.int32)})


def test_what_only_some_threads_have_written_is_read_by_those_alone() -> None:
    body = """
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "int32")
        m = T.alloc_var("int32", init=0)
        m = I[tx]
        O[tx] = m
        if m > 1:
            s[tx] = m
            r = T.alloc_local((2,), "int32")
            for k in T.serial(2):
                r[k] = m + k
            m = s[tx] + r[1]
            O[tx] = m
    """
    out = found(body)
    np.testing.assert_array_equal(out["O"], np.where(out["I"] > 1, 2 * out["I"] + 1, out["I"]))
    function = kernel_of(body, NUMBERS).using(target="cpu")().compilation.reference
    run_reference(function, {"I": out["I"], "O": np.zeros(128, np.int32)}, uninitialised="raise")


def test_running_sums_by_threads_that_have_a_barrier_of_their_own() -> None:
    out = found(
        """
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "int32")
        mine = T.alloc_var("int32")
        s[tx] = I[tx]
        if tx < 64:
            for k in T.serial(6):
                step = 1 << k
                T.sync_threads(3, 64)
                if tx < 64 - step:
                    mine = s[tx] + s[tx + step]
                T.sync_threads(3, 64)
                if tx < 64 - step:
                    s[tx] = mine
        T.sync_threads()
        O[tx] = s[tx]
        """
    )
    i = out["I"]
    np.testing.assert_array_equal(out["O"], [*np.cumsum(i[63::-1])[::-1], *i[64:]])


def test_one_thread_of_those_that_store_alike_is_one_that_comes() -> None:
    out = everywhere(
        """
        tx, ty = T.get_thread_bindings()
        O[tx] = 0
        if ty == 2:
            O[tx] = I[tx] + 1
        """,
        'I: T.Tensor((16,), "int32"), O: T.Tensor((16,), "int32")',
        threads=(16, 4),  # type: ignore[arg-type]
    )
    np.testing.assert_array_equal(out["O"], out["I"] + 1)


def test_of_threads_under_a_condition_that_store_alike_the_first_does() -> None:
    out = everywhere(
        """
        tx, ty = T.get_thread_bindings()
        s = T.alloc_shared((4,), "int32")
        T.clear(s)
        O[tx] = 0
        if tx:
            s[0] = 5
        if tx > 3 and ty > 1:
            s[1] = 6
        else:
            s[2] = 7
            if ty >= 1:
                O[tx] = 1
        if tx + ty > 16:
            s[3] = 8
        for k in T.serial(4):
            if tx > 9 and k < 3:
                O[k] = s[k]
        if tx > ty + 12:
            O[tx] = 9
        """,
        'O: T.Tensor((16,), "int32")',
        threads=(16, 4),  # type: ignore[arg-type]
    )
    np.testing.assert_array_equal(out["O"], [5, 6, 7, *[1] * 10, 9, 9, 9])


def test_a_branch_that_changes_its_condition_is_the_same_branch_behind_a_meeting() -> None:
    out = found(
        """
        tx = T.get_thread_binding()
        s = T.alloc_shared((128,), "int32")
        T.copy(I, s)
        m = T.alloc_var("int32", init=0)
        m = I[tx]
        O[tx] = m
        if m > 0:
            m = s[127 - tx] - 9
            s[tx] = 5
            O[tx] = m
        """
    )
    np.testing.assert_array_equal(out["O"], np.where(out["I"] > 0, out["I"][::-1] - 9, out["I"]))
