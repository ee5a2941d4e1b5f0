"""The well-known kernels on a card against float64: `python tests/device/check_kernels.py`.

The cases are those of `tests/wellknown`, the small and odd ones and larger ones. A row a case: the worst
error of its outputs as a part of what is allowed, the largest error and torch's own, our time and torch's
(CUDA events, cold L2, medians; torch where it has the operation). Inputs are random, outputs poisoned. Exits
non-zero when a case is wrong. `--small` and `--large` take one half, `--only WORD` what has the word in its
name. `--road cpu`, `simulator` or `reference` runs the small cases without a card and without torch.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from tests.device.check_card import seconds
from tests.wellknown.case import Case
from tests.wellknown.roads import ROADS, wrong
from tests.wellknown.table import CASES
from tilebench.library.near import UNIT, Exact, allowed

HEAD = f"{'case':60s} {'verdict':9s} of bound     error     torch        us  torch us ratio"


def on_card(torch: Any, array: Any) -> Any:
    """A host array on the card. Dtypes that NumPy has not travel as bytes; numbers of 4 bits two a byte."""
    name = array.dtype.name
    if name in ("int4", "uint4"):
        wide = array.astype(np.int8).astype(np.uint8) & 15
        packed = wide[..., 0::2] | (wide[..., 1::2] << 4)
        return torch.from_numpy(packed.view(np.int8)).cuda()
    if array.dtype.kind == "V" or name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        bits = array.view(f"i{array.dtype.itemsize}")
        return torch.from_numpy(bits).cuda().view(getattr(torch, name))
    return torch.from_numpy(array).cuda()


def wide(torch: Any, host: Any, array: Any) -> Any:
    """An array as oracles get it."""
    if host.dtype.name in ("int4", "uint4"):
        return torch.from_numpy(host.astype(np.int64)).cuda()
    return array.double() if host.dtype.name in UNIT else array.long()


def worst(torch: Any, got: Any, exact: Exact, dtype: str) -> tuple[float, float]:
    """The largest error as a part of what is allowed, and the largest error. Infinite where one is NaN."""
    value = exact.value.double() if hasattr(exact.value, "double") else exact.value
    error = (got.double() - value).abs()
    error = torch.where(got.double() == value, 0.0, error)
    bound = allowed(exact, dtype) + torch.zeros_like(error)
    part = torch.where(error == 0, 0.0, error / bound).nan_to_num(torch.inf, torch.inf)
    return float(part.max()), float(error.nan_to_num(torch.inf).max())


def run_case(torch: Any, case: Case, flush: Any) -> tuple[str, bool]:
    """One row, and whether the case is right."""
    host = case.drawn()
    arrays = {name: on_card(torch, array) for name, array in host.items()}
    torch.set_default_device("cuda")
    torch.set_default_dtype(torch.float64)
    right = case.oracle(
        torch, {name: wide(torch, host[name], a) for name, a in arrays.items()}, case.parameters
    )
    torch.set_default_dtype(torch.float32)
    kernel = case.kernel.using(target="cuda")(**case.parameters)
    kernel(*arrays.values())
    torch.cuda.synchronize()
    found = {name: worst(torch, arrays[name], exact, host[name].dtype.name) for name, exact in right.items()}
    part, error = max(found.values())
    unwritten = [name for name in host.keys() - right.keys() if not same(torch, host[name], arrays[name])]
    ok = part <= 1 and not unwritten
    ours, theirs, theirs_error = float("nan"), float("nan"), float("nan")
    if case.large:
        ours = seconds(torch, lambda: kernel(*arrays.values()), flush) * 1e6
    native = case.native(torch, arrays) if case.native is not None else None
    if native is not None:
        theirs_error = error_of_torch(torch, native(), next(iter(right.values())))
        theirs = seconds(torch, native, flush) * 1e6 if case.large else theirs
    verdict = "ok" if ok else f"WRONG {unwritten or ''}"
    row = f"{case.name[:60]:60s} {verdict:9s} {part:8.3f} {error:9.2g} {theirs_error:9.2g}"
    return f"{row} {ours:9.1f} {theirs:9.1f} {theirs / ours:5.2f}", ok


def same(torch: Any, host: Any, array: Any) -> bool:
    """Whether an input is what it was."""
    return torch.equal(on_card(torch, host).view(torch.uint8), array.view(torch.uint8))


def error_of_torch(torch: Any, got: Any, exact: Exact) -> float:
    """The largest error of torch's own result, where it has the shape of ours."""
    got = got[0] if isinstance(got, tuple) else got
    if got.shape != exact.value.shape:
        return float("nan")
    return float((got.double() - exact.value).abs().max())


def check_on_card(chosen: list[Case]) -> int:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    print(HEAD)
    right = 0
    for case in chosen:
        try:
            row, ok = run_case(torch, case, flush)
        except Exception as error:
            row, ok = f"{case.name[:60]:60s} FAILED {''.join(traceback.format_exception(error)[-2:])}", False
        print(row, flush=True)
        right += ok
    print(f"{right} of {len(chosen)} right")
    return 0 if right == len(chosen) else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--road", choices=sorted(ROADS))
    args = parser.parse_args()
    chosen = [case for case in CASES if args.only in case.name]
    if args.small or args.road:
        chosen = [case for case in chosen if not case.large]
    if args.large:
        chosen = [case for case in chosen if case.large]
    if args.road is None:
        return check_on_card(chosen)
    lines = {case.name: wrong(case, args.road) for case in chosen}
    for name, found in lines.items():
        print(f"{name[:60]:60s} {'; '.join(found) or 'ok'}", flush=True)
    return 1 if any(lines.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
