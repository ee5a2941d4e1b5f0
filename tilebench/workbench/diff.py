"""What changed between two stages, line by line and word by word.

Stages are written so that unchanged lines are spelled the same; what is left is the decisions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

_WORD = re.compile(r"[^\W\d]\w*(?:\.\w+)*|\d+(?:\.\d+)?|\s+|[^\w\s]")
# A line is called a changed form of another when they are at least so alike: lower, and unrelated
# lines of `threaded` pair up; higher, and an allocation that gained its layout counts as new.
_ALIKE = 0.5
# Pairing looks at every old line for every new one of a block; beyond this product it is skipped.
_MOST_PAIRS = 40_000


@dataclass(frozen=True)
class LineChange:
    """How one line of the new text stands to the old: `same`, `changed` or `new`.

    `spans` are the character ranges that are not in the old line (empty for `same` and `new`);
    `old` is the index of the old line, `removed` old lines that stood before this one and are gone.
    """

    kind: str
    spans: tuple[tuple[int, int], ...] = ()
    old: int | None = None
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class TextDiff:
    """Changes of each line of the new text, and old lines gone after its last one."""

    lines: tuple[LineChange, ...]
    removed_at_end: tuple[str, ...] = ()

    def count(self, kind: str) -> int:
        """Lines of a kind: `same`, `changed`, `new`, or `removed`."""
        if kind == "removed":
            return sum(len(each.removed) for each in self.lines) + len(self.removed_at_end)
        return sum(each.kind == kind for each in self.lines)

    def summary(self) -> str:
        """`+6 ~9 -2`: lines new, changed, gone; `unchanged` when there are none."""
        counts = (
            ("+", self.count("new")),
            ("~", self.count("changed")),
            ("\N{MINUS SIGN}", self.count("removed")),
        )
        return " ".join(f"{sign}{n}" for sign, n in counts if n) or "unchanged"


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
    first, second = _words(old.strip()), _words(new.strip())
    starts, column = [0], len(new) - len(new.lstrip())
    starts[0] = column
    for word in second:
        column += len(word)
        starts.append(column)
    # What both ends share is taken off first: the matcher would tie a closing bracket to any other.
    least = min(len(first), len(second))
    head = next((k for k in range(least) if first[k] != second[k]), least)
    tail = next((k for k in range(least - head) if first[-1 - k] != second[-1 - k]), least - head)
    middle, new_middle = first[head : len(first) - tail], second[head : len(second) - tail]
    spans: list[tuple[int, int]] = []
    for tag, _, _, low, high in SequenceMatcher(None, middle, new_middle, autojunk=False).get_opcodes():
        if tag in ("insert", "replace") and high > low:
            start, end = starts[head + low], starts[head + high]
            if spans and not new[spans[-1][1] : start].strip(" ,"):
                start = spans.pop()[0]
            spans.append((start, end))
    return tuple(spans)


@lru_cache(maxsize=128)
def text_diff(old: str, new: str) -> TextDiff:
    """How `new` came from `old`. Indentation is no change: a stage may wrap what it keeps."""
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
                spans = changed_spans(old_lines[i1 + partner], line)
                out.append(LineChange("changed", spans, i1 + partner, tuple(gone)))
                last = partner + 1
            gone = []
        gone += [each for each in old_lines[i1 + last : i2] if each.strip()]
    return TextDiff(tuple(out), tuple(gone))
