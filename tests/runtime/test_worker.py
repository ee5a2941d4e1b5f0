"""The measuring child: results, arrays, crash, time-out, cancel, idle, interrupt, leaks."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.waiting import LONG, answers_within, is_running, until
from tilebench.errors import LaunchError, ShapeError
from tilebench.runtime import codec
from tilebench.runtime.cancel import Cancelled
from tilebench.runtime.codec import PREFIX, Spool, decode, encode, spool_folders
from tilebench.runtime.job import Job, cancelled, in_child
from tilebench.runtime.worker import Worker

ROOT = str(Path(__file__).resolve().parents[2])
JOBS = "tests.runtime.jobs:"


@pytest.fixture(scope="module")
def shared() -> Iterator[Worker]:
    sys.path.insert(0, ROOT)
    with Worker() as worker:
        yield worker
    sys.path.remove(ROOT)


def job(name: str, *args: Any) -> Job:
    return Job(JOBS + name, args)


def about(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """What `jobs.about` says of an array in the child."""
    total = array.astype(np.float64).sum().item()
    place = array.ctypes.data % 256
    return (array.shape, array.strides, array.dtype.name, place, array.flags.writeable, total)


def spooled() -> list[str]:
    return [str(p) for folder in spool_folders() for p in Path(folder).glob(f"{PREFIX}{os.getpid()}-*")]


def gone(pid: int) -> bool:
    """Ended and reaped (a zombie still has an entry)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_job_runs_in_another_process_and_the_child_stays_warm(shared: Worker) -> None:
    first = shared.call(job("pid"))
    assert first != os.getpid()
    assert first == shared.pid
    assert shared.call(job("pid")) == first
    assert shared.state == "idle"
    assert shared.start_seconds is not None
    assert shared.start_seconds < 5


def test_arrays_of_all_kinds_arrive_as_they_are(shared: Worker) -> None:
    grid = np.arange(600, dtype=np.float32).reshape(20, 30)
    frozen = grid.copy()
    frozen.flags.writeable = False
    bytes_ = np.zeros(4 * 100 + 64, np.uint8)
    for array in (
        grid, grid.T, grid[::2, ::-3], grid[::-1], np.broadcast_to(grid[0], (5, 30)), frozen, grid[:0],
        np.full((), 3, np.float16), grid.astype(ml_dtypes.bfloat16), np.arange(9, dtype=np.int8),
        bytes_[3:403], np.zeros((700, 800), np.float64)[:, ::2] + 1, np.asfortranarray(np.ones((900, 400))),
    ):  # fmt: skip
        expected = about(array)
        assert shared.call(job("about", array)) == expected
    assert spooled() == []


def test_the_child_works_on_a_copy_and_big_arrays_leave_nothing_behind(shared: Worker) -> None:
    big = np.arange(4_000_000, dtype=np.float32)
    before = big.copy()
    result = shared.call(job("double", big))
    assert np.array_equal(result, before * 2)
    assert np.array_equal(big, before)
    result += 1  # the caller owns what comes back
    left = [p for folder in spool_folders() for p in Path(folder).glob(f"{PREFIX}{shared.pid}-*")]
    assert spooled() == []
    assert left == []


def test_one_array_given_twice_stays_one() -> None:
    array = np.arange(5)
    a, b, c = decode(encode((array, array, array[1:]), Spool()))
    assert a is b
    assert c is not a
    assert c.tolist() == [1, 2, 3, 4]


def test_user_functions_travel_by_value(shared: Worker) -> None:
    factor = 7
    assert shared.call(Job(lambda x: (x * factor, os.getpid()), (6,))) == (42, shared.pid)

    def local(f: Any, array: np.ndarray[Any, Any]) -> Any:
        return f(array)

    assert shared.call(Job(local, (np.sum, np.arange(10)))) == 45


