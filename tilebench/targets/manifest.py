"""What a target is to the rest: one frozen manifest, checked as it is made.

A target describes its machines, names the stages its road has after `bounded`, and the steps that
turn the last of them into text and code. Emitting is apart from running: `load` is only called
where the code can run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import TargetError
from ..ir import Function, Registry, ScalarFunction, Stmt, Word, WordStmt
from ..language.words import registry
from ..machine import Machine, Occupancy
from ..passes.context import Context, StageRow
from ..passes.pipeline import COMMON, TILE_FORMS
from ..record import Resources
from .devices import HOST
from .presentation import Language, Presentation

if TYPE_CHECKING:
    import numpy as np

# The stage whose words are intrinsics.
THREADED = "threaded"


@dataclass
class Build:
    """One kernel being emitted. Steps read what earlier steps left and add their own.

    `lines[name][k]` are the lines of the stage before that line k+1 of stage `name` came from.
    """

    function: Function
    machine: Machine
    context: Context
    texts: dict[str, str] = field(default_factory=dict[str, str])
    lines: dict[str, tuple[tuple[int, ...], ...]] = field(
        default_factory=dict[str, tuple[tuple[int, ...], ...]]
    )
    code: bytes = b""
    resources: Resources | None = None
    data: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class EmitStep:
    """One step: it fills `build.texts[name]` and `build.lines[name]`.

    `tier` is `text` for what takes milliseconds, `code` for what a compiler of another maker does,
    `later` for what is made in the background and shown as pending. `lines_of` names the earlier
    text that its lines refer to, where that is not the one just before it. `begin` starts the work of
    a `later` step in the background; `run` then waits for what is left of it.
    """

    name: str
    language: str
    run: Callable[[Build], None]
    tier: str = "text"
    lines_of: str = ""
    begin: Callable[[Build], None] | None = None


class Executable(Protocol):
    """Loaded code. Called with array descriptions in parameter order; returns when launched."""

    def __call__(self, arrays: Sequence[Any]) -> None: ...


class DeviceArrays(Protocol):
    """Loaded code with copies of some host arrays in a device's memory, for the timing method.

    `clock.time(run)` gives the seconds of one launch on the device; `flush()` leaves its caches cold.
    """

    @property
    def clock(self) -> Any: ...

    @property
    def flush(self) -> Any: ...

    def run(self) -> None:
        """Launch once on the copies."""
        ...

    def upload(self, arrays: list[np.ndarray[Any, Any]]) -> None:
        """Host arrays into the copies."""
        ...

    def download(self, arrays: list[np.ndarray[Any, Any]]) -> None:
        """The copies into host arrays, once the device is done."""
        ...


@dataclass(frozen=True)
class Intrinsic:
    """A word of the stage `threaded` that a target has code for: the node's class and its rows.

    `simulate(lanes, statement, mask)` is what it does in the simulator, a plain function or a generator
    that yields what it waits for; None for a word of the language, which the simulator knows.
    `text(renderer, statement)` writes its lines in a language like C.
    """

    cls: type[WordStmt]
    simulate: Callable[[Any, Any, Any], Any] | None
    text: Callable[[Any, Any], None]


@dataclass(frozen=True)
class Manifest:
    """A target. `describe` turns `cuda:sm_90a` into a machine, `None` into this host's own.

    `available` says whether code can run here, and why not. `versions` names what code depends on
    besides our own version, for the cache key. `device` is the kind of memory its kernels work on (see
    `devices`). `rehearse` says that wrong code
    can end the process.
    `words`, `functions` and `values` are what its own stages are written in besides the language.
    `intrinsics` gives the words of `threaded` that it has code for; called when a kernel reaches it.
    `lowered` gives the classes of the operations that it lowers, each with the name of an instruction
    (empty: it needs none), `scalars` the functions of elements with the dtypes of their results that it
    has code for: what `abilities` tells, read off the tables that compile.
    `ceilings` is the `module:function` that measures a device's ceilings in the child; empty: the host's.
    `device_arrays` puts an executable's arrays where its kernels work; None: they work on the host's.
    `environment` is what a run's record says of the device. `occupancy` tells, from threads of a block,
    registers of a thread and shared bytes, how many blocks a multiprocessor holds; None where blocks do
    not share one. `present` is how people are told of the target (imported when somebody looks).
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
    ceilings: str = ""
    words: tuple[tuple[str, Word], ...] = ()
    functions: tuple[ScalarFunction, ...] = ()
    values: tuple[type, ...] = ()
    device_arrays: Callable[[Any, list[np.ndarray[Any, Any]]], DeviceArrays] | None = None
    environment: Callable[[], dict[str, str]] = field(default=dict[str, str])
    occupancy: Callable[[Machine, int, int, int], Occupancy] | None = None
    present: Callable[[], Presentation] | None = None
    intrinsics: Callable[[], tuple[Intrinsic, ...]] = tuple
    lowered: Callable[[], Iterable[tuple[type[Stmt], str]]] = tuple
    scalars: Callable[[], Mapping[str, Iterable[str]]] = field(default=dict[str, Iterable[str]])

    @cached_property
    def presentation(self) -> Presentation:
        """How people are told of this target; by default its name, its last IR stage and its first text."""
        if self.present is not None:
            return self.present()
        shown = (*(row.name for row in self.road[-1:]), self.steps[0].name)
        return Presentation((self.name,), self.name, shown)

    def language(self, name: str) -> Language:
        """How a language is shown; as plain lines where the target says nothing of it."""
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
        words: set[type[WordStmt]] = {word.cls for word in self.registry.statements.values()}
        rows: dict[type[WordStmt], Intrinsic] = {}
        for intrinsic in self.intrinsics():
            cls = intrinsic.cls
            if cls in rows:
                raise TargetError("target {name} has two rows for {cls}", name=self.name, cls=cls.__name__)
            if cls not in words:
                raise TargetError(
                    "target {name} has a row for {cls}, which is no word of its registry",
                    name=self.name,
                    cls=cls.__name__,
                    hint='name it in the manifest: words=(("its_word", Word({cls})), ...)',
                )
            if THREADED not in cls.stages:
                raise TargetError(
                    "target {name} has a row for {cls}, which is no word of the stage {stage}",
                    name=self.name,
                    cls=cls.__name__,
                    stage=THREADED,
                    expected="a class whose `stages` has it",
                )
            rows[cls] = intrinsic
        return rows

    @property
    def meanings(self) -> Mapping[type, Callable[[Any, Any, Any], Any]]:
        """What each word of `threaded` does in the simulator, for `run_threaded(meanings=...)`.

        Raises `TargetError` for a row without a meaning whose word the simulator does not know.
        """
        from ..simulator.words import MEANINGS  # 24 ms, and only the simulator asks

        meanings = dict(MEANINGS)
        for cls, row in self.intrinsic_rows.items():
            if row.simulate is not None:
                meanings[cls] = row.simulate
            elif cls not in meanings:
                raise TargetError(
                    "T.{word} of target {name} has no meaning in the simulator",
                    name=self.name,
                    word=cls.word,
                    hint="give its row one: Intrinsic({cls}, simulate, text)",
                    cls=cls.__name__,
                )
        return meanings

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
