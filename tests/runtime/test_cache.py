"""The compile cache: keys, damage, two processes, a killed writer, eviction, a folder without rights."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilebench.errors import InternalError, OptionError
from tilebench.runtime.cache import Cache, key_of

ROOT = str(Path(__file__).resolve().parents[2])
ENTRY = {"kernel.cubin": bytes(range(256)) * 40, "stages/cuda.cu": b"__global__ void k() {}", "empty": b""}


@dataclass(frozen=True)
class Options:
    threads: int
    fast: bool = False


def test_key_tells_every_difference_apart() -> None:
    values: list[object] = [
        1, True, 1.0, "1", b"1", None, ["1"], ["1", ""], ("a", "b"), ("ab",), {"a": "b"}, Options(1),
        Options(1, True), [["a"], "b"], ["a", ["b"]], 0.1, 0.1 + 1e-17 * 2, float("inf"),
    ]  # fmt: skip
    keys = {key_of(part=each) for each in values}
    # 0.1 + 2e-17 rounds to 0.1 + one ulp or to 0.1 itself: count what Python tells apart.
    assert len(keys) == len({(type(each).__name__, repr(each)) for each in values})


def test_key_does_not_depend_on_order_of_names_or_sets() -> None:
    assert key_of(a=1, b={"x": 1, "y": 2}) == key_of(b={"y": 2, "x": 1}, a=1)
    assert key_of(a={"x", "yy", "zzz"}) == key_of(a={"zzz", "x", "yy"})
    assert key_of(a=1) != key_of(b=1)
    assert len(key_of(a=1)) == 64


def test_key_is_the_same_in_another_process() -> None:
    code = "from tilebench.runtime.cache import key_of; print(key_of(text='k', target='cpu', o={'a', 'b'}))"
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()
    assert said == key_of(text="k", target="cpu", o={"b", "a"})


def test_a_part_without_canonical_form_is_refused() -> None:
    with pytest.raises(InternalError, match="object cannot be part"):
        key_of(part=object())


def test_round_trip_through_disk(tmp_path: Path) -> None:
    key = key_of(text="a")
    Cache(tmp_path).put(key, ENTRY)
    again = Cache(tmp_path)
    assert again.get(key) == ENTRY
    assert again.get(key_of(text="b")) is None
    assert list(tmp_path.rglob("*.part")) == []
    # From memory: the file is not needed any more, and callers cannot change what is kept.
    found = again.get(key)
    assert found is not None
    found["kernel.cubin"] = b"changed"
    again_root = again.root
    assert again_root is not None
    for each in again_root.rglob("*.zip"):
        each.unlink()
    assert again.get(key) == ENTRY
    again.forget()
    assert again.get(key) is None


def test_a_key_that_is_no_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no cache key"):
        Cache(tmp_path).get("../../etc/passwd")


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "garbage", "half"])
def test_a_damaged_entry_is_missing_and_is_replaced(tmp_path: Path, damage: str) -> None:
    key = key_of(text=damage)
    Cache(tmp_path).put(key, ENTRY)
    (path,) = tmp_path.rglob("*.zip")
    body = path.read_bytes()
    at = body.index(bytes(range(200)))
    path.write_bytes(
        {
            "cut": body[:-7],
            "flip": body[: at + 5] + bytes([body[at + 5] ^ 1]) + body[at + 6 :],
            "empty": b"",
            "garbage": os.urandom(len(body)),
            "half": body[: len(body) // 2],
        }[damage]
    )
    cache = Cache(tmp_path)
    assert cache.get(key) is None
    cache.put(key, {"kernel.cubin": b"new"})
    assert Cache(tmp_path).get(key) == {"kernel.cubin": b"new"}


def _file(path: Path) -> None:
    path.write_bytes(b"")


def _folder(path: Path) -> None:
    (path / "inside").mkdir(parents=True)
    (path / "inside" / "file").write_bytes(b"x")


def _dead_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _unreadable(path: Path) -> None:
    path.write_bytes(b"secret")
    path.chmod(0)


@pytest.mark.parametrize("put", [_file, _folder, _dead_link, _loop, _device, _pipe, _unreadable])
def test_whatever_lies_at_the_place_of_an_entry_is_missing_and_replaced(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    key, cache = key_of(n=1), Cache(tmp_path)
    assert cache.root is not None
    path = cache.root / key[:2] / f"{key}.zip"
    path.parent.mkdir(parents=True)
    put(path)
    assert cache.get(key) is None
    cache.put(key, ENTRY)
    assert Cache(tmp_path).get(key) == ENTRY
    assert cache.remarks == []
    assert path.is_file()
    assert not path.is_symlink()


def test_a_file_at_the_place_of_a_folder_of_entries_makes_room(tmp_path: Path) -> None:
    key, cache = key_of(n=1), Cache(tmp_path)
    assert cache.root is not None
    cache.root.mkdir()
    (cache.root / key[:2]).write_bytes(b"in the way")
    assert cache.get(key) is None
    cache.put(key, ENTRY)
    assert Cache(tmp_path).get(key) == ENTRY


def test_an_entry_at_the_place_of_another_is_missing(tmp_path: Path) -> None:
    first, second = key_of(n=1), key_of(n=2)
    cache = Cache(tmp_path)
    for key in (first, second):
        cache.put(key, {"code": key.encode()})
    assert cache.root is not None
    a, b = (cache.root / key[:2] / f"{key}.zip" for key in (first, second))
    b.write_bytes(a.read_bytes())
    assert Cache(tmp_path).get(second) is None
    assert Cache(tmp_path).get(first) == {"code": first.encode()}


def test_an_entry_that_unpacks_to_more_than_it_holds_is_not_read(tmp_path: Path) -> None:
    key, cache = key_of(n=1), Cache(tmp_path)
    assert cache.root is not None
    path = cache.root / key[:2] / f"{key}.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("code", bytes(50_000_000))
        archive.comment = f"1 {key}".encode()
    tracemalloc.start()
    try:
        assert cache.get(key) is None
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("reason", [errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EDQUOT])
def test_a_cache_that_cannot_be_written_is_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    """A read-only folder, a full disk: nothing is raised or left behind, and what is there serves."""
    Cache(tmp_path).put(key_of(n=1), ENTRY)

    def refuse(*_: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(os, "replace", refuse)
    cache = Cache(tmp_path)
    cache.put(key_of(n=2), ENTRY)
    cache.put(key_of(n=3), ENTRY)
    assert len(cache.remarks) == 1
    assert os.strerror(reason) in cache.remarks[0].message
    assert cache.get(key_of(n=1)) == ENTRY
    assert cache.get(key_of(n=2)) == ENTRY
    assert list(tmp_path.rglob("*.part")) == []


HAMMER = """
import sys
from tilebench.runtime.cache import Cache, key_of
cache = Cache(sys.argv[1], memory_bytes=0)
keys = [key_of(n=n) for n in range(4)]
wrong = reads = 0
for step in range(150):
    key = keys[step % 4]
    mark = f"{sys.argv[2]}-{step}".encode()
    cache.put(key, {"a": mark * 500, "b": mark * 500})
    cache.forget()
    found = cache.get(keys[(step + 1) % 4])
    if found is not None:
        reads += 1
        wrong += found["a"] != found["b"] or found["a"] != found["a"][: len(found["a"]) // 500] * 500
print(reads, wrong, len(cache.remarks))
"""


def test_two_processes_hammer_the_same_keys(tmp_path: Path) -> None:
    run = [sys.executable, "-c", HAMMER, str(tmp_path)]
    both = [
        subprocess.Popen([*run, name], cwd=ROOT, stdout=subprocess.PIPE, text=True) for name in ("p", "q")
    ]
    said = [each.communicate(timeout=60)[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    for out in said:
        reads, wrong, remarks = (int(n) for n in out.split())
        assert reads > 100
        assert wrong == 0
        assert remarks == 0
    assert len(list(tmp_path.rglob("*.zip"))) == 4
    assert list(tmp_path.rglob("*.part")) == []


def test_a_folder_that_another_process_makes_in_between_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked about the entry's folder, the other process makes it right after the answer."""
    for asked in ("is_dir", "exists"):
        cache = Cache(tmp_path / asked, memory_bytes=0)
        truth = getattr(Path, asked)

        def late(path: Path, truth: object = truth) -> bool:
            answer = truth(path)  # type: ignore[operator]
            if len(path.name) == 2 and not answer:
                os.makedirs(path, exist_ok=True)
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(Path, asked, late)
            for n in range(8):
                cache.put(key_of(n=n), ENTRY)
        assert cache.remarks == []
        assert all(cache.get(key_of(n=n)) == ENTRY for n in range(8))


KILLED = """
import sys, os
from tilebench.runtime.cache import Cache, key_of
cache = Cache(sys.argv[1], memory_bytes=0)
print("go", flush=True)
step = 0
while True:
    body = str(step % 10).encode() * 400_000
    cache.put(key_of(n=step % 2), {"a": body, "b": body})
    step += 1
"""


def test_a_writer_killed_at_any_moment_leaves_whole_entries(tmp_path: Path) -> None:
    for round in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.03 + 0.011 * round)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        for n in range(2):
            found = Cache(tmp_path).get(key_of(n=n))
            if found is not None:
                assert found["a"] == found["b"]
                assert len(set(found["a"])) == 1
                assert len(found["a"]) == 400_000


