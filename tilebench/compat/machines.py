"""`tilelang.carver.arch`: what the machine is that kernels are compiled for, in TileLang's words.

With a card these are the card's figures. Without one they are those of the target that would be taken, of
this host's cores where that is the host: `get_num_sms()` then counts the cores, as many as run blocks.
"""

from __future__ import annotations

from typing import Any

from ..errors import OptionError, TargetError
from ..machine import Machine
from ..targets import resolve
from ..targets.devices import CARD, HOST
from .compiling import target_of

_SCALES = {"bytes": 1, "kb": 1024, "mb": 1024**2}


def _machine(target: object = None) -> Machine:
    return resolve(target_of(target))[1]


def _scaled(count: int, form: str) -> int:
    if form not in _SCALES:
        raise OptionError("there is no format {form!r}", form=form, expected=", ".join(_SCALES))
    return count // _SCALES[form]


def get_num_sms(device_id: int = 0) -> int:
    """How many multiprocessors, or cores of the host, run blocks at the same time."""
    return _machine().units


def get_device_name(device_id: int = 0) -> str:
    """What the machine is called: the target that kernels are compiled for."""
    return _machine().name


def get_shared_memory_per_block(device_id: int = 0, format: str = "bytes") -> int:
    """The most shared memory of a block, in `bytes`, `kb` or `mb`."""
    return _scaled(_machine().shared.per_block, format)


def get_max_dynamic_shared_size_bytes(device_id: int = 0, format: str = "bytes") -> int:
    """The shared memory of a multiprocessor, in `bytes`, `kb` or `mb`."""
    shared = _machine().shared
    return _scaled(shared.per_unit or shared.per_block, format)


def get_registers_per_block(device_id: int = 0) -> int:
    """The registers of a multiprocessor, all of which a block may have."""
    return _machine().sm.registers


class TileDevice:
    """A machine by TileLang's names of its figures. `target` is as `jit` takes it."""

    platform = "unknown"

    def __init__(self, target: object = "auto") -> None:
        self.target = target
        self.machine = machine = _machine(target)
        shared = machine.shared
        self.name = machine.name
        self.smem_cap = shared.per_block
        self.max_smem_usage = shared.per_unit or shared.per_block
        self.reg_cap = machine.sm.registers
        self.compute_max_core = machine.units
        self.warp_size = machine.warp
        self.sm_partition = 4
        self.transaction_size = [machine.transaction_bytes, 4 * machine.transaction_bytes]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class CUDA(TileDevice):
    """A card; where `tilebench.compat.install(device="cpu")` is, the host in its place."""

    platform = "CUDA"

    def __init__(self, target: object = CARD) -> None:
        super().__init__(target)


class CPU(TileDevice):
    """This host."""

    platform = "CPU"

    def __init__(self, target: object = HOST) -> None:
        super().__init__(target)


class _Elsewhere:
    """A family of machines that no target here compiles for."""

    def __init__(self, target: object = None) -> None:
        raise TargetError("{name} machines are none of tilebench's targets", name=type(self).__name__)


class CDNA(_Elsewhere):
    pass


class RDNA(_Elsewhere):
    pass


class METAL(_Elsewhere):
    pass


def get_arch(target: object = CARD) -> TileDevice:
    """The machine of a target."""
    return CPU(target) if target_of(target) == HOST else CUDA(target)


def auto_infer_current_arch() -> TileDevice:
    """The machine that kernels are compiled for without a target."""
    return get_arch("auto")


def is_cuda_arch(arch: Any) -> bool:
    """Whether a machine is a card."""
    return isinstance(arch, CUDA)


def is_cpu_arch(arch: Any) -> bool:
    """Whether a machine is a host."""
    return isinstance(arch, CPU)


def _never(arch: Any) -> bool:
    """Of a family that is none of ours."""
    return False


is_cdna_arch = is_rdna_arch = is_metal_arch = _never
