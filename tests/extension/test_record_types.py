"""The TypeScript side of the record follows the Python side, and the lock names no address."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tilebench.language as T
from tilebench.workbench.options import WORDS

EXTENSION = Path(__file__).resolve().parent.parent.parent / "extension"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_record", EXTENSION / "generate_record.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # It stands beside what it imports.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXTENSION))
        spec.loader.exec_module(module)
    return module


def test_types_and_tables_are_what_the_package_gives(generator: ModuleType) -> None:
    for path, make in generator.FILES.items():
        written = path.read_text(encoding="utf-8")
        assert written == make(), f"{path.name} differs, run: python extension/generate_record.py"


def test_the_words_of_editors_are_the_language(generator: ModuleType) -> None:
    """What is offered is `dir(T)`, and what is said of a word is what its target has."""
    table = json.loads(generator.generate_words())
    offered = {name for name in table["words"] if not name.startswith("_")}
    assert offered == set(dir(T))
    assert not offered & set(table["later"])
    signature, line = table["words"]["gemm"]
    roads, notes = table["facts"]["gemm"]
    assert roads == 2 ** len(table["roads"]) - 1
    assert signature.startswith("(A: Tile, B: Tile, C: Tile")
    assert line.startswith("Add a product of tiles")
    assert notes[1] == "cuda:sm_75: fma; mma (float16, int8, uint8)"
    assert any(note.startswith("cuda:sm_86 to sm_87: fma; mma (float16, bfloat16") for note in notes)
    assert table["facts"]["exp"][1][0].startswith("cpu: bfloat16, float16, float32, float4_e2m1fn, float64")
    assert set(table["options"]) == set(WORDS)


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
