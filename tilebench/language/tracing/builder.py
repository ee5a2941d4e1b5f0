"""Where the words of a kernel put their statements while the kernel is traced.

A word (`T.copy`, say) is a plain function. It finds the trace it belongs to here, so it works the
same in the kernel's own body and in a Python helper called from it.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from ...errors import LanguageError, Place
from ...ir import Buffer, Expr, OpStmt, Region, Stmt
from ...ir.effects import effects_of
from ..lowered.decisions import Panels


@dataclass(eq=False)
class BodyFrame:
    """One body being filled. `kind` is `function`, `kernel`, `serial`, `pipelined`, `parallel` or `if`."""

    kind: str
    place: Place | None
    statements: list[Stmt] = field(default_factory=list[Stmt])


# `name = T.alloc_...` on the line of a helper, which Python itself runs.
_ASSIGNED = re.compile(r"\s*([^\W\d]\w*)\s*(?::[^=]+)?=[^=]")


def _no_macro(macro: Any, *_: object) -> NoReturn:
    raise LanguageError("{macro} belongs in a kernel's body", macro=macro)


def _nowhere() -> Place | None:
    return None


@dataclass(eq=False)
class Builder:
    """One trace: its open bodies, the names taken, and where the reader of the kernel stands.

    `locate` gives the place of what is being evaluated, `target` the name that the running
    assignment gives to what it makes (an allocation takes it).
    """

    frames: list[BodyFrame] = field(default_factory=lambda: [BodyFrame("function", None)])
    names: set[str] = field(default_factory=lambda: {"T"})
    locate: Callable[[], Place | None] = _nowhere
    # The last number that each name has taken: names are many in a long kernel.
    counts: dict[str, int] = field(default_factory=dict[str, int])
    target: str = ""
    order: Panels | None = None
    # The threads of a block of each launch, as the kernel numbers them (`threads.block`).
    blocks: list[Any] = field(default_factory=list[Any])
    # Other hints of the launch, by its fields, and statements about the kernel in front of it.
    launch_hints: dict[str, Any] = field(default_factory=dict[str, Any])
    before: list[Stmt] = field(default_factory=list[Stmt])
    # Arrays at addresses that are known in front of it: each launch has them.
    tensors: list[Stmt] = field(default_factory=list[Stmt])
    # The barriers that `T.get_mbarrier` names by number.
    barriers: Any = None
    # How a reduction over threads combines, where the kernel says it around.
    reducer: str = ""
    # Fragments of which an element is used outside T.Parallel, and where first.
    lone: dict[str, Place | None] = field(default_factory=dict[str, "Place | None"])
    # Views of buffers, by name, and the buffer whose memory each is.
    views: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    # What T.alloc_reducer made, by name, and the operation of each.
    reducers: dict[str, str] = field(default_factory=dict[str, str])
    # Layouts that tiles were given, and where.
    layouts: dict[str, tuple[Any, Place | None]] = field(
        default_factory=dict[str, "tuple[Any, Place | None]"]
    )
    # What names are short for, where no memory is read: it is the same wherever the name stands.
    values: dict[str, Expr] = field(default_factory=dict[str, Expr])
    # Text of the kernel's own that stands in front of it.
    sources: list[str] = field(default_factory=list[str])
    # Where its random numbers come from: the state that was begun last, and the slots of those that parallel
    # loops draw, with their counters.
    random: Any = None
    draws: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    # Whether it prints or asserts, and how what it says is to be read.
    speaks: bool = False
    printed: Any = None
    kernel: Place | None = None
    # How many blocks the open kernel has, x first.
    grid: tuple[int | Expr, ...] = ()
    # Of a kernel function whose own body is the kernel: its constants and the arrays that it makes.
    eager: Any = None
    # Writes a macro's statements into the kernel, and the macros that are being written, outermost first.
    inline: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _no_macro
    macros: list[Any] = field(default_factory=list[Any])

    @property
    def place(self) -> Place | None:
        return self.locate()

    def unique(self, name: str) -> str:
        """The name, with the suffix `__2`, `__3` when it is taken."""
        fresh, count = name, self.counts.get(name, 1)
        while fresh in self.names or keyword.iskeyword(fresh):
            count += 1
            fresh = f"{name}__{count}"
        self.names.add(fresh)
        self.counts[name] = count
        return fresh

    def allocation_name(self, word: str) -> str:
        """A unique name for what `word` allocates: that of the assignment, also inside a helper."""
        place = self.place
        assigned = None if self.target or place is None else _ASSIGNED.match(place.text)
        return self.unique(self.target or (assigned.group(1) if assigned else word.removeprefix("T.alloc_")))

    def memory_of(self, buffer: Buffer) -> str:
        """The name of the buffer whose memory it is, of a view that of the buffer behind."""
        return self.views.get(buffer.name, buffer).name

    def emit(self, stmt: Stmt) -> None:
        """Append a statement to the innermost body; refused outside `with T.Kernel`.

        An operation that writes to an array without elements does nothing, and is left out.
        """
        if len(self.frames) == 1:
            self.outside(type(stmt).__name__.lower())
        if isinstance(stmt, OpStmt) and any(holds_nothing(e.region) for e in effects_of(stmt) if e.writes):
            return
        self.frames[-1].statements.append(stmt)

    def say(self, stmt: Stmt) -> None:
        """Append a statement about the kernel: in front of its block it waits for that."""
        (self.frames[-1].statements if len(self.frames) > 1 else self.before).append(stmt)

    def replace(self, old: Stmt, new: Stmt) -> None:
        """Put `new` where `old` stands in one of the open bodies."""
        for frame in self.frames:
            for index, statement in enumerate(frame.statements):
                if statement is old:
                    frame.statements[index] = new

    def within(self, kind: str) -> BodyFrame | None:
        """The innermost open body of a kind, None when there is none."""
        return next((each for each in reversed(self.frames) if each.kind == kind), None)

    def outside(self, what: str) -> NoReturn:
        if self.kernel is not None:
            raise LanguageError(
                "the kernel's work ends with its `with T.Kernel` block: {what} stands after it",
                what=what,
                also=[("the block is here", self.kernel)],
                hint="move the statement into the block",
            )
        raise LanguageError(
            "this works on the device and must stand inside `with T.Kernel(...)`: {what}",
            what=what,
            hint="statements before the block may only compute Python values",
        )


def holds_nothing(region: Region | None) -> bool:
    """Whether a region has no element, or lies in an array that has none."""
    return region is not None and 0 in (*(region.extent or ()), *region.buffer.shape)


_current: ContextVar[Builder | None] = ContextVar("tilebench_builder", default=None)


class Tracing:
    """`with Tracing(builder):` makes it the trace that words belong to."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def __enter__(self) -> Builder:
        self.token: Any = _current.set(self.builder)
        return self.builder

    def __exit__(self, *_: object) -> None:
        _current.reset(self.token)


