"""Which controls change nothing of a kernel on a target, found by trying: they are not shown there.

A block of one thread has no threads to share work out to, no banks to swizzle for and no copies that run
ahead: on such a target the controls of those choose nothing. Nobody has to know which these are: the code is
made at other values of each control and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import TileError
from . import tiers
from .slider import Slider

if TYPE_CHECKING:
    from ..kernel import Kernel
    from .subject import Subject
    from .wish import Wish

# Values tried of each control, nearest first.
MOST_TRIED = 3


class Effects:
    """What was found of each target, for one subject."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._idle: dict[str, tuple[str, ...]] = {}
        self._looked: dict[str, Any] = {}

    def idle(
        self, kernel: Kernel, wish: Wish, controls: Sequence[Slider], unwanted: Callable[[], bool]
    ) -> tuple[str, ...]:
        """Names of the controls that change nothing on the kernel's target; none where it was given up.

        Only where a block is one thread: elsewhere each has code that obeys it. What changes nothing at one
        position may at another (`block` where `mode` is 1): the hidden ones are tried again at each.
        """
        known = self._idle.get(kernel.target)
        if kernel.compilation.machine.warp > 1 or wish.edit is not None:
            return known or ()
        if known is not None and self._looked[kernel.target] == wish.config:
            return known
        code = _code(kernel)
        found: list[str] = []
        for control in controls:
            if unwanted():
                return known or ()
            asked = not control.launch and control.values and (known is None or control.name in known)
            if asked and self._same(control, wish, code, MOST_TRIED if known is None else 1):
                found.append(control.name)
        self._idle[kernel.target], self._looked[kernel.target] = tuple(found), dict(wish.config)
        return self._idle[kernel.target]

    def _same(self, control: Slider, wish: Wish, code: Any, tries: int) -> bool:
        """Whether a kernel has this code at other values of a control too; an illegal one is an effect."""
        where = "choices" if control.choice else "values"
        position = getattr(wish, where)
        others = [value for value in control.values if value != wish.value_of(control)]
        try:
            return bool(others) and all(
                _code(self._subject.make(replace(wish, **{where: {**position, control.name: value}}))) == code
                for value in others[:tries]
            )
        except TileError:
            return False


def _code(kernel: Kernel) -> Any:
    """The text that the target makes of a kernel, and with how many threads it is launched."""
    names = tiers.text_stages(kernel)
    for name in names:
        kernel.compilation.reach(name)
    build = kernel.compilation.build
    return [build.texts[name] for name in names] if build is not None and names else object()
