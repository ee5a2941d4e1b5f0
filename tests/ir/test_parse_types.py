"""What a stage's text gives attributes is of the types that their fields say; extents are numbers."""

from __future__ import annotations

import pytest

from tilebench.errors import IRError
from tilebench.ir import parse_function
from tilebench.language import registry

TEXT = """\
@T.prim_func
def main(A: T.Tensor((128, 64), T.float32)):
    with T.Kernel(2, 3, threads=128) as (bx, by):
        s = T.alloc_shared((8, 4), T.float32)
        for i, j in T.Parallel(8, 4):
            s[i, j] = A[i, j]
"""
EXTENT = "an extent is a whole number from {} to 2147483647"
WRONG = [
    *(
        ("(128, 64)", f"({x}, 64)", EXTENT.format(0))
        for x in ("-128", "128.5", "'x'", "True", "None", "2147483648")
    ),
    *(("(8, 4), T.f", f"({x}, 4), T.f", EXTENT.format(1)) for x in ("0", "-8", "8.0", "'x'")),
    *(
        ("T.Kernel(2", f"T.Kernel({x}", "grid is a whole number or a size")
        for x in ("-2", "2.5", "'x'", "True")
    ),
    ("T.Kernel(2, 3", "T.Kernel(2", "2 names for 1 of grid"),
    *(
        ("threads=128", f"threads={x}", "threads is a whole number")
        for x in ("2.5", "'x'", "None", "True", "(1, 2)")
    ),
    *(("l(8, 4)", f"l({x}, 4)", "extents is a whole number") for x in ("-8", "8.5", "'x'", "None")),
    ("l(8, 4)", "l(8, 4, 2)", "2 names for 3 of extents"),
]


@pytest.mark.parametrize(("old", "new", "what"), WRONG)
def test_what_a_field_does_not_take(old: str, new: str, what: str) -> None:
    assert parse_function(TEXT, registry()) is not None
    with pytest.raises(IRError) as caught:
        parse_function(TEXT.replace(old, new, 1), registry(), "stage")
    assert what in caught.value.message
    assert caught.value.place is not None
    assert caught.value.place.text.strip() in TEXT.replace(old, new, 1)
    assert caught.value.place.line == next(k for k, line in enumerate(TEXT.splitlines(), 1) if old in line)
