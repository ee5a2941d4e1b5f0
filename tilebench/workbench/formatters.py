"""How IPython shows our values: a kernel, a compilation, a measurement, a check's report, an error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ..errors import TileError

Bundle = dict[str, Any]

# Classes by module and name: IPython then imports nothing before such a value is shown.
_FORMS: tuple[tuple[str, str, str], ...] = (
    ("tilebench.kernel.kernel", "Kernel", "_kernel"),
    ("tilebench.record", "CompileRecord", "_record"),
    ("tilebench.record", "BenchRecord", "_saved"),
    ("tilebench.record", "RunRecord", "_run"),
    ("tilebench.reference.check", "CheckReport", "_report"),
    ("tilebench.sweeps.result", "Sweep", "_sweep"),
    ("tilebench.errors.tile_error", "TileError", "_error"),
)


def _kernel(kernel: Any, **_: Any) -> Bundle:
    from . import tiers
    from .bundle import RecordView, mime_bundle

    shown = tiers.stages_shown(kernel, ())
    record = tiers.static(kernel, shown)
    with contextlib.suppress(
        TileError
    ):  # the target's compiler is missing or refuses: the static picture stands
        record = tiers.compiled(kernel, shown)
    return mime_bundle(RecordView(record, shared_limit=tiers.shared_limit(kernel)))


def _record(record: Any, **_: Any) -> Bundle:
    from .bundle import RecordView, mime_bundle

    return mime_bundle(RecordView(record))


def _saved(saved: Any, **_: Any) -> Bundle:
    from .bundle import RecordView, mime_bundle

    return mime_bundle(RecordView(saved.compilation, saved.runs))


def _run(run: Any, **_: Any) -> Bundle:
    from .parts import run_bundle

    return run_bundle([run])


def _report(report: Any, **_: Any) -> Bundle:
    from .check_view import check_bundle

    return check_bundle(report)


def _sweep(sweep: Any, **_: Any) -> Bundle:
    from .sweep_view import sweep_bundle

    return sweep_bundle(sweep)


def _error(error: Any, **_: Any) -> Bundle:
    from .parts import error_bundle

    return error_bundle(error)


def _plain_error(error: Any, printer: Any, _: bool) -> None:
    printer.text(error.explain())


def _formatter(shell: Any) -> Any:
    return shell.display_formatter.mimebundle_formatter


def _plain(shell: Any) -> Any:
    return shell.display_formatter.formatters["text/plain"]


def register(shell: Any) -> None:
    """Give IPython the form of each class."""
    makers: dict[str, Callable[..., Bundle]] = {
        "_kernel": _kernel, "_record": _record, "_saved": _saved, "_run": _run,
        "_report": _report, "_error": _error,
        "_sweep": _sweep,
    }  # fmt: skip
    for module, name, form in _FORMS:
        _formatter(shell).for_type_by_name(module, name, makers[form])
    # IPython has a printer for every exception, which comes before a bundle's text.
    _plain(shell).for_type_by_name(*_FORMS[-1][:2], _plain_error)


def unregister(shell: Any) -> None:
    """Take the forms away."""
    for formatter in (_formatter(shell), _plain(shell)):
        for module, name, _ in _FORMS:
            formatter.deferred_printers.pop((module, name), None)
            for cls in [t for t in formatter.type_printers if (t.__module__, t.__name__) == (module, name)]:
                formatter.type_printers.pop(cls)
