"""Integer arithmetic on traced values means what it means in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tilebench.ir import Arith, Call, Cast, Const, Expr, Var, parse_function, show
from tilebench.language import registry
from tilebench.language.tracing.expressions import Value

OPERATORS: dict[str, Callable[..., Any]] = {
    "-": lambda a, *b: a - b[0] if b else -a,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
}


def value_of(expr: Expr, names: dict[str, int]) -> int:
    """The value of an integer expression; all its dtypes are int32 or bool here."""
    match expr:
        case Const():
            return expr.value
        case Var():
            return names[expr.name]
        case Cast():
            return int(value_of(expr.value, names))
        case Call(word=word):
            parts = [value_of(each, names) for each in expr.args]
            return {"min": min, "max": max, "abs": lambda x: abs(x)}[word](*parts)
        case Arith(op=op):
            parts = [value_of(each, names) for each in expr.args]
            if op in ("+", "*"):
                total = parts[0]
                for each in parts[1:]:
                    total = total + each if op == "+" else total * each
                return total
            return OPERATORS[op](*parts)
        case _:
            raise AssertionError(type(expr))


def texts() -> st.SearchStrategy[str]:
    leaf = st.sampled_from(["i", "j"]) | st.integers(-9, 9).map(lambda n: f"({n})")

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        plain = st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
        divisor = st.integers(1, 7) | st.integers(-7, -1)
        divided = st.tuples(inner, st.sampled_from(["//", "%"]), divisor)
        return plain | divided.map(lambda t: f"({t[0]} {t[1]} ({t[2]}))") | inner.map(lambda t: f"(-{t})")

    return st.recursive(leaf, grow, max_leaves=8)


@given(texts(), st.sampled_from(["<", ">=", "=="]), st.integers(-20, 20), st.integers(0, 20))
def test_folded_expressions_keep_their_value(text: str, compare: str, i: int, j: int) -> None:
    names = {"i": Value(Var("i")), "j": Value(Var("j"))}
    whole = f"{text} {compare} 3"
    for each in (text, whole):
        made = eval(each, {}, dict(names))  # noqa: S307
        expected = eval(each, {}, {"i": i, "j": j})  # noqa: S307
        found = value_of(made.expr, {"i": i, "j": j}) if isinstance(made, Value) else made
        assert found == expected


@given(texts())
def test_folded_expressions_print_and_parse_back(text: str) -> None:
    made = eval(text, {}, {"i": Value(Var("i")), "j": Value(Var("j"))})  # noqa: S307
    if not isinstance(made, Value):
        return
    stage = (
        "@T.prim_func\ndef main(A: T.Tensor((4,), T.int32)):\n    with T.Kernel(4, 4) as (i, j):\n"
        f"        A[{show(made.expr)}] = 1\n"
    )
    launch: Any = parse_function(stage, registry()).body[0]
    assert launch.body[0].index == (made.expr,)
