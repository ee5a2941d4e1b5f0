"""Faults in random numbers: which number an element has, and the generator itself."""

from __future__ import annotations

from ..fault import Fault

RANDOM = ("tests/language/test_random.py",)

FAULTS = (
    Fault(
        "random/elements-share-numbers",
        "an element of a parallel loop begins one number behind the one before, however many each draws",
        "tilebench.language.closing.number_draws:_numbered",
        "linear * count[buffer.name] + place",
        "linear + place",
        RANDOM,
    ),
    Fault(
        "random/a-loop-is-drawn-again",
        "what follows a parallel loop draws its numbers once more",
        "tilebench.language.closing.number_draws:_numbered",
        "(substitute(loop, values), *after)",
        "substitute(loop, values)",
        RANDOM,
    ),
    Fault(
        "random/nine-rounds",
        "the generator leaves its last round out",
        "tilebench.language.meanings.philox:philox",
        "range(ROUNDS)",
        "range(ROUNDS - 1)",
        RANDOM,
    ),
    Fault(
        "random/a-second-normal-outlives-its-state",
        "the second of two normals still comes after the state has begun anew",
        "tilebench.language.random_numbers:rng_init",
        "assign_var(waits, Value(Const(False, type=boolean)))",
        "pass",
        RANDOM,
    ),
)
