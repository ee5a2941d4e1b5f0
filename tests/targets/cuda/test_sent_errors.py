"""What a driver refuses in a measuring child arrives as it was; maps are described in a current context."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import pytest

from tests import kernels
from tilebench.runtime.codec import Spool, decode, encode
from tilebench.targets.cuda.run import tensor_maps
from tilebench.targets.cuda.run.driver import CudaError


def test_an_error_of_the_driver_travels_whole() -> None:
    error = CudaError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access", "waiting for the kernel")
    found = decode(encode(error, Spool()))
    assert type(found) is CudaError
    assert (found.code, found.name, found.context_lost) == (error.code, error.name, error.context_lost)
    assert found.explain() == error.explain()


def test_maps_are_described_in_the_context_of_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver refuses to without one, and a process that never began with torch has none."""
    current: list[int] = []
    described: list[tuple[str, list[int]]] = []

    @contextlib.contextmanager
    def context(ordinal: int) -> Generator[None]:
        current.append(ordinal)
        yield
        current.pop()

    def encode_one(driver: Any, encoding: Any, pointer: int, name: str) -> bytes:
        described.append((name, list(current)))
        return bytes(128)

    monkeypatch.setattr(tensor_maps, "context", context)
    monkeypatch.setattr(tensor_maps, "driver", lambda: None)
    monkeypatch.setattr(tensor_maps, "_encode", encode_one)
    kernel = kernels.gemm_kernel.using(target="cuda:sm_90a")(256, 256, 256, threads=128)
    kernel.reach_code()
    build = kernel.compilation.build
    assert build is not None
    maps = tensor_maps.TensorMaps(build.function)
    assert {each.array.name for each in maps.maps} >= {"A", "B"}
    pointers = [4096 * (k + 1) for k in range(3)]
    assert maps(pointers, pointers, 1) == maps(pointers, pointers, 1)
    # Once, and then they are known.
    assert described == [(each.array.name, [1]) for each in maps.maps]
