"""The thread pool: every block once, scratch memory, small grids, Ctrl-C."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.waiting import answers_within, interrupted
from tilebench.targets.cpu.llvm import Function, Module
from tilebench.targets.cpu.machine import host_isa
from tilebench.targets.cpu.run.jit import Compiled, compile_text
from tilebench.targets.cpu.run.pool import Launcher, Scratch, thread_count

ARGUMENTS = [("args", "ptr"), ("cancel", "ptr"), ("begin", "i64"), ("end", "i64"), ("scratch", "ptr")]


@pytest.fixture(scope="module")
def kernels() -> Compiled:
    """`count` adds 1 to its block's word; `spin` runs until it is cancelled and counts that it came back."""
    module = Module(host_isa())
    f = module.function("count", ARGUMENTS)
    args, _, begin, end, scratch = f.arguments
    with f.loop(begin, end) as block:
        word = f.at(f.load(args, "ptr"), block.index, "i64")
        f.store(block.index, f.at(scratch, 511, "i64"))
        f.store(f.add(f.load(word, "i64"), 1), word)
    f.ret()
    spin(module.function("spin", ARGUMENTS))
    return compile_text(module.text(), ("count", "spin"))


def spin(f: Function) -> None:
    args, cancel, _, _, _ = f.arguments
    again, out = f.block(), f.block()
    f.branch(again)
    f.open_block(again)
    f.branch_if(f.compare("eq", f.load(cancel, "i32", volatile=True), 0), again, out)
    f.open_block(out)
    f.emit(f"%old = atomicrmw add ptr {f.load(args, 'ptr').name}, i64 1 monotonic")
    f.ret()


def words(count: int) -> tuple[Any, Any]:
    data = np.zeros(count, np.int64)
    return data, np.array([data.ctypes.data], np.int64)


@pytest.mark.parametrize("grid", [0, 1, 2, 3, 17, 1000, 100_003])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_block_runs_once(kernels: Compiled, grid: int, threads: int) -> None:
    data, args = words(max(grid, 1))
    run = Launcher(kernels.address("count"), 4096, endless=True, keep=kernels)
    run(args.ctypes.data, grid, threads=threads)
    assert (data[:grid] == 1).all()


def test_a_short_kernel_moves_to_the_calling_thread_and_is_cheap(kernels: Compiled) -> None:
    data, args = words(8)
    run, at = Launcher(kernels.address("count"), 4096, keep=kernels), args.ctypes.data
    runs = 0

    def median() -> float:
        nonlocal runs
        times: list[float] = []
        for _ in range(300):
            start = time.perf_counter()
            run(at, 8)
            times.append(time.perf_counter() - start)
        runs += 300
        assert (data == runs).all()
        return sorted(times)[150]

    answers_within(10e-6, median, tries=20)


def test_launches_from_two_threads_at_once(kernels: Compiled) -> None:
    data, args = words(5000)
    run = Launcher(kernels.address("count"), 4096, endless=True, keep=kernels)
    others = [threading.Thread(target=lambda: run(args.ctypes.data, 5000, threads=1)) for _ in range(2)]
    for each in others:
        each.start()
    for each in others:
        each.join()
    assert (data == 2).all()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_interrupt_cancels_joins_and_rises(kernels: Compiled) -> None:
    def left() -> float:
        data, args = words(1)
        run = Launcher(kernels.address("spin"), keep=kernels)
        took = interrupted(lambda: run(args.ctypes.data, 2, threads=2))
        assert data[0] == 2  # both workers were out of the kernel before the exception rose
        return took

    answers_within(1, left)
    counted, more = words(50)
    Launcher(kernels.address("count"), 4096, endless=True, keep=kernels)(more.ctypes.data, 50)
    assert (counted == 1).all()


def test_scratch_is_aligned_kept_and_grown() -> None:
    memory = Scratch()
    small = memory.address(100)
    assert small % 64 == 0
    assert memory.address(4096) == small
    large = memory.address(5 << 20)
    assert large % 4096 == 0
    ctypes.memset(large, 1, 5 << 20)


def test_threads_follow_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_CPU_THREADS", "3")
    assert thread_count() == 3
    monkeypatch.delenv("TILEBENCH_CPU_THREADS")
    assert 1 <= thread_count() <= (os.cpu_count() or 1)
