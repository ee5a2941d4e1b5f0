"""What a target is to the rest: one frozen manifest, checked as it is made.

A target describes its machines, names the stages its road has after `bounded`, and the steps that
turn the last of them into text and code. Emitting is apart from running: `load` is only called
where the code can run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import TargetError
from ..ir import Registry, ScalarFunction, Stmt, Word, WordStmt
from ..language.words import registry
from ..machine import Machine, Occupancy
from ..passes.context import StageRow
from ..passes.pipeline import COMMON, TILE_FORMS
from .build import Build, DeviceArrays, EmitStep, Executable, ProgramForm
from .devices import HOST
from .intrinsics import Intrinsic, Meaning, functions_with, meanings_with, rows_by_class
from .profiler import LineProfiler

if TYPE_CHECKING:
    from .presentation import Language, Presentation


@dataclass(frozen=True)
class Manifest:
    """A target. `describe` turns `cuda:sm_90a` into a machine, `None` into this host's own.

    `available` says whether code can run here, and why not. `versions` names what code depends on besides
    our own version, for the cache key. `device` is the kind of memory its kernels work on (see `devices`).
    `rehearse` says that wrong code can end the process. `programs` says that functions of several launches
    and `T.alloc_global` run there. `words`, `functions` and `values` are what its own stages are written in
    besides the language. `intrinsics` gives the words of `threaded` that it has code for; called when a
    kernel reaches it. `function_meanings` says what its own `functions` give, of arrays, in the simulator.
    `lowered` gives the classes of the operations that it lowers, each with the name of an instruction
    (empty: it needs none), `scalars` the functions of elements with the dtypes of their results that it has
    code for: what `abilities` tells, read off the tables that compile. `ceilings` is the `module:function`
    that measures a device's ceilings in the child; empty: the host's. `device_arrays` puts an executable's
    arguments, host arrays and numbers, where its kernels work; None: they work on the host's. `environment`
    is what a run's record says of the device. `occupancy` tells, from threads of a block, registers of a
    thread and shared bytes, how many blocks a multiprocessor holds; None where blocks do not share one.
    `program` writes a kernel as a program that stands alone. `present` is how people are told of the target
    (imported when somebody looks). `profiler` counts on the lines of its code.
    """

    name: str
    describe: Callable[[str | None], Machine]
    road: tuple[StageRow, ...]
    steps: tuple[EmitStep, ...]
    load: Callable[[Build], Executable]
    available: Callable[[], tuple[bool, str]]
    versions: Callable[[], dict[str, str]] = field(default=dict[str, str])
    examples: tuple[str, ...] = ()
    device: str = HOST
    rehearse: bool = False
    programs: bool = False
    ceilings: str = ""
    words: tuple[tuple[str, Word], ...] = ()
    functions: tuple[ScalarFunction, ...] = ()
    values: tuple[type, ...] = ()
    device_arrays: Callable[[Any, list[Any]], DeviceArrays] | None = None
    environment: Callable[[], dict[str, str]] = field(default=dict[str, str])
    occupancy: Callable[[Machine, int, int, int], Occupancy] | None = None
    present: Callable[[], Presentation] | None = None
    profiler: LineProfiler | None = None
    intrinsics: Callable[[], tuple[Intrinsic, ...]] = tuple
    program: ProgramForm | None = None
    function_meanings: Callable[[], Mapping[str, Callable[..., Any]]] = field(
        default=dict[str, Callable[..., Any]]
    )
    lowered: Callable[[], Iterable[tuple[type[Stmt], str]]] = tuple
    scalars: Callable[[], Mapping[str, Iterable[str]]] = field(default=dict[str, Iterable[str]])

    @cached_property
    def presentation(self) -> Presentation:
        """How people are told of this target; by default its name, its last IR stage and its first text."""
        if self.present is not None:
            return self.present()
        shown = (*(row.name for row in self.road[-1:]), self.steps[0].name)
        from .presentation import Presentation  # 3 ms, and only views ask

        return Presentation((self.name,), self.name, shown)

    def language(self, name: str) -> Language:
        """How a language is shown; as plain lines where the target says nothing of it."""
        from .presentation import Language

        rows = self.presentation.languages
        return next((row for row in rows if row.name == name), Language(name, name))

    @cached_property
    def registry(self) -> Registry:
        """The words of the language and those that the stages of this target add."""
        try:
            return registry().extended(self.words, self.functions, self.values)
        except ValueError as error:
            raise TargetError(
                "target {name} brings a word that there is already", name=self.name, found=str(error)
            ) from None

    @cached_property
    def intrinsic_rows(self) -> Mapping[type[WordStmt], Intrinsic]:
        """The words of `threaded` by class. Raises `TargetError` for a class twice or without a word."""
        return rows_by_class(self.name, self.intrinsics(), self.registry)

    @property
    def meanings(self) -> Mapping[type, Meaning]:
        """What each word of `threaded` does in the simulator, for `run_threaded(meanings=...)`."""
        return meanings_with(self.name, self.intrinsic_rows)

    @property
    def simulated_functions(self) -> Mapping[str, Callable[..., Any]]:
        """What each function of elements gives in the simulator, for `run_threaded(functions=...)`."""
        return functions_with(self.name, self.functions, self.function_meanings())

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise TargetError("a target's name is an identifier, found {name!r}", name=self.name)
        if not self.steps:
            raise TargetError("target {name} has no step that makes text or code", name=self.name)
        stages = ["source", "tile", *(row.name for row in COMMON)]
        for stage in [row.name for row in self.road] + [step.name for step in self.steps]:
            if stage in stages:
                raise TargetError(
                    "target {name} has two stages called {stage}",
                    name=self.name,
                    stage=stage,
                    stages=", ".join(stages),
                    found="{stage} behind {stages}",
                )
            stages.append(stage)
        self._check_words()

    def _check_words(self) -> None:
        """Each word is a statement's, may stand in a stage of the road, and is claimed once."""
        forms = [TILE_FORMS, *(row.forms for row in (*COMMON, *self.road))]
        for spelling, word in self.words:
            if not spelling.isidentifier() or not issubclass(word.cls, WordStmt):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TargetError(
                    "T.{word} of target {name} is no word for a statement",
                    name=self.name,
                    word=spelling,
                    expected="an identifier and a class of a word: WordStmt or one of its kinds",
                )
            if not any(spelling in (form.words or ()) or form.stage in word.cls.stages for form in forms):
                raise TargetError(
                    "T.{word} of target {name} may stand in none of its stages",
                    name=self.name,
                    word=spelling,
                    stages=", ".join(form.stage for form in forms),
                    expected="`stages` of its class with one of {stages}",
                )
        _ = self.registry
