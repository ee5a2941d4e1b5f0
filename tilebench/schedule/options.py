"""What a schedule can choose, and which values are legal alone.

A choice that depends on the kernel or the card (does this pipeline fit?) is checked by the pass
that acts on it; here stands what can be told from the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ScheduleError
from ..language.copy import EVICTIONS
from ..language.gemm import is_split
from ..language.lowered.decisions import Panels


@dataclass(frozen=True)
class Option:
    """A choice: what it does, and a function from a given value to the one to keep.

    The function raises `ValueError` with what was expected.
    """

    doc: str
    accept: Callable[[Any], Any]


def _whole(least: int, most: int = 1 << 20) -> Callable[[Any], int]:
    def accept(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return accept


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _one_of(*known: str) -> Callable[[Any], str]:
    def accept(value: Any) -> str:
        if value not in known:
            raise ValueError("one of " + ", ".join(known))
        return value

    return accept


def _policy(value: Any) -> str:
    if value not in ("square", "full_row", "full_col") and not is_split(value):
        raise ValueError('one of square, full_row, full_col, or a split of warps such as "4x2"')
    return value


def _order(value: Any) -> Panels | None:
    if value is False or value == 0:
        return None
    if isinstance(value, Panels):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 1 << 20:
        return Panels(value)
    if isinstance(value, Mapping):
        given: dict[str, Any] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
        if set(given) <= {"panels", "axis"} and "panels" in given:
            return Panels(_whole(1)(given["panels"]), _one_of("row", "column")(given.get("axis", "row")))
    raise ValueError('a number of panels, { panels = 8, axis = "row" }, or false')


def _persistent(value: Any) -> bool | int:
    if isinstance(value, bool):
        return value
    try:
        return _whole(1)(value)
    except ValueError:
        raise ValueError("true, false, or how many blocks") from None


def _cluster(value: Any) -> tuple[int, ...]:
    """Blocks along each axis of the grid; one alone is no cluster."""
    if value is None or isinstance(value, bool):
        if value is True:
            raise ValueError(_CLUSTERS)
        return (1,)
    given: tuple[Any, ...] = tuple(value) if isinstance(value, (list, tuple)) else (value,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    try:
        counts = tuple(_whole(1, 16)(count) for count in given)
    except ValueError:
        raise ValueError(_CLUSTERS) from None
    if not 1 <= len(counts) <= 3:
        raise ValueError(_CLUSTERS)
    return counts


_CLUSTERS = "blocks along each axis of the grid, such as [2, 1]"


OPTIONS: dict[str, dict[str, Option]] = {
    "kernel": {
        "threads": Option("threads of a block", _whole(1, 1 << 12)),
        "order": Option("order of blocks (rasterisation)", _order),
        "persistent": Option(
            "blocks that take one tile after another: true for as many as run at a time", _persistent
        ),
        "min_blocks": Option("blocks that are to run on a multiprocessor at a time", _whole(1, 32)),
        "warp_specialize": Option("threads of their own bring the tiles of pipelined loops", _flag),
        "dependent_launch": Option(
            "blocks begin while the launch before ends, and wait before they touch arrays", _flag
        ),
        "cluster": Option("blocks along each axis that run together and share what they read", _cluster),
    },
    "loop": {
        "num_stages": Option("versions in flight of a pipelined loop; 0 is a plain loop", _whole(0, 64)),
        "split": Option("blocks that share the iterations of a loop over the terms of sums", _whole(1, 1024)),
        "overlap": Option("a step's first product is issued before the step before is done", _flag),
        "unroll": Option("write the iterations of a serial loop out", _flag),
    },
    "buffer": {
        "swizzle": Option("XOR-swizzle a shared buffer", _flag),
    },
    "gemm": {
        "policy": Option("how the tile splits over warps", _policy),
        "instruction": Option("the instruction from the target's table", _one_of("fma", "mma", "wgmma")),
        "stage_A": Option("where operand A of global memory is staged", _one_of("shared")),
        "stage_B": Option("where operand B of global memory is staged", _one_of("shared")),
    },
    "copy": {
        "vector": Option("most elements of one access", _whole(1, 64)),
        "instruction": Option("the instruction from the target's table", _one_of("ld.st", "cp.async", "tma")),
        "eviction": Option("how long caches keep what a copy in boxes moves", _one_of(*EVICTIONS)),
    },
}


def offered(kind: str) -> list[str]:
    """The choices for one kind of thing."""
    return list(OPTIONS[kind])


def check_option(kind: str, name: str, value: Any) -> Any:
    """The value to keep. Raises `ScheduleError` that says what is legal."""
    try:
        return OPTIONS[kind][name].accept(value)
    except ValueError as error:
        raise ScheduleError(
            "{name} of a {kind} cannot be {value}", name=name, kind=kind, value=repr(value),
            expected=str(error).replace("{", "{{").replace("}", "}}"),
        ) from None  # fmt: skip
