"""Values from outside a kernel, of every kind: a change of one makes another kernel, and is never missed."""

from __future__ import annotations

import enum
import functools
import sys
import types
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.frontend.cell import run_cell
from tilebench.errors import ArgumentError, TargetError
from tilebench.kernel.snapshot.outside import MOST_OBJECTS, Outside

CELL = """\
import tilebench
import tilebench.language as T

{head}

@tilebench.jit(target="cpu")
def made({parameters}):
    @T.prim_func
    def main(C: T.Tensor((1,), "float32")):
        with T.Kernel(1):
            C[0] = {value}
    return main
"""


def cell(value: str, head: str = "", parameters: str = "", **names: Any) -> dict[str, Any]:
    space = run_cell(CELL.format(value=value, head=head, parameters=parameters))
    space.update(names)
    return space


def result(space: dict[str, Any], *arguments: Any) -> float:
    out = np.zeros(1, np.float32)
    space["made"](*arguments)(out)
    return float(out[0])


class Level(enum.Enum):
    LOW = 2
    HIGH = 3


@dataclass
class Config:
    scale: float = 2.0


class Slotted:
    __slots__ = ("scale",)

    def __init__(self, scale: float) -> None:
        self.scale = scale


Pair = namedtuple("Pair", "one two")

# What the name V holds, what the kernel reads of it, and what V holds then.
REBOUND: dict[str, tuple[Any, str, Any]] = {
    "numpy scalar": (np.float32(2), "V", np.float32(3)),
    "int and float": (2, "V / 4 * T.float32(1)", 3),
    "enum": (Level.LOW, "V.value", Level.HIGH),
    "range": (range(2, 9), "V[0]", range(3, 9)),
    "set": ({2.0}, "max(V)", {3.0}),
    "frozenset": (frozenset({2.0}), "max(V)", frozenset({3.0})),
    "array": (np.array([2.0]), "float(V[0])", np.array([3.0])),
    "array of objects": (np.array([2.0, "x"], object), "V[0]", np.array([3.0, "x"], object)),
    "fraction": (Fraction(2), "float(V)", Fraction(3)),
    "named tuple": (Pair(2.0, None), "V.one", Pair(3.0, None)),
    "slice": (slice(2, 3), "V.start", slice(3, 3)),
    "bytes": (b"\2", "V[0]", b"\3"),
    "partial": (functools.partial(max, 2.0), "V(1.0)", functools.partial(max, 3.0)),
    "bound method": (Config(2.0).__getattribute__, "V('scale')", Config(3.0).__getattribute__),
    "dtype": (np.dtype("float32"), "V.itemsize / 2", np.dtype("f8")),
}


@pytest.mark.parametrize("case", REBOUND)
def test_a_name_that_is_bound_again(case: str) -> None:
    before, value, after = REBOUND[case]
    space = cell(value, V=before)
    first = result(space)
    assert first == result(space)
    space["V"] = after
    assert result(space) != first
    space["V"] = before
    assert result(space) == first


def _set(attribute: str) -> Callable[[Any], None]:
    return lambda held: setattr(held, attribute, 3.0)


def _item(key: Any) -> Callable[[Any], None]:
    return lambda held: held.__setitem__(key, 3.0)


# What V holds, what the kernel reads, and what is done to it.
CHANGED: dict[str, tuple[Any, str, Callable[[Any], None]]] = {
    "long list": ([2.0] * 1000, "V[999]", _item(999)),
    "nested list": ([[[2.0]]], "V[0][0][0]", lambda v: v[0][0].__setitem__(0, 3.0)),
    "dict in a tuple": (({"a": 2.0},), "V[0]['a']", lambda v: v[0].update(a=3.0)),
    "ordered dict": (OrderedDict(a=2.0, b=3.0), "list(V.values())[0]", lambda v: v.move_to_end("a")),
    "deque": (deque([2.0, 3.0]), "V[0]", lambda v: v.rotate()),
    "set": ({2.0}, "max(V)", lambda v: v.add(3.0)),
    "array": (np.full(70_000, 2.0), "float(V[66_000])", _item(66_000)),
    "array in a dict": ({"a": np.array([2.0])}, "float(V['a'][0])", lambda v: v["a"].fill(3.0)),
    "bytearray": (bytearray(b"\2"), "V[0]", lambda v: v.__setitem__(0, 3)),
    "object": (Config(), "V.scale", _set("scale")),
    "object in an object": (types.SimpleNamespace(a=Config()), "V.a.scale", lambda v: _set("scale")(v.a)),
    "object with slots": (Slotted(2.0), "V.scale", _set("scale")),
    "class": (type("Own", (), {"scale": 2.0}), "V.scale", _set("scale")),
    "class of an object": (type("Own", (), {"scale": 2.0})(), "V.scale", lambda v: _set("scale")(type(v))),
}


