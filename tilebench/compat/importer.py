"""`import tilelang`, answered: a finder in front of Python's own, and modules made of the table of names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..errors import TileError
from .names import ALIASES, MODULES

ROOT = "tilelang"
# A module that TileLang brings along. Where the real one is installed, that is imported.
BROUGHT = "tvm"


class MissingName(TileError, AttributeError):
    """A name of a module of TileLang's that is not here, for `hasattr` an attribute that is not there."""

    title = "compatibility error"


class AnsweredModule(ModuleType):
    """A module of TileLang's: its names are looked up where they are here, at first use."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        own = self.__name__
        if own == ROOT and name == BROUGHT:
            return importlib.import_module(BROUGHT)
        if f"{own}.{name}" in (*MODULES, *ALIASES):
            return importlib.import_module(f"{own}.{name}")
        where = MODULES[own].get(name)
        if where is None:
            raise MissingName(
                "{module}.{name} is not here", module=own, name=name,
                hint="tilebench.compat.answered() lists what is",
            )  # fmt: skip
        home, _, attribute = where.partition(":")
        value = getattr(importlib.import_module(f"tilebench.{home}"), attribute)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted(MODULES[self.__name__])


class Finder:
    """Finds `tilelang` and its modules. What it has found is forgotten when it is removed."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> Any:
        root = name.partition(".")[0]
        if root not in (ROOT, BROUGHT) or (root == BROUGHT and self.elsewhere(root)):
            return None
        if name not in (*MODULES, *ALIASES):
            raise ModuleNotFoundError(
                f"{name} is not here: tilebench answers for TileLang, with the modules "
                + ", ".join(sorted((*MODULES, *ALIASES))),
                name=name,
            )
        spec = ModuleSpec(name, _Loader(), origin="tilebench.compat, which answers for TileLang")
        # `from tilelang.x import missing` shows the origin.
        spec.has_location = True
        return spec

    def elsewhere(self, name: str) -> bool:
        """Whether another finder has it."""
        others = [other for other in sys.meta_path if other is not self]
        return any(other.find_spec(name, None) is not None for other in others)

    def remove(self) -> None:
        sys.meta_path.remove(self)
        for name, module in [*sys.modules.items()]:
            root = name.partition(".")[0]
            if root == ROOT or (root == BROUGHT and isinstance(module, AnsweredModule)):
                del sys.modules[name]


class _Loader(Loader):
    """Makes a module of the table, or gives tilebench's own in its place."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        alias = ALIASES.get(spec.name)
        if alias is None:
            return AnsweredModule(spec.name)
        module = importlib.import_module(f"tilebench.{alias}")
        # Python writes the new spec into the module that it gets; it stays the one that it is.
        self.own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if not isinstance(module, AnsweredModule):
            module.__spec__ = self.own
            return
        module.__path__ = []
        module.__all__ = sorted(MODULES[module.__name__])  # type: ignore[attr-defined]


__all__ = ["AnsweredModule", "Finder", "MissingName"]
