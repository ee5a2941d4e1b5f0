"""Hints of TileLang's about registers of warp groups, and the scope "local" of a fragment."""

from __future__ import annotations

import numpy as np

from tests.everywhere import everywhere


def test_hints_that_hold_anyway() -> None:
    found = everywhere(
        """
        base = T.alloc_fragment((1,), "int32", "local")
        T.no_set_max_nreg()
        T.disable_warp_group_reg_alloc()
        base[0] = 0
        for i, j in T.Parallel(64, 64):
            O[i, j] = A[j, i + base[0]]
        """
    )
    np.testing.assert_array_equal(found["O"], found["A"].T)
