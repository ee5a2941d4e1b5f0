"""What each CUDA architecture is: limits, memory levels, features and the instruction table.

Sources: the tables "Technical Specifications per Compute Capability" and "Throughput of Native
Arithmetic Instructions" of the CUDA C++ Programming Guide, and for reserved shared memory and the
limits of 10.x to 12.x the architecture traits that NVIDIA publishes with libcu++.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ...errors import TargetError, nearest
from ...language.gemm import gemm_dtypes
from ...machine import SM, VECTOR_ADDS, WHOLE_BLOCK, Boxes, Instruction, Machine, MemoryLevel, OperandForm
from .tensor_cores import mma_rows
from .warp_groups import wgmma_rows

PREFIX = "cuda:"
# The architecture that `cuda` alone means where no device can be asked: the newest one whose
# instructions (wgmma, TMA) the back end is built for.
DEFAULT_ARCH = "sm_90a"

_KB = 1024
# Dynamic shared memory that a kernel may launch with before the driver was asked to allow it more.
ALLOWED_SHARED = 48 * _KB
_WARP = 32
# A scheduler issues for one of four partitions, so an instruction with `lanes` results a clock and
# multiprocessor takes this many issue cycles a warp.
_PARTITIONS = 4


@dataclass(frozen=True)
class _Chip:
    """What differs between compute capabilities. `shared` is KB a multiprocessor has.

    `fp32`, `fp64` and `imad` are results a clock and multiprocessor of fused multiply-adds. `units` are the
    multiprocessors of a common large part of the kind, for when no device is here to be asked. `tensor` are
    multiply-adds of 16-bit floats that `mma` does there (on 9.0 five eighths of what `wgmma` does).
    """

    threads: int
    blocks: int
    shared: int
    fp32: int
    fp64: int
    imad: int = 64
    units: int = 1
    tensor: int = 512


_CHIPS: dict[tuple[int, int], _Chip] = {
    (7, 5): _Chip(1024, 16, 64, 64, 2, units=72),
    (8, 0): _Chip(2048, 32, 164, 64, 32, units=108, tensor=1024),
    (8, 6): _Chip(1536, 16, 100, 128, 2, units=84),
    (8, 7): _Chip(1536, 16, 164, 128, 2, units=16),
    (8, 9): _Chip(1536, 24, 100, 128, 2, units=128),
    (9, 0): _Chip(2048, 32, 228, 128, 64, units=132, tensor=1280),
    (10, 0): _Chip(2048, 32, 228, 128, 64, units=148, tensor=1024),
    (10, 3): _Chip(2048, 32, 228, 128, 2, units=148),
    (11, 0): _Chip(1536, 24, 228, 128, 2, units=20),
    (12, 0): _Chip(1536, 24, 100, 128, 2, units=170),
    (12, 1): _Chip(1536, 24, 100, 128, 2, units=48),
}

KNOWN_ARCHS: tuple[str, ...] = (
    "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a",
    "sm_110a", "sm_120", "sm_120a", "sm_121a",
)  # fmt: skip

# Which capabilities have a feature; `a` in the last column asks for the architecture-specific form
# of the name (code for sm_90a runs on 9.0 only, code for sm_90 has no wgmma).
_SINCE: tuple[tuple[str, tuple[int, int]], ...] = (
    ("ldmatrix", (7, 5)),
    ("mma", (7, 5)),
    ("votes", (7, 5)),
    ("cp.async", (8, 0)),
    ("bf16-arith", (8, 0)),
    ("redux", (8, 0)),
    ("mbarrier", (8, 0)),
    ("fp8-convert", (8, 9)),
    ("fp8-mma", (8, 9)),
    ("cluster", (9, 0)),
    ("dependent-launch", (9, 0)),
    ("tma", (9, 0)),
    ("stmatrix", (9, 0)),
    (VECTOR_ADDS, (9, 0)),
    ("elect", (9, 0)),
    ("global-256bit", (10, 0)),
)
_SPECIFIC: dict[str, frozenset[tuple[int, int]]] = {
    "wgmma": frozenset({(9, 0)}),
    "setmaxnreg": frozenset({(9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)}),
    "tcgen05": frozenset({(10, 0), (10, 3), (11, 0)}),
}


def capability_of(arch: str) -> tuple[int, int]:
    """`"sm_90a"` to `(9, 0)`: the last digit is the minor version."""
    digits = int(arch.removeprefix("sm_").rstrip("af"))
    return divmod(digits, 10)


def arch_of(machine: Machine) -> str:
    """The compiler's name of a machine: `"sm_90a"` for the machine `cuda:sm_90a`."""
    return machine.name.removeprefix(PREFIX)


