"""A kernel as a CUDA file that stands alone: its text, and a `main` that allocates, launches, times and
writes.

Random inputs are drawn from few values that every dtype holds exactly, by a counter and a seed, so that
NumPy draws the same ones (`drawn`) and nothing has to be converted on the host.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import TargetError
from ....ir import Buffer, DType, Function
from ....ir.sizes import Number, for_sizes
from ....passes.analysis.launches import launches_of, parts_of
from ....passes.analysis.reads_writes import reads_and_writes
from ...build import Build
from ...scalars import LETTERS, bits_of
from ..machines import ALLOWED_SHARED
from ..tensor_maps import tensor_maps
from .standalone_maps import ENCODE, maps_of_file

_ROUNDS = 30
_C_TYPES = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short", "i": "int",
    "I": "unsigned", "q": "long long", "Q": "unsigned long long", "f": "float", "d": "double",
}  # fmt: skip


def values_of(dtype: DType) -> np.ndarray[Any, Any]:
    """What inputs of a dtype are drawn from: eighths in [-1, 1], whole numbers in [-8, 8], or both truths."""
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.is_float:
        return (np.arange(-8, 9) / 8).astype(dtype.numpy)
    low = 0 if dtype.kind == "uint" else -8
    return np.arange(low, min(8, int(dtype.most)) + 1).astype(dtype.numpy)


def drawn(buffer: Buffer, number: int, seed: int) -> np.ndarray[Any, Any]:
    """What the file's `main` puts into array `number` of the parameters: every element of its memory, in
    order.
    """
    with np.errstate(over="ignore"):
        place = np.arange(_span(buffer), dtype=np.uint64) + np.uint64(number << 40)
        z = place * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    choices = values_of(buffer.dtype)
    return choices[z % np.uint64(len(choices))]


def _span(buffer: Buffer) -> int:
    """Elements of an array's memory, of which the sizes are numbers here."""
    assert isinstance(buffer.span, int)
    return buffer.span


