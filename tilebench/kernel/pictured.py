"""What a kernel's compilation decided, as data to look at: layouts, accesses, shared memory, occupancy."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..errors import OptionError

if TYPE_CHECKING:
    from ..pictures.collect import AccessPicture
    from ..pictures.layout_changes import LayoutChange
    from ..pictures.residency import CardResidency
    from ..pictures.shared_map import SharedMap
    from ..pictures.tile_layouts import TileLayout
    from .kernel import Kernel


class Pictured:
    """The figures behind the workbench's pictures, without a notebook; nothing is run for them."""

    @property
    def _kernel(self) -> Kernel:
        return cast("Kernel", self)

    def layouts(self) -> tuple[TileLayout, ...]:
        """Who holds what: fragments, tiles in shared memory, operands of instructions, mappings of loops.

        `layout.holders((i, j))` gives the threads and registers of an element, `layout.offset((i, j))` its
        place in shared memory in elements. Empty on a target whose threads share nothing out.
        """
        from ..pictures.collect import layouts

        return layouts(self._kernel.compilation)

    def accesses(self) -> tuple[AccessPicture, ...]:
        """Each access of a line to shared and global memory as warps of the first block make it.

        Passes over banks and those that are needed, sectors and those that are needed, bytes of a thread's
        access, why it is not wider, and what the access would be without its tile's swizzle. The first bytes
        of all lanes are in `lanes`.
        """
        from ..pictures.collect import accesses

        return accesses(self._kernel.compilation, self._kernel.sizes)

    def conversions(self) -> tuple[LayoutChange, ...]:
        """Where a fragment changes its layout: the way, its price, and the other ways with theirs."""
        from ..pictures.collect import conversions

        return conversions(self._kernel.compilation)

    def shared_maps(self) -> tuple[SharedMap, ...]:
        """Shared memory by address and time, a map for each launch; bytes, statements by number, lines.

        Also of a kernel that is refused since it takes too much. Empty on a target without shared memory.
        """
        from ..pictures.collect import shared_maps

        return shared_maps(self._kernel.compilation)

    def occupancy(self, card: str | None = None) -> CardResidency:
        """Blocks on a multiprocessor, what limits them, waves and tail: of this target or of another `card`.

        Registers and shared memory are those of the code for this kernel's own target, which code for
        another card may not take; a card is a target's name, as `cuda:sm_80`. Raises `OptionError` where
        blocks do not share a multiprocessor.
        """
        from ..pictures.collect import occupancy

        found = occupancy(self._kernel.compilation, self._kernel.resources, card)
        if found is None:
            raise OptionError(
                "blocks do not share a multiprocessor on {target}", target=card or self._kernel.target,
                expected="a target whose blocks do, as cuda:sm_90a",
            )  # fmt: skip
        return found
