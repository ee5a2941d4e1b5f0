"""Blocks that take tile after tile: every tile once, whatever their numbers, on every road."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend.cell import run_cell
from tests.simulated import run_threaded
from tilebench.errors import LanguageError, ShapeError

KERNEL = """\
import tilebench
import tilebench.language as T

@tilebench.jit
def made():
    @T.prim_func
    def main(O: T.Tensor({shape}, "int32"), V: T.Tensor(({blocks}, 64), "int32")):
        with T.Kernel({blocks}, threads=32) as block:
            n = T.alloc_var("int32", init=0)
            {loop}
                T.atomic_add(O[{index}], 1 + block * 1000)
                V[block, n] = {number}
                n = n + 1
                {end}
    return main
"""


def run(text: str) -> tuple[Any, Any]:
    """Who did each tile, and in what order each block did its own: the same on every road."""
    function = run_cell(text)["made"]
    cpu = function.using(target="cpu")()
    arrays = [np.zeros(p.shape, np.int32) for p in cpu.compilation.functions["tile"].params]
    cpu.check(*[a.copy() for a in arrays]).raise_if_wrong()
    cpu(*arrays)
    card = function.using(target="cuda:sm_90a")()
    card.stage("cuda")
    threaded = card.compilation.functions["threaded"]
    simulated = {p.name: np.zeros(p.shape, np.int32) for p in threaded.params}
    run_threaded(threaded, simulated, warp=32)
    for param, array in zip(threaded.params, arrays, strict=True):
        assert simulated[param.name].tolist() == array.tolist()
    return arrays[0], arrays[1]


DOMAINS = [((4, 8), 3, 8), ((3, 10), 4, 8), ((5, 7), 6, 3), ((1, 1), 4, 8), ((7,), 3, 2), ((2, 3, 5), 4, 2)]


@pytest.mark.parametrize(("domain", "blocks", "group"), DOMAINS)
def test_every_tile_is_done_once(domain: tuple[int, ...], blocks: int, group: int) -> None:
    names = [f"b{k}" for k in range(len(domain))]
    index = ", ".join(names)
    number = names[0]
    for name, size in zip(names[1:], domain[1:], strict=True):
        number = f"({number}) * {size} + {name}"
    loop = f"for {index} in T.Persistent({list(domain)}, {blocks}, block, group_size={group}):"
    done, order = run(
        KERNEL.format(shape=domain, blocks=blocks, loop=loop, index=index, number=f"{number} + 1", end="")
    )
    assert (done % 1000 == 1).all()
    # The numbers in order: panels of the last axis, narrower at its end.
    tiles = list(np.ndindex(domain))
    tiles.sort(key=lambda tile: (tile[-1] // group, tile[:-1], tile[-1]))
    for block in range(blocks):
        mine = [int(np.ravel_multi_index(tile, domain)) + 1 for tile in tiles[block::blocks]]
        assert order[block, : len(mine)].tolist() == mine
        assert not order[block, len(mine) :].any()


def test_a_block_may_stop() -> None:
    loop = "for b0, b1 in T.Persistent([4, 8], 2, block):"
    end = "if n == 3: break"
    done, _ = run(
        KERNEL.format(shape=(4, 8), blocks=2, loop=loop, index="b0, b1", number="b0 * 8 + b1 + 1", end=end)
    )
    assert (done > 0).sum() == 6


SCHEDULER = """sched = T.PersistentTileScheduler({args})
            sched.init(block)
            while sched.valid():
                b0, b1 = sched.m_idx, sched.n_idx"""


@pytest.mark.parametrize("column_major", [True, False])
@pytest.mark.parametrize("swizzle", [1, 2, 3])
def test_a_scheduler_goes_through_all_tiles(column_major: bool, swizzle: int) -> None:
    rows, columns, blocks = 4, 5, 3
    args = f"{rows}, {columns}, swizzle_size={swizzle}, column_major={column_major}, name='sched'"
    done, order = run(
        KERNEL.format(
            shape=(rows, columns), blocks=blocks, loop=SCHEDULER.format(args=args), index="b0, b1",
            number="b0 * 5 + b1 + 1 + sched.current_iter * 100", end="sched.next_tile()",
        )
    )  # fmt: skip
    assert (done % 1000 == 1).all()
    slow = 1 if column_major else 0
    tiles = list(np.ndindex(rows, columns))
    tiles.sort(key=lambda tile: (tile[slow] // swizzle, tile[1 - slow], tile[slow]))
    for block in range(blocks):
        mine = [m * 5 + n + 1 + turn * 100 for turn, (m, n) in enumerate(tiles[block::blocks])]
        assert order[block, : len(mine)].tolist() == mine


def test_coordinates_alone() -> None:
    loop = """sched = T.PersistentTileScheduler(4, 6, 3, swizzle_size=4, stateful=False)
            for w in range(8):
                b0, b1 = sched.coord(3 * w + block)"""
    done, _ = run(KERNEL.format(shape=(4, 6), blocks=3, loop=loop, index="b0, b1", number="w + 1", end=""))
    assert (done % 1000 == 1).all()


GEMM = """\
import tilebench
import tilebench.language as T

@tilebench.jit
def made():
    m, n = T.dynamic("m, n")
    @T.prim_func
    def main(
        A: T.Tensor((m, 48), "float32"), B: T.Tensor((48, n), "float32"), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(3, threads=64) as block:
            a = T.alloc_shared((16, 16), "float32")
            b = T.alloc_shared((16, 32), "float32")
            c = T.alloc_fragment((16, 32), "float32")
            for bx, by in T.Persistent([T.ceildiv(m, 16), T.ceildiv(n, 32)], 3, block):
                T.clear(c)
                for k in T.Pipelined(3, num_stages=2):
                    T.copy(A[bx * 16, k * 16], a)
                    T.copy(B[k * 16, by * 32], b)
                    T.gemm(a, b, c)
                T.copy(c, C[bx * 16, by * 32])
    return main
"""


@pytest.mark.parametrize(("m", "n"), [(64, 64), (50, 70), (1, 300)])
def test_a_persistent_product_of_any_size(m: int, n: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (m, 48)).astype(np.float32)
    b = rng.uniform(-1, 1, (48, n)).astype(np.float32)
    kernel = run_cell(GEMM)["made"].using(target="cpu")()
    kernel.check(a, b, np.zeros((m, n), np.float32)).raise_if_wrong()
    c = np.full((m, n), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


ERRORS = [
    ("for b0 in T.Persistent([], 3, block):", "T.Persistent needs at least one extent", ShapeError),
    ("for b0 in T.Persistent([3], 0, block):", "the wave size of T.Persistent is 0", ShapeError),
    ("for b0 in T.Persistent([3.5], 2, block):", "extent 0 of T.Persistent", LanguageError),
    (
        "s = T.PersistentTileScheduler(4, 6, 3, stateful=False)\n            for b0 in range(s.m_idx):",
        "this T.PersistentTileScheduler keeps no m_idx",
        LanguageError,
    ),
]


@pytest.mark.parametrize(("loop", "message", "kind"), ERRORS)
def test_what_is_refused(loop: str, message: str, kind: type[Exception]) -> None:
    text = KERNEL.format(shape=(4,), blocks=2, loop=loop, index="b0", number="1", end="")
    with pytest.raises(kind) as error:
        run_cell(text)["made"].using(target="cpu")()
    assert message in str(error.value)
