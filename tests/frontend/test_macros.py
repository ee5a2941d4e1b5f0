"""`@T.macro`: statements written into the kernel where it is called."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere
from tests.frontend.cell import refused, run_cell, stage, trace_body
from tilebench.schedule.addresses import candidates, resolve

SCALE = """
@T.macro
def scale(S: T.SharedBuffer((64, 64), "float32"), factor, op=lambda x: x):
    for i, j in T.Parallel(64, 64):
        S[i, j] = op(S[i, j]) * factor
"""


def test_a_macro_takes_tiles_numbers_and_functions_on_every_road() -> None:
    found = everywhere(
        SCALE
        + """
S = T.alloc_shared((64, 64), "float32")
T.copy(A, S)
scale(S, 2.0)
scale(S, factor=3.0, op=lambda x: T.max(x, 0.0))
T.copy(S, O)
"""
    )
    np.testing.assert_array_equal(found["O"], np.maximum(found["A"] * 2, 0) * 3)


def test_a_parameter_is_the_number_at_the_call_and_a_ref_is_the_variable() -> None:
    found = everywhere("""
        @T.macro
        def add(x: T.Ref, n):
            x = x + n
            x += n
            return x
        @T.macro
        def keep(x, y: T.Ref):
            y = 100.0
            return x
        v = T.alloc_var("float32", init=1.0)
        first = add(v, v + 1)
        before = keep(v, v)
        S = T.alloc_shared((64, 64), "float32")
        T.copy(A, S)
        k = T.alloc_var("int32", init=0)
        second = add(S[k, 1], 10)
        for i, j in T.Parallel(64, 64):
            O[i, j] = S[i, j] + first * 1000 + before * 10000 + v * 100000
    """)
    # v = 1, then 1 + 2 + 2 by reference; keep() gives what v was, and leaves 100 in it.
    wanted = found["A"].copy()
    wanted[0, 1] = wanted[0, 1] + np.float32(10) + np.float32(10)
    np.testing.assert_allclose(found["O"], wanted + np.float32(5000 + 50000 + 1e7), rtol=1e-6)


def test_what_a_macro_returns_is_what_it_was_then() -> None:
    found = everywhere("""
        @T.macro
        def now(x: T.Ref):
            return x
        @T.macro
        def bumped(x: T.Ref):
            x = x + 1
            return x
        v = T.alloc_var("int32", init=1)
        both = now(v) * 10 + bumped(v)
        for i, j in T.Parallel(64, 64):
            O[i, j] = both
    """)
    assert (found["O"] == 12).all()


def test_a_variable_that_a_macro_makes_is_the_callers_and_names_are_the_macros_own() -> None:
    found = everywhere("""
        @T.macro
        def counter(n):
            total = T.alloc_var("int32", init=0)
            for i in T.serial(n):
                total += i
            return total
        i = 7
        total = counter(4)
        other = counter(5)
        total = total + 1
        for r, c in T.Parallel(64, 64):
            O[r, c] = total * 100 + other * 10 + i
    """)
    assert (found["O"] == 7 * 100 + 10 * 10 + 7).all()


def test_a_macro_calls_itself_on_what_python_knows_and_returns_tuples() -> None:
    found = everywhere("""
        @T.macro
        def power(x, n):
            if n == 0:
                return 1.0, n
            rest, _ = power(x, n - 1)
            return x * rest, n
        for i, j in T.Parallel(64, 64):
            cube, n = power(A[i, j], 3)
            O[i, j] = cube + n
    """)
    wanted = found["A"] * (found["A"] * found["A"])
    np.testing.assert_allclose(found["O"], wanted + 3, rtol=1e-6)


def test_a_macro_of_the_jit_function_sees_its_values_and_nonlocal_those_of_the_kernel() -> None:
    space = run_cell("""import tilebench
import tilebench.language as T

@tilebench.jit
def kernel(n=3):
    shift = n * 2
    @T.macro
    def put(B, i):
        B[i] = B[i] + shift
    @T.prim_func
    def main(B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            count = T.alloc_var("int32", init=0)
            @T.macro
            def tick():
                nonlocal count
                count += 5
            tick()
            tick()
            for i in T.Parallel(8):
                put(B, i)
                B[i] += count
    return main
""")
    numbers = np.arange(8, dtype=np.int32)
    space["kernel"].using(target="cpu")(5)(numbers)
    np.testing.assert_array_equal(numbers, np.arange(8) + 10 + 10)


def test_the_eager_form_has_macros_too() -> None:
    space = run_cell("""import tilebench
import tilebench.language as T

@T.macro
def double(src, dst):
    for i in T.Parallel(src.shape[0]):
        dst[i] = src[i] * 2

@tilebench.jit
def twice(A):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32) as bx:
        double(A, B)
    return B
