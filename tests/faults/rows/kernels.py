"""Faults in what a kernel is made from, and in finding one again."""

from __future__ import annotations

from ..fault import Fault

VALUES = ("tests/kernel/test_outside_values.py",)
TEXTS = ("tests/frontend/test_texts.py",)

FAULTS = (
    Fault(
        "outside/minus-zero",
        "0.0 and -0.0 outside a kernel are one constant",
        "tilebench.kernel.snapshot.exact:token",
        "return kind, float(number.real).hex(), float(number.imag).hex()",
        "return kind, number",
        VALUES,
    ),
    Fault(
        "outside/numpy-scalars-are-objects",
        "a NumPy scalar that is bound again is not looked at",
        "tilebench.kernel.snapshot.exact:token",
        "return None if dtype.hasobject else (kind, str(dtype), value.tobytes())",
        "return kind",
        VALUES,
    ),
    Fault(
        "outside/elements-of-lists",
        "the contents of lists and sets are taken to stay",
        "tilebench.kernel.snapshot.contents:_list",
        "outside.checks.append(lambda: _same_in_order(values, kept))",
        "",
        VALUES,
    ),
    Fault(
        "outside/helpers-are-not-followed",
        "what a helper sees around itself is not part of the key",
        "tilebench.kernel.snapshot.outside:Outside._globals",
        "self._path(space.get(path[0], known.get(path[0])), path)",
        "pass",
        VALUES,
    ),
    Fault(
        "outside/random-numbers-are-constants",
        "a kernel with a random number is found again by its parameters",
        "tilebench.kernel.kept:KeptKernels.find",
        "None if outside.unknown else self._kernels.get((wanted, Same(outside)))",
        "self._kernels.get((wanted, Same(outside)))",
        VALUES,
    ),
    Fault(
        "lookup/quick-without-a-check",
        "a call with plain arguments does not look at what is outside",
        "tilebench.kernel.kept:KeptKernels.quick",
        "entry is None or not entry[0].holds()",
        "entry is None",
        VALUES,
    ),
    Fault(
        "lookup/one-and-true",
        "1, 1.0 and True are one argument",
        "tilebench.kernel.kept:quick_key",
        "(target, kinds, values, tuple(kwargs), inside)",
        "(target, values, tuple(kwargs), inside)",
        VALUES,
    ),
    Fault(
        "texts/the-file-of-now",
        "the text of a file is taken as it is now, not as Python read it",
        "tilebench.frontend.texts:find",
        "chain(texts, _later(now))",
        "_later(now)",
        TEXTS,
    ),
    Fault(
        "texts/any-function-of-that-name",
        "a function of the same name at the same line is taken for the one that runs",
        "tilebench.frontend.texts:Definition.gives",
        "return known",
        "return True",
        TEXTS,
    ),
    Fault(
        "loops/down-one-short",
        "a loop that counts down leaves its last iteration out",
        "tilebench.language.steps:iterations",
        "(first - last + (down - 1)) // down",
        "(first - last) // down",
        ("tests/language/test_loop_steps.py",),
    ),
    Fault(
        "loops/a-step-read-each-time",
        "the step of a loop is read again in each iteration",
        "tilebench.language.steps:by_count",
        "once(step, 'step')",
        "step",
        ("tests/language/test_loop_steps.py",),
    ),
    Fault(
        "empty/a-product-without-terms-keeps-its-sum",
        "clear_accum is forgotten where there is nothing to add",
        "tilebench.language.gemm:_add_nothing",
        "start != expr_of(False)",
        "False",
        ("tests/language/test_zero_extents.py",),
    ),
    Fault(
        "empty/a-copy-from-nothing-writes-nothing",
        "a tile keeps what it held where its array has no elements",
        "tilebench.language.copy:copy",
        "holds_nothing(source.region)",
        "holds_nothing(source.region) and False",
        ("tests/language/test_zero_extents.py",),
    ),
    Fault(
        "names/the-kernels-own-name",
        "a kernel may be called like a function of C",
        "tilebench.targets.clike.names:names_in_c",
        "name == function.name and name in GLOBAL",
        "False",
        ("tests/targets/clike/test_names.py",),
    ),
    Fault(
        "pickle/the-hash-travels",
        "a node takes the hash of another process along",
        "tilebench.ir.node:Node.__getstate__",
        "",
        "return dict(self.__dict__)",
        ("tests/kernel/test_pickled.py",),
    ),
)