def test_oldest_entries_go_first_and_parts_of_the_dead_are_swept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit_bytes=20_000, memory_bytes=0)
    keys = [key_of(n=n) for n in range(12)]
    root = cache.root
    assert root is not None
    for age, key in enumerate(keys[:8]):
        cache.put(key, {"a": bytes(2_000)})
        when = time.time() - 1000 + age
        os.utime(root / key[:2] / f"{key}.zip", (when, when))
    dead = root / keys[0][:2] / "dead.part"
    dead.write_bytes(b"x")
    os.utime(dead, (1, 1))
    cache.forget()
    assert cache.get(keys[0]) is not None  # used just now, so it is the newest
    for key in keys[8:]:
        cache.put(key, {"a": bytes(2_000)})
    cache.forget()
    assert cache.size_bytes() <= 20_000
    assert not dead.exists()
    assert cache.get(keys[0]) is not None
    assert cache.get(keys[11]) is not None
    assert cache.get(keys[1]) is None


def test_a_folder_that_cannot_be_written_leaves_one_remark(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    cache = Cache(in_the_way)
    for n in range(3):
        cache.put(key_of(n=n), ENTRY)
    assert cache.get(key_of(n=1)) == ENTRY
    assert len(cache.remarks) == 1
    assert cache.remarks[0].kind == "missed"
    assert str(in_the_way) in cache.remarks[0].message


def test_switched_off_it_lives_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_CACHE", "0")
    monkeypatch.setenv("TILEBENCH_CACHE_DIR", str(tmp_path))
    cache = Cache()
    cache.put(key_of(n=1), ENTRY)
    assert cache.get(key_of(n=1)) == ENTRY
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("TILEBENCH_CACHE", "1")
    cache.put(key_of(n=1), ENTRY)
    assert len(list(tmp_path.rglob("*.zip"))) == 1


def test_memory_is_bounded_and_drops_the_least_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path, memory_bytes=3_000)
    keys = [key_of(n=n) for n in range(3)]
    for key in keys[:2]:
        cache.put(key, {"a": bytes(1_400)})
    cache.get(keys[0])
    cache.put(keys[2], {"a": bytes(1_400)})
    for each in tmp_path.rglob("*.zip"):
        each.unlink()
    assert cache.get(keys[0]) is not None
    assert cache.get(keys[1]) is None
