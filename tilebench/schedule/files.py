"""Schedule files: a card's ordered rules in TOML; the first whose condition holds wins.

[[schedule]]
when = "M <= 128"
threads = 256
params = { block_M = 64 }
[schedule.loop.ko]
num_stages = 3
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ..errors import Place, ScheduleError, remember_source
from ..language.lowered.decisions import Panels
from .value import Origin, Schedule, from_tables

# A file of a hundred rules is 20 KB.
MOST_BYTES = 1 << 20
TABLES = ("loop", "buffer", "gemm", "copy")


def _floor(a: Any, b: Any) -> Any:
    return a // b


_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: _floor,
    ast.Mod: operator.mod, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


_START = re.compile(r"\s*\[\[\s*schedule\s*\]\]")


@dataclass(frozen=True)
class Rule:
    """One rule: its condition (empty: always) over the kernel's parameters, and its schedule."""

    number: int
    when: str
    schedule: Schedule
    place: Place

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the condition is true. `values` also holds `target`, the machine's name."""
        return True if not self.when else bool(_evaluate(self.when, values, self.place))


@dataclass(frozen=True)
class ScheduleFile:
    """The rules of one file, in order."""

    name: str
    rules: tuple[Rule, ...]

    def choose(self, values: Mapping[str, Any]) -> Schedule | None:
        """The schedule of the first rule that holds, None when none does."""
        for rule in self.rules:
            if rule.holds(values):
                return rule.schedule
        return None


def a_schedule(given: Any) -> Schedule:
    """A `Schedule` that a caller gave, as it is. Raises `ScheduleError` for anything else."""
    if not isinstance(given, Schedule):
        raise ScheduleError(
            "this is no schedule", found="{kind}", kind=type(given).__name__, expected="a tilebench.Schedule",
            hint="tilebench.Schedule.of(threads=256, loop={{'ko': {{'num_stages': 3}}}}) makes one",
        )  # fmt: skip
    return given


def as_given(schedule: Any) -> Schedule | ScheduleFile | None:
    """What a caller names as the schedule: a value, the path of a file, which is read, or None."""
    if isinstance(schedule, (str, Path)):
        return load_schedule(schedule)
    return schedule if schedule is None or isinstance(schedule, ScheduleFile) else a_schedule(schedule)


