"""Calling operators: shapes, memory and devices as callers have them, and what is refused, by its name."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilebench import library
from tilebench.errors import ArgumentError, OptionError, TileError
from tilebench.library import checking
from tilebench.library.scaled import sums_of_few_bits
from tilebench.library.schedules import FOLDER, schedule_file
from tilebench.library.table import STEPS

RANDOM = np.random.default_rng(7)


def floats(*shape: int, dtype: Any = np.float32) -> Any:
    return RANDOM.uniform(-1, 1, shape).astype(dtype)


X, W = floats(4, 6), floats(6)
ONES = np.ones((6, 6), np.int8)


def refusal(call: Any) -> str:
    with pytest.raises(TileError) as caught:
        call()
    return str(caught.value)


REFUSED = {
    "another shape": lambda: library.add(X, floats(4, 5)),
    "another size": lambda: library.rms_norm(X, floats(5)),
    "another dtype": lambda: library.add(X, X.astype(np.float16)),
    "no dtype of it": lambda: library.softmax(np.zeros((4, 6), np.int32)),
    "another rank": lambda: library.column_reduce(W),
    "strides": lambda: library.softmax(X[:, ::2]),
    "strides of either order": lambda: library.matmul(floats(4, 12)[:, ::2], floats(6, 5)),
    "another inner size": lambda: library.matmul(X, floats(5, 6)),
    "no word of it": lambda: library.matmul(X, floats(6, 5), activation="silu"),
    "no number": lambda: library.rms_norm(X, eps="small"),
    "no flag": lambda: library.attention(X, X, X, causal=1),
    "no window": lambda: library.attention(X, X, X, window=5),
    "no side of a window": lambda: library.attention(X, X, X, window=(-2, 0)),
    "no option": lambda: library.call(library.operator("rms_norm"), X, epsilon=1e-3),
    "heads": lambda: library.attention(floats(1, 3, 5, 8), floats(1, 2, 5, 8), floats(1, 2, 5, 8)),
    "scales of another number": lambda: library.scaled_matmul(ONES, ONES, floats(5)),
    "scales of another shape": lambda: library.scaled_matmul(ONES[None], ONES, floats(6, 1, 2)),
    "strides of scales": lambda: library.scaled_matmul(ONES, ONES, None, floats(12)[::2]),
    "an integer times a float": lambda: library.scaled_matmul(ONES, ONES.astype(ml_dtypes.float8_e5m2)),
    "a wide factor": lambda: library.int_matmul(ONES, ONES.astype(np.int32)),
    "nothing to add": lambda: library.row_reduce(floats(3, 0)),
    "out of another shape": lambda: library.softmax(X, out=np.zeros((4, 5), np.float32)),
    "out with strides": lambda: library.softmax(X, out=np.zeros((6, 4), np.float32).T),
    "too many": lambda: library.call(library.operator("add"), X, X, X),
    "too few": lambda: library.call(library.operator("layer_norm")),
    "no array": lambda: library.softmax([1.0]),
    "no operator": lambda: library.operator("softmx"),
}
TEXTS = Path(__file__).with_name("refused.txt")


def texts() -> dict[str, str]:
    parts = TEXTS.read_text(encoding="utf-8").split("# ")[1:]
    return {name: text.strip() for name, _, text in (part.partition("\n") for part in parts)}


def test_refused(request: pytest.FixtureRequest) -> None:
    """The exact texts stand in `refused.txt`."""
    found = {name: refusal(call) for name, call in REFUSED.items()}
    if request.config.getoption("--update-golden"):
        body = "\n\n".join(f"# {name}\n{text}" for name, text in found.items())
        TEXTS.write_text(body + "\n", encoding="utf-8")
    assert found == texts()


def test_leading_dimensions_are_one() -> None:
    x = floats(2, 3, 5, 7)
    assert np.allclose(library.row_reduce(x), x.sum(-1), atol=1e-5)
    assert library.row_reduce(W).shape == ()
    assert np.allclose(library.add(x, x), 2 * x)
    a, b, residual = floats(2, 3, 4), floats(4, 5), floats(2, 3, 5)
    assert np.allclose(library.matmul(a, b, residual=residual), a @ b + residual, atol=1e-5)


def test_scales_are_one_or_one_for_each_whatever_their_shape() -> None:
    a, b = (RANDOM.integers(-9, 9, shape).astype(np.int8) for shape in ((2, 3, 4), (4, 5)))
    rows, columns = floats(2, 3), floats(5)
    exact = a.astype(np.float64) @ b
    for shape in ((6,), (2, 3), (2, 3, 1), (1, 2, 3)):
        if shape == (6,):
            with pytest.raises(ArgumentError, match=r"scale_a has the shape \(6,\), which does not fit a"):
                library.scaled_matmul(a, b, rows.reshape(shape))
            continue
        found = library.scaled_matmul(a, b, rows.reshape(shape), columns[None], "float32")
        assert np.allclose(found, exact * rows[:, :, None] * columns, rtol=1e-6)
    one = np.array(0.5, np.float32)
    for scale in (one, one.reshape(1), one.reshape(1, 1)):
        assert np.array_equal(library.scaled_matmul(a, b, scale, scale, "float32"), exact / 4)
    # Of one row and column one number is one for each.
    column = np.ascontiguousarray(b[:, :1])
    found = library.scaled_matmul(a[0, :1], column, one.reshape(1, 1), one, "float32")
    assert found == exact[0, 0, 0] / 4
    assert library.int_matmul(a, b).dtype == np.int32


def test_rows_of_no_group_are_zero_and_ends_never_go_back() -> None:
    a, b = floats(200, 8), floats(4, 8, 5)
    found = library.grouped_matmul(
        a, b, np.int32([70, 30, 140, 150]), out=np.full((200, 5), np.nan, np.float32)
    )
    for number, (first, last) in enumerate([(0, 70), (70, 70), (70, 140), (140, 150)]):
        assert np.allclose(found[first:last], a[first:last] @ b[number], atol=1e-5)
    assert not found[150:].any()
    assert np.allclose(library.grouped_matmul(a, b, np.int32([0, -5, 9999, 0])), a @ b[2], atol=1e-5)
    with pytest.raises(ArgumentError, match="ends of grouped_matmul has elements of int64"):
        library.grouped_matmul(a, b, np.arange(4))


def test_long_sums_of_few_bits() -> None:
    """A large term hides small ones of its own part of a sum, and of no other unless the call allows it."""
    a = np.full((1, 256), 2.0**-3).astype(ml_dtypes.float8_e4m3fn)
    a[0, 0] = 256
    right = sums_of_few_bits(np, a.astype(np.float64), np.ones((256, 1)), 128)
    whole = sums_of_few_bits(np, a.astype(np.float64), np.ones((256, 1)), 256)
    assert right.value == whole.value == 256 + 255 / 8
    assert right.error < 5.0
    assert whole.error > 1.9 * right.error


def test_attention_lies_as_its_queries_do() -> None:
    q = floats(2, 9, 3, 16).transpose(0, 2, 1, 3)
    o = library.attention(q, q, q)
    assert o.shape == (2, 3, 9, 16)
    assert o.transpose(0, 2, 1, 3).flags.c_contiguous
    assert np.allclose(o, library.attention(*[np.ascontiguousarray(q)] * 3), atol=1e-6)


def test_empty_arrays() -> None:
    assert library.add(floats(0), floats(0)).shape == (0,)
    assert library.softmax(floats(0, 5)).shape == (0, 5)
    assert library.transpose(floats(0, 5)).shape == (5, 0)


def test_infinities_and_nan_go_where_the_docstrings_say() -> None:
    nan, inf = np.nan, np.inf
    x = np.float32([[nan, 1, 2], [inf, 1, 2], [-inf, -inf, -inf], [-inf, 0, 0]])
    soft = library.softmax(x)
    assert np.isnan(soft[:3]).all()
    assert soft[3].tolist() == [0, 0.5, 0.5]
    assert np.isnan(library.row_reduce(x)[0])
    assert np.array_equal(library.row_reduce(x, "max"), np.float32([nan, inf, -inf, 0]), equal_nan=True)
    assert np.array_equal(library.column_reduce(x, "min"), np.float32([nan, -inf, -inf]), equal_nan=True)
    product = library.matmul(np.float32([[0, 1]]), np.float32([[inf], [1]]), activation="relu")
    assert np.isnan(product).all()


def test_one_compiled_kernel_for_many_rows() -> None:
    softmax = library.operator("softmax")
    kernels = {library.kernel_for(softmax, softmax.problem(M=m, N=64), "cpu") for m in (1, 77, 4096)}
    assert len(kernels) == 1


def test_every_operator_has_schedules_that_always_choose() -> None:
    for name in (*library.OPERATORS, *STEPS):
        for machine in ("cpu:x", "cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", "other:thing"):
            assert schedule_file(name, machine).rules[-1].when == "", (name, machine)
    known = {path.name.split(".")[0] for path in FOLDER.glob("*.toml")}
    assert known == {*library.OPERATORS, *STEPS}


def test_a_rule_is_the_origin_of_what_it_chooses() -> None:
    softmax = library.operator("softmax")
    kernel = library.kernel_for(softmax, softmax.problem(M=9, N=1000), "cuda:sm_75")
    assert kernel.schedule is not None
    assert kernel.schedule.why == "softmax.toml rule 1: N <= 1024"


def test_names() -> None:
    values = {"OPERATORS", "Operator", "call", "check", "kernel_for", "operator"}
    several = {"attention_backward", "attention_lse", "decode"}
    assert set(library.__all__) - values == set(library.OPERATORS) | several
    with pytest.raises(AttributeError, match="it has OPERATORS"):
        library.nothing  # noqa: B018
    with pytest.raises(OptionError, match="add has no option eps"):
        library.operator("add").problem(n=1, eps=1)
    with pytest.raises(ArgumentError):
        library.add(None, X)
    assert pickle.loads(pickle.dumps(library.add)) is library.add  # noqa: S301


def test_a_program_with_torch_has_the_operations_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first use of a name, since a trace can import nothing; not of a torch without operations."""
    asked: list[str] = []
    monkeypatch.setattr(library, "import_module", lambda name, _: asked.append(name) or Any)
    for torch, names in (
        (None, []),
        (SimpleNamespace(), []),
        (SimpleNamespace(library=SimpleNamespace(custom_op=1)), [".torch_ops"]),
    ):
        monkeypatch.setitem(sys.modules, "torch", torch)
        library._register_for_torch()  # pyright: ignore[reportPrivateUsage]
        assert asked == names


