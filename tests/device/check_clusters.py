"""Products of matrices by blocks in clusters, on a card of 9.0: right, and how fast beside one block alone.

`python tests/device/check_clusters.py` checks every element of odd and plain shapes against what float64
allows; with `--time M N K ...` it times a row a schedule in turn with torch (cold L2, medians).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.device.check_card import seconds
from tests.kernels import gemm_nt_kernel
from tilebench.errors import TileError
from tilebench.schedule import Schedule

BASE: dict[str, Any] = {
    "copy": {"A_s": {"instruction": "tma"}, "B_s": {"instruction": "tma"}},
    "gemm": {"C_l": {"instruction": "wgmma"}},
    "warp_specialize": True,
}
TALL, WIDE, LOW = (256, 192, 64, 3, 256), (128, 256, 64, 4, 256), (128, 64, 64, 6, 128)


def stay(order: int | None, cluster: tuple[int, int] | None = None) -> dict[str, Any]:
    """Blocks that stay, in panels of clusters."""
    own = {} if cluster is None else {"cluster": list(cluster)}
    return {**own, "persistent": True, **({} if order is None else {"order": order})}


ROWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    (WIDE, stay(16)), (WIDE, stay(8, (1, 2))), (WIDE, stay(16, (2, 1))),
    (TALL, stay(8)), (TALL, stay(4, (1, 2))), (TALL, stay(8, (2, 1))), (TALL, stay(2, (1, 2))),
    (TALL, {"cluster": [1, 2], "order": 4}),
]  # fmt: skip
SMALL: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    (LOW, {}),
    (LOW, {"cluster": [1, 2]}),
    (LOW, {"cluster": [2, 1]}),
]
CASES: list[tuple[tuple[int, int, int], tuple[int, ...], dict[str, Any], bool]] = [
    ((1024, 1160, 1536), TALL, stay(4, (1, 2)), True), ((1024, 1160, 1536), WIDE, stay(8, (1, 2)), True),
    ((1000, 1024, 1536), WIDE, stay(8, (2, 1)), True), ((1024, 1152, 512), WIDE, stay(8, (1, 4)), False),
    ((1000, 1160, 1000), (128, 128, 64, 4, 256), {"cluster": [1, 4]}, True),
    ((1024, 1024, 64), LOW, {"cluster": [2, 1]}, True), ((4096, 4096, 512), TALL, stay(4, (1, 2)), True),
    ((4096, 4096, 4096), TALL, stay(4, (1, 2)), True), ((2048, 2048, 1024), WIDE, {"cluster": [1, 2]}, False),
    ((2048, 2048, 1024), WIDE, {"cluster": [2, 1], "order": 4}, False),
    ((1024, 1024, 1024), (64, 64, 64, 3, 128), {"cluster": [1, 8]}, True),
]  # fmt: skip


def made(shape: tuple[int, ...], tile: tuple[int, ...], chosen: dict[str, Any], turned: bool) -> Any:
    schedule = Schedule.of(**BASE, **chosen)
    return gemm_nt_kernel.using(target="cuda:sm_90a", schedule=schedule)(
        *shape, *tile, panel=0, turned=turned
    )


def check(torch: Any, shape: tuple[int, int, int], tile: tuple[int, ...], chosen: Any, turned: bool) -> bool:
    m, n, k = shape
    a = torch.randn(m, k, device="cuda").half()
    b = torch.randn(*((n, k) if turned else (k, n)), device="cuda").half()
    c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
    other = b.T if turned else b
    kernel = made(shape, tile, chosen, turned)
    sent = [
        r.message for r in kernel.record().remarks if "brings a part" in r.message or "form no" in r.message
    ]
    for _ in range(40):
        c.fill_(float("nan"))
        kernel(a, b, c)
        kernel(a, b, c)
    torch.cuda.synchronize()
    exact = a.double() @ other.double()
    bound = (a.double().abs() @ other.double().abs()) * k * 2**-24 + exact.abs() * 2**-11 + 1e-6
    part = float(((c.double() - exact).abs() / bound).nan_to_num(float("inf")).max())
    same = torch.equal(c, torch.matmul(a, other))
    verdict = f"{'ok' if part <= 1 else 'WRONG'} {part:.3f} of the bound, torch's bits: {same}"
    print(f"{shape} {tile} {chosen} {verdict}; {sent}", flush=True)
    return part <= 1


def time_rows(torch: Any, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = torch.randn(m, k, device="cuda").half(), torch.randn(n, k, device="cuda").half()
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    rows = [
        (f"{tile[:3]} {chosen}", made(shape, tile, chosen, True))
        for tile, chosen in (ROWS if m > 1024 else SMALL)
    ]
    runs = {name: (lambda kernel=kernel: kernel(a, b, c)) for name, kernel in rows}
    runs["torch"] = lambda: torch.matmul(a, b.T, out=c)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(2):
        for name, run in runs.items():
            run()
            times[name].append(seconds(torch, run, flush, 9))
    theirs = min(times["torch"])
    for name, found in times.items():
        best = min(found)
        rate = 2 * m * n * k / best * 1e-12
        print(
            f"{m}x{n}x{k} {name:64s} {best * 1e6:8.1f} us {rate:6.1f} TFLOP/s {theirs / best:.3f}", flush=True
        )


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time", type=int, nargs="+", default=())
    parser.add_argument("--case", type=int, nargs="+", help="these cases alone")
    parser.add_argument("--row", type=int, nargs=4, help="the schedule of that number, and a shape")
    given = parser.parse_args()
    if given.row:
        number, *shape = given.row
        tile, chosen = (ROWS if shape[0] > 1024 else SMALL)[number]
        return 0 if check(torch, (shape[0], shape[1], shape[2]), tile, chosen, True) else 1
    if given.time:
        for k in range(0, len(given.time), 3):
            time_rows(torch, tuple(given.time[k : k + 3]))
        return 0
    right = True
    for number in given.case or range(len(CASES)):
        try:
            right &= check(torch, *CASES[number])
        except TileError as error:
            print(f"{CASES[number]} refused: {error}", flush=True)
            right = False
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
