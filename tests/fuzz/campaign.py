"""Many programs in a row: drawn, run, and what they said counted; findings are shrunk."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.fuzz.child import Child
from tests.fuzz.draw import draw
from tests.fuzz.program import Program
from tests.fuzz.roads import FINDING, REFUSED, UNDEFINED, Outcome, Said
from tests.fuzz.shrink import shrink

# Of differences many kinds look the same until they are short.
MOST_OF_A_KIND = 3


@dataclass(frozen=True)
class Finding:
    """A program that shows a fault, as short as it got, and what the roads say of it."""

    seed: int
    program: Program
    said: tuple[Said, ...]

    def __str__(self) -> str:
        lines = [f"{s.road}: {s.kind}\n    {s.detail}".replace("\n", "\n#     ") for s in self.said]
        return f"# seed {self.seed}\n# " + "\n# ".join(lines) + "\n" + self.program.file_text()


@dataclass
class Campaign:
    """Programs of the seeds from `seed` on, on these roads. `nvrtc`: every so many go through it as well."""

    programs: int
    seed: int = 0
    jobs: int = 1
    nvrtc: int = 0
    shrinking: bool = True
    seconds: float = float("inf")
    roads: tuple[str, ...] = ("cpu", "cuda")
    findings: list[Finding] = field(default_factory=list[Finding])
    counts: Counter[str] = field(default_factory=Counter[str])
    messages: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    examples: dict[tuple[str, str, str], int] = field(default_factory=dict[tuple[str, str, str], int])
    _seeds: Iterator[int] = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Until all programs have run, or the time is over."""
        self._seeds = iter(range(self.seed, self.seed + self.programs))
        self._end = time.monotonic() + self.seconds
        threads = [threading.Thread(target=self._work) for _ in range(self.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        child = Child()
        try:
            while time.monotonic() < self._end:
                with self._lock:
                    seed = next(self._seeds, None)
                if seed is None:
                    return
                program = draw(seed)
                nvrtc = bool(self.nvrtc) and seed % self.nvrtc == 0
                outcome = child.run(program, nvrtc=nvrtc, printed=seed % 4 == 0, only=self.roads)
                if self._counted(seed, outcome):
                    self._found(child, seed, program, outcome)
        finally:
            child.close()

    def _counted(self, seed: int, outcome: Outcome) -> bool:
        """Count what was said; whether a finding is worth a look."""
        with self._lock:
            words = {each.word for each in outcome.said}
            first = next((word for word in (FINDING, UNDEFINED, REFUSED) if word in words), "agree")
            self.counts[first] += 1
            fresh = False
            for each in outcome.said:
                key = (each.word, each.road, each.kind)
                self.messages[key] += 1
                self.examples.setdefault(key, seed)
                fresh |= each.word == FINDING and self.messages[key] <= MOST_OF_A_KIND
            return fresh

    def _found(self, child: Child, seed: int, program: Program, outcome: Outcome) -> None:
        keys = outcome.keys
        parts = {"cuda" if road == "nvrtc" else road.partition(" ")[0] for road, _ in keys}
        compiled = any(road == "nvrtc" for road, _ in keys)
        options = {
            "nvrtc": compiled,
            "printed": any("printed" in road for road, _ in keys),
            "only": [road for road in self.roads if road in parts],
        }
        if self.shrinking and not any(road == "process" for road, _ in keys):
            program = shrink(program, lambda p: bool(child.run(p, **options).keys & keys))
            outcome = child.run(program, nvrtc=compiled, only=self.roads)
        finding = Finding(seed, program, outcome.findings)
        with self._lock:
            self.findings.append(finding)
            print(f"{finding}\n", flush=True)

    def __str__(self) -> str:
        """How many of each message, most first, with the seed of an example."""
        total = sum(self.counts.values())
        lines = [f"{total} programs: " + ", ".join(f"{n} {word}" for word, n in self.counts.most_common())]
        for (word, road, kind), count in self.messages.most_common():
            lines.append(f"{count:6} {word} {road}: {kind}  (seed {self.examples[word, road, kind]})")
        return "\n".join(lines)
