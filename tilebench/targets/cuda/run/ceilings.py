"""The most a card reaches, measured on it: a copy of its memory, chains of multiply-adds and of products."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from ..compiler.nvrtc import compile_cuda
from .clock import EventClock
from .context import context
from .device import describe
from .launch import Launch
from .memory import DeviceMemory, fill_bytes
from .modules import Module
from .product_ceilings import BLOCKS_PER_SM as PRODUCT_BLOCKS
from .product_ceilings import product_kernels, text_of

COPY_BYTES = 1 << 30
REPEATS = 5
THREADS, BLOCKS_PER_SM, STEPS, CHAINS = 256, 8, 4096, 16
# CHAINS independent multiply-adds a step hide the latency of each (4 cycles on the cards so far).
FMA = """
extern "C" __global__ void __launch_bounds__(256) multiply_add(float* out, const float* in) {
  float x[16];
  #pragma unroll
  for (int i = 0; i < 16; ++i) x[i] = in[i] + (float)threadIdx.x;
  const float a = in[16], b = in[17];
  #pragma unroll 8
  for (int k = 0; k < 4096; ++k) {
    #pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = fmaf(x[i], a, b);
  }
  float s = 0.0f;
  #pragma unroll
  for (int i = 0; i < 16; ++i) s += x[i];
  if (s == 1.0f) out[0] = s;
}
extern "C" __global__ void __launch_bounds__(256) move(uint4* out, const uint4* in, long long n) {
  const long long step = (long long)gridDim.x * 256;
  for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < n; i += 4 * step) {
    uint4 v[4];
    #pragma unroll
    for (int k = 0; k < 4; ++k) if (i + k * step < n) v[k] = in[i + k * step];
    #pragma unroll
    for (int k = 0; k < 4; ++k) if (i + k * step < n) out[i + k * step] = v[k];
  }
}
"""


def measure_device_ceilings(ordinal: int = 0) -> dict[str, Any]:
    """Bytes a second of a copy (read plus written), f32 operations a second by FMA, others by matrix units.

    Plain data with the fields of the profile's `Ceilings`. Raises what the driver raises.
    """
    where = context(ordinal)
    machine = describe()
    code = Module(compile_cuda(FMA, machine).cubin, where)
    products = list(product_kernels(machine))
    units = Module(compile_cuda(text_of(products), machine).cubin, where) if products else code
    sms = where.device.attribute("MULTIPROCESSOR_COUNT")
    clock = EventClock(where)
    size = min(COPY_BYTES, where.free_bytes() // 4)
    source, target = DeviceMemory(where, size), DeviceMemory(where, size)
    try:
        for memory in (source, target):
            fill_bytes(where, memory.pointer, 1, size)
        mover = Launch(code.function("move"), "PPq", grid=(sms * BLOCKS_PER_SM,), block=(THREADS,))
        copied = min(
            clock.time(lambda: mover(0, target.pointer, source.pointer, size // 16)) for _ in range(REPEATS)
        )
        worker = Launch(code.function("multiply_add"), "PP", grid=(sms * BLOCKS_PER_SM,), block=(THREADS,))
        added = min(clock.time(lambda: worker(0, target.pointer, source.pointer)) for _ in range(REPEATS))
        rates: dict[str, float] = {}
        for kernel in products:
            unit = Launch(units.function(kernel.name), "PP", grid=(sms * PRODUCT_BLOCKS,), block=(THREADS,))
            took = min(clock.time(partial(unit, 0, target.pointer, source.pointer)) for _ in range(REPEATS))
            rates |= dict.fromkeys(kernel.dtypes, kernel.operations * sms * PRODUCT_BLOCKS / took)
    finally:
        source.free()
        target.free()
    operations = 2.0 * STEPS * CHAINS * THREADS * BLOCKS_PER_SM * sms
    return {
        "bandwidth_bytes_s": 2 * size / copied,
        "read_bytes_s": 2 * size / copied,
        "flops_s": {**rates, "float32": operations / added},
        "threads": sms * BLOCKS_PER_SM * THREADS,
        "method": (
            f"best of {REPEATS}, CUDA events; copy of {size / 2**20:.0f} MiB by 16-byte accesses, bytes read "
            f"and written; arithmetic: {CHAINS} chains of float32 multiply-adds a thread, and of the matrix "
            "units' own instruction for other dtypes"
        ),
        "when": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "device": where.device.name,
        "busy": False,
    }
