"""Parts of a block: `with T.threads(0, 128):`, `with T.ws(0):`, `if tx < 32:`.

Tile operations are done by all threads of the block together; inside one of these they are done by some
of them, and layouts, reductions and barriers are made for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..errors import LanguageError, Place
from ..ir import Arith, Const, Expr, If, Var, const_of
from ..ir.facts import conjuncts
from .structure import ThreadGroup
from .threads.conditions import range_of
from .tracing.builder import for_tiles
from .tracing.operands import positive, whole_number

# Threads of a warp group, as TileLang counts them.
WARP_GROUP = 128
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


@dataclass(frozen=True)
class GroupSpec:
    """The threads that a `with` names: `count` from `first` on."""

    first: int
    count: int | None

    def __enter__(self) -> NoReturn:
        raise LanguageError("T.threads belongs in the body of a @T.prim_func")

    def __exit__(self, *_: object) -> None:
        return None


def threads(first: int, count: int | None = None) -> GroupSpec:
    """`with T.threads(32, 96):` what is inside is done by 96 threads of the block, from number 32 on.

    Without `count` by all that are left. A group is one thread or whole warps. Other threads pass it by;
    where they need what it wrote to shared memory the compiler lets all of them meet.
    """
    for_tiles("T.threads")
    start = whole_number(first, "T.threads", "the first thread")
    if start < 0:
        raise LanguageError("T.threads starts at thread {first}", first=start, expected="0 or more")
    return GroupSpec(start, None if count is None else positive(count, "T.threads", "the count"))


def ws(*groups: int) -> GroupSpec:
    """`with T.ws(0):` what is inside is done by the block's first warp group, of 128 threads."""
    for_tiles("T.ws")
    numbers = [whole_number(group, "T.ws", "a warp group") for group in groups]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[0] < 0:
        raise LanguageError(
            "T.ws takes warp groups that follow each other", found="{groups}", groups=tuple(groups),
            expected="such as T.ws(0) or T.ws(1, 2)",
        )  # fmt: skip
    return GroupSpec(numbers[0] * WARP_GROUP, len(numbers) * WARP_GROUP)


def groups_of(
    branch: If, condition: Expr, extents: Sequence[int], coordinates: Sequence[Var]
) -> tuple[ThreadGroup, ...]:
    """The groups that a branch on the number of a thread makes.

    `condition` is that of the branch with names written out; `coordinates` number the threads of the block,
    x last. Raises `LanguageError` for no range of threads.
    """
    then, orelse, place = branch.then, branch.orelse, branch.place
    found = None if _simple(condition, coordinates) else range_of(condition, extents, coordinates)
    first, end = found or _range(condition, coordinates, place)
    groups: list[ThreadGroup] = []
    if then:
        count = None if end is None else end - first
        groups.append(ThreadGroup(first, count, vars=(), body=then, place=place))
    if orelse:
        if first and end is not None:
            _refuse(place, "the threads that are left are two ranges")
        rest = (0, first) if end is None else (end, None)
        groups.append(ThreadGroup(*rest, vars=(), body=orelse, place=place))
    return tuple(groups)


def _simple(condition: Expr, coordinates: Sequence[Var]) -> bool:
    return all(_bounds(part, coordinates) is not None for part in conjuncts(condition))


def _range(condition: Expr, coordinates: Sequence[Var], place: Place | None) -> tuple[int, int | None]:
    """The first thread for which a condition holds, and the first after it for which it does not."""
    first, end = 0, None
    for part in conjuncts(condition):
        limits = _bounds(part, coordinates)
        if limits is None:
            _refuse(place, "this is no range of threads")
        low, high = limits
        first = max(first, low)
        end = high if end is None else end if high is None else min(end, high)
    if end is not None and end <= first:
        _refuse(place, "no thread is in this range")
    return first, end


def _bounds(part: Expr, coordinates: Sequence[Var]) -> tuple[int, int | None] | None:
    if not isinstance(part, Arith) or part.op not in _SWAPPED or len(part.args) != 2:
        return None
    op, (left, right) = part.op, part.args
    if isinstance(left, Const):
        op, left, right = _SWAPPED[op], right, left
    bound = const_of(right)
    if bound is None or len(coordinates) != 1 or left != coordinates[0]:
        return None
    bound = max(bound, -1)
    return {
        "<": (0, bound), "<=": (0, bound + 1), ">": (bound + 1, None), ">=": (bound, None),
        "==": (bound, bound + 1),
    }[op]  # fmt: skip


def _refuse(place: Place | None, what: str) -> NoReturn:
    raise LanguageError(
        "a condition on the number of a thread chooses a group that works together: {what}", at=place,
        what=what, expected="a range such as tx < 32, tx >= 32 and tx < 64, or tx == 0",
        hint="compare the number itself with constants, and put other conditions in an `if` of their own",
    )  # fmt: skip


__all__ = ["GroupSpec", "groups_of", "threads", "ws"]
