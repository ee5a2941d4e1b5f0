"""On a real GPU: launches, conversions bit by bit, the driver's own occupancy, graphs, lost contexts."""

from __future__ import annotations

import ctypes
import multiprocessing
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests import kernels_packed
from tilebench.ir.dtypes import ALL
from tilebench.language.meanings.rounding import narrowed
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.occupancy import occupancy
from tilebench.targets.cuda.run import context as contexts
from tilebench.targets.cuda.run import device as devices
from tilebench.targets.cuda.run.driver import CudaError
from tilebench.targets.cuda.run.launch import Launch
from tilebench.targets.cuda.run.memory import DeviceMemory, Event, Stream, copy_in, copy_out, fill_bytes
from tilebench.targets.cuda.run.modules import Function, Module
from tilebench.targets.cuda.text.prelude import PRELUDE

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not devices.available()[0], reason="no GPU: " + devices.available()[1]),
]

CONVERT = """\
extern "C" __global__ void narrow(const float* x, tb_half* h, tb_bf16* b, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) {
    h[i] = tb_half(x[i]);
    b[i] = tb_bf16(x[i]);
  }
}
extern "C" __global__ void widen(const tb_half* h, const tb_bf16* b, float* x, float* y, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) {
    x[i] = (float)h[i];
    y[i] = (float)b[i];
  }
}
extern "C" __global__ void narrow8(const float* x, tb_e4m3* e, tb_e5m2* f, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) {
    e[i] = tb_e4m3(x[i]);
    f[i] = tb_e5m2(x[i]);
  }
}
extern "C" __global__ void widen8(const tb_e4m3* e, const tb_e5m2* f, float* x, float* y, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) {
    x[i] = (float)e[i];
    y[i] = (float)f[i];
  }
}
extern "C" __global__ void arithmetic(const tb_half* a, const tb_half* b, tb_half* c, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i];
    c[n + i] = a[i] * b[i];
    c[2 * n + i] = a[i] / b[i];
    c[3 * n + i] = tb_sqrt(tb_abs(a[i]));
  }
}
"""


def _load(text: str, name: str) -> tuple[Function, int]:
    held = compile_cuda(PRELUDE.before(text)[0], devices.describe())
    return Module(held.cubin, contexts.context(0)).function(name), held.resources[name].registers


