"""Launches by the driver API.

A `Launch` is made once for a kernel and called many times: it packs the values into a buffer with
one `struct` call and hands the driver a configuration that stands ready. It never waits and
allocates nothing on the device, so it can be captured in a CUDA graph.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ....errors import ArgumentError, LaunchError
from ..machines import ALLOWED_SHARED
from .driver import Driver
from .modules import Function

# Sizes of the parameter kinds: `P` is a pointer, `T` a tensor map passed by value (128 bytes,
# aligned to 64), the others are `struct`'s letters.
_SIZES = {
    "P": 8,
    "b": 1,
    "B": 1,
    "?": 1,
    "h": 2,
    "H": 2,
    "e": 2,
    "i": 4,
    "I": 4,
    "f": 4,
    "q": 8,
    "Q": 8,
    "d": 8,
}
_TENSOR_MAP = 128
_COOPERATIVE, _CLUSTER, _DEPENDENT = 2, 4, 6
_MOST_GRIDS = 64
# Launches on a stream with the values of the parameters.
Ready = Callable[[int, Sequence[int | float | bytes]], None]


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute: an id and 64 bytes of value; these here use the first words."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


def parameter_layout(kinds: str) -> tuple[str, tuple[int, ...], int]:
    """`struct` format, offsets and size of the parameters, each at its natural alignment."""
    form, offsets, size_so_far = "<", list[int](), 0
    for kind in kinds:
        if kind != "T" and kind not in _SIZES:
            raise LaunchError(
                "there is no parameter kind {kind!r}", kind=kind, expected="one of PbB?hHeiIfqQdT"
            )
        size, align = (_TENSOR_MAP, 64) if kind == "T" else (_SIZES[kind], _SIZES[kind])
        pad = -size_so_far % align
        form += f"{pad}x" if pad else ""
        form += f"{_TENSOR_MAP}s" if kind == "T" else "Q" if kind == "P" else kind
        offsets.append(size_so_far + pad)
        size_so_far += pad + size
    return form, tuple(offsets), size_so_far


class _Slot:
    """Buffers for one launch that is being made: parameter values, their addresses, configuration."""

    def __init__(self, offsets: tuple[int, ...], size: int, attributes: Any, count: int) -> None:
        raw = ctypes.create_string_buffer(size + 64)
        address = ctypes.addressof(raw)
        start = -address % 64
        self.values = (ctypes.c_char * max(size, 1)).from_buffer(raw, start)
        self.addresses = (ctypes.c_void_p * max(len(offsets), 1))(
            *(address + start + offset for offset in offsets)
        )
        self.config = _Config()
        self.config.attributes = attributes
        self.config.count = count
        self.config_pointer = ctypes.byref(self.config)
        # What stands in the configuration.
        self.stream = 0


def _three(given: Sequence[int]) -> tuple[int, int, int]:
    padded = (*given, 1, 1, 1)
    return padded[0], padded[1], padded[2]


class Launch:
    """A kernel with its shape, ready to be called: `launch(stream, *values)`.

    `kinds` has a letter for each parameter: `P` pointer, `i`/`q` int32/int64, `I`/`Q`, `h`/`H`,
    `b`/`B`, `f`, `d`, `e` (float16), `?`, `T` tensor map. `grid` and `block` have one to three extents.
    A `dependent` one may begin while the launch before it in the stream ends.
    """

    def __init__(
        self,
        function: Function,
        kinds: str,
        *,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int = 0,
        cluster: Sequence[int] = (),
        cooperative: bool = False,
        dependent: bool = False,
    ) -> None:
        self.function = function
        self.kinds = kinds
        self.grid = _three(grid)
        self.block = _three(block)
        self.shared = shared
        form, self._offsets, self._size = parameter_layout(kinds)
        self._pack = struct.Struct(form).pack_into
        self._attributes, self._count = _launch_attributes(cluster, cooperative, dependent)
        if self._count and not function.context.driver.can_launch_ex:
            raise LaunchError(
                "this driver cannot launch clusters, cooperative grids or dependent launches",
                hint="update the driver",
            )
        # By grid: a slot keeps one, which takes half a microsecond to write.
        self._ready: dict[tuple[int, int, int], Ready] = {}
        self._slots: dict[tuple[int, int, int], list[_Slot]] = {}
        if shared > ALLOWED_SHARED:
            function.allow_shared(shared)

    def __call__(self, stream: int, *values: int | float | bytes, grid: Sequence[int] | None = None) -> None:
        """Launch on `stream` (0 is the legacy default stream). `grid` overrides for this launch only.

        Raises `ArgumentError` for values that the parameters cannot hold, `CudaError` for what
        the driver refuses. What the kernel does wrong shows at the next synchronisation.
        """
        self.ready(grid)(stream, values)

    def ready(self, grid: Sequence[int] | None = None) -> Ready:
        """`run(stream, values)`, which launches with this grid; None: the launch's own."""
        key = self.grid if grid is None else _three(grid)
        found = self._ready.get(key)
        if found is None:
            if len(self._ready) >= _MOST_GRIDS:
                self._ready.clear()
                self._slots.clear()
            found = self._ready[key] = self._made_ready(key)
        return found

    def _made_ready(self, grid: tuple[int, int, int]) -> Ready:
        slots = self._slots[grid] = list[_Slot]()
        pack, context = self._pack, self.function.context
        driver, handle, enter = context.driver, self.function.handle, context.enter
        launch = driver.lib.cuLaunchKernelEx if driver.can_launch_ex else _old_launch(driver)

        def run(stream: int, values: Sequence[int | float | bytes]) -> None:
            # Taking from and giving back to a list is atomic, so threads never share a slot.
            try:
                slot = slots.pop()
            except IndexError:
                slot = self._slot(grid)
            pushed = False
            try:
                pack(slot.values, 0, *values)
                if slot.stream != stream:
                    slot.config.stream = slot.stream = stream
                pushed = enter()
                code = launch(slot.config_pointer, handle, slot.addresses, None)
            except struct.error as error:
                raise self._misfit(values, error) from None
            finally:
                slots.append(slot)
                if pushed:
                    context.leave(pushed)
            if code != 0:
                raise driver.error(code, f"launching {self.function.name}")

        return run

    def _slot(self, grid: tuple[int, int, int]) -> _Slot:
        slot = _Slot(self._offsets, self._size, self._attributes, self._count)
        slot.config.grid[:] = grid
        slot.config.block[:] = self.block
        slot.config.shared = self.shared
        return slot

    def _misfit(self, values: Sequence[object], error: struct.error) -> ArgumentError:
        return ArgumentError(
            "{name} cannot take these {count} values: {error}",
            name=self.function.name, count=len(values), error=error, kinds=self.kinds, wanted=len(self.kinds),
            expected="{wanted} values of the kinds {kinds}",
        )  # fmt: skip


def _old_launch(driver: Driver) -> Callable[[Any, ctypes.c_void_p, Any, None], int]:
    """As `cuLaunchKernelEx`, of a driver that has no launch with attributes."""

    def launch(config: Any, handle: ctypes.c_void_p, addresses: Any, extra: None) -> int:
        c = config._obj
        stream = ctypes.c_void_p(c.stream)
        return driver.lib.cuLaunchKernel(handle, *c.grid, *c.block, c.shared, stream, addresses, extra)

    return launch


def _launch_attributes(cluster: Sequence[int], cooperative: bool, dependent: bool) -> tuple[Any, int]:
    """The attribute array and its length; kept alive by the `Launch` that owns it."""
    wanted: list[tuple[int, tuple[int, ...]]] = []
    if cluster:
        wanted.append((_CLUSTER, _three(cluster)))
    if cooperative:
        wanted.append((_COOPERATIVE, (1,)))
    if dependent:
        wanted.append((_DEPENDENT, (1,)))
    array = (_Attribute * max(len(wanted), 1))()
    for attribute, (number, value) in zip(array, wanted, strict=False):
        attribute.id = number
        for word, part in enumerate(value):
            attribute.value[word] = part
    return array, len(wanted)
