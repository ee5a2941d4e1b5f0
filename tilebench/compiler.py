"""The one road from a traced kernel to code, and the record of what happened on it.

A `Compilation` walks the stages in order and stops where it is asked to: the static figures need
`laid_out`, the stage panes need the target's text, a launch needs the code. Each stage is made
once; what a step of tier `code` or `later` made is kept in a store by content, so that a second
process, or a slider moved back, does not compile again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from . import settings
from .errors import InternalError, LanguageError, OptionError, Place, TargetError, TileError, nearest
from .frontend import Traced
from .ir import Function, Node, Printed, Stmt, children, print_function, verify
from .ir.room import with_room
from .ir.sizes import Number, for_sizes
from .machine import Machine
from .passes.analysis.count_work import Work, count_work
from .passes.analysis.launches import is_program, joined, launches_of, parts_of
from .passes.context import Context
from .passes.pipeline import COMMON
from .record import EditRecord
from .targets.build import Build, EmitStep
from .targets.in_flight import in_flight
from .targets.kept import packed, unpacked
from .targets.manifest import Manifest

# Sizes and scalars of calls for which a compilation remembers how much they compute.
MOST_COUNTED = 16
# Stages that hold whole tiles and nothing of threads: NumPy can run them.
REFERENCE_STAGES = ("tile", "scheduled", "bounded")
# The lists of a context that passes add to.
NOTES = ("remarks", "choices", "diagnostics")
# Part of every cache key: raise it when generated code changes in meaning.
VERSION = "0.1.0"


class CodeStore(Protocol):
    """Where finished code is kept between processes. The runtime's cache is one."""

    def get(self, key: str) -> dict[str, bytes] | None: ...

    def put(self, key: str, files: Mapping[str, bytes]) -> None: ...


