"""While a row is worked on, the next one comes near.

In a loop whose rows are read from an array and then worked on, the work asks for the row after it.
Without that the reads of each row wait for memory anew, and nothing is read during the work.
"""

from __future__ import annotations

from ....ir import Arith, Call, Cast, If, Load, Region, Store, Var, substitute, walk
from ....ir.arith import linear
from ....language.structure import Serial
from ..loops.words import Prefetch, Running, Vectors


def prefetched(loop: Serial) -> Serial:
    """The loop with the request in its first work on a row; as it is where there is none."""
    top = [statement for statement in loop.body if isinstance(statement, Vectors)]
    guarded = [statement for test in loop.body if isinstance(test, If) for statement in test.then]
    reading = [*top, *(statement for statement in guarded if isinstance(statement, Vectors))]
    row = loop.vars[0]
    found = next(((vectors, load) for vectors in reading if (load := _row_read(vectors, row))), None)
    if found is None:
        return loop
    source, load = found
    others = (vectors for vectors in top if vectors is not source and vectors.stop == source.stop)
    work = next((vectors for vectors in others if _computes(vectors)), None)
    if work is None:
        return loop
    ahead = substitute(load, {row.name: row + 1, source.vars[0].name: work.vars[0]})
    hint = Prefetch(Region(ahead.buffer, ahead.index, place=load.place), place=work.place)
    asking = work.but(body=(hint, *work.body))
    return loop.but(body=tuple(asking if statement is work else statement for statement in loop.body))


def _computes(vectors: Vectors) -> bool:
    """Whether a loop does more with its values than move them."""
    values = [each.value for each in vectors.body if isinstance(each, (Store, Running))]
    works = any(isinstance(node, (Call, Arith)) for value in values for node in walk(value))
    return works or any(isinstance(each, Running) for each in vectors.body)


def _row_read(vectors: Vectors, row: Var) -> Load | None:
    """The load of a loop that copies a row of an array into a tile."""
    store = vectors.body[0] if len(vectors.body) == 1 else None
    load = store.value if isinstance(store, Store) else None
    while isinstance(load, Cast):
        load = load.value
    if not isinstance(store, Store) or store.buffer.scope == "global" or not isinstance(load, Load):
        return None
    if load.buffer.scope != "global" or not load.index:
        return None
    *outer, last = (linear(index) for index in load.index)
    by_rows = any(form.coefficient(row) for form in outer) and not last.coefficient(row)
    along = last.coefficient(vectors.vars[0]) == 1
    return load if by_rows and along else None
