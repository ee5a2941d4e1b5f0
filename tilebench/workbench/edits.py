"""Edited stages of a bench. An edit belongs to one position of the controls, has a number, and is kept.

A move away from the position leaves the edit; the number brings both back. An edit of a stage keeps the edits
of the stages above it, and drops those below: what stands there follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from .wish import EDITED, KeptEdit, StageEdit, Wish, placed

if TYPE_CHECKING:
    from ..kernel import Kernel
    from ..record import CompileRecord
    from .picture import Picture

    Change = Callable[[Wish, Picture], Wish]

# A CUDA text is some 20 KB.
MOST_EDITS = 100


def edited_kernel(kernel: Kernel, edit: KeptEdit) -> Kernel:
    """The kernel with the edits made in it. Raises the `TileError` of a text that is wrong."""
    for each in edit.stages:
        kernel = kernel.edited(each.stage, each.text)
    return kernel


def own_text(record: CompileRecord | None, stage: str) -> str | None:
    """What the compiler made at a stage, as far as a record knows."""
    if record is None:
        return None
    before = next((edit.before for edit in record.edits if edit.stage == stage), None)
    found = next((each.text for each in record.stages if each.name == stage and not each.pending), None)
    return found if before is None else before


class EditBook:
    """The edits of one bench. The session calls it with its guard held."""

    def __init__(self) -> None:
        self.kept: tuple[KeptEdit, ...] = ()
        # The number of an edit that has not compiled yet: the next text of it takes its place.
        self._draft: int | None = None

    def writing(self, stage: str, text: str) -> Change:
        """What puts `text` in the place of a stage's, for `Session.change`."""

        def how(wish: Wish, now: Picture) -> Wish:
            own = None if now.stale else own_text(now.record, stage)
            return self.write(wish, stage, text, now.stage_names, own)

        return how

    def reverting(self, stage: str) -> Change:
        """What goes back to the compiler's text at a stage and below it; without one, everywhere."""
        return lambda wish, now: self.revert(wish, stage, now.stage_names)

    def going_back(self, number: int) -> Change:
        """What goes to the position of an edit, with it."""
        return lambda wish, _: self.back(wish, number)

    def write(self, wish: Wish, stage: str, text: str, order: Sequence[str], own: str | None) -> Wish:
        """The wish with `text` at `stage`; `own` is what the compiler made there. `OptionError` for none."""
        if stage not in order:
            raise OptionError(
                "there is no stage {stage!r} to edit", stage=stage, hint="stages: " + ", ".join(order)
            )
        above = self._above(wish, stage, order)
        if own is not None and text.rstrip("\n") == own.rstrip("\n"):
            return self._with(wish, above)
        return self._with(wish, (*above, StageEdit(stage, text)))

    def revert(self, wish: Wish, stage: str, order: Sequence[str]) -> Wish:
        """The wish without the edit of a stage and those below it; without a stage it has none."""
        return self._with(wish, self._above(wish, stage, order) if stage else ())

    def back(self, wish: Wish, number: int) -> Wish:
        """The wish at the position of an edit, with it. `OptionError` where there is no such edit."""
        edit = next((each for each in self.kept if each.number == number), None)
        if edit is None:
            there = ", ".join(str(each.number) for each in self.kept)
            raise OptionError(
                "this workbench has no edit {number}", number=number,
                hint=f"it has {there}" if there else "an edit is made by .edit(stage, text)",
            )  # fmt: skip
        return replace(placed(wish, edit.config), edit=edit)

    def placed(self, wish: Wish, config: Mapping[str, Any]) -> Wish:
        """The wish at a position that it was at before, with the edit that it had there."""
        edit = next((each for each in self.kept if each.label == config.get(EDITED)), None)
        return replace(placed(wish, config), edit=edit)

    def good(self, edit: KeptEdit | None) -> None:
        """An edit has compiled: the next text is another one."""
        if edit is not None and edit.number == self._draft:
            self._draft = None

    def _above(self, wish: Wish, stage: str, order: Sequence[str]) -> tuple[StageEdit, ...]:
        edits = wish.edit.stages if wish.edit is not None else ()
        return tuple(each for each in edits if order.index(each.stage) < order.index(stage))

    def _with(self, wish: Wish, stages: tuple[StageEdit, ...]) -> Wish:
        if not stages:
            return replace(wish, edit=None)
        config = wish.position
        same = [each for each in self.kept if each.stages == stages and each.config == config]
        if same:
            return replace(wish, edit=same[0])
        draft = self._draft if wish.edit is not None and wish.edit.number == self._draft else None
        number = draft or max((each.number for each in self.kept), default=0) + 1
        edit = KeptEdit(number, stages, config)
        rest = tuple(each for each in self.kept if each.number != number)
        self.kept = (*rest, edit)[-MOST_EDITS:]
        self._draft = number
        return replace(wish, edit=edit)
