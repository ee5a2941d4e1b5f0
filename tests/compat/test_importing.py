"""`import tilelang` answered: by tilebench's own names, by an error with the name of what is not here."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.compat
from tilebench.compat.importer import Finder
from tilebench.compat.names import ALIASES, MODULES
from tilebench.errors import OptionError, TileError


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    tilebench.compat.install()
    yield
    tilebench.compat.uninstall()


def run(text: str, name: str, folder: Path) -> dict[str, Any]:
    """A file of a user's, run."""
    file = folder / f"{name}.py"
    file.write_text(textwrap.dedent(text))
    space: dict[str, Any] = {"__name__": name, "__file__": str(file)}
    exec(compile(file.read_text(), str(file), "exec"), space)
    return space


FILE = """
    import tilelang
    import tilelang.language as T
    from tilelang.autotuner import *
    from tilelang.profiler import do_bench

    FAST = tilelang.PassConfigKey.TL_ENABLE_FAST_MATH

    @tilelang.jit(pass_configs={FAST: True, "tl.disable_tma_lower": True})
    def scaled(A, block: int, dtype: T.dtype = T.float32):
        N = T.const("N")
        A: T.Tensor((N,), dtype)
        B = T.empty((N,), dtype)
        with T.Kernel(tilelang.cdiv(N, block), threads=32) as (bx):
            for i in T.Parallel(block):
                B[bx * block + i] = T.Cast("float32", A[bx * block + i]) * 2
        return B
"""


def test_a_file_with_its_imports_as_they_are(tmp_path: Path) -> None:
    space = run(FILE, "scaled_file", tmp_path)
    a = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(space["scaled"](a, 32), 2 * a)
    kernel = space["scaled"].compile(N=100, block=32)
    remarks = [each.message for each in kernel.record(()).remarks if each.pass_name == "options"]
    assert len(remarks) == 2
    assert "tl.enable_fast_math chooses nothing here: functions keep the accuracy" in remarks[0]
    assert space["do_bench"](lambda: kernel(a), warmup=0, rep=0) > 0
    assert "define" in space["scaled"].get_kernel_source(a, 32)


def test_every_name_of_the_table_is_there() -> None:
    for module, names in MODULES.items():
        found = importlib.import_module(module)
        assert dir(found) == sorted(names)
        for name in names:
            assert getattr(found, name) is not None, (module, name)


def test_modules_are_reached_through_their_parents() -> None:
    tilelang = importlib.import_module("tilelang")
    assert tilelang.math.next_power_of_2(5) == 8
    assert tilelang.math.next_power_of_2(0) == 1
    assert tilelang.language.fp8.determine_fp8_type("e5m2") == "float8_e5m2"
    assert tilelang.profiler.TensorSupplyType is tilelang.TensorSupplyType
    assert tilelang.PassConfigKey.TL_DISABLE_SAFE_MEMORY_ACCESS == "tl.disable_safe_memory_legalize"


def test_what_tilelang_brings_along_is_answered_unless_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    tilelang = importlib.import_module("tilelang")
    tvm = importlib.import_module("tvm")
    assert tilelang.tvm is tvm
    assert tvm.DataType("float16").bits == 16
    tirx = importlib.import_module("tvm.tirx")
    assert tirx is tvm.tirx
    assert repr(tirx.const(3, "uint16")) == "T.uint16(3)"
    with pytest.raises(ModuleNotFoundError, match=r"tvm\.relax is not here"):
        importlib.import_module("tvm.relax")
    tilebench.compat.uninstall()
    assert "tvm" not in sys.modules
    tilebench.compat.install()

    class Real(Finder):
        def find_spec(self, name: str, path: Any = None, target: object = None) -> Any:
            return ModuleSpec(name, None, is_package=True) if name == "tvm" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Real()])
    assert importlib.import_module("tvm").__spec__ is not None
    assert not hasattr(importlib.import_module("tvm"), "DataType")
    del sys.modules["tvm"]


def test_the_language_is_the_one_module() -> None:
    import tilebench.language as T

    spec = T.__spec__
    assert importlib.import_module("tilelang.language") is T
    assert T.__spec__ is spec


def test_what_is_not_here_is_said_by_name() -> None:
    tilelang = importlib.import_module("tilelang")
    assert not hasattr(tilelang, "lower_everything")
    with pytest.raises(TileError, match=r"tilelang\.lower_everything is not here"):
        _ = tilelang.lower_everything
    with pytest.raises(ModuleNotFoundError, match=r"tilelang\.relay is not here.*tilelang\.profiler"):
        importlib.import_module("tilelang.relay")
    with pytest.raises(
        ImportError, match=r"cannot import name 'Analyzer' from 'tilelang' \(tilebench.compat"
    ):
        exec("from tilelang import Analyzer")
    with pytest.raises(TileError, match=r"T\.cluster_sync is one of Hopper's words"):
        _ = tilelang.language.cluster_sync


def test_uninstalled_there_is_no_tilelang() -> None:
    importlib.import_module("tilelang.autotuner")
    tilebench.compat.uninstall()
    assert not [name for name in sys.modules if name.startswith("tilelang")]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tilelang.autotuner")


def test_tilelang_itself_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    tilebench.compat.uninstall()
    monkeypatch.setitem(sys.modules, "tilelang", sys)
    with pytest.raises(OptionError, match="TileLang itself is imported already"):
        tilebench.compat.install()


def test_another_device_is_refused() -> None:
    with pytest.raises(OptionError, match="device cannot be 'gpu'"):
        tilebench.compat.install(device="gpu")


def test_a_prim_func_compiled_by_itself(tmp_path: Path) -> None:
    text = """
        import tilelang
        import tilelang.language as T

        def program(N):
            @T.prim_func
            def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
                with T.Kernel(1, threads=32) as bx:
                    for i in T.Parallel(N):
                        B[i] = A[i] + 1
            return main

        one = tilelang.compile(program(64), out_idx=-1, target={"kind": "llvm"}, execution_backend="cython")
        many = tilelang.par_compile([program(32), program(64)], out_idx=[1], target="c")
    """
    space = run(text, "compiled_file", tmp_path)
    a = np.ones(64, np.float32)
    np.testing.assert_array_equal(space["one"](a), a + 1)
    assert [kernel.arguments[0].extents for kernel in space["many"]] == [(32,), (64,)]
    with pytest.raises(TileError, match="jit has no option outidx"):
        importlib.import_module("tilelang").compile(None, outidx=1)


def test_the_cache_is_turned_off_and_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_CACHE", "1")
    tilelang = importlib.import_module("tilelang")
    tilelang.disable_cache()
    assert not tilelang.is_cache_enabled()
    tilelang.enable_cache()
    assert tilelang.is_cache_enabled()


def test_marks_of_cards_leave_tests_out() -> None:
    testing = importlib.import_module("tilelang.testing")

    @testing.requires_rocm
    @testing.requires_cuda_compute_version(12, 0)
    def test() -> None: ...

    assert [mark.name for mark in test.pytestmark] == ["skipif", "skipif"]
    assert all(mark.args[0] for mark in test.pytestmark)
    tilelang_random = [testing.set_random_seed(3) or np.random.rand() for _ in range(2)]
    assert tilelang_random[0] == tilelang_random[1]


def test_installing_costs_no_import() -> None:
    code = "import sys, tilebench.compat as c; c.install(); print('tilebench.kernel' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert set(ALIASES).isdisjoint(MODULES)
