"""The words of `%%tile` and of the command line: parameters, sweeps, stages, and what is wrong with them.

Both doors take values in the same spelling, so that a line can be carried from a cell to a shell.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import OptionError, nearest

# name: (how many words it takes, its words, what it does). -1: any number of words, at least one.
WORDS: dict[str, tuple[int, str, str]] = {
    "--target": (1, "TARGET", "what to compile for; `auto` by default"),
    "--with": (-1, "M=1024 N=1024 ...", "values of the kernel function's parameters"),
    "--sweep": (-1, "block_M=64,128 num_stages=1..4", "values that a slider walks"),
    "--stages": (1, "NAME,NAME,...", "the stages to show, in this order"),
    "--schedule": (1, "FILE", "a schedule file (TOML)"),
    "--against": (
        1,
        "NAME,NAME,...",
        "other implementations: numpy, torch, cublas, triton, a function of the notebook",
    ),
    "--run": (0, "", "measure, in a child process"),
    "--check": (0, "", "compare every element with the reference"),
}
# The beginning of a line of the magic, with its name and a space typed.
TILE_LINE = re.compile(r"\s*%{1,2}tile(?=\s)")
# A sweep longer than this is a slip of the pen: nobody walks a slider of ten thousand positions.
MOST_VALUES = 512


@dataclass(frozen=True)
class TileOptions:
    """What one `%%tile` line asks for."""

    kernel: str = ""
    target: str | None = None
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    sweep: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    stages: tuple[str, ...] = ()
    schedule: str = ""
    run: bool = False
    check: bool = False
    position: dict[str, Any] = field(default_factory=dict[str, Any])
    against: tuple[str, ...] = ()


def usage() -> str:
    """The line in words: its form, and a line for each option."""
    out = [
        "%%tile [KERNEL] [NAME=VALUE ...] "
        + " ".join(f"[{name}{' ' * bool(words)}{words}]" for name, (_, words, _) in WORDS.items())
    ]
    out += [f"  {name:<10} {words:<32} {what}" for name, (_, words, what) in WORDS.items()]
    return "\n".join(out)


def parse_line(line: str) -> TileOptions:
    """The options of a `%%tile` line. `OptionError` tells the right ones, the nearest first."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise OptionError(
            "the line of %%tile cannot be read: {why}",
            why=str(error).lower(),
            hint="close every quote that is opened",
        ) from None
    found: dict[str, list[str]] = {}
    kernel = ""
    alone: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.startswith("-"):
            if "=" in word:
                alone.append(word)
            else:
                kernel = _kernel_name(word, kernel)
            continue
        name, joined, rest = word.partition("=")
        count = _count_of(name, found)
        taken = [rest] if joined else []
        while index < len(words) and not words[index].startswith("--") and (count < 0 or len(taken) < count):
            if count < 0 and "=" not in words[index]:
                break
            taken.append(words[index])
            index += 1
        _enough(name, count, taken, words[index] if index < len(words) else "")
        found.setdefault(name, []).extend(taken)
    position = parse_values(alone)
    target = _target(found.get("--target", []), position)
    return TileOptions(
        kernel, target, parse_values(found.get("--with", [])),
        parse_sweep(found.get("--sweep", [])), parse_names(found.get("--stages", [])),
        next(iter(found.get("--schedule", [])), ""), "--run" in found, "--check" in found, position,
        parse_names(found.get("--against", [])),
    )  # fmt: skip


def _target(found: Sequence[str], position: dict[str, Any]) -> str | None:
    """The target of an option or of a position, which loses it."""
    named = position.pop("target", None)
    if found and named is not None:
        raise OptionError("the target is given twice", found="{one} and {other}", one=found[0], other=named)
    return found[0] if found else None if named is None else str(named)


def _kernel_name(word: str, before: str) -> str:
    if before:
        raise OptionError(
            "%%tile takes one kernel name", found="{first} and {second}", first=before, second=word,
            hint="values of parameters come after --with",
        )  # fmt: skip
    return word


