"""`while`, `break` and `continue` on every road; the same statements, run by Python, say what is right."""

from __future__ import annotations

from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.everywhere import arrays_of, everywhere, kernel_of
from tilebench.errors import LanguageError
from tilebench.simulator.refusal import SimulationError

HEAD = 'A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")'


def first_value(dtype: str, init: int = 0) -> int:
    return init


# What the words of these kernels are to Python.
PYTHON = SimpleNamespace(serial=range, unroll=range, Pipelined=range, Parallel=range, alloc_var=first_value)


def as_python_does(body: str) -> None:
    """The kernel leaves what the same statements leave that Python runs."""
    function = kernel_of(body, HEAD).using(target="cpu")()
    given = arrays_of(function.compilation.functions["tile"])
    a, o = given["A"].copy(), given["O"].copy()
    exec(compile(dedent(body), "body", "exec"), {"T": PYTHON, "A": a, "O": o, "range": range})
    assert everywhere(body, HEAD)["O"].tolist() == o.tolist()


LOOPS = [
    "for i in T.serial(64):",
    "for i in range(60, 3, -3):",
    "for i in T.unroll(6):",
    "for i in T.Pipelined(20):",
]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_turn_that_ends_and_a_loop_that_ends(loop: str) -> None:
    as_python_does(f"""
        n = T.alloc_var("int32", init=0)
        {loop}
            if A[i] == 3:
                continue
            if A[i] == 4:
                break
            n = n + A[i]
            O[i] = n
        O[63] = n
    """)


@pytest.mark.parametrize("loop", LOOPS)
def test_ways_out_under_several_branches(loop: str) -> None:
    as_python_does(f"""
        n = T.alloc_var("int32", init=0)
        {loop}
            if A[i] > 0:
                n = n + 1
                if A[i] > 2:
                    if A[i] == 4:
                        n = n + 100
                        continue
                    n = n + 10
                elif n > 300:
                    break
                O[i] = n
            else:
                if A[i] == -2:
                    continue
                O[i] = -n
            O[i] = O[i] + 5
        O[63] = n
    """)


def test_nested_loops_are_left_one_at_a_time() -> None:
    as_python_does("""
        n = T.alloc_var("int32", init=0)
        for i in T.serial(8):
            if A[i] == -3:
                break
            for j in range(7, -1, -1):
                if A[j] == i:
                    continue
                if j + i == 9:
                    break
                for k in T.unroll(3):
                    if k == A[i]:
                        break
                    n = n + k + 1
                n = n + 7
            O[i] = n
        O[63] = n
    """)


def test_what_follows_a_certain_end_is_not_there() -> None:
    as_python_does("""
        for i in T.serial(64):
            if A[i] > 1:
                O[i] = 1
                continue
                O[i] = 2
            else:
                O[i] = 3
                break
            O[i] = 4
    """)


def test_while_by_a_scalar_and_by_an_element() -> None:
    as_python_does("""
        n = T.alloc_var("int32", init=0)
        while n < 10:
            if A[n] > 2:
                n = n + 3
                continue
            O[n] = A[n] + 1
            n = n + 1
        while A[n] != 4:
            n = n + 1
            if n > 40:
                break
        O[63] = n
        while n > 1000:
            n = n + 1
        while True:
            n += 1
            if n % 17 == 0:
                if n < 30:
                    continue
                if A[1] > 20:
                    break
                elif A[2] < 100:
                    break
            O[n % 60] += 1
        O[62] = n
    """)


def test_a_condition_is_looked_at_before_each_turn() -> None:
    as_python_does("""
        O[0] = 5
        while O[0] > 0:
            O[0] = O[0] - 2
            O[1] = O[0]
    """)


def test_each_element_leaves_when_its_own_loop_ends() -> None:
    as_python_does("""
        for i in T.Parallel(64):
            if A[i] == 3:
                continue
            k = T.alloc_var("int32", init=0)
            s = T.alloc_var("int32", init=0)
            while k < A[i]:
                k += 1
                if k == 2:
                    continue
                s = s + k
            for j in T.serial(10):
                for q in T.serial(3, -1, -1):
                    if q == A[j]:
                        break
                    s += q
                if j > A[i]:
                    break
                s += 1
            O[i] = s
    """)


