"""Whom the library is compared with: whether each is here, and a callable that does a work on arrays."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import OptionError, TargetError, nearest
from .arrays import Space
from .works import BenchWork

Run = Callable[[], Any]


@dataclass(frozen=True)
class Setup:
    """A work with its arrays by name, on which every contender runs."""

    work: BenchWork
    space: Space
    arrays: Mapping[str, Any]
    configs: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __getitem__(self, name: str) -> Any:
        """An array of the work, None for one that it has not."""
        return self.arrays.get(name)


@dataclass(frozen=True)
class Peer:
    """`build(setup)` gives what does a work and returns its result; None where the peer has no such one.

    `needs` are the packages that have to be installed, `host` and `card` whether it works there.
    """

    name: str
    needs: tuple[str, ...]
    build: str
    host: bool = False
    card: bool = True

    def runner(self, setup: Setup) -> Run | None:
        """Raises `TargetError` where the peer cannot run here."""
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if missing:
            raise TargetError("{name} is not installed here", name=missing[0])
        if not (self.host if setup.space.on_host else self.card):
            where = "the host" if setup.space.on_host else "a card"
            raise TargetError("{name} does not run on {where}", name=self.name, where=where)
        module, _, function = self.build.partition(":")
        return getattr(importlib.import_module(module, __package__), function)(setup)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("numpy", (), ".peer_numpy:build", host=True, card=False),
        Peer("torch", ("torch",), ".peer_torch:build", host=True),
        Peer("torch.compile", ("torch",), ".peer_torch:build_compiled", host=True),
        Peer("triton", ("torch", "triton"), ".peer_triton:build"),
        Peer("tilelang", ("torch", "tilelang"), ".peer_tilelang:build"),
        Peer("tilelang.mma", ("torch", "tilelang"), ".peer_tilelang:build_older"),
    )
}
# What `--against` means where nothing is said.
ON_HOST = ("numpy", "torch")
ON_CARD = ("torch", "torch.compile")


def peers_named(names: tuple[str, ...]) -> list[Peer]:
    """The peers of these names. Raises `OptionError` for one that there is not."""
    for name in names:
        if name not in PEERS:
            close = nearest(name, list(PEERS), limit=1)
            raise OptionError(
                "there is no peer {name}", name=name, peers=", ".join(PEERS),
                hint=(f"did you mean {close[0]}? " if close else "") + "peers: {peers}",
            )  # fmt: skip
    return [PEERS[name] for name in dict.fromkeys(names)]
