"""The operands of tile operations: a whole buffer, a box of it, or a head address."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from ...errors import LanguageError, Place, ShapeError
from ...ir import Const, Region, whole
from .builder import here, shown
from .values import BufferView, ElementRef, RegionRef, VarRef


@dataclass(frozen=True)
class TileOperand:
    """One operand. `extent` is None for a head address, whose extents the other side gives."""

    view: BufferView
    region: Region

    @property
    def extent(self) -> tuple[int, ...] | None:
        return self.region.extent

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def declared(self) -> tuple[str, Place | None]:
        """The line that brings the buffer in, for an error's `also`."""
        verb = "declared" if self.view.scope == "global" else "allocated"
        return f"{self.name} is {verb} here", self.view.place

    @property
    def described(self) -> str:
        """What it is and its extents, for an error."""
        if self.extent is None:
            return f"{self.name}[...] is a head address in {self.view.ndim} dimensions"
        what = self.name if self.region.is_whole else f"the region of {self.name}"
        return f"{what} is {self.extent}"


def part_of(given: object, word: str) -> TileOperand:
    """The operand a word was given. Raises `LanguageError` for what is no tile."""
    match given:
        case BufferView():
            given.check_scope()
            if not all(isinstance(size, int) for size in given.buffer.shape):
                raise ShapeError(
                    "{word} works on tiles of a known size; extents of {name} are known only at a launch",
                    word=word, name=given.name, also=[(f"{given.name} is declared here", given.place)],
                    hint="a box of it: {name}[start : start + 128, ...], or a head address {name}[i, j]",
                )  # fmt: skip
            return TileOperand(given, whole(given.buffer).at(here()))
        case RegionRef():
            given.view.check_scope()
            return TileOperand(given.view, given.region)
        case ElementRef():
            given.view.check_scope()
            return TileOperand(given.view, Region(given.view.buffer, given.index, place=here()))
        case VarRef():
            raise LanguageError(
                "{word} works on tiles, {name} is a scalar",
                word=word,
                name=given.name,
                hint="assign it: {name} = value",
            )
        case _:
            raise LanguageError(
                "{word} works on buffers and regions, found {kind}",
                word=word,
                kind=type(given).__name__,
                text=shown(given),
                found="{text}",
            )


def whole_part(given: object, word: str) -> TileOperand:
    """The operand of a word that takes whole buffers only."""
    part = part_of(given, word)
    if not part.region.is_whole:
        raise ShapeError(
            "{word} takes whole buffers, found a part of {name}",
            word=word,
            name=part.name,
            hint="copy the part into a buffer of its own first",
            also=[part.declared],
        )
    return part


def on_chip_reach(part: TileOperand, extent: tuple[int, ...], word: str) -> None:
    """Raise `ShapeError` when a head address plus extents leaves a buffer on chip, where known."""
    if part.view.scope == "global" or part.extent is not None:
        return
    offset = part.view.ndim - len(extent)
    for axis, (start, n) in enumerate(
        zip(part.region.start[offset:], extent, strict=False), start=max(offset, 0)
    ):
        if isinstance(start, Const) and start.value + n > part.view.shape[axis]:
            raise ShapeError(
                "{word} reaches {end} in dimension {axis} of {name}, whose extent is {extent}",
                word=word,
                end=start.value + n,
                axis=axis,
                name=part.name,
                extent=part.view.shape[axis],
                also=[part.declared],
            )


def whole_number(given: object, word: str, what: str) -> int:
    """A Python integer. Raises `LanguageError` for a value of the running kernel or anything else."""
    try:
        if isinstance(given, bool):
            raise TypeError
        return operator.index(given)  # type: ignore[arg-type]
    except (TypeError, LanguageError):
        raise LanguageError(
            "{what} of {word} must be an integer known at compile time",
            what=what,
            word=word,
            text=shown(given),
            found="{text}",
            hint="a parameter of the @tilebench.jit function, or a number",
        ) from None


def positive(given: object, word: str, what: str) -> int:
    """A Python integer of at least 1. Raises `ShapeError` for zero and less."""
    return at_least(1, given, word, what)


def at_least(least: int, given: object, word: str, what: str) -> int:
    """A Python integer of at least `least`. Raises `ShapeError` for a smaller one."""
    number = whole_number(given, word, what)
    if number < least:
        raise ShapeError(
            "{what} of {word} is {number}",
            what=what,
            word=word,
            number=number,
            least=least,
            expected="at least {least}",
            found="{number}",
        )
    return number


def indexable(extent: int, word: str, axis: int) -> int:
    """An extent that an index of 32 bits reaches; `ShapeError` for a larger one."""
    if extent >= 2**31:
        raise ShapeError(
            "extent {axis} of {word} is {extent}, and an index has 32 bits",
            axis=axis, word=word, extent=extent, expected="at most 2147483647 in one dimension",
            hint="split it into two dimensions: the array itself may have more elements",
        )  # fmt: skip
    return extent


def shape_of(given: object, word: str) -> tuple[int, ...]:
    """A shape: one integer or a tuple or list of them, each at least 1 and below 2^31."""
    parts: list[object] = list(given) if isinstance(given, (tuple, list)) else [given]  # pyright: ignore[reportUnknownArgumentType]
    if not parts:
        raise ShapeError("{word} needs a shape of at least one dimension", word=word)
    extents = [positive(each, word, f"extent {axis}") for axis, each in enumerate(parts)]
    return tuple(indexable(each, word, axis) for axis, each in enumerate(extents))
