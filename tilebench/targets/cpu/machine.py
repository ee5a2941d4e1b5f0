"""The processor as the compiler sees it: an instruction set for LLVM, and a `Machine` value.

Sources: LLVM's own list of host features, `os.sched_getaffinity` for the cores allowed, the
kernel's cache description under /sys (with sizes of a common server core where there is none).
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import OptionError
from ...language.gemm import gemm_dtypes
from ...machine import SM, Instruction, Machine, MemoryLevel

_TRACKED = (
    "fma",
    "f16c",
    "sse4.1",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512dq",
    "avx512bf16",
    "avx512fp16",
)  # spelled as LLVM does
_LEVELS = {
    "x86-64": (),
    "x86-64-v2": ("sse4.1",),
    "x86-64-v3": ("sse4.1", "avx2", "fma", "f16c"),
    "x86-64-v4": ("sse4.1", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq"),
    "aarch64": ("fma", "f16c"),
}


@dataclass(frozen=True)
class Isa:
    """What LLVM generates code for. `has` holds the features that emitters ask about.

    `f16c` stands for any hardware conversion between float16 and float32. `vector_bytes` is the
    widest register, `registers` how many of them there are.
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    has: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def masked(self) -> bool:
        """Whether masked loads and stores are single instructions for every element width."""
        return "avx512bw" in self.has and "avx512vl" in self.has

    def lanes(self, element_bytes: int) -> int:
        """Elements of that size in the widest register."""
        return self.vector_bytes // element_bytes


def _binding() -> Any:
    return importlib.import_module("llvmlite.binding")


def _from_features(name: str, triple: str, cpu: str, features: str, has: frozenset[str]) -> Isa:
    wide = 64 if "avx512f" in has else 32 if "avx2" in has else 16
    arm = triple.startswith(("aarch64", "arm64"))
    return Isa(name, triple, cpu, features, wide, 32 if wide == 64 or arm else 16, has)


@lru_cache(maxsize=1)
def host_isa() -> Isa:
    """The instruction set of this processor."""
    binding = _binding()
    found = binding.get_host_cpu_features()
    triple: str = binding.get_process_triple()
    if triple.startswith(("aarch64", "arm64")):
        has = frozenset(_LEVELS["aarch64"])
    else:
        has = frozenset(each for each in _TRACKED if found.get(each))
    return _from_features("host", triple, binding.get_host_cpu_name(), found.flatten(), has)


def named_isa(name: str) -> Isa:
    """An instruction set by name: `host` (or its own name), `x86-64`, `-v2`, `-v3`, `-v4`, `aarch64`.

    Raises `OptionError` for another name.
    """
    if name == "host" or (name not in _LEVELS and name == host_isa().cpu):
        return host_isa()
    if name not in _LEVELS:
        raise OptionError(
            "there is no CPU instruction set {name!r}", name=name, hint="known: host, " + ", ".join(_LEVELS)
        )
    if name == "aarch64":
        return _from_features(name, "aarch64-unknown-linux-gnu", "generic", "", frozenset(_LEVELS[name]))
    return _from_features(name, "x86_64-unknown-linux-gnu", name, "", frozenset(_LEVELS[name]))


def isa_of(machine: Machine) -> Isa:
    """The instruction set that a `Machine` of `cpu_machine` was made from."""
    name = machine.name.partition(":")[2]
    if name == "generic":
        return named_isa("aarch64") if not host_isa().triple.startswith(("aarch64", "arm64")) else host_isa()
    return named_isa(name) if name in _LEVELS and name != host_isa().cpu else host_isa()


def cores() -> int:
    """Processor cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity call
        return os.cpu_count() or 1


@dataclass(frozen=True)
class Caches:
    """Data cache sizes in bytes, for one core (`l3`: the whole, shared)."""

    l1: int = 32 * 1024
    l2: int = 1024 * 1024
    l3: int = 32 * 1024 * 1024


@lru_cache(maxsize=1)
def caches() -> Caches:
    """The cache sizes of core 0, or the defaults of `Caches` where the system does not say."""
    found: dict[str, int] = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, kind, size = ((index / each).read_text().strip() for each in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            unit = {"K": 1024, "M": 1024 * 1024}.get(size[-1], 1)
            found[f"l{level}"] = int(size.rstrip("KM")) * unit
    return Caches(**{key: each for key, each in found.items() if key in ("l1", "l2", "l3")})


@lru_cache(maxsize=16)
def cpu_machine(isa: Isa | None = None) -> Machine:
    """The CPU as a `Machine`: one thread a block, scratch memory for shared and fragment buffers.

    `shared.per_block` is 0: scratch is ordinary memory, so nothing has to fit; the sizes of the
    caches, which decide speed, stand as levels of their own.
    """
    isa = isa or host_isa()
    sizes = caches()
    memory = {
        "global": MemoryLevel("global", 0),
        "shared": MemoryLevel("shared", 0, granule=64),
        "fragment": MemoryLevel("fragment", 0, granule=64),
        "l1": MemoryLevel("l1", sizes.l1, sizes.l1),
        "l2": MemoryLevel("l2", sizes.l2, sizes.l2),
        "l3": MemoryLevel("l3", sizes.l3, sizes.l3),
    }
    widths = tuple(each for each in (64, 32, 16) if each <= isa.vector_bytes)
    return Machine(
        name=f"cpu:{isa.cpu}",
        warp=1,
        # A block runs on one core; thread-level code becomes loops, so this bounds only the declaration.
        max_threads=1024,
        units=cores(),
        vector_bytes=widths,
        transaction_bytes=64,
        sm=SM(
            max_threads=1024,
            max_blocks=1,
            registers=isa.registers,
            register_granule=1,
            max_registers_per_thread=isa.registers,
        ),
        memory=memory,
        instructions=_instructions(),
        features=isa.has,
        unused=_UNUSED,
    )


# Options of a schedule that change nothing here. A user who moves one must be told, not left to wonder.
_UNUSED = {
    "threads": "a block runs on one core",
    "order": "blocks run in the order of their numbers",
    "warp_specialize": "a block runs on one core",
    "cluster": "a block runs on one core",
    "eviction": "its caches are told nothing",
    "dependent_launch": "a call returns when it is done",
    "overlap": "a block runs on one core, and products are done where they stand",
    "instruction": "each operation is done in one way",
    "persistent": "threads take one block after another as it is",
    "assume": "a broken promise would take the process along",
    "min_blocks": "blocks of a processor share no registers",
    "num_stages": "a block runs on one core, so copies do not run ahead",
    "swizzle": "scratch memory has no banks",
    "policy": "a block has no warps to split a tile over",
    "vector": "copies use the widest vectors of the processor",
}


def _instructions() -> tuple[Instruction, ...]:
    """What the emitters of this room can carry out; accumulator dtype last."""
    return tuple(Instruction("gemm", "microkernel", dtypes, (1, 1, 1)) for dtypes in gemm_dtypes())
