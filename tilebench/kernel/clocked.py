"""What a kernel's warps do when: by the clocks of a card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from .available import require_available
from .spoken import with_rows

if TYPE_CHECKING:
    from ..record import RunRecord
    from .kernel import Kernel


class Clocked:
    """The same kernel with clocks in it, and what they say."""

    @property
    def _timed(self) -> Kernel:
        return cast("Kernel", self)

    def with_clocks(self) -> Kernel:
        """The same kernel, whose code reads the card's clocks around all that its blocks do (`timeline`)."""
        from .measuring.clocks import clocked

        return clocked(self._timed)

    def timeline(self, *arrays: Any, seed: int = 0, sizes: Mapping[str, Any] | None = None) -> RunRecord:
        """What the first blocks did when, as `bench` runs it; `clocked_seconds` is how long it takes so.

        Raises `TargetError` where there is no such card, for which `steps` has the order without the times.
        """
        from .measuring.clocks import timeline

        kernel = self._timed
        require_available(kernel.compilation.manifest, kernel.name, kernel.target)
        return timeline(kernel, with_rows(kernel, arrays), seed=seed, sizes=sizes)

    def steps(self) -> RunRecord:
        """The order in which warps of the first block do what, by the simulator: steps, and no time.

        Raises `TargetError` on a target whose threads have no clock, as a processor's.
        """
        from .measuring.stepped import steps

        return steps(self._timed)