def test_a_nan_is_on_neither_side() -> None:
    found = everywhere(
        """
        for i in T.Parallel(8):
            O[i] = 0.0
            if A[i] < 0:
                continue
            O[i] = 1.0
        """,
        'A: T.Tensor((8,), "float32"), O: T.Tensor((8,), "float32")',
        A=np.array([np.nan, -1, 0, 1, np.nan, -np.inf, np.inf, -0.0], np.float32),
    )
    assert found["O"].tolist() == [1, 0, 1, 1, 1, 0, 1, 1]


def test_a_shared_tile_decides_for_the_whole_block() -> None:
    body = """
        S = T.alloc_shared((64,), "int32")
        F = T.alloc_fragment((64,), "int32")
        T.copy(A, S)
        T.clear(F)
        n = T.alloc_var("int32", init=0)
        while S[0] < 20:
            n = n + 1
            if n == 7:
                break
            T.copy(S, F)
            for i in T.Parallel(64):
                F[i] = F[i] + 3
            T.copy(F, S)
            if S[1] > 9:
                continue
            S[2] = n
        T.copy(S, O)
    """
    found = everywhere(body, HEAD)
    s, n = found["A"].copy(), 0
    while s[0] < 20:
        n += 1
        if n == 7:
            break
        s += 3
        if s[1] > 9:
            continue
        s[2] = n
    assert found["O"].tolist() == s.tolist()


def test_an_element_at_a_place_that_changes_meanwhile() -> None:
    found = everywhere("""
        S = T.alloc_shared((64,), "int32")
        T.copy(A, S)
        n = T.alloc_var("int32", init=0)
        S[n + 1] = 77
        n = n + 1
        for i in T.Parallel(64):
            O[i] = S[n] + i
        while n < 5:
            S[n + 1] = S[n] + 1
            n = n + 1
        T.copy(S[4:6], O[4:6])
    """, HEAD)["O"]  # fmt: skip
    assert found.tolist() == [*range(77, 81), 80, 81, *range(83, 77 + 64)]


GEMM = 'A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float32")'
PRODUCT = """
    a = T.alloc_shared((64, 16), "float32")
    b = T.alloc_shared((16, 64), "float32")
    c = T.alloc_fragment((64, 64), "float32")
    T.clear(c)
    for k in T.Pipelined(4, num_stages=3):
        if k == 1:
            continue
        if k == 3:
            break
        T.copy(A[0, k * 16], a)
        T.copy(B[k * 16, 0], b)
        T.gemm(a, b, c)
    T.copy(c, O)
"""


def test_a_pipelined_loop_that_is_left_brings_its_tiles_in_order() -> None:
    found = everywhere(PRODUCT, GEMM, exact=False)
    a, b = found["A"].astype(np.float64), found["B"].astype(np.float64)
    want = a[:, :16] @ b[:16] + a[:, 32:48] @ b[32:48]
    np.testing.assert_allclose(found["O"], want, rtol=1e-5, atol=1e-5)
    kernel = kernel_of(PRODUCT, GEMM).using(target="cuda:sm_90a")()
    kernel.stage("cuda")
    assert any(
        "num_stages=3 has no effect: the loop may be left" in r.message for r in kernel.record().remarks
    )


def test_a_nest_is_left_whole() -> None:
    found = everywhere("""
        n = T.alloc_var("int32", init=0)
        for i, j in T.grid(5, 6):
            if i * j == 6:
                break
            n = n + 1
        O[0] = n
    """, HEAD)["O"]  # fmt: skip
    assert found[0] == 12 + 3


def test_loops_that_python_runs() -> None:
    found = everywhere("""
        for k in [1, 2, 3, 4]:
            if k == 2:
                continue
            if k == 4:
                break
            O[k] = 100 + k
        O[0] = k
    """, HEAD)["O"]  # fmt: skip
    assert found[:5].tolist() == [4, 101, found[2], 103, found[4]]
    assert 102 not in found


