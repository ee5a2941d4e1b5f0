"""torch's "cuda" as the host, and undone again."""

from __future__ import annotations

import pytest

import tilebench.compat
from tilebench.compat.compiling import target_of

torch = pytest.importorskip("torch")


def test_cuda_is_the_host_until_it_is_undone() -> None:
    before = torch.cuda.Event
    tilebench.compat.install(device="cpu")
    try:
        a = torch.ones(4, device="cuda")
        assert a.device.type == "cpu"
        assert a.cuda() is a
        assert torch.zeros(3, device=torch.device("cuda", 0)).to("cuda:0").device.type == "cpu"
        torch.cuda.synchronize()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        stop.record()
        assert start.elapsed_time(stop) >= 0
        assert target_of("cuda") is None
        assert torch.cuda.is_available()
        assert torch.cuda.get_device_capability(torch.cuda.current_device()) == (8, 0)
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.synchronize()
        assert torch.cuda.get_device_properties(0).multi_processor_count >= 1
        assert torch.randn(3, generator=torch.Generator(device="cuda"), device="cuda").shape == (3,)
    finally:
        tilebench.compat.uninstall()
    assert torch.cuda.Event is before
    assert target_of("cuda") == "cuda"
    if not torch.cuda.is_available():
        with pytest.raises((AssertionError, RuntimeError)):
            torch.ones(4, device="cuda")
