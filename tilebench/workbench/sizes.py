"""Which numbers of a changed line only follow from sizes: then its meaning is what it was.

Two texts of one stage differ in decisions, and in constants that follow from a moved parameter: extents,
strides, trip counts. Two stages of one compilation differ in decisions, and in parameters that were written
as names and are numbers now. Neither is a change of meaning. `extension/src/bench/text/sizes.ts` has the same
rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeGuard

_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
# A number in one of these, or given to one with `=`, is a decision, whatever moved it.
_DECISIONS = frozenset(
    [
        "bytes", "vector", "swizzle", "plan", "pending", "num_stages", "at_stage", "order", "policy", "by",
        "T.Swizzle", "T.Plan", "T.Stage", "T.Instr", "T.float16", "T.bfloat16", "T.float32", "T.float64",
    ]
)  # fmt: skip
# Sums of sizes, which grow by no ratio.
_SUMS = frozenset(["shared_bytes", "offset"])
# A parameter that is a decision itself: what follows from it is no size.
_NO_SIZES = frozenset(["num_stages"])
_MOST_MOVED = 4


@dataclass(frozen=True)
class Sizes:
    """The parameters behind two texts, by name: of the old one and of the new one."""

    before: tuple[tuple[str, Any], ...] = ()
    after: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, before: Mapping[str, Any], after: Mapping[str, Any]) -> Sizes:
        """From the parameters of two records; what cannot be compared is left out."""
        plain = (int, float, str)
        old, new = ([(k, v) for k, v in each.items() if isinstance(v, plain)] for each in (before, after))
        return cls(tuple(old), tuple(new))

    @cached_property
    def _known(self) -> dict[str, Any]:
        """What a name of the old text may stand as in the new one."""
        return dict(self.after)

    @cached_property
    def _ratios(self) -> frozenset[tuple[int, int]]:
        """Products of powers of what moved parameters grew by, as fractions."""
        before = dict(self.before)
        moved: list[tuple[int, int]] = []
        for name, new in self.after:
            old = before.get(name)
            if name not in _NO_SIZES and _is_size(new) and _is_size(old) and new != old:
                moved.append((new, old))
        found: set[tuple[int, int]] = set()
        for powers in product((-2, -1, 0, 1, 2), repeat=min(len(moved), _MOST_MOVED)):
            up: int = 1
            down: int = 1
            for (new, old), power in zip(moved, powers, strict=False):
                grown, was = (new, old) if power > 0 else (old, new)
                up *= int(grown ** abs(power))
                down *= int(was ** abs(power))
            if up != down:
                found.add((up, down))
        return frozenset(found)

    def explain(self, old: str, words: Sequence[str], at: int) -> bool:
        """Whether a word of a line (`words`, without blanks) follows as `old` did, from sizes."""
        new = words[at]
        if _INTEGER.fullmatch(old) and _INTEGER.fullmatch(new):
            around = names_around(words, at)
            if not self._ratios or not _DECISIONS.isdisjoint(around):
                return False
            a, b = _number(old), _number(new)
            # A mask is one less than a size.
            grown = any(b * down == a * up or (b + 1) * down == (a + 1) * up for up, down in self._ratios)
            return grown or not _SUMS.isdisjoint(around)
        value = self._known.get(old)
        return value is not None and new in (str(value), f"T.{value}")


def _number(word: str) -> int:
    return int(word, 16 if word[:2] in ("0x", "0X") else 10)


def _is_size(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def names_around(words: Sequence[str], at: int) -> set[str]:
    """The names in front of brackets around a word, and those that it, or a call around it, is given to."""
    found: set[str] = set()
    depth, behind_comma = 0, False
    for k in range(at - 1, -1, -1):
        word, name = words[k], words[k - 1] if k else ""
        if word in (")", "]"):
            depth += 1
        elif word in ("(", "[") and depth:
            depth -= 1
        elif word in ("(", "["):
            found.add(name)
            behind_comma = False
        elif not depth and word == ",":
            behind_comma = True
        elif not depth and word == "=" and not behind_comma:
            found.add(name)
    return found
