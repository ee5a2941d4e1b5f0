"""Loops over rows that something stands between, and loops over vectors with an element a row.

`T.copy(W, w)` between two loops over rows goes in front of both where it touches nothing of the first.
`for i in T.vectors(16): s[i] = T.rsqrt(s[i])` becomes `for i in T.serial(16)` where the rows are long: a
scalar root for each row is nothing beside a row that is read once less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....ir import If, Let, Stmt, Store, const_of, walk
from ....language.structure import Serial
from ..loops.words import Vectors
from .touches import read_in, written_in

# Elements from which a row is long: 16 vectors of float32. A row of attention's scores has 64 or 128, and
# its exponential of one element would cost as much as that of one vector in four.
LONG = 256
# How many statements may stand between two loops: each is compared with what it would be moved past.
FAR = 4


def joins_behind(done: list[Stmt], statement: Stmt, join: Callable[[Stmt, Stmt], Stmt | None]) -> bool:
    """Join one more statement into one of the last of `done`; False where it joins none of them.

    What stands between the two goes in front of the first.
    """
    for k in range(len(done) - 1, max(-1, len(done) - 2 - FAR), -1):
        joined = join(done[k], statement)
        if joined is not None:
            del done[k]
            done.append(joined)
            return True
        if k == 0 or not isinstance(done[k], Vectors) or not isinstance(done[k - 1], Serial):
            return False
        if not all(_commute(done[k - 1], between) for between in done[k:]):
            return False
    return False


def _commute(one: Stmt, other: Stmt) -> bool:
    """Whether neither of two statements writes what the other touches."""
    written = written_in([one]), written_in([other])
    read = read_in(one), read_in(other)
    return not written[0] & (read[1] | written[1]) and not written[1] & read[0]


def as_rows(rows: Serial, single: Vectors) -> Serial | None:
    """A loop over vectors as one over the rows of `rows`, element by element; None where rows are short."""
    lengths = [const_of(each.stop) or 0 for each in rows.body if isinstance(each, Vectors)]
    if max(lengths, default=0) < LONG or not _plain(single.body):
        return None
    return Serial(single.stop, single.vars, single.body, start=single.start, place=single.place)


def _plain(body: Sequence[Stmt]) -> bool:
    nodes = (node for statement in body for node in walk(statement) if isinstance(node, Stmt))
    return all(isinstance(node, (Store, If, Let)) for node in nodes)
