"""Every environment variable, typed. Nothing else in the package reads `os.environ`.

Read at each use, so that a notebook can change one with `%env` and see it act.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T", bool, int, float, str)


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One variable: its name, the value when it is not set, what it does, whether it changes code."""

    name: str
    default: T
    doc: str
    in_cache_key: bool = False

    def __call__(self) -> T:
        raw = os.environ.get(self.name)
        if raw is None or raw == "":
            return self.default
        kind = type(self.default)
        if kind is str:
            return kind(raw)
        if kind is bool:
            if raw.lower() not in _FLAGS:
                self._refuse(raw, "one of " + ", ".join(_FLAGS))
            return kind(_FLAGS[raw.lower()])
        try:
            value = kind(raw)
        except ValueError:
            value = kind(-1)
        # No setting means anything below zero, and a NaN is not above it.
        if not 0 <= float(value) < math.inf:
            self._refuse(raw, ("a whole number" if kind is int else "a number") + " of at least 0")
        return value

    def set(self, value: T) -> None:
        """Set the variable, for this process and those that it starts."""
        os.environ[self.name] = str(int(value) if isinstance(value, bool) else value)

    def _refuse(self, raw: str, expected: str) -> NoReturn:
        from .errors import OptionError

        raise OptionError(
            "the environment variable {name} cannot be {raw!r}", name=self.name, raw=raw, expected=expected
        )


_FLAGS = {
    "1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False,
}  # fmt: skip


cache_dir = Setting(
    "TILEBENCH_CACHE_DIR", str(Path.home() / ".cache" / "tilebench"), "folder of the compile cache"
)
cache = Setting("TILEBENCH_CACHE", True, "keep compiled kernels on disk between processes")
cache_megabytes = Setting(
    "TILEBENCH_CACHE_MB", 1024, "size of the compile cache; the oldest entries go first"
)
cpu_threads = Setting("TILEBENCH_CPU_THREADS", 0, "threads of a CPU launch; 0 means one a core allowed")
target = Setting("TILEBENCH_TARGET", "auto", "target when none is named: auto, cpu, cuda, cuda:sm_90a, ...")
headless = Setting("TILEBENCH_HEADLESS", False, "no widgets and no threads: static output only")
verify = Setting("TILEBENCH_VERIFY", False, "check the legal forms after every pass, not only at the ends")
raise_raw = Setting(
    "TILEBENCH_RAISE_RAW", False, "let unexpected exceptions through instead of wrapping them"
)
worker_idle = Setting("TILEBENCH_WORKER_IDLE", 120.0, "seconds after which an idle measuring child is closed")
worker_timeout = Setting(
    "TILEBENCH_WORKER_TIMEOUT", 30.0, "seconds a measurement may take before its child ends"
)


guard = Setting(
    "TILEBENCH_GUARD", "auto", "run new GPU code in a child first: auto (in IPython only), first, off"
)


def all_settings() -> list[Setting[bool] | Setting[int] | Setting[float] | Setting[str]]:
    """Every setting, in the order of this file."""
    return [value for value in globals().values() if isinstance(value, Setting)]
