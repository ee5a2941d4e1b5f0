"""One fragment made another of the same tile without memory: what each lane's registers go through.

Every coordinate is cut into units, bits as far as lanes are concerned, and each unit has a home in both
fragments: a bit of the lane's number, or a digit of the register's. A unit that changes from register to
lane, while another goes the other way, is a swap: half of the registers cross to the neighbour. Units that
change places among lanes are one shuffle to another lane; those that copies of a lane give up are a choice
between registers, and those that a lane has to have whole are gathered from its neighbour. What is left
is another order of registers, which costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import ClassVar, NamedTuple, TypeAlias

from .fragment import Digit, Fragment

# A loop over registers: how many, and how far apart.
Loop: TypeAlias = tuple[int, int]
Move: TypeAlias = tuple[int, int, int]
WORD_BITS = 32


class Home(NamedTuple):
    """Where a unit lives: in the thread's number or the register's, at `divisor`."""

    thread: bool
    divisor: int


class Unit(NamedTuple):
    """`extent` steps along `dim`; a home is None where all of them but the first are ghosts."""

    dim: int
    step: int
    extent: int
    src: Home | None
    dst: Home | None


@dataclass(frozen=True)
class Swap:
    """Registers `value` apart change places with those of the lane `lane` away: each lane keeps one."""

    value: int
    lane: int
    loops: tuple[Loop, ...]
    shuffles: ClassVar[int] = 1
    selections: ClassVar[int] = 3


@dataclass(frozen=True)
class Keep:
    """Of two registers `value` apart the one that this bit of the thread's number names is kept."""

    value: int
    thread: int
    loops: tuple[Loop, ...]
    shuffles: ClassVar[int] = 0
    selections: ClassVar[int] = 1


@dataclass(frozen=True)
class Gather:
    """The registers of the lane `lane` away come to this one's, `value` registers behind each other."""

    value: int
    lane: int
    loops: tuple[Loop, ...]
    shuffles: ClassVar[int] = 1
    selections: ClassVar[int] = 2


@dataclass(frozen=True)
class Route:
    """Each register comes from another lane, whose bits are others of this one's: pairs (its, ours)."""

    bits: tuple[tuple[int, int], ...]
    loops: tuple[Loop, ...]
    shuffles: ClassVar[int] = 1
    selections: ClassVar[int] = 0


Step: TypeAlias = Swap | Keep | Gather | Route


@dataclass(frozen=True)
class WarpConversion:
    """The steps from one fragment to another inside warps.

    `parts` are the elements that travel as one word, by where they lie behind its first: (in the source, in
    the target). `registers` words are worked in. `takes` are the loops in which they are filled, `moves`
    those of the last step: (count, in the source or here, here or in the target).
    """

    parts: tuple[tuple[int, int], ...]
    registers: int
    takes: tuple[Move, ...]
    steps: tuple[Step, ...]
    moves: tuple[Move, ...]

    @property
    def shuffles(self) -> int:
        """Shuffles of a word that each lane takes part in."""
        return sum(step.shuffles * _turns(step.loops) for step in self.steps)

    @property
    def selections(self) -> int:
        """Choices between two words."""
        return sum(step.selections * _turns(step.loops) for step in self.steps)


def _turns(loops: tuple[Loop, ...]) -> int:
    return prod(count for count, _ in loops)


@lru_cache(maxsize=512)
def convert_in_warps(src: Fragment, dst: Fragment, element_bits: int, warp: int) -> WarpConversion | None:
    """The steps from `src` to `dst`, of elements that take `element_bits` in a register.

    None where an element has to reach another warp, or where digits of the two do not divide each other.
    """
    if src.extents != dst.extents or src.threads != dst.threads or not (src.is_dense and dst.is_dense):
        return None
    units = _units(src, dst, warp)
    if units is None:
        return None
    packed = _packed(units, element_bits)
    return _Plan.of([unit for unit in units if unit not in packed], warp, packed)


# -- units


