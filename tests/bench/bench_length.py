"""How compiling grows with the length of a kernel, step by step: 1, 2, 4 and 8 times as long.

    python -m tests.bench.bench_length [straight tiles products ...] [--target cuda:sm_80]

Milliseconds of the processor, the best of three. The last column is the growth of the last doubling: 1.0 is
linear. A step is marked where it is more than 1.2; of steps of less than 5 ms none is.
"""

from __future__ import annotations

import argparse
import time
from types import SimpleNamespace

from tests.bench import bench_compile
from tests.bench.long_kernels import FORMS, long_kernel

TIMES = (1, 2, 4)


def measure(form: str, target: str) -> None:
    """The table of a form."""
    found: dict[int, dict[str, float]] = {}
    for times in (*TIMES, *((8,) if form != "nest" else ())):
        kernel = long_kernel(form, times)
        runs = [bench_compile.stages(kernel, {}, target) for _ in range(3)]
        found[times] = {name: min(run[name] for run in runs) for name in runs[0]}
    *_, before, last = found
    for name, spent in found[last].items():
        growth = spent / max(found[before][name], 1e-3) / (last / before)
        cells = " ".join(f"{steps[name]:8.1f}" for steps in found.values())
        if spent > 1:
            print(f"{form:12} {name:10} {cells}  {growth:.2f}{' <<<' if growth > 1.2 and spent > 5 else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("forms", nargs="*", choices=[*FORMS, []], default=[])
    parser.add_argument("--target", default="cuda:sm_80")
    given = parser.parse_args()
    # Others on the machine make wall clocks useless for ratios.
    bench_compile.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
    for form in given.forms or FORMS:
        measure(form, given.target)


if __name__ == "__main__":
    main()
