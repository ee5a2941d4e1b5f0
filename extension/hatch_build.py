"""Build hook: what goes into a wheel beside the package, where it is there.

The JupyterLab extension is committed as sources only. A wheel made after `npm run build` carries
the built files, at the place where JupyterLab looks for prebuilt extensions; a wheel made without
Node carries none, and everything but the editor decorations and the record viewer works.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = "tilebench/labextension"
INSTALLED = "share/jupyter/labextensions/@tilebench/jupyterlab"


class TilebenchBuildHook(BuildHookInterface[Any]):
    """Adds the built extension and the notebooks to a wheel, and the extension to an editable one."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        built = os.path.join(self.root, BUILT)
        if os.path.isfile(os.path.join(built, "package.json")):
            build_data.setdefault("shared_data", {})[built] = INSTALLED
        notebooks = os.path.join(self.root, "notebooks")
        if version == "standard" and os.path.isdir(notebooks):
            build_data.setdefault("force_include", {})[notebooks] = "tilebench/notebooks"
