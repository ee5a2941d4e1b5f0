"""Every command with wrong words: one clear error each, nothing run before it, and no internal error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_cli import called
from tests.workbench.bench_kernels import DOUBLE, GEMM, IMPORTS
from tilebench.cli import COMMANDS
from tilebench.errors import ScheduleError
from tilebench.schedule import Schedule
from tilebench.targets import BUILT_IN, resolve
from tilebench.targets.abilities import abilities

N = ["-D", "N=100", "--target", "cpu"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("kernels") / "kernels.py"
    path.write_text(IMPORTS + GEMM + DOUBLE, encoding="utf-8")
    return str(path)


WRONG: list[tuple[list[str], list[str]]] = [
    (["show", "FILE", *N, "--stage", "sass"], ["target cpu has no stage 'sass'", "sass is a stage of cuda"]),
    (["show", "FILE", *N, "--stage", "sas"], ["did you mean sass?", "sass is a stage of cuda"]),
    (["show", "FILE", *N, "--stage", "nonsense"], ["no stage 'nonsense'", "help: stages: source"]),
    (["show", "FILE", *N, "--stage="], ["target cpu has no stage ''"]),
    (["show", "FILE", *N, "--stages", "--stage", "tile"], ["leave out --stage"]),
    (["show", "FILE", *N, "--schedule", "/nowhere.toml"], ["cannot be read: No such file"]),
    (["show", "FILE", *N, "--schedule", "/dev/zero"], ["it is no file"]),
    (["show", "FILE:", *N], ["there is no file"]),
    (["run", "/"], ["/ is a folder", "name a Python file with a kernel"]),
    (["show", "FILE", *N, "--timeline"], ["has no clock that a kernel reads", "compile it for a card"]),
    (["run", "FILE", *N, "--seed", "-1"], ["'-1' is no whole number from 0"]),
    (["run", "FILE", *N, "--seed", "1e3"], ["'1e3' is no whole number"]),
    (["run", "FILE", *N, "--seed", "9" * 5000], ["is no whole number"]),
    (["run", "FILE", "-D", "N=-5", "--target", "cpu"], ["is -5", "kernels.py:"]),
    (["run", "FILE", "-D", "N=abc", "--target", "cpu"], ["'abc'", "kernels.py:"]),
    (["run", "FILE", "-D", "N=1e999", "--target", "cpu"], ["found: inf"]),
    (["run", "FILE", "-D", "N=", "--target", "cpu"], ["NAME=VALUE"]),
    (["run", "FILE", "-D", "N=" + "(" * 20_000, "--target", "cpu"], ["neither a value nor a word"]),
    (["run", "FILE", "-D", "N=1", "N=2"], ["N is given twice"]),
    (["run", "FILE", "-D", "N=1", "Q=2"], ["has no parameter Q"]),
    (["bench", "FILE", *N, "--sweep", "block=32,a"], ["the sweep of block cannot hold 'a'", "a number, as"]),
    (["bench", "FILE", *N, "--sweep", "block=a,b"], ["the sweep of block cannot hold 'a'"]),
    (["bench", "FILE", *N, "--sweep", "block=32,"], ["is neither a value nor a word"]),
    (["bench", "FILE", *N, "--sweep", "block=4..1"], ["is no range of block"]),
    (["bench", "FILE", *N, "--sweep", "block=1..1000000"], ["has 1000000 values"]),
    (["bench", "FILE", *N, "--sweep", "nope=1"], ["nothing called nope"]),
    (["bench", "FILE", *N, "--sweep", "cluster=0,2"], ["cluster of a kernel cannot be 0"]),
    (["bench", "FILE", *N, "--sweep", "block=1", "block=2"], ["block is swept twice"]),
    (
        ["bench", "FILE", "-D", "N=9", "--target", "cuda:sm_90a", "--sweep", "block=32,64"],
        ["cannot run here"],
    ),
    (["demo", "--out", "/nowhere/x.html"], ["there is no folder /nowhere"]),
    (["demo", "--out", "/tmp"], ["/tmp is a folder"]),
    (["demo", "--notebook", "/nowhere.ipynb"], ["there is no file /nowhere.ipynb"]),
    (["demo", "--notebook", "FILE"], ["is no notebook"]),
    (["lab", "--dir", "/nowhere"], ["there is no folder"]),
    (["lab", "--port", "0"], ["'0' is no whole number from 1 to 65535"]),
    (["lab", "--port", "70000"], ["from 1 to 65535"]),
    (["doctor", "x"], ["does not know x"]),
    (["targets", "nope"], ["there is no target 'nope'"]),
    (["targets", "cuda:sm_1"], ["sm_1"]),
    (["targets", "cpu", "cuda"], ["does not know cuda"]),
]


@pytest.mark.parametrize(("words", "told"), WRONG, ids=[" ".join(row[0])[:60] for row in WRONG])
def test_wrong_words_are_one_error(
    words: list[str], told: list[str], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "cannot run here" in told and resolve("cuda:sm_90a")[0].available()[0]:
        pytest.skip("this machine has a card")
    status, out, err = called(capsys, *(word.replace("FILE", file, 1) for word in words))
    assert status == 2
    assert out == ""
    for word in told:
        assert word in err
    assert "internal error" not in err
    assert err.count(" error: ") == 1


def test_one_fault_of_all_positions_is_told_once(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(
        capsys, "bench", file, "-D", "N=-5", "--target", "cpu", "--sweep", "block=32,64"
    )
    assert (status, out) == (2, "")
    assert err.count("is -5") == 1


def test_rows_without_a_time_have_no_method(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(capsys, "bench", file, *N, "--sweep", "block=0,-1")
    assert status == 1
    assert "2 configurations: 2 illegal" in out
    assert "illegal: T.ceildiv divides by zero" in out
    assert "Method" not in out


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_names_each_option_once(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        called(capsys, command, "--help")
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: tilebench {command}")
    rows = [line.split()[0] for line in said.splitlines() if line.startswith("  -")]
    assert len(rows) == len(set(rows))


def test_choices_are_listed_once(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    listed = called(capsys, "bench", file, *N, "--sweep", "nope=1")[2].partition("there are ")[2]
    names = [name.strip() for name in listed.split(",")]
    assert len(names) == len(set(names))
    assert {"threads", "order", "persistent", "warp_specialize", "cluster", "NAME.num_stages"} < set(names)
    with pytest.raises(ScheduleError) as caught:
        Schedule.of(thread=3)
    assert caught.value.hint is not None
    assert "cluster" in caught.value.hint
    with pytest.raises(ScheduleError, match="no choice 'nope'"):
        Schedule.of(nope=None)


def test_targets_tells_those_that_people_compile_for(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(capsys, "targets")
    assert status == 0
    assert out.startswith("cpu: runs here\n")
    assert "cuda:sm_90a" in out
    assert "sass" in out
    assert "null" not in out


@pytest.mark.parametrize("text", [*sorted(BUILT_IN), "cuda:sm_80", "sm_90a"])
def test_targets_tells_all_of_the_table(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(capsys, "targets", text)
    assert status == 0
    found = abilities(*resolve(text))
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith("  T.")}
    assert set(lines) == {f"T.{name}" for name in (*found.operations, *found.functions)}
    for name, instructions in found.operations.items():
        assert all(each in lines[f"T.{name}"] for each in instructions)
    for name, dtypes in found.functions.items():
        told = lines[f"T.{name}"]
        assert told.endswith("every dtype") or set(told.split(maxsplit=1)[1].split(", ")) == set(dtypes)
    assert all(word in out for word in found.words)


@pytest.mark.skipif(os.name != "posix", reason="only POSIX replaces a process")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_what_lab_starts_ends_with_it(number: signal.Signals) -> None:
    """Every signal reaches JupyterLab itself: there is no process in front that could leave it behind."""
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    # Tests that run under `nohup` hand an ignored SIGHUP down.
    default = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"
    code = f"import sys; from tilebench.cli.lab import become; become([sys.executable, '-c', {child!r}])"
    root = Path(__file__).resolve().parent.parent
    with subprocess.Popen(
        [sys.executable, "-c", f"{default}; {code}"], stdout=subprocess.PIPE, text=True, cwd=root
    ) as lab:
        assert lab.stdout is not None
        assert int(lab.stdout.readline()) == lab.pid
        lab.send_signal(number)
        assert lab.wait(60) == -number
