"""What a line of `%%tile` can go on with: kernels, options, and the values that each takes.

`offers` is a function of texts; `tab.py` gives it to a shell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..schedule import offered
from .cell_words import CellWords, Parameter, cell_words
from .options import TILE_LINE, WORDS
from .subject import OFFERED, USUAL

if TYPE_CHECKING:
    from ..kernel import JitFunction


@dataclass(frozen=True)
class Offer:
    """A word that fits: `kind` is option, kernel, parameter, choice, target, stage, file or value."""

    text: str
    kind: str
    says: str = ""


@dataclass(frozen=True)
class Offers:
    """The words that could stand for `fragment`, the end of what was typed, best first."""

    fragment: str
    words: tuple[Offer, ...] = ()


@dataclass(frozen=True)
class _Line:
    """A line as far as it was typed: the words before the last, and the option that the last belongs to."""

    kernel: str
    options: Mapping[str, tuple[str, ...]]
    option: str
    last: str


def offers(before: str, cell: str, kernels: Mapping[str, Sequence[Parameter]]) -> Offers:
    """What a line can go on with.

    `before` is the line up to the cursor with its magic, `cell` the lines below it, `kernels` has the
    parameters of kernel functions that other cells have defined.
    """
    magic = TILE_LINE.match(before)
    if magic is None:
        return Offers("")
    line, words = _read(before[magic.end() :]), cell_words(cell)
    known = {**kernels, **words.kernels}
    last = line.last
    if last.startswith("-") and "=" not in last:
        return _begun(last, _options(line))
    if line.option in ("--with", "--sweep"):
        return _named(line, words, _chosen(line, words, known))
    if line.option:
        fragment = last.rpartition("=")[2] if last.startswith("-") else last
        return _single(line, fragment)
    own = list(words.kernels) or list(known)
    names = [] if line.kernel else [Offer(name, "kernel", _form(name, known[name])) for name in own]
    return _begun(last, [*names, *_options(line)])


def _begun(fragment: str, words: Sequence[Offer]) -> Offers:
    return Offers(fragment, tuple(word for word in words if word.text.startswith(fragment)))


def _form(name: str, parameters: Sequence[Parameter]) -> str:
    return f"{name}({', '.join(p.name + (f'={p.default}' if p.default else '') for p in parameters)})"


def _read(text: str) -> _Line:
    """The words of a line, in the way that `parse_line` takes them; nothing is refused."""
    words = text.split()
    last = words.pop() if words and not text[-1:].isspace() else ""
    options: dict[str, tuple[str, ...]] = {}
    kernel = option = ""
    left = 0
    for word in words:
        if word.startswith("--"):
            name, joined, value = word.partition("=")
            option, left = name, WORDS.get(name, (0, "", ""))[0] - bool(joined)
            options[name] = options.get(name, ()) + ((value,) if joined else ())
        elif left and (left > 0 or "=" in word):
            options[option] = (*options[option], word)
            left -= left > 0
        else:
            kernel, left = word, 0
        option = option if left else ""
    if last.startswith("--") and "=" in last:
        option = last.partition("=")[0]
    return _Line(kernel, options, option, last)


def _options(line: _Line) -> list[Offer]:
    again = [name for name in WORDS if name not in line.options or WORDS[name][0] < 0]
    return [Offer(name, "option", WORDS[name][2]) for name in again]


def _chosen(line: _Line, words: CellWords, known: Mapping[str, Sequence[Parameter]]) -> Sequence[Parameter]:
    """The parameters of the kernel that the line opens."""
    name = line.kernel or next(reversed(list(words.kernels)), "")
    return known.get(name, ())


def _named(line: _Line, words: CellWords, parameters: Sequence[Parameter]) -> Offers:
    """`NAME=` and its values, behind `--with` and `--sweep`."""
    joined = line.last.partition("=")[2] if line.last.startswith("-") else line.last
    swept = line.option == "--sweep"
    name, sign, value = joined.partition("=")
    if sign:
        first, comma, fragment = value.rpartition(",")
        whole = [] if comma or not swept else _whole_sweep(name, parameters)
        taken = first.split(",")
        return _begun(fragment, [*whole, *(o for o in _values(name, parameters) if o.text not in taken)])
    given = {word.partition("=")[0] for word in line.options.get(line.option, ())}
    # What has no default has to be given; what has one is what is swept.
    ordered = sorted(parameters, key=lambda p: (not p.default) if swept else bool(p.default))
    names = [Offer(f"{p.name}=", "parameter", _told(p)) for p in ordered]
    names += [Offer(f"{c.text}=", c.kind, c.says) for c in _choices(words, parameters)] if swept else []
    found = [offer for offer in names if offer.text[:-1] not in given]
    return _begun(joined, [*found, *(_options(line) if not joined else [])])


def _told(parameter: Parameter) -> str:
    if parameter.values:
        return f"one of {', '.join(parameter.values)}"
    return f"{parameter.default} where it is not given" if parameter.default else "needs a value"


def _choices(words: CellWords, parameters: Sequence[Parameter]) -> list[Offer]:
    """The addresses of the schedule's choices, as far as the text of the cell has them."""
    from ..schedule import OPTIONS

    taken = {parameter.name for parameter in parameters}
    of_kind = {"kernel": ("",), "buffer": words.buffers, "gemm": words.products}
    out: list[Offer] = []
    for kind in ("kernel", "loop", "buffer", "gemm"):
        for option in offered(kind):
            names = of_kind.get(kind) or (words.pipelined if option == "num_stages" else words.serial)
            for name in () if kind != "kernel" and kind in of_kind and not of_kind[kind] else names:
                address = f"{name}.{option}" if name else option
                if address not in taken:
                    out.append(Offer(address, "choice", OPTIONS[kind][option].doc))
    return out


