"""Faults in layouts: fragments, swizzles, shared layouts, and what is computed of them."""

from __future__ import annotations

from ..fault import Fault

ANALYSIS = ("tests/layout/test_analysis.py",)
SHARED = ("tests/layout/test_shared.py",)
FRAGMENT = ("tests/layout/test_fragment.py",)

FAULTS = (
    Fault(
        "layout/swizzle-shift",
        "a swizzle shifts by one bit less",
        "tilebench.layout.swizzle:Swizzle.__call__",
        "self.shift",
        "self.shift - 1",
        ANALYSIS,
    ),
    Fault(
        "layout/swizzle-of-an-expression",
        "the expression of a swizzle is another permutation than its numbers",
        "tilebench.layout.address:swizzle_expr",
        "Const(swizzle.shift)",
        "Const(swizzle.shift - 1)",
        ("tests/layout/test_shared.py", "tests/passes/test_to_threads.py"),
    ),
    Fault(
        "layout/swizzle-tears-vectors",
        "a swizzled layout promises vectors that it tears",
        "tilebench.layout.shared:SharedLayout.vector",
        "1 << self.swizzle.base",
        "2 << self.swizzle.base",
        SHARED,
    ),
    Fault(
        "layout/cosize-without-the-swizzle",
        "a buffer ends where its offsets before the swizzle end",
        "tilebench.layout.shared:SharedLayout.cosize",
        "self.swizzle.granule if self.swizzle is not None else 1",
        "1",
        SHARED,
    ),
    Fault(
        "layout/atoms-without-all-rows",
        "a panel ends before the 8 rows of its last atom",
        "tilebench.layout.shared:atom_layout",
        "-(-shape[slow] // 8) * 8",
        "shape[slow]",
        SHARED,
    ),
    Fault(
        "layout/digit-of-a-panel",
        "the number of a panel is cut to its first digit",
        "tilebench.layout.address:_along",
        "unit *= extent",
        "unit *= 2",
        SHARED,
    ),
    Fault(
        "layout/banks-are-shared-by-words",
        "lanes that read one word count as conflicts",
        "tilebench.layout.analysis:bank_conflicts",
        "_distinct(touched)",
        "touched >= 0",
        ANALYSIS,
    ),
    Fault(
        "layout/reduced-values-stay",
        "a reduced dimension keeps its registers",
        "tilebench.layout.fragment:Fragment.reduce",
        "mode[1] != dim",
        "True",
        FRAGMENT,
    ),
    Fault(
        "layout/ghosts-are-real",
        "ghost elements of a fragment count as true ones",
        "tilebench.layout.fragment:Fragment.real",
        "inside &= coordinate < extent",
        "inside &= coordinate < extent + 1",
        FRAGMENT,
    ),
    Fault(
        "layout/replicas-all-own",
        "every replica of an element owns it",
        "tilebench.layout.fragment:Fragment.owners",
        "dim == REPLICATED",
        "False",
        FRAGMENT,
    ),
    Fault(
        "layout/odd-parts-lie-over-their-bits",
        "three or five times a power of two of neighbours begin where the first of them does",
        "tilebench.layout.in_warp:_odd_part",
        "step * power",
        "step",
        ("tests/passes/test_choose_maps.py::test_pairs_of_rows_of_odd_multiples_become_vectors_too",),
    ),
)
