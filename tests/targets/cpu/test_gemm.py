"""The gemm emitter: odd sizes, dtypes, transposes, run-time extents, panels, ghosts, other targets."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from kit import LEVELS, named_isa, runnable

from tilebench.errors import TargetError
from tilebench.ir.dtypes import ALL
from tilebench.targets.cpu.llvm import Function, Module, Value
from tilebench.targets.cpu.machine import Isa, host_isa
from tilebench.targets.cpu.microkernel.gemm import (
    TileOperand,
    compute_element,
    emit_gemm,
    emit_pack,
    padded_rows,
    panel_width,
    row_stride,
)
from tilebench.targets.cpu.numbers.convert import COMPUTE
from tilebench.targets.cpu.run.jit import compile_text, object_code, undefined_symbols

F32 = "float32"


@dataclass(frozen=True)
class Case:
    """One gemm as a kernel would run it. `staged`: padded scratch copies of all three tiles."""

    m: int
    n: int
    k: int
    dtypes: tuple[str, str, str] = (F32, F32, F32)
    transpose_a: bool = False
    transpose_b: bool = False
    accumulate: bool = True
    run_time: bool = False
    staged: bool = False


def build(case: Case, isa: Isa) -> Module:
    module = Module(isa)
    names = [(each, "ptr") for each in "abcs"] + [(each, "i64") for each in "mnk"]
    f = module.function("gemm", names)
    a, b, c, scratch, m, n, k = f.arguments
    da, db, dc = case.dtypes
    left = TileOperand(a, da, case.m if case.transpose_a else case.k)
    right = TileOperand(b, db, case.k if case.transpose_b else case.n)
    left = left.transposed() if case.transpose_a else left
    right = right.transposed() if case.transpose_b else right
    out = TileOperand(c, dc, case.n)
    extents: tuple[Any, Any, Any] = (m, n, k) if case.run_time else (case.m, case.n, case.k)
    if case.staged:
        staged(f, case, scratch, left, right, out, extents)
    else:
        emit_gemm(f, left, right, out, *extents, accumulate=case.accumulate)
    f.ret()
    return module


def staged(
    f: Function,
    case: Case,
    scratch: Value,
    left: TileOperand,
    right: TileOperand,
    out: TileOperand,
    extents: Any,
) -> None:
    compute = compute_element(*case.dtypes)
    wide = F32 if COMPUTE[case.dtypes[0]] == "float" else case.dtypes[0]
    width = panel_width(f.isa, compute)
    size, out_size = ALL[wide].bytes_of(1), ALL[case.dtypes[2]].bytes_of(1)
    lda, panels = row_stride(f.isa, case.k, size), -(-case.n // width)
    ldc = row_stride(f.isa, panels * width, out_size)
    a_s = TileOperand(scratch, wide, lda, padded=True)
    after_a = f.at(scratch, padded_rows(case.m) * lda * size, "i8")
    b_s = TileOperand(after_a, wide, width, panel=width, panel_stride=width * case.k, padded=True)
    after_b = f.at(after_a, panels * width * case.k * size, "i8")
    c_s = TileOperand(after_b, case.dtypes[2], ldc, padded=True)
    m, n, k = extents
    emit_pack(f, left, a_s, m, k)
    emit_pack(f, right, b_s, k, n)
    emit_pack(f, out, c_s, m, n, zero_rest=False)
    emit_gemm(f, a_s, b_s, c_s, m, n, k, accumulate=case.accumulate)
    emit_pack(f, c_s, out, m, n, zero_rest=False)


def numbers(shape: tuple[int, int], dtype: str, rng: Any) -> Any:
    if ALL[dtype].is_integer:
        low = 0 if dtype[0] == "u" else int(max(ALL[dtype].least, -1000))
        return rng.integers(low, int(min(ALL[dtype].most, 1000)) + 1, shape).astype(ALL[dtype].numpy)
    return rng.standard_normal(shape).astype(ALL[dtype].numpy)


def check(case: Case, isa: Isa | None = None) -> None:
    isa = isa or host_isa()
    if not runnable(isa):
        pytest.skip("not this machine's instruction set")
    rng = np.random.default_rng(1)
    a = numbers((case.k, case.m) if case.transpose_a else (case.m, case.k), case.dtypes[0], rng)
    b = numbers((case.n, case.k) if case.transpose_b else (case.k, case.n), case.dtypes[1], rng)
    # A frame of C around the result must stay as it is.
    frame = numbers((case.m * case.n + 64, 1), case.dtypes[2], rng).ravel()
    c, before = frame[32 : 32 + case.m * case.n].reshape(case.m, case.n), frame.copy()
    scratch = np.full(1 << 20, 0xFF, np.uint8)  # NaN for every float
    made = compile_text(build(case, isa).text(), ("gemm",), isa)
    kinds = [*[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 3]
    at = (scratch.ctypes.data + 63) // 64 * 64
    call = ctypes.CFUNCTYPE(None, *kinds)(made.address("gemm"))
    call(a.ctypes.data, b.ctypes.data, c.ctypes.data, at, case.m, case.n, case.k)
    out = ALL[case.dtypes[2]]
    wide = np.float64 if out.is_float else np.int64
    left, right = (a.T if case.transpose_a else a).astype(wide), (b.T if case.transpose_b else b).astype(wide)
    old = (
        before[32 : 32 + c.size].reshape(c.shape).astype(wide) if case.accumulate else np.zeros(c.shape, wide)
    )
    bound = np.zeros(c.shape)
    if out.is_float:
        sums = np.abs(left) @ np.abs(right) + np.abs(old)
        unit = 2.0**-53 if out.name == "float64" else 2.0**-24
        bound = (case.k + 2) * unit * sums + out.unit_roundoff * 1.01 * (np.abs(left @ right + old) + 1e-6)
    assert np.all(np.abs(c.astype(wide) - (left @ right + old)) <= bound)
    assert frame[:32].tobytes() == before[:32].tobytes()
    assert frame[32 + c.size :].tobytes() == before[32 + c.size :].tobytes()


SIZES = [
    (1, 1, 1),
    (6, 64, 8),
    (12, 16, 3),
    (7, 70, 13),
    (13, 127, 5),
    (37, 150, 33),
    (25, 17, 64),
    (2, 3, 1100),
]


@pytest.mark.parametrize("staged_", [False, True], ids=["in place", "staged"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_float32_sizes(size: tuple[int, int, int], staged_: bool) -> None:
    check(Case(*size, staged=staged_))
    check(Case(*size, staged=staged_, run_time=True, accumulate=False))


@pytest.mark.parametrize("staged_", [False, True], ids=["in place", "staged"])
@pytest.mark.parametrize("transposes", [(True, False), (False, True), (True, True)])
def test_transposes(transposes: tuple[bool, bool], staged_: bool) -> None:
    check(Case(19, 83, 21, transpose_a=transposes[0], transpose_b=transposes[1], staged=staged_))


DTYPES = [
    ("float16", "float16", F32), ("bfloat16", "bfloat16", F32), ("float16", "float16", "float16"),
    ("bfloat16", "bfloat16", "bfloat16"), ("float8_e4m3fn", "float8_e4m3fn", F32),
    ("float8_e5m2", "float8_e5m2", F32),
    ("float64",) * 3, ("int8", "int8", "int32"), ("uint8", "uint8", "int32"),
    ("int16", "int16", "int32"), ("int32",) * 3,
]  # fmt: skip


@pytest.mark.parametrize("staged_", [False, True], ids=["in place", "staged"])
@pytest.mark.parametrize("dtypes", DTYPES, ids="-".join)
def test_dtypes(dtypes: tuple[str, str, str], staged_: bool) -> None:
    check(Case(9, 69, 1100 if "8" in dtypes[0] else 41, dtypes, run_time=not staged_, staged=staged_))


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_instruction_sets(level: str) -> None:
    for staged_ in (False, True):
        check(Case(14, 43, 19, run_time=True, staged=staged_), named_isa(level))
    check(Case(5, 21, 9, ("float16", "float16", "float16")), named_isa(level))


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtypes", DTYPES, ids="-".join)
def test_dtypes_of_instruction_sets(dtypes: tuple[str, str, str], level: str) -> None:
    """Vectors of small elements are wider than a panel on some, and reached into the next."""
    for turned in (False, True):
        check(Case(5, 69, 37, dtypes, transpose_b=turned, staged=True), named_isa(level))


@pytest.mark.parametrize("level", LEVELS)
def test_no_runtime_symbol_on_any_target(level: str) -> None:
    for at, dtypes in enumerate((*DTYPES, (F32,) * 3)):
        text = build(Case(14, 43, 19, dtypes, staged=at % 2 == 0), named_isa(level)).text()
        assert undefined_symbols(object_code(text, named_isa(level))) == [], dtypes


def test_int8_sums_stay_exact_past_24_bits() -> None:
    f = replace(Case(2, 3, 5000, ("int8", "int8", "int32")), accumulate=False)
    check(f)


def test_what_has_no_kernel_is_refused() -> None:
    for dtypes in ((F32, F32, "float64"), ("int8", "int8", F32), ("float64", "float64", F32)):
        with pytest.raises(TargetError, match="no gemm"):
            compute_element(*dtypes)
