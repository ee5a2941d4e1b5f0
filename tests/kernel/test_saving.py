"""Kernels as files that run without a notebook: each is run in a fresh process, with tilebench alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests import kernels
from tilebench.errors import OptionError, TargetError, remember_source
from tilebench.ir import Buffer, dtype_of
from tilebench.kernel.saving.surroundings import literal_of, module_text
from tilebench.record import BenchRecord
from tilebench.schedule import Schedule
from tilebench.targets.cuda.text.standalone import drawn

ROOT = Path(__file__).resolve().parents[2]

CELL = """
import math

SCALE = 0.5
SHAPES = {"rows": (4, 8)}


def rounded(n):
    return math.ceil(n / 4) * 4


@T.macro
def halved(A, B, i, j):
    B[i, j] = A[i, j] * SCALE


@tilebench.jit
def half(M, N, block=4):
    rows = SHAPES["rows"][0]
    wide = rounded(block)

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, rows), T.ceildiv(N, wide)) as (bx, by):
            for i, j in T.Parallel(rows, wide):
                if bx * rows + i < M and by * wide + j < N:
                    halved(A, B, bx * rows + i, by * wide + j)

    return main
"""


def cell(text: str = CELL) -> dict[str, Any]:
    """The names of a notebook's cell."""
    name = "cell [7]"
    remember_source(name, text)
    space: dict[str, Any] = {"tilebench": tilebench, "T": T, "__name__": "__main__"}
    exec(compile(text, name, "exec"), space)
    return space


def run(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A saved file in a process of its own, from another folder."""
    return subprocess.run(
        [sys.executable, str(path), *words], capture_output=True, text=True, timeout=300, check=False,
        cwd="/", env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_a_kernel_of_a_cell_leaves_with_all_that_it_needs(tmp_path: Path) -> None:
    kernel = cell()["half"].using(target="cpu")(30, 50)
    paths = kernel.save(tmp_path / "half.py", tuned=("block",))
    assert [path.name for path in paths] == ["half.py", "half.toml"]
    assert (tmp_path / "half.toml").read_text() == "[[schedule]]\nparams = { block = 4 }\n"
    text = (tmp_path / "half.py").read_text()
    for line in (
        "import math",
        "SCALE = 0.5",
        "def rounded(n):",
        "@T.macro",
        "PARAMETERS = dict(M=30, N=50)",
    ):
        assert line in text
    found = run(tmp_path / "half.py")
    assert found.returncode == 0, found.stderr
    assert re.search(r"B \(30 x 50 float32\) +1500 +0 ", found.stdout)
    assert re.search(r"half on cpu:\S+: [\d.]+ us \(median of \d+\)", found.stdout)
    # What the file says is what is made: another value in the schedule file makes another kernel.
    (tmp_path / "half.toml").write_text("[[schedule]]\nparams = { block = 16 }\n")
    again = subprocess.run(
        [sys.executable, "-c", "import half; print(half.kernel().parameters)"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    assert again.stdout.strip() == "{'M': 30, 'N': 50, 'block': 16}"


def test_a_schedule_travels_and_a_target_that_is_not_here_gives_way(tmp_path: Path) -> None:
    schedule = Schedule.of(threads=64, loop={"ko": {"num_stages": 3}})
    kernel = kernels.gemm_kernel.using(target="cuda:sm_80", schedule=schedule)(100, 75, 90)
    kernel.save(tmp_path / "gemm.py")
    assert (tmp_path / "gemm.toml").read_text() == (
        "[[schedule]]\nthreads = 64\n[schedule.loop.ko]\nnum_stages = 3\n"
    )
    found = run(tmp_path / "gemm.py")
    assert found.returncode == 0, found.stderr
    if not tilebench.targets.manifest("cuda").available()[0]:  # type: ignore[attr-defined]
        assert re.match(r"cuda:sm_80 cannot run here \(.*\): check and time are those of cpu", found.stdout)
    assert run(tmp_path / "gemm.py", "cpu").stdout.startswith("output ")
    stage = subprocess.run(
        [sys.executable, "-c", "import gemm; print(gemm.kernel().stage('cuda'), end='')"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    assert stage.stdout == kernel.stage("cuda")


def test_what_cannot_be_written_stands_by_its_stage(tmp_path: Path) -> None:
    text = CELL.replace('SHAPES = {"rows": (4, 8)}', "class Rows:\n    rows = 4").replace(
        'SHAPES["rows"][0]', "Rows.rows"
    )
    kernel = cell(text)["half"].using(target="cpu")(30, 50)
    (path,) = kernel.save(tmp_path / "half.py")
    assert "It stands by its stage scheduled: Rows cannot be written to a file" in path.read_text()
    found = run(path)
    assert found.returncode == 0, found.stderr
    assert "1500" in found.stdout


def test_a_name_that_has_changed_since_is_seen(tmp_path: Path) -> None:
    space = cell()
    kernel = space["half"].using(target="cpu")(30, 50)
    kernel.stage("tile")
    space["SCALE"] = 0.25
    (path,) = kernel.save(tmp_path / "half.py")
    assert "sees around itself has changed since it was compiled" in path.read_text()
    assert "0.5" in path.read_text()
    assert "0.25" not in path.read_text()


def test_nothing_that_is_there_is_overwritten(tmp_path: Path) -> None:
    kernel = kernels.add_kernel.using(target="cpu")(100, 75)
    (tmp_path / "add.py").write_text("mine")
    for save in (kernel.save, lambda path: kernel.save_measurement(kernel.bench(seconds=0.05), path)):
        with pytest.raises(OptionError, match=r"add\.py is there already") as caught:
            save(tmp_path / "add.py")
        assert caught.value.hint == "give another name, or overwrite=True"
    assert [path.name for path in tmp_path.iterdir()] == ["add.py"]
    assert (tmp_path / "add.py").read_text() == "mine"
    kernel.save(tmp_path / "add.py", overwrite=True)
    assert "tilebench" in (tmp_path / "add.py").read_text()


def test_an_edited_kernel_takes_its_text_along(tmp_path: Path) -> None:
    kernel = kernels.add_kernel.using(target="cpu")(100, 75)
    edited = kernel.edited("bounded", kernel.stage("bounded").replace("] + B[", "] - B["))
    paths = edited.save(tmp_path / "add.py")
    assert [path.name for path in paths] == ["add.py", "add.bounded.txt"]
    assert (tmp_path / "add.bounded.txt").read_text() == edited.stage("bounded")
    assert "The text of bounded was edited by hand" in (tmp_path / "add.py").read_text()
    found = run(tmp_path / "add.py")
    assert found.returncode == 0, found.stderr
    assert "bounded edited by hand" in found.stdout


def test_sizes_of_a_call_and_eager_kernels_are_saved(tmp_path: Path) -> None:
    text = """
@tilebench.jit
def double(A, block=128):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block)) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * 2.0
    return B