def test_check_compares_every_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """With leading dimensions, operands in either order, and NaN where it is expected."""
    matmul, x = library.operator("matmul"), floats(2, 3, 4, dtype=np.float16)
    found = library.check(matmul, x, floats(5, 4, dtype=np.float16).T, activation="gelu")
    assert found.ok
    assert str(found).startswith("all within bounds: the largest error is ")
    x[1, 2, 3] = np.nan
    assert library.check(library.operator("softmax"), x).ok
    assert library.check(library.operator("row_reduce"), x, kind="max").ok

    def wrong(operator: Any, *arrays: Any, **options: Any) -> Any:
        result = library.call(operator, *arrays, **options)
        result[0, 1] += 0.01
        return result

    monkeypatch.setattr(checking, "call", wrong)
    found = library.check(library.operator("softmax"), X)
    assert not found.ok
    assert str(found).startswith("WRONG: the largest error is 0.01 where ")


def test_what_is_too_large_for_the_result_is_infinite() -> None:
    """300 * 300 has no number of float16, and its sign counts."""
    x = np.full((4, 4), 300.0, np.float16)
    assert library.check(library.operator("matmul"), x, -x).ok
    assert np.isneginf(library.matmul(x, -x)).all()


def test_an_infinity_is_wrong_where_there_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(sign: float) -> Any:
        return lambda operator, *arrays, **options: sign * np.full((4, 4), np.inf, np.float16)

    x = np.full((4, 4), 300.0, np.float16)
    monkeypatch.setattr(checking, "call", wrong(1.0))
    assert not library.check(library.operator("matmul"), x, -x).ok
    assert library.check(library.operator("matmul"), x, x).ok
    assert not library.check(library.operator("matmul"), x, x / 300).ok


def test_a_problem_without_a_size_says_which() -> None:
    with pytest.raises(OptionError, match="a problem of softmax needs N") as caught:
        library.operator("softmax").problem(M=3)
    assert "a size for each of M, N" in str(caught.value)
