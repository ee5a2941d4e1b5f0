"""How CUDA is told to people: the architectures, how PTX and SASS are shown, what `doctor` looks at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...errors import TileError
from ..presentation import Beside, Finding, Language, Presentation
from .compiler.control import show_control
from .machines import DEFAULT_ARCH, KNOWN_ARCHS, PREFIX

# Half of a listing of `nvdisasm -gi` says where the next lines came from.
_SASS_ORIGIN = re.compile(r"\s*//## File ")
_PTX_ORIGIN = re.compile(r"\s*\.loc\b")
_SASS_ADDRESS = re.compile(r"^\s*(/\*[0-9a-fA-F]{4,}\*/)\s+")

_LABEL = re.compile(r"\s*([.$\w]+):(?!:)")
_JUMP = re.compile(r"\b(?:BRA|bra)\S*\s[^;]*?(\.L_\w+|\$L\w+)")
_WORK = re.compile(
    r"MMA\b|\b(?:LDG|STG|LDS|STS|LDSM|LDGSTS|UTMA\w+)\b|\b(?:wg)?mma\.|\bld\.|\bst\.|cp\.async|ldmatrix|\bFFMA|\bfma\."
)


def hot_loop(lines: Sequence[str]) -> int:
    """Where the loop starts that holds the most matrix, memory and fma instructions for its length.

    A loop is a label with a later jump back to it; of nested ones the innermost is densest. 0
    without a loop. This only chooses which lines of a long listing are shown.
    """
    labels: dict[str, int] = {}
    best, found = 0.0, 0
    for number, line in enumerate(lines):
        label = _LABEL.match(line)
        if label:
            labels[label[1]] = number
        jump = _JUMP.search(line)
        if jump and jump[1] in labels and labels[jump[1]] < number:
            start = labels[jump[1]]
            work = sum(bool(_WORK.search(inner)) for inner in lines[start:number])
            score = work * work / (number - start)
            if score > best:
                best, found = score, start
    return found


def _around_hot_loop(lines: Sequence[str], limit: int) -> int:
    """The hot loop, or as much before it as the limit has room for."""
    return min(hot_loop(lines), len(lines) - limit)


def _kernel_start(lines: Sequence[str], limit: int) -> int:
    """Where the kernel begins below the prelude."""
    return next((number for number, line in enumerate(lines) if "__global__" in line), 0)


def _narrow_address(line: str) -> str:
    return _SASS_ADDRESS.sub(r"\1  ", line)


LANGUAGES = (
    Language("cuda", "CUDA C++", start=_kernel_start),
    Language(
        "ptx", "PTX", lambda line: _PTX_ORIGIN.match(line) is not None, _around_hot_loop, quiet_registers=True
    ),
    Language(
        "nvsass", "SASS", lambda line: _SASS_ORIGIN.match(line) is not None, _around_hot_loop,
        _narrow_address, quiet_registers=True,
        beside=Beside("control", "stall, yield, barriers set and waited for, reuse", show_control, narrow=3),
    ),
)  # fmt: skip


def check_compiler() -> Iterator[Finding]:
    """NVRTC and the disassembler, neither of which needs a GPU."""
    from .compiler.library import nvrtc_version, supported_archs
    from .compiler.sass import find_nvdisasm

    try:
        major, minor = nvrtc_version()
        yield Finding("good", "NVRTC", f"{major}.{minor}, {', '.join(supported_archs())}")
    except TileError as error:
        yield Finding("missing", "NVRTC", f"{error.message}; PTX and registers", "cuda")
    found = find_nvdisasm()
    if found:
        yield Finding("good", "nvdisasm", found)
    else:
        yield Finding("missing", "nvdisasm", "not found; SASS", "cuda")


def check_cards() -> Iterator[Finding]:
    """The driver and the cards that it finds."""
    from .run.device import Device, available, device_count
    from .run.driver import compiler_major, driver, too_old

    try:
        version = driver().version
    except TileError as error:
        yield Finding("missing", "driver", f"{error.message}; kernels run on the processor")
        return
    old = too_old(version, compiler_major())
    if old:
        yield Finding("broken", "driver", f"{old}; or take an older compiler", "gpu12")
    else:
        yield Finding("good", "driver", f"good for CUDA {version[0]}.{version[1]}")
    for ordinal in range(device_count()):
        device = Device(ordinal)
        memory = device.total_bytes / 2**30
        architecture = f"sm_{device.capability[0]}{device.capability[1]}"
        yield Finding("good", f"GPU {ordinal}", f"{device.name}, {architecture}, {memory:.0f} GiB")
    can, why = available()
    if not can and not old:
        yield Finding("missing", "running on a GPU", why)


def presentation() -> Presentation:
    """What people are told of CUDA."""
    return Presentation(
        machines=tuple(PREFIX + architecture for architecture in KNOWN_ARCHS),
        told=f"cuda (this machine's GPU, else {DEFAULT_ARCH}), {PREFIX}{KNOWN_ARCHS[0]} to "
        f"{PREFIX}{KNOWN_ARCHS[-1]} (no GPU needed)",
        shown=("laid_out", "threaded", "cuda"),
        languages=LANGUAGES,
        checks=(("CUDA compiler", check_compiler), ("GPU", check_cards)),
        extras={"cuda": "PTX, SASS and registers, without a GPU", "gpu": "running on a card"},
    )
