"""A manifest is checked when it is made, and its rows of intrinsics when a kernel reaches them."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest

import tilebench
from tilebench.errors import TargetError
from tilebench.ir import OpStmt, ScalarFunction, Word, node, same_as_first
from tilebench.language.copy import Copy
from tilebench.language.lowered.threads import SyncWarp
from tilebench.language.stages import THREAD
from tilebench.passes.gpu_road import GPU
from tilebench.simulator.words import MEANINGS
from tilebench.targets import EmitStep, Intrinsic, manifest
from tilebench.targets.null import manifest as null


@node
class Nap(OpStmt):
    """A word that a target brings."""

    word = "nap"
    stages = THREAD


@node
class Lost(OpStmt):
    """A word that says no stage."""

    word = "lost"


def _nothing(*_: Any) -> None: ...


NAP = Intrinsic(Nap, _nothing, _nothing)


def refused(**changes: Any) -> str:
    with pytest.raises(TargetError) as caught:
        replace(null, **changes)
    return str(caught.value)


def test_each_stage_has_a_name_of_its_own() -> None:
    listing = null.steps[0]
    assert refused(steps=(listing, listing)) == (
        "target error: target null has two stages called listing\n"
        "  found: listing behind source, tile, scheduled, bounded, listing"
    )
    assert "two stages called bounded" in refused(steps=(EmitStep("bounded", "c", _nothing),))
    assert "two stages called threaded" in refused(road=GPU, steps=(EmitStep("threaded", "c", _nothing),))
    assert "has no step" in refused(steps=())


def test_a_word_of_a_target_is_a_statement_that_nobody_else_claims() -> None:
    assert "T.copy is claimed by" in refused(road=GPU, words=(("copy", Word(Nap)),))
    assert "T.na-p of target null is no word for a statement" in refused(words=(("na-p", Word(Nap)),))
    assert refused(words=(("lost", Word(Lost)),)) == (
        "target error: T.lost of target null may stand in none of its stages\n"
        "  expected: `stages` of its class with one of tile, scheduled, bounded"
    )
    assert "T.nap of target null may stand in none" in refused(words=(("nap", Word(Nap)),))
    assert replace(null, road=GPU, words=(("nap", Word(Nap)),)).registry.statements["nap"].cls is Nap


def test_rows_of_intrinsics_are_words_and_stand_once() -> None:
    good = replace(null, road=GPU, words=(("nap", Word(Nap)),), intrinsics=lambda: (NAP,))
    assert good.intrinsic_rows == {Nap: NAP}
    with pytest.raises(TargetError, match="two rows for Nap"):
        _ = replace(good, intrinsics=lambda: (NAP, NAP)).intrinsic_rows
    with pytest.raises(TargetError, match="which is no word of its registry"):
        _ = replace(good, words=()).intrinsic_rows
    with pytest.raises(TargetError, match="a row for Copy, which is no word of the stage threaded"):
        _ = replace(good, intrinsics=lambda: (Intrinsic(Copy, _nothing, _nothing),)).intrinsic_rows


def test_what_words_do_in_the_simulator_is_the_languages_or_the_rows_own() -> None:
    good = replace(null, road=GPU, words=(("nap", Word(Nap)),), intrinsics=lambda: (NAP,))
    assert dict(good.meanings) == {**MEANINGS, Nap: _nothing}
    silent = replace(
        good, intrinsics=lambda: (Intrinsic(SyncWarp, None, _nothing), Intrinsic(Nap, None, _nothing))
    )
    with pytest.raises(TargetError) as caught:
        _ = silent.meanings
    assert str(caught.value) == (
        "target error: T.nap of target null has no meaning in the simulator\n"
        "  help: give its row one: Intrinsic(Nap, simulate, text)"
    )


def test_a_function_of_elements_needs_a_meaning() -> None:
    twice = ScalarFunction("twice", 1, same_as_first)
    silent = replace(null, functions=(twice,))
    with pytest.raises(TargetError, match=r"T\.twice of target null has no meaning in the simulator"):
        _ = silent.simulated_functions
    told = replace(silent, function_meanings=lambda: {"twice": _nothing})
    assert told.simulated_functions["twice"] is _nothing


def test_the_words_of_cuda_come_through_the_same_door() -> None:
    rows = manifest("cuda").intrinsic_rows
    words = {
        "VectorLoad",
        "VectorStore",
        "LoadPieces",
        "FromPieces",
        "SyncThreads",
        "SyncWarp",
        "CpAsync",
        "Mma",
        "LoadMatrix",
        "MoveBits",
    }
    assert words <= {cls.__name__ for cls in rows}
    assert rows[SyncWarp].cls is SyncWarp


def test_what_the_package_offers_is_offered_by_its_rooms() -> None:
    """A room that says what it offers names what `tilebench` takes from it."""
    for name, room in tilebench._WHERE.items():  # pyright: ignore[reportPrivateUsage]
        offered = getattr(importlib.import_module(room, "tilebench"), "__all__", None)
        assert offered is None or name in offered, name
