"""Value classes that a stage writes into attributes: each is one decision, printed as `T.Name(...)`."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import LanguageError


@dataclass(frozen=True)
class Panels:
    """Order of blocks: panels of `size` blocks along `axis` (`row` or `column`), swept in a snake.

    A `size` of 0 is said by a kernel that asks for no panels: `scheduled` has none then.
    """

    size: int
    axis: str = "row"


ROW_BY_ROW = Panels(0)


# Each thread copies and computes.
EVERYONE = "everyone"
# Threads of their own copy, and the others compute.
PRODUCER = "producer"


@dataclass(frozen=True)
class Plan:
    """How a pipelined loop runs: `stages` versions in flight, and which warps do what."""

    stages: int
    roles: str = EVERYONE

    def __post_init__(self) -> None:
        if self.stages < 1:
            raise LanguageError(
                "a plan has at least 1 stage", stages=self.stages, found="T.Plan({stages})",
                hint="T.Plan(1) is a loop in which nothing runs ahead",
            )  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """The pipeline stage of a copy: 0 for one that runs ahead, as far as its loop has stages.

    `can_be_async` permits an instruction that goes on by itself; `last` has it issued behind what a step
    computes, or in front of that; None: nobody chose.
    """

    number: int
    can_be_async: bool = False
    last: bool | None = None


@dataclass(frozen=True)
class Instr:
    """The instruction chosen from the target's table, by its name.

    `bytes` is the width of one access for copies, `lanes` the threads that take part in one
    exchange for reductions; 0 where it says nothing. `box` is what one instruction moves of an array, by the
    array's dimensions, and `swizzle` the bytes of the panels that it lies in, for copies in boxes; each of
    `blocks` blocks of a cluster brings its part of the tile, and all get it.
    """

    name: str
    bytes: int = 0
    lanes: int = 0
    box: tuple[int, ...] = ()
    swizzle: int = 0
    blocks: int = 0
