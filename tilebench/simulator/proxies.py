"""Instructions that read shared memory by themselves, past the view that threads have of it.

What a thread wrote is there for them after the thread's own fence (`T.fence_async_shared`), which it carries
out when its writes are done; then a barrier lets those who issue know. The same holds of registers, of which
an instruction that goes on by itself sees what was written before the thread's last fence for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir import Buffer, Node, Stmt
from .asynchrony import Hold, Operation
from .expressions import LaneExpressions
from .refusal import refuse
from .state import Mask


class LaneProxies(LaneExpressions):
    """What such instructions hold, see, and are told by fences."""

    def hold(self, token: str, statement: Stmt, mask: Mask, holds: Sequence[Hold]) -> None:
        """An operation of the active lanes has hold of cells (a row a lane) until it is waited for."""
        for hold in holds:
            hold.memory.flight.start(hold.cells, statement, writes=hold.writes)
        row = self.full(mask).cumsum() - 1
        self.tokens.issue(token, Operation(statement, row, tuple(holds)), self.full(mask).copy())

    # -- registers
    def settle_registers(self, mask: Mask) -> None:
        """What the active lanes wrote to their registers is seen by instructions issued from now on."""
        for own in self.registers.values():
            if own.unsettled is None:
                own.unsettled = np.ones(self.lanes, np.bool_)
            own.unsettled[self.active(mask)] = False

    def is_settled(self, buffer: Buffer, node: Node, mask: Mask) -> bool:
        """Whether no active lane has written to a buffer of its registers since then."""
        unsettled = self.own(buffer, node).unsettled
        return unsettled is not None and not unsettled[self.active(mask)].any()

    # -- shared memory
    def read_by_proxy(self, node: Node, buffer: Buffer, places: Any, who: Any, mask: Mask) -> tuple[Any, Any]:
        """Elements at byte addresses (groups, rows, columns) of shared memory, read by groups of lanes.

        `who` are the lanes of each group. Gives the cells, shared out among the lanes, and the elements.
        Rows of which nobody has written anything, but a block's first, may be beyond the tile: they hold
        anything.
        """
        shared, name, dtype = self.shared, buffer.name, buffer.dtype
        if int(places.min()) < 0 or (int(places.max()) * 8 + dtype.bits) > shared.cells * shared.cell_bits:
            refuse("{name} is read outside of the shared memory of the kernel", node, name=name)
        first = places * 8 // shared.cell_bits + (who[:, 0] // self.threads * shared.cells)[:, None, None]
        cells = first[..., None] + np.arange(dtype.bits // shared.cell_bits)
        if _is_unfilled(shared.history.is_fresh(cells).any(axis=3), who[:, 0] // self.threads):
            refuse("{name} is read before anything was written there", node, name=name)
        own = np.stack([np.resize(part, (who.shape[1], -(-part.size // who.shape[1]))) for part in cells])
        rows = own.reshape(-1, own.shape[2])
        party = self.party(mask, self.active(mask))
        self.watch.read(shared, rows, party, node, name)
        self.watch.check_fenced(shared, rows, party, node, name, "read")
        raw = np.ascontiguousarray(shared.bytes[cells]).reshape(*places.shape, -1)
        return rows, raw.view(dtype.numpy)[..., 0]


def _is_unfilled(fresh: Any, block: Any) -> bool:
    """Whether groups read what nobody wrote, (groups, rows, columns), and not only rows beyond a tile."""
    rows = fresh.all(axis=2)
    if (fresh.any(axis=2) & ~rows).any():
        return True
    beyond = rows.all(axis=1)
    some = np.unique(block[~beyond])
    return bool((rows[:, 0] & ~beyond).any()) or not np.isin(block, some).all()
