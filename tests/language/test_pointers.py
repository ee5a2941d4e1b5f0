"""Pointers into a kernel's memory for functions of its own text: effects, races, the text, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.roads import jitted
from tests.simulated import run_threaded
from tilebench.errors import DTypeError, IRError, LanguageError, ShapeError, TargetError, TileError
from tilebench.ir import parse_function, print_function
from tilebench.language import registry
from tilebench.reference import run_reference

SOURCE = """
template <class A, class B> __device__ void decode(A* in, B* out, int n) {
  for (int i = 0; i < n; ++i) {
    out[2 * i] = B(in[i] & 15);
    out[2 * i + 1] = B(in[i] >> 4);
  }
}
__device__ void scale(float* x, float by) {
  for (int i = 0; i < 4; ++i) x[i] *= by;
}
__device__ void turn(float* x, int n) {
  if (threadIdx.x < n / 2) {
    float kept = x[threadIdx.x];
    x[threadIdx.x] = x[n - 1 - threadIdx.x];
    x[n - 1 - threadIdx.x] = kept;
  }
}
"""


def decode(codes: Any, out: Any, n: int) -> None:
    out[0::2], out[1::2] = codes & 15, codes >> 4
    assert len(codes) == n


def scale(x: Any, by: float) -> None:
    x *= by


def turn(x: Any, n: int) -> None:
    x[...] = x[::-1].copy()


@tilebench.jit(target="cuda:sm_80")
def of_threads() -> Any:
    """From arrays of a thread to arrays of a thread, as TileLang's dequantising kernels do."""

    @T.prim_func
    def main(A: T.Tensor((128, 4), "uint8"), B: T.Tensor((128, 8), "float16")):
        with T.Kernel(1, threads=128):
            T.import_source(SOURCE)
            tx = T.get_thread_binding()
            codes = T.alloc_local((4,), "uint8")
            values = T.alloc_local((8,), "float16")
            for v in T.vectorized(4):
                codes[v] = A[tx, v]
            T.call_extern(
                "decode", T.access_ptr(codes, "r"), T.access_ptr(values, "w"), 4, dtype="float16",
                meaning=decode,
            )  # fmt: skip
            for v in T.vectorized(8):
                B[tx, v] = values[v]

    return main


@tilebench.jit(target="cuda:sm_80")
def of_elements() -> Any:
    """From shared memory to an array, by the thread of an element."""

    @T.prim_func
    def main(A: T.Tensor((128, 4), "uint8"), B: T.Tensor((128, 8), "float16")):
        with T.Kernel(1, threads=128):
            T.import_source(SOURCE)
            R = T.alloc_shared((128, 4), "uint8")
            T.copy(A, R)
            for i in T.Parallel(128):
                T.call_extern(
                    "handle", "decode", T.access_ptr(R[i, 0], "r", 4), T.access_ptr(B[i, 0:8], 2), 4,
                    meaning=decode,
                )  # fmt: skip

    return main


@tilebench.jit(target="cuda:sm_80")
def in_place(stages: int = 0) -> Any:
    """Rows of a shared tile are changed and then read by other threads."""

    @T.prim_func
    def main(A: T.Tensor((256, 8), "float32"), B: T.Tensor((256, 8), "float32")):
        with T.Kernel(1, threads=64):
            T.import_source(SOURCE)
            S = T.alloc_shared((64, 8), "float32")
            for k in T.Pipelined(4, num_stages=stages):
                T.copy(A[k * 64, 0], S)
                for i, j in T.Parallel(64, 2):
                    T.call_extern(
                        "void", "scale", T.access_ptr(S[i, 0], "rw", 4, offset=j * 4), 2.5, meaning=scale
                    )
                for i, j in T.Parallel(64, 8):
                    B[k * 64 + i, j] = S[63 - i, j] + 1

    return main


@tilebench.jit(target="cuda:sm_80")
def of_the_block() -> Any:
    """All threads of a block call one function, which turns a row round."""

    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=64) as bx:
            T.import_source(SOURCE)
            S = T.alloc_shared((2, 64), "float32")
            T.copy(A[bx, 0], S[1, 0:64])
            T.call_extern("handle", "turn", T.access_ptr(S[1, 0:64], "rw"), 64, meaning=turn)
            T.copy(S[1, 0:64], B[bx, 0])

    return main


