"""`tilebench` on the command line: `lab`, `demo`, `show`, `run`, `bench`, `targets`, `help`, `doctor`.

Each command is a file, imported when it is called: a stage is printed in about the time that
compiling it takes, and nothing of Jupyter is loaded for it.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

# name: (module, what it does)
COMMANDS: dict[str, tuple[str, str]] = {
    "lab": (".lab", "JupyterLab with the quickstart"),
    "demo": (".lab", "run the quickstart without a browser; write one HTML report"),
    "show": (".kernels", "print a stage of a kernel"),
    "run": (".kernels", "run a kernel on random arrays; --check compares, --bench times"),
    "bench": (".bench", "time the operator library beside other libraries, or a kernel of a file"),
    "targets": (".targets", "the targets there are, and what one of them has code for"),
    "help": (".words", "the words of the language (help T.copy), and pages: help slower-than-expected"),
    "doctor": (".doctor", "what this machine has, and what is missing"),
}


class Parser(argparse.ArgumentParser):
    """An argument parser that tells what is wrong as all of tilebench does."""

    def error(self, message: str) -> NoReturn:
        from ..errors import OptionError

        raise OptionError(
            "{message}",
            message=message,
            usage=self.format_usage().removeprefix("usage: ").strip(),
            hint="{usage}",
        )

    def parse_all(self, words: Sequence[str]) -> argparse.Namespace:
        """The options. Raises `OptionError` for one that there is not, with the nearest."""
        found, rest = self.parse_known_args(words)
        if rest:
            from ..errors import OptionError, nearest

            known = [
                name for action in self._actions for name in action.option_strings if name.startswith("--")
            ]
            close = nearest(rest[0].partition("=")[0], known, limit=1)
            raise OptionError(
                "{command} does not know {word}", command=self.prog, word=rest[0], options=", ".join(known),
                hint=(f"did you mean {close[0]}? " if close else "") + "options: {options}",
            )  # fmt: skip
        return found


def whole(least: int, most: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number from `least` to `most`."""

    def read(text: str) -> int:
        number = int(text) if text.isdecimal() and len(text) < 20 else least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return number

    return read


def overview() -> str:
    """What `tilebench` without a command prints."""
    rows = "\n".join(f"  {name:<8} {what}" for name, (_, what) in COMMANDS.items())
    return f"usage: tilebench COMMAND [...]\n\n{rows}\n\n`tilebench COMMAND --help` tells its options."


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit status, 2 for what is the caller's to mend. `--help` raises `SystemExit`."""
    given = list(sys.argv[1:] if words is None else words)
    if not given or given[0] in ("-h", "--help"):
        print(overview())
        return 0 if given else 2
    if given[0] in ("-V", "--version"):
        from .. import __version__

        print(f"tilebench {__version__}")
        return 0
    try:
        return _dispatch(given[0], given[1:])
    except BrokenPipeError:  # `tilebench show ... | head`
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _tell(error)


def _dispatch(name: str, rest: list[str]) -> int:
    if name not in COMMANDS:
        from ..errors import OptionError, nearest

        close = nearest(name, list(COMMANDS), limit=1)
        raise OptionError(
            "there is no command {name!r}", name=name,
            hint=(f"did you mean {close[0]}? " if close else "") + "commands: " + ", ".join(COMMANDS),
        )  # fmt: skip
    module: Any = importlib.import_module(COMMANDS[name][0], __name__)
    return int(getattr(module, name)(Parser(prog=f"tilebench {name}", description=COMMANDS[name][1]), rest))


def _tell(error: Exception) -> int:
    """Print an error to stderr as its reader should see it."""
    from .. import settings
    from ..errors import InternalError, TileError

    if not isinstance(error, TileError):
        if settings.raise_raw():
            raise error
        error = InternalError(
            "{kind}: {why}", kind=type(error).__name__, why=str(error) or "no message",
            hint="this is a fault of tilebench; TILEBENCH_RAISE_RAW=1 shows where it happened",
        )  # fmt: skip
    print(error.explain(color=sys.stderr.isatty()), file=sys.stderr)
    return 2
