"""The front end as text, and how the benches of a page share it.

A page keeps each module that it has loaded for as long as it is open, and Jupyter's widgets keep what a
closed one was sent. So a bench brings a loader of a page's length, and the script stands once: in a widget of
its own, which every bench of the kernel names.
"""

from __future__ import annotations

import hashlib
import importlib
from functools import lru_cache
from pathlib import Path
from typing import Any


@lru_cache(maxsize=1)
def script() -> str:
    """The front end as one module without imports, built from `extension/src/bench`."""
    return _text("bench.js")


@lru_cache(maxsize=1)
def loader() -> str:
    """The module of one bench. The page has one front end for each version of it."""
    version = hashlib.sha256(script().encode()).hexdigest()[:12]
    return _text("loader.js").replace("__VERSION__", version)


def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


class _Shared:
    """The widget that holds the script; made again where somebody has closed it with all others."""

    def __init__(self) -> None:
        self._widget: Any = None

    def name(self) -> str:
        """How another widget refers to it."""
        if self._widget is None or self._widget.comm is None:
            anywidget: Any = importlib.import_module("anywidget")
            traitlets: Any = importlib.import_module("traitlets")
            body: dict[str, Any] = {
                "_esm": "export default {}",
                "__module__": __name__,
                "text": traitlets.Unicode(script()).tag(sync=True),
            }
            self._widget = type("TilebenchScript", (anywidget.AnyWidget,), body)()
        return f"IPY_MODEL_{self._widget.model_id}"


shared_script = _Shared()
