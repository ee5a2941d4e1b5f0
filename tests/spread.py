"""How pytest-xdist spreads the tests: a file at a time, those that drive a browser by one worker.

A file's fixtures are so made once. All browsers are in one worker, in which the extension is built and a
JupyterLab and a Chromium are started once, and which is the first to begin, as it is the longest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling

BROWSERS = ("tests/extension/", "tests/ui/")


def drives_a_browser(test: str) -> bool:
    """Whether this test, by its name, is one of those that are one unit."""
    return test.startswith(BROWSERS)


def unit_of(test: str) -> str:
    """What is run by one worker in one go with this test: its file, or all that drive a browser."""
    return "browsers" if drives_a_browser(test) else test.partition("::")[0]


def in_order(items: list[pytest.Item]) -> None:
    """Browsers first, then files with slow tests, so that no worker is left with a long file at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}

    def rank(item: pytest.Item) -> int:
        return 0 if drives_a_browser(item.nodeid) else 1 if item.path in slow else 2

    items.sort(key=rank)


def scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """xdist's own scheduler of scopes, with the units of this module in the order of collection."""
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return ByUnit(config, log)
