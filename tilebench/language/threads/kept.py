"""What a thread keeps from one run to the next: its row of a tile, or a name that is worked out again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import Buffer, Expr, If, Let, Load, LoopStmt, Region, Stmt, Store, Var, WithStmt, walk
from ...ir.rewrite import rewrite
from ..structure import Parallel
from .block import BlockThreads
from .differing import pure


def with_rows(body: tuple[Stmt, ...], block: BlockThreads, coordinates: tuple[Var, ...]) -> tuple[Stmt, ...]:
    """The statements with `x[i]`, of an array that each thread keeps, as `x[tx, i]`."""
    rows = {name: buffer for name, buffer in block.kept.items() if buffer.rank}

    def change(node: Any) -> Any:
        if isinstance(node, (Load, Store)) and node.buffer.name in rows and node.buffer.scope != "fragment":
            return node.but(buffer=rows[node.buffer.name], index=(*coordinates, *node.index))
        if isinstance(node, Region) and node.buffer.name in rows and node.buffer.scope != "fragment":
            extent = (*((1,) * len(coordinates)), *(node.extent or ()))
            return node.but(buffer=rows[node.buffer.name], start=(*coordinates, *node.start), extent=extent)
        return node

    return tuple(rewrite(statement, change) for statement in body)


class RunNames:
    """Names that a run binds and a later one uses."""

    def __init__(
        self, body: tuple[Stmt, ...], block: BlockThreads, coordinates: tuple[Var, ...], fresh: Any
    ) -> None:
        self.block, self.coordinates, self.fresh = block, coordinates, fresh
        self.runs = [s for s in _all(body) if isinstance(s, Parallel) and s.of_threads]
        self.lets: dict[str, Let] = {}
        self.home: dict[str, int] = {}
        for run in self.runs:
            for statement in run.body:
                if isinstance(statement, Let):
                    self.lets[statement.var.name] = statement
                    self.home[statement.var.name] = id(run)
        self.rows: dict[str, Buffer] = {}
        self.heads = {id(run): self.missing(run) for run in self.runs}

    def missing(self, run: Parallel) -> list[Let]:
        """The names that a run uses and another one binds, with what they are made of, in order."""
        found: dict[str, Let] = {}

        def need(node: Any) -> None:
            for part in walk(node):
                if not isinstance(part, Var) or part.name in found:
                    continue
                let = self.lets.get(part.name)
                if let is None or self.home[part.name] == id(run):
                    continue
                if pure(let.value):
                    need(let.value)
                    found[part.name] = let
                else:
                    found[part.name] = let.but(value=self.row(let))

        for statement in run.body:
            need(statement)
        return list(found.values())

    def row(self, let: Let) -> Expr:
        """What a thread keeps of a name that memory decided."""
        name = let.var.name
        if name not in self.rows:
            like = Buffer(self.fresh(f"{name}_kept"), (), let.var.dtype, "var")
            self.block.keep(like.name, like, let.place)
            self.rows[name] = self.block.kept[like.name]
        return Load(self.rows[name], self.coordinates)

    def write(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements with what runs need of each other."""
        out: list[Stmt] = []
        for statement in body:
            if isinstance(statement, Parallel) and statement.of_threads:
                mine = [s for s in statement.body if isinstance(s, Let) and s.var.name in self.rows]
                for let in mine:
                    buffer = self.rows[let.var.name]
                    allocation = self.block.keep(
                        buffer.name, Buffer(buffer.name, (), buffer.dtype, "var"), let.place
                    )
                    out.append(allocation)
                out.append(statement.but(body=self._run(statement)))
            elif isinstance(statement, (If, LoopStmt, WithStmt)):
                fields = {
                    mark.name: self.write(getattr(statement, mark.name))
                    for mark in statement.marks
                    if mark.mark == "body"
                }
                out.append(statement.but(**fields))
            else:
                out.append(statement)
        return tuple(out)

    def _run(self, run: Parallel) -> tuple[Stmt, ...]:
        body: list[Stmt] = list(self.heads[id(run)])
        used = {
            part.name for statement in (*body, *run.body) for part in walk(statement) if isinstance(part, Var)
        }
        for statement in run.body:
            if isinstance(statement, Let) and pure(statement.value) and statement.var.name not in used:
                continue  # only others use it, and work it out themselves
            body.append(statement)
            if isinstance(statement, Let) and statement.var.name in self.rows:
                buffer = self.rows[statement.var.name]
                body.append(Store(buffer, self.coordinates, statement.var, place=statement.place))
        return tuple(body)


def _all(body: Sequence[Stmt]) -> list[Stmt]:
    found: list[Stmt] = []
    for statement in body:
        found.append(statement)
        if isinstance(statement, (If, LoopStmt, WithStmt)):
            for mark in statement.marks:
                if mark.mark == "body":
                    found += _all(getattr(statement, mark.name))
    return found
