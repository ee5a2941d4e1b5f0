"""Words outside a kernel: dtypes, numbers, knobs, names that are not there."""

from __future__ import annotations

import copy
import json
import math
import operator
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest

import tilebench.language as T
from tilebench.errors import DTypeError, LanguageError, OptionError
from tilebench.ir import Const, Var, show
from tilebench.ir.dtypes import ALL, float16
from tilebench.language.known import ELSEWHERE, HOPPER, LATER, WRITTEN
from tilebench.language.tracing.expressions import Value
from tilebench.plain import to_plain


def test_dtype_words_are_the_irs_dtypes() -> None:
    for name, dtype in ALL.items():
        word = getattr(T, name)
        assert word == dtype
        assert dtype == word
        assert hash(word) == hash(dtype)
        assert word == name
    assert T.float == T.float32
    assert T.half == float16
    assert T.float16 != T.float32
    assert {float16: 1}[T.float16] == 1


def test_a_dtype_is_its_name_wherever_a_name_is_wanted() -> None:
    library = SimpleNamespace(float16=np.float16)
    assert getattr(library, T.float16) is np.float16
    assert np.dtype(T.float16) == np.float16
    assert {"float16": 1}[T.float16] == {T.float16: 1}["float16"] == {T.float16: 1}[float16] == 1
    assert T.float16 in ("float32", "float16")
    for equal, differs in ((operator.eq, operator.ne), (operator.ne, operator.eq)):
        other = "float16" if equal is operator.eq else "float32"
        for a, b in ((T.float16, other), (other, T.float16)):
            assert equal(a, b)
            assert not differs(a, b)
    assert f"{T.float16} {T.float16!r}" == "float16 T.float16"
    assert json.dumps(to_plain({"dtype": T.bfloat16})) == '{"dtype": "bfloat16"}'
    copies = [copy.deepcopy(T.int8), copy.copy(T.int8), pickle.loads(pickle.dumps(T.int8))]  # noqa: S301
    assert all(again is T.int8 for again in copies)


def test_a_dtype_called_converts() -> None:
    assert T.float16(3).expr == Const(3.0, type=float16)
    assert T.int32(2.75).expr == Const(2)
    assert show(T.float32(Value(Var("i"))).expr) == "T.cast(i, T.float32)"
    assert T.float16(math.inf).expr == T.infinity("float16").expr
    with pytest.raises(DTypeError, match="300 is outside the range of uint8"):
        T.uint8(300)


@pytest.mark.parametrize("m", [0, 1, 7, 8, 9, 1000, -9])
@pytest.mark.parametrize("n", [1, 8, 7])
def test_whole_numbers_are_worked_out_at_once(m: int, n: int) -> None:
    assert T.ceildiv(m, n) == math.ceil(m / n)
    assert T.floordiv(m, n) == m // n
    assert T.floormod(m, n) == m % n
    assert T.align_up(m, n) == math.ceil(m / n) * n


def test_functions_of_numbers_give_numbers() -> None:
    assert T.exp2(3) == 8.0
    assert T.rsqrt(4.0) == 0.5
    assert T.max(1, 5, 3) == 5
    assert T.min(2.5, np.float32(1)) == 1
    assert T.clamp(12, 0, 9) == 9
    assert T.pow(2, 5) == 32
    assert T.floor(2.5) == 2
    assert T.if_then_else(True, 1, None) == 1


@pytest.mark.parametrize("name", [n for n, d in ALL.items() if d.is_float])
def test_limits_of_floats(name: str) -> None:
    top = T.max_value(name).expr
    assert isinstance(top, Const)
    as_numpy = np.array(top.value, dtype=ALL[name].numpy)
    assert float(as_numpy) == top.value
    assert math.isfinite(top.value)
    with np.errstate(over="ignore"):
        above = float(np.array(top.value * 1.1).astype(ALL[name].numpy))
    # Of 4 bits all are numbers: what is above is the largest.
    assert not math.isfinite(above) if ALL[name].has_nan else above == top.value == 6.0
    assert T.min_value(name).expr == Const(-top.value, type=ALL[name])


def test_limits_of_integers() -> None:
    assert T.max_value("int8").expr == Const(127, type=ALL["int8"])
    assert T.min_value("uint8").expr == Const(0, type=ALL["uint8"])


def test_numpy_scalars_leave_the_operator_to_us() -> None:
    i = Value(Var("i", type=ALL["float32"]))
    assert show((np.float32(2) * i).expr) == "T.float32(2) * i"
    assert show((i + np.int64(3)).expr) == "i + T.float32(3)"