""")
    np.testing.assert_array_equal(
        space["twice"].using(target="cpu")(np.arange(5, dtype=np.float32)), np.arange(5) * 2
    )


def test_methods_are_macros() -> None:
    assert stage(
        "Adder(3).add(I, bx)",
        before="import tilebench.language as T\n"
        "class Adder:\n    def __init__(self, n):\n        self.n = n\n"
        "    @T.inline\n    def add(self, B, i):\n        B[i] = B[i] + self.n\n",
    ) == "I[bx] = I[bx] + 3\n"  # fmt: skip


def test_a_place_has_the_call_and_the_schedule_an_address() -> None:
    traced = trace_body(
        """
        @T.macro
        def load(src):
            S = T.alloc_shared((64, 64), "float16")
            T.copy(src, S)
            for i in T.serial(4):
                I[i] = i
            return S
        S = load(A[0, 0])
        X = load(A[64:128, 0:64])
        for i in T.serial(2):
            I[i] = 1
    """.replace("A[0, 0]", "A[0:64, 0:64]")
    )
    function = traced.function
    assert [c.address for c in candidates(function, "loop")] == ["load/i#1", "load/i#2", "i"]
    assert [c.address for c in candidates(function, "buffer")] == ["load/S#1", "load/S#2"]
    loop = resolve(function, "loop", "load/i#2").node
    assert loop.place is not None
    assert [(each.function, each.text.strip()) for each in loop.place.chain] == [
        ("load", "for i in T.serial(4):"),
        ("main", "X = load(A[64:128, 0:64])"),
    ]


def test_a_changed_macro_is_never_served_from_the_cache() -> None:
    text = """import tilebench
import tilebench.language as T

@T.macro
def put(B, i):
    B[i] = {}

@tilebench.jit
def kernel():
    @T.prim_func
    def main(B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(4):
                put(B, i)
    return main
"""
    first = run_cell(text.format(3), "macro_cell_1")
    numbers = np.zeros(4, np.int32)
    first["kernel"].using(target="cpu")()(numbers)
    assert numbers.tolist() == [3, 3, 3, 3]
    first["put"] = run_cell(text.format(4), "macro_cell_2")["put"]
    first["kernel"].using(target="cpu")()(numbers)
    assert numbers.tolist() == [4, 4, 4, 4]


WRONG = {
    "returns from a branch": (
        "@T.macro\ndef f(x):\n    if x > 1:\n        return 1\n    return 2\nI[0] = f(bx)",
        """language error: a macro returns after its loops and branches, not inside one
  at cell:10, in f
    return 1
    ^^^^^^^^
  called from cell:12, in main
    I[0] = f(bx)
           ^^^^^
  help: make x = T.alloc_var(dtype) before the block, assign x inside, and return x after it""",
    ),
    "calls itself without end": (
        "@T.macro\ndef f(x):\n    f(x + 1)\nf(bx)",
        "language error: the macro f calls itself without end",
    ),
    "another number of arguments": (
        "@T.macro\ndef f(x):\n    I[0] = x\nf(1, 2)",
        """language error: the macro f is not called as it is defined: too many positional arguments
  at cell:10, in main
    f(1, 2)
    ^^^^^^^""",
    ),
    "a number for a reference": (
        "@T.macro\ndef f(x: T.Ref):\n    x = 1\nf(3)",
        """language error: the parameter x is a T.Ref, found 3
  at cell:8, in f
    def f(x: T.Ref):
          ^^^^^^^^
  called from cell:10, in main
    f(3)
    ^^^^
  help: pass x by value, without T.Ref""",
    ),
    "another array than it is said to be": (
        '@T.macro\ndef f(S: T.SharedBuffer((8, 8), "float32")):\n    T.clear(S)\nf(B)',
        """language error: the parameter S is said to have another shape or dtype
  at cell:8, in f
    def f(S: T.SharedBuffer((8, 8), "float32")):
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  called from cell:10, in main
    f(B)
    ^^^^
  expected: [8, 8] of float32
  found: [256, 256] of float32
  help: correct the annotation, or leave it out: a macro takes any array""",
    ),
    "a store under a condition that decides nothing": (
        "@T.macro\ndef f(x):\n    I[0] = x\n    return x\nif bx > 1 and f(bx):\n    I[1] = 1",
        """language error: this does something, and would do it whatever the condition says
  at cell:11, in main
    if bx > 1 and f(bx):
                  ^^^^^
  help: put it under `if`, or on a line of its own before""",
    ),
    "an assignment to a variable around": (
        'v = T.alloc_var("int32")\n@T.macro\ndef f():\n    v = 1\nf()',
        """language error: v is a variable around this macro, which an assignment here does not change
  at cell:10, in f
    v = 1
    ^
  called from cell:11, in main
    f()
    ^^^
it is made here:
  at cell:7, in main
    v = T.alloc_var("int32")
    ^
  help: say `nonlocal v` in the macro, or pass it: v: T.Ref""",
    ),
    "a function that is no macro": (
        "def f():\n    pass\nf()",
        """language error: a function inside a kernel is a macro
  at cell:7, in main
    def f():
    ^^^^^^^^
  help: mark it @T.macro, or define the helper outside the @T.prim_func""",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_macros_are_refused_at_both_lines(what: str) -> None:
    body, said = WRONG[what]
    assert str(refused(body)).startswith(said)


def test_a_macro_outside_a_kernel_says_so() -> None:
    space = run_cell("import tilebench.language as T\n@T.macro\ndef f():\n    pass\n")
    with pytest.raises(
        Exception, match="the macro f is a word of a kernel and means nothing in plain Python"
    ):
        space["f"]()
