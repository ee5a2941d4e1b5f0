"""The plugin that switches a fault on: `pytest -p tests.faults.switch`, its name in `TILE_FAULT`.

The module with the fault is compiled from its changed tree as it is imported, so that tables, decorators
and `from` imports see it too; nothing is written to disk, bytecode least of all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

import pytest

from tests.faults.fault import Fault
from tests.faults.rows import BY_NAME

VARIABLE = "TILE_FAULT"


class _Loader(SourceFileLoader):
    fault: Fault
    reached = False

    def get_code(self, fullname: str) -> CodeType:
        tree = self.fault.applied(self.get_data(self.path).decode())
        _Loader.reached = True
        return compile(tree, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the one module that has the fault, in front of all other finders."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.fault.module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        assert spec is not None
        assert spec.origin is not None
        loader = _Loader(name, spec.origin)
        loader.fault = self.fault
        spec.loader = loader
        return spec


if os.environ.get(VARIABLE):
    _fault = BY_NAME[os.environ[VARIABLE]]
    if _fault.module in sys.modules:
        raise RuntimeError(f"{_fault.module} was imported before its fault could be switched on")
    sys.meta_path.insert(0, _Finder(_fault))  # type: ignore[arg-type]


NOT_REACHED = 99


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    """A run that never imported the module says nothing about the fault."""
    if os.environ.get(VARIABLE) and not _Loader.reached and exitstatus == 0:
        session.exitstatus = NOT_REACHED