@pytest.mark.parametrize("case", CHANGED)
def test_what_a_name_holds_is_changed(case: str) -> None:
    held, value, change = CHANGED[case]
    space = cell(value, V=held)
    assert result(space) == result(space) == 2.0
    change(held)
    assert result(space) == 3.0


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_minus_zero_is_another_constant(target: str) -> None:
    space = cell("V", V=0.0)
    space["made"] = space["made"].using(target=target)
    plus = space["made"]().stage("tile")
    space["V"] = -0.0
    assert space["made"]().stage("tile") != plus
    if target == "cpu":
        assert np.signbit(result(space))
        space["V"] = [0.0]
        assert not np.signbit(result(cell("V[0]", V=[0.0])))


def test_minus_zero_one_and_true_as_parameters() -> None:
    space = cell("1.0 if str(v).startswith('-') else 2.0 if v is True else 3.0", parameters="v")
    assert [result(space, v) for v in (0.0, -0.0, 0, 1, True, 1.0)] == [3, 1, 3, 3, 2, 3]
    space = cell("V[0]", parameters="V")
    table = np.full(5000, 2.0)
    assert result(space, table) == 2.0
    table[0] = 3.0
    assert result(space, table) == 3.0


def test_an_argument_that_is_an_object_or_a_function_is_followed() -> None:
    space = cell("V.scale if hasattr(V, 'scale') else V()", parameters="V", S=2.0)
    config = Config()
    assert result(space, config) == 2.0
    config.scale = 3.0
    assert result(space, config) == 3.0
    exec("def helper():\n    return S", space)
    assert result(space, space["helper"]) == 2.0
    space["S"] = 3.0
    assert result(space, space["helper"]) == 3.0


HELPERS = {
    "helper": ("def helper():\n    return S", "helper()"),
    "default": ("def helper(x=[2.0]):\n    return x[0] - 2.0 + S", "helper()"),
    "closure": ("def outer():\n    def inner():\n        return S\n    return inner\nh = outer()", "h()"),
    "lambda in a dict": ("h = {'a': lambda: S}", "h['a']()"),
    "method": ("class H:\n    def get(self):\n        return S\nh = H()", "h.get()"),
    "static method": ("class H:\n    @staticmethod\n    def get():\n        return S", "H.get()"),
    "property": ("class H:\n    @property\n    def get(self):\n        return S\nh = H()", "h.get"),
    "made when called": ("class H:\n    def __init__(self):\n        self.s = S", "H().s"),
    "wrapped": ("import functools\n@functools.wraps(abs)\ndef helper():\n    return S", "helper()"),
    "attribute of a function": ("def h():\n    return S", "(setattr(h, 's', S), h.s)[1]"),
}


@pytest.mark.parametrize("case", HELPERS)
def test_functions_called_while_tracing_and_what_they_see(case: str) -> None:
    head, value = HELPERS[case]
    space = cell(value, head, S=2.0)
    assert result(space) == 2.0
    space["S"] = 3.0
    assert result(space) == 3.0


def test_attributes_of_modules_and_imports_inside() -> None:
    config = types.ModuleType("config_of_a_test")
    config.__file__ = __file__
    config.scale = 2.0  # type: ignore[attr-defined]
    sys.modules[config.__name__] = config
    try:
        spaces = [
            cell("V.scale", V=config),
            cell("getattr(V, 'sca' + 'le')", V=config),
            cell("helper()", "def helper():\n    import config_of_a_test\n    return config_of_a_test.scale"),
            cell("helper()", "def helper():\n    from config_of_a_test import scale\n    return scale"),
        ]
        assert [result(space) for space in spaces] == [2.0] * 4
        config.scale = 3.0  # type: ignore[attr-defined]
        assert [result(space) for space in spaces] == [3.0] * 4
    finally:
        del sys.modules[config.__name__]


