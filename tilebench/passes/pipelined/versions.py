"""Statements pointed at one version of ringed tiles, with a wait of their own or without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import Expr, Load, Region, Stmt, Store, rewrite
from ...language.copy import Copy
from ...language.lowered.decisions import Instr
from ...language.lowered.tokens import Commit, Wait


def at_version(node: Any, names: set[str], version: Expr) -> Any:
    """The node with every ringed buffer pointed at one version, and its stage of the plan used up."""

    def change(below: Any) -> Any:
        if getattr(below, "at_stage", None) is not None:
            return below.but(at_stage=None)
        if isinstance(below, (Region, Load, Store)) and below.buffer.name in names:
            return below.but(version=version)
        return below

    return rewrite(node, change)


def without_waits(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The body without commits and waits for its own copies, which got them where they stood."""
    tokens = {copy.token for copy in body if isinstance(copy, Copy) and copy.at_stage and copy.token}
    return tuple(s for s in body if not (isinstance(s, (Commit, Wait)) and s.token in tokens))


def waited(statement: Any) -> tuple[Stmt, ...]:
    """An asynchronous operation that is waited for at once, under a token of its own."""
    token = statement.token or f"{statement.word}_{_written(statement)}"
    place, by = statement.place, Instr(statement.by.name)
    return (
        statement.but(token=token),
        Commit(token, by=by, place=place),
        Wait(token, by=by, place=place),
    )


def _written(statement: Any) -> str:
    target = getattr(statement, "dst", None) or getattr(statement, "c", None)
    return target.buffer.name if isinstance(target, Region) else "work"
