"""Arrays of JAX and CuPy: stand-ins everywhere, JAX itself where it is installed."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.kernels import add_kernel
from tilebench.errors import ArgumentError
from tilebench.kernel.calls.host_arrays import empty_like, on_host
from tilebench.record import ParamRecord
from tilebench.runtime.arrays import ArgumentChecker
from tilebench.runtime.describe import describe
from tilebench.runtime.dlpack import read_dlpack
from tilebench.targets.cuda.run import load
from tilebench.targets.devices import CARD, card

has_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
DTYPES = ("float32", "bfloat16", "float16", "float8_e4m3fn", "int8", "uint8", "int32")


@tilebench.jit(target="cpu")
def shifted(dtype="float32"):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                C[bx * 32 + i] = A[bx * 32 + i] + T.cast(1, dtype)

    return main


class OnJax:
    """An array of JAX's on a card: with CUDA's interface, and a capsule that asks for a stream."""

    __module__ = "jaxlib._jax"
    device = "cuda:0"

    def __init__(self) -> None:
        self.array = np.zeros(8, np.float32)
        self.asked: list[dict[str, Any]] = []
        pointer = self.array.ctypes.data
        self.__cuda_array_interface__ = {
            "shape": (8,), "strides": None, "typestr": "<f4", "data": (pointer, False), "version": 3,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **options: Any) -> object:
        self.asked.append(dict(options))
        return self.array.__dlpack__(max_version=options.get("max_version"))


class OnCuPy:
    """What is asked of an array of CuPy's, over an address."""

    __module__ = "cupy"

    def __init__(self, pointer: int = 4096, contiguous: bool = True, shape: tuple[int, ...] = (8,)) -> None:
        self.dtype, self.shape = np.dtype(np.float32), shape
        self.data = SimpleNamespace(ptr=pointer, device_id=1)
        self.device = SimpleNamespace(id=1)
        self.flags = SimpleNamespace(c_contiguous=contiguous)
        self.described = 0

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.described += 1
        strides = None if self.flags.c_contiguous else (8,)
        data = (self.data.ptr, False)
        return {"shape": self.shape, "strides": strides, "typestr": "<f4", "data": data, "version": 3}


def test_an_array_of_jax_on_a_card_is_ready_for_the_default_stream_and_never_written() -> None:
    array = OnJax()
    info = describe(array)
    assert array.asked == [{"stream": 1, "max_version": (1, 0)}]
    assert not info.writable
    assert info.pointer == array.array.ctypes.data
    assert not on_host(array)