def test_settings_follow_the_parent(shared: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_TARGET", "cuda:sm_80")
    assert shared.call(job("setting"))[0] == "cuda:sm_80"
    monkeypatch.setenv("TILEBENCH_TARGET", "cpu")
    assert shared.call(job("setting")) == ("cpu", "", True)
    assert not in_child()
    assert not cancelled()
    with Worker(env={"TILEBENCH_TEST_ENV": "seen"}) as other:
        assert other.call(job("setting"))[1] == "seen"


def test_progress_arrives_in_order_before_the_result(shared: Worker) -> None:
    seen: list[Any] = []
    assert shared.call(job("count", 50), on_progress=seen.append) == 50
    assert seen == [{"done": i + 1, "of": 50} for i in range(50)]


def test_output_is_kept_apart_and_logged(shared: Worker, capfd: pytest.CaptureFixture[str]) -> None:
    assert shared.call(job("chatter")) == "kept apart"
    until(lambda: any("grandchild" in line for line in shared.log))
    assert {"to stdout", "to stderr", "raw to 1", "from a grandchild"} <= set(shared.log)
    assert capfd.readouterr() == ("", "")


def test_errors_keep_their_kind(shared: Worker) -> None:
    before = shared.call(job("pid"))
    with pytest.raises(ShapeError, match="A is 3-dimensional"):
        shared.call(job("fails", "tile"))
    with pytest.raises(LaunchError, match="ZeroDivisionError: one over nothing") as caught:
        shared.call(job("fails", "zero"))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "jobs.py" in str(caught.value)
    with pytest.raises(LaunchError, match="SystemExit: 3"):
        shared.call(job("fails", "exit"))
    with pytest.raises(LaunchError, match="no_such_name"):
        shared.call(job("no_such_name"))
    with pytest.raises(LaunchError, match="cannot travel"):
        shared.call(job("unpicklable"))
    with pytest.raises(LaunchError, match="cannot travel"):
        shared.call(job("pid", threading.Lock()))
    assert shared.call(job("pid")) == before


def test_a_crash_is_an_error_with_the_signal_and_the_next_call_works(shared: Worker) -> None:
    first = shared.call(job("pid"))
    with pytest.raises(LaunchError, match=r"signal 11 \(SIGSEGV\)") as caught:
        shared.call(job("crash", "last words {braces}"))
    assert "last words {braces}" in str(caught.value)
    assert "in crash" in str(caught.value)  # the Python stack at the crash
    assert "worker_main" not in str(caught.value)
    assert gone(first)
    assert shared.call(job("pid")) not in (first, os.getpid())


def test_a_spinning_job_ends_at_its_limit(shared: Worker) -> None:
    old = shared.call(job("pid"))

    def ended() -> float:
        shared.call(job("pid"))  # a child that is there
        start = time.monotonic()
        with pytest.raises(LaunchError, match=r"did not finish in 0\.3 s"):
            shared.call(job("spin"), timeout=0.3)
        return time.monotonic() - start

    answers_within(1.0, ended)
    assert gone(old)
    assert shared.state == "closed"
    assert shared.call(job("pid")) != old


def test_cancel_ends_a_spinning_job_at_once(shared: Worker) -> None:
    def ended() -> float:
        shared.call(job("pid"))
        cancel = threading.Event()
        threading.Timer(0.1, cancel.set).start()
        start = time.monotonic()
        with pytest.raises(Cancelled):
            shared.call(job("spin"), cancel=cancel)
        return time.monotonic() - start

    answers_within(0.8, ended)


def test_cancel_keeps_the_child_of_a_job_that_looks(shared: Worker) -> None:
    old = shared.call(job("pid"))
    cancel = threading.Event()
    with pytest.raises(Cancelled):
        shared.call(job("polite"), cancel=cancel, on_progress=lambda _: cancel.set())
    assert shared.call(job("pid")) == old
    assert shared.call(job("count", 3)) == 3  # the stop does not reach the next job


def test_a_child_deaf_to_sigterm_is_killed() -> None:
    with Worker() as worker:

        def ended() -> float:
            cancel = threading.Event()
            old = worker.call(job("pid"))
            start = time.monotonic()
            with pytest.raises(Cancelled):
                worker.call(job("deaf"), cancel=cancel, on_progress=lambda _: cancel.set())
            took = time.monotonic() - start
            assert gone(old)
            return took

        answers_within(1.5, ended)


def test_an_error_in_on_progress_ends_the_job(shared: Worker) -> None:
    def refuse(_: object) -> None:
        raise ShapeError("enough")

    with pytest.raises(ShapeError, match="enough"):
        shared.call(job("polite"), on_progress=refuse)
    assert shared.call(job("count", 2)) == 2


def test_what_the_child_started_ends_with_it() -> None:
    with Worker() as worker:
        sleeper = worker.call(job("grandchild"))
        with pytest.raises(LaunchError):
            worker.call(job("crash", ""))
    until(lambda: not is_running(sleeper))


def test_an_idle_child_goes_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_WORKER_IDLE", "0.15")
    with Worker() as worker:
        old = worker.call(job("pid"))
        until(lambda: worker.state == "closed")
        assert gone(old)
        assert worker.call(job("pid")) != old


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_child_killed_while_it_waits_costs_no_job() -> None:
    with Worker() as worker:
        for _ in range(5):
            old = worker.call(job("pid"))
            os.kill(old, signal.SIGKILL)
            assert worker.call(job("pid")) != old


def test_calls_at_the_moment_a_child_goes_idle_all_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_WORKER_IDLE", "0.02")
    with Worker() as worker:
        pids = set[int]()
        for _ in range(8):
            pids.add(worker.call(job("pid")))
            time.sleep(0.0205)
    assert len(pids) >= 1


def test_calls_from_many_threads_take_turns(shared: Worker) -> None:
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(shared.call(job("count", 20)))) for _ in range(5)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == [20] * 5


