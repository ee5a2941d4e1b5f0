"""The driver API without a GPU: refusals, contexts, and what a launch hands over."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterator

import pytest

from tilebench.errors import ArgumentError, LaunchError, ResourceError, TargetError
from tilebench.targets.cuda.machines import DEFAULT_ARCH, arch_of
from tilebench.targets.cuda.run import context, device, driver, launch, modules
from tilebench.targets.cuda.run.device import available
from tilebench.targets.cuda.run.driver import CudaError, too_old
from tilebench.targets.cuda.run.launch import Launch, parameter_layout
from tilebench.targets.cuda.run.memory import DeviceMemory
from tilebench.targets.cuda.run.modules import Module

from .fake_driver import FakeDriver


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    held = FakeDriver()
    monkeypatch.setattr(driver, "_load", lambda: held)
    monkeypatch.setattr(driver, "_driver", None)
    monkeypatch.setattr(driver, "_failure", None)
    monkeypatch.setattr(context, "_contexts", {})
    device.device.cache_clear()
    yield held
    device.device.cache_clear()


def _launch(fake: FakeDriver, kinds: str, sizes: tuple[int, ...] = (), **shape: object) -> Launch:
    fake.sizes = sizes
    function = Module(b"cubin", context.context(0)).function("kernel")
    return Launch(function, kinds, **{"grid": (3, 2), "block": (128,), **shape})  # type: ignore[arg-type]


def test_no_driver_is_a_reason_and_not_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> object:
        raise TargetError("no CUDA driver is installed on this machine")

    monkeypatch.setattr(driver, "_load", none)
    monkeypatch.setattr(driver, "_driver", None)
    monkeypatch.setattr(driver, "_failure", None)
    assert available() == (False, "no CUDA driver is installed on this machine")
    assert arch_of(device.describe()) == DEFAULT_ARCH
    assert arch_of(device.describe("sm_80")) == "sm_80"


def test_available(fake: FakeDriver) -> None:
    assert available() == (True, "")
    assert arch_of(device.describe()) == "sm_90a"
    assert device.device(0).name == "NVIDIA Test"
    assert device.device(0).attribute("MULTIPROCESSOR_COUNT") == 132


def test_a_driver_without_a_device(fake: FakeDriver) -> None:
    fake.codes["cuInit"] = 100
    assert available() == (
        False,
        "the CUDA driver could not start: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)",
    )


def test_a_driver_that_is_too_old_is_named(fake: FakeDriver) -> None:
    fake.version = 12080
    ready, reason = available()
    assert not ready
    assert "good for CUDA 12.8" in reason
    assert "driver 580 or newer" in reason
    with pytest.raises(TargetError, match="driver 580"):
        context.context(0)
    assert too_old((13, 0), 13) == ""
    assert too_old((12, 8), 12) == ""
    assert "driver 525" in too_old((11, 8), 12)


def test_constants_equal_those_of_the_bindings() -> None:
    bindings = pytest.importorskip("cuda.bindings.driver")
    for name, value in device.DEVICE_ATTRIBUTES.items():
        assert getattr(bindings.CUdevice_attribute, "CU_DEVICE_ATTRIBUTE_" + name).value == value, name
    for name, value in modules.FUNCTION_ATTRIBUTES.items():
        known = bindings.CUfunction_attribute
        full = "CU_FUNC_ATTRIBUTE_" + name
        assert getattr(known, full).value == value, name
    known = bindings.CUlaunchAttributeID
    assert known.CU_LAUNCH_ATTRIBUTE_COOPERATIVE.value == launch._COOPERATIVE
    assert known.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION.value == launch._CLUSTER


def test_structures_have_the_size_of_the_c_ones() -> None:
    assert ctypes.sizeof(launch._Attribute) == 72
    assert launch._Attribute.value.offset == 8
    assert ctypes.sizeof(launch._Config) == 56
    assert (launch._Config.stream.offset, launch._Config.attributes.offset, launch._Config.count.offset) == (
        32,
        40,
        48,
    )


@pytest.mark.parametrize(
    ("kinds", "offsets", "size"),
    [
        ("", (), 0),
        ("PPi", (0, 8, 16), 20),
        ("iP", (0, 8), 16),
        ("bhiq", (0, 2, 4, 8), 16),
        ("?d", (0, 8), 16),
        ("iT", (0, 64), 192),
        ("PTf", (0, 64, 192), 196),
    ],
)
def test_parameters_lie_at_their_alignment(kinds: str, offsets: tuple[int, ...], size: int) -> None:
    form, found, total = parameter_layout(kinds)
    assert (found, total) == (offsets, size)
    assert struct.calcsize(form) == size


def test_unknown_parameter_kind() -> None:
    with pytest.raises(LaunchError, match="'z'"):
        parameter_layout("Pz")


def test_a_launch_hands_over_shape_stream_and_values(fake: FakeDriver) -> None:
    tensor_map = bytes(range(128))
    held = _launch(fake, "PiTfe", (8, 4, 128, 4, 2), shared=4096)
    held(77, 0x7F00DEADBEE0, -5, tensor_map, 1.5, 0.25)
    (seen,) = fake.launched
    assert (seen.grid, seen.block, seen.shared, seen.stream) == ((3, 2, 1), (128, 1, 1), 4096, 77)
    assert (seen.attributes, seen.function) == ([], 0xF0)
    assert seen.addresses[2] % 64 == 0
    pointer, integer, copied, single, half = fake.values
    assert struct.unpack("<Q", pointer)[0] == 0x7F00DEADBEE0
    assert struct.unpack("<i", integer)[0] == -5
    assert copied == tensor_map
    assert struct.unpack("<f", single)[0] == 1.5
    assert struct.unpack("<e", half)[0] == 0.25
    assert fake.current is None


def test_a_grid_for_one_launch_only(fake: FakeDriver) -> None:
    held = _launch(fake, "i", (4,))
    held(0, 1, grid=(9,))
    held(0, 1)
    assert [each.grid for each in fake.launched] == [(9, 1, 1), (3, 2, 1)]


def test_buffers_are_used_again_and_never_shared(fake: FakeDriver) -> None:
    held = _launch(fake, "i", (4,))
    for value in range(5):
        held(0, value)
        assert struct.unpack("<i", fake.values[0])[0] == value
    assert len({each.addresses[0] for each in fake.launched}) == 1
    threads = [threading.Thread(target=lambda: [held(0, k) for k in range(50)]) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(held._slots[held.grid]) <= 4
    assert len(fake.launched) == 5 + 200


def test_cluster_and_cooperative_attributes(fake: FakeDriver) -> None:
    held = _launch(fake, "i", (4,), cluster=(2, 1), cooperative=True)
    held(0, 1)
    assert fake.launched[0].attributes == [(4, (2, 1, 1)), (2, (1, 0, 0))]


def test_the_former_launch_call_of_older_drivers(fake: FakeDriver) -> None:
    driver.driver().can_launch_ex = False
    held = _launch(fake, "Pi", (8, 4))
    held(5, 0x1000, 3)
    (seen,) = fake.launched
    assert (seen.grid, seen.block, seen.stream) == ((3, 2, 1), (128, 1, 1), 5)
    assert "cuLaunchKernel" in fake.calls
    with pytest.raises(LaunchError, match="cannot launch clusters"):
        _launch(fake, "i", cluster=(2,))


def test_a_launch_never_waits_or_allocates(fake: FakeDriver) -> None:
    held = _launch(fake, "i", (4,))
    fake.calls.clear()
    held(0, 1)
    assert fake.calls == ["cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuLaunchKernelEx", "cuCtxPopCurrent_v2"]
    fake.current = 0xC0
    fake.calls.clear()
    held(0, 1)
    assert fake.calls == ["cuCtxGetCurrent", "cuLaunchKernelEx"]


@pytest.mark.parametrize("values", [(1,), (1, 2, 3), (1, 2**40), ("a", 1), (-1, 1)])
def test_values_that_do_not_fit(fake: FakeDriver, values: tuple[object, ...]) -> None:
    held = _launch(fake, "Pi", (8, 4))
    with pytest.raises(ArgumentError) as caught:
        held(0, *values)  # type: ignore[arg-type]
    assert "2 values of the kinds Pi" in str(caught.value)
    assert not fake.launched
    assert len(held._slots[held.grid]) == 1


def test_shared_memory_above_the_default_is_allowed_once(fake: FakeDriver) -> None:
    _launch(fake, "i", shared=48 * 1024)
    assert fake.allowed == {}
    _launch(fake, "i", shared=200 * 1024)
    assert fake.allowed == {8: 200 * 1024}
    with pytest.raises(ResourceError, match="232448"):
        _launch(fake, "i", shared=240 * 1024)


def test_errors_have_name_meaning_and_advice(fake: FakeDriver) -> None:
    fake.codes["cuModuleLoadData"] = 222
    with pytest.raises(CudaError) as caught:
        Module(b"cubin", context.context(0))
    assert "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" in str(caught.value)
    assert "update the driver" in str(caught.value)
    assert not caught.value.context_lost
    fake.codes = {"cuLaunchKernelEx": 1}
    held = _launch(fake, "i", (4,))
    with pytest.raises(CudaError, match="launching kernel: invalid argument"):
        held(0, 1)
    assert fake.current is None


def test_a_lost_context_is_recognised(fake: FakeDriver) -> None:
    card = context.context(0)
    fake.codes["cuStreamSynchronize"] = 700
    fake.codes["cuCtxPopCurrent_v2"] = 700
    with pytest.raises(CudaError) as caught:
        card.synchronize(0)
    assert caught.value.context_lost
    assert caught.value.code == 700
    assert "restart" in str(caught.value)
    assert "the kernel failed while it ran" in str(caught.value)


def test_memory_is_freed_with_its_last_reference(fake: FakeDriver) -> None:
    held = DeviceMemory(context.context(0), 100)
    assert held.pointer == 0x7F0000000000
    del held
    assert fake.calls.count("cuMemFree_v2") == 1
    held = DeviceMemory(context.context(0), 0)
    held.free()
    held.free()
    assert fake.calls.count("cuMemFree_v2") == 2
