"""What a kernel goes on to: other kernels of its edited texts, and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from .kernel import Kernel


class Keeping:
    """The part of a `Kernel` that edits it."""

    @property
    def _self(self) -> Kernel:
        return cast("Kernel", self)

    def edited(self, stage: str, text: str) -> Kernel:
        """The kernel whose `stage` is `text`: compiled on from there, with the stages above as they are.

        Its record and its measurements name the stage as edited. Raises `IRError` at the line of the text
        that is wrong, `OptionError` for a stage where compilation cannot start.
        """
        from .continued import continued

        return continued(self._self, stage, text)