def here() -> Place | None:
    """The place being traced; None outside a trace."""
    builder = _current.get()
    return None if builder is None else builder.locate()


def inside_kernel(word: str) -> Builder:
    """The running trace, with its kernel open. Raises `LanguageError` elsewhere."""
    builder = _current.get()
    if builder is None:
        raise LanguageError(
            "{word} is a word of a kernel and means nothing in plain Python",
            word=word,
            hint="write it inside `with T.Kernel(...)` of a @T.prim_func",
        )
    if len(builder.frames) == 1:
        builder.outside(word)
    return builder


_LOOPS = {
    "T.Parallel": "give one loop all the extents: for i, j in T.Parallel(m, n)",
    "T.Pipelined": "use T.serial inside, or put T.Pipelined around T.Parallel",
}


def shown(value: object) -> str:
    """A thing that does not belong in a kernel, as an error names it: short, and without file names."""
    if isinstance(value, (ModuleType, FunctionType, type)):
        kind = "the module" if isinstance(value, ModuleType) else "the function"
        return f"{'the class' if isinstance(value, type) else kind} {value.__name__}"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def for_tiles(word: str) -> Builder:
    """The running trace for an operation on whole tiles, which no body of `T.Parallel` may hold."""
    builder = inside_kernel(word)
    loop = builder.within("parallel")
    if loop is not None:
        raise LanguageError(
            "{word} cannot stand inside T.Parallel"
            if word in _LOOPS
            else "{word} works on a whole tile, with all threads, and cannot stand inside T.Parallel",
            word=word,
            also=[("the loop is here", loop.place)],
            hint=_LOOPS.get(word, "move it before or after the loop; inside, work on elements"),
        )
    return builder


def running() -> Builder | None:
    """The running trace, None in plain Python."""
    return _current.get()


def in_trace(word: str) -> Builder:
    """The running trace, whether or not its kernel is open."""
    builder = _current.get()
    if builder is None:
        raise LanguageError("{word} is a word of a kernel and means nothing in plain Python", word=word)
    return builder