"""
    kernel = cell(text)["double"].compile(N=1000, target="cpu")
    kernel.save(tmp_path / "double.py")
    found = run(tmp_path / "double.py")
    assert found.returncode == 0, found.stderr
    assert "1000" in found.stdout


def test_a_measurement_is_repeated_beside_what_was_recorded(tmp_path: Path) -> None:
    kernel = kernels.add_kernel.using(target="cpu")(100, 75)
    runs = [kernel.bench(rounds=5, seconds=0.05, seed=3) for _ in range(2)]
    assert (runs[0].rounds, runs[0].budget, runs[0].seed) == (5, 0.05, 3)
    paths = kernel.save_measurement(runs, tmp_path / "measured.py")
    assert [path.name for path in paths] == ["measured.py", "measured.tbz"]
    assert "METHOD = dict(rounds=5, seconds=0.05, seed=3)" in paths[0].read_text()
    found = run(paths[0])
    assert found.returncode == 0, found.stderr
    lines = dict(line.split(None, 1) for line in found.stdout.splitlines() if " " in line.strip())
    assert lines["time"].count("2 runs") == 2
    assert lines["inputs"].split("  ")[0] == "random, seed 3"
    assert "to what was recorded" in found.stdout
    given = kernel.bench(*kernel.random_arguments(), rounds=5, seconds=0.05)
    assert given.seed is None
    with pytest.raises(OptionError, match="there is no measurement of add_kernel to repeat"):
        kernel.save_measurement([], tmp_path / "none.py")


def test_literals() -> None:
    for value in (1, -2.5, True, None, "text", b"ab", (1,), (1, (2, "x")), [1, [2]], {"a": (1, 2.0)}):
        text = literal_of(value)
        assert text is not None
        assert eval(text) == value  # noqa: S307 -- what it is for
    assert literal_of(T.float16) == "'float16'"
    assert literal_of(float("inf")) == 'float("inf")'
    for value in (object(), np.float32(1), [object()], {"a": object()}, {1}):
        assert literal_of(value) is None


def test_a_module_of_the_user_s_own_is_refused() -> None:
    made = kernels.gemm_kernel(100, 75, 90).made_from
    assert module_text(made).count("def gemm_kernel(") == 1
    space = cell(
        "import tests.kernels as mine\n\n\n@tilebench.jit\ndef other(M):\n    return mine.add_kernel(M, M)\n"
    )
    from tilebench.kernel.saving.surroundings import MadeFrom

    with pytest.raises(OptionError, match="mine cannot be written to a file: it is a module of yours"):
        module_text(MadeFrom(space["other"].function, space["other"].texts, {}))


# -- the CUDA file

PROGRAMS = {
    "add": lambda: kernels.add_kernel.using(target="cuda:sm_80")(100, 75),
    "gemm": lambda: kernels.gemm_kernel.using(target="cuda:sm_90a")(100, 75, 90, 128, 128, 64, 4),
}


def nvcc(path: Path, arch: str) -> str:
    """Compile and link a file as a person would; gives the path of the program."""
    code = f"arch=compute_{arch.removeprefix('sm_')},code={arch}"
    found = subprocess.run(
        ["nvcc", "-gencode", code, "-Werror=all-warnings", "-o", str(path.with_suffix("")), str(path)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    return str(path.with_suffix(""))


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_cuda_file_has_the_launch_of_the_kernel(name: str, tmp_path: Path) -> None:
    kernel = PROGRAMS[name]()
    path = kernel.save_program(tmp_path / name, seed=7)
    text = path.read_text()
    assert path.suffix == ".cu"
    assert kernel.stage("cuda").rstrip() in text
    assert "unsigned long long seed = 7;" in text
    ((entry, threads, shared),) = kernel.compilation.build.data["launches"]
    grid = ", ".join(str(n) for n in kernel.record(("tile",)).grid)
    assert f"cudaLaunchKernel(code_0, dim3({grid}), dim3({threads}), arguments_0, {shared}, 0)" in text
    assert (f"MaxDynamicSharedMemorySize, {shared}" in text) == (shared > 48 * 1024)
    assert f"(const void*){entry};" in text
    with pytest.raises(OptionError, match="is there already"):
        kernel.save_program(tmp_path / name)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_nvcc_takes_the_file_without_a_warning(name: str, tmp_path: Path) -> None:
    kernel = PROGRAMS[name]()
    program = nvcc(kernel.save_program(tmp_path / name), kernel.target.partition(":")[2])
    found = subprocess.run([program, "--what"], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, "[--seed NUMBER] [--out FOLDER]" in found.stderr) == (2, True)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_file_draws_what_numpy_draws(tmp_path: Path) -> None:
    """The host's side of the drawing, compiled alone with a runtime that copies on the host."""
    kernel = kernels.gemm_kernel.using(target="cuda:sm_80")(10, 8, 12)
    text = kernel.save_program(tmp_path / "gemm", seed=5).read_text()
    helpers = text[text.index("// The element at `place`") : text.index("// Device memory that nobody")]
    line = next(
        each.strip()
        for each in text.splitlines()
        if each.strip().startswith("static const unsigned long long B_values")
    )
    call = next(each.strip() for each in text.splitlines() if "B_device = drawn(" in each)
    (tmp_path / "host.cpp").write_text(
        "#include <algorithm>\n#include <cstdio>\n#include <cstring>\n#include <cstdlib>\n#include <vector>\n"
        "#define CHECK(call) (call)\nenum { cudaMemcpyHostToDevice };\n"
        "static void cudaMalloc(void** out, size_t n) { *out = std::malloc(n); }\n"
        "static void cudaMemcpy(void* to, const void* from, size_t n, int) { std::memcpy(to, from, n); }\n"
        f"{helpers}\nint main() {{ unsigned long long seed = 5; {line} {call} "
        f"std::fwrite(B_device, 1, {12 * 8 * 2}, stdout); }}\n"
    )
    subprocess.run(["g++", "-O1", "-o", str(tmp_path / "host"), str(tmp_path / "host.cpp")], check=True)
    found = subprocess.run([str(tmp_path / "host")], capture_output=True, check=True).stdout
    function = kernel.compilation.functions["threaded"]
    wanted = drawn(function.arrays[1], 1, 5)
    assert found == wanted.tobytes()
    assert len(set(wanted.tolist())) == 17