def _count_of(name: str, found: dict[str, list[str]]) -> int:
    """How many words an option takes. Raises for one that there is not, or that stands twice."""
    if name not in WORDS:
        close = nearest(name, list(WORDS), limit=1)
        raise OptionError(
            "%%tile has no option {name}", name=name, options=", ".join(WORDS),
            hint=(f"did you mean {close[0]}? " if close else "") + "options: {options}",
        )  # fmt: skip
    count = WORDS[name][0]
    if name in found and count >= 0:
        raise OptionError("{name} stands twice", name=name, hint="keep one of them")
    return count


def _enough(name: str, count: int, taken: Sequence[str], following: str) -> None:
    if (count == 1 and len(taken) != 1) or (count < 0 and not taken):
        raise OptionError(
            "{name} needs {what} after it", name=name, what="a word" if count == 1 else "NAME=VALUE words",
            expected="{name} {form}", form=WORDS[name][1], found="{following}" if following else "",
            following=following,
        )  # fmt: skip
    if count == 0 and taken:
        raise OptionError("{name} takes no value", name=name, found="{value}", value=taken[0])


def parse_value(text: str) -> Any:
    """A value as it is typed: a number, True, False, None, quoted text, a tuple; any other word is text.

    Raises `OptionError` for what begins like a number or a quotation and is none.
    """
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        lowered = {"true": True, "false": False, "none": None}
        if not text or text[0].isdigit() or text[0] in "+-.([{'\"":
            raise OptionError(
                "{text} is neither a value nor a word", text=text,
                expected="a number, True, False, None, quoted text, a tuple, or a word such as float16",
            ) from None  # fmt: skip
        return lowered.get(text, text)


def _pair(word: str, what: str) -> tuple[str, str]:
    name, sign, value = word.partition("=")
    if not sign or not name or not value:
        raise OptionError(
            "{word} is no {what}", word=word, what=what, expected="NAME=VALUE, without spaces around the sign"
        )
    return name, value


def parse_values(words: Iterable[str]) -> dict[str, Any]:
    """`M=1024 dtype=float16` as a dict. `OptionError` for a word of another form or a name twice."""
    out: dict[str, Any] = {}
    for word in words:
        name, value = _pair(word, "value of a parameter")
        if name in out:
            raise OptionError("{name} is given twice", name=name)
        out[name] = parse_value(value)
    return out


def parse_names(words: Iterable[str]) -> tuple[str, ...]:
    """`tile,cuda` as names."""
    return tuple(name for word in words for name in word.split(",") if name)


def parse_sweep(words: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """`block_M=64,128 num_stages=1..4` as values by name. Both ends of a range belong to it."""
    out: dict[str, tuple[Any, ...]] = {}
    for word in words:
        name, text = _pair(word, "sweep")
        if name in out:
            raise OptionError("{name} is swept twice", name=name)
        values: dict[Any, None] = {}
        for part in text.split(","):
            values.update(dict.fromkeys(_range(name, part) if ".." in part else (parse_value(part),)))
        out[name] = checked_domain(name, tuple(values))
    return out


def checked_domain(name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """The values of one slider. `OptionError` for none, or for more than anybody could walk."""
    if not values or len(values) > MOST_VALUES:
        raise OptionError(
            "the sweep of {name} has {count} values",
            name=name,
            count=len(values),
            expected=f"1 to {MOST_VALUES}",
        )
    return tuple(values)


def _range(name: str, text: str) -> tuple[int, ...]:
    parts = text.split("..")
    try:
        first, last, step = (*map(int, parts), 1)[:3] if len(parts) in (2, 3) else (None, None, None)
    except ValueError:
        first = last = step = None
    if first is None or last is None or not step or (last - first) * step < 0:
        raise OptionError(
            "{text} is no range of {name}", text=text, name=name,
            expected="FIRST..LAST or FIRST..LAST..STEP in whole numbers, as 1..4 or 32..128..32",
        )  # fmt: skip
    return tuple(range(first, last + (1 if step > 0 else -1), step))
