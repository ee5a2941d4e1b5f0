"""Texts of deep expressions grow with their depth, and no step walks a part of one twice a level."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.everywhere import everywhere, kernel_of
from tests.waiting import costs_less_than

INTEGERS = 'A: T.Tensor((64, 64), "int32"), O: T.Tensor((64, 64), "int32")'
FLOATS = INTEGERS.replace("int32", "float32")
HALVES = INTEGERS.replace("int32", "float16")


def nested(inner: str, step: str) -> Callable[[int], str]:
    """Expressions by depth: `step` with what is inside as {e} and the number of the step as {k}."""

    def expression(depth: int) -> str:
        text = inner
        for k in range(depth):
            text = step.format(e=text, k=k)
        return text

    return expression


DEEP = {
    "ternary": nested("0", "({k} if A[i, j] > {k} else {e})"),
    "ternary_first": nested("A[i, j]", "({e} + 1 if A[i, j] > {k} else {k})"),
    "ternary_of_loads": nested("0", "(A[i, (j + {k}) % 64] if A[i, j] > {k} else {e})"),
    "ternary_of_rows": nested("0", "(A[(i + {k}) % 64, j] if i > {k} else {e})"),
    "ternary_as_condition": nested("A[i, j] > 0", "(A[i, j] > {k} if {e} else A[i, j] < {k})"),
    "ternary_at_an_edge": nested("0", "(A[(i + {k}) % 64, j] if j < 2 * {k} + 7 else {e})"),
    "least_and_most": nested("A[i, j]", "T.max(T.min({e}, A[i, j] + {k}), {k})"),
    "sum_and_product": nested("A[i, j]", "({e} * 3 - A[i, j])"),
    "index": nested("j", "(({e}) * 3 + i) % 64"),
    "comparison": nested("A[i, j] > 0", "(({e}) == (A[i, j] > {k}))"),
    "bounded": nested("A[i, j] > 0", "not ({e} and j < {k})"),
}
STORED = {"index": "O[i, j] = A[i, {}]", "comparison": "if {}: O[i, j] = 1", "bounded": "if {}: O[i, j] = 1",
          "ternary_as_condition": "if {}: O[i, j] = 1"}  # fmt: skip


def body_of(name: str, depth: int) -> str:
    statement = STORED.get(name, "O[i, j] = {}").format(DEEP[name](depth))
    return f"for i, j in T.Parallel(64, 64):\n    {statement}"


@pytest.mark.parametrize("head", [INTEGERS, FLOATS, HALVES], ids=["integers", "floats", "halves"])
@pytest.mark.parametrize("name", list(DEEP))
def test_texts_grow_with_the_depth(name: str, head: str) -> None:
    sizes: list[int] = []
    for depth in (12, 48):
        kernel = kernel_of(body_of(name, depth), head).using(target="cuda:sm_80")()
        with costs_less_than(10):  # a step that walks a part twice at each level never ends for 48 of them
            text = kernel.stage("cuda")
        sizes.append(len(text.split('extern "C"')[-1]))
    assert sizes[1] < 5 * sizes[0]


@pytest.mark.parametrize("name", list(DEEP))
def test_their_values(name: str) -> None:
    everywhere(body_of(name, 9), INTEGERS)
