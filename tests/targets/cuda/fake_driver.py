"""A libcuda made of Python functions: records calls, and reads what a launch was given."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

ATTRIBUTES = {16: 132, 75: 9, 76: 0, 97: 232448}
NAMES = {
    1: (b"CUDA_ERROR_INVALID_VALUE", b"invalid argument"),
    100: (b"CUDA_ERROR_NO_DEVICE", b"no CUDA-capable device is detected"),
    222: (
        b"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        b"the provided PTX was compiled with an unsupported toolchain.",
    ),
    700: (b"CUDA_ERROR_ILLEGAL_ADDRESS", b"an illegal memory access was encountered"),
}


@dataclass
class Launched:
    """What the driver would have read."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    stream: int
    attributes: list[tuple[int, tuple[int, ...]]]
    addresses: list[int]
    function: int


@dataclass
class FakeDriver:
    """Functions return CUresult codes; `codes` sets one by function name."""

    version: int = 13000
    devices: int = 1
    parameters: int = 0
    codes: dict[str, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    launched: list[Launched] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    sizes: tuple[int, ...] = ()
    current: int | None = None
    allowed: dict[int, int] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        body = getattr(self, "_" + name, lambda *given: 0)

        def call(*given: Any) -> int:
            self.calls.append(name)
            code = self.codes.get(name, 0)
            return code if code else body(*given)

        return call

    def _cuDriverGetVersion(self, out: Any) -> int:
        out._obj.value = self.version
        return 0

    def _cuDeviceGetCount(self, out: Any) -> int:
        out._obj.value = self.devices
        return 0

    def _cuDeviceGet(self, out: Any, ordinal: int) -> int:
        out._obj.value = ordinal
        return 0 if ordinal < self.devices else 101

    def _cuDeviceGetName(self, text: Any, size: int, device: int) -> int:
        text.value = b"NVIDIA Test"
        return 0

    def _cuDeviceGetAttribute(self, out: Any, attribute: int, device: int) -> int:
        out._obj.value = ATTRIBUTES.get(attribute, 0)
        return 0

    def _cuGetErrorName(self, code: int, out: Any) -> int:
        out._obj.value = NAMES.get(code, (None, None))[0]
        return 0

    def _cuGetErrorString(self, code: int, out: Any) -> int:
        out._obj.value = NAMES.get(code, (None, None))[1]
        return 0

    def _cuDevicePrimaryCtxRetain(self, out: Any, device: int) -> int:
        out._obj.value = 0xC0
        return 0

    def _cuCtxGetCurrent(self, out: Any) -> int:
        out._obj.value = self.current
        return 0

    def _cuCtxPushCurrent_v2(self, handle: Any) -> int:
        self.current = handle.value
        return 0

    def _cuCtxPopCurrent_v2(self, out: Any) -> int:
        self.current = None
        return 0

    def _cuModuleLoadData(self, out: Any, image: bytes) -> int:
        out._obj.value = 0x40
        return 0

    def _cuModuleGetFunction(self, out: Any, module: Any, name: bytes) -> int:
        out._obj.value = 0xF0
        return 0

    def _cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:
        self.allowed[attribute] = value
        return 0

    def _cuTensorMapEncodeTiled(self, out: Any, *given: Any) -> int:
        """Writes down what it was told: element, rank, address, extents, strides, box, and the choices."""
        element, rank, address, extents, strides, box, _, *choices = given
        count = rank.value
        words = [element.value, count, address.value, *extents, *list(strides)[: count - 1], *box]
        words += [each.value for each in choices]
        ctypes.memmove(out, (ctypes.c_uint64 * 16)(*words), 128)
        return 0

    def _cuMemAlloc_v2(self, out: Any, size: Any) -> int:
        out._obj.value = 0x7F0000000000
        return 0

    def _read(self, addresses: Any) -> list[int]:
        held = [addresses[k] for k in range(len(self.sizes))]
        self.values = [ctypes.string_at(at, size) for at, size in zip(held, self.sizes, strict=True)]
        return held

    def _cuLaunchKernelEx(self, config: Any, function: Any, addresses: Any, extra: Any) -> int:
        c = config._obj
        attributes = [(c.attributes[k].id, tuple(c.attributes[k].value[:3])) for k in range(c.count)]
        self.launched.append(
            Launched(
                tuple(c.grid), tuple(c.block), c.shared, c.stream or 0, attributes, self._read(addresses),
                function.value,
            )
        )  # fmt: skip
        return 0

    def _cuLaunchKernel(self, function: Any, *given: Any) -> int:
        *shape, shared, stream, addresses, _ = given
        self.launched.append(
            Launched(
                tuple(shape[:3]),
                tuple(shape[3:]),
                shared,
                stream.value or 0,
                [],
                self._read(addresses),
                function.value,
            )
        )
        return 0
