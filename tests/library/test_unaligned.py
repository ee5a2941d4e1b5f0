"""Arrays that start off the alignment, each by an offset of its own: right, and no spills.

A card is not needed: the host is asked for an alignment it has not, so that its calls go the way of a card's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.library import several
from tests.library import test_decode as test_decode_cases
from tests.library import test_training as test_training_cases
from tests.library.cases import (
    ALONE,
    LibraryCase,
    batched,
    grouped,
    product,
    rows,
    scaled,
    scores,
    sizes_of,
    wrong,
)
from tests.library.general import GENERAL, GeneralCase, large
from tests.library.test_right import run_on
from tests.simulated import run_threaded
from tilebench import library
from tilebench.errors import ArgumentError
from tilebench.ir.sizes import for_sizes
from tilebench.library import alignment, calls, decoding, kernel_for, training

OFFSETS = (1, 2, 8, 0, 3)


def moved(array: Any, offset: int) -> Any:
    """The same elements and order of axes, so many elements past a multiple of 16 bytes in a longer array."""
    order = sorted(range(array.ndim), key=lambda k: -array.strides[k])
    memory = array.transpose(order)
    longer = np.full(memory.size + offset + 16, -99).astype(array.dtype)
    skip = -alignment.numpy_pointer(longer) % 16 // array.itemsize
    there = longer[skip + offset : skip + offset + memory.size].reshape(memory.shape)
    there[...] = memory
    view = there.transpose(np.argsort(order))
    assert alignment.numpy_pointer(view) % 16 == offset * array.itemsize % 16
    return view


def around(view: Any) -> Any:
    """All elements of the longer array that a view is of."""
    while view.base is not None:
        view = view.base
    return view


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of which arrays kernels are made, of those that start aligned or of any; the host's alignment is 16."""
    found: list[bool] = []
    monkeypatch.setattr(alignment, "_alignment", lambda kind, target: 16)
    monkeypatch.setattr(calls, "_ready", {})

    def noted(operator: Any, problem: Any, target: Any = None, aligned: bool = True) -> Any:
        found.append(aligned)
        return kernel_for(operator, problem, target, aligned)

    monkeypatch.setattr(calls, "kernel_for", noted)
    return found