def machine_of(name: str) -> Machine:
    """The machine of `"sm_90a"`, `"cuda:sm_90a"` or `"cuda"` (then `DEFAULT_ARCH`).

    Raises `TargetError` that lists the known names, nearest first.
    """
    arch = name.removeprefix(PREFIX)
    if arch == "cuda":
        arch = DEFAULT_ARCH
    if arch not in KNOWN_ARCHS:
        close = nearest(arch, list(KNOWN_ARCHS))
        raise TargetError(
            "there is no CUDA target {name!r}",
            name=name,
            expected="one of {known}",
            known=", ".join(PREFIX + arch for arch in KNOWN_ARCHS),
            hint="did you mean {close}?" if close else "",
            close=" or ".join(PREFIX + arch for arch in close),
        )
    return _build(arch)


def machine_for_capability(major: int, minor: int) -> Machine:
    """The machine to compile for on a device of that compute capability.

    The architecture-specific one where the device is exactly that; else the newest known one of
    the same major version and a smaller minor, whose cubins the device runs. 8.7 is an integrated
    part whose code discrete parts refuse, so it is taken only for itself.
    Raises `TargetError` when there is none.
    """
    exact = [arch for arch in KNOWN_ARCHS if capability_of(arch) == (major, minor)]
    if exact:
        return _build(exact[-1])
    older = [
        arch
        for arch in KNOWN_ARCHS
        if not arch.endswith("a") and capability_of(arch)[0] == major
        and capability_of(arch)[1] < minor and arch != "sm_87"
    ]  # fmt: skip
    if older:
        return _build(older[-1])
    raise TargetError(
        "no code can be made for a device of compute capability {major}.{minor}",
        major=major,
        minor=minor,
        expected="7.5 or a newer capability that is known: {known}",
        known=", ".join(KNOWN_ARCHS),
    )


def _features(arch: str) -> frozenset[str]:
    capability = capability_of(arch)
    names = {name for name, since in _SINCE if capability >= since}
    if arch.endswith("a"):
        names |= {name for name, chips in _SPECIFIC.items() if capability in chips}
    return frozenset(names)


def _issue(lanes: float) -> float:
    """Issue cycles a warp of an instruction with `lanes` results a clock and multiprocessor."""
    return _WARP * _PARTITIONS / lanes


def _gemm_rows(chip: _Chip, capability: tuple[int, int]) -> list[Instruction]:
    """Multiply-add on the ordinary lanes, narrow operands widened when they are loaded; tensor cores."""
    tiles = (
        OperandForm("a", ("shared",)),
        OperandForm("b", ("shared",)),
        OperandForm("c", ("fragment",)),
    )
    fma = [
        Instruction("gemm", "fma", dtypes, (1, 1, 1), tiles, cost=_issue(_results(chip, dtypes[2])))
        for dtypes in gemm_dtypes()
    ]
    return [*fma, *mma_rows(capability, chip.tensor, chip.fp64), *wgmma_rows()]


def _results(chip: _Chip, accumulator: str) -> float:
    """Multiply-adds a clock and multiprocessor, by what they are summed in."""
    if accumulator == "float64":
        return chip.fp64
    if accumulator.endswith("int64"):
        return chip.imad / 4  # the product of two halves each
    return chip.imad if "int" in accumulator else chip.fp32


