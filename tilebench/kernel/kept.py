"""The kernels that a kernel function has made, found again by its parameters and what it saw around itself.

Two ways in. `quick` answers a call with plain arguments in a few microseconds: one look into a dict, and the
checks of a snapshot. `find` takes arguments of any kind. Where what is outside has changed, or cannot be
known, the function is traced again, and `like` gives the kernel that the same trace made before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from operator import is_
from typing import Any, cast

from ..frontend import Traced
from ..ir import DType, print_function
from .kernel import Kernel
from .snapshot.exact import Same
from .snapshot.outside import Outside

# Kernels kept by their parameters; a slider's walk through a sweep stays well inside.
MOST_KERNELS = 256
# States of what is outside that are looked at again: a constant that goes to and fro has two.
_MOST_STATES = 8
_QUICK = frozenset({int, bool, str, float, type(None), DType, tuple})


def quick_key(args: Sequence[Any], kwargs: Mapping[str, Any], target: object) -> Hashable | None:
    """A key of a call whose arguments are plain values, or tuples of them; None with others, or with 0.0."""
    values = (*args, *kwargs.values())
    kinds = tuple(map(type, values))
    if not _QUICK.issuperset(kinds) or type(target) is not str:
        return None
    # 0.0 and -0.0 are equal; what `frozen` makes of them is not.
    if float in kinds and any(type(value) is float and not value for value in values):
        return None
    inside: Hashable = ()
    if tuple in kinds:
        parts = chain.from_iterable(cast(tuple[Any, ...], v) for v in values if type(v) is tuple)
        inside = quick_key(tuple(parts), {}, target)
    return None if inside is None else (target, kinds, values, tuple(kwargs), inside)


class KeptKernels:
    """The kernels of one function."""

    def __init__(self) -> None:
        self._kernels: OrderedDict[tuple[Hashable, Same], Kernel] = OrderedDict()
        self._quick: dict[Hashable, tuple[Outside, tuple[Hashable, Same]]] = {}
        self._states: deque[tuple[tuple[object, ...], Outside]] = deque(maxlen=_MOST_STATES)
        self._lock = threading.Lock()

    def quick(self, key: Hashable) -> Kernel | None:
        """The kernel of an earlier call with this key, if all that it saw still stands."""
        entry = self._quick.get(key)
        if entry is None or not entry[0].holds():
            return None
        with self._lock:
            found = self._kernels.get(entry[1])
            if found is not None:
                self._kernels.move_to_end(entry[1])
        return found

    def outside(self, roots: tuple[object, ...]) -> Outside:
        """What these functions and objects see now: a snapshot from before that still holds, or a new one."""
        for known, state in tuple(self._states):
            if len(known) == len(roots) and all(map(is_, known, roots)) and state.holds():
                return state
        state = Outside(roots)
        self._states.appendleft((roots, state))
        return state

    def find(self, wanted: Hashable, outside: Outside) -> Kernel | None:
        """The kernel for these parameters in this state; None too where the state cannot be known."""
        with self._lock:
            return None if outside.unknown else self._kernels.get((wanted, Same(outside)))

    def like(self, wanted: Hashable, traced: Traced) -> Kernel | None:
        """A kernel for these parameters that the same trace made before, in another state."""
        with self._lock:
            before = [kernel for (key, _), kernel in self._kernels.items() if key == wanted]
        if not before:
            return None
        now = _identity(traced)
        return next((kernel for kernel in before if _identity(kernel.calls.traced) == now), None)

    def keep(self, wanted: Hashable, outside: Outside, kernel: Kernel, quick: Hashable | None) -> None:
        """Keep a kernel for these parameters in this state; under `quick` too where all of it is known."""
        key = (wanted, Same(outside))
        with self._lock:
            # One key for one kernel: a counter outside gives a new state each time, and pushes nothing out.
            for other in [other for other, kept in self._kernels.items() if kept is kernel]:
                del self._kernels[other]
            self._kernels[key] = kernel
            while len(self._kernels) > MOST_KERNELS:
                self._kernels.popitem(last=False)
            if quick is not None and not outside.unknown:
                if len(self._quick) >= MOST_KERNELS:
                    self._quick.clear()
                self._quick[quick] = outside, key


def _identity(traced: Traced) -> tuple[Any, ...]:
    """All that a kernel is made from: its printed form tells constants apart that are equal to Python."""
    printed = print_function(traced.function)
    return printed.text, printed.places, traced.file, traced.first_line, traced.text
