"""The command line: what it prints, what it says about wrong words, and its exit status."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workbench.bench_kernels import DOUBLE, GEMM, IMPORTS
from tilebench.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parent.parent
SHAPES = ["-D", "M=200", "N=170", "K=130"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("kernels") / "kernels.py"
    path.write_text(IMPORTS + DOUBLE + GEMM, encoding="utf-8")
    return str(path)


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(list(words))
    said = capsys.readouterr()
    return status, said.out, said.err


def test_show_prints_a_stage(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["show", f"{file}:gemm", "--target", "cuda:sm_90a", *SHAPES]
    status, out, _ = called(capsys, *words, "--stage", "tile")
    assert status == 0
    assert out.startswith("@T.prim_func\ndef main(A: T.Tensor((200, 130), T.float16)")
    assert "__global__" in called(capsys, *words)[1]
    assert called(capsys, *words, "--stages")[1].split()[0] == "source"


def test_show_prints_tables(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["show", file, "--target", "cuda:sm_80", *SHAPES, "--choices", "--remarks", "--resources"]
    _, out, _ = called(capsys, *words)
    assert [line.split()[:5] for line in out.splitlines() if line.startswith("loop ko")] == [
        ["loop", "ko", "num_stages", "2", "kernel"]
    ]
    assert "the kernel's hint" in out
    lines = (IMPORTS + DOUBLE + GEMM).splitlines()
    loop = next(at for at, line in enumerate(lines, 1) if "for ko in" in line)
    assert f"kernels.py:{loop}" in out
    assert "registers a thread" in out


def test_a_schedule_file_acts(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        "[[schedule]]\nparams = { block_M = 32 }\n[schedule.loop.ko]\nnum_stages = 3\n", encoding="utf-8"
    )
    words = ["show", file, "--target", "cuda:sm_80", *SHAPES, "--schedule", str(path), "--stage", "scheduled"]
    _, out, _ = called(capsys, *words)
    assert "num_stages=3" in out
    assert "T.alloc_shared((32, 32)" in out


RETURNS = (
    IMPORTS
    + """

@tilebench.jit(out_idx=[1])
def twice(N, block=32):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] + C[bx * block + i]

    return main
