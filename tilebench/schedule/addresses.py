"""Addresses: which node of a kernel a directive means.

A loop is addressed by its variable, a buffer by its name, a gemm by its label or accumulator, a
copy by the buffer it fills. What stands in a macro or helper is `macro/name`, or `name` alone where nothing
else is called so. Where a name repeats, `name#n` counts in the order of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import Place, ScheduleError, nearest
from ..ir import AllocStmt, Function, LoopStmt, Node
from ..ir.stmt import statements
from ..language.copy import Copy, Fill
from ..language.gemm import Gemm

# The front end keeps names unique by a suffix; an address speaks of the name the user wrote.
_SUFFIX = re.compile(r"__\d+$")


@dataclass(frozen=True)
class Candidate:
    """A node that can be addressed: the name its user wrote, with the macros that it is in, and its number
    among its namesakes."""

    name: str
    number: int
    repeated: bool
    node: Node

    @property
    def address(self) -> str:
        return f"{self.name}#{self.number}" if self.repeated else self.name


def user_name(name: str) -> str:
    """The name as the user wrote it, without the suffix that keeps printed names unique."""
    return _SUFFIX.sub("", name)


def _inside(node: Node) -> str:
    """The macros and helpers that a node is written in, outermost first, each with a `/` behind it."""
    chain = () if node.place is None else node.place.chain[:-1]
    return "".join(f"{place.function}/" for place in reversed(chain))


def _named(kind: str, node: Node) -> str | None:
    match node:
        case LoopStmt() if kind == "loop" and node.vars:
            return user_name(node.vars[0].name)
        case AllocStmt() if kind == "buffer":
            return user_name(node.buffer.name)
        case Gemm() if kind == "gemm":
            return node.label or user_name(node.c.buffer.name)
        case Copy() | Fill() if kind == "copy":
            return user_name(node.dst.buffer.name)
        case _:
            return None


def candidates(function: Function, kind: str) -> list[Candidate]:
    """Every node that can be addressed as `kind`, in the order of the source."""
    found = [
        (_inside(node) + name, node)
        for node in statements(function.body)
        if (name := _named(kind, node)) is not None
    ]
    total: dict[str, int] = {}
    for name, _ in found:
        total[name] = total.get(name, 0) + 1
    count: dict[str, int] = {}
    out: list[Candidate] = []
    for name, node in found:
        count[name] = count.get(name, 0) + 1
        out.append(Candidate(name, count[name], total[name] > 1, node))
    return out


def _listed(found: Iterable[Candidate]) -> tuple[tuple[str, Place | None], ...]:
    return tuple((candidate.address, candidate.node.place) for candidate in found)


def resolve(function: Function, kind: str, address: str) -> Candidate:
    """The one node an address means.

    Raises `ScheduleError` that lists the candidates with their lines when none or several fit.
    """
    known = candidates(function, kind)
    name, _, number = address.partition("#")
    same = [candidate for candidate in known if candidate.name == name]
    same = same or [candidate for candidate in known if candidate.name.endswith(f"/{name}")]
    if number:
        same = [candidate for candidate in same if str(candidate.number) == number]
    if len(same) == 1:
        return same[0]
    if same:
        raise ScheduleError(
            "the address {address} of a {kind} is ambiguous", at=function.place, address=address, kind=kind,
            also=_listed(same),
            hint="write one of " + ", ".join(candidate.address for candidate in same),
        )  # fmt: skip
    close = nearest(name, [candidate.name for candidate in known])
    addresses = f"{kind} addresses: " + ", ".join(candidate.address for candidate in known)
    listed = addresses if known else f"it has no {kind} at all"
    raise ScheduleError(
        "the kernel {kernel} has no {kind} {address}", at=function.place, kernel=function.name, kind=kind,
        address=address, also=_listed(known),
        hint=(f"did you mean {close[0]}? " if close else "") + listed,
    )  # fmt: skip
