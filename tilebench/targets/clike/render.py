"""The stage `threaded` in a language like C: one statement a line, the user's names, lines led back.

The text is self-contained: a prelude with what it uses, no includes. A pointer must be a multiple
of the `align` of its buffer, and no two parameters may overlap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from math import prod

from ...errors import TargetError
from ...ir import Buffer, Function, Stmt, Var, effects_of, line_numbers
from ...ir.stmt import statements
from ...language.scopes import entered, entry_facts
from ...machine import Machine
from ...passes.analysis.launches import parts_of
from ..intrinsics import Intrinsic
from .dialect import Dialect
from .renderer import Renderer
from .statements import STATEMENTS

# Parameters of a kernel behind its own, and what is said of each.
Further = Callable[[Renderer, Function], list[tuple[str, str]]]


@dataclass(frozen=True)
class Rendered:
    """The text, for each of its lines the lines (from 1) of the `threaded` text behind it, and the
    names of its kernels in it, one for each launch."""

    text: str
    lines: tuple[tuple[int, ...], ...]
    entries: tuple[str, ...]

    @property
    def entry(self) -> str:
        """The name of the first kernel."""
        return self.entries[0]


def render(
    function: Function, machine: Machine, dialect: Dialect, intrinsics: Iterable[Intrinsic] = (),
    further: Further | None = None,
) -> Rendered:  # fmt: skip
    """The text of a function in stage `threaded` for a machine.

    `further` gives parameters of a kernel behind its own, each with what a comment says of it, and notes
    their names in the renderer.

    Raises `TargetError` at the user's line for a statement, function or dtype that has no code.
    """
    rows = {**STATEMENTS, **{intrinsic.cls: intrinsic.text for intrinsic in intrinsics}}
    parts = parts_of(function)
    renderers = [Renderer(part, machine, dialect, rows) for part in parts]
    for renderer, part in zip(renderers, parts, strict=True):
        # The head of one of several comes from its launch, which has a line of its own.
        head = part if part is function else renderer.launch
        _kernel(renderer, part, head, further(renderer, part) if further else [])
    numbers = line_numbers(function)
    # The kernel's own text stands between ours and its kernels, and no line of a stage is behind it.
    texts: tuple[str, ...] = function.known("sources", ())
    own = [*_names_for("\n".join(texts), dialect), *(line for text in texts for line in text.splitlines())]
    written = [*own, *chain.from_iterable(renderer.lines for renderer in renderers)]
    text, before = dialect.prelude.before("\n".join(written) + "\n")
    lines: list[tuple[int, ...]] = [()] * (before + len(own))
    for source in chain.from_iterable(renderer.sources for renderer in renderers):
        number = None if source is None else numbers.get(id(source))
        lines.append(() if number is None else (number,))
    entries = tuple(r.names[part.name] for r, part in zip(renderers, parts, strict=True))
    return Rendered(text, tuple(lines), entries)


def _names_for(text: str, dialect: Dialect) -> list[str]:
    """Declarations of names that the kernel's own text takes to be there."""
    used = set(re.findall(r"\w+", text)) if text else set[str]()
    return [line for name, line in dialect.own_names.items() if name in used]


def _kernel(renderer: Renderer, function: Function, head: Stmt, further: list[tuple[str, str]]) -> None:
    launch, dialect = renderer.launch, renderer.dialect
    renderer.expressions.wide = function.known("offsets", 32) == 64
    written = _written(function)
    params = ", ".join(
        [
            *(_parameter(renderer, param, param.name in written) for param in function.params),
            *(parameter for parameter, _ in further),
        ]
    )
    for _, said in further:
        renderer.line(f"// {said}", None)
    entry = renderer.names[function.name]
    if launch.shared_bytes:
        renderer.line(dialect.shared_block, None)
    threads, blocks = launch.threads, launch.min_blocks or 1
    opened = dialect.kernel.format(
        threads=threads, blocks=blocks, cluster=_cluster(renderer), entry=entry, params=params
    )
    renderer.line(opened, head)
    renderer.depth = 1
    for var, number in zip(launch.vars, dialect.blocks, strict=False):
        renderer.line(f"const int {renderer.names[var.name]} = {number};", launch)
    renderer.body(launch.body, entered(launch, entry_facts(function)))
    renderer.depth = 0
    renderer.line("}", None)


def _cluster(renderer: Renderer) -> str:
    """What the kernel's head says of clusters. Raises `TargetError` where the language has none."""
    launch = renderer.launch
    if not launch.cluster:
        return ""
    if not renderer.dialect.cluster or "cluster" not in renderer.machine.features:
        raise TargetError(
            "{target} has no clusters of blocks", at=launch.place, target=renderer.machine.name,
            hint="leave the schedule's cluster out",
        )  # fmt: skip
    return renderer.dialect.cluster.format(blocks=prod(launch.cluster))


def _written(function: Function) -> set[str]:
    """The names of the buffers that the statements of a function write."""
    return {
        effect.buffer.name
        for statement in statements(function.body)
        for effect in effects_of(statement)
        if effect.writes
    }


def _parameter(renderer: Renderer, param: Buffer | Var, written: bool) -> str:
    if isinstance(param, Var):
        return f"const {renderer.type_of(param.type)} {renderer.names[param.name]}"
    return renderer.dialect.parameter.format(
        const="" if written else "const ",
        type=renderer.dialect.memory_type(param.dtype),
        name=renderer.names[param.name],
    )
