"""How many neighbours an access takes at once, by the strides of the array it goes to."""

from __future__ import annotations

import pytest

from tilebench.ir.dtypes import float16
from tilebench.ir.expr import Buffer, Expr, Var
from tilebench.passes.analysis.sites import SiteAccess, vector_of

ROW, COLUMN, LENGTH = Var("i"), Var("j"), Var("n")


@pytest.mark.parametrize(
    ("row_length", "multiples", "vector"),
    [
        (64, {}, 8),
        (36, {}, 4),
        (33, {}, 1),
        (LENGTH, {}, 1),
        (LENGTH, {"n": 2}, 2),
        (LENGTH, {"n": 8}, 8),
        (LENGTH + 4, {"n": 8}, 4),
        (LENGTH * 2, {}, 2),
    ],
    ids=str,
)
def test_a_row_starts_on_a_vector_only_where_its_length_says_so(
    row_length: int | Expr, multiples: dict[str, int], vector: int
) -> None:
    array = Buffer("A", (16, row_length), float16)
    access = SiteAccess(array, (ROW, COLUMN), written=False)
    assert vector_of(access, "j", 16, multiples) == vector
