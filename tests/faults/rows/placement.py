"""Faults in layouts that kernels give: places of elements, digits of tables, mappings, promises."""

from __future__ import annotations

from ..fault import Fault

PERMUTATION = ("tests/layout/test_permutation.py",)
FITTED = ("tests/layout/test_fitted.py",)
LAYOUTS = ("tests/language/test_layouts.py",)
HINTS = ("tests/language/test_hints.py",)

FAULTS = (
    Fault(
        "placement/any-order-is-a-permutation",
        "as many places as elements are a permutation",
        "tilebench.layout.permutation:Permutation.check",
        "self.fills([e for e, _ in fixed], [p for _, p in fixed])",
        "True",
        PERMUTATION,
    ),
    Fault(
        "placement/digits-of-the-wrong-size",
        "the rest of a digit that is cut is taken by another number",
        "tilebench.layout.permutation:_Places.take",
        "part % left * step",
        "part % size * step",
        PERMUTATION,
    ),
    Fault(
        "placement/numbers-of-32-bits",
        "places of an array past 2^31 elements are counted in 32 bits",
        "tilebench.layout.permutation:_Places.__init__",
        "prod(sizes) >= 2**31",
        "False",
        PERMUTATION,
    ),
    Fault(
        "placement/heads-take-what-moves",
        "a head address takes the extents of the other side that are not 1",
        "tilebench.passes.bounded.element_loops:_element",
        "(1,) * rank + other",
        "(1,) * rank + tuple(n for n in other if n != 1)",
        ("tests/passes/test_texts.py",),
    ),
    Fault(
        "placement/tests-of-the-place",
        "the test of bounds is of the place and not of the index that was written",
        "tilebench.passes.bounded.place_elements:place_elements",
        "if not found:\n    return function",
        "return function",
        LAYOUTS,
    ),
    Fault(
        "placement/the-reference-sees-memory",
        "the reference reads arrays as they lie, whatever their layouts say",
        "tilebench.reference.places:_seen",
        "array.reshape(-1)[order]",
        "array",
        LAYOUTS,
    ),
    Fault(
        "placement/digits-of-a-part",
        "the digits of a table are found in its first run alone",
        "tilebench.layout.fitted:digits",
        "(values != values[places % count] + rest[places // count]).any()",
        "False",
        FITTED,
    ),
    Fault(
        "promises/outside-is-zero",
        "elements outside an array are zero, whatever its safe value",
        "tilebench.passes.bounded.bound_accesses:_Bounder.value",
        "self.safe.get(expr.buffer.name) or zero_of(expr.dtype)",
        "zero_of(expr.dtype)",
        HINTS,
    ),
)