def test_a_launch_on_arrays_of_dlpack_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their library frees memory when it is done with it, and does not know of the launch."""
    waited: list[Any] = []
    monkeypatch.setattr(
        load,
        "context",
        lambda ordinal: SimpleNamespace(synchronize=lambda stream: waited.append((ordinal, stream))),
    )
    info = describe(OnCuPy())
    load.settle([info], 1)
    assert waited == []
    load.settle([info, info._replace(owner=(OnJax(), object()))], 1)
    assert waited == [(1, 0)]


def test_a_second_array_of_cupys_is_described_at_a_glance() -> None:
    checker = ArgumentChecker([ParamRecord("A", (8,), "float32", written=True)], CARD)
    first, second = OnCuPy(), OnCuPy(8192)
    assert checker([first])[0].device == card(1)
    assert checker([second])[0][:2] == (8192, (8,))
    assert (first.described > 0, second.described) == (True, 0)
    with pytest.raises(ArgumentError, match="A has the wrong shape"):
        checker([OnCuPy(shape=(9,))])
    with pytest.raises(ArgumentError, match="A is not contiguous in rows"):
        checker([OnCuPy(contiguous=False)])


def test_jax_on_a_card_gets_no_results() -> None:
    pytest.importorskip("jax")
    with pytest.raises(ArgumentError) as caught:
        empty_like(OnJax(), (8,), "float32")
    assert str(caught.value) == (
        "argument error: a call of JAX's arrays on a card cannot return any\n"
        "  expected: an output that the call brings along\n"
        "  found: an array on cuda:0\n"
        "  help: pass cupy.from_dlpack(x) or torch.from_dlpack(x): what the call returns is theirs then"
    )


@has_jax
@pytest.mark.parametrize("dtype", DTYPES)
def test_jax_in_and_out(dtype: str) -> None:
    import jax

    x = (jax.numpy.arange(100) % 5).astype(dtype)
    found = shifted.using(out_idx=-1)(dtype)(x)
    assert isinstance(found, jax.Array)
    assert found.dtype == x.dtype
    assert np.array_equal(np.asarray(found), np.asarray(x + 1))
    kept = np.empty(100, np.asarray(x).dtype)
    assert shifted(dtype)(x, kept) is None
    assert np.array_equal(kept, np.asarray(x + 1))


@has_jax
def test_what_jax_computes_is_waited_for() -> None:
    import jax

    busy = jax.jit(lambda a: jax.lax.fori_loop(0, 20, lambda _, b: jax.numpy.sin(b @ b), a))
    x = busy(jax.numpy.ones((512, 512))).reshape(-1)
    found = shifted.using(out_idx=-1)()(x)
    assert np.array_equal(np.asarray(found), np.asarray(x) + 1)


@has_jax
def test_a_kernel_inside_of_jax() -> None:
    import jax

    kernel = shifted.using(out_idx=-1)()
    x = jax.numpy.arange(8.0)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    found = jax.jit(lambda a: jax.pure_callback(kernel, shape, a * 2))(x)
    assert np.array_equal(np.asarray(found), np.arange(8) * 2 + 1)
    with pytest.raises(ArgumentError) as caught:
        jax.jit(kernel)(x)
    assert "A stands for an array of JAX's that is not there yet" in str(caught.value)
    assert "call the kernel outside of jax.jit, grad and vmap, or through jax.pure_callback" in str(
        caught.value
    )


@has_jax
def test_an_array_of_jax_that_is_deleted_is_refused_by_its_name() -> None:
    import jax

    x = jax.numpy.ones((8, 8))
    x.delete()
    out_of_place = add_kernel.using(target="cpu", out_idx=-1)(8, 8, dtype="float32")
    with pytest.raises(ArgumentError, match="A is an array of JAX's that is deleted"):
        out_of_place(x, np.ones((8, 8), np.float32))
    with pytest.raises(ArgumentError, match="A is an array of JAX's that is deleted"):
        add_kernel.using(target="cpu")(8, 8, dtype="float32")(x, x, np.ones((8, 8), np.float32))


@has_jax
def test_an_array_of_jax_is_not_written() -> None:
    import jax

    kernel = add_kernel.using(target="cpu")(8, 8, dtype="float32")
    x = jax.numpy.ones((8, 8))
    with pytest.raises(ArgumentError) as caught:
        kernel(x, x, jax.numpy.zeros((8, 8)))
    assert "C is written by the kernel but cannot be" in str(caught.value)
    assert "found: an array of JAX's, which never changes" in str(caught.value)
    assert "help: name C in out_idx, and the call returns a new one; or pass numpy.array(C)" in str(
        caught.value
    )


@has_jax
def test_a_result_that_jax_would_narrow_is_refused() -> None:
    import jax

    kernel = shifted.using(out_idx=-1)("float64")
    with pytest.raises(ArgumentError) as caught:
        kernel(jax.numpy.ones(8))
    assert str(caught.value) == (
        "argument error: a result of float64 would be float32 in JAX\n"
        '  help: jax.config.update("jax_enable_x64", True) keeps it; or pass arrays of NumPy'
    )


def test_a_capsule_of_a_broken_device_says_what_is_wrong() -> None:
    class Broken(OnJax):
        def __dlpack_device__(self) -> tuple[int, int]:
            raise TypeError("no device")

    broken = Broken()
    read_dlpack(broken)
    assert broken.asked == [{"max_version": (1, 0)}]
