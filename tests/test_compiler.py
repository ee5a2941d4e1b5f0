"""The road: stages made once, in order, and kept by content; failures that are ours wrapped."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests import kernels
from tests.waiting import answers_within, interrupted
from tilebench.compiler import Compilation
from tilebench.errors import InternalError, OptionError, ResourceError
from tilebench.frontend import trace
from tilebench.passes import pipeline
from tilebench.passes.context import StageRow
from tilebench.record import Diagnostic
from tilebench.runtime.cache import Cache, key_of
from tilebench.targets import Build, EmitStep, Manifest, resolve


class Shelf:
    """A store in memory that remembers what was asked of it."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, bytes]] = {}
        self.found = 0

    def get(self, key: str) -> dict[str, bytes] | None:
        self.found += key in self.held
        return self.held.get(key)

    def put(self, key: str, files: Any) -> None:
        self.held[key] = dict(files)


def compilation(target: str = "null", store: Any = None, **values: Any) -> Compilation:
    manifest, machine = resolve(target)
    traced = trace(kernels.add_kernel.function, {"M": 100, "N": 75, **values})
    return Compilation(traced, manifest, machine, store=store, key_of=key_of)


def test_a_stage_is_made_once_and_those_before_it() -> None:
    made = compilation("cuda:sm_80")
    made.reach("bounded")
    assert list(made.functions) == ["tile", "scheduled", "bounded"]
    bounded = made.functions["bounded"]
    made.reach("laid_out")
    made.reach("bounded")
    assert made.functions["bounded"] is bounded
    assert list(made.functions) == ["tile", "scheduled", "bounded", "laid_out"]
    assert set(made.seconds) == {"scheduled", "bounded", "laid_out"}
    assert made.print("bounded") is made.print("bounded")


def test_an_unknown_stage_is_refused_with_the_nearest() -> None:
    with pytest.raises(OptionError, match="target null has no stage 'bounds'") as caught:
        compilation().reach("bounds")
    assert caught.value.hint == "did you mean bounded? stages: source, tile, scheduled, bounded, listing"


def test_a_second_compilation_takes_code_from_the_store() -> None:
    shelf = Shelf()
    first = compilation("cuda:sm_80", shelf)
    first.reach("ptx")
    assert (len(shelf.held), shelf.found) == (1, 0)
    second = compilation("cuda:sm_80", shelf)
    second.reach("ptx")
    assert (len(shelf.held), shelf.found) == (1, 1)
    assert first.build is not None
    assert second.build is not None
    for name in ("texts", "lines", "code", "resources"):
        assert getattr(second.build, name) == getattr(first.build, name), name
    other = compilation("cuda:sm_80", shelf, dtype="float32")
    other.reach("ptx")
    assert (len(shelf.held), shelf.found) == (2, 1)


def toy_target(made: list[str], versions: dict[str, str] | None = None) -> Manifest:
    """A target whose text is the same for every machine and whose code names the machine it is for."""

    def text(build: Build) -> None:
        build.texts["text"], build.lines["text"] = "the same for all", ((1,),)

    def code(build: Build) -> None:
        made.append(build.machine.name)
        build.texts["code"], build.lines["code"] = f"for {build.machine.name}", ((1,), (1,))
        build.code = build.machine.name.encode()

    null = resolve("null")[0]
    steps = (EmitStep("text", "c", text), EmitStep("code", "asm", code, tier="code"))
    return replace(null, steps=steps, versions=lambda: versions or {})


def code_for(machine: str, store: Any, made: list[str], versions: dict[str, str] | None = None) -> Build:
    traced = trace(kernels.add_kernel.function, {"M": 100, "N": 75})
    described = replace(resolve("null")[1], name=machine)
    compiled = Compilation(traced, toy_target(made, versions), described, store=store, key_of=key_of)
    compiled.reach("code")
    assert compiled.build is not None
    return compiled.build