UNKNOWN = {
    "random number": ("import random", "random.random()"),
    "numpy's generator": ("import numpy as np\nR = np.random.default_rng(0)", "float(R.random())"),
    "time": ("import time", "time.perf_counter_ns() % 1000003"),
    "globals": ("def helper():\n    return globals()['S']", "helper()"),
    "iterator": ("V = iter(range(9))", "next(V)"),
    "environment": ("import os\nos.environ['OF_A_TEST'] = str(S)", "float(os.environ['OF_A_TEST'])"),
    "import inside": ("def helper():\n    import random\n    return random.random()", "helper()"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_cannot_be_known_is_traced_again(case: str) -> None:
    import os

    head, value = UNKNOWN[case]
    try:
        space = run_cell(CELL.format(value=value, head=f"S = 2.0\n{head}", parameters=""))
        first = result(space)
        space["S"], os.environ["OF_A_TEST"] = 3.0, "3.0"
        assert result(space) != first
    finally:
        os.environ.pop("OF_A_TEST", None)


def test_a_trace_that_says_the_same_gives_the_kept_kernel() -> None:
    space = cell("float('2')", "import random\ndef unused():\n    return random.random()", S=1)
    assert space["made"]() is space["made"]()
    space = cell("2.0 * (random.random() < 2)", "import random")
    assert space["made"]() is space["made"]()
    # A change that the kernel does not show: traced again, compiled once.
    space = cell("2.0 if S else 1.0", S=1)
    first = space["made"]()
    space["S"] = 2
    assert space["made"]() is first


def test_annotations_left_as_text_are_read_too() -> None:
    text = "from __future__ import annotations\n" + CELL.format(value="2.0", head="", parameters="")
    space = run_cell(text.replace("(1,)", "(WIDTH,)"))
    space["WIDTH"] = 1
    assert result(space) == 2.0
    space["WIDTH"] = 2
    assert space["made"]().arguments[0].shape == (2,)


def test_a_walk_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert Outside([loop]).holds()
    assert not Outside([[object.__new__(Config) for _ in range(10)]]).unknown
    deep = [[k] for k in range(MOST_OBJECTS + 10)]
    assert Outside([deep]).unknown


def test_library_values_whose_shape_alone_is_read() -> None:
    x = np.zeros((2, 3))
    space = cell("float(V.shape[0])", V=x)
    assert result(space) == 2.0
    kernel = space["made"]()
    x[0] = 1.0
    assert space["made"]() is kernel
    space["V"] = np.zeros((3, 3))
    assert result(space) == 3.0


def test_the_functions_own_code_and_defaults() -> None:
    space = cell("V", parameters="V=2.0")
    assert result(space) == 2.0
    space["made"].function.__defaults__ = (3.0,)
    assert result(space) == 3.0


def test_a_call_that_cannot_be_is_told_on_the_quick_way_too() -> None:
    space = cell("V", parameters="V=2.0")
    assert result(space) == result(space) == 2.0
    with pytest.raises(ArgumentError, match="made has no parameter W"):
        space["made"](W=1)
    with pytest.raises(ArgumentError, match="multiple values for argument 'V'"):
        space["made"](1.0, V=1.0)
    with pytest.raises(TargetError, match="a target is a text"):
        space["made"].using(target=["cpu"])()


def test_tuples_among_the_arguments() -> None:
    space = cell("V[0] if type(V[1]) is int else 5.0", parameters="V")
    assert [result(space, v) for v in ((2.0, 1), (2.0, True), (2.0, 1.0), (2.0, 1))] == [2.0, 5.0, 5.0, 2.0]
    space = cell("1.0 if V[0][0] is True else 2.0", parameters="V")
    assert [result(space, ((v,),)) for v in (1, True, 1)] == [2.0, 1.0, 2.0]
    space = cell("1.0 if str(V[0][0]).startswith('-') else 2.0", parameters="V")
    assert [result(space, ((v,),)) for v in (0.0, -0.0, 0.0)] == [2.0, 1.0, 2.0]
