"""The files of a saved kernel: their texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import OptionError
from ...record_files import write_files
from .plan import SavePlan, plan_of, schedule_of
from .surroundings import literal_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..kernel import Kernel


def kernel_files(plan: SavePlan, path: Path, main: Sequence[str]) -> dict[Path, str | bytes]:
    """A Python file that defines `kernel()` and ends in `main`, with the files that it reads."""
    schedule = schedule_of(plan)
    toml = path.with_suffix(".toml")
    texts = {stage: path.with_suffix(f".{stage}.txt") for stage, _ in plan.edits}
    parts = [_head(plan), _definition(plan), _settings(plan, toml if schedule else None)]
    parts += [_maker(plan, toml if schedule else None, texts), "\n".join(main) + "\n"]
    files: dict[Path, str | bytes] = {
        path: parts[0] + "\n" + "\n\n".join(part.strip() + "\n" for part in parts[1:])
    }
    if schedule:
        files[toml] = schedule
    for stage, text in plan.edits:
        files[texts[stage]] = text
    return files


def _head(plan: SavePlan) -> str:
    lines = [f'"""The kernel {plan.name} for {plan.target}, saved from tilebench. It needs nothing else.']
    if plan.why:
        lines += ["", f"It stands by its stage {plan.stage}: {plan.why}.".replace('"""', "'''")]
    if plan.edits:
        names = " and ".join(stage for stage, _ in plan.edits)
        lines += ["", f"The text of {names} was edited by hand: it is not what the compiler makes."]
    lines += ['"""'] if len(lines) > 1 else []
    return ("\n".join(lines) if len(lines) > 1 else lines[0] + '"""') + "\n"


def _definition(plan: SavePlan) -> str:
    own = plan.definition or "import tilebench\n"
    future = "from __future__ import annotations\n"
    lines = ["import sys", "from pathlib import Path"]
    has = set(own.splitlines())
    head = "\n".join(line for line in lines if line not in has)
    if own.startswith(future):
        return f"{future}\n{head}\n\n{own[len(future) :].lstrip()}"
    return f"{head}\n\n{own}"


def _settings(plan: SavePlan, toml: Path | None) -> str:
    lines = [f"TARGET = {plan.target!r}".replace("'", '"')]
    if plan.definition:
        lines.append(f"PARAMETERS = {_dict(plan.given)}")
    if plan.sizes:
        lines.append(f"SIZES = {_dict(plan.sizes)}")
    lines.append("HERE = Path(__file__).resolve().parent")
    return "\n".join(lines) + "\n"


def _dict(values: Mapping[str, Any]) -> str:
    """`dict(M=64, dtype="float16")`, a line for each where they are long."""
    parts = [f"{name}={literal_of(value)}" for name, value in values.items()]
    text = f"dict({', '.join(parts)})"
    return text if len(text) < 88 else "dict(\n    " + ",\n    ".join(parts) + ",\n)"


def _maker(plan: SavePlan, toml: Path | None, texts: Mapping[str, Path]) -> str:
    """The function `kernel`."""
    lines = [
        "def kernel(target=TARGET):",
        '    """The kernel as it was saved; for another target if one is given."""',
    ]
    if plan.definition:
        changes = ["target=target"]
        changes += [f'schedule=HERE / "{toml.name}"'] if toml is not None else []
        changes += [f"out_idx={list(plan.outputs)!r}"] if plan.outputs else []
        made = f"{plan.function}.using({', '.join(changes)}).compile(**PARAMETERS)"
    else:
        made = f'tilebench.compile_from("{plan.stage}", STAGE, target=target)'
    if plan.edits:
        lines.append(f"    made = {made}")
    for stage, _ in plan.edits:
        lines.append(f'    made = made.edited("{stage}", (HERE / "{texts[stage].name}").read_text("utf-8"))')
    lines.append(f"    return {'made' if plan.edits else made}{'.at(SIZES)' if plan.sizes else ''}")
    body = "\n".join(lines) + "\n"
    return body if plan.definition else _quoted("STAGE", plan.text) + "\n\n" + body


def _quoted(name: str, text: str) -> str:
    """An assignment of a text of several lines."""
    if '"""' in text or "\\" in text:
        return f"{name} = {text!r}\n"
    return f'{name} = """\\\n{text.rstrip()}\n"""\n'


def saved_kernel(kernel: Kernel, path: Path, tuned: Sequence[str], overwrite: bool) -> tuple[Path, ...]:
    """See `Kernel.save`."""
    if path.suffix not in ("", ".py"):
        raise OptionError(
            "a kernel is saved as a Python file, and {path} ends in {end}", path=path, end=path.suffix,
            hint="NAME.py with NAME.toml beside it, or NAME.tbz; save_program writes NAME.cu",
        )  # fmt: skip
    plan = plan_of(kernel, tuned)
    main = _EDITED_MAIN if plan.edits else _RUN_MAIN
    return write_files(kernel_files(plan, path.with_suffix(".py"), main), overwrite)


_END = (
    "    report = made.check()",
    "    print(report)",
    "    print(made.bench())",
    "    sys.exit(0 if report.ok else 1)",
)
_RUN_MAIN = (
    'if __name__ == "__main__":',
    "    # For another target: python FILE cpu. A target that cannot run here gives way to one that can.",
    "    target, note = tilebench.target_here(sys.argv[1] if len(sys.argv) > 1 else TARGET)",
    "    if note:",
    "        print(note)",
    "    made = kernel(target)",
    *_END,
)
_EDITED_MAIN = (
    'if __name__ == "__main__":',
    "    made = kernel()",
    "    note = tilebench.target_here(TARGET)[1]",
    "    if note:  # an edited text is of its own target alone",
    "        made.reach_code()",
    '        sys.exit(note.partition(":")[0] + ": it was compiled, and not run")',
    *_END,
)