def given(kernel: Any, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    out: dict[str, Any] = {}
    for record in kernel.arguments:
        array = np.zeros(record.extents, record.dtype)
        if not record.written:
            array = rng.integers(0, 256, record.extents).astype(record.dtype)
        out[record.name] = array
    return out


def everywhere(kernel: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """What the reference and the simulator give, which is the same, and the text of a card compiles."""
    kernel.reach_code()
    assert b"ELF" in kernel.compilation.build.code[:8]
    wanted = {
        **arrays,
        **run_reference(kernel.compilation.functions["tile"], {k: v.copy() for k, v in arrays.items()}),
    }
    found = {name: array.copy() for name, array in arrays.items()}
    run_threaded(kernel.compilation.functions["threaded"], found, warp=32)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
    for stage in kernel.compilation.functions.values():
        text = print_function(stage).text
        assert print_function(parse_function(text, registry())).text == text
    return wanted


def _decoded(codes: Any) -> Any:
    return np.stack([codes & 15, codes >> 4], -1).reshape(len(codes), -1).astype(np.float16)


def test_arrays_of_a_thread() -> None:
    kernel = of_threads()
    arrays = given(kernel)
    np.testing.assert_array_equal(everywhere(kernel, arrays)["B"], _decoded(arrays["A"]))
    assert "decode((unsigned char*)(codes), (tb_half*)(values), 4);" in kernel.stage("cuda")
    assert [(p.read, p.written) for p in kernel.arguments] == [(True, False), (False, True)]


def test_elements_of_a_loop() -> None:
    kernel = of_elements()
    arrays = given(kernel)
    np.testing.assert_array_equal(everywhere(kernel, arrays)["B"], _decoded(arrays["A"]))
    assert "decode((unsigned char*)(R + i * 4), (tb_half*)(B + i * 8), 4);" in kernel.stage("cuda")
    # What a function writes through a pointer is written: the array is an output alone.
    assert [(p.read, p.written) for p in kernel.arguments] == [(True, False), (False, True)]


@pytest.mark.parametrize("stages", [0, 3])
def test_what_is_changed_in_place_is_waited_for(stages: int) -> None:
    kernel = in_place(stages)
    arrays = given(kernel)
    found = everywhere(kernel, arrays)["B"]
    tiles = (arrays["A"] * np.float32(2.5)).reshape(4, 64, 8)[:, ::-1] + 1
    np.testing.assert_array_equal(found, tiles.reshape(256, 8))
    assert kernel.stage("threaded").count('sync_threads(why="S') >= 2
    assert "S lies in rows: a function of the kernel's own text gets a pointer to it" in str(
        kernel.record().remarks
    )


def test_all_threads_of_a_block() -> None:
    kernel = of_the_block()
    arrays = given(kernel)
    found = everywhere(kernel, arrays)["B"]
    np.testing.assert_array_equal(found, arrays["A"][:, ::-1])
    text = kernel.stage("cuda")
    assert "turn((float*)(S + 64), 64);" in text
    call = text.index("turn((float*)")
    assert "__syncthreads" in text[text.index("tb_shared") : call]
    assert "__syncthreads" in text[call:]


def test_cudas_own_types_where_the_text_includes_them() -> None:
    """A function of `__half*` takes no pointer to a type of ours."""
    body = """
        T.import_source('#include "cuda_fp16.h"\\n__device__ void f(__half* x) {}')
        T.call_extern("void", "f", T.access_ptr(A[0], "w"))
    """
    kernel = jitted(body, A=np.zeros(8, np.float16)).using(target="cuda:sm_80")()
    assert "f((__half*)(A));" in kernel.stage("cuda")


def _refused(body: str, **arrays: Any) -> str:
    arrays = arrays or {"A": np.zeros((4, 8), np.float32)}
    with pytest.raises(TileError) as caught:
        jitted(body, **arrays).using(target="cuda:sm_80")().stage("cuda")
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "what", "hint"),
    [
        ('F = T.alloc_fragment((8,), "float32")\nT.call_extern("void", "f", T.access_ptr(F, "w"))',
         "F has no address: its elements lie in the registers of many threads", "T.copy it to "),
        ('T.call_extern("void", "f", T.access_ptr(A[0:2, 0:4], "r"))',
         "these elements of A do not follow each other", "give one pointer to each row"),
        ('T.call_extern("void", "f", T.access_ptr(A[0, 2], "r", 12))',
         "12 elements from here on are no box of A", ""),
        ('T.call_extern("void", "f", T.access_ptr(A, "x"))', "T.access_ptr has no access_type 'x'", ""),
        ('T.call_extern("void", "f", T.access_ptr(3, "r"))',
         "T.access_ptr takes a buffer, a part of one or an element", ""),
        ('T.call_extern("void", "f", 3)', "f of T.call_extern returns nothing, and what it does is not known",
         "give it a pointer to what it writes"),
        ('T.call_extern("void", "f", T.access_ptr(A, "r"), T.float16(1))',
         "f of T.call_extern cannot take or give float16", "T.cast(x, 'float32')"),
        ('V = T.view(A, (32,))\nT.call_extern("void", "f", T.access_ptr(V, "r"))', "V is a view of A",
         "take the pointer of A itself"),
        ('p = T.access_ptr(A, "r")\nA[0, 0] = p', "", ""),
    ],
)  # fmt: skip
def test_what_has_no_pointer(body: str, what: str, hint: str) -> None:
    message = _refused(body)
    assert what in message
    assert hint in message


