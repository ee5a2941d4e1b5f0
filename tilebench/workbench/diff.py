"""What changed between two stages, line by line and word by word.

Stages are written so that unchanged lines are spelled the same; what is left is the decisions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache

from .sizes import Sizes

_WORD = re.compile(r"[^\W\d]\w*(?:\.\w+)*|0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?|\s+|[^\w\s]")
# A line is called a changed form of another when they are at least so alike: lower, and unrelated
# lines of `threaded` pair up; higher, and an allocation that gained its layout counts as new.
_ALIKE = 0.5
# Pairing looks at every old line for every new one of a block; beyond this product it is skipped.
_MOST_PAIRS = 40_000
NO_SIZES = Sizes()


@dataclass(frozen=True)
class LineChange:
    """How one line of the new text stands to the old: `same`, `sized`, `changed` or `new`.

    `spans` are the character ranges that are not in the old line (empty for `same` and `new`), `sizes` those
    that only follow from sizes; a `sized` line has no others.
    `old` is the index of the old line, `removed` old lines that stood before this one and are gone.
    """

    kind: str
    spans: tuple[tuple[int, int], ...] = ()
    old: int | None = None
    removed: tuple[str, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class TextDiff:
    """Changes of each line of the new text, and old lines gone after its last one."""

    lines: tuple[LineChange, ...]
    removed_at_end: tuple[str, ...] = ()

    def count(self, kind: str) -> int:
        """Lines of a kind: `same`, `sized`, `changed`, `new`, or `removed`."""
        if kind == "removed":
            return sum(len(each.removed) for each in self.lines) + len(self.removed_at_end)
        return sum(each.kind == kind for each in self.lines)

    def summary(self) -> str:
        """`+6 ~9 ≈3 -2`: lines new, changed, changed in sizes alone, gone; or `unchanged`."""
        counts = (
            ("+", self.count("new")),
            ("~", self.count("changed")),
            ("\N{ALMOST EQUAL TO}", self.count("sized")),
            ("\N{MINUS SIGN}", self.count("removed")),
        )
        return " ".join(f"{sign}{n}" for sign, n in counts if n) or "unchanged"

    def told(self) -> str:
        """The same in words."""
        counts = ("new", "new"), ("changed", "changed"), ("sized", "only in sizes"), ("removed", "gone")
        said = [f"{n} {word}" for kind, word in counts if (n := self.count(kind)) or kind != "sized"]
        return ", ".join(said)


def _words(line: str) -> list[str]:
    return _WORD.findall(line)


def _alike(old: Counter[str], new: Counter[str], same_start: bool) -> float:
    """Mean of the share of words in common (Dice) and the share of the old line that lives on.

    A decision makes a line longer and keeps what was there, which Dice alone would call unlike. A
    line that starts with the same name (`A_s = ...`, `def ...`) is helped, so that it is found again
    after its parameters became numbers.
    """
    before, total = old.total(), old.total() + new.total()
    if not before or not total:
        return 0.0
    common = (old & new).total()
    # A line of one or two words lives on in many others by chance.
    return common / total + common / (2 * max(before, 4)) + (0.2 if same_start else 0.0)


def _bag(line: str) -> Counter[str]:
    return Counter(word for word in _words(line) if not word.isspace() and word not in "()[],")


def _pair(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """For each new line the old line it is a form of, in order and each at most once."""
    rows, cols = len(old), len(new)
    if rows * cols > _MOST_PAIRS:
        return [None] * cols
    old_bags, new_bags = [_bag(line) for line in old], [_bag(line) for line in new]
    old_starts, new_starts = [_words(line)[:1] for line in old], [_words(line)[:1] for line in new]
    best = [[0.0] * (cols + 1) for _ in range(rows + 1)]
    take = [[False] * (cols + 1) for _ in range(rows + 1)]
    for i in range(1, rows + 1):
        for j in range(1, cols + 1):
            same_start = old_starts[i - 1] == new_starts[j - 1]
            score = _alike(old_bags[i - 1], new_bags[j - 1], same_start)
            value = max(best[i - 1][j], best[i][j - 1])
            if score >= _ALIKE and best[i - 1][j - 1] + score > value:
                value, take[i][j] = best[i - 1][j - 1] + score, True
            best[i][j] = value
    found: list[int | None] = [None] * cols
    i, j = rows, cols
    while i and j:
        if take[i][j]:
            found[j - 1] = i - 1
            i, j = i - 1, j - 1
        elif best[i - 1][j] >= best[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found


def changed_spans(old: str, new: str) -> tuple[tuple[int, int], ...]:
    """Character ranges of `new` whose words `old` has not, neighbours joined.

    >>> changed_spans("T.copy(A, B)", "T.copy(A, B, fill=0)")
    ((11, 19),)
    """
    return _line_change(old, new, NO_SIZES).spans


def _line_change(old: str, new: str, sizes: Sizes) -> LineChange:
    """A changed line: what is new in it, and what of that only follows from sizes."""
    first, second = _words(old.strip()), _words(new.strip())
    starts = [len(new) - len(new.lstrip())]
    for word in second:
        starts.append(starts[-1] + len(word))
    # What both ends share is taken off first: the matcher would tie a closing bracket to any other.
    least = min(len(first), len(second))
    head = next((k for k in range(least) if first[k] != second[k]), least)
    tail = next((k for k in range(least - head) if first[-1 - k] != second[-1 - k]), least - head)
    middle, new_middle = first[head : len(first) - tail], second[head : len(second) - tail]
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    whole = True
    for tag, a1, a2, low, high in SequenceMatcher(None, middle, new_middle, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        sized = _follow(first, second, (head + a1, head + a2), (head + low, head + high), sizes)
        whole &= sized
        if high > low:
            _join(found[sized], starts[head + low], starts[head + high], new)
    kind = "sized" if whole and found[1] else "changed"
    return LineChange(kind, tuple(found[0]), sizes=tuple(found[1]))


def _follow(
    old: list[str], new: list[str], before: tuple[int, int], after: tuple[int, int], sizes: Sizes
) -> bool:
    """Whether words took the place of others as sizes do: each of them explained, and none a decision."""
    was = [word for word in old[slice(*before)] if not word.isspace()]
    places = [at for at in range(*after) if not new[at].isspace()]
    if len(was) != len(places) or not was:
        return False
    bare = [at for at in range(len(new)) if not new[at].isspace()]
    names = [new[at] for at in bare]
    return all(
        word == new[at] or sizes.explain(word, names, bare.index(at))
        for word, at in zip(was, places, strict=True)
    )


def _join(spans: list[tuple[int, int]], start: int, end: int, line: str) -> None:
    """A span more; one with its neighbour where only blanks and commas stand between."""
    if spans and not line[spans[-1][1] : start].strip(" ,"):
        start = spans.pop()[0]
    spans.append((start, end))


@lru_cache(maxsize=128)
def text_diff(old: str, new: str, sizes: Sizes = NO_SIZES) -> TextDiff:
    """How `new` came from `old`. Indentation is no change: a stage may wrap what it keeps.

    `sizes` are the parameters behind both: what only follows from them is told apart.
    """
    old_lines, new_lines = old.splitlines(), new.splitlines()
    bare_old, bare_new = [line.strip() for line in old_lines], [line.strip() for line in new_lines]
    out: list[LineChange] = []
    gone: list[str] = []
    matcher = SequenceMatcher(None, bare_old, bare_new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for step in range(j2 - j1):
                out.append(LineChange("same", (), i1 + step, tuple(gone)))
                gone = []
            continue
        pairs = _pair(bare_old[i1:i2], bare_new[j1:j2])
        last = 0
        for step, partner in enumerate(pairs):
            line = new_lines[j1 + step]
            if partner is None:
                kind = "new" if line.strip() else "same"
                out.append(LineChange(kind, (), None, tuple(gone)))
            else:
                gone += [each for each in old_lines[i1 + last : i1 + partner] if each.strip()]
                change = _line_change(old_lines[i1 + partner], line, sizes)
                out.append(replace(change, old=i1 + partner, removed=tuple(gone)))
                last = partner + 1
            gone = []
        gone += [each for each in old_lines[i1 + last : i2] if each.strip()]
    return TextDiff(tuple(out), tuple(gone))