def test_code_for_one_machine_is_never_served_for_another(tmp_path: Path) -> None:
    made: list[str] = []
    cache = Cache(tmp_path)
    assert code_for("toy:a", cache, made).code == b"toy:a"
    assert code_for("toy:b", cache, made).code == b"toy:b"
    assert code_for("toy:a", Cache(tmp_path), made).code == b"toy:a"
    assert made == ["toy:a", "toy:b"]


def test_code_of_another_compiler_version_is_made_anew(tmp_path: Path) -> None:
    made: list[str] = []
    for versions in ({"cc": "1"}, {"cc": "2"}, {"cc": "1"}):
        code_for("toy:a", Cache(tmp_path), made, versions)
    assert len(made) == 2


def _without_meta(files: dict[str, bytes]) -> None:
    del files["meta.json"]


def _with_cut_meta(files: dict[str, bytes]) -> None:
    files["meta.json"] = files["meta.json"][:-9]


def _with_other_meta(files: dict[str, bytes]) -> None:
    files["meta.json"] = b'{"lines": [], "resources": null}'


def _with_other_code(files: dict[str, bytes]) -> None:
    files["code"] = b"toy:b"


def _without_code(files: dict[str, bytes]) -> None:
    del files["code"]


def _with_other_text(files: dict[str, bytes]) -> None:
    files["text"] = b"for toy:b"


def _with_meta_of_a_wrong_kind(files: dict[str, bytes]) -> None:
    files["meta.json"] = files["meta.json"].replace(b'"lines": [', b'"lines": [7, ')


def _with_deep_meta(files: dict[str, bytes]) -> None:
    files["meta.json"] = b"[" * 100_000


def _with_meta_that_is_no_object(files: dict[str, bytes]) -> None:
    files["meta.json"] = b"[]"


@pytest.mark.parametrize(
    "change",
    [
        _with_meta_of_a_wrong_kind,
        _with_deep_meta,
        _with_meta_that_is_no_object,
        _without_meta,
        _with_cut_meta,
        _with_other_meta,
        _with_other_code,
        _without_code,
        _with_other_text,
    ],
)
def test_what_is_not_what_was_kept_is_missing_and_replaced(
    change: Callable[[dict[str, bytes]], None], tmp_path: Path
) -> None:
    """The zip and its sums are good; what lies in it is not what was put there."""
    made: list[str] = []
    code_for("toy:a", Cache(tmp_path), made)
    (entry,) = tmp_path.rglob("*.zip")
    files = Cache(tmp_path).get(entry.stem)
    assert files is not None
    good = dict(files)
    change(files)
    Cache(tmp_path).put(entry.stem, files)
    assert code_for("toy:a", Cache(tmp_path), made).code == b"toy:a"
    assert made == ["toy:a", "toy:a"]
    assert Cache(tmp_path).get(entry.stem) == good


def test_code_that_was_kept_under_another_key_is_not_loaded(tmp_path: Path) -> None:
    """All of the entry is as it was written, for the same step and machine: of another kernel."""
    made: list[str] = []
    code_for("toy:a", Cache(tmp_path), made, {"cc": "1"})
    code_for("toy:a", Cache(tmp_path), made, {"cc": "2"})
    first, second = (entry.stem for entry in tmp_path.rglob("*.zip"))
    other = Cache(tmp_path).get(second)
    assert other is not None
    Cache(tmp_path).put(first, other)
    for version in ("1", "2", "1"):
        code_for("toy:a", Cache(tmp_path), made, {"cc": version})
    assert len(made) == 3


def slow_target(made: list[str], refuse: bool = False) -> Manifest:
    """A target whose compiler, native code, runs for about two seconds and notes a warning, or refuses."""

    def code(build: Build) -> None:
        made.append("begun")
        if refuse:
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 70_000)
            raise ResourceError("too much")
        for _ in range(4):
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 700_000)
        build.texts["code"], build.code = "the code", b"code"
        build.context.diagnostics.append(Diagnostic("warning", "slow", text="x"))
        made.append("done")

    manifest = toy_target([])
    return replace(manifest, steps=(manifest.steps[0], EmitStep("code", "asm", code, tier="code")))


