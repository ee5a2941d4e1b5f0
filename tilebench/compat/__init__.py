"""TileLang's own files, unchanged: after `tilebench.compat.install()` `import tilelang` finds tilebench.

    import tilebench.compat

    tilebench.compat.install()

`answered()` lists the names that are here, by module. A module or name of TileLang's that is not raises an
error that says so. `install(device="cpu")` is for machines without a card: torch's "cuda" tensors lie in host
memory then (`host_cuda.py` says what that changes), and kernels run on the CPU. `uninstall()` undoes it all.
"""

from __future__ import annotations

import sys
from typing import Any

from ..errors import OptionError
from ..targets.devices import HOST
from .importer import Finder
from .names import MODULES

_installed: list[Any] = []


def install(device: str | None = None) -> None:
    """Answer `import tilelang` from now on; a second call changes the device.

    `device="cpu"` makes torch's "cuda" the host. Raises `OptionError` for another device, and where TileLang
    itself is imported already.
    """
    if device not in (None, HOST):
        raise OptionError("device cannot be {device!r}", device=device, expected='"cpu", or None')
    uninstall()
    if "tilelang" in sys.modules:
        raise OptionError(
            "TileLang itself is imported already",
            hint="call tilebench.compat.install() before `import tilelang`",
        )
    finder = Finder()
    sys.meta_path.insert(0, finder)
    _installed.append(finder)
    if device == HOST:
        from .host_cuda import HostCuda

        _installed.append(HostCuda())


def uninstall() -> None:
    """Undo `install`. Modules that were imported stay usable where they are bound."""
    while _installed:
        _installed.pop().remove()


def answered() -> dict[str, list[str]]:
    """The names of TileLang's that are here, by module. Those of `tilelang.language` are `dir()` of it."""
    return {module: sorted(names) for module, names in MODULES.items()}


__all__ = ["answered", "install", "uninstall"]
