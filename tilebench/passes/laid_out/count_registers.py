"""Fragments that do not fit the registers of a thread: they work, out of memory, and people should know.

Where warp groups hand registers over, it is told what each has in the end, and its fragments fit in that.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir import Function, Node
from ...language.copy import Copy
from ...language.memory import AllocFragment
from ..analysis.launches import launch_of
from ..analysis.lives import Lives, Span
from ..analysis.register_shares import BlockShares, RegisterShare, register_shares
from ..analysis.thread_groups import Threads, threads_by_statement, users_of_memory
from ..context import Context
from .check_tiles import refuse_too_many

NAME = "count_registers"
Taken = list[tuple[int, Span[AllocFragment]]]


def count_registers(function: Function, context: Context) -> Function:
    """The function as it is, with a remark where its fragments take more registers than a thread has.

    Raises `ResourceError` where a thread cannot have what its layout gives it, `LayoutError` and
    `ResourceError` where groups hand over registers that they cannot.
    """
    taken: Taken = []
    lives = _FragmentLives()
    for span in lives.of(function).values():
        alloc = span.alloc
        if alloc.layout is not None:
            values = alloc.layout.values * alloc.versions
            refuse_too_many(alloc, values, context)
            # Of 4 bytes; an element narrower than a byte is a byte of its own.
            taken.append((-(-max(1, alloc.buffer.dtype.bits // 8) * values // 4), span))
    shares = register_shares(function, context.machine)
    if shares is None:
        _tell(taken, lives, context.machine.sm.max_registers_per_thread, "", context)
        return function
    _tell_shares(shares, launch_of(function).threads, context)
    users = users_of_memory(function, threads_by_statement(function, context.machine))
    for share in shares.groups:
        here = [(n, span) for n, span in taken if _among(users.get(span.alloc.buffer.name, ()), share)]
        most = min(share.registers, context.machine.sm.max_registers_per_thread)
        _tell(here, lives, most, f" of {share.first} to {share.first + share.count - 1}", context)
    return function


class _FragmentLives(Lives[AllocFragment, Span[AllocFragment]]):
    """The lives of fragments, and which take over the registers of another: copies of what ends there, whose
    elements lie alike and are no wider."""

    def __init__(self) -> None:
        super().__init__(AllocFragment, Span[AllocFragment])
        self._copied: dict[str, tuple[str, int]] = {}

    def uses(self, node: Node, token: str = "") -> None:
        if isinstance(node, Copy) and node.src.is_whole and node.dst.is_whole:
            src, dst = (self.lives.get(region.buffer.name) for region in (node.src, node.dst))
            if src is not None and dst is not None and _is_no_wider(dst.alloc, src.alloc):
                self._copied[dst.alloc.buffer.name] = src.alloc.buffer.name, self.now
        super().uses(node, token)

    def takes_over(self, span: Span[AllocFragment], statement: int) -> bool:
        """Whether a fragment begins with that statement in registers that another is done with."""
        source, at = self._copied.get(span.alloc.buffer.name, ("", -1))
        return span.first == statement == at and self.lives[source].last == at


def _is_no_wider(alloc: AllocFragment, other: AllocFragment) -> bool:
    return alloc.layout == other.layout and alloc.buffer.dtype.bits <= other.buffer.dtype.bits


def _tell(taken: Taken, lives: _FragmentLives, most: int, which: str, context: Context) -> None:
    """Most are taken where some fragment begins; what two such hold is not there together elsewhere."""

    def at(statement: int) -> int:
        return sum(
            n for n, span in taken if _holds(span, statement) and not lives.takes_over(span, statement)
        )

    total = max((at(span.first) for _, span in taken), default=0)
    if total > most:
        count, largest = max(taken, key=lambda each: each[0])
        message = f"the fragments of a thread{which} fill {total} registers and it has {most}: what does not "
        message += f"fit lies in memory; {largest.alloc.buffer.name} takes {count}"
        context.remark(NAME, "missed", message, largest.alloc, registers=total)


def _holds(span: Span[AllocFragment], statement: int) -> bool:
    return span.first <= statement <= span.last


def _tell_shares(shares: BlockShares, threads: int, context: Context) -> None:
    last = max((s.statement for s in shares.groups if s.statement), key=lambda s: s.registers)
    told = ", ".join(share.told for share in shares.groups)
    message = f"a thread begins with {shares.entry} registers, and has {told} in the end: "
    message += f"{shares.taken} of the block's {shares.entry * threads}"
    context.remark(NAME, "note", message, last, entry=shares.entry, taken=shares.taken)


def _among(users: Iterable[Threads], share: RegisterShare) -> bool:
    return any(u.first < share.first + share.count and share.first < u.first + u.count for u in users)
