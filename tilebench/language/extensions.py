"""Operations that other packages add to the language, found when a name is not the language's own.

A package names an `Extension` under the entry point `tilebench.operations`. It brings what a built-in
operation has, each facet where it belongs: words with their node classes, what a kernel calls, the
meaning in NumPy, and lowerings for the roads of targets. Installed packages are scanned only when a
word is looked up that the language does not have, because the scan takes as long as a kernel.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..errors import TargetError
from ..ir import Word, WordStmt

GROUP = "tilebench.operations"


def _nothing(_: str) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True)
class Extension:
    """What one package adds.

    `words` are the spellings with their classes, as a family of the language has them. `functions` are
    what a kernel calls, by the name behind `T.`. `meanings` gives for each class its `TileMeaning`.
    `lowerings` gives the rows of a road: `threads` (`passes.threads.lowering.Lowering`) for targets with
    warps, `loops` (`targets.cpu.loops.lowering.Lowering`) for the CPU; a road without rows refuses the
    operation at its line.
    """

    name: str
    words: tuple[tuple[str, Word], ...]
    functions: Mapping[str, Callable[..., Any]]
    meanings: Callable[[], Mapping[type, Any]]
    lowerings: Callable[[str], Iterable[Any]] = _nothing

    def __post_init__(self) -> None:
        for spelling, word in self.words:
            if not word.cls.stages:
                raise TargetError(
                    "the word T.{word} of {package} says no stage in which it may stand",
                    word=spelling, package=self.name,
                )  # fmt: skip


@cache
def extensions() -> tuple[Extension, ...]:
    """Those of all installed packages. Raises `TargetError` for an entry point that leads to none."""
    from importlib import metadata

    installed: list[Extension] = []
    owners: dict[str, str] = {}
    for point in metadata.entry_points(group=GROUP):
        module, _, attribute = point.value.partition(":")
        extension: Any = getattr(importlib.import_module(module), attribute or "extension", None)
        if not isinstance(extension, Extension):
            raise TargetError(
                "{where} holds no operations", where=point.value, found=type(extension).__name__,
                expected="a tilebench.language.extensions.Extension",
            )  # fmt: skip
        for spelling, _word in extension.words:
            owner = owners.setdefault(spelling, extension.name)
            if owner != extension.name:
                raise TargetError(
                    "T.{word} is claimed by two packages", word=spelling, a=owner, b=extension.name,
                    found="{a} and {b}", hint="uninstall one of them",
                )  # fmt: skip
        installed.append(extension)
    return tuple(installed)


def function_of(name: str) -> Callable[..., Any] | None:
    """What `T.name` is in some installed package; None where no package has it."""
    return next((e.functions[name] for e in extensions() if name in e.functions), None)


def word_of(spelling: str) -> Word | None:
    """The word of that spelling in some installed package."""
    return next((word for e in extensions() for name, word in e.words if name == spelling), None)


def meaning_of(cls: type) -> Any:
    """The meaning of a class of statements in some installed package; None where none has it."""
    return next((rows[cls] for e in extensions() if cls in (rows := e.meanings())), None)


def rows_for(road: str, cls: type[WordStmt]) -> tuple[Any, ...]:
    """The lowerings of a class for a road, from the package that brings the class."""
    for extension in extensions():
        if any(word.cls is cls for _, word in extension.words):
            return tuple(extension.lowerings(road))
    return ()