def test_integer_arithmetic_folds() -> None:
    i = Value(Var("i"))
    assert show((i * 8 + 4 + 4).expr) == "i * 8 + 8"
    assert show((2 * i * 3).expr) == "i * 6"
    assert show((10 - i).expr) == "10 - i"
    assert show((i + 2**40).expr) == "T.cast(i, T.int64) + T.int64(1099511627776)"
    assert show((i**2 << 1).expr) == "i * i << 1"


def test_a_value_answers_no_question_of_pythons() -> None:
    i = Value(Var("i"))
    for ask in (bool, int, float, iter, math.sqrt, lambda x: [1, 2][x]):
        with pytest.raises(LanguageError):
            ask(i)


def test_words_outside_a_kernel_say_so() -> None:
    with pytest.raises(LanguageError, match=r"T\.alloc_shared is a word of a kernel"):
        T.alloc_shared((4, 4), "float16")
    with pytest.raises(LanguageError, match=r"T\.Kernel is a word of a kernel"):
        T.Kernel(4)


def test_knobs() -> None:
    assert T.Knob(64, 128).values == (64, 128)
    assert T.Knob(range(1, 4)).values == (1, 2, 3)
    assert T.knob(["a", "b"]).default == "a"
    with pytest.raises(OptionError, match="at least one value"):
        T.Knob()
    with pytest.raises(OptionError, match="each value once"):
        T.Knob(1, 1)


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match=r"there is no T\.alloc_fragments") as caught:
        _ = T.alloc_fragments  # type: ignore[attr-defined]
    assert "did you mean T.alloc_fragment" in str(caught.value)
    assert not hasattr(T, "alloc_fragments")
    with pytest.raises(AttributeError, match=r"T\.ptx_mma_sp is TileLang's, not here yet"):
        _ = T.ptx_mma_sp  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"T\.wgmma_mma is one of Hopper's words that are not") as caught:
        _ = T.wgmma_mma  # type: ignore[attr-defined]
    assert "T.wgmma_gemm goes on until T.wait_wgmma(n); T.gemm does the same" in str(caught.value)
    with pytest.raises(AttributeError, match=r"T\.tcgen05_gemm is for Blackwell, which is no target here"):
        _ = T.tcgen05_gemm  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("float32x3", "there is no T.float32x3"),
        ("Shuffle", "T.Shuffle is one of the words of vectors that are not here"),
        ("ramp", "T.ramp is the compiler's under TileLang, and no word of kernels"),
        ("AtomicAdd", "T.AtomicAdd is TileLang's, not here yet"),
        ("FloorDiv", "T.FloorDiv is the compiler's under TileLang, and no word of kernels"),
        ("realize", "T.realize is the compiler's under TileLang, and no word of kernels"),
        ("CUDASourceCodeKernel", "T.CUDASourceCodeKernel is TileLang's, not here yet"),
    ],
)
def test_what_there_is_instead(name: str, what: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(T, name)
    assert what in str(caught.value)
    assert ("help: " in str(caught.value)) == (name != "realize")


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("where", "write T.if_then_else(condition, a, b)"),
        ("silu", "write x * T.sigmoid(x)"),
        ("relu", "write T.max(x, 0)"),
        ("reduce_argmax", "T.reduce_min of T.if_then_else(x[i, j] == best[i], j, n)"),
        ("program_id", "with T.Kernel(gx, gy, threads=128) as (bx, by): has the numbers of the block"),
        ("launch_thread", "T.get_thread_binding()"),
    ],
)
def test_what_others_call_it_is_told_in_our_words(name: str, cure: str) -> None:
    """A name that is near by its letters alone says nothing to who looks for a function."""
    with pytest.raises(AttributeError) as caught:
        getattr(T, name)
    assert cure in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_no_word_of_ours_is_said_to_be_missing() -> None:
    assert [name for name in sorted(WRITTEN) if hasattr(T, name)] == []
    assert not set(WRITTEN) & {*ELSEWHERE, *LATER, *HOPPER}
    named = {word for cure in WRITTEN.values() for word in re.findall(r"T\.(\w+)", cure)}
    assert [word for word in sorted(named) if not hasattr(T, word)] == []


def test_what_is_to_come_is_not_here_and_stands_in_one_list() -> None:
    lists = (LATER, set(HOPPER), set(ELSEWHERE))
    assert [name for names in lists for name in sorted(names) if hasattr(T, name)] == []
    assert sum(map(len, lists)) == len(set().union(*lists))


def test_every_word_is_documented() -> None:
    for name in T.__all__:
        word = getattr(T, name)
        if callable(word):
            assert word.__doc__, name
