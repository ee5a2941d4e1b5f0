"""What `jit` decorates is a plain function; anything else is told apart at its line, with a cure."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.frontend.cell import run_cell
from tests.kernels import add_kernel
from tilebench.errors import ArgumentError


class Callable:
    def __call__(self) -> None: ...

    def method(self, N: int = 4) -> Any:
        return plain.function(N)


@tilebench.jit(target="cpu")
def plain(N: int = 4) -> Any:
    @T.prim_func
    def main(C: T.Tensor((N,), "float32")):
        with T.Kernel(1):
            T.fill(C[0:N], 3.0)

    return main


async def waits() -> None: ...


async def waits_often() -> Any:
    yield 1


def yields() -> Any:
    yield 1


REFUSED = {
    "async": (waits, "waits is an async function", "write `def`"),
    "async generator": (waits_often, "waits_often is an async function", "write `def`"),
    "generator": (yields, "yields is a generator", "return the @T.prim_func"),
    "lambda": (lambda: None, "<lambda> is a lambda", "write a `def`"),
    "static method": (staticmethod(yields), "a static method", "put @staticmethod above @tilebench.jit"),
    "class method": (classmethod(yields), "a class method", "take @classmethod away"),
    "property": (property(yields), "a property", "outside the class"),
    "class": (Callable, "a class", "decorate a function"),
    "object": (Callable(), "an object of class Callable", "pass the object to it"),
    "partial": (functools.partial(yields), "a functools.partial", "give the arguments in the call"),
    "built-in": (len, "the built-in builtin_function_or_method", "Python text"),
    "cached": (functools.lru_cache(yields), "inside a _lru_cache_wrapper", "next to the function"),
    "prim func": (T.prim_func(yields), "a @T.prim_func", "defines this one and returns it"),
    "kernel function": (plain, "the kernel function plain", ".using(target=..., ...)"),
    "number": (3, "found 3", "Python text"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("options", [{}, {"target": "cpu"}])
def test_no_plain_function(case: str, options: dict[str, Any]) -> None:
    given, what, cure = REFUSED[case]
    with pytest.raises(ArgumentError) as caught:
        tilebench.jit(**options)(given) if options else tilebench.jit(given)
    text = str(caught.value)
    assert what in text
    assert cure in text
    place = caught.value.place
    assert place is not None
    assert place.file == __file__


def value(kernel: Any) -> float:
    out = np.zeros(4, np.float32)
    kernel(out)
    return float(out[0])


def test_functions_in_a_class() -> None:
    space = run_cell(
        "import tilebench\nfrom tests.kernel.test_decorated import plain\nclass Kernels:\n"
        "    @tilebench.jit(target='cpu')\n    def one(N=4):\n        return plain.function(N)\n\n"
        "    @staticmethod\n    @tilebench.jit(target='cpu')\n    def two(N=4):\n"
        "        return plain.function(N)\n"
    )
    kernels = space["Kernels"]
    assert value(kernels.one(4)) == value(kernels.two(4)) == value(kernels().two(4)) == 3.0
    with pytest.raises(ArgumentError, match=r"Kernels\.one does not pass the object on") as caught:
        kernels().one(4)
    assert "put @staticmethod above @tilebench.jit" in str(caught.value)
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line) == ("cell", 5)


def test_a_bound_method_is_a_function() -> None:
    assert value(tilebench.jit(target="cpu")(Callable().method)(4)) == 3.0


def test_a_word_of_the_function_is_told_where_a_kernel_is_asked() -> None:
    kernel = add_kernel.using(target="null")(8, 8)
    with pytest.raises(
        AttributeError, match=r"a tilebench kernel has no using; .* function\.using\(\.\.\.\)"
    ):
        kernel.using(target="cpu")
    with pytest.raises(AttributeError, match=r"a tilebench kernel has no usin$"):
        kernel.usin  # noqa: B018
    assert not hasattr(kernel, "__array__")
