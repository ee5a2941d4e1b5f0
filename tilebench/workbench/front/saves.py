"""Saving on behalf of a page: into the working folder, under names that are free, with a sentence on what
is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import TileError
from ..keeping import going, kernel_now, save_bench, save_runs

if TYPE_CHECKING:
    from ..session import Session

# How many names are tried: more files of one kernel nobody tells apart.
MOST_NAMES = 1000

Save = Callable[["Session", Path], tuple[Path, ...]]


@dataclass(frozen=True)
class SaveKind:
    """One thing that is saved: what its files are called behind the kernel's name, how, and what can be
    done then.

    `{name}` in `then` is the first file's.
    """

    behind: str
    endings: tuple[str, ...]
    save: Save
    then: str


def _program(session: Session, path: Path) -> tuple[Path, ...]:
    return (kernel_now(session).save_program(path),)


SAVES: dict[str, SaveKind] = {
    "kernel": SaveKind("", (".py", ".toml"), lambda s, p: save_bench(s, p.with_suffix(".py"), False),
                       ": python {name} checks and times it."),
    "record": SaveKind("", (".tbz",), lambda s, p: save_bench(s, p.with_suffix(".tbz"), False),
                       ": tilebench.open_record reads it."),
    "program": SaveKind("", (), _program, "."),
    "measurement": SaveKind("_measured", (".py", ".toml", ".tbz"), lambda s, p: save_runs(s, p, False),
                            ": python {name} measures again."),
}  # fmt: skip


def save_as(session: Session, what: str) -> None:
    """Save, and say what came of it; nothing for what cannot be saved."""
    kind = SAVES.get(what)
    if kind is None:
        return
    try:
        endings = kind.endings or _program_endings(session)
        paths = kind.save(session, _free(Path.cwd(), session.subject.name + kind.behind, endings))
    except TileError as error:
        session.notify(f"Not saved: {error.message}")
        return
    names = [path.name for path in paths]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    session.notify(f"Saved {listed} in {paths[0].parent}" + kind.then.format(name=names[0]))


def _program_endings(session: Session) -> tuple[str, ...]:
    form = kernel_now(session).compilation.manifest.program
    return (form.suffix,) if form is not None else ()


def _free(folder: Path, stem: str, endings: tuple[str, ...]) -> Path:
    """The first name that no file with one of these endings has."""
    for number in range(1, MOST_NAMES):
        path = folder / (stem if number == 1 else f"{stem}_{number}")
        if not any(path.with_name(path.name + ending).exists() for ending in endings):
            return path
    return folder / stem


def go_to(session: Session, text: str) -> None:
    """Go to the position that a line says; what is wrong with it is said."""
    try:
        session.change(going(session, text))
    except TileError as error:
        hint = dict(error.details).get("help", "").partition("?")[0]
        near = f"; {hint}?" if hint.startswith("did you mean") else ""
        session.notify(f"Not gone: {error.message}{near}")
