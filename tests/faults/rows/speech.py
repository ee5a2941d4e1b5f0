"""Faults of Python in kernels: names, macros, and what a kernel says."""

from __future__ import annotations

from ..fault import Fault

MACROS = "tests/frontend/test_macros.py::test_"

FAULTS = (
    Fault(
        "python/two-reads-are-one",
        "a name for what memory held stands for what it holds now",
        "tilebench.frontend.assignments:Assignments.named",
        "not any(isinstance(each, Load) for each in walk(expr))",
        "True",
        ("tests/frontend/test_python.py::test_what_was_read_at_two_times_is_no_common_start",),
    ),
    Fault(
        "python/a-macro-takes-numbers-late",
        "a macro's parameter is what its argument would be where it is used",
        "tilebench.frontend.macros:MacroStatements.take",
        "self.named(value, node.arg)",
        "value",
        (f"{MACROS}a_parameter_is_the_number_at_the_call_and_a_ref_is_the_variable",),
    ),
    Fault(
        "python/a-macro-returns-late",
        "what a macro returns is read after the next one has run",
        "tilebench.frontend.macros:MacroStatements.given_back",
        "value if own or not _reads(value) else self.read_now(value)",
        "value",
        (f"{MACROS}what_a_macro_returns_is_what_it_was_then",),
    ),
    Fault(
        "python/stores-whatever-the-condition-says",
        "a macro in the second part of `and` stores where the first is false",
        "tilebench.frontend.expressions:Expressions.perhaps",
        "any(not isinstance(statement, Let) for statement in body[before:])",
        "False",
        (f"{MACROS}wrong_macros_are_refused_at_both_lines",),
    ),
    Fault(
        "python/the-last-that-failed",
        "an assertion tells of the last iteration that failed",
        "tilebench.language.closing.printed_rows:_Writer.assertion",
        "Const(FIRST, type=int64) - where",
        "where",
        (
            "tests/language/test_printing.py::test_a_failed_assertion_stands_at_its_line_and_the_next_call_is_whole",
        ),
    ),
)
