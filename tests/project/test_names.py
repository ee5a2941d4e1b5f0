"""One name, one class: a reader who meets a name knows which class it is, without the imports.

A target's own classes stand in its folder and are imported by nobody else, so that they are compared with
each other alone: what LLVM calls a value and CUDA a module may be called so there.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "tilebench"

# Name -> why two classes may have it.
EXCEPTIONS: Mapping[str, str] = {}


def vocabulary(path: Path) -> str:
    """Whose names a file's are: those of one target, or the package's."""
    parts = path.relative_to(PACKAGE).parts
    return parts[1] if parts[0] == "targets" and len(parts) > 2 else ""


def public_classes(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    return [name for name in found if not name.startswith("_")]


def shared_names() -> dict[str, list[str]]:
    """The names that two classes of one vocabulary have, with their files."""
    files: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in public_classes(path):
            files[vocabulary(path), name].append(path.relative_to(ROOT).as_posix())
    return {name: paths for (_, name), paths in files.items() if len(paths) > 1}


def test_no_two_public_classes_share_a_name() -> None:
    shared = shared_names()
    assert {name: paths for name, paths in shared.items() if name not in EXCEPTIONS} == {}
    assert [name for name in EXCEPTIONS if name not in shared] == []