CALLED = [
    product("float16", 33, 17, 65, (), b_order=1, activation="relu"),
    product("float32", 33, 17, 65, ("bias",), a_order=1),
    scaled("int8", 33, 17, 65, "uint8", ("scale_b",), a_order=1, b_order=0),
    grouped("bfloat16", 3, 70, 64, 40),
    scores("float16", (2, 1), 33, 70, 64, causal=True, q_order=1, k_order=1, v_order=1, o_order=1),
    rows("softmax", "float16", 3, 130),
    rows("layer_norm", "bfloat16", 3, 130, ("bias",)),
]


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("case", CALLED, ids=str)
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_calls(
    case: LibraryCase, copied: bool, turn: int, asked: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each operand and the result by an offset of its own. Nothing but the result's elements changes."""
    monkeypatch.setattr(alignment, "WORTH_A_COPY", 0 if copied else 1e9)
    before = case.arrays()
    arrays = {name: moved(x, OFFSETS[(k + turn) % 5]) for k, (name, x) in enumerate(before.items())}
    out = moved(case.result(), OFFSETS[turn])
    untouched = {name: around(x).tobytes() for name, x in arrays.items()}
    edges = around(out) == -99
    given = [arrays.get(argument.name) for argument in case.operator.arguments]
    options = {option.name: case.problem.options[option.name] for option in case.operator.options}
    for _ in range(2):  # the second one finds everything chosen
        out[...] = 77
        assert library.call(case.operator, *given, out=out, **options) is out
        assert wrong(out, case.exact(before)) == ""
        assert (around(out)[edges] == -99).all()
    straight = all(alignment.is_aligned(array) for array in (*arrays.values(), out))
    assert asked == [straight or copied]
    assert {name: around(x).tobytes() for name, x in arrays.items()} == untouched
    assert library.call(case.operator, *given, **options).tobytes() == out.tobytes()


def test_what_is_aligned_is_not_copied(asked: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "WORTH_A_COPY", 0)
    monkeypatch.setattr(calls, "write_back", None)
    made: list[Any] = []
    monkeypatch.setattr(calls, "aligned", lambda array: made.append(array) or alignment.aligned(array))
    a, b = (moved(np.ones((16, 16), np.float16), offset) for offset in (0, 1))
    library.matmul(a, a)
    assert (made, asked) == ([], [True])
    library.matmul(a, b)
    assert made[:2] == [a, b]
    assert alignment.aligned(a) is a
    assert alignment.is_aligned(alignment.aligned(b))


def test_a_result_off_the_alignment_is_enough(asked: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same shapes, calls with another `out` go another way."""
    x = moved(np.ones((8, 16), np.float16), 0)
    library.softmax(x, out=moved(x, 0))
    library.softmax(x, out=moved(x, 1))
    library.softmax(x)
    assert asked == [True, False, True]


def test_how_much_is_worth_a_copy() -> None:
    """Products from 768 numbers on; nothing that reads its arrays once."""
    one, memory = np.ones(1), "scale"
    for m, copied in ((16, False), (512, False), (768, True), (8192, True)):
        case = product("float16", m, 8192 if m == 16 else m, 8192 if m == 16 else m, ALONE, b_order=1)
        assert alignment.is_copied(one, case.operator.effort(case.problem)) is copied, m
    softmax = rows("softmax", "float16", 4096, 8192)
    assert not alignment.is_copied(one, softmax.operator.effort(softmax.problem))
    assert not alignment.is_copied(memory, case.operator.effort(case.problem))


def test_copies_hide_no_fault_of_the_callers_arrays(
    asked: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alignment, "WORTH_A_COPY", 0)
    a = moved(np.ones((16, 16), np.float16), 1)
    out = moved(a, 2)
    out.setflags(write=False)
    with pytest.raises(ArgumentError, match="c is written by the kernel but cannot be"):
        library.matmul(a, a, out=out)
    with pytest.raises(ArgumentError, match="shares memory with a"):
        library.matmul(a, a, out=a)


def simulated(kernel: Any, seen: dict[str, Any], _: Any) -> None:
    """In the simulator, which grants a general variant no address; arrays by the offsets that there are."""
    made = kernel.calls.compiled(GENERAL)
    made.reach("threaded")
    there = {name: moved(x, OFFSETS[k % 5]) for k, (name, x) in enumerate(seen.items())}
    run_threaded(for_sizes(made.functions["threaded"], sizes_of(kernel, there)), there, warp=32)
    for name, array in there.items():
        seen[name][...] = array


AMPERE, HOPPER = "cuda:sm_80", "cuda:sm_90a"
SIMULATED = [
    (product("float16", 70, 60, 64, (), b_order=1, activation="gelu"), HOPPER),
    (product("float16", 70, 72, 64, ALONE, a_order=1), AMPERE),
    (scaled("float8_e4m3fn", 20, 40, 80), HOPPER),
    (batched("float16", 2, 70, 72, 64, b_order=1), HOPPER),
    (grouped("float16", 3, 130, 40, 72, b_order=1), HOPPER),
    (scores("float16", (1, 1), 40, 72, 64, causal=True), HOPPER),
    (scores("float16", (1, 1), 40, 40, 128), AMPERE),
    (rows("column_reduce", "float16", 20, 2048, kind="sum"), AMPERE),
    (rows("softmax", "float16", 3, 1024), AMPERE),
]


@pytest.mark.parametrize(("case", "target"), SIMULATED, ids=str)
def test_simulator(case: LibraryCase, target: str) -> None:
    run_on(case, kernel_for(case.operator, case.problem, target, aligned=False), simulated)


@pytest.mark.parametrize(
    ("copied", "target", "which"), [(False, AMPERE, 1), (False, HOPPER, 0), (True, HOPPER, 0)]
)
def test_training(copied: bool, target: str, which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention's logarithms and gradients, by kernels of a card in the simulator."""
    drawn = test_training_cases.drawn
    several.simulate(monkeypatch, training, target)
    made = training.kernel_for
    asked: list[bool] = []
    monkeypatch.setattr(alignment, "_alignment", lambda kind, target: 16)
    monkeypatch.setattr(alignment, "WORTH_A_COPY", 0 if copied else 1e9)
    monkeypatch.setattr(training, "kernel_for", lambda *given: asked.append(given[3]) or made(*given))
    monkeypatch.setattr(
        test_training_cases,
        "drawn",
        lambda case: {n: moved(x, OFFSETS[k]) for k, (n, x) in enumerate(drawn(case).items())},
    )
    test_training_cases.check(test_training_cases.CASES[which])
    assert asked == [copied] * 4


def test_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values are read once and not copied."""
    several.simulate(monkeypatch, decoding, AMPERE)
    monkeypatch.setattr(alignment, "_alignment", lambda kind, target: 16)
    monkeypatch.setattr(decoding, "_slots", lambda kernel, target: 12)
    made = decoding.kernel_for
    asked: list[bool] = []
    monkeypatch.setattr(decoding, "kernel_for", lambda *given: asked.append(given[3]) or made(*given))
    arrays, exact = test_decode_cases.drawn(test_decode_cases.CASES[0])
    given = [None if x is None else moved(x, OFFSETS[k]) for k, x in enumerate(arrays)]
    assert wrong(library.decode(*given), exact) == ""
    assert set(asked) == {False}


# Those that need most registers, of which most spilled with the schedules for aligned arrays. All others are
# compiled by `python -m tests.library.general`.
NEEDY = {
    "matmul 4096x4096x4096 float16 b_order=1 no bias no residual": ("sm_80", "sm_90a"),
    "matmul 128x8192x8192 float16 b_order=1 no bias no residual": ("sm_90a",),
    "scaled_matmul 4096x4096x4096 float8_e4m3fn b_order=1 b_dtype=float8_e4m3fn scale_a_each=True"
    " scale_b_each=True fast_accum=False": ("sm_89", "sm_90a"),
    "int_matmul 4096x4096x4096 int8 b_order=1 b_dtype=int8": ("sm_90a",),
    "batched_matmul 16x2048x2048x2048 float16 b_order=1": ("sm_90a",),
    "grouped_matmul 8192x4096x8x4096 bfloat16 b_order=1": ("sm_90a",),
    "column_reduce 4096x8192 float16": ("sm_75", "sm_89"),
    "attention 4x32x4096x128x8x4096 float16 causal=False": ("sm_80", "sm_89", "sm_90a"),
    "attention 4x32x4096x128x8x4096 float16 causal=True": ("sm_90a",),
    "attention 4x32x4096x96x8x4096 float16 causal=False": ("sm_90a",),
    "attention 4x32x4096x64x8x4096 float16 causal=True": ("sm_80", "sm_90a"),
    "attention_saving 128": ("sm_80",),
    "attention_saving 96": ("sm_90a",),
    "attention_backward 128": ("sm_80", "sm_89"),
    "attention_backward 96 causal": ("sm_90a",),
}
COMPILED = [case for case in large() if case.arch in NEEDY.get(case.name, ())]


def test_all_that_need_most_registers_are_there() -> None:
    assert len(COMPILED) == sum(map(len, NEEDY.values()))


@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_code(case: GeneralCase) -> None:
    """NVRTC takes the text for arrays that start anywhere, and registers are not spilled."""
    assert case.spilled() == (0, 0)
