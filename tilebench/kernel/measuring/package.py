"""A compiled kernel as plain data, so that another process can load and run it.

The measuring child gets a package, not a compilation: the last IR stage as text, the emitted
texts, the code, and what a launch needs. Loading it parses one stage and asks the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...compiler import Compilation
from ...ir import Extern, parse_function, print_function, walk
from ...ir.sizes import Number, for_sizes
from ...layout import Fragment
from ...passes.analysis.writers import writers
from ...passes.context import Context
from ...record import ParamRecord
from ...recorder import arguments_of
from ...runtime.calls import CallBinder
from ...targets import Build, Executable, resolve_machine

if TYPE_CHECKING:
    from ..kernel import Kernel


@dataclass(frozen=True)
class Package:
    """What a process needs to run a kernel: plain data and bytes only.

    `arguments` are the arrays, for the sizes and scalars in `values`; `order` names all that a call
    passes, `params` all that the compiled function takes, `outputs` the arrays that a call makes itself.
    `tile_text` is what the reference runs, empty where nothing says what the kernel means; `edited` names
    the stages whose texts a person wrote, `written_by` has the parts of a fragment for outputs (`threads`).
    """

    kernel: str
    target: str
    stage_text: str
    texts: dict[str, str]
    code: bytes
    data: dict[str, Any]
    arguments: tuple[ParamRecord, ...]
    values: dict[str, Number]
    order: tuple[str, ...]
    params: tuple[str, ...]
    outputs: tuple[str, ...]
    tile_text: str
    flops: float
    bytes: float
    edited: tuple[str, ...] = ()
    written_by: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])

    @property
    def threads(self) -> dict[str, Fragment]:
        """The fragments by which threads write the outputs, where one does for each."""
        return {name: Fragment(*parts) for name, parts in self.written_by.items()}


def package_of(kernel: Kernel, values: Mapping[str, Number]) -> Package:
    """The package of a kernel for calls with these sizes and scalars."""
    # The child's copies are aligned; only the sizes choose the variant.
    variant = kernel.calls.chooser(values, ())
    return pack(kernel.calls.compiled(variant), values, kernel.output_names)


def pack(
    compilation: Compilation, values: Mapping[str, Any] | None = None, outputs: tuple[str, ...] = ()
) -> Package:
    """The package of a compilation, whose code is made now if it is not yet.

    `values` are the sizes and scalars of its calls by name; `ShapeError` where one is missing. Texts
    travel only where a target loads them, having made no code.
    """
    records = arguments_of(compilation)
    call = CallBinder(compilation.traced.function, records).of(values or {})
    compilation.reach_code()
    build = compilation.build
    assert build is not None  # every manifest has a step
    meaning = compilation.reference
    if meaning is not None and any(isinstance(part, Extern) for part in walk(meaning)):
        meaning = None  # a Python function of this process, which does not travel
    meaning = None if meaning is None else for_sizes(meaning, call.values)
    work = compilation.work(call.values)
    last = next(reversed(compilation.functions))
    plain: dict[str, Any] = {
        k: v for k, v in build.data.items() if isinstance(v, (int, str, float, tuple, bool))
    }
    return Package(
        compilation.traced.name,
        compilation.machine.name,
        compilation.print(last).text,
        {} if build.code else dict(build.texts),
        build.code,
        plain,
        call.records,
        dict(call.values),
        tuple(record.name for record in records),
        tuple(param.name for param in compilation.traced.function.params),
        outputs,
        print_function(meaning).text if meaning is not None else "",
        work.flops if work.known else 0.0,
        work.bytes,
        tuple(edit.stage for edit in compilation.edits),
        {
            name: (fragment.extents, fragment.thread, fragment.value)
            for name, fragment in writers(compilation.functions).items()
        },
    )


def in_order(package: Package, names: Sequence[str], arrays: Sequence[Any]) -> list[Any]:
    """The arguments of these names, from the package's arrays (described or not, in its order) and values."""
    known = {record.name: array for record, array in zip(package.arguments, arrays, strict=True)}
    return [known[name] if name in known else package.values[name] for name in names]


def load_package(package: Package) -> Executable:
    """The executable that a package describes, loaded in this process."""
    manifest, machine = resolve_machine(package.target)
    function = parse_function(package.stage_text, manifest.registry, "<package>")
    build = Build(function, machine, Context(machine))
    build.texts.update(package.texts)
    build.code = package.code
    build.data.update(package.data)
    return manifest.load(build)
