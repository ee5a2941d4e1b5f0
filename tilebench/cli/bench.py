"""`tilebench bench`: the library beside other libraries; of a file a kernel, one position or a sweep."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import Parser, whole
from .files import split

if TYPE_CHECKING:
    from ..library.bench.run import BenchRow


def bench(parser: Parser, words: list[str]) -> int:
    """Time works of the library, or a kernel of a file where the first word names one. 1 where one failed."""
    if words and _is_file(words[0]):
        from .kernels import bench as kernel_bench

        return kernel_bench(parser, words)
    add = parser.add_argument
    add("works", nargs="*", metavar="WORK", help="works, beginnings or patterns of them; all by default; or"
        " FILE[:KERNEL] of a kernel, whose options FILE.py --help tells")  # fmt: skip
    add("--list", action="store_true", help="the names of the works")
    add(
        "--against",
        metavar="PEERS",
        help="numpy, torch, torch.compile, triton, tilelang, or none",
    )
    add("--target", help="cpu, cuda, ...; auto by default")
    add("--rounds", type=whole(5, 1000), default=7, help="rounds, of equal time for each contender")
    add("--milliseconds", type=whole(10, 60_000), default=500, help="time of one contender, over all rounds")
    add("--seed", type=whole(0, 2**31 - 1), default=0, help="seed of the random arrays")
    add("--configs", metavar="FILE", help="peers' configurations (JSON): name of a row to a list of numbers")
    add("--save", metavar="FOLDER", help="keep each record as a file (.tbz) in a folder")
    return _bench(parser.parse_all(words))


def _is_file(word: str) -> bool:
    path = split(word)[0]
    return path.suffix in (".py", ".ipynb") or path.is_file()


def _bench(options: Any) -> int:
    from ..kernel.available import require_available
    from ..library.bench.arrays import space_on
    from ..library.bench.peers import ON_CARD, ON_HOST, peers_named
    from ..library.bench.run import BenchMethod
    from ..library.bench.session import measured
    from ..library.bench.table import head, line_of, method_of, standing_of
    from ..library.bench.works import CARD_WORKS, HOST_WORKS, chosen
    from ..targets import resolve
    from ..targets.devices import HOST

    manifest, machine = resolve(options.target)
    on_host = manifest.device == HOST
    works = chosen(options.works, HOST_WORKS if on_host else CARD_WORKS)
    if options.list:
        print("\n".join(work.name for work in works))
        return 0
    given = (ON_HOST if on_host else ON_CARD) if options.against is None else _names(options.against)
    names = tuple(peer.name for peer in peers_named(given))
    configs = _configs(options.configs)
    method = BenchMethod(options.rounds, options.milliseconds / 1e3, options.seed, configs)
    # Each row would end in the same words.
    require_available(manifest, "the library", machine.name)
    space_on(manifest.device)
    print(head(machine.name, on_host, names))
    failed = False
    found: list[list[BenchRow]] = []
    for work in works:
        rows = measured(work, options.target, names, method)
        failed = failed or bool(rows[0].record.failure)
        print(line_of(work.name, rows), flush=True)
        _save(rows, options.save)
        found.append(rows)
    if found:
        print("\n".join(filter(None, (standing_of(found), method_of(found[-1])))))
    return 1 if failed else 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name and name != "none")


def _configs(path: str | None) -> dict[str, Any]:
    """Peers' configurations of a file; without one, those that come along."""
    from ..errors import OptionError

    own = Path(__file__).parents[1] / "library" / "bench" / "configs.json"
    where = Path(path) if path else own
    try:
        found: Any = json.loads(where.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OptionError("{path} cannot be read: {why}", path=where, why=error) from None
    if not isinstance(found, dict):
        raise OptionError("{path} holds no configurations", path=where, expected="a table of lists (JSON)")
    return found  # pyright: ignore[reportUnknownVariableType]


def _save(rows: list[BenchRow], folder: str | None) -> None:
    """Each record as a file, named for its work and contender."""
    if folder is None:
        return
    from ..errors import OptionError
    from ..record_files import save

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError("{path} cannot be made: {why}", path=folder, why=error.strerror) from None
    for row in rows:
        name = row.record.kernel.replace("/", "_").replace(" by ", ".")
        save(row.record, Path(folder) / f"{name}.tbz", overwrite=True)
    if sys.stderr.isatty():
        print(f"saved in {folder}", file=sys.stderr)