BEFORE = (
    "`break` here depends on the running kernel, and Python runs this loop before: it writes every turn out"
)
ERRORS = [
    ("while True:\n    O[0] = 1", "this `while` has no end", "leave it with `break`"),
    (
        "n = T.alloc_var('int32', init=0)\nwhile n < 4:\n    O[0] = n",
        "nothing in this `while` changes its condition",
        "keep what changes in T.alloc_var, made before the loop, or leave it with `break`",
    ),
    (
        "for i in T.Parallel(64):\n    if A[i] > 0:\n        break\n    O[i] = 1",
        "`break` cannot leave T.Parallel: its iterations run in no order",
        "`continue` ends one iteration; T.serial runs them in order",
    ),
    (
        "for k in [0, 1]:\n    if A[k] > 0:\n        break\n    O[k] = 1",
        BEFORE,
        "loop with T.serial(n) or T.unroll(n)",
    ),
    (
        "for i in T.serial(4):\n    with T.threads(0, 32):\n        continue\n    O[i] = 1",
        "some threads of the block would leave this loop, and others go on in it",
        "tile operations are done by all threads together: let every thread take the same turns",
    ),
    (
        "for i in T.serial(4):\n    O[i] = 1\nelse:\n    O[0] = 1",
        "a loop of the language has no `else`",
        "",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message", "hint"), ERRORS)
def test_what_is_refused(body: str, message: str, hint: str) -> None:
    with pytest.raises(LanguageError) as error:
        kernel_of(body, HEAD).using(target="cpu")()
    assert error.value.message == message
    assert error.value.hint == hint
    assert error.value.place is not None


ENDLESS = """
    n = T.alloc_var("int32", init=1)
    while n > 0:
        n = n % 5 + 1
    O[0] = n
"""


def test_a_loop_without_end_is_refused_by_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.simulated import run_threaded
    from tilebench.simulator import control

    monkeypatch.setattr(control, "MOST_TURNS", 500)
    kernel = kernel_of(ENDLESS, HEAD).using(target="cuda:sm_80")()
    kernel.stage("cuda")
    function = kernel.compilation.functions["threaded"]
    with pytest.raises(SimulationError, match="this loop has taken 500 turns and has no end in sight"):
        run_threaded(function, arrays_of(function), warp=32)


def test_a_loop_without_end_can_be_interrupted() -> None:
    import signal

    kernel = kernel_of(ENDLESS, HEAD).using(target="cpu")()
    given: dict[str, Any] = arrays_of(kernel.compilation.functions["tile"])

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            kernel(given["A"], given["O"])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_loop_without_end_costs_a_measurement_and_no_more() -> None:
    import importlib

    from tilebench.errors import TileError

    kernel = kernel_of(ENDLESS, HEAD).using(target="cpu")()
    worker = importlib.import_module("tilebench.runtime.worker").default_worker()
    try:
        measure = importlib.import_module("tilebench.kernel.measuring.measure").measure_kernel
        with pytest.raises(TileError, match="did not finish in 3 s and was ended"):
            measure(kernel, check=False, timeout=3)
        other = kernel_of("O[0] = A[0]", HEAD).using(target="cpu")()
        assert measure(other, check=False, seconds=0.01).seconds > 0
    finally:
        worker.close()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_code_is_made_of_every_form(arch: str) -> None:
    for body in (ENDLESS, *(f"{loop}\n    if A[i] > 2:\n        break\n    O[i] = A[i]" for loop in LOOPS)):
        kernel_of(body, HEAD).using(target=f"cuda:{arch}")().reach_code()


THREADS = 'A: T.Tensor((64,), "int32"), O: T.Tensor((128,), "int32")'


def test_threads_meet_in_a_loop_that_all_of_them_leave_together() -> None:
    found = everywhere(
        """
        tx = T.get_thread_binding()
        S = T.alloc_shared((128,), "int32")
        S[tx] = tx
        T.sync_threads()
        n = T.alloc_var("int32", init=64)
        while n > 0:
            if tx < n:
                S[tx] = S[tx] + S[tx + n]
            T.sync_threads()
            n = n // 2
            if n == 1:
                break
        O[tx] = S[0] + S[1]
        """,
        THREADS,
    )
    assert found["O"].tolist() == [128 * 127 // 2] * 128


def test_each_thread_leaves_its_own_loop() -> None:
    found = everywhere(
        """
        tx = T.get_thread_binding()
        n = T.alloc_var("int32", init=0)
        while n < tx:
            n = n + 1
            if n == 50:
                break
        for k in T.serial(64):
            if A[k] > tx - 2:
                continue
            n += A[k]
        O[tx] = n
        """,
        THREADS,
    )
    a = found["A"]
    assert found["O"].tolist() == [min(tx, 50) + int(a[a <= tx - 2].sum()) for tx in range(128)]
