# ruff: noqa: E501 -- stages and CUDA text are one statement a line
"""CUDA text: goldens, the line map, names and literals, and real cubins for three architectures."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.passes.lowering import gemm_text, lower
from tests.passes.test_to_threads import ADD
from tilebench.errors import TargetError
from tilebench.ir import Cast, Const, line_numbers, parse_function, print_function
from tilebench.ir.dtypes import (
    ALL,
    bfloat16,
    boolean,
    float8_e4m3fn,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint32,
    uint64,
)
from tilebench.language.words import registry
from tilebench.targets.clike.literals import literal
from tilebench.targets.cuda.compiler.nvrtc import Compiled, compile_cuda
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.text.dialect import CUDA
from tilebench.targets.cuda.text.render import Rendered, render

ADD_CUDA = """\
extern "C" __global__ void __launch_bounds__(32, 1) add(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C) {
  const int bx = (int)blockIdx.x;
  const int by = (int)blockIdx.y;
  const int tid = (int)threadIdx.x;
  const int tid_1_8 = tid % 8;
  const int tid_8_4 = tid / 8;
  #pragma unroll
  for (int r0 = 0; r0 < 4; ++r0) {
    const int i = tid_8_4 + r0 * 4;
    const int j = tid_1_8 * 4;
    __align__(16) float A_v[4];
    tb_ld_global_16(A_v, A + (by * 16 + i) * 96 + bx * 32 + j);
    __align__(16) float B_v[4];
    tb_ld_global_16(B_v, B + (by * 16 + i) * 96 + bx * 32 + j);
    __align__(16) float C_w[4];
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      C_w[e] = A_v[e] + B_v[e];
    }
    tb_st_global_16(C + (by * 16 + i) * 96 + bx * 32 + j, C_w);
  }
}
"""


def rendered(text: str, arch: str = "sm_80") -> Rendered:
    return render(lower(text, arch)[0], machine_of(arch))


def compiled(text: str, arch: str = "sm_80") -> Compiled:
    return compile_cuda(rendered(text, arch).text, machine_of(arch))


def body_of(text: str) -> str:
    """The kernel without the prelude in front of it."""
    return text[text.index('extern "C"') :]


def threaded(body: str, params: str = "A: T.Tensor((64,), T.float32)", grid: str = "4") -> Rendered:
    """The CUDA text of statements of one thread."""
    lines = "\n".join("        " + each for each in body.strip("\n").splitlines())
    text = f"@T.prim_func\ndef k({params}):\n    with T.Kernel({grid}, threads=64) as bx:\n{lines}\n"
    return render(parse_function(text, registry()), machine_of("sm_80"))


def test_golden_add() -> None:
    assert body_of(rendered(ADD).text) == ADD_CUDA


def test_every_line_knows_the_line_of_the_stage_before() -> None:
    function, _ = lower(gemm_text(64, 64, 64, stages=3, ab="float16"))
    made = render(function, machine_of("sm_80"))
    stage = print_function(function).text.splitlines()
    cuda = made.text.splitlines()
    assert len(cuda) == len(made.lines)
    at = next(k for k, each in enumerate(cuda) if "C_l[m0 * 4 + n0] = " in each)
    assert [stage[n - 1].strip() for n in made.lines[at]] == [
        "C_l[m0 * 4 + n0] = C_l[m0 * 4 + n0] + a[m0 * 4 + k1] * b[n0]"
    ]
    for text, lines in zip(cuda, made.lines, strict=True):
        if "__syncthreads" in text:
            assert "T.sync_threads" in stage[lines[0] - 1]
        if text.strip().startswith("#pragma unroll"):
            assert stage[lines[0] - 1].strip().startswith("for ")
    assert made.lines[0] == ()


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize("ab", ["float16", "float32", "bfloat16"])
def test_gemm_compiles_without_spills(arch: str, ab: str) -> None:
    tile = (64, 64, 16)
    made = compiled(gemm_text(250, 200, 300, tile=tile, threads=64, per_thread=(8, 8), ab=ab, stages=2), arch)
    found = made.resources["gemm"]
    assert (found.spill_store_bytes, found.spill_load_bytes, found.stack_bytes) == (0, 0, 0)
    assert found.registers is not None
    assert 64 < found.registers <= 255
    assert made.cubin[:4] == b"\x7fELF"
    assert not made.warnings


def test_a_large_tile_of_multiply_adds_fits_the_registers() -> None:
    made = compiled(
        gemm_text(1024, 1024, 1024, tile=(128, 128, 32), threads=256, per_thread=(8, 8), stages=2), "sm_90a"
    )
    found = made.resources["gemm"]
    assert found.spill_store_bytes == 0
    assert found.stack_bytes == 0


def test_names_that_cpp_takes_are_escaped_and_the_others_kept() -> None:
    made = threaded(
        "float: T.int32 = T.thread_id()\nfor register in T.serial(2):\n    new[float + register * 32] = T.float32(1)",
        "new: T.Tensor((64,), T.float32)",
    )
    assert "float* __restrict__ new_" in made.text
    assert "const int float_ = (int)threadIdx.x;" in made.text
    assert "for (int register_ = 0; register_ < 2; ++register_) {" in made.text
    compile_cuda(made.text, machine_of("sm_80"))


def test_floor_division_is_plain_where_no_operand_can_be_negative() -> None:
    text = threaded(
        "tid: T.int32 = T.thread_id()\nx: T.int32 = (tid - 5) // 3\ny: T.int32 = (tid - 5) % 3\n"
        "z: T.int32 = (tid + bx) // 3 % 7\nA[tid] = T.cast(x + y + z, T.float32)"
    ).text
    assert "const int x = tb_floordiv<int>(tid - 5, 3);" in text
    assert "const int y = tb_floormod<int>(tid - 5, 3);" in text
    assert "const int z = (tid + bx) / 3 % 7;" in text


def test_integers_of_data_wrap_and_narrow_ones_are_cut_back() -> None:
    """Overflow of int is undefined in C, and C adds 8-bit integers in int."""
    text = threaded(
        "t: T.int32 = T.thread_id()\nC[t] = C[t] + C[t] * 3\nD[t] = T.cast(B[t] + B[t], T.int32)",
        "B: T.Tensor((64,), T.int8), C: T.Tensor((64,), T.int32), D: T.Tensor((64,), T.int32)",
    ).text
    assert "C[t] = (int)((unsigned int)C[t] + " in text
    assert "D[t] = (int)(signed char)(B[t] + B[t]);" in text
    compile_cuda(text, machine_of("sm_80"))


def test_precedence_is_that_of_c() -> None:
    text = threaded(
        "t: T.int32 = T.thread_id()\na: T.int32 = t ^ (t & 192) >> 3\nb: T.int32 = T.if_then_else((t & 1) == 0, t - (3 - bx), -1) * 2\n"
        "c: T.int32 = t - -2\nif (t < 3 or t > 8) and not a == b:\n    A[t] = T.cast(c, T.float32)"
    ).text
    assert "const int a = t ^ (t & 192) >> 3;" in text
    assert "const int b = ((t & 1) == 0 ? t - (3 - bx) : -1) * 2;" in text
    assert "if ((t < 3 || t > 8) && !(a == b)) {" in text
    compile_cuda(text, machine_of("sm_80"))


def test_large_buffers_are_addressed_with_64_bits() -> None:
    body = "t: T.int32 = T.thread_id()\nA[bx * 64 + t, t] = T.float32(1)"
    small = threaded(body, "A: T.Tensor((1024, 1024), T.float32)").text
    large = threaded(body, "A: T.Tensor((65536, 65536), T.float32)").text
    assert "A[(bx * 64 + t) * 1024 + t]" in small
    assert "A[(long long)(bx * 64 + t) * 65536 + t]" in large
    compile_cuda(large, machine_of("sm_80"))


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.5, float32, "0.5f"), (0.1, float32, "0x1.99999a0000000p-4f"), (-0.0, float32, "-0.0f"),
        (math.inf, float32, "tb_inf_f32()"), (-math.inf, float16, "-tb_inf_f16()"), (math.nan, float64, "tb_nan_f64()"),
        (1.5, float16, "tb_half(1.5f)"), (2.0, bfloat16, "tb_bf16(2.0f)"), (1e300, float64, "0x1.7e43c8800759cp+996"),
        (-(2**31), int32, "(-2147483647 - 1)"), (2**40, int64, "1099511627776ll"), (2**64 - 1, uint64, "18446744073709551615ull"),
        (7, uint32, "7u"), (-3, int8, "-3"), (True, boolean, "true"),
    ],
)  # fmt: skip
def test_literals_are_exact(value: float, dtype: object, text: str) -> None:
    from tilebench.ir import DType

    assert isinstance(dtype, DType)
    assert literal(value, dtype, CUDA) == text


def test_all_scalar_functions_and_dtypes_compile() -> None:
    unary = (
        "exp",
        "exp2",
        "log",
        "log2",
        "sqrt",
        "rsqrt",
        "tanh",
        "abs",
        "floor",
        "ceil",
        "sigmoid",
        "erf",
        "sin",
        "cos",
    )
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        lines = ["t: T.int32 = T.thread_id()", f"x = T.alloc_var(T.{dtype}, init=A[t])"]
        lines += [f"x = T.{word}(x) + T.{dtype}(1)" for word in unary]
        lines += ["x = T.max(T.pow(x, x), T.min(x, -x)) / x - x * x", "x = T.shfl_xor(x, 4)"]
        lines += ["x = x + T.shfl_down(x, 4)"] if dtype in ("float32", "float64") else []
        lines += [
            "y: T.int32 = T.cast(x, T.int32)",
            f"A[t] = T.if_then_else(x < A[t], T.cast(y, T.{dtype}), x)",
        ]
        made = threaded("\n".join(lines), f"A: T.Tensor((64,), T.{dtype})")
        for arch in ("sm_75", "sm_90a"):
            assert not compile_cuda(made.text, machine_of(arch)).warnings
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        lines = [
            "t: T.int32 = T.thread_id()", f"x: T.{dtype} = A[t] * A[t] + A[t] - T.{dtype}(3)",
            f"y: T.{dtype} = T.max(x // T.{dtype}(3), T.min(x % T.{dtype}(5), x)) ^ x & x | x",
            f"A[t] = T.cast(T.cast(y << T.{dtype}(1), T.float32), T.{dtype}) >> T.{dtype}(1)", "A[t] = T.abs(A[t])",
        ]  # fmt: skip
        made = threaded("\n".join(lines), f"A: T.Tensor((64,), T.{dtype})")
        assert not [
            each
            for each in compile_cuda(made.text, machine_of("sm_80")).warnings
            if "unsigned" not in each.message
        ]


def test_a_dtype_without_code_is_named() -> None:
    assert set(CUDA.types) == set(ALL)
    fewer = replace(CUDA, types={"float32": "float", "int32": "int"})
    with pytest.raises(TargetError, match="no CUDA code for float8_e4m3fn yet"):
        fewer.type_of(float8_e4m3fn)
    assert Cast(Const(1), type=float8_e4m3fn).dtype == float8_e4m3fn


def test_line_numbers_are_those_of_the_printer() -> None:
    function, _ = lower(gemm_text(45, 37, 29, stages=2, order=", order=T.Panels(2)"))
    numbers = line_numbers(function)
    printed = print_function(function)
    for number, each in enumerate(printed.nodes, start=1):
        if each is not None and printed.text.splitlines()[number - 1].strip() != "else:":
            assert numbers[id(each)] <= number
            assert printed.nodes[numbers[id(each)] - 1] is each


def test_casts_to_narrow_integers_stop_at_their_ends() -> None:
    text = threaded(
        "t: T.int32 = T.thread_id()\nB[t] = T.cast(A[t] + T.float32(1), T.int8)",
        "A: T.Tensor((64,), T.float32), B: T.Tensor((64,), T.int8)",
    ).text
    assert "B[t] = (signed char)min(max((int)(A[t] + 1.0f), -128), 127);" in text
    compile_cuda(text, machine_of("sm_80"))


def refused(body: str, params: str = "A: T.Tensor((64,), T.float16)") -> str:
    with pytest.raises(TargetError) as caught:
        threaded(body, params)
    return str(caught.value)


def test_a_statement_without_a_row_is_refused_at_its_line() -> None:
    text = refused("t: T.int32 = T.thread_id()\nfor v in T.vectorized(4):\n    A[t] = T.float16(0)")
    assert text.startswith("target error: T.vectorized has no code for cuda:sm_80\n")
    assert "for v in T.vectorized(4):" in text
    known = text.partition("help: it has ")[2].split(", ")
    assert known == sorted(known)
    assert {"alloc_shared", "ldmatrix", "mma", "move_bits", "serial", "vector_load"} <= set(known)


def test_a_function_without_a_row_is_refused_at_its_line() -> None:
    text = refused("t: T.int32 = T.thread_id()\nA[t] = T.shfl_down(A[t], 4)")
    assert text.startswith("target error: T.shfl_down has no code for cuda:sm_80 that gives float16\n")
    assert "A[t] = T.shfl_down(A[t], 4)" in text
    known = "float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8"
    assert f"expected: one of {known}" in text


def test_an_access_that_no_instruction_makes_is_refused_at_its_line() -> None:
    text = refused("r = T.alloc_local((3,), T.float16)\nT.vector_load(r[0 : 3], A[0 : 3])")
    assert "T.vector_load of 6 bytes in global memory has no code for cuda:sm_80" in text
    assert "T.vector_load(r[0 : 3], A[0 : 3])" in text
    assert "expected: one of 1, 2, 4, 8, 16 bytes in global or shared memory" in text


def test_named_barriers() -> None:
    text = threaded("t: T.int32 = T.thread_id()\nif t < 32:\n    T.sync_threads(barrier=1, threads=32)").text
    assert '    asm volatile("bar.sync 1, 32;" ::: "memory");\n' in text
    compile_cuda(text, machine_of("sm_80"))
    assert (
        '  asm volatile("bar.sync 2;" ::: "memory");  // roles\n'
        in threaded('T.sync_threads(why="roles", barrier=2)').text
    )
    for wrong in ("barrier=16", "barrier=1, threads=40", "barrier=1, threads=96"):
        assert "expected: a barrier from 0 to 15, for a multiple of 32 threads, at most 64" in refused(
            f"T.sync_threads({wrong})"
        )