@dataclass(frozen=True)
class _Array:
    """An array of the launches: its place among all, how it begins, and its bytes."""

    buffer: Buffer
    number: int
    read: bool
    written: bool

    @property
    def bytes(self) -> int:
        return -(-_span(self.buffer) * self.buffer.dtype.bits // 8)


def standalone(build: Build, values: Mapping[str, Number], seed: int, title: Sequence[str]) -> str:
    """The text of a `.cu` file for one call's sizes and scalars. `title` are lines of its first comment.

    Raises `TargetError` for a kernel that takes addresses, which a file cannot have.
    """
    function = for_sizes(build.function, values)
    reads, writes = reads_and_writes(function)
    buffers = [*build.function.arrays, *build.function.workspaces]
    sized = {each.name: each for each in (*function.arrays, *function.workspaces)}
    arrays = {
        each.name: _Array(sized[each.name], k, each.name in reads, each.name in writes)
        for k, each in enumerate(buffers)
    }
    parts = [
        _HEAD.format(title="\n".join(f"// {line}" for line in title)),
        build.texts["cuda"].rstrip(),
        _HELPERS,
        *([ENCODE] if any(tensor_maps(part) for part in parts_of(build.function)) else []),
    ]
    parts.append(_main(build, function, list(arrays.values()), values, seed))
    return "\n".join(parts)


def _main(
    build: Build, function: Function, arrays: list[_Array], values: Mapping[str, Number], seed: int
) -> str:
    lines = ["int main(int count, char** words) {", f"  unsigned long long seed = {seed};"]
    lines += ["  const char* folder = nullptr;", "  read_words(count, words, &seed, &folder);"]
    for array in arrays:
        lines += _allocated(array)
    launches = list(zip(parts_of(build.function), launches_of(function), build.data["launches"], strict=True))
    launched: list[str] = []
    for number, (part, launch, (entry, threads, shared)) in enumerate(launches):
        made, call = _launch(number, part, launch.grid, entry, threads, shared, values)
        lines += made
        launched.append(call)
    lines += ["  const auto launch = [&] {", *launched, "  };"]
    lines += ["  launch();", "  CHECK(cudaDeviceSynchronize());"]
    for array in arrays:
        if array.buffer in function.arrays:
            name = array.buffer.name
            lines.append(f'  write_array(folder, "{name}", {name}_device, {array.bytes}ull);')
    lines += [f'  report("{function.name}", launch, {_ROUNDS});']
    lines += [f"  CHECK(cudaFree({array.buffer.name}_device));" for array in arrays]
    return "\n".join([*lines, "  return 0;", "}", ""])


def _allocated(array: _Array) -> list[str]:
    """Host values and device memory of an array."""
    name, dtype = array.buffer.name, array.buffer.dtype
    shape = " x ".join(str(n) for n in array.buffer.extents)
    used = "in and out" if array.read and array.written else "in" if array.read else "out"
    lines = [f"  // {name}: {shape or 1} {dtype.name}, {used}"]
    if array.read:
        choices = values_of(dtype)
        width = max(1, dtype.bits // 8)
        bits = ", ".join(f"{_raw(choice, dtype)}ull" for choice in choices)
        passed = f"{_span(array.buffer)}ull, {array.number}, seed, {name}_values"
        passed += f", {len(choices)}, {width}, {dtype.per_byte}"
        lines.append(f"  static const unsigned long long {name}_values[] = {{{bits}}};")
        lines.append(f"  void* {name}_device = drawn({passed});")
    else:
        # What no kernel wrote shows: NaN in floats.
        lines.append(f"  void* {name}_device = poisoned({array.bytes}ull);")
    return lines


def _raw(choice: Any, dtype: DType) -> int:
    if dtype.per_byte > 1:
        return int(choice) & 0xF
    return int.from_bytes(np.asarray(choice).tobytes(), "little")


def _launch(
    number: int, part: Function, grid: Sequence[Any], entry: str, threads: int, shared: int,
    values: Mapping[str, Number],
) -> tuple[list[str], str]:  # fmt: skip
    """The lines that prepare a launch, and the one that does it."""
    made: list[str] = []
    passed: list[str] = []
    for param in part.params:
        if isinstance(param, Buffer):
            passed.append(f"&{param.name}_device")
            continue
        letter = LETTERS.get(param.type.name)
        if letter is None or param.name not in values:
            raise TargetError(
                "{name} of {entry} is {dtype}, which a file cannot pass", name=param.name, entry=entry,
                dtype=param.type.name,
            )  # fmt: skip
        made.append(
            f"  {_C_TYPES[letter]} {param.name}_{number} = {_scalar(values[param.name], param.type, letter)};"
        )
        passed.append(f"&{param.name}_{number}")
    maps, names = maps_of_file(part, number, values)
    made += maps
    passed += names
    extents = ", ".join(str(int(extent)) for extent in grid)
    made.append(f"  void* arguments_{number}[] = {{{', '.join(passed)}}};")
    made.append(f"  const void* code_{number} = (const void*){entry};")
    if shared > ALLOWED_SHARED:
        most = "cudaFuncAttributeMaxDynamicSharedMemorySize"
        made.append(f"  CHECK(cudaFuncSetAttribute(code_{number}, {most}, {shared}));")
    call = (
        f"    CHECK(cudaLaunchKernel(code_{number}, dim3({extents}), dim3({threads}), arguments_{number}, "
        f"{shared}, 0));"
    )
    return made, call


def _scalar(value: Number, dtype: DType, letter: str) -> str:
    """A C++ literal of exactly the value that a launch would pass."""
    if dtype.is_float and letter == "H":
        return str(bits_of(value, dtype))
    if dtype.kind == "bool":
        return "true" if value else "false"
    return _floating(float(value), letter) if dtype.is_float else _whole(int(value), dtype, letter)


def _floating(value: float, letter: str) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(value) + ("f" if letter == "f" else "")


def _whole(value: int, dtype: DType, letter: str) -> str:
    suffix = {"q": "ll", "Q": "ull"}.get(letter, "")
    # The minus stands in front of a number, and that of the least one does not fit.
    return f"({value + 1}{suffix} - 1)" if value == dtype.least < 0 else f"{value}{suffix}"


_HEAD = """{title}
#pragma nv_diag_suppress 177  // the kernel calls a part of the functions in front of it
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
"""

_HELPERS = """
// -- what stands below runs on the host

#define CHECK(call)                                                                        \\
  do {                                                                                     \\
    const cudaError_t failed = (call);                                                     \\
    if (failed != cudaSuccess) {                                                           \\
      std::fprintf(stderr, "%s:%d: %s\\n", __FILE__, __LINE__, cudaGetErrorString(failed)); \\
      std::exit(1);                                                                        \\
    }                                                                                      \\
  } while (0)

// The element at `place` of array `number`: which of its values. The same in every process.
static unsigned long long choice(unsigned long long place, int number, unsigned long long seed) {
  unsigned long long z = place + ((unsigned long long)number << 40);
  z = z * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Device memory with random elements of `width` bytes, little end first, or `packed` of them a byte.
static void* drawn(unsigned long long elements, int number, unsigned long long seed,
                   const unsigned long long* values, int count, int width, int packed) {
  std::vector<unsigned char> bytes((elements + packed - 1) / packed * width, 0);
  for (unsigned long long at = 0; at < elements; ++at) {
    const unsigned long long value = values[choice(at, number, seed) % count];
    if (packed > 1) {
      bytes[at / packed] |= (unsigned char)(value << (8 / packed * (at % packed)));
    } else {
      std::memcpy(&bytes[at * width], &value, width);
    }
  }
  void* out = nullptr;
  CHECK(cudaMalloc(&out, std::max<size_t>(bytes.size(), 1)));
  CHECK(cudaMemcpy(out, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  return out;
}

// Device memory that nobody has written.
static void* poisoned(unsigned long long bytes) {
  void* out = nullptr;
  CHECK(cudaMalloc(&out, std::max<size_t>(bytes, 1)));
  CHECK(cudaMemset(out, 0xff, bytes));
  return out;
}

// An array's bytes as FOLDER/NAME.bin, where a folder was given.
static void write_array(const char* folder, const char* name, const void* device, unsigned long long bytes) {
  if (folder == nullptr) {
    return;
  }
  std::vector<unsigned char> held(bytes);
  CHECK(cudaMemcpy(held.data(), device, bytes, cudaMemcpyDeviceToHost));
  const std::string path = std::string(folder) + "/" + name + ".bin";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(held.data(), 1, bytes, file) != bytes) {
    std::fprintf(stderr, "%s cannot be written\\n", path.c_str());
    std::exit(1);
  }
  std::fclose(file);
}

static void read_words(int count, char** words, unsigned long long* seed, const char** folder) {
  for (int at = 1; at < count; ++at) {
    if (at + 1 < count && std::strcmp(words[at], "--seed") == 0) {
      *seed = std::strtoull(words[++at], nullptr, 10);
    } else if (at + 1 < count && std::strcmp(words[at], "--out") == 0) {
      *folder = words[++at];
    } else {
      std::fprintf(stderr, "%s [--seed NUMBER] [--out FOLDER]\\n", words[0]);
      std::exit(2);
    }
  }
}

// Times of `rounds` launches by events, each with a cold L2 cache.
template <class Launch> static void report(const char* name, const Launch& launch, int rounds) {
  int device = 0, cache = 0;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
  cudaDeviceProp card;
  CHECK(cudaGetDeviceProperties(&card, device));
  void* other = nullptr;
  const size_t bytes = 2 * (size_t)cache + 1;
  CHECK(cudaMalloc(&other, bytes));
  cudaEvent_t start, end;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int round = -3; round < rounds; ++round) {
    CHECK(cudaMemset(other, round & 1, bytes));
    CHECK(cudaEventRecord(start));
    launch();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, end));
    if (round >= 0) {
      times.push_back(ms * 1000);
    }
  }
  std::sort(times.begin(), times.end());
  std::printf("%s on %s: median %.2f us, least %.2f, of %d launches with a cold L2 cache\\n", name, card.name,
              times[times.size() / 2], times[0], rounds);
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaFree(other));
}
"""