def load_schedule(path: str | Path) -> ScheduleFile:
    """Read a schedule file. Raises `ScheduleError` at the line that is wrong."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise ScheduleError("the schedule file {path} cannot be read: it is no file", path=path)
        if path.stat().st_size > MOST_BYTES:
            raise ScheduleError(
                "the schedule file {path} is larger than any: {size} bytes", path=path,
                size=path.stat().st_size, expected=f"at most {MOST_BYTES}",
            )  # fmt: skip
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScheduleError(
            "the schedule file {path} cannot be read: {why}", path=path, why=error.strerror
        ) from None
    except UnicodeDecodeError as error:
        raise ScheduleError(
            "the schedule file {path} cannot be read: it is not UTF-8, {why}", path=path, why=error.reason
        ) from None
    return parse_schedule(text, str(path))


def parse_schedule(text: str, name: str = "schedule.toml") -> ScheduleFile:
    """The rules that `text` holds. Raises `ScheduleError`, at the line of `name`, for what is no schedule."""
    import tomllib  # 5 ms, and only files need it

    remember_source(name, text)
    try:
        tables = tomllib.loads(text)
    except ValueError as error:  # TOML that is none, and numbers of more digits than Python reads
        raise ScheduleError("this is not TOML: {why}", at=_toml_place(name, str(error)), why=error) from None
    except RecursionError:
        raise ScheduleError("this is nested too deeply for a schedule", at=Place(name, 1)) from None
    raw = _tables(tables.get("schedule"))
    if raw is None or set(tables) != {"schedule"}:
        nothing = "schedule, which is no list of tables" if tables else "nothing"
        extra = ", ".join(sorted(set(tables) - {"schedule"})) or nothing
        raise ScheduleError(
            "a schedule file holds [[schedule]] rules", at=Place(name, 1), found="{extra}", extra=extra,
            hint="start each rule with a line [[schedule]]",
        )  # fmt: skip
    starts = [number for number, line in enumerate(text.splitlines(), 1) if _START.match(line)]
    rules: list[Rule] = []
    for number, table in enumerate(raw, 1):
        place = Place(name, starts[number - 1] if number <= len(starts) else 1)
        with place:
            rules.append(_rule(number, dict(table), name, place))
    return ScheduleFile(name, tuple(rules))


def _tables(value: Any) -> list[dict[str, Any]] | None:
    """The rules, None when it is no list of tables."""
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):  # pyright: ignore[reportUnknownVariableType]
        return None
    return cast("list[dict[str, Any]]", value)


def _rule(number: int, table: dict[str, Any], name: str, place: Place) -> Rule:
    when = table.pop("when", "")
    params = table.pop("params", {})
    tables = {kind: table.pop(kind, {}) for kind in TABLES}
    if not isinstance(when, str):
        raise ScheduleError("`when` is text, found {value}", value=repr(when))
    for kind, given in {"params": params, **tables}.items():
        if not isinstance(given, dict):
            what = "values" if kind == "params" else "addresses"
            raise ScheduleError(
                "{kind} needs a table of {what}", kind=kind, what=what, hint=f"[schedule.{kind}]"
            )
    words = f"{Path(name).name} rule {number}" + (f": {when}" if when else "")
    return Rule(number, when, from_tables(table, tables, params, Origin("rule", words)), place)


def _toml_place(name: str, message: str) -> Place:
    words = message.replace(",", " ").replace(")", " ").split()
    line = int(words[words.index("line") + 1]) if "line" in words else 1
    return Place(name, line)


def _arithmetic(op: ast.operator, left: Any, right: Any) -> Any:
    # Of numbers alone: text times a number, or with `%`, is as long as anybody likes.
    if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
        raise TypeError("arithmetic is of numbers")
    return _OPERATORS[type(op)](left, right)


def _evaluate(text: str, values: Mapping[str, Any], place: Place) -> Any:
    """A condition: comparisons, `and`/`or`/`not` and whole-number arithmetic over names. No calls."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:  # ValueError: a null character
        why = error.msg if isinstance(error, SyntaxError) else error
        raise ScheduleError(
            "the condition {text!r} is not an expression: {why}", at=place, text=text, why=why
        ) from None
    except (RecursionError, MemoryError):
        raise ScheduleError("the condition is nested too deeply", at=place) from None

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() | str() as constant):
                return constant
            case ast.Name(id=name):
                if name not in values:
                    raise ScheduleError(
                        "the condition names {name}, which the kernel has not", at=place, name=name,
                        hint="parameters: " + ", ".join(values),
                    )  # fmt: skip
                return values[name]
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(value(part) for part in parts)
            case ast.BoolOp(values=parts):
                return any(value(part) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return not value(inner)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -value(inner)
            case ast.BinOp() if type(node.op) in _OPERATORS:
                return _arithmetic(node.op, value(node.left), value(node.right))
            case ast.Compare():
                sides = [value(node.left), *(value(part) for part in node.comparators)]
                checks = zip(node.ops, sides, sides[1:], strict=False)
                return all(_OPERATORS[type(op)](a, b) for op, a, b in checks)
            case _:
                raise ScheduleError("a condition cannot hold {text!r}", at=place, text=ast.unparse(node))

    try:
        return value(tree)
    except RecursionError:
        raise ScheduleError("the condition is nested too deeply", at=place) from None
    except (TypeError, ArithmeticError, KeyError) as error:
        raise ScheduleError(
            "the condition {text!r} cannot be decided: {why}", at=place, text=text, why=error
        ) from None


def schedule_text(schedule: Schedule, when: str = "") -> str:
    """A schedule as one rule of a schedule file, which reads back to the same choices.

    `when` is the rule's condition; empty: it always holds. Raises `ScheduleError` for a parameter
    that a file cannot hold.
    """
    schedule = a_schedule(schedule)
    head = ["[[schedule]]"] + ([f"when = {json.dumps(when)}"] if when else [])
    tables: dict[tuple[str, str], list[str]] = {}
    for directive in schedule.directives:
        line = f"{directive.name} = {_toml(directive.value)}"
        if directive.kind == "kernel":
            head = [old for old in head if not old.startswith(f"{directive.name} = ")] + [line]
        else:
            tables.setdefault((directive.kind, directive.address), []).append(line)
    if schedule.params:
        inner = ", ".join(f"{_key(name)} = {_toml(value)}" for name, value in schedule.params.items())
        head.append(f"params = {{ {inner} }}")
    for (kind, address), lines in tables.items():
        # The last choice about a thing wins, as it does when a schedule acts.
        kept = {line.partition(" = ")[0]: line for line in lines}
        head += [f"[schedule.{kind}.{_key(address)}]", *kept.values()]
    return "\n".join(head) + "\n"


def save_schedule(schedule: Schedule, path: str | Path, when: str = "", *, overwrite: bool = False) -> Path:
    """Write a schedule as a file of one rule; gives the path. `load_schedule` reads it back.

    Raises `ScheduleError` where a file is there already, unless `overwrite`.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        hint = "give another name, or overwrite=True"
        raise ScheduleError("{path} is there already", path=path, hint=hint)
    text = schedule_text(schedule, when)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScheduleError(
            "the schedule file {path} cannot be written: {why}", path=path, why=error.strerror
        ) from None
    return path


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)


def _toml(value: Any) -> str:
    if value is None:
        return "false"
    if isinstance(value, Panels):
        return f'{{ panels = {value.size}, axis = "{value.axis}" }}'
    if isinstance(value, (bool, int, float, str)):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"  # pyright: ignore[reportUnknownVariableType]
    raise ScheduleError(
        "a schedule file cannot hold {value}", value=repr(value), expected="numbers, text, lists"
    )  # pyright: ignore[reportUnknownArgumentType]
