"""The TypeScript side of the record follows the Python side, and the lock names no address."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXTENSION = Path(__file__).resolve().parent.parent.parent / "extension"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_record", EXTENSION / "generate_record.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_types_are_what_the_dataclasses_give(generator: ModuleType) -> None:
    for name, make in generator.FILES.items():
        written = (EXTENSION / "src" / name).read_text(encoding="utf-8")
        assert written == make(), "run: python extension/generate_record.py"


@pytest.mark.parametrize(
    ("hint", "typescript", "shape"),
    [
        (str, "string", "string"),
        (float, "number", "number"),
        (int | None, "number | null", "number?"),
        (tuple[tuple[int, ...], ...], "readonly (readonly number[])[]", "[[number]]"),
        (Mapping[str, int | str], "Readonly<Record<string, number | string>>", "{number|string}"),
        (Any, "unknown", "*"),
    ],
)
def test_types_of_fields(generator: ModuleType, hint: Any, typescript: str, shape: str) -> None:
    assert (generator.type_name(hint), generator.shape(hint)) == (typescript, shape)


def test_a_type_that_json_cannot_hold_is_refused(generator: ModuleType) -> None:
    with pytest.raises(TypeError, match="no TypeScript type for"):
        generator.type_name(set[int])


def test_the_lock_names_versions_and_hashes_but_no_address() -> None:
    text = (EXTENSION / "package-lock.json").read_text(encoding="utf-8")
    assert "://" not in text, "run: npm run relock"
    packages = json.loads(text)["packages"]
    assert all("integrity" in entry for name, entry in packages.items() if name)
    # Without it in the lock the builder looks for it on the network, at every build.
    assert "node_modules/@jupyterlab/core-meta" in packages
