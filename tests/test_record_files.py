"""Files of strangers: bombs, broken and foreign records are refused by field, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests import kernels
from tests.waiting import costs_less_than
from tilebench import record_files
from tilebench.errors import OptionError
from tilebench.plain import to_plain
from tilebench.record import CompileRecord, Resources, RunRecord
from tilebench.record_files import from_plain, load, save
from tilebench.workbench.packed import from_json, pack, record_json


def zipped(path: Path, *rows: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, body in rows:
            archive.writestr(name, body)
    return path


def refused(path: Path, words: str) -> None:
    """`load` refuses the file in little time and memory, and makes no other file."""
    before = sorted(path.parent.iterdir())
    tracemalloc.start()
    try:
        with costs_less_than(5), pytest.raises(OptionError) as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()
    assert words in str(caught.value)
    assert sorted(path.parent.iterdir()) == before


def test_a_file_that_unpacks_to_gigabytes_is_refused_by_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tbz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("record.json", "w") as out:
        for _ in range(300):
            out.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 20
    refused(path, "larger than any record: 300 MB")


def test_a_file_that_says_less_than_it_unpacks_to(tmp_path: Path) -> None:
    path = zipped(tmp_path / "liar.tbz", ("record.json", bytes(80 << 20)))
    body = path.read_bytes().replace((80 << 20).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    path.write_bytes(body)
    refused(path, "is no tilebench record")


def test_many_values_of_few_bytes_are_refused_before_they_are_made(tmp_path: Path) -> None:
    body = b'{"format": 1, "kind": "run", "record": [' + b"[]," * 9_000_000 + b"[]]}"
    refused(zipped(tmp_path / "many.tbz", ("record.json", body)), "larger than any record")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[" * 500_000, "nested too deeply"),
        (b'{"format": ' + b"9" * 5000 + b"}", "is no tilebench record"),
        (b"\xff\xfe\xff", "is no tilebench record"),
        (b"", "is no tilebench record"),
        (b"null", "has record format None"),
        (b'{"format": true, "kind": "run", "record": {}}', "has record format True"),
        (b'{"format": 2, "kind": "run", "record": {}}', "it may be of another version of tilebench"),
        (b'{"format": 1, "kind": ["run"], "record": {}}', "kind is wrong"),
        (b'{"format": 1, "kind": "run", "record": 7}', "record is wrong"),
    ],
)  # fmt: skip
def test_json_that_is_no_record(tmp_path: Path, body: bytes, words: str) -> None:
    refused(zipped(tmp_path / "x.tbz", ("record.json", body)), words)


@pytest.mark.parametrize(
    "names", [("../record.json",), ("/record.json",), ("record.json", "../../evil"), ("a/record.json",), ()]
)
def test_other_names_than_a_records_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    refused(zipped(folder / "x.tbz", *[(name, b"{}") for name in names]), "is no tilebench record: it holds")
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    refused(zipped(tmp_path / "x.tbz", ("record.json", b"{}"), ("record.json", b"{}")), "it holds")


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tbz")
    refused(tmp_path / "pipe.tbz", "it is no file")
    refused(tmp_path, "it is no file")
    with pytest.raises(OptionError, match="it is no file"):
        load("/dev/zero")


RUN = to_plain(RunRecord("k", "cpu", {"M": 3}, (1e-3, 2e-3), environment={"cpu": "x"}, error=0.5, bound=1.0))
COMPILED = to_plain(kernels.add_kernel.using(target="null")(8, 8).record(("source", "tile")))


def with_(plain: Any, spot: str, value: Any) -> Any:
    """A copy of a plain value with another one at `a.0.b`."""
    copied = json.loads(json.dumps(plain))
    inner = copied
    *path, last = spot.split(".")
    for name in path:
        inner = inner[int(name) if isinstance(inner, list) else name]
    inner[int(last) if isinstance(inner, list) else last] = value
    return copied


@pytest.mark.parametrize(
    ("spot", "value", "words"),
    [
        ("samples", 7, ("record.samples is wrong", "expected: a list", "found: 7")),
        ("samples.1", "fast", ("record.samples[1] is wrong", "expected: a number", "found: 'fast'")),
        ("samples.0", True, ("record.samples[0]", "expected: a number", "found: True")),
        ("samples.0", [1], ("record.samples[0]", "found: a list")),
        ("flops", 10**400, ("record.flops", "expected: a number of 64 bits")),
        ("kernel", None, ("record.kernel", "expected: text", "found: None")),
        ("config", [], ("record.config", "expected: an object")),
        ("environment.cpu", 3, ("record.environment.cpu", "expected: text")),
        ("error", {}, ("record.error", "expected: a number", "found: an object")),
        ("later", 1, ("a field that this version has not: record.later", "another version of tilebench")),
    ],
)  # fmt: skip
def test_a_damaged_run_names_its_field(spot: str, value: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(OptionError) as caught:
        from_plain(RunRecord, with_(RUN, spot, value), "x.tbz")
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("spot", "value", "word"),
    [
        ("stages.1.lines", [[1], 2], "record.stages[1].lines[1] is wrong"),
        ("stages.0.pending", 1, "record.stages[0].pending is wrong"),
        ("stages.0.text", 1.5, "record.stages[0].text is wrong"),
        ("arguments.0.shape.0", 1.5, "record.arguments[0].shape[0] is wrong"),
        ("arguments.0.name", {}, "record.arguments[0].name is wrong"),
        ("resources", [], "record.resources is wrong"),
        ("grid", {"a": 1}, "record.grid is wrong"),
        ("parameters", None, "record.parameters is wrong"),
        ("seconds", "1", "record.seconds is wrong"),
    ],
)
def test_a_damaged_compilation_names_its_field(spot: str, value: Any, word: str) -> None:
    with pytest.raises(OptionError) as caught:
        from_plain(CompileRecord, with_(COMPILED, spot, value), "x.tbz")
    assert word in str(caught.value)


@pytest.mark.parametrize("plain", [RUN, COMPILED], ids=["run", "compile"])
def test_every_field_is_needed_or_has_its_default(plain: dict[str, Any]) -> None:
    kind: Any = RunRecord if plain is RUN else CompileRecord
    needed = {"kernel", "target", "config"} if plain is RUN else {
        "kernel", "target", "parameters", "arguments", "stages"
    }  # fmt: skip
    for name in plain:
        less = {key: value for key, value in plain.items() if key != name}
        if name in needed:
            with pytest.raises(OptionError, match=rf"record\.{name} is missing"):
                from_plain(kind, less, "x.tbz")
        else:
            from_plain(kind, less, "x.tbz")


def test_every_value_of_a_record_may_be_anything_and_nothing_else_is_raised() -> None:
    """Each place of both records gets each kind of value: read, or refused by name."""
    tried = 0
    for kind, plain in ((RunRecord, RUN), (CompileRecord, COMPILED)):
        for spot in spots(plain):
            for value in (None, True, 3, -(10**30), 1.5, math.inf, "x", "NaN", [], {}, [None], {"a": 1}):
                tried += 1
                with contextlib.suppress(OptionError):
                    str(from_plain(kind, with_(plain, spot, value), "x.tbz"))  # type: ignore[type-var]
    assert tried > 500


def spots(plain: Any, lead: str = "") -> list[str]:
    rows = (
        plain.items() if isinstance(plain, dict) else enumerate(plain[:2]) if isinstance(plain, list) else []
    )
    found: list[str] = []
    for key, value in rows:
        found += [f"{lead}{key}", *spots(value, f"{lead}{key}.")]
    return found


def test_a_run_of_no_time_or_of_all_time_prints() -> None:
    for sample in (0.0, math.inf, math.nan):
        assert "median of 1" in str(RunRecord("k", "cpu", {}, (sample,), flops=1e9, bytes=1e9))


@pytest.mark.parametrize("refuse", ["write", "rename"])
def test_a_record_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuse: str
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes" if refuse == "write" else "replace", full)
    with pytest.raises(OptionError, match=r"cannot be written: No space left on device"):
        save(RunRecord("k", "cpu", {}), tmp_path / "x.tbz")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=r"file/x\.tbz cannot be written: "):
        save(RunRecord("k", "cpu", {}), tmp_path / "file" / "x.tbz")


def test_a_record_that_is_there_is_not_overwritten_by_itself(tmp_path: Path) -> None:
    save(RunRecord("k", "cpu", {}), tmp_path / "x.tbz")
    with pytest.raises(OptionError, match=r"x\.tbz is there already"):
        save(RunRecord("other", "cpu", {}), tmp_path / "x.tbz")
    assert load(tmp_path / "x.tbz") == RunRecord("k", "cpu", {})
    save(RunRecord("other", "cpu", {}), tmp_path / "x.tbz", overwrite=True)
    assert load(tmp_path / "x.tbz") == RunRecord("other", "cpu", {})


def test_a_packed_output_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = record_json(from_plain(CompileRecord, COMPILED, "x"))
    assert from_json(shown)[0].kernel == COMPILED["kernel"]
    for broken in (
        "7",
        "abc",
        pack([]),
        pack({"record": {}, "runs": 3}),
        pack({"record": {}, "runs": []}),
        3,
    ):
        with pytest.raises(OptionError):
            from_json({**shown, "packed": broken})
    monkeypatch.setattr("tilebench.workbench.packed.MOST_BYTES", 1000)
    with pytest.raises(OptionError, match=r"no packed record|no tilebench record"):
        from_json(shown)


def test_sizes_of_resources_may_be_missing_but_not_text() -> None:
    assert from_plain(Resources, {"threads": 128, "registers": None}, "x") == Resources(128)
    with pytest.raises(OptionError, match=r"record\.registers is wrong"):
        from_plain(Resources, {"threads": 128, "registers": "many"}, "x")


def test_the_saved_file_has_the_rights_of_any_file(tmp_path: Path) -> None:
    save(RunRecord("k", "cpu", {}), tmp_path / "x.tbz")
    (tmp_path / "other").write_text("")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("x.tbz", "other")}
    assert len(modes) == 1


def test_bounds_are_wide_enough_for_real_records() -> None:
    record = kernels.gemm_kernel.using(target="cuda:sm_90a")(1024, 1024, 1024).record()
    body = json.dumps(to_plain(record))
    assert len(body) * 10 < record_files.MOST_BYTES
    assert sum(map(body.count, ",[{")) * 10 < record_files.MOST_VALUES
