"""What all tests share: a clean environment, a cache of their own, and honest skips."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import spread

# No deadline: the machines that run this share two cores. Derandomised: a red build is red again.
settings.register_profile("tilebench", derandomize=True, deadline=None)
settings.load_profile("tilebench")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` writes the files that tests compare whole texts with; read the diff after it."""
    parser.addoption("--update-golden", action="store_true", help="renew the golden texts")


def pytest_configure(config: pytest.Config) -> None:
    """Drop the caller's settings before any test module is imported."""
    # Started by `nohup`, or in the background of a script, a process ignores Ctrl-C, and so do its
    # children: the tests of interrupts would wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in [each for each in os.environ if each.startswith("TILEBENCH_")]:
        del os.environ[name]
    # Every pass is followed by the check of legal forms in tests, and unexpected errors stay raw.
    os.environ["TILEBENCH_VERIFY"] = "1"
    # Notebooks of the tests must not find a user's IPython or Jupyter configuration.
    os.environ["JUPYTER_PLATFORM_DIRS"] = "1"


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A compile cache for this run alone, so that no result comes from an earlier one."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEBENCH_CACHE_DIR", str(folder))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        yield folder


@cache
def gpu_count() -> int:
    """NVIDIA cards that the driver finds; 0 without a driver. Makes no context."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def find_chromium() -> str | None:
    """Path of an installed Chromium or Chrome."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for path in map(shutil.which, names) if path), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that are spread over processes go by files."""
    return spread.scheduler(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot do; where CI promised a browser, a missing one is a failure."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        spread.in_order(items)
    promised = os.environ.get("CI") == "true"
    for item in items:
        if item.get_closest_marker("gpu") and gpu_count() == 0:
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU on this machine"))
        if item.get_closest_marker("browser") and find_chromium() is None and not promised:
            item.add_marker(pytest.mark.skip(reason="no Chromium on this machine"))


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser for tests marked `browser`."""
    path = find_chromium()
    assert path is not None, "install Debian's chromium: the browser tests drive JupyterLab in it"
    return path


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The manifest of the toy accelerator, a package that is installed while a module's tests run."""
    from tests.toy_plugin.install import installed

    with installed(tmp_path_factory.mktemp("site")) as manifest:
        yield manifest
