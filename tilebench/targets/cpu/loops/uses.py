"""Who touches each buffer, and how: the marks of every node, gathered by buffer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from ....ir import WRITES, Effect, Function, Node, children, effects_of
from ....language.structure import Parallel

S = TypeVar("S", bound=Node)


@dataclass(frozen=True)
class Use:
    """One touch of a buffer; `loop` is the element-wise loop around it."""

    effect: Effect
    loop: Parallel | None

    @property
    def fills(self) -> bool:
        """Whether the whole buffer is written and nothing of it read."""
        region = self.effect.region
        return self.effect.kind == WRITES and region is not None and region.is_whole


@dataclass
class Uses:
    """All touches of one buffer, in printed order."""

    all: list[Use] = field(default_factory=list[Use])

    def of(self, statement: type[S], name: str) -> list[S]:
        """The statements of a class that touch the buffer by their field `name`."""
        touching = [use.effect for use in self.all if use.effect.field == name]
        return [effect.node for effect in touching if isinstance(effect.node, statement)]

    @property
    def read(self) -> bool:
        """Whether anything looks at the buffer's elements."""
        return any(use.effect.reads for use in self.all)

    @property
    def loops(self) -> list[Parallel]:
        """The element-wise loops that touch it, once each."""
        found: list[Parallel] = []
        for use in self.all:
            if use.loop is not None and all(use.loop is not loop for loop in found):
                found.append(use.loop)
        return found


def uses_of(function: Function) -> dict[str, Uses]:
    """Every use of every buffer, by its name."""
    found: dict[str, Uses] = {}

    def visit(node: Node, loop: Parallel | None) -> None:
        for effect in effects_of(node):
            found.setdefault(effect.buffer.name, Uses()).all.append(Use(effect, loop))
        for child in children(node):
            visit(child, node if isinstance(node, Parallel) else loop)

    visit(function, None)
    return found
