"""How the registers of a block are shared out among its warp groups, where a kernel hands them over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import LayoutError, ResourceError
from ...ir import Function
from ...ir.stmt import statements
from ...language.groups import WARP_GROUP
from ...language.registers import STEP, SetMaxNreg
from ...machine import Machine
from .launches import launch_of
from .thread_groups import Threads, threads_by_statement


@dataclass(frozen=True)
class RegisterShare:
    """`registers` of each of `count` threads from `first` on, behind their last `statement`."""

    first: int
    count: int
    registers: int
    statement: SetMaxNreg | None = None

    @property
    def told(self) -> str:
        return f"{self.registers} in threads {self.first} to {self.first + self.count - 1}"


@dataclass(frozen=True)
class BlockShares:
    """What each thread of a block has when it begins, and what each warp group has in the end."""

    entry: int
    groups: tuple[RegisterShare, ...]

    @property
    def taken(self) -> int:
        return sum(share.count * share.registers for share in self.groups)


def register_shares(function: Function, machine: Machine) -> BlockShares | None:
    """The shares of a kernel that hands registers over; None where it does not.

    Raises `LayoutError` where part of a warp group would do it, `ResourceError` where there are not as many.
    """
    changes = [s for s in statements(function.body) if isinstance(s, SetMaxNreg)]
    if not changes:
        return None
    _check_machine(changes[0], machine)
    launch = launch_of(function)
    by_statement = threads_by_statement(function, machine)
    entry = registers_at_entry(launch.threads, launch.min_blocks or 1, changes, machine)
    groups = [
        RegisterShare(first, min(WARP_GROUP, launch.threads - first), entry)
        for first in range(0, launch.threads, WARP_GROUP)
    ]
    for change in changes:
        groups = _changed(groups, change, by_statement[id(change)])
    shares = BlockShares(entry, tuple(groups))
    _check_sum(shares, launch.threads)
    return shares


def registers_at_entry(threads: int, blocks: int, changes: Sequence[SetMaxNreg], machine: Machine) -> int:
    """What ptxas gives each thread: all that the block can have, and no more than the most asked for.

    Found by compiling for blocks of 128 to 1024 threads; it needs the launch bound, which the text has.
    """
    most = machine.sm.registers // (threads * blocks) // STEP * STEP
    asked = [change.registers for change in changes if change.increase]
    return min(most, _granted(machine), max(asked, default=_granted(machine)))


def _granted(machine: Machine) -> int:
    """255 are told, and 256 are set aside."""
    return -(-machine.sm.max_registers_per_thread // STEP) * STEP


def _check_machine(change: SetMaxNreg, machine: Machine) -> None:
    if "setmaxnreg" not in machine.features:
        raise LayoutError(
            "threads of {machine} keep the registers that they have", at=change.place, machine=machine.name,
            found="T.set_max_nreg", hint="leave it out for this target: values are the same",
        )  # fmt: skip


def _changed(groups: list[RegisterShare], change: SetMaxNreg, threads: Threads) -> list[RegisterShare]:
    end = threads.first + threads.count
    if threads.first % WARP_GROUP or threads.count % WARP_GROUP:
        raise LayoutError(
            "threads {first} to {last} are no whole warp groups, which hand registers over together",
            at=change.place, first=threads.first, last=end - 1, group=WARP_GROUP,
            expected="{group} threads from a multiple of {group} on, such as with T.ws(0):",
        )  # fmt: skip
    found: list[RegisterShare] = []
    for share in groups:
        if not threads.first <= share.first < end:
            found.append(share)
            continue
        wrong = share.registers > change.registers if change.increase else share.registers < change.registers
        if wrong:
            raise ResourceError(
                "{count} registers are {less} than the {now} that threads {a} to {b} have here",
                at=change.place, count=change.registers, less="fewer" if change.increase else "more",
                now=share.registers, a=share.first, b=share.first + share.count - 1,
                also=[("they have them from here on", share.statement.place)] if share.statement else [],
                hint="give back with is_inc=0" if change.increase else "take more with is_inc=1",
            )  # fmt: skip
        found.append(RegisterShare(share.first, share.count, change.registers, change))
    return found


def _check_sum(shares: BlockShares, threads: int) -> None:
    have = shares.entry * threads
    if shares.taken <= have:
        return
    last = max((s for s in shares.groups if s.statement is not None), key=lambda share: share.registers)
    assert last.statement is not None
    raise ResourceError(
        "a group would wait for ever: all groups together take {taken} registers, and the block has {have}",
        at=last.statement.place, taken=shares.taken, have=have, threads=threads, entry=shares.entry,
        expected="at most {have}: {threads} threads of {entry}",
        listing="; ".join(share.told for share in shares.groups), found="{listing}",
        hint="have the groups that load give back more, or take fewer here",
    )  # fmt: skip
