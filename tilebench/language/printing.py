"""Words that speak to the person who runs a kernel: `T.print` and `T.device_assert`.

They stand in the kernel while it is traced; `closing/printed_rows.py` writes them as stores at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import LanguageError, Place
from ..ir import Expr, Region, Stmt, attribute, node, operand, reads
from ..ir.facts import Facts
from .tracing.arithmetic import truth
from .tracing.builder import for_tiles, in_trace, inside_kernel
from .tracing.expressions import Value
from .tracing.kinds import Tile as AnyTile
from .tracing.operands import part_of
from .tracing.promote import expr_of, number_of
from .tracing.values import RegionRef

if TYPE_CHECKING:
    from .tracing.taken import Condition, Number, Tile


@dataclass(frozen=True)
class Saying:
    """One `T.print` or `T.device_assert` of a kernel's text, as its reader knows it.

    `shape` is that of a tile; `loops` name the variables of T.Parallel, `counts` how many values each has
    and `starts` the first, where every iteration says something of its own.
    `grid` are the blocks of its launch.
    """

    what: str
    message: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    loops: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    grid: tuple[Any, ...] = ()
    place: Place | None = None

    def at(self, index: Iterable[int]) -> str:
        """An iteration by the values of its variables."""
        parts = zip(self.loops, index, self.starts, strict=True)
        return ", ".join(f"{name} = {int(number) + start}" for name, number, start in parts)


def as_written(text: str) -> str:
    """Names as the kernel has them, without the suffix that keeps printed ones unique."""
    return re.sub(r"(?<=\w)__\d+\b", "", text)


@node
class Print(Stmt):
    """`T.print(value)` or `T.print(tile)`, until the trace ends."""

    value: Expr | None = operand(default=None)
    region: Region | None = reads(default=None)
    site: Any = attribute(default=None)


@node
class DeviceAssert(Stmt):
    """`T.device_assert(condition)`, until the trace ends."""

    condition: Expr = operand()
    site: Any = attribute(default=None)


def print(
    obj: Tile | Number | str | None = None, msg: str = "", warp_group_id: int = 0, warp_id: int = 0
) -> None:
    """Print a value, an element or a tile of the running kernel: `T.print(x, "x")`, `T.print(S)`.

    What was printed is shown when the call returns, in order of blocks, with shapes and indices; much of it
    is cut short. Inside T.Parallel each iteration prints its value. Tiles are of known size. Which warp
    prints is not to be chosen (`warp_group_id`, `warp_id`): a value is the block's. Raises `LanguageError`
    for what is no value and no tile.
    """
    builder = inside_kernel("T.print")
    builder.speaks = True
    place = builder.place
    if isinstance(obj, str) or obj is None:
        text = " ".join(part for part in (obj or "", msg) if part)
        builder.emit(Print(site=Saying("", text, place=place), place=place))
        return
    if isinstance(obj, AnyTile):
        for_tiles("T.print")
        part = part_of(obj, "T.print")
        shape = part.extent or ()
        site = Saying(
            as_written(repr(obj)) if isinstance(obj, RegionRef) else part.name,
            msg,
            shape,
            part.view.buffer.dtype.name,
            place=place,
        )
        builder.emit(Print(region=part.region, site=site, place=place))
        return
    if number_of(obj) is None and not isinstance(obj, Value):
        raise LanguageError(
            "T.print takes a value, an element or a tile of the kernel", kind=type(obj).__name__,
            found="{kind}",
            hint="Python's own print() shows what Python knows, as the kernel is compiled",
        )  # fmt: skip
    expr = expr_of(obj)
    site = Saying(as_written(str(obj)), msg, (), expr.dtype.name, place=place)
    builder.emit(Print(value=expr, site=site, place=place))


def device_assert(condition: Condition, msg: str = "", no_stack_info: bool = False) -> None:
    """Check a condition in the running kernel: `T.device_assert(i < n, "index")`; so does `assert`.

    The kernel goes on, and the call raises `LaunchError` at this line with the block and iteration that
    failed first. A condition that Python knows is checked as the kernel is compiled; one on sizes that stands
    in front of the kernel is checked by its blocks, as if it stood first in it.
    """
    builder = in_trace("T.device_assert")
    given: object = condition
    if isinstance(given, AnyTile):
        raise LanguageError("T.device_assert of {name}, a tile, which has no truth value", name=given.name,
            hint="test an element, or T.all_of({name})",
        )  # fmt: skip
    if not isinstance(condition, Value):
        if not condition:
            raise LanguageError("the assertion failed: {said}" if msg else "the assertion failed", said=msg)
        return
    test = truth(condition.expr)
    if Facts().proves(test):
        return
    place, builder.speaks = builder.place, True
    builder.say(DeviceAssert(test, site=Saying(as_written(str(condition)), msg, place=place), place=place))


__all__ = ["device_assert", "print"]
