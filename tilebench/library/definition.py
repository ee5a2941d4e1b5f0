"""What an operator of the library is: plain values, from which calls, checks and measurements follow.

A call goes this way: its arrays are bound to the operator's dimensions (`binding.py`) and give a `Problem`,
which is sizes, a dtype and options; the problem and the machine choose a rule of the operator's schedule
files (`schedules.py`), whose parameters with those of the problem make the kernel (`calls.py`), which is
kept. A kernel function says what is computed, in the tile language; tiles, threads and stages are the files'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from .near import Exact

if TYPE_CHECKING:
    from ..kernel import JitFunction

FLOATS = ("float16", "bfloat16", "float32")
# The first of an array's dimensions where it stands for any number of them.
ANY = "*"


@dataclass(frozen=True)
class ArrayArgument:
    """An array that a call passes.

    `dims` names its extents; `"*M"`, first, stands for all before the others, which the kernel sees as one.
    `dtypes` are those it may have; without any it has that of the first array. `orders` are the orders of
    its axes in memory that a kernel reads, row-major first; the kernel's parameter `NAME_order` says which.
    An argument with `by_dims` is one number for all, or one for each of `dims`, in whatever shape: the
    parameter `NAME_each` says which. `drawn` makes values of one that not any numbers are, for tests and
    measurements. Where a later argument has dtypes of its own, `NAME_dtype` is its.
    """

    name: str
    dims: tuple[str, ...]
    dtypes: tuple[str, ...] = ()
    optional: bool = False
    orders: tuple[tuple[int, ...], ...] = ()
    doc: str = ""
    by_dims: bool = False
    drawn: Callable[[Mapping[str, int], Any], Any] | None = None

    def dtype_in(self, problem: Problem) -> str:
        """The dtype that it has in a problem."""
        if not self.dtypes or problem.dtype in self.dtypes:
            return problem.options.get(f"{self.name}_dtype", problem.dtype)
        return self.dtypes[0]


@dataclass(frozen=True)
class OptionArgument:
    """A number or word that a call passes by name. `words` are those that it can be, `least` the least of
    whole numbers."""

    name: str
    default: Any
    words: tuple[str, ...] = ()
    doc: str = ""
    least: int | None = None


@dataclass(frozen=True)
class Problem:
    """One problem of an operator: sizes by dimension, the dtype, options, and what arrays there are.

    `options` holds also, for an optional array, `has_NAME`, for one with several orders, `NAME_order`, and
    what else `ArrayArgument` names.
    """

    sizes: Mapping[str, int]
    dtype: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def values(self) -> dict[str, Any]:
        """All of it by name: what the rules of a schedule file can ask for."""
        from ..ir.dtypes import dtype_of

        return {**self.sizes, "dtype": self.dtype, "bits": dtype_of(self.dtype).bits, **self.options}


@dataclass(frozen=True)
class Effort:
    """What a problem takes at least: operations, and bytes that go to and from memory."""

    flops: float = 0.0
    bytes: float = 0.0


def size_of(problem: Problem) -> int:
    """Bytes of an element."""
    from ..ir.dtypes import dtype_of

    return dtype_of(problem.dtype).bits // 8


Reference = Callable[[Any, Mapping[str, Any], Problem], Exact]


# An index into the result, indices into arrays by name, and the problem that these are.
Part = tuple[Any, Mapping[str, Any], Problem]


def whole(problem: Problem) -> Iterable[Part]:
    """A problem as one part."""
    return ((..., {}, problem),)


def as_they_are(problem: Problem, parameters: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    """No array is seen otherwise than by its dimensions."""
    return {}


def anything(problem: Problem) -> None:
    """What fits each argument fits."""


@dataclass(frozen=True)
class Operator:
    """An operator: its name, its kernel, its arguments and result, what is right, and what it takes.

    `kernel` is a kernel function of the problem's sizes and options and of what the schedule files choose;
    its arrays are the arguments in order and then the result. Sizes in `symbolic` come with each call, so
    that one compiled kernel serves all of them. `reference(xp, arrays, problem)` gets the arrays in float64
    by name, in the module `xp`. `effort(problem)` counts each array once. `fixed` are parameters of a kernel
    that several operators share, and `absent` names arrays of it, behind the arguments, that this one has
    not. `divides` has pairs of dimensions of which the first divides the second.
    `parts` takes a problem apart for comparisons whose work would not fit memory. `seen(problem, parameters)`
    has the shapes of arrays that a kernel of these parameters sees otherwise than by their dimensions.
    `accepts(problem)` raises for what fits each argument and not all of them together.
    """

    name: str
    kernel: JitFunction
    arguments: tuple[ArrayArgument, ...]
    result: ArrayArgument
    reference: Reference
    effort: Callable[[Problem], Effort]
    options: tuple[OptionArgument, ...] = ()
    symbolic: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    absent: tuple[str, ...] = ()
    parts: Callable[[Problem], Iterable[Part]] = whole
    divides: tuple[tuple[str, str], ...] = ()
    seen: Callable[[Problem, Mapping[str, Any]], Mapping[str, tuple[int, ...]]] = as_they_are
    accepts: Callable[[Problem], None] = anything

    def __repr__(self) -> str:
        return f"<tilebench operator {self.name}>"

    def result_dtype(self, problem: Problem) -> str:
        """What the elements of the result are: what a call asks for, the operator's own, or the arrays'."""
        return problem.options.get("out_dtype") or (*self.result.dtypes, problem.dtype)[0]

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of all dimensions, in the order of the arguments."""
        arrays = (*self.arguments, self.result)
        return tuple(dict.fromkeys(dim.lstrip(ANY) for array in arrays for dim in array.dims))

    def problem(self, dtype: str = "float16", absent: tuple[str, ...] = (), **values: Any) -> Problem:
        """The problem of these sizes and options by name; optional arrays are there unless `absent`."""
        given = {option.name: option.default for option in self.options}
        given |= {f"has_{a.name}": a.name not in absent for a in self.arguments if a.optional}
        arrays = (*self.arguments, self.result)
        given |= {f"{a.name}_order": 0 for a in arrays if a.orders}
        given |= {f"{a.name}_each": False for a in arrays if a.by_dims}
        given |= {f"{a.name}_dtype": dtype for a in self.arguments[1:] if {*a.dtypes} & {*arrays[0].dtypes}}
        missing = [dim for dim in self.dims if dim not in values]
        if missing:
            raise OptionError(
                "a problem of {operator} needs {missing}", operator=self.name, missing=", ".join(missing),
                expected="a size for each of " + ", ".join(self.dims),
            )  # fmt: skip
        sizes = {dim: values.pop(dim) for dim in self.dims}
        unknown = values.keys() - given.keys()
        if unknown:
            raise OptionError(
                "{operator} has no option {name}", operator=self.name, name=min(unknown),
                expected=", ".join(given) or "none",
            )  # fmt: skip
        return Problem(sizes, dtype, {**given, **values})


@dataclass(frozen=True)
class KernelStep:
    """A kernel of an operation that takes several in turn: its name, by which schedule files are found, and
    what `Operator` says of `symbolic` and `fixed`."""

    name: str
    kernel: JitFunction
    symbolic: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])


__all__ = [
    "ANY", "FLOATS", "ArrayArgument", "Effort", "KernelStep", "Operator", "OptionArgument", "Problem",
    "Reference", "size_of",
]  # fmt: skip
