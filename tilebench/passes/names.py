"""Names for what a pass adds: never one that the function already has, whatever it names there."""

from __future__ import annotations

from ..ir import AllocStmt, Function, Let, LoopStmt, WithStmt, walk


class Names:
    """All names of a function, and new ones on request."""

    def __init__(self, function: Function) -> None:
        self.taken = {each.name for each in function.params}
        for node in walk(function):
            match node:
                case AllocStmt():
                    self.taken.add(node.buffer.name)
                case Let():
                    self.taken.add(node.var.name)
                case LoopStmt() | WithStmt():
                    self.taken.update(each.name for each in node.vars)
                case _:
                    pass

    def fresh(self, name: str) -> str:
        """`name`, or `name__2`, `name__3`, ... where it is taken."""
        made, number = name, 1
        while made in self.taken:
            number += 1
            made = f"{name}__{number}"
        self.taken.add(made)
        return made
