"""The words a stage may use: statements, scalar functions, value classes. The language fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .dtypes import DType
from .expr import Expr
from .stmt import WordStmt


@dataclass(frozen=True)
class ScalarFunction:
    """A function of elements. `result` gives the dtype from the arguments' dtypes.

    `arity` is the number of arguments it takes. Further facets (meaning in NumPy, error bound,
    what a target renders) stand beside it in the language.
    """

    name: str
    arity: int
    result: Callable[[tuple[DType, ...]], DType]


@dataclass(frozen=True)
class Word:
    """A statement's word: the class behind it and the fields that the word itself fixes."""

    cls: type[WordStmt]
    presets: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _nowhere(_: str) -> Word | None:
    return None


@dataclass(frozen=True)
class Registry:
    """All words by name. Built from values read off modules, never by side effect of an import."""

    statements: Mapping[str, Word]
    functions: Mapping[str, ScalarFunction]
    values: Mapping[str, type]
    # Where a word is looked for that is not in the table: packages that nobody has asked yet.
    elsewhere: Callable[[str], Word | None] = _nowhere

    def statement(self, spelling: str) -> Word | None:
        """The word of a statement; None where there is none anywhere."""
        return self.statements.get(spelling) or self.elsewhere(spelling)

    def extended(
        self,
        words: Iterable[tuple[str, Word]],
        functions: Iterable[ScalarFunction] = (),
        values: Iterable[type] = (),
    ) -> Registry:
        """The registry with further words, refused like any where a name is claimed twice."""
        return Registry.of(
            (*self.statements.items(), *words),
            (*self.functions.values(), *functions),
            (*self.values.values(), *values),
            self.elsewhere,
        )

    @staticmethod
    def of(
        words: Iterable[tuple[str, Word]],
        functions: Iterable[ScalarFunction],
        values: Iterable[type],
        elsewhere: Callable[[str], Word | None] = _nowhere,
    ) -> Registry:
        """A registry; `ValueError` names both owners when a word is claimed twice."""
        statements: dict[str, Word] = {}
        for name, word in words:
            if name in statements:
                raise ValueError(f"T.{name} is claimed by {statements[name].cls} and {word.cls}")
            statements[name] = word
        table: dict[str, ScalarFunction] = {}
        for function in functions:
            if function.name in table or function.name in statements:
                raise ValueError(f"T.{function.name} is claimed twice")
            table[function.name] = function
        return Registry(statements, table, {function.__name__: function for function in values}, elsewhere)


def same_as_first(dtypes: tuple[DType, ...]) -> DType:
    """The result rule of most functions: the dtype of the first argument."""
    return dtypes[0]


def call(function: ScalarFunction, *args: Expr) -> Any:
    """A `Call` of a registered function with its dtype worked out."""
    from .expr import Call

    return Call(function.name, args, type=function.result(tuple(a.dtype for a in args)))