def _units(src: Fragment, dst: Fragment, warp: int) -> list[Unit] | None:
    units: list[Unit] = []
    for dim in range(len(src.extents)):
        ours, theirs = _along(src, dim, warp), _along(dst, dim, warp)
        if ours is None or theirs is None:
            return None
        edges = sorted({1, *(e for d, _ in (*ours, *theirs) for e in (d.step, d.step * d.modulus))})
        for low, high in pairwise(edges):
            if high % low:
                return None
            unit = _unit(dim, low, high, ours, theirs, warp)
            if unit is None:
                return None
            units += unit
    return units


def _along(fragment: Fragment, dim: int, warp: int) -> list[tuple[Digit, bool]] | None:
    """The digits along a dimension, of threads (True) and values, none across the border of a warp."""
    found = [(digit, False) for digit in fragment.value_digits if digit.dim == dim and digit.modulus > 1]
    for digit in fragment.thread_digits:
        if digit.dim != dim or digit.modulus == 1:
            continue
        divisor, count, _, step = digit
        if divisor < warp < divisor * count:
            inside = warp // divisor
            if warp % divisor or count % inside:
                return None
            found.append((Digit(divisor, inside, dim, step), True))
            divisor, count, step = warp, count // inside, step * inside
        found.append((Digit(divisor, count, dim, step), True))
    return found


def _unit(
    dim: int, low: int, high: int, ours: list[tuple[Digit, bool]], theirs: list[tuple[Digit, bool]], warp: int
) -> list[Unit] | None:
    """The steps from `low` to `high`, in bits where they are a power of two of them."""
    homes: list[Home | None] = []
    for digits in (ours, theirs):
        home = _home(digits, low, high)
        if home is None and any(low < d.step * d.modulus for d, _ in digits):
            return None
        homes.append(home)
    src, dst = homes
    count = high // low
    if count & (count - 1):
        # In another order of registers, or where it is already.
        return [Unit(dim, low, count, src, dst)] if _stays(src, dst) or not _by_lanes(src, dst) else None
    if any(home is not None and home.thread and home.divisor & (home.divisor - 1) for home in homes):
        return [Unit(dim, low, count, src, dst)] if _stays(src, dst) else None
    return [
        Unit(dim, low << k, 2, *(h and h._replace(divisor=h.divisor << k) for h in homes))
        for k in range(count.bit_length() - 1)
    ]


def _stays(src: Home | None, dst: Home | None) -> bool:
    return src is not None and src == dst


def _by_lanes(src: Home | None, dst: Home | None) -> bool:
    return any(home is not None and home.thread for home in (src, dst))