@dataclass
class Compilation:
    """One kernel on its way down for one machine and schedule. Safe to ask from several threads.

    `start` is the stage that `traced` holds. `meaning` is the function in a stage the reference
    can run, where that is not the one it starts from. `edits` are the stages whose texts a person wrote.
    """

    traced: Traced
    manifest: Manifest
    machine: Machine
    schedule: Any = None
    store: CodeStore | None = None
    key_of: Callable[..., str] | None = None
    start: str = "tile"
    meaning: Function | None = None
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    printed: dict[str, Printed] = field(default_factory=dict[str, Printed])
    # What values that texts name are, in words: made for a record, by the value.
    told: dict[Any, str] = field(default_factory=dict[Any, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    edits: tuple[EditRecord, ...] = ()
    context: Context = field(init=False)
    build: Build | None = field(default=None, init=False)
    _works: dict[tuple[tuple[str, Number], ...], Work] = field(
        default_factory=dict[tuple[tuple[str, Number], ...], Work], init=False, repr=False
    )
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def __post_init__(self) -> None:
        self.context = Context(self.machine, self.schedule)
        self.functions.setdefault(self.start, self.traced.function)

    @property
    def reference(self) -> Function | None:
        """What the kernel means, in a stage that the reference runs; None where nothing says it."""
        return self.traced.function if self.start in REFERENCE_STAGES else self.meaning

    def work(self, values: Mapping[str, Number]) -> Work:
        """What a call with these sizes and scalars must do at least, counted once."""
        key = tuple(sorted(values.items()))
        found = self._works.get(key)
        if found is None:
            found = count_work(for_sizes(self.reference or self.traced.function, values))
            if len(self._works) >= MOST_COUNTED:
                self._works.clear()
            self._works[key] = found
        return found

    @property
    def rows(self) -> tuple[Any, ...]:
        return (*COMMON, *self.manifest.road)

    @property
    def stage_names(self) -> tuple[str, ...]:
        """Every stage of this road in order, the user's source first."""
        ir = ("tile", *(row.name for row in self.rows))
        # Those above the start are there where they are known: of the kernel that a text was edited from.
        first = next(k for k, name in enumerate(ir) if name in self.functions)
        return ("source", *ir[first:], *(step.name for step in self.manifest.steps))

    def stand_below(self, above: Compilation) -> None:
        """Take what stands above the start from the compilation that it was edited from."""
        above.reach(self.start)
        order = above.stage_names
        upper = [name for name in order[: order.index(self.start)] if name in above.functions]
        self.functions = {name: above.functions[name] for name in upper} | self.functions
        for name in upper:
            self.printed[name] = above.print(name)
            self.seconds[name] = above.seconds.get(name, 0.0)
        passes = {name for row in self.rows if row.name in upper for name, _ in row.passes}
        self.context.remarks += [each for each in above.context.remarks if each.pass_name in passes]

    def refuse_edited(self, what: str) -> None:
        """Raise `TargetError` where a stage was edited below the one that `what` is made from, `tile`."""
        below = [edit.stage for edit in self.edits if edit.stage != "tile"]
        if below:
            raise TargetError(
                "{what} is made from the stage tile, and the text of {stage} was edited",
                at=self.traced.function.place, what=what, stage=below[-1],
                hint="ask it of the kernel that the text was edited from",
            )  # fmt: skip

    def require(self, name: str) -> None:
        """Raise `OptionError`, with the nearest name, when this road has no such stage."""
        if name not in self.stage_names:
            from .targets import stage_owners

            owners = stage_owners()
            close = nearest(name, list(dict.fromkeys((*self.stage_names, *owners))))
            meant = name if name in owners else next(iter(close), "")
            hint = f"did you mean {meant}? " if meant not in ("", name) else ""
            if meant and meant not in self.stage_names:
                hint += f"{meant} is a stage of {' and '.join(owners[meant])}; "
            raise OptionError(
                "target {target} has no stage {name!r}", target=self.manifest.name, name=name,
                hint=hint + "stages: " + ", ".join(self.stage_names),
            )  # fmt: skip

    def reach(self, name: str) -> None:
        """Make every stage up to and with `name`. Raises the `TileError` of the pass that refuses."""
        self.require(name)
        with self._lock:
            if name == "source" or name in self.functions or (self.build and name in self.build.texts):
                return
            ir_names = [row.name for row in self.rows]
            for row in self.rows:
                if row.name not in self.functions and self._after_start(row.name, ir_names):
                    self._run_row(row)
                if row.name == name:
                    return
            for step in self.manifest.steps:
                self._run_step(step)
                if step.name == name:
                    return

    def reach_code(self) -> None:
        """Make every stage up to loadable code; what is made in the background is left out."""
        for step in self.manifest.steps:
            if step.tier != "later":
                self.reach(step.name)

    def _after_start(self, name: str, order: list[str]) -> bool:
        return self.start == "tile" or order.index(name) > order.index(self.start)

    @property
    def last(self) -> Function:
        """The function of the last stage that has been made."""
        return next(reversed(self.functions.values()))

    def _run_row(self, row: Any) -> None:
        began = time.perf_counter()
        function = self.last
        notes = [getattr(self.context, name) for name in NOTES]
        counts = [len(each) for each in notes]
        try:
            function = self._passes(row, function)
        except BaseException:
            # What passes noted before one refused would stand twice when the stage is tried again.
            for each, count in zip(notes, counts, strict=True):
                del each[count:]
            raise
        self.functions[row.name] = function
        self.seconds[row.name] = time.perf_counter() - began

    def _passes(self, row: Any, function: Function) -> Function:
        parts = [function] if row.whole else list(parts_of(function))
        for number, part in enumerate(parts):
            for name, run in row.passes:
                part = self._guarded(name, lambda run=run, at=part: run(at, self.context))
                if settings.verify():
                    # What a stage promises is true after its last pass; names and types hold in between.
                    self._guarded(name, lambda at=part: verify(at))
            parts[number] = part
        function = parts[0] if row.whole else joined(function, parts)
        self._guarded(row.name, lambda: verify(function, row.forms))
        return function

    def _guarded(self, name: str, run: Callable[[], Any]) -> Any:
        """The one spot where an exception that is not a person's to mend becomes an internal error."""
        notes = [getattr(self.context, each) for each in NOTES]
        counts = [len(each) for each in notes]

        def undo() -> None:
            for noted, count in zip(notes, counts, strict=True):
                del noted[count:]

        try:
            return with_room(run, undo=undo)
        except TileError as error:
            # A refusal that knows no line, such as one about all threads together, stands at the kernel's.
            error.place = error.place or self.traced.function.place
            raise
        except Exception as error:
            if settings.raise_raw():
                raise
            if isinstance(error, RecursionError):
                raise LanguageError(
                    "an expression of {kernel} is nested too deeply for the step {step}",
                    at=_deepest(self.traced.function), kernel=self.traced.function.name, step=name,
                    hint="give its parts names of their own: part = ...",
                ) from error  # fmt: skip
            raise InternalError(
                "the step {step} failed on kernel {kernel}: {kind}: {why}",
                at=self.traced.function.place, step=name, kernel=self.traced.function.name,
                kind=type(error).__name__, why=str(error),
                hint="this is a fault of tilebench; please report it with the kernel and its parameters",
            ) from error  # fmt: skip

    def _run_step(self, step: EmitStep) -> None:
        if self.build is None:
            self._check_launches()
            self.build = Build(self.last, self.machine, self.context)
        if step.name in self.build.texts:
            return
        began = time.perf_counter()
        key = self._key(step) if step.tier != "text" else None
        if key is None or not self._take(step, key):
            self._make(step, key)
        self.seconds[step.name] = time.perf_counter() - began

    def _check_launches(self) -> None:
        """Raise `TargetError`, at the second launch, where a target runs one alone."""
        if is_program(self.last) and not self.manifest.programs:
            second = (*launches_of(self.last)[1:], *self.last.body)[0]
            raise TargetError(
                "{target} runs one `with T.Kernel(...)` of a function, and no T.alloc_global",
                target=self.manifest.name, at=second.place,
                hint="write a function for each launch, and pass the memory between them as an array",
            )  # fmt: skip

    def _make(self, step: EmitStep, key: str | None) -> None:
        """Run a step. What is not text takes long: an interrupt leaves it to finish for the store."""
        build, store = self.build, self.store
        assert build is not None  # made before its first step
        if step.tier == "text" or key is None or store is None:
            self._guarded(step.name, lambda: step.run(build))
            return
        # On a copy, so that what goes on after an interrupt meets nobody.
        context = replace(self.context, remarks=[], choices=[], diagnostics=[])
        own = replace(
            build, texts=dict(build.texts), lines=dict(build.lines), data=dict(build.data), context=context
        )

        def run() -> dict[str, bytes]:
            step.run(own)
            files = packed(step, own, key)
            store.put(key, files)
            return files

        files = self._guarded(step.name, lambda: in_flight((key, step.name), run))
        if not unpacked(files, step, build, key):
            raise InternalError("the step {step} made what cannot be kept", step=step.name)

    def begin(self, name: str) -> None:
        """Start a step of tier `later` in the background, once the code it needs has been made."""
        with self._lock:
            step = next((each for each in self.manifest.steps if each.name == name), None)
            build = self.build
            if step is None or step.begin is None or build is None or not build.code or name in build.texts:
                return
            key = self._key(step)
            if key is None or self.store is None or self.store.get(key) is None:
                begin = step.begin
                self._guarded(name, lambda: begin(build))

    def _key(self, step: EmitStep) -> str | None:
        if self.store is None or self.key_of is None or self.build is None or not self.build.texts:
            return None
        before = [s.name for s in self.manifest.steps if s.tier == "text"][-1]
        return self.key_of(
            step=step.name, text=self.build.texts[before], machine=self.machine.name, version=VERSION,
            versions=self.manifest.versions(), threads=self.build.data.get("threads", 0),
        )  # fmt: skip

    def _take(self, step: EmitStep, key: str) -> bool:
        """Whether the store has what the step would make; the build has it then."""
        files = self.store.get(key) if self.store else None
        if files is None or self.build is None:
            return False
        return unpacked(files, step, self.build, key)

    def print(self, name: str) -> Printed:
        """The text of an IR stage that has been made, printed once."""
        if name not in self.printed:
            self.printed[name] = self._guarded(name, lambda: print_function(self.functions[name]))
        return self.printed[name]


def _deepest(function: Function) -> Place | None:
    """The place of the statement whose expressions are nested deepest."""
    best, place = 0, function.place
    stack: list[tuple[Node, int, Place | None]] = [(function, 0, function.place)]
    while stack:
        part, depth, where = stack.pop()
        depth, where = (0, part.place or where) if isinstance(part, Stmt) else (depth + 1, where)
        if depth > best:
            best, place = depth, where
        stack += [(each, depth, where) for each in children(part)]
    return place