def test_state_is_busy_while_a_job_runs(shared: Worker) -> None:
    states: list[str] = []
    shared.call(job("count", 1), on_progress=lambda _: states.append(shared.state))
    assert states == ["busy"]
    shared.close()
    assert shared.state == "closed"
    assert shared.pid is None


def test_the_child_ends_when_its_parent_is_killed() -> None:
    code = (
        "from tilebench.runtime.worker import Worker; from tilebench.runtime.job import Job\n"
        "w = Worker(); w.call(Job('tests.runtime.jobs:pid')); print(w.pid, flush=True)\n"
        "w.call(Job('tests.runtime.jobs:spin'), timeout=60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.05)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until(lambda: not is_running(child))


def test_exit_of_the_parent_is_quick_and_leaves_no_child() -> None:
    code = (
        "from tilebench.runtime.worker import Worker; from tilebench.runtime.job import Job\n"
        "w = Worker(); w.call(Job('tests.runtime.jobs:pid')); print(w.pid, flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=LONG
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert gone(int(done.stdout))


def test_an_interrupt_ends_the_child_not_the_parent() -> None:
    code = (
        "import os, signal, threading\n"
        "from tilebench.runtime.worker import Worker; from tilebench.runtime.job import Job\n"
        "w = Worker(); w.call(Job('tests.runtime.jobs:pid'))\n"
        "later = lambda _: threading.Timer(0.1, lambda: os.killpg(0, signal.SIGINT)).start()\n"
        "try:\n    w.call(Job('tests.runtime.jobs:spin_told'), on_progress=later)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', w.state, w.call(Job('tests.runtime.jobs:count', (2,))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG,
        start_new_session=True,
    )
    assert done.stdout.strip() == "interrupted closed 2", done.stderr


def test_a_fork_of_the_parent_leaves_the_child_alone() -> None:
    code = (
        "import os, sys; from tilebench.runtime.worker import Worker; from tilebench.runtime.job import Job\n"
        "w = Worker(); child = w.call(Job('tests.runtime.jobs:pid')); here = os.fork()\n"
        "if here == 0:\n    print(w.state, flush=True); sys.exit(0)\n"
        "os.waitpid(here, 0)\nprint(w.call(Job('tests.runtime.jobs:pid')) == child)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=LONG
    )
    assert done.stdout.split() == ["closed", "True"], done.stderr


def test_a_full_shared_memory_is_not_written_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    monkeypatch.setattr(codec, "spool_folders", lambda: [str(full), str(tmp_path)])
    reserve = os.posix_fallocate

    def no_room(fd: int, offset: int, size: int) -> None:
        if "/full/" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        reserve(fd, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    big, spool = np.arange(100_000), Spool()
    body = encode(big, spool)
    assert Path(spool.paths[0]).parent == tmp_path
    assert list(full.iterdir()) == []
    assert np.array_equal(decode(body), big)
    spool.free()
    assert [p for p in tmp_path.iterdir() if p.is_file()] == []
    monkeypatch.setattr(codec, "spool_folders", lambda: [str(full)])
    with pytest.raises(LaunchError, match="no room to hand 1 MB"):
        encode(big, spool)


def test_spool_files_of_the_dead_are_swept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(codec, "spool_folders", lambda: [str(tmp_path)])
    old, fresh, other = (tmp_path / name for name in (f"{PREFIX}7-0-a", f"{PREFIX}8-0-b", "else"))
    for each in (old, fresh, other):
        each.write_text("x")
    os.utime(old, (1, 1))
    codec.sweep()
    assert sorted(tmp_path.iterdir()) == sorted([fresh, other])
    codec.sweep(8)
    assert list(tmp_path.iterdir()) == [other]


def test_fifty_open_and_close_leak_nothing() -> None:
    def held() -> tuple[int, int, int]:
        gc.collect()
        children = Path(f"/proc/self/task/{threading.main_thread().native_id}/children").read_text().split()
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(children)

    with Worker() as worker:
        worker.call(job("pid"))
    before = held()
    for turn in range(50):
        worker = Worker()
        if turn % 10 == 0:
            worker.call(job("pid"))
        elif turn % 2:
            worker.start()  # closed while it is still starting
        worker.close()
    assert held() == before
