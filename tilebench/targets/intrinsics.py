"""Words of one thread: each with its class, what it does in the simulator, and its text in a target.

There is no default anywhere: what has no row is refused, at the user's line where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import TargetError
from ..ir import Registry, ScalarFunction, WordStmt

# The stage whose words are intrinsics.
THREADED = "threaded"
Meaning = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Intrinsic:
    """A word of the stage `threaded` that a target has code for: the node's class and its rows.

    `simulate(lanes, statement, mask)` is what it does in the simulator, a plain function or a generator
    that yields what it waits for; None for a word of the language, which the simulator knows.
    `text(renderer, statement)` writes its lines in a language like C.
    """

    cls: type[WordStmt]
    simulate: Meaning | None
    text: Callable[[Any, Any], None]


def rows_by_class(
    target: str, intrinsics: Iterable[Intrinsic], registry: Registry
) -> dict[type[WordStmt], Intrinsic]:
    """The rows of a target by class. Raises `TargetError` for a class twice, or that is no such word."""
    words: set[type[WordStmt]] = {word.cls for word in registry.statements.values()}
    rows: dict[type[WordStmt], Intrinsic] = {}
    for intrinsic in intrinsics:
        cls = intrinsic.cls
        if cls in rows:
            raise TargetError("target {name} has two rows for {cls}", name=target, cls=cls.__name__)
        if cls not in words:
            raise TargetError(
                "target {name} has a row for {cls}, which is no word of its registry",
                name=target,
                cls=cls.__name__,
                hint='name it in the manifest: words=(("its_word", Word({cls})), ...)',
            )
        if THREADED not in cls.stages:
            raise TargetError(
                "target {name} has a row for {cls}, which is no word of the stage {stage}",
                name=target,
                cls=cls.__name__,
                stage=THREADED,
                expected="a class whose `stages` has it",
            )
        rows[cls] = intrinsic
    return rows


def meanings_with(target: str, rows: Mapping[type[WordStmt], Intrinsic]) -> Mapping[type, Meaning]:
    """What each word does in the simulator: the language's own, and the rows'.

    Raises `TargetError` for a row without a meaning whose word the simulator does not know.
    """
    from ..simulator.words import MEANINGS  # 24 ms, and only the simulator asks

    meanings = dict(MEANINGS)
    for cls, row in rows.items():
        if row.simulate is not None:
            meanings[cls] = row.simulate
        elif cls not in meanings:
            raise TargetError(
                "T.{word} of target {name} has no meaning in the simulator",
                name=target,
                word=cls.word,
                hint="give its row one: Intrinsic({cls}, simulate, text)",
                cls=cls.__name__,
            )
    return meanings


def functions_with(
    target: str, functions: Iterable[ScalarFunction], meanings: Mapping[str, Callable[..., Any]]
) -> Mapping[str, Callable[..., Any]]:
    """What each function of elements gives in the simulator: the language's own, and the target's.

    Raises `TargetError` for a function of the target without a meaning.
    """
    from ..simulator.arithmetic import FUNCTIONS

    for function in functions:
        if function.name not in meanings:
            raise TargetError(
                "T.{word} of target {name} has no meaning in the simulator",
                name=target,
                word=function.name,
                hint="give it a function of arrays in the manifest's `function_meanings`",
            )
    return {**FUNCTIONS, **meanings}