def _home(digits: list[tuple[Digit, bool]], low: int, high: int) -> Home | None:
    for digit, thread in digits:
        if digit.step <= low and high <= digit.step * digit.modulus and low % digit.step == 0:
            return Home(thread, digit.divisor * (low // digit.step))
    return None


def _packed(units: list[Unit], element_bits: int) -> list[Unit]:
    """Bits of the register's number in both fragments, over which elements share a word; lowest first."""
    staying = [
        unit
        for unit in units
        if unit.src and unit.dst and not unit.src.thread and not unit.dst.thread and unit.extent == 2
    ]
    staying.sort(key=lambda unit: (unit.src or Home(False, 0)).divisor)
    most = max(1, WORD_BITS // element_bits).bit_length() - 1
    return staying[:most]


# -- steps


@dataclass
class _Plan:
    """The units on their way: `registers` says how far apart each lies, `lanes` which a lane's bit holds."""

    size: int = 1
    registers: dict[Unit, int] = field(default_factory=dict[Unit, int])
    lanes: dict[int, Unit] = field(default_factory=dict[int, Unit])
    steps: list[Step] = field(default_factory=list[Step])

    @staticmethod
    def of(units: list[Unit], warp: int, packed: list[Unit]) -> WarpConversion | None:
        plan = _Plan()
        if not plan.begin(units, warp):
            return None
        takes = _fewest([(u.extent, u.src.divisor, at) for u, at in plan.registers.items() if u.src])
        wanted = {
            unit.dst.divisor: unit
            for unit in units
            if unit.src is not None and unit.dst is not None and unit.dst.thread
            and (unit.dst.divisor < warp or unit.src != unit.dst)
        }  # fmt: skip
        if not plan.fill(wanted, warp):
            return None
        parts = [(0, 0)]
        for unit in packed:
            here, there = (home.divisor if home else 0 for home in (unit.src, unit.dst))
            parts += [(a + here, b + there) for a, b in parts]
        return WarpConversion(tuple(parts), plan.size, takes, tuple(plan.steps), plan.moves(units))

    def begin(self, units: list[Unit], warp: int) -> bool:
        """Where all units are at first; False where one has to leave its warp."""
        for unit in sorted(units, key=lambda unit: unit.src.divisor if unit.src else 0):
            if unit.src is None:
                continue
            if not unit.src.thread:
                # Of what is a ghost of the target the first alone is real.
                if unit.dst is not None:
                    self.registers[unit] = self.size
                    self.size *= unit.extent
            elif unit.dst is None:
                return False
            elif unit.src.divisor < warp:
                self.lanes[unit.src.divisor] = unit
            elif unit.src != unit.dst:
                return False
        return True

    def fill(self, wanted: dict[int, Unit], warp: int) -> bool:
        """The steps that bring each unit to the thread's bit that wants it; False where there are none."""
        for divisor, unit in wanted.items():
            if divisor >= warp and unit.src != unit.dst:
                if unit not in self.registers:
                    return False
                self.keep(unit, divisor)
        inside = {divisor: unit for divisor, unit in wanted.items() if divisor < warp}
        # First what makes registers fewer.
        for divisor, unit in inside.items():
            if unit in self.registers and divisor not in self.lanes:
                self.keep(unit, divisor)
                self.lanes[divisor] = unit
        self.swap(inside)
        self.gather()
        return self.route(inside)

    def keep(self, unit: Unit, divisor: int) -> None:
        value = self.registers.pop(unit)
        self.steps.append(Keep(value, divisor, self.loops()))

    def swap(self, wanted: dict[int, Unit]) -> None:
        moving = True
        while moving:
            moving = False
            for divisor, unit in wanted.items():
                if unit not in self.registers:
                    continue
                moving = True
                if divisor in self.lanes:
                    value = self.registers.pop(unit)
                    self.steps.append(Swap(value, divisor, self.loops()))
                    self.registers[self.lanes[divisor]] = value
                else:
                    self.keep(unit, divisor)
                self.lanes[divisor] = unit

    def gather(self) -> None:
        for divisor, unit in list(self.lanes.items()):
            if unit.dst is not None and not unit.dst.thread:
                self.steps.append(Gather(self.size, divisor, self.loops()))
                self.registers[unit] = self.size
                self.size *= 2
                del self.lanes[divisor]

    def route(self, wanted: dict[int, Unit]) -> bool:
        where = {unit: divisor for divisor, unit in self.lanes.items()}
        if any(unit not in where for unit in wanted.values()):
            return False
        bits = tuple((where[unit], divisor) for divisor, unit in sorted(wanted.items()))
        if any(a != b for a, b in bits):
            self.steps.append(Route(bits, self.loops()))
        return True

    def loops(self) -> tuple[Loop, ...]:
        """The loops over all registers that hold something, but for what a step has taken out."""
        return _joined([(unit.extent, stride) for unit, stride in self.registers.items()])

    def moves(self, units: list[Unit]) -> tuple[Move, ...]:
        """What goes where in the target; its ghosts get what the first one has."""
        own = [unit for unit in units if unit.dst is not None and not unit.dst.thread]
        return _fewest([(u.extent, self.registers.get(u, 0), u.dst.divisor) for u in own if u.dst])


def _fewest(moves: list[Move]) -> tuple[Move, ...]:
    """The same moves in the fewest loops, fastest first in what they fill."""
    joined: list[Move] = []
    for count, here, there in sorted(moves, key=lambda move: move[2]):
        if joined:
            before, first, last = joined[-1]
            if here == first * before and there == last * before:
                joined[-1] = (before * count, first, last)
                continue
        joined.append((count, here, there))
    return tuple(joined)


def _joined(loops: list[Loop]) -> tuple[Loop, ...]:
    """The same registers in the fewest loops."""
    return tuple((count, stride) for count, stride, _ in _fewest([(n, step, step) for n, step in loops]))
