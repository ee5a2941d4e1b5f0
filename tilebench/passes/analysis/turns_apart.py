"""Whether the turns of a loop need nothing of each other, so that they can be done at once."""

from __future__ import annotations

from ...ir import Expr, Load, Store, Var
from ...ir.arith import linear
from ...ir.effects import effects_in
from ...language.structure import Vectorized


def turns_apart(loop: Vectorized) -> bool:
    """Whether a statement can be done for all turns before the next: nothing in it is of another turn."""
    written: dict[str, tuple[Expr, ...]] = {}
    seen: set[str] = set()
    for statement in loop.body:
        touched = effects_in(statement)
        for effect in touched:
            if not isinstance(effect.node, (Load, Store)):
                return False
            name, index = effect.buffer.name, effect.node.index
            if effect.writes and (name in seen or not _moves(index, loop.vars[0])):
                return False
            if not effect.writes and name in written and written[name] != index:
                return False
        for effect in touched:
            seen.add(effect.buffer.name)
            if effect.writes and isinstance(effect.node, Store):
                written[effect.buffer.name] = effect.node.index
    return True


def _moves(index: tuple[Expr, ...], var: Var) -> bool:
    """Whether each turn has an element of its own."""
    return any(linear(part).coefficient(var) for part in index)