def test_elements_that_share_a_byte_have_no_address() -> None:
    import ml_dtypes

    message = _refused('T.call_extern("void", "f", T.access_ptr(A, "r"))', A=np.zeros(8, ml_dtypes.int4))
    assert "an element of A has no address: two of them share a byte" in message


def test_an_array_with_a_layout_of_its_own_has_no_pointer() -> None:
    for call in ("T.access_ptr(A[0, 0], 'r')", "T.access_ptr(A[0, 0], 'r', 8)"):
        for loop in ("if True:", "for i in T.Parallel(4):"):
            message = _refused(
                f"""
                T.annotate_layout({{A: T.Layout((4, 8), lambda i, j: (j, i))}})
                {loop}
                    T.call_extern("void", "f", {call})
                """
            )
            assert "T.call_extern does not work on A, whose elements lie in an order of their own" in message


def test_the_cpu_refuses_it_at_its_line() -> None:
    for kernel in (of_threads, of_elements, of_the_block):
        with pytest.raises(TargetError) as caught:
            kernel.using(target="cpu")().executable()
        assert "of T.call_extern is CUDA text, which the CPU cannot run" in str(caught.value)
        assert "write it as a Python function of the language" in str(caught.value)
        assert "T.call_extern(" in str(caught.value)


def test_without_a_meaning_only_a_card_runs_it() -> None:
    body = 'T.call_extern("void", "nobody_knows", T.access_ptr(A[0, 0:4], "rw"))'
    traced = jitted(body, A=np.zeros((4, 8), np.float32)).using(target="cuda:sm_80")().compilation
    with pytest.raises(LanguageError) as caught:
        run_reference(traced.functions["tile"], {"A": np.zeros((4, 8), np.float32)})
    assert "nobody_knows of T.call_extern has no meaning in Python" in str(caught.value)


def test_an_address_without_extents_may_be_anywhere() -> None:
    body = """
        T.import_source("__device__ void walk(float* x) { x[3] = 1.0f; }")
        S = T.alloc_shared((2, 64), "float32")
        T.copy(A[0, 0], S[0, 0:64])
        T.call_extern("handle", "walk", T.address_of(S[1, 0]), meaning=lambda x: None)
        T.copy(S[0, 0:64], A[0, 0])
    """
    kernel = jitted(body, A=np.zeros((2, 64), np.float32)).using(target="cuda:sm_80")()
    kernel.reach_code()
    threaded = kernel.stage("threaded").split("T.call_extern(")
    assert all('T.sync_threads(why="S' in part for part in threaded)
    with pytest.raises(LanguageError) as caught:
        run_reference(kernel.compilation.functions["tile"], {"A": np.zeros((2, 64), np.float32)})
    assert "which elements walk of T.call_extern touches nobody says" in str(caught.value)


def test_two_elements_that_write_one_are_a_race() -> None:
    body = """
        for i in T.Parallel(8):
            T.call_extern("void", "raced", T.access_ptr(A[0, i // 2], "w"), meaning=fill)
    """
    function = jitted(body.replace("fill", "lambda x: None"), A=np.zeros((4, 8), np.float32))
    traced = function.using(target="cuda:sm_80")().compilation.functions["tile"]
    with pytest.raises(LanguageError) as caught:
        run_reference(traced, {"A": np.zeros((4, 8), np.float32)})
    assert "raced is called for two elements of T.Parallel with pointers to A[0, 0]" in str(caught.value)
    assert "found: element (0,) and element (1,)" in str(caught.value)


def test_elements_outside_are_the_references_to_see() -> None:
    body = 'T.call_extern("void", "far", T.access_ptr(A[3, 4], "r", offset=b0 + 4), meaning=lambda x: None)'
    function = jitted(body, A=np.zeros((4, 8), np.float32))
    traced = function.using(target="cuda:sm_80")().compilation.functions["tile"]
    with pytest.raises(LanguageError, match="a pointer of far is to elements outside of A"):
        run_reference(traced, {"A": np.zeros((4, 8), np.float32)})


def test_a_form_that_does_not_fit_is_refused() -> None:
    text = of_threads().stage("tile").replace('form="r w x"', 'form="r x"')
    with pytest.raises(IRError, match="'r x' does not say what decode does"):
        tilebench.compile_from("tile", text, target="cuda:sm_80").stage("cuda")


def test_dtypes_of_values() -> None:
    with pytest.raises(DTypeError):
        jitted('T.call_extern("float16", "f", 1.0)', A=np.zeros((4, 8), np.float32)).using(
            target="cuda:sm_80"
        )()
    assert issubclass(ShapeError, TileError)
