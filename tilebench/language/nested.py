"""T.Parallel directly inside T.Parallel: one loop over the indices of both."""

from __future__ import annotations

from ..errors import LanguageError
from ..ir import Let, Stmt, Var
from ..ir.stmt import statements
from ..layout import Fragment
from .notes import Note
from .structure import Parallel
from .tracing.builder import Builder, for_tiles, inside_kernel


def enter_parallel(word: str) -> Builder:
    """The running trace for a T.Parallel: outside of another one, or the first thing that it does."""
    builder = inside_kernel(word)
    frame = builder.frames[-1]
    if frame.kind == "parallel" and all(isinstance(each, Let) for each in frame.statements):
        return builder
    return for_tiles(word)


def merged(
    extents: tuple[int, ...], vars: tuple[Var, ...], body: tuple[Stmt, ...], layout: Fragment | None = None,
    width: int | None = None,
) -> Parallel:  # fmt: skip
    """The loop, with the indices of one directly inside, which stands behind names alone and last.

    `layout` and `width` are its mapping and vector width; the mapping of one of two loops is none of both.
    """
    places = [n for n, each in enumerate(body) if isinstance(each, Parallel)]
    if not places:
        deeper = next((each for each in statements(body) if isinstance(each, Parallel)), None)
        if deeper is not None:
            raise LanguageError(
                "the T.Parallel inside this one has an extent that only the running kernel knows",
                at=deeper.place, hint="give one loop all the extents: for i, j in T.Parallel(m, n)",
            )  # fmt: skip
        return Parallel(extents, vars, body, map=layout, coalesced_width=width)
    (first, *_), inner = places, body[places[0]]
    assert isinstance(inner, Parallel)
    if first != len(body) - 1:
        raise LanguageError(
            "a statement stands beside a T.Parallel inside T.Parallel", at=body[first + 1].place,
            also=[("the inner loop is here", inner.place)],
            hint="two loops one after the other, or one over all the extents",
        )  # fmt: skip
    inside = (*body[:first], *inner.body)
    if layout is not None or inner.map is not None:
        text = (
            "T.Parallel(loop_layout=...) is of one of two loops that are one: the compiler chooses a mapping"
        )
        inside = (Note(text, place=inner.place), *inside)
    width = inner.coalesced_width if width is None else width
    return Parallel((*extents, *inner.extents), (*vars, *inner.vars), inside, coalesced_width=width)
