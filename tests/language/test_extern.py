"""CUDA text of a kernel's own, and calls of its functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.roads import jitted, on_reference, on_simulator
from tilebench.errors import DTypeError, LanguageError, TargetError
from tilebench.ir import parse_function, print_function
from tilebench.targets.cuda.compiler.nvrtc import CudaCompileError

SOURCE = """
__device__ __forceinline__ float shifted(float x, int k) {
  return x * 2.0f + k;
}
"""


def doubled(x: Any, k: Any) -> Any:
    return x * 2 + k


@tilebench.jit(target="cuda:sm_80")
def kernel(source: str = SOURCE, meaning: Any = doubled, name: str = "shifted") -> Any:
    @T.prim_func
    def main(A: T.Tensor((200,), "float32"), B: T.Tensor((200,), "float32")):  # type: ignore[valid-type]
        with T.Kernel(2, threads=64, prelude="// in front") as bx:
            T.import_source(source)
            T.import_source(source)
            for i in T.Parallel(128):
                shifted = A[bx * 128 + i]
                B[bx * 128 + i] = T.call_extern("float32", name, shifted, bx, meaning=meaning)

    return main


def arrays() -> dict[str, Any]:
    a = np.random.default_rng(0).integers(-8, 9, 200).astype(np.float32)
    return {"A": a, "B": np.zeros(200, np.float32)}


def test_a_function_of_the_kernels_own_text_is_called() -> None:
    made = kernel()
    text = made.stage("cuda")
    assert text.count("__device__ __forceinline__ float shifted") == 1
    assert text.index("// in front") < text.index("float shifted(") < text.index("__global__")
    # A variable of its name would hide it.
    assert "B_w[e] = shifted(shifted_, bx);" in text
    made.reach_code()
    assert b"ELF" in made.compilation.build.code[:8]  # type: ignore[union-attr]


def test_a_text_of_ones_own_may_name_what_ours_never_does() -> None:
    """Ours are compiled without the declarations of textures and of the runtime."""
    texture = (
        "__device__ float shifted(float x, int k, cudaTextureObject_t t = 0) { return t ? x : x + k; }\n"
    )
    made = kernel(source=texture)
    made.reach_code()
    assert b"ELF" in made.compilation.build.code[:8]  # type: ignore[union-attr]


def test_lines_behind_the_text_lead_to_the_kernel() -> None:
    made = kernel()
    record = made.record(("cuda",)).stage("cuda")
    lines = record.text.splitlines()
    at = next(k for k, line in enumerate(lines) if "shifted(shifted_" in line)
    (line,) = record.lines[at]
    assert "T.call_extern" in Path(made.compilation.traced.file).read_text().splitlines()[line - 1]
    assert record.lines[next(k for k, line in enumerate(lines) if "float shifted(" in line)] == ()


def test_its_meaning_is_what_the_reference_and_the_simulator_take() -> None:
    given = arrays()
    want = given["A"] * 2 + np.arange(200) // 128

    class Function:
        using = staticmethod(lambda target: lambda: kernel.using(target=target)())

    for road in (on_reference, on_simulator):
        np.testing.assert_array_equal(road(Function, given)["B"], want)


def test_every_stage_parses_back() -> None:
    made = kernel()
    made.stage("cuda")
    for function in made.compilation.functions.values():
        assert function.known("sources") == ("// in front", SOURCE)
        assert parse_function(print_function(function).text, made.compilation.manifest.registry) == function


def test_without_a_meaning_only_a_card_runs_it() -> None:
    made = kernel(source="__device__ float unknown_to_all(float x, int k) { return x; }",
                  meaning=None, name="unknown_to_all")  # fmt: skip
    made.reach_code()
    with pytest.raises(LanguageError) as caught:
        made.check(*arrays().values()) if made.compilation.manifest.available()[0] else on_reference_of(made)
    assert caught.value.message == (
        "unknown_to_all of T.call_extern has no meaning in Python, so only a card can run it"
    )
    assert caught.value.place is not None


def on_reference_of(made: Any) -> None:
    from tilebench.reference import run_reference

    run_reference(made.compilation.reference, arrays())


def test_the_cpu_refuses_it_at_its_line() -> None:
    with pytest.raises(TargetError) as caught:
        kernel.using(target="cpu")().stage("llvm")
    assert caught.value.message == "shifted of T.call_extern is CUDA text, which the CPU cannot run"
    assert caught.value.place is not None
    assert "T.call_extern" in caught.value.place.text


def test_what_the_compiler_refuses_is_quoted() -> None:
    with pytest.raises(CudaCompileError, match="shifted"):
        kernel(source="// nothing here").reach_code()


@pytest.mark.parametrize(
    ("statement", "kind", "said"),
    [
        ('T.call_extern("handle", "f", A[0])', LanguageError,
         "f of T.call_extern returns nothing, and what it does is not known"),
        ('T.call_extern("float32", "f", A[0])', LanguageError,
         "T.call_extern gives a value and has no effect"),
        ('B[0] = T.call_extern("float32", "no name", A[0])', LanguageError,
         "T.call_extern takes the name of a function"),
        ('B[0] = T.call_extern("float16", "f", A[0])', DTypeError,
         "f of T.call_extern cannot take or give float16"),
        ('B[0] = T.call_extern("float32", "f", T.access_ptr(A[0], "r"))', LanguageError,
         "f of T.call_extern has pointers, and gives no value"),
        ("T.import_source(3)", LanguageError, "T.import_source takes CUDA text"),
    ],
)  # fmt: skip
def test_what_cannot_be_called(statement: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as caught:
        jitted(statement, **arrays()).using(target="null")()
    assert caught.value.message == said  # type: ignore[attr-defined]
    assert caught.value.place is not None  # type: ignore[attr-defined]
