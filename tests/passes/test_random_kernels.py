"""Random kernels from `tile` down: every stage is sound or the kernel is refused at its line."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.passes.programs import programs
from tests.simulated import card_road, card_words, run_threaded
from tilebench.errors import LanguageError, LayoutError, TileError
from tilebench.ir import Function, parse_function, print_function, verify
from tilebench.passes.context import Context
from tilebench.passes.pipeline import COMMON, TILE_FORMS
from tilebench.reference import run_reference
from tilebench.targets.cuda.machines import machine_of

QUICK = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def lower(text: str, last: str) -> tuple[Function, Function]:
    """The `tile` function and that of stage `last`, each pass's result verified and parsed back."""
    first = function = parse_function(text, card_words(), "kernel")
    verify(first, TILE_FORMS)
    context = Context(machine_of("sm_80"))
    for row in (*COMMON, *card_road()):
        for name, step in row.passes:
            function = step(function, context)
            verify(function)
            assert parse_function(print_function(function).text, card_words()) == function, name
        verify(function, row.forms)
        if row.name == last:
            break
    return first, function


@QUICK
@given(programs())
def test_a_random_kernel_is_laid_out_or_refused_at_its_line(text: str) -> None:
    refused: LayoutError | None = None
    try:
        lower(text, "pipelined")
    except LayoutError as error:
        refused = error
    if refused is not None:
        assert refused.place is not None
        assert "fragment" in refused.message


def random_arrays(function: Function, seed: int) -> dict[str, Any]:
    """Small whole numbers, so that sums are exact in any order and type."""
    rng = np.random.default_rng(seed)
    return {each.name: rng.integers(-2, 3, each.shape).astype(each.dtype.numpy) for each in function.params}


@settings(QUICK, max_examples=30)
@given(programs(), st.integers(0, 3))
def test_a_random_kernel_gives_in_the_simulator_what_it_means(text: str, seed: int) -> None:
    try:
        first, threaded = lower(text, "threaded")
    except TileError:
        return
    arrays = random_arrays(first, seed)
    try:
        expected = run_reference(first, {name: each.copy() for name, each in arrays.items()})
    except LanguageError:
        return  # elements of a T.Parallel that need each other: no meaning to compare with
    run_threaded(threaded, arrays, warp=32)
    for name, want in expected.items():
        np.testing.assert_array_equal(arrays[name], want, err_msg=text)
