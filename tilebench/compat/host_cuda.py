"""torch's "cuda" as the host, for files that make their tensors on a card and a machine that has none.

While it lasts, in the thread that installed it: `device="cuda"` (and "cuda:0", and torch.device of them)
means "cpu" in every function and method of torch, `.cuda()` gives the tensor itself,
`torch.cuda.synchronize()` does nothing, and `torch.cuda.Event` reads the wall clock. There is one device
(`is_available`, `device_count`, `current_device`), of compute capability 8.0 and with as many multiprocessors
as the host has cores: files ask for them.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from ..targets.devices import CARD, HOST

_hosts: list[HostCuda] = []


def is_host() -> bool:
    """Whether "cuda" means the host now."""
    return bool(_hosts)


class HostCuda:
    """Replaces what it has to, and puts it back when it is removed."""

    def __init__(self) -> None:
        torch: Any = importlib.import_module("torch")
        self.mode = _mode(torch)
        self.mode.__enter__()
        self.kept = {name: getattr(torch.cuda, name) for name in _REPLACED}
        for name, value in _REPLACED.items():
            setattr(torch.cuda, name, value)
        self.generator = torch.Generator
        torch.Generator = _generator(torch)
        _hosts.append(self)

    def remove(self) -> None:
        cuda: Any = sys.modules["torch"].cuda
        for name, value in self.kept.items():
            setattr(cuda, name, value)
        torch: Any = sys.modules["torch"]
        torch.Generator = self.generator
        self.mode.__exit__(None, None, None)
        _hosts.remove(self)


def _nothing() -> Any:
    """A function that does nothing, as there is nothing to wait for on the host.

    One for each name: torch's compiler has rules by function, and refuses one of two names.
    """

    def nothing(*_: object) -> None:
        return None

    return nothing


class HostStream:
    """A stream of torch's: calls on the host have ended when they return, whichever stream they are of."""

    def __init__(self, *_: object, **__: object) -> None:
        self.cuda_stream = 0

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def wait_stream(self, _: object) -> None:
        """Nor in another stream."""


class WallEvent:
    """An event of torch's on the wall clock."""

    def __init__(self, *_: object, **__: object) -> None:
        self.seconds = 0.0

    def record(self, *_: object) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Nothing is waited for: calls on the host have ended when they return."""

    def elapsed_time(self, end: WallEvent) -> float:
        """Milliseconds from here to another event."""
        return 1e3 * (end.seconds - self.seconds)


def _always(answer: Any) -> Any:
    def ask(*_: object) -> Any:
        return answer

    return ask


def _properties(*_: object) -> SimpleNamespace:
    """What files ask of a card."""
    return SimpleNamespace(
        name=_NAME, major=8, minor=0, multi_processor_count=os.cpu_count() or 1, warp_size=32,
        total_memory=1 << 34, shared_memory_per_block_optin=163 << 10, max_threads_per_multi_processor=2048,
    )  # fmt: skip


_NAME = "the host, in place of a card"
_REPLACED: dict[str, Any] = {
    "synchronize": _nothing(), "Event": WallEvent, "is_available": _always(True), "device_count": _always(1),
    "current_device": _always(0), "get_device_capability": _always((8, 0)), "set_device": _nothing(),
    "init": _nothing(), "get_device_name": _always(_NAME), "get_device_properties": _properties,
    "Stream": HostStream, "stream": nullcontext,
}  # fmt: skip


def _generator(torch: Any) -> Any:
    """`torch.Generator`, whose device may be "cuda"."""

    base: Any = torch.Generator

    class HostGenerator(base):  # type: ignore[misc]
        def __new__(cls, device: Any = HOST) -> Any:
            return base.__new__(cls, HOST if str(device).partition(":")[0] == CARD else device)

    return HostGenerator


def _mode(torch: Any) -> Any:
    """torch's hook on all of its functions, with devices replaced."""
    overrides: Any = importlib.import_module("torch.overrides")

    def host(value: Any) -> Any:
        if type(value) is str:
            return HOST if value.partition(":")[0] == CARD else value
        return torch.device(HOST) if type(value) is torch.device and value.type == CARD else value

    class Host(overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.cuda:
                return args[0]
            given: dict[str, Any] = kwargs or {}
            return func(*map(host, args), **{name: host(value) for name, value in given.items()})

    return Host()


__all__ = ["HostCuda", "WallEvent", "is_host"]
