"""Values become what JSON holds: numbers, text, lists and dicts with text for keys."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

import tilebench.language as T
from tilebench.plain import to_plain


@dataclass(frozen=True)
class Row:
    name: str
    parts: tuple[object, ...]


def test_plain_values() -> None:
    numbers = {"whole": np.int64(3), "half": np.float32(0.5)}
    plain = to_plain({1: Row("a", (1, 2.5, None, True, ("x",))), "of": [Row("b", ())], "numbers": numbers})
    first = {"name": "a", "parts": [1, 2.5, None, True, ["x"]]}
    assert plain == {"1": first, "of": [{"name": "b", "parts": []}], "numbers": {"whole": 3, "half": 0.5}}
    assert json.loads(json.dumps(plain)) == plain


def test_what_json_has_no_form_for_is_its_text() -> None:
    assert to_plain(T.float16) == "float16"
    assert to_plain({"by": test_plain_values})["by"].startswith("<function")