"""
)


def test_run_takes_what_a_kernel_returns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "returns.py"
    path.write_text(RETURNS, encoding="utf-8")
    status, out, _ = called(capsys, "run", str(path), "-D", "N=100", "--target", "cpu", "--check")
    assert status == 0
    assert "B: 100 float32, written, from " in out
    assert "from nan" not in out
    assert "all within bounds" in out


def test_run_checks(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(capsys, "run", f"{file}:double", "-D", "N=1000", "--target", "cpu", "--check")
    assert status == 0
    assert "double ran on cpu" in out
    assert "all within bounds" in out


@pytest.mark.slow
def test_bench_prints_a_row_for_each_position(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", f"{file}:double", "-D", "N=100000", "--target", "cpu", "--sweep", "block=64,128"]
    status, out, _ = called(capsys, *words)
    assert status == 0
    assert "2 configurations: 2 timed" in out
    assert {line.split()[0] for line in out.splitlines()[2:4]} == {"64", "128"}
    assert "best" in out
    assert "Method: " in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["shwo"], ["no command 'shwo'", "did you mean show?", "doctor"]),
        (["show", "none.py"], ["there is no file none.py"]),
        (["show", "tests/kernels"], ["there is no file tests/kernels", "did you mean kernels.py?"]),
        (["bench", "FILE:double", "--target", "cpu"], ["double needs a value for N", "-D N=1024"]),
        (["show", "FILE:gem"], ["has no kernel gem", "did you mean gemm?", "double"]),
        (["show", "FILE:gemm", "-D", "M=1"], ["gemm needs a value for N, K", "-D N=1024 K=1024"]),
        (["show", "FILE:gemm", "--stge", "tile"], ["does not know --stge", "did you mean --stage?"]),
        (["show"], ["FILE[:KERNEL]", "required"]),
        (["show", "FILE", "-D", "M"], ["M is no value of a parameter", "NAME=VALUE"]),
        (
            ["show", "FILE", *SHAPES, "--target", "cuda:sm_90a", "--stage", "sas"],
            ["no stage 'sas'", "did you mean sass?"],
        ),
        (["show", "FILE", *SHAPES, "--target", "cuad"], ["no target 'cuad'", "did you mean cuda?"]),
        (["run", "FILE", *SHAPES, "--target", "cuda:sm_91"], ["sm_91"]),
    ],
)
def test_what_is_told(
    words: list[str], told: list[str], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = called(
        capsys, *(each.replace("FILE", file, 1) if each.startswith("FILE") else each for each in words)
    )
    assert status == 2
    assert out == ""
    for word in told:
        assert word in err
    assert "internal error" not in err


@pytest.mark.parametrize("command", ["show", "run", "bench"])
@pytest.mark.parametrize("name", ["book.ipynb", "plan.toml", "kernel"])
def test_a_file_that_is_no_python_is_refused(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text("{}", encoding="utf-8")
    status, out, err = called(capsys, command, str(path))
    assert (status, out) == (2, "")
    assert f"{name} is no Python file" in err
    assert "ends in .py" in err
    assert ("tilebench lab" in err) == name.endswith(".ipynb")


@pytest.mark.slow
def test_bench_tells_what_a_check_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "part.py"
    part = DOUBLE.replace("double", "part").replace("T.ceildiv(N, block)", "T.ceildiv(N, block) - 1")
    path.write_text(IMPORTS + DOUBLE + part, encoding="utf-8")
    words = ["-D", "N=4096", "--target", "cpu", "--sweep", "block=64,128", "--check"]
    status, out, _ = called(capsys, "bench", f"{path}:double", *words)
    assert status == 0
    assert out.endswith("Checked: 2 of 2 with all elements within bounds.\n")
    # Two block sizes leave out different elements: one text, two results.
    status, out, _ = called(capsys, "bench", f"{path}:part", *words)
    assert status == 1
    assert "another result than block=64 has on the same arrays" in out
    words = [*words[:-2], "block=128", "--check"]
    status, out, _ = called(capsys, "bench", f"{path}:part", *words)
    assert status == 0
    assert out.endswith("within bounds; up to 128 elements of outputs were never written.\n")


def test_a_file_that_fails_is_told_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.py"
    path.write_text("import math\n\nx = math.nothing\n", encoding="utf-8")
    status, _, err = called(capsys, "show", str(path))
    assert status == 2
    assert "bad.py:3\n    x = math.nothing" in err
    path.write_text("def f(:\n", encoding="utf-8")
    assert "this is not Python" in called(capsys, "show", str(path))[2]
    path.write_bytes(b"# \xe9\n")
    assert "is no text that Python reads" in called(capsys, "show", str(path))[2]
    path.write_text("x = 1\n", encoding="utf-8")
    assert "has no kernel" in called(capsys, "show", str(path))[2]


def test_an_unexpected_failure_is_an_internal_error(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilebench.cli import kernels

    def broken(*_: object) -> int:
        raise RuntimeError("a fault")

    monkeypatch.setattr(kernels, "show", broken)
    status, _, err = called(capsys, "show", file)
    assert status == 2
    assert "internal error: RuntimeError: a fault" in err


def test_doctor_looks_at_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = called(capsys, "doctor")
    for word in (
        "python",
        "required",
        "numpy",
        "extra lab",
        "cores",
        "NVRTC",
        "nvdisasm",
        "driver",
        "cache",
        "Lab extension",
    ):
        assert word in out
    assert "could not be looked at" not in out


def test_overview_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert called(capsys)[0] == 2
    status, out, _ = called(capsys, "--help")
    assert status == 0
    assert all(name in out for name in COMMANDS)
    assert called(capsys, "--version")[1].startswith("tilebench 0.")


def test_the_quickstart_is_copied_once(tmp_path: Path) -> None:
    from tilebench.cli.lab import copy_quickstart

    made = copy_quickstart(tmp_path)
    assert made.read_bytes() == (ROOT / "notebooks" / "quickstart.ipynb").read_bytes()
    made.write_text("mine", encoding="utf-8")
    assert copy_quickstart(tmp_path).read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_demo_writes_a_report_and_a_line_for_each_kernel(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tilebench.cli", "demo", "--out", str(tmp_path / "report.html")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [
        "add_kernel",
        "add_kernel",
        "gemm",
        "gemm",
        "row_sum",
        "softmax",
    ]
    assert "stages pipelined, cuda, sass" in lines[3]
    assert all("cpu:" in line and " allowed" in line and "/s" in line for line in [*lines[:3], *lines[4:-1]])
    assert re.search(r": \d+ KiB, made in \d+ s$", lines[-1])
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert report.startswith("<!doctype html>")
    # One script of our own, behind everything; what it draws reads the same without it.
    assert report.count("<script") == 1
    assert report.endswith("</script></body></html>")
    assert "A matrix product with sliders" in report


def test_a_fresh_process_loads_nothing_of_jupyter(file: str) -> None:
    code = (
        "import sys; from tilebench.cli import main; "
        f"main(['show', {file!r}, '--target', 'cuda:sm_80', '-D', 'M=64', 'N=64', 'K=64']); "
        "names = ('IPython', 'ipywidgets', 'plotly', 'pygments', 'llvmlite'); "
        "print([name for name in names if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert "__global__" in done.stdout
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(("root", "said"), [(True, True), (False, False)])
def test_lab_starts_for_root_on_this_machine_alone(
    root: bool,
    said: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tilebench.cli import lab

    calls: list[list[str]] = []
    monkeypatch.setattr(lab, "is_root", lambda: root)
    monkeypatch.setattr(lab, "become", lambda command: calls.append(command) or 0)
    code, out, _ = called(capsys, "lab", "--dir", str(tmp_path), "--no-browser")
    assert code == 0
    assert (tmp_path / "quickstart.ipynb").exists()
    assert ("--allow-root" in calls[0]) == said
    assert ("--ip=127.0.0.1" in calls[0]) == said
    assert "--no-browser" in calls[0]
    assert "--LabApp.default_url=/lab/tree/quickstart.ipynb" in calls[0]
    assert ("running as root" in out) == said