@tilebench.jit
def scalars_kernel() -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((32,), "float32"), low: T.float32, high: T.float64, none: T.float32, least: T.int64,
        small: T.int32, most: T.uint64, half: T.float16,
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                A[i] = low + T.cast(high, "float32") + none + T.cast(half, "float32")
                if least < T.int64(0) and small < 0 and most > T.uint64(5):
                    A[i] = 1.0

    return main


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_scalars_of_the_file_are_those_of_the_call(tmp_path: Path) -> None:
    """Its lines with scalars, compiled alone: infinities, no numbers and ends of integers among them."""
    values = {
        "low": -np.inf, "high": np.inf, "none": np.nan, "least": -(2**63), "small": -(2**31),
        "most": 2**64 - 1, "half": -1.5,
    }  # fmt: skip
    kernel = scalars_kernel.using(target="cuda:sm_80")().at(values)
    text = kernel.save_program(tmp_path / "scalars").read_text()
    lines = [each.strip() for each in text.splitlines() if re.match(r"  [a-z ]+ [a-z]+_0 = ", each)]
    printed = "\n".join(f"std::fwrite(&{name}_0, 1, sizeof {name}_0, stdout);" for name in values)
    (tmp_path / "host.cpp").write_text(
        "#include <cmath>\n#include <cstdio>\nint main() {\n" + "\n".join(lines) + f"\n{printed}\n}}\n"
    )
    words = ["g++", "-Wall", "-Wextra", "-Werror", "-o", str(tmp_path / "host"), str(tmp_path / "host.cpp")]
    built = subprocess.run(words, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    found = subprocess.run([str(tmp_path / "host")], capture_output=True, check=True).stdout
    types = ("float32", "float64", "float32", "int64", "int32", "uint64", "float16")
    wanted = b"".join(np.dtype(t).type(v).tobytes() for t, v in zip(types, values.values(), strict=True))
    assert found == wanted


def test_a_file_has_memory_for_rows_of_whole_bytes(tmp_path: Path) -> None:
    """Rows of 5 elements of 4 bits lie 6 apart; an array without elements has no bytes."""
    assert drawn(Buffer("A", (3, 5), dtype_of("int4")), 0, 0).shape == (2 * 6 + 5,)
    assert drawn(Buffer("A", (3, 5), dtype_of("float32"), strides=(8, 1)), 0, 0).shape == (2 * 8 + 5,)
    assert drawn(Buffer("A", (3, 0), dtype_of("float32")), 0, 0).shape == (0,)


def test_a_target_without_programs_says_who_has_one(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="has no form of a kernel that stands alone") as caught:
        kernels.add_kernel.using(target="cpu")(100, 75).save_program(tmp_path / "add")
    assert caught.value.hint == "save() writes it as a Python file; of targets there is cuda"


def test_an_ending_says_what_is_saved(tmp_path: Path) -> None:
    """A record is no Python file; what a kernel cannot be written as is refused, and nothing is written."""
    kernel = kernels.gemm_kernel.using(target="cuda:sm_80")(64, 48, 32)
    kept = tmp_path / "gemm.py"
    kept.write_text("mine")
    assert kernel.save(tmp_path / "gemm.tbz") == (tmp_path / "gemm.tbz",)
    read = tilebench.open_record(tmp_path / "gemm.tbz")
    assert isinstance(read, BenchRecord)
    assert (read.compilation.kernel, read.runs) == ("gemm_kernel", ())
    assert read.compilation.stage("cuda").text == kernel.stage("cuda")
    with pytest.raises(OptionError, match=r"(?s)gemm\.cu ends in \.cu.*save_program writes NAME\.cu"):
        kernel.save(tmp_path / "gemm.cu", overwrite=True)
    with pytest.raises(OptionError, match=r"gemm\.tbz"):
        kernel.save(tmp_path / "gemm.tbz")
    assert kept.read_text() == "mine"
