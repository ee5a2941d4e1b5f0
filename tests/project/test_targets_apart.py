"""Nothing outside `targets/` knows a target: no name of one, none of its stages, none of its modules.

What the rest has to know of a target is a field of its manifest or machine. The names are read off the
manifests, so a new target is covered as it comes. Prose is exempt by its form: docstrings, and texts with a
space in them, which are sentences for people. Any other text that spells a name is one that code compares.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilebench.targets import BUILT_IN, manifest, stage_names

ROOT = Path(__file__).resolve().parent.parent.parent / "tilebench"
# Texts that name a machine of a target, such as `cuda:sm_90a` or an architecture alone.
_NAMES = "|".join(BUILT_IN)
_MACHINE = re.compile(rf"(?:{_NAMES})(?::.*)?|(?:sm|compute)_\d+\w*")
# A list of names in one text, as a command line takes it.
_SEPARATORS = re.compile(r"[,|]")


def own_stages() -> frozenset[str]:
    """Stages that a target's folder makes; those of the roads in `passes` belong to nobody."""
    emitted = {step.name for name in BUILT_IN for step in manifest(name).steps}
    shared = {row.name for row in manifest("cuda").road}
    return frozenset(emitted | set(stage_names())) - shared


def docstrings(tree: ast.AST) -> set[int]:
    """The ids of the constants that are docstrings."""
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, scopes) and node.body and isinstance(node.body[0], ast.Expr)
    }


def is_name(text: str, stages: frozenset[str]) -> bool:
    """Whether a text, or a word of a list in it, is a target's name, machine or stage."""
    if " " in text or "\n" in text:
        return False
    words = [word for word in _SEPARATORS.split(text) if word]
    return any(_MACHINE.fullmatch(word) or word in stages for word in words)


def spelled(text: str, stages: frozenset[str]) -> Iterator[tuple[int, str]]:
    """(line, what) of each name of a target in a module's source."""
    tree = ast.parse(text)
    prose = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            if is_name(node.value, stages):
                yield node.lineno, repr(node.value)
        elif isinstance(node, ast.ImportFrom):
            path = (node.module or "").split(".")
            inner = path[path.index("targets") + 1 :] if "targets" in path else []
            names = [alias.name for alias in node.names] if path[-1] == "targets" else []
            found = [name for name in (*inner[:1], *names) if name in BUILT_IN]
            yield from ((node.lineno, f"import of targets.{name}") for name in found)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if re.match(rf"tilebench\.targets\.({_NAMES})\b", alias.name):
                    yield node.lineno, f"import of {alias.name}"


def test_only_the_targets_spell_their_names() -> None:
    stages = own_stages()
    assert {"cuda", "ptx", "sass", "loops", "llvm", "asm"} <= stages
    assert not {"laid_out", "threaded"} & stages
    found = [
        f"{path.relative_to(ROOT.parent)}:{line}: {what}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] != "targets"
        for line, what in spelled(path.read_text(encoding="utf-8"), stages)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ('if manifest.name == "cuda": pass', True),
        ('held = {"ptx": 40}', True),
        ('words = "tile,laid_out,sass"', True),
        ('where = f"cuda:{ordinal}"', True),
        ('describe("sm_90a")', True),
        ("from ..targets.cuda.machines import KNOWN", True),
        ("from ..targets import cpu", True),
        ("def later():\n    import tilebench.targets.null", True),
        ("from ..targets import manifest", False),
        ('raise TargetError("compile it for target=cpu to run it here")', False),
        ('def f():\n    """cuda"""', False),
        ('name = "__cuda_array_interface__"', False),
        ('stage == "laid_out"', False),
    ],
)
def test_the_rule_sees_a_leak_and_leaves_prose(line: str, caught: bool) -> None:
    assert bool(list(spelled(line, own_stages()))) is caught
