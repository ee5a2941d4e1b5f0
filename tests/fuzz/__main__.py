"""`python -m tests.fuzz --programs N --seed S`: random kernels through every road.

Program k is that of seed S + k, the same everywhere, so `--programs 1 --seed K` shows one again. Each
finding is printed as a file that runs alone; at the end, how many programs were refused with which message.
The exit code is 1 when there are findings.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.campaign import Campaign


def main(arguments: list[str]) -> int:
    """Run the programs; 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first")
    parser.add_argument("--jobs", type=int, default=1, help="at one time")
    parser.add_argument("--nvrtc", type=int, default=100, help="one in so many goes through NVRTC; 0: none")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--roads", nargs="+", default=["cpu", "cuda"], choices=["cpu", "cuda", "card"],
                        help="besides the reference; `card` is the GPU of this machine")  # fmt: skip
    parser.add_argument("--no-shrink", action="store_true", help="print findings as they were drawn")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    campaign = Campaign(
        options.programs, options.seed, options.jobs, options.nvrtc, not options.no_shrink, options.seconds,
        tuple(options.roads),
    )  # fmt: skip
    campaign.run()
    print(campaign)
    print(f"{time.monotonic() - start:.0f} seconds")
    return 1 if campaign.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