def _domain(name: str, parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Values worth trying of a parameter or of a choice of the schedule, as they are typed."""
    parameter = next((p for p in parameters if p.name == name), None)
    if parameter is not None:
        usual = USUAL.get(name, ()) if parameter.default.isdigit() or not parameter.default else ()
        return parameter.values or tuple(map(str, usual)) or _by_kind(parameter)
    option = name.rpartition(".")[2]
    found = next((values for (_, of), values in OFFERED.items() if of == option), ())
    return tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in found)


def _by_kind(parameter: Parameter) -> tuple[str, ...]:
    """Values of a parameter by what it is called or holds: dtypes, switches, its default."""
    from ..language.tracing.expressions import WORDS as DTYPES

    if "dtype" in parameter.name:
        return tuple(DTYPES)
    if parameter.default in ("True", "False"):
        return ("true", "false")
    return (parameter.default.strip("'\""),) if parameter.default else ()


def _values(name: str, parameters: Sequence[Parameter]) -> list[Offer]:
    return [Offer(value, "value") for value in _domain(name, parameters)]


def _whole_sweep(name: str, parameters: Sequence[Parameter]) -> list[Offer]:
    domain = _domain(name, parameters)
    return [Offer(",".join(domain), "value", "all of them")] if len(domain) > 1 else []


def _single(line: _Line, fragment: str) -> Offers:
    """The word behind an option that takes one."""
    if line.option == "--target":
        from .front.controls import targets_offered

        return _begun(fragment, [Offer(name, "target") for name in ("auto", *targets_offered(None))])
    if line.option == "--stages":
        before, _, part = fragment.rpartition(",")
        names = [name for name in _stages(line) if name not in before.split(",")]
        return _begun(part, [Offer(name, "stage") for name in names])
    if line.option == "--schedule":
        return _begun(fragment, _files(fragment))
    return Offers(fragment)


def _stages(line: _Line) -> list[str]:
    """The stages of the target that the line names, of every target where it names none."""
    from ..passes.pipeline import COMMON
    from ..targets import manifest, names

    wanted = next(iter(line.options.get("--target", ())), "").partition(":")[0]
    chosen = [name for name in names() if name == wanted] or names()
    roads = [row.name for name in chosen for row in (*manifest(name).road, *manifest(name).steps)]
    return list(dict.fromkeys(["source", "tile", *(row.name for row in COMMON), *roads]))


def _files(fragment: str) -> list[Offer]:
    """Schedule files and folders that begin so, below the working directory or where the path leads."""
    folder = fragment[: fragment.rfind("/") + 1]
    try:
        entries = sorted(Path(folder or ".").iterdir())
    except OSError:
        return []
    visible = [entry for entry in entries if not entry.name.startswith(".")]
    files = [Offer(folder + e.name, "file") for e in visible if e.suffix == ".toml"]
    return files + [Offer(f"{folder}{e.name}/", "file") for e in visible if e.is_dir()]


def kernels_of(space: Mapping[str, Any]) -> dict[str, tuple[Parameter, ...]]:
    """The kernel functions of a namespace with their parameters."""
    from ..kernel import JitFunction

    kernels = {name: value for name, value in space.items() if isinstance(value, JitFunction)}
    return {name: _parameters(value) for name, value in kernels.items() if not name.startswith("_")}


def _parameters(kernel: JitFunction) -> tuple[Parameter, ...]:
    defaults, knobs = kernel.defaults(), kernel.knobs
    return tuple(
        Parameter(
            name,
            repr(defaults[name]) if name in defaults else "",
            tuple(repr(value) for value in knobs[name].values) if name in knobs else (),
        )
        for name in kernel.signature.parameters
    )
