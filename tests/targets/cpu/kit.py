"""Small kernels around an emitter, compiled for this machine or for another."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tilebench.ir.dtypes import ALL
from tilebench.targets.cpu.llvm import Function, Module, Value
from tilebench.targets.cpu.llvm.lanes import vector_loop
from tilebench.targets.cpu.machine import Isa, host_isa, named_isa
from tilebench.targets.cpu.numbers.convert import load_value, store_value
from tilebench.targets.cpu.run.jit import compile_text

LEVELS = ("x86-64", "x86-64-v3", "x86-64-v4", "aarch64")


def runnable(isa: Isa) -> bool:
    """Whether code for the instruction set runs here."""
    return isa.triple == host_isa().triple and isa.has <= host_isa().has


def map_module(
    isa: Isa, emit: Callable[..., Value], inputs: list[str], output: str, lanes: int = 0
) -> Module:
    """A module with `map(out, n, in0, ...)`: out[i] = emit(f, in0[i], ...)."""
    module = Module(isa)
    names = [("out", "ptr"), ("n", "i64"), *((f"in{at}", "ptr") for at in range(len(inputs)))]
    f = module.function("map", names)
    out, n, *pointers = f.arguments
    wide = lanes or isa.lanes(max(ALL[each].bytes_of(1) for each in (*inputs, output)))

    def body(index: Value, mask: Value | None, carried: Any) -> Any:
        values = [
            load_value(f, f.at(pointer, index, _storage(dtype)), dtype, wide, mask)
            for pointer, dtype in zip(pointers, inputs, strict=True)
        ]
        store_value(f, emit(f, *values), f.at(out, index, _storage(output)), output, mask)
        return carried

    vector_loop(f, 0, n, wide, body)
    f.ret()
    return module


def _storage(dtype: str) -> str:
    from tilebench.targets.cpu.numbers.convert import STORAGE

    return STORAGE[dtype]


def run_map(
    emit: Callable[..., Value], arrays: list[np.ndarray[Any, Any]], output: str, isa: Isa | None = None
) -> Any:
    """The result of `map_module` over whole arrays."""
    isa = isa or host_isa()
    made = compile_text(
        map_module(isa, emit, [each.dtype.name for each in arrays], output).text(), ("map",), isa
    )
    out = np.zeros(arrays[0].size, ALL[output].numpy)
    kinds = [ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * len(arrays)]
    ctypes.CFUNCTYPE(None, *kinds)(made.address("map"))(
        out.ctypes.data, out.size, *[each.ctypes.data for each in arrays]
    )
    return out


def ulp_error(found: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> float:
    """The largest distance from the exact value in ulps of the found type, over finite results."""
    kind = found.dtype
    rounded = exact.astype(kind)
    # An exact value beyond the largest finite number must give infinity, and NaN gives NaN.
    assert np.array_equal(np.isnan(found), np.isnan(exact)), "NaN in the wrong places"
    good = np.isfinite(rounded) & np.isfinite(found)
    bad = np.isinf(rounded) != np.isinf(found)
    edge = np.abs(np.where(np.isfinite(exact), exact, np.inf)) < float(np.finfo(kind).max) * 0.9999
    assert not (bad & ~np.isnan(exact) & edge).any(), "infinity in the wrong places"
    assert np.array_equal(found[np.isinf(exact)], rounded[np.isinf(exact)])
    unit = np.spacing(np.abs(rounded[good]).astype(kind)).astype(np.float64)
    return float((np.abs(found[good].astype(exact.dtype) - exact[good]) / unit).max(initial=0.0))


__all__ = ["LEVELS", "Function", "map_module", "named_isa", "run_map", "runnable", "ulp_error"]
