"""Parts of a block: `with T.threads(0, 128):`, `with T.ws(0):`, `if tx < 32:`, and the number of a thread.

Tile operations are done by all threads of the block together; inside one of these they are done by some
of them, and layouts, reductions and barriers are made for those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from ..errors import LanguageError, Place
from ..ir import Arith, Call, Const, Expr, Function, Node, Stmt, const_of, int32, walk
from ..ir.facts import conjuncts
from .structure import ThreadGroup
from .tracing.builder import for_tiles, here, inside_kernel
from .tracing.expressions import Value
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


def get_thread_binding(dim: int = 0) -> Value:
    """The number of a thread in its block, int32: `tx = T.get_thread_binding()`, then `if tx < 32:`.

    It chooses who does something. As a value of an element it means nothing: tile operations are done
    by all threads of a block together.
    """
    inside_kernel("T.get_thread_binding").numbers_threads = True
    if whole_number(dim, "T.get_thread_binding", "the dimension") != 0:
        raise LanguageError("the threads of a block have one dimension here", hint="take dimension 0")
    return Value(Call("thread_id", (), type=int32, place=here()))


def is_thread_number(expr: Node) -> bool:
    """Whether an expression is the number of a thread itself."""
    return isinstance(expr, Call) and expr.word == "thread_id"


def names_a_thread(expr: Expr) -> bool:
    """Whether an expression asks for the number of a thread."""
    return any(is_thread_number(node) for node in walk(expr))


def refuse_thread_values(function: Function) -> None:
    """Raise `LanguageError` where the number of a thread is a value, and not a choice of threads."""
    for node in walk(function):
        if is_thread_number(node):
            raise LanguageError(
                "the number of a thread is used as a value", at=node.place,
                expected="a choice of threads: if tx < 32:",
                hint="say what is done with each element (T.Parallel); threads share it out",
            )  # fmt: skip


def groups_of(
    condition: Expr, then: tuple[Stmt, ...], orelse: tuple[Stmt, ...], place: Place | None
) -> tuple[Stmt, ...]:
    """The groups that `if condition: ... else: ...` makes. Raises `LanguageError` for no range of threads."""
    first, end = _range(condition, place)
    groups: list[Stmt] = []
    if then:
        count = None if end is None else end - first
        groups.append(ThreadGroup(first, count, vars=(), body=then, place=place))
    if orelse:
        if first and end is not None:
            _refuse(place, "the threads that are left are two ranges")
        rest = (0, first) if end is None else (end, None)
        groups.append(ThreadGroup(*rest, vars=(), body=orelse, place=place))
    return tuple(groups)


def _range(condition: Expr, place: Place | None) -> tuple[int, int | None]:
    """The first thread for which a condition holds, and the first after it for which it does not."""
    first, end = 0, None
    for part in conjuncts(condition):
        limits = _bounds(part)
        if limits is None:
            _refuse(place, "this is no range of threads")
        low, high = limits
        first = max(first, low)
        end = high if end is None else end if high is None else min(end, high)
    if end is not None and end <= first:
        _refuse(place, "no thread is in this range")
    return first, end


def _bounds(part: Expr) -> tuple[int, int | None] | None:
    if not isinstance(part, Arith) or part.op not in _SWAPPED or len(part.args) != 2:
        return None
    op, (left, right) = part.op, part.args
    if isinstance(left, Const):
        op, left, right = _SWAPPED[op], right, left
    bound = const_of(right)
    if bound is None or not is_thread_number(left):
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


__all__ = ["GroupSpec", "get_thread_binding", "groups_of", "names_a_thread", "threads", "ws"]
