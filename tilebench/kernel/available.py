"""Whether code of a target runs on this machine."""

from __future__ import annotations

from ..errors import TargetError
from ..targets.manifest import Manifest


def require_available(manifest: Manifest, name: str, target: str) -> None:
    """Raise `TargetError` where code of a target cannot run here."""
    can, why = manifest.available()
    if not can:
        raise TargetError(
            "{name} is compiled for {target}, which cannot run here: {why}", name=name, target=target,
            why=why,
            hint='compile it for target="cpu" to run it on this machine; `tilebench run FILE --everywhere` '
            "checks it in the simulator",
        )  # fmt: skip