def slow(store: Any, made: list[str], **options: Any) -> Compilation:
    machine = replace(resolve("null")[1], name="toy:slow")
    traced = trace(kernels.add_kernel.function, {"M": 100, "N": 75})
    return Compilation(traced, slow_target(made, **options), machine, store=store, key_of=key_of)


def test_an_interrupt_is_answered_while_native_code_compiles_and_loses_nothing(tmp_path: Path) -> None:
    folders = (tmp_path / str(number) for number in count())
    answers_within(0.4, lambda: answered(next(folders)))  # measured 0.01


def answered(folder: Path) -> float:
    """How long an interrupt of a compilation took, all of which is there after it."""
    made: list[str] = []
    compiled, cache = slow(Cache(folder), made), Cache(folder)
    compiled.reach("text")
    took = interrupted(lambda: compiled.reach("code"))
    assert made == ["begun"]
    again = slow(cache, made)  # the cell is run again: it waits for what is left
    for once_more in (again, compiled):
        once_more.reach("code")
        assert once_more.build is not None
        assert once_more.build.code == b"code"
        assert [each.message for each in once_more.context.diagnostics] == ["slow"]
    assert made == ["begun", "done"]
    return took


def test_a_refusal_of_native_code_is_raised_each_time(tmp_path: Path) -> None:
    made: list[str] = []
    compiled = slow(Cache(tmp_path), made, refuse=True)
    for _ in range(2):
        with pytest.raises(ResourceError, match="too much"):
            compiled.reach("code")
    assert made == ["begun", "begun"]


def test_a_failure_of_ours_is_an_internal_error_with_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(function: Any, context: Any) -> Any:
        raise KeyError("lost")

    row = StageRow("scheduled", (("broken", broken),), pipeline.COMMON[0].forms)
    made = compilation()
    monkeypatch.setattr("tilebench.compiler.COMMON", (row, *pipeline.COMMON[1:]))
    with pytest.raises(
        InternalError, match="the step broken failed on kernel main: KeyError: 'lost'"
    ) as caught:
        made.reach("bounded")
    assert caught.value.place is not None
    assert caught.value.place.text.strip().startswith("def main(")
    assert "tilebench/" not in caught.value.message
    monkeypatch.setenv("TILEBENCH_RAISE_RAW", "1")
    with pytest.raises(KeyError, match="lost"):
        made.reach("bounded")


def test_a_stage_that_was_refused_is_tried_again_and_refused_again() -> None:
    made = compilation("cuda:sm_80", threads=2048)
    for _ in range(2):
        with pytest.raises(ResourceError, match="2048 threads"):
            made.reach("laid_out")
    assert list(made.functions) == ["tile"]
    assert not made.context.choices or len({(c.address, c.name) for c in made.context.choices}) == len(
        made.context.choices
    )


def test_several_threads_may_ask_at_once() -> None:
    made = compilation("cuda:sm_80", M=64)
    failed: list[BaseException] = []

    def ask(name: str) -> None:
        try:
            made.reach(name)
        except BaseException as error:
            failed.append(error)

    asking = [threading.Thread(target=ask, args=(name,)) for name in ("cuda", "laid_out", "threaded", "cuda")]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert not failed
    assert list(made.functions) == ["tile", "scheduled", "bounded", "laid_out", "pipelined", "threaded"]
    assert made.build is not None
    assert list(made.build.texts) == ["cuda"]


def test_the_disassembly_begins_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilebench.targets.cuda import machine_code

    begun: list[bytes] = []
    real = machine_code.disassemble_later
    monkeypatch.setattr(machine_code, "disassemble_later", lambda code: begun.append(code) or real(code))
    kernel = kernels.add_kernel.using(target="cuda:sm_80")(24, 40)
    compilation = kernel.compilation
    compilation.begin("sass")
    assert begun == []  # there is no code yet
    compilation.store = None
    compilation.reach("ptx")
    compilation.begin("sass")
    assert begun == [compilation.build.code]
    compilation.begin("ptx")
    assert len(begun) == 1  # only later steps begin early
    assert "LDG" in kernel.stage("sass")
