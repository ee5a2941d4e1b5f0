"""Faults in the rules of numbers: literals, integers of two kinds, NaN, the oracle's own dtypes."""

from __future__ import annotations

from ..fault import Fault

ARITHMETIC = "tests/language/test_arithmetic.py::"
FUNCTIONS = "tests/language/test_functions.py::"

FAULTS = (
    Fault(
        "numbers/halves-to-even",
        "T.round is T.nearbyint on the CPU",
        "tilebench.targets.cpu.numbers.elementary:round_away",
        "trunc(f, f.fadd(x, copy_sign(f, constant(x, below_half), x)))",
        "round_even(f, x)",
        (FUNCTIONS + "test_rounding_of_halves",),
    ),
    Fault(
        "numbers/bits-are-converted",
        "the simulator converts where bits are read in another dtype",
        "tilebench.simulator.expressions:_cast",
        "isinstance(expr, Reinterpret)",
        "False",
        (FUNCTIONS + "test_bits_in_another_dtype_and_back",),
    ),
    Fault(
        "numbers/quotients-round-down",
        "T.truncdiv is floor division",
        "tilebench.language.bits:_short",
        "int(x % y != 0 and (x < 0) != (y < 0))",
        "0",
        (FUNCTIONS + "test_division_towards_zero",),
    ),
    Fault(
        "numbers/a-float-takes-the-narrow-dtype",
        "a Python float beside a float16 is rounded to it",
        "tilebench.language.tracing.promote:beside",
        "not dtype.is_float or dtype.bits < 32",
        "not dtype.is_float",
        (ARITHMETIC + "test_a_tenth_of_a_float16",),
    ),
    Fault(
        "numbers/a-constant-is-not-rounded",
        "on the CPU a constant of float16 is a float32",
        "tilebench.targets.cpu.render.expressions:_number",
        "float(number_in(expr.value, expr.type)) if expr.type.is_float else expr.value",
        "expr.value",
        (ARITHMETIC + "test_a_constant_of_a_narrow_dtype_is_rounded_to_it",),
    ),
    Fault(
        "numbers/mixed-signs-lose-values",
        "integers of two signs meet in the wider signed one",
        "tilebench.language.tracing.promote:join",
        "2 * unsigned.bits",
        "unsigned.bits",
        (ARITHMETIC + "test_two_integers_meet_in_a_dtype_with_the_values_of_both_and_wrap_there",),
    ),
    Fault(
        "numbers/bits-are-turned-in-64",
        "~ of a narrow unsigned integer is negative in the simulator",
        "tilebench.simulator.expressions:LaneExpressions._arith",
        "settle(~total, dtype, expr, self.data, mask)",
        "~total",
        (ARITHMETIC + "test_bits_of_integers_stay_in_their_dtype",),
    ),
    Fault(
        "numbers/the-oracle-chooses-by-float64",
        "a choice between uint64 and a Python number goes through float64",
        "tilebench.language.tracing.operators:array_of",
        "dtype.numpy.type(value) if type(value) is int else value",
        "value",
        (ARITHMETIC + "test_choices_of_large_integers_are_exact",),
    ),
    Fault(
        "numbers/clamp-loses-nan",
        "T.clamp of NaN is the lower limit on the CPU",
        "tilebench.targets.cpu.render.expressions:Expressions._function",
        "f.compare('olt', x, low)",
        "f.compare('ult', x, low)",
        (ARITHMETIC + "test_clamp_hands_nan_on_and_extremes_lose_it",),
    ),
    Fault(
        "numbers/boxes-that-only-start-below-zero",
        "a box that starts below zero and reaches further counts from the end",
        "tilebench.language.from_the_end:_from_the_end",
        "facts.bounds(first)[1] + extent <= 0",
        "facts.bounds(first)[1] < 0",
        ("tests/language/test_from_the_end.py",),
    ),
    Fault(
        "numbers/own-arrays-are-clipped",
        "a store outside of a thread's array goes to its last element in the reference",
        "tilebench.reference.own_memory:store_local",
        "ok if mask is None else np.logical_and(ok, mask)",
        "mask",
        ("tests/language/test_outside.py",),
    ),
    Fault(
        "numbers/padding-is-not-told",
        "zeros that a copy pads with win a maximum without a word",
        "tilebench.passes.find_padding:_reduce",
        "reduction.kind in ('max', 'min') and axis in dims",
        "False",
        ("tests/passes/test_find_padding.py",),
    ),
    Fault(
        "numbers/a-card's-own-conversions-of-nan",
        "a NaN in a double is the least integer on a card",
        "tilebench.targets.clike.conversions:cast",
        "64 in (source.bits, target.bits)",
        "False",
        ("tests/targets/cuda/test_float_to_integer.py",),
    ),
    Fault(
        "numbers/a-line-of-nan-is-nan",
        "the reference gives NaN for a row of NaN alone",
        "tilebench.language.meanings.tiles:reduce_meaning",
        "fold.reduce(source.astype(kind), axis=op.dim, initial=_start(op))",
        "fold.reduce(source.astype(kind), axis=op.dim)",
        (ARITHMETIC + "test_a_line_of_nan_gives_where_the_reduction_starts",),
    ),
    Fault(
        "numbers/extremes-in-the-tile's-dtype",
        "a maximum is formed in the dtype of the tile, old values are narrowed to it",
        "tilebench.language.accumulation:reduction_dtype",
        "max((source, target), key=lambda dtype: dtype.bits)",
        "source if kind != 'sum' else max((source, target), key=lambda dtype: dtype.bits)",
        (ARITHMETIC + "test_a_reduction_is_formed_in_the_wider_dtype",),
    ),
)
