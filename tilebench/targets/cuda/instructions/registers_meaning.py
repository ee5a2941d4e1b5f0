"""What `T.set_max_nreg` does in the simulator: registers of a block, in a pool that its warps wait for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.stmt import statements
from ....language.groups import WARP_GROUP
from ....language.registers import SetMaxNreg
from ....passes.analysis.register_shares import registers_at_entry
from ....simulator.barriers import Until
from ....simulator.lanes import Lanes, Waits
from ....simulator.refusal import refuse
from ....simulator.state import Mask
from ..machines import DEFAULT_ARCH, machine_of

NAME = "setmaxnreg"


class RegisterPool:
    """Of some blocks: `own` (blocks, warps) registers of each thread, `free` (blocks,) that no thread has."""

    def __init__(self, lanes: Lanes) -> None:
        kernel = lanes.launch.kernel
        changes = [s for s in statements(kernel.body) if isinstance(s, SetMaxNreg)]
        # All cards that have the instruction have as many registers.
        entry = registers_at_entry(kernel.threads, kernel.min_blocks or 1, changes, machine_of(DEFAULT_ARCH))
        warps = -(-lanes.threads // lanes.warp)
        self.lanes, self.entry = lanes, entry
        self.own = np.full((lanes.blocks, warps), entry)
        self.free = np.zeros(lanes.blocks, np.int64)


class Granted(Until):
    """Warps wait until their block has as many registers as they want."""

    def __init__(self, pool: RegisterPool, registers: int) -> None:
        self.pool, self.registers = pool, registers

    def open(self, waiting: Any) -> Any:
        """One warp after the other takes what it can have whole."""
        pool, width = self.pool, self.pool.lanes.warp
        there = np.zeros_like(waiting)
        rows = there.reshape(pool.lanes.blocks, -1)
        for block, warp in np.argwhere(pool.lanes.whole_warps(waiting)):
            missing = (self.registers - pool.own[block, warp]) * width
            if missing <= pool.free[block]:
                pool.free[block] -= missing
                pool.own[block, warp] = self.registers
                rows[block, warp * width : (warp + 1) * width] = True
        return there

    def told(self, waiting: Any) -> str:
        """What is wanted, and what there is."""
        pool = self.pool
        block, warp = np.argwhere(pool.lanes.whole_warps(waiting))[0]
        return (
            f"{self.registers} registers each, of which they have {pool.own[block, warp]}, and the block has "
            f"{pool.free[block]} to give"
        )


def set_max_nreg(lanes: Lanes, statement: SetMaxNreg, mask: Mask) -> Waits:
    """Registers go back to the block at once; more of them are waited for."""
    if NAME not in lanes.kept:
        lanes.kept[NAME] = RegisterPool(lanes)
    pool: RegisterPool = lanes.kept[NAME]
    warps = lanes.whole_warps(mask)
    width = WARP_GROUP // lanes.warp
    if warps is None or warps.shape[1] % width or _parted(warps.reshape(lanes.blocks, -1, width)):
        refuse(
            "not all warps of a warp group come here, and they hand registers over together", statement,
            hint="branch on conditions that its {n} threads share", n=WARP_GROUP,
        )  # fmt: skip
    own = pool.own[warps]
    wrong = own > statement.registers if statement.increase else own < statement.registers
    if wrong.any():
        refuse(
            "{n} registers are {less} than the {own} that the threads have", statement,
            n=statement.registers, less="fewer" if statement.increase else "more", own=int(own[wrong][0]),
        )  # fmt: skip
    if statement.increase:
        yield Granted(pool, statement.registers)
    else:
        pool.free += ((pool.own - statement.registers) * warps).sum(axis=1) * lanes.warp
        pool.own[warps] = statement.registers


def _parted(groups: Any) -> bool:
    return bool((groups.any(axis=2) != groups.all(axis=2)).any())