def _copy_rows() -> list[Instruction]:
    """Copies to shared memory that go on by themselves, and ordinary loads and stores through registers.

    A warp moves at most 128 bytes a cycle. One access of the first kind is a load and a store of the second.
    """
    to_shared = (OperandForm("src", ("global",)), OperandForm("dst", ("shared",)))
    ahead = [
        Instruction(
            "copy", "cp.async", shape=(width,), operands=to_shared, asynchronous=True, completes="group",
            cost=max(1.0, _WARP * width / 128), needs=("cp.async",),
        )
        for width in (16, 8, 4)
    ]  # fmt: skip
    # Boxes of arrays, by one thread for all.
    boxes = Instruction(
        "copy", "tma", asynchronous=True, completes="mbarrier", needs=("tma",),
        optional=True, by_proxy=True, boxes=Boxes(),
    )  # fmt: skip
    return [*ahead, boxes] + [
        Instruction("copy", "ld.st", shape=(width,), cost=max(1.0, _WARP * width / 128))
        for width in (16, 8, 4, 2, 1)
    ]


def _reduce_rows() -> list[Instruction]:
    """One step of a tree: in a thread, within a warp by shuffles (32 lanes a clock), between warps.

    The step through shared memory is a store, a load and two barriers, the second before its memory is
    used again; its cost is that of the barriers.
    """
    tiles = (OperandForm("src", ("fragment",)), OperandForm("dst", ("fragment",)))
    return [
        Instruction("reduce", "thread", operands=tiles),
        Instruction("reduce", "shfl", operands=tiles, group=_WARP, cost=_issue(32)),
        Instruction("reduce", "shared", operands=tiles, group=WHOLE_BLOCK, cost=16 * _issue(32)),
    ]


def _convert_rows() -> list[Instruction]:
    """A fragment in another layout: other registers of a thread, shuffles in a warp, or shared memory.

    The cost of the last is that of its barrier.
    """
    tiles = (OperandForm("src", ("fragment",)), OperandForm("dst", ("fragment",)))
    return [
        Instruction("convert_layout", "rename", operands=tiles),
        Instruction("convert_layout", "shfl", operands=tiles, group=_WARP, cost=_issue(32)),
        Instruction("convert_layout", "shared", operands=tiles, group=WHOLE_BLOCK, cost=16 * _issue(32)),
    ]


@cache
def _build(arch: str) -> Machine:
    major, minor = capability_of(arch)
    chip = _CHIPS[major, minor]
    reserved = _KB if (major, minor) >= (8, 0) else 0
    registers = 64 * _KB
    features = _features(arch)
    rows = [*_gemm_rows(chip, (major, minor)), *_copy_rows(), *_reduce_rows(), *_convert_rows()]
    shared = MemoryLevel(
        "shared",
        per_block=chip.shared * _KB - reserved,
        per_unit=chip.shared * _KB,
        reserved=reserved,
        granule=128 if major >= 8 else 256,
        banks=32,
        bank_bytes=4,
    )
    return Machine(
        name=PREFIX + arch,
        warp=_WARP,
        max_threads=1024,
        alignment=16,
        index_bits=32,
        units=chip.units,
        max_grid=(2**31 - 1, 65535, 65535),  # CUDA C++ programming guide, technical specifications
        # 32-byte global accesses exist from sm_100 on (feature "global-256bit"), but no shared
        # ones, and passes use one list for both, so the list stops at 16.
        vector_bytes=(16, 8, 4, 2, 1),
        unaligned_bytes=(16, 8, 4),
        transaction_bytes=32,
        sm=SM(chip.threads, chip.blocks, registers, 256, 255, local_bytes=512 << 10),
        memory={
            "global": MemoryLevel("global", per_block=0),
            "shared": shared,
            "registers": MemoryLevel("registers", per_block=4 * registers, per_unit=4 * registers, granule=4),
        },
        instructions=tuple(row for row in rows if features.issuperset(row.needs)),
        features=features,
    )
