"""What a step made, as files for a store, and back: nothing is taken for what it is not.

`meta.json` names the key, the step, the machine and the hash of each file. An entry that says anything else,
or cannot be read, is as good as none: the step runs and its result takes the entry's place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import OptionError
from ..plain import to_plain
from ..record import Diagnostic, Remark, Resources
from ..record_files import from_plain
from .build import Build, EmitStep


def packed(step: EmitStep, build: Build, key: str) -> dict[str, bytes]:
    """A step's results as files. `build.context` holds what this step alone noted."""
    files = {"text": build.texts[step.name].encode()}
    if step.tier == "code":
        files["code"] = build.code
    meta = {
        **_described(files, step, build, key),
        "lines": build.lines.get(step.name, ()),
        "beside": build.beside.get(step.name, ()),
        "resources": to_plain(build.resources),
        "remarks": to_plain(build.context.remarks),
        "diagnostics": to_plain(build.context.diagnostics),
    }
    return {**files, "meta.json": json.dumps(meta).encode()}


def unpacked(files: Mapping[str, bytes], step: EmitStep, build: Build, key: str) -> bool:
    """Put an entry's files into the build; False, and nothing done, when they are not what was kept."""
    bodies = {name: body for name, body in files.items() if name != "meta.json"}
    if set(bodies) != ({"text", "code"} if step.tier == "code" else {"text"}):
        return False
    try:
        meta = json.loads(files["meta.json"])
        if any(meta[name] != value for name, value in _described(bodies, step, build, key).items()):
            return False
        text = bodies["text"].decode()
        lines = tuple(tuple(int(line) for line in found) for found in meta["lines"])
        beside = tuple(str(each) for each in meta["beside"])
        given = meta["resources"]
        resources = from_plain(Resources, given, key) if given is not None else build.resources
        remarks = [from_plain(Remark, each, key) for each in meta["remarks"]]
        diagnostics = [from_plain(Diagnostic, each, key) for each in meta["diagnostics"]]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OptionError):
        return False
    build.texts[step.name] = text
    build.lines[step.name] = lines
    if beside:
        build.beside[step.name] = beside
    build.resources = resources
    build.code = bodies.get("code", build.code)
    build.context.remarks += remarks
    build.context.diagnostics += diagnostics
    return True


def _described(files: Mapping[str, bytes], step: EmitStep, build: Build, key: str) -> dict[str, Any]:
    """What an entry is: its key, step, machine and the hashes of its files."""
    import hashlib  # 1 ms, and only code that is kept needs it

    hashes = {name: hashlib.sha256(body).hexdigest() for name, body in files.items()}
    return {"key": key, "step": step.name, "machine": build.machine.name, "files": hashes}
