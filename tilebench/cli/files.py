"""Kernels of Python files, as the command line names them: `FILE` or `FILE:KERNEL`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LanguageError, OptionError, Place, nearest

if TYPE_CHECKING:
    from ..kernel import JitFunction


def split(text: str) -> tuple[Path, str]:
    """`file.py:name` as a path and a name (empty when there is none). A drive's colon is part of the path."""
    path, sign, name = text.rpartition(":")
    if sign and name.isidentifier() and not Path(text).exists():
        return Path(path), name
    return Path(text), ""


def load_kernel(text: str) -> JitFunction:
    """The kernel function that `FILE[:KERNEL]` means: the last of the file without a name.

    Raises `OptionError` when there is no such file or kernel, `LanguageError` when the file is not
    Python or fails as it is imported.
    """
    from ..kernel import JitFunction

    path, name = split(text)
    if path.is_dir():
        raise OptionError("{path} is a folder", path=path, hint="name a Python file with a kernel")
    if not path.is_file():
        close = nearest(path.name, [each.name for each in path.parent.glob("*.py")], limit=1)
        close = [f"{path.name}.py"] if path.with_name(f"{path.name}.py").is_file() else close
        hint = f"did you mean {close[0]}?" if close and path.name else ""
        raise OptionError("there is no file {path}", path=path, hint=hint)
    if path.suffix != ".py":
        raise OptionError(
            "{path} is no Python file", path=path, expected="a file whose name ends in .py",
            hint="a notebook is run by JupyterLab: tilebench lab" if path.suffix == ".ipynb" else "",
        )  # fmt: skip
    known = {key: each for key, each in _load(path).items() if isinstance(each, JitFunction)}
    if name:
        if name in known:
            return known[name]
        close = nearest(name, list(known), limit=1)
        raise OptionError(
            "{path} has no kernel {name}", path=path, name=name, known=", ".join(known) or "none",
            hint=(f"did you mean {close[0]}? " if close else "") + "kernels: {known}",
        )  # fmt: skip
    if not known:
        raise OptionError(
            "{path} has no kernel", path=path, hint="a kernel function stands below @tilebench.jit"
        )
    here = [each for each in known.values() if Path(each.function.__code__.co_filename) == path.resolve()]
    return max(here or list(known.values()), key=lambda kernel: kernel.function.__code__.co_firstlineno)


def _load(path: Path) -> dict[str, object]:
    """The names of a file, run as a module of its own with its folder on the path."""
    from ..frontend import check_syntax, read_source

    full = path.resolve()
    check_syntax(read_source(full), str(full))
    spec = importlib.util.spec_from_file_location(f"_tilebench_file_{full.stem}", full)
    assert spec is not None
    assert spec.loader is not None  # as of every name that ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(full.parent))
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        from ..errors import TileError

        if isinstance(error, TileError):
            raise
        line = _line_in(error, str(full))
        raise LanguageError(
            "{path} failed as it was imported: {kind}: {why}", at=Place(str(full), line) if line else None,
            path=path, kind=type(error).__name__, why=str(error) or "no message",
        ) from error  # fmt: skip
    finally:
        sys.path.remove(str(full.parent))
    return vars(module)


def _line_in(error: BaseException, file: str) -> int:
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
