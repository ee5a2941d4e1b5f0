"""`tilebench targets`: the targets there are, and what one of them can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Parser

if TYPE_CHECKING:
    from ..targets.abilities import Abilities


def targets(parser: Parser, words: list[str]) -> int:
    """Print each target with its stages and whether it runs here; or what TARGET has code for."""
    parser.add_argument("target", metavar="TARGET", nargs="?", help="cpu, cuda, cuda:sm_90a, ...")
    options = parser.parse_all(words)
    if options.target is None:
        print("\n".join(_every()))
        return 0
    from ..targets import resolve
    from ..targets.abilities import abilities

    print("\n".join(_told(abilities(*resolve(options.target)))))
    return 0


def _every() -> list[str]:
    """A paragraph for each target that people compile for."""
    from ..passes.pipeline import COMMON
    from ..targets import manifest, names

    common = ("source", "tile", *(row.name for row in COMMON))
    lines: list[str] = []
    for name in names():
        found = manifest(name)
        if not found.presentation.machines:
            continue
        can, why = found.available()
        road = (*common, *(row.name for row in (*found.road, *found.steps)))
        lines += [f"{name}: {'runs here' if can else f'compiles here, and cannot run: {why}'}"]
        lines += [f"  machines: {', '.join(found.presentation.machines)}", f"  stages: {', '.join(road)}"]
    return [*lines, "", "`tilebench targets TARGET` tells what one of them has code for."]


def _told(found: Abilities) -> list[str]:
    """What one machine can do, as three tables of lines."""
    lines = [
        f"{found.machine} has code for",
        "",
        "operations on tiles, by these instructions (-: needs none)",
    ]
    width = max((len(name) for name in (*found.operations, *found.functions)), default=0)
    lines += [f"  T.{name:<{width}}  {', '.join(by) or '-'}" for name, by in found.operations.items()]
    lines += ["", "functions of elements, by the dtype of their result"]
    lines += [f"  T.{name:<{width}}  {_dtypes(dtypes)}" for name, dtypes in found.functions.items()]
    if found.words:
        lines += ["", "words of one thread that its stages are written in", f"  {', '.join(found.words)}"]
    return lines


def _dtypes(names: tuple[str, ...]) -> str:
    """The names in the order in which the language lists them."""
    from ..ir.dtypes import ALL

    return "every dtype" if set(names) == set(ALL) else ", ".join(name for name in ALL if name in names)
