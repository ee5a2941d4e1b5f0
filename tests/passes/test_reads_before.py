"""What a statement reads is what was there when it began, also where it writes the same memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.roads import everywhere
from tilebench.errors import IRError
from tilebench.ir import parse_function, verify
from tilebench.language.words import registry
from tilebench.passes.forms import BOUNDED_FORMS, THREADED_FORMS

A, ZEROS = np.arange(16, dtype=np.float32) + 1, np.zeros(16, np.float32)
SHARED = 's = T.alloc_shared((16,), "float32")\nT.copy(A, s)\n'
FRAGMENT = SHARED.replace("alloc_shared", "alloc_fragment")
NUMBERS = 'p = T.alloc_shared((16,), "int32")\nT.fill(p, 3)\nT.clear(O)\n'
EACH = "for i in T.Parallel(16):\n    v = T.alloc_var('int32', init=2)\n"
CASES = {
    "a fill by its own element": (SHARED + "T.fill(s, s[4] * 2.0)\nT.copy(s, O)", [10.0] * 16),
    "a fill of a part": (SHARED + "T.fill(s[0:8], s[3] + s[9])\nT.copy(s, O)", [14.0] * 8 + A[8:].tolist()),
    "a fill of an array": ("T.copy(A, O)\nT.fill(O[0:16], O[2] + 1.0)", [4.0] * 16),
    "a start by an element": (
        NUMBERS + "T.fill(p[p[1] : p[1] + 4], 5)\nfor i in T.Parallel(16): O[i] = p[i]",
        [3.0] * 3 + [5.0] * 4 + [3.0] * 9,
    ),
    "a bound that the body fills": (
        NUMBERS + "for k in T.serial(p[3]):\n    T.fill(p, k)\n    for i in T.Parallel(16): O[i] += p[i] + 1",
        [6.0] * 16,
    ),
    "a bound of a pipelined loop": (
        NUMBERS + "for k in T.Pipelined(p[3]):\n    T.copy(A, O)\n    T.fill(p, 7)\nO[0] = p[0]",
        [7.0, *A[1:].tolist()],
    ),
    "a variable that counts on": (
        'v = T.alloc_var("int32", init=3)\nT.clear(O)\nfor k in T.serial(v):\n    v = v + 2\nO[0] = v',
        [9.0] + [0.0] * 15,
    ),
    "a bound that was just written": (
        NUMBERS + "for k in T.serial(p[3]):\n    for i in T.Parallel(16): O[i] += 1.0", [3.0] * 16,
    ),
    "a copy onwards": (
        SHARED + "T.copy(s[0:8], s[4:12])\nT.copy(s, O)",
        [*range(1, 5), *range(1, 9), *range(13, 17)],
    ),
    "a copy backwards": (
        SHARED + "T.copy(s[4:12], s[0:8])\nT.copy(s, O)",
        [*range(5, 13), *range(9, 17)],
    ),
    "a copy within an array": (
        "T.copy(A, O)\nT.copy(O[0:8], O[4:12])", [*range(1, 5), *range(1, 9), *range(13, 17)],
    ),
    "a copy within a fragment": (
        FRAGMENT + "T.copy(s[0:8], s[4:12])\nT.copy(s, O)", [*range(1, 5), *range(1, 9), *range(13, 17)],
    ),
    "a copy by one further in each turn": (
        SHARED + "for k in T.serial(4):\n    T.copy(s[k : k + 8], s[k + 1 : k + 9])\nT.copy(s, O)",
        [1, 1, 1, 1, *range(1, 9), *range(13, 17)],
    ),
    "a variable of each element": (
        EACH + "    for r in T.serial(v):\n        v = v + r + 1\n    O[i] = v",
        [5.0] * 16,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    body, want = CASES[case]
    assert everywhere(body, A=A, O=ZEROS)["O"].tolist() == want


@pytest.mark.parametrize("forms", [BOUNDED_FORMS, THREADED_FORMS])
def test_the_text_of_a_stage_says_it_by_a_name(forms: object) -> None:
    offset = ", offset=0" if forms is THREADED_FORMS else ""
    text = f"""@T.prim_func
def f(O: T.Tensor((16,), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        p = T.alloc_shared((16,), T.int32{offset})
        for k in T.serial(p[0]):
            p[0] = k
"""
    function = parse_function(text, registry())
    with pytest.raises(
        IRError, match=r"T\.serial reads p, which it writes: give what it reads a name"
    ) as caught:
        verify(function, forms)  # type: ignore[arg-type]
    assert caught.value.place is not None
    assert caught.value.place.line == 5


def test_the_text_of_a_stage_has_no_copy_onto_itself() -> None:
    text = """@T.prim_func
def f(O: T.Tensor((16,), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        T.copy(O[0:8], O[4:12])
"""
    with pytest.raises(IRError, match="reads parts of O that it writes: copy them to a fragment first"):
        verify(parse_function(text, registry()), BOUNDED_FORMS)


@pytest.mark.parametrize(
    "call", ["c, s, c", "s, c, c", "c, c, c", "s, c, c, clear_accum=True", "c, c, c, transpose_A=True"]
)
def test_an_accumulator_is_an_operand_too(call: str) -> None:
    """Whole numbers, so that every order of sums gives the same."""
    size = 40
    square = np.random.default_rng(1).integers(-3, 4, (size, size)).astype(np.float32)
    body = f"""
    s = T.alloc_shared(({size}, {size}), "float32")
    c = T.alloc_fragment(({size}, {size}), "float32")
    for i, j in T.Parallel({size}, {size}):
        s[i, j] = A[i, j]
        c[i, j] = A[i, j] + 1.0
    T.gemm({call})
    T.copy(c, O)
    """
    names = {"s": square, "c": square + 1}
    a, b = (names[part.strip()] for part in call.split(",")[:2])
    old = 0 if "clear" in call else square + 1
    want = old + (a.T if "transpose" in call else a) @ b
    assert np.array_equal(everywhere(body, A=square, O=np.zeros_like(square))["O"], want)
