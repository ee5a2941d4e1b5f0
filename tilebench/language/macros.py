"""Functions that are written into the kernel where they are called: `@T.macro`, and their annotations."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import LanguageError, file_lines, kept_lines
from .annotations import TensorSpec
from .dynamic import global_shape
from .tracing.builder import in_trace, shown
from .tracing.dtype_words import plain

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike, Shape


_C = TypeVar("_C")


class Macro:
    """A function whose statements stand in the kernel wherever it is called.

    `scope` holds the names around its definition, for annotations that are text; `texts` what stood in its
    file when Python read it.
    """

    def __init__(self, function: Callable[..., Any], scope: dict[str, Any]) -> None:
        self.function = function
        self.scope = scope
        self.texts = _texts_of(function)
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """A macro in a class is a method."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **keys: Any) -> Any:
        return in_trace(f"the macro {self.__name__}").inline(self, args, keys)

    def __repr__(self) -> str:
        return f"the macro {self.__name__}"


def _texts_of(function: Callable[..., Any]) -> tuple[Sequence[str], ...]:
    """The texts that a function may be from, as they stand when it is made."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    found = (file_lines(file, getattr(function, "__globals__", None)), kept_lines(file))
    return tuple(text for text in found if text)


def macro(function: Callable[..., Any] | None = None) -> Any:
    """Mark a function whose statements are written into the kernel where it is called.

    It takes any Python values, buffers, regions and functions, may allocate, loop and branch as a kernel
    does, and may end with `return value`. Numbers are taken as they are at the call; a parameter annotated
    `T.Ref` is the variable or element itself, which the macro may assign. It may stand outside the kernel's
    function, inside it, or in the kernel. Raises `LanguageError` for what is no Python function.
    """
    if function is None:
        return macro
    if not hasattr(function, "__code__"):
        raise LanguageError("@T.macro marks a function, found {kind}", kind=type(function).__name__)
    return Macro(function, dict(sys._getframe(1).f_locals))  # pyright: ignore[reportPrivateUsage]


def inline(function: Callable[..., Any]) -> Any:
    """`@T.macro` by the name that TileLang has for methods of a class."""
    if not hasattr(function, "__code__"):
        raise LanguageError("@T.inline marks a function, found {kind}", kind=type(function).__name__)
    return Macro(function, dict(sys._getframe(1).f_locals))  # pyright: ignore[reportPrivateUsage]


def meta_class(cls: type[_C]) -> type[_C]:
    """Mark a class of which kernels make objects, with scalars of `T.alloc_var` in their attributes.

    Its methods that store to an element, `self.x[0] = ...`, are written into the kernel where they are
    called, as `@T.inline` does; those that only compute run in Python, as do `__init__` and properties
    and static methods. Raises `LanguageError` for what is no class.
    """
    if not isinstance(cls, type):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own
        raise LanguageError("@T.meta_class marks a class, found {kind}", kind=type(cls).__name__)
    scope = dict(sys._getframe(1).f_locals)  # pyright: ignore[reportPrivateUsage]
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("__") and _stores(method):
            setattr(cls, name, Macro(method, scope))
    return cls


def _stores(method: Callable[..., Any]) -> bool:
    """Whether a method assigns to an element of something; True where nobody can read it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, SyntaxError, TypeError):
        return True
    targets = [target for node in ast.walk(tree) for target in _targets(node)]
    return any(isinstance(part, ast.Subscript) for target in targets for part in ast.walk(target))


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []


class Ref:
    """Annotation of a macro's parameter that is passed by reference: `def add(x: T.Ref, n): x = x + n`.

    The argument is a variable of `T.alloc_var`, an element or a region.
    """


@dataclass(frozen=True)
class TileSpec:
    """What a macro's parameter is said to be: a tile of this shape and dtype."""

    word: str
    shape: tuple[Any, ...]
    dtype: Any


def _tile(word: str, shape: Shape, dtype: DTypeLike) -> TileSpec:
    return TileSpec(word, global_shape(shape, word), plain(dtype))


def FragmentBuffer(shape: Shape, dtype: DTypeLike = "float32", scope: str = "local.fragment") -> TileSpec:
    """Annotation of a macro's parameter that is a fragment: `acc: T.FragmentBuffer((M, N), "float32")`."""
    return _tile("T.FragmentBuffer", shape, dtype)


def SharedBuffer(shape: Shape, dtype: DTypeLike = "float32", scope: str = "shared.dyn") -> TileSpec:
    """Annotation of a macro's parameter that is a shared tile: `S: T.SharedBuffer((M, K), "float16")`."""
    return _tile("T.SharedBuffer", shape, dtype)


def LocalBuffer(shape: Shape, dtype: DTypeLike = "float32", scope: str = "local") -> TileSpec:
    """Annotation of a macro's parameter that is a thread's array: `r: T.LocalBuffer((8,), "float16")`."""
    return _tile("T.LocalBuffer", shape, dtype)


def check_argument(name: str, said: TileSpec | TensorSpec, given: Any) -> None:
    """Raise `LanguageError` where a macro's argument is not the array that its parameter is said to be."""
    shape, dtype = getattr(given, "shape", None), getattr(given, "dtype", None)
    if shape is None or dtype is None:
        raise LanguageError(
            "the parameter {name} is said to be an array, found {text}", name=name, text=shown(given)
        )
    sizes = zip(said.shape, shape, strict=False)
    wrong = len(shape) != len(said.shape) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in sizes
    )
    if wrong or plain(dtype) != said.dtype:
        raise LanguageError(
            "the parameter {name} is said to have another shape or dtype", name=name,
            expected="{shape} of {dtype}", found="{other} of {kind}", shape=list(said.shape),
            dtype=said.dtype, other=list(shape), kind=plain(dtype),
            hint="correct the annotation, or leave it out: a macro takes any array",
        )  # fmt: skip


__all__ = ["FragmentBuffer", "LocalBuffer", "Ref", "SharedBuffer", "inline", "macro", "meta_class"]
