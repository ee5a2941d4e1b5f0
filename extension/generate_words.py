"""What editors say of the tile language: `tilebench/workbench/words.json`, of the language and its targets.

Every name has its signature, its first line, the roads on which the tests' kernels with it are right, and
what instructions and dtypes the targets have for it. `generate_record.py` writes the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import tilebench.language as T
from tilebench.language import known
from tilebench.language.float_functions import FAST
from tilebench.language.word_table import known_roads, row_of
from tilebench.targets import manifest, names, resolve
from tilebench.targets.abilities import Abilities, abilities
from tilebench.workbench.options import WORDS
from tilebench.workbench.packed import pack, unpack

TABLES = Path(__file__).parent.parent / "tilebench" / "workbench"
PACKED_HEAD = """\
// Written by generate_record.py from tilebench/workbench/opcodes.json and the language; change them there.

/** JSON, deflated, in base64: sentences of opcodes, and of the words with their signatures. */
"""
INNER = {"PrimFunc", "TensorSpec", "registry"}


def generate_words() -> str:
    """The text of the file: a line a name, so that a change of one is a change of one line."""
    machines = [machine for name in names() for machine in manifest(name).presentation.machines]
    tables = [(machine, abilities(*resolve(machine))) for machine in machines]
    offered = [name for name in T.NAMES if name not in INNER]
    words = {name: _word(name) for name in offered}
    facts = {name: _facts(name, tables) for name in offered}
    # Names that have to be spelled out: completion of `T.` does not offer what begins with underscores.
    words |= {name: [_word(name.strip("_"))[0], "the fast form, less exact"] for name in FAST}
    later = {
        name: _missing(name) for name in sorted(known.LATER | known.HOPPER.keys() | known.ELSEWHERE.keys())
    }
    parts = [
        f'"roads": {json.dumps(known_roads())}',
        _table("words", words),
        _table("facts", {name: row for name, row in facts.items() if row != [-1, []]}),
        _table("later", later),
        _table("options", {name: [form, what] for name, (_, form, what) in WORDS.items()}),
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def generate_packed(kept: str) -> str:
    """The text of `src/bench/explain/packed.ts`: the sentences that panes need, a quarter of their size.

    `kept` is the file as it is, which stays where it holds the same: what deflates differs by its version.
    """
    opcodes = json.loads((TABLES / "opcodes.json").read_text(encoding="utf-8"))
    wanted = {**opcodes, "words": {name: _word(name) for name in T.NAMES if name not in INNER}}
    found = re.search(r"'([A-Za-z0-9+/=]+)'", kept)
    if found is not None and unpack(found[1]) == wanted:
        return kept
    return f"{PACKED_HEAD}export const PACKED =\n  '{pack(wanted, level=9)}';\n"


def _table(name: str, rows: Mapping[str, object]) -> str:
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in rows.items()
    )
    return f'"{name}": {{\n{lines}\n}}'


def _missing(name: str) -> str:
    what, hint = known.explain_missing(name, [])
    return f"{what}; {hint}" if hint else what


def _word(name: str) -> list[str]:
    row = row_of(T, name)
    return [row.signature.removeprefix(f"T.{name}"), row.line]


def _facts(name: str, tables: Sequence[tuple[str, Abilities]]) -> list[object]:
    """The roads on which the word is right, as bits (-1: untried), and what machines have for it."""
    roads = row_of(T, name).roads
    bits = sum(1 << k for k, road in enumerate(known_roads()) if roads and road in roads)
    return [bits if roads else -1, _notes(name, tables)]


def _notes(name: str, tables: Sequence[tuple[str, Abilities]]) -> list[str]:
    """What machines have for a word, those together that have the same."""
    found: dict[str, list[str]] = {}
    for machine, table in tables:
        said = _instructions(name, machine, table) or ", ".join(table.functions.get(name, ()))
        if said:
            found.setdefault(said, []).append(machine)
    every = [machine for machine, _ in tables]
    return [f"{_ranges(machines, every)}: {said}" for said, machines in found.items()]


def _ranges(machines: Sequence[str], every: Sequence[str]) -> str:
    """Machines in few words: `cpu, cuda:sm_80 to sm_121a` where no machine in between is left out."""
    if len(machines) == len(every):
        return "all targets"
    out: list[list[str]] = []
    for machine in machines:
        before = out[-1][-1] if out else ""
        follows = bool(before) and every.index(machine) == every.index(before) + 1
        if follows and before.partition(":")[0] == machine.partition(":")[0]:
            out[-1].append(machine)
        else:
            out.append([machine])
    ends = [(run[0], run[-1].partition(":")[2]) if len(run) > 1 else (run[0],) for run in out]
    return ", ".join(" to ".join(end) for end in ends)


def _instructions(name: str, machine: str, table: Abilities) -> str:
    """The instructions of an operation on tiles, with their dtypes where not every one takes all."""
    rows = [row for row in resolve(machine)[1].instructions if row.operation == name]
    instructions = table.operations.get(name, ())
    dtypes = {
        instruction: tuple(
            dict.fromkeys(d for row in rows if row.name == instruction for d in row.dtypes[:2])
        )
        for instruction in instructions
    }
    most = max(map(len, dtypes.values()), default=0)
    told = [
        f"{i} ({', '.join(d)})" if d and (len(dtypes) == 1 or len(d) < most) else i for i, d in dtypes.items()
    ]
    return "; ".join(told)
