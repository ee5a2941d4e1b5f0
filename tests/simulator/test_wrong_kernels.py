"""Wrong kernels of stage `threaded`: each is refused with its exact words at its line, its right twin runs.

A case of `wrong_kernels/*.txt` starts with `== its name`. Lines that start with `- ` are in the wrong kernel
alone, those with `+ ` in the right one alone; `! ` is what is said of the line before it in the wrong kernel.
`# blocks: 2` and `# threads: 128` say how it is launched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulator.asynchronous_words import WORDS, meanings
from tilebench.ir import Function, parse_function
from tilebench.language.words import registry
from tilebench.simulator import SimulationError, run_threaded
from tilebench.simulator import run as run_module

HEAD = """@T.prim_func
def kernel(A: T.Tensor((256,), T.float32), B: T.Tensor((256,), T.float32), C: T.Tensor((256,), T.float32), H: T.Tensor((256,), T.float16), M: T.Tensor((4, 64), T.float32)):
    with T.Kernel({blocks}, threads={threads}, shared_bytes=1024) as bx:
        tid: T.int32 = T.thread_id()
"""  # noqa: E501 -- a stage is one statement a line


@dataclass(frozen=True)
class Case:
    """Two kernels as text, and (line, words) for what is said of the wrong one."""

    name: str
    wrong: str
    right: str
    said: tuple[tuple[int, str], ...]


def cases_of(text: str) -> list[Case]:
    """The cases of one file."""
    found: list[Case] = []
    for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, *lines = part.rstrip().splitlines()
        options = {"blocks": "1", "threads": "64"}
        wrong: list[str] = []
        right: list[str] = []
        said: list[tuple[int, str]] = []
        for line in lines:
            mark, rest = line[:2], line[2:]
            if mark == "# ":
                options.update([rest.split(": ")])
            elif mark == "! ":
                said.append((len(wrong) + HEAD.count("\n"), rest))
            else:
                wrong += [rest] if mark != "+ " else []
                right += [rest] if mark != "- " else []
        head = HEAD.format(**options)
        texts = (head + "".join(f"        {line}\n" for line in side) for side in (wrong, right))
        found.append(Case(name, *texts, tuple(said)))
    return found


FILES = sorted((Path(__file__).parent / "wrong_kernels").glob("*.txt"))
CASES = [(f"{path.stem}: {case.name}", case) for path in FILES for case in cases_of(path.read_text())]
all_cases: Callable[[Any], Any] = pytest.mark.parametrize(
    "case", [case for _, case in CASES], ids=[name for name, _ in CASES]
)


def simulate(text: str) -> None:
    function: Function = parse_function(text, registry().extended(WORDS))
    rng = np.random.default_rng(0)
    arrays = {
        param.name: rng.uniform(-1, 1, param.shape).astype(param.dtype.numpy) for param in function.params
    }
    run_threaded(function, arrays, warp=32, meanings=meanings())


def said_of(text: str) -> list[tuple[int, str]]:
    """(line, words) of the refusal of a kernel: its own place first, then the others that have a part."""
    with pytest.raises(SimulationError) as caught:
        simulate(text)
    error = caught.value
    assert error.place is not None
    also = [(place.line, error._fill(why)) for why, place in error.also]
    return [(error.place.line, error.message), *also]


@all_cases
def test_the_wrong_kernel_is_refused_at_its_line(case: Case) -> None:
    found = said_of(case.wrong)
    assert sorted(found) == sorted(case.said)
    assert found[0] in case.said


@all_cases
def test_its_right_twin_runs(case: Case) -> None:
    simulate(case.right)


@all_cases
def test_clocks_of_warps_say_what_clocks_of_blocks_say(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clock a block is a short cut for kernels whose barriers are all the block's."""
    monkeypatch.setattr(run_module, "ordered_by_blocks", lambda *_: False)
    assert said_of(case.wrong)[0][0] in [line for line, _ in case.said]
    simulate(case.right)


def test_there_are_many_of_each_kind() -> None:
    counts = {path.stem: len(cases_of(path.read_text())) for path in FILES}
    assert set(counts) == {"bounds", "global_memory", "mbarriers", "races", "roles", "tokens", "waits"}
    assert sum(counts.values()) >= 100
    assert len({name for name, _ in CASES}) == len(CASES)