def _run(
    name: str, kinds: str, n: int, inputs: list[np.ndarray[Any, Any]], outputs: list[np.ndarray[Any, Any]]
) -> None:
    context = contexts.context(0)
    function, _ = _load(CONVERT, name)
    held = [DeviceMemory(context, each.nbytes) for each in (*inputs, *outputs)]
    for memory, array in zip(held, inputs, strict=False):
        copy_in(context, memory.pointer, array)
    Launch(function, kinds, grid=(-(-n // 256),), block=(256,))(0, *(each.pointer for each in held), n)
    for memory, array in zip(held[len(inputs) :], outputs, strict=True):
        copy_out(context, array, memory.pointer)


def _same_bits(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    number = ~np.isnan(wanted.astype(np.float32))
    assert np.array_equal(np.isnan(found.astype(np.float32)), ~number)
    assert np.array_equal(found.view(np.uint16)[number], wanted.view(np.uint16)[number])


def test_all_sixteen_bit_floats_widen_exactly() -> None:
    bits = np.arange(65536, dtype=np.uint16)
    half, brain = bits.view(np.float16), bits.view(ml_dtypes.bfloat16)
    x, y = np.empty(65536, np.float32), np.empty(65536, np.float32)
    _run("widen", "PPPPi", 65536, [half, brain], [x, y])
    for found, wanted in ((x, half.astype(np.float32)), (y, brain.astype(np.float32))):
        assert np.array_equal(found, wanted, equal_nan=True)


def test_floats_narrow_as_numpy_and_ml_dtypes_do() -> None:
    rng = np.random.default_rng(1)
    raw = rng.integers(0, 2**32, 1 << 20, dtype=np.uint32)
    ties = (np.arange(65536, dtype=np.uint32) << 16) | 0x8000
    x = np.concatenate([raw, ties, np.arange(1 << 16, dtype=np.uint32) << 13]).view(np.float32)
    half, brain = np.empty(x.size, np.float16), np.empty(x.size, ml_dtypes.bfloat16)
    _run("narrow", "PPPi", x.size, [x], [half, brain])
    with np.errstate(over="ignore", invalid="ignore"):
        _same_bits(half, x.astype(np.float16))
        _same_bits(brain, x.astype(ml_dtypes.bfloat16))


def test_half_arithmetic_is_correctly_rounded() -> None:
    rng = np.random.default_rng(2)
    n = 1 << 18
    a = rng.integers(0, 65536, n).astype(np.uint16).view(np.float16)
    b = rng.integers(0, 65536, n).astype(np.uint16).view(np.float16)
    c = np.empty(4 * n, np.float16)
    _run("arithmetic", "PPPi", n, [a, b], [c])
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = (wide_a + wide_b, wide_a * wide_b, wide_a / wide_b, np.sqrt(np.abs(wide_a)))
        for k, exact in enumerate(wanted):
            _same_bits(c[k * n : (k + 1) * n], exact.astype(np.float16))


@pytest.mark.parametrize(
    ("threads", "shared"), [(32, 0), (96, 0), (128, 20000), (256, 48000), (384, 100000), (1024, 0)]
)
def test_the_drivers_occupancy_is_ours(threads: int, shared: int) -> None:
    machine = devices.describe()
    if shared > machine.shared.per_block:
        pytest.skip("more shared memory than this device has")
    body = "".join(f"  float v{k} = a[threadIdx.x + {k}];\n" for k in range(40))
    uses = "".join(f"  a[threadIdx.x * {k + 2}] = v{k} * v{39 - k};\n" for k in range(40))
    text = f'extern "C" __global__ void k(float* a) {{\n{body}  __syncthreads();\n{uses}}}\n'
    function, registers = _load(text, "k")
    if shared:
        function.allow_shared(shared)
    assert function.attribute("NUM_REGS") == registers
    assert function.blocks_per_sm(threads, shared) == occupancy(machine, threads, registers, shared).blocks


def test_the_machines_limits_are_the_devices() -> None:
    machine, device = devices.describe(), devices.device(0)
    assert device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") == machine.shared.per_block
    assert device.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR") == machine.shared.per_unit
    assert device.attribute("RESERVED_SHARED_MEMORY_PER_BLOCK") == machine.shared.reserved
    assert device.attribute("MAX_THREADS_PER_MULTIPROCESSOR") == machine.sm.max_threads
    assert device.attribute("MAX_BLOCKS_PER_MULTIPROCESSOR") == machine.sm.max_blocks
    assert device.attribute("MAX_REGISTERS_PER_MULTIPROCESSOR") == machine.sm.registers
    assert device.attribute("WARP_SIZE") == machine.warp


ADD_ONE = 'extern "C" __global__ void add_one(int* a) { a[threadIdx.x] += 1; }\n'


def test_events_streams_and_the_cost_of_a_launch() -> None:
    context = contexts.context(0)
    function, _ = _load(ADD_ONE, "add_one")
    memory, stream = DeviceMemory(context, 128), Stream(context)
    fill_bytes(context, memory.pointer, 0, 128, stream.handle)
    held = Launch(function, "P", grid=(1,), block=(32,))
    start, end = Event(context), Event(context)
    start.record(stream.handle)
    began = time.perf_counter()
    for _ in range(500):
        held(stream.handle, memory.pointer)
    each = (time.perf_counter() - began) / 500
    end.record(stream.handle)
    assert 0 < end.seconds_since(start) < 1
    out = np.empty(32, np.int32)
    copy_out(context, out, memory.pointer, stream.handle)
    assert out.tolist() == [500] * 32
    print(f"launch: {each * 1e6:.1f} us")
    assert each < 50e-6
    stream.close()


def test_a_launch_is_captured_in_a_graph() -> None:
    context = contexts.context(0)
    lib = context.driver.lib
    function, _ = _load(ADD_ONE, "add_one")
    memory, stream = DeviceMemory(context, 128), Stream(context)
    fill_bytes(context, memory.pointer, 0, 128, stream.handle)
    stream.synchronize()
    held = Launch(function, "P", grid=(1,), block=(32,))
    graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
    with context:
        context.driver.check(lib.cuStreamBeginCapture_v2(ctypes.c_void_p(stream.handle), 1), "begin")
        held(stream.handle, memory.pointer)
        held(stream.handle, memory.pointer)
        context.driver.check(
            lib.cuStreamEndCapture(ctypes.c_void_p(stream.handle), ctypes.byref(graph)), "end"
        )
        context.driver.check(
            lib.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, ctypes.c_uint64(0)), "make"
        )
        for _ in range(3):
            context.driver.check(lib.cuGraphLaunch(ready, ctypes.c_void_p(stream.handle)), "launch")
    out = np.empty(32, np.int32)
    copy_out(context, out, memory.pointer, stream.handle)
    assert out.tolist() == [6] * 32


def _wild_store(answers: Any) -> None:
    function, _ = _load('extern "C" __global__ void wild(int* a) { a[0] = 1; }\n', "wild")
    context = contexts.context(0)
    Launch(function, "P", grid=(1,), block=(1,))(0, 0x10)
    try:
        context.synchronize()
    except CudaError as error:
        answers.put((error.code, error.context_lost))
    else:
        answers.put((0, False))


def test_a_wild_store_is_an_error_with_a_lost_context() -> None:
    spawn = multiprocessing.get_context("spawn")
    answers: Any = spawn.Queue()
    child = spawn.Process(target=_wild_store, args=(answers,))
    child.start()
    assert answers.get(timeout=60) == (700, True)
    child.join(timeout=60)


def test_8_bit_floats_round_and_stop_as_the_reference() -> None:
    e4m3, e5m2 = ALL["float8_e4m3fn"], ALL["float8_e5m2"]
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    bits = halves.view(np.uint32)
    x = np.concatenate([bits, bits + 1, bits - 1]).view(np.float32)
    narrow = [np.zeros(x.size, dtype.numpy) for dtype in (e4m3, e5m2)]
    _run("narrow8", "PPPi", x.size, [x], narrow)
    for found, dtype in zip(narrow, (e4m3, e5m2), strict=True):
        expected, number = narrowed(x, dtype), ~np.isnan(x)
        assert np.array_equal(found.view(np.uint8)[number], expected.view(np.uint8)[number])
        assert np.isnan(found[~number].astype(np.float32)).all()
    every = np.arange(256, dtype=np.uint8)
    wide = [np.zeros(256, np.float32) for _ in range(2)]
    _run("widen8", "PPPPi", 256, [every.view(e4m3.numpy), every.view(e5m2.numpy)], wide)
    for found, dtype in zip(wide, (e4m3, e5m2), strict=True):
        assert np.array_equal(found, every.view(dtype.numpy).astype(np.float32), equal_nan=True)


@tilebench.jit
def moved(N):
    @T.prim_func
    def main(A: T.StridedTensor((N, 3), (8, 2), "float32"), B: T.StridedTensor((N, 3), (5, 1), "float32")):
        with T.Kernel(1, threads=64):
            for i, j in T.Parallel(N, 3):
                B[i, j] = A[i, j] + 1.0

    return main


@tilebench.jit
def nothing():
    @T.prim_func
    def main():
        with T.Kernel(1, threads=32):
            pass

    return main


def test_strided_host_arrays_go_there_and_back() -> None:
    a, b = np.arange(80, dtype=np.float32).reshape(10, 8), np.full((10, 5), -1, np.float32)
    kernel = moved.using(target="cuda")(10)
    kernel(a[:, :6:2], b[:, :3])
    np.testing.assert_array_equal(b[:, :3], a[:, :6:2] + 1)
    assert (b[:, 3:] == -1).all()
    assert kernel.check()
    assert nothing.using(target="cuda")()() is None


@pytest.mark.parametrize(
    "kernel_of", [kernels_packed.narrowed, kernels_packed.elementwise, kernels_packed.filled]
)
def test_packed_arrays_are_checked_and_timed_as_they_lie(kernel_of: Any) -> None:
    kernel = kernel_of.using(target="cuda")(33, 47)
    assert kernel.check()
    record = kernel.bench(seconds=0.2)
    assert not record.failure
    assert record.error is not None
