"""Code of single threads: values of their own, a shared row that all write and read, exchanges and votes."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.writer import Writer

Step = Callable[["_Threads"], None]


class _Threads:
    """`mine` is a scalar of each thread, `row` a shared tile with an element for each."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        count = w.threads or 0
        self.count = count
        self.kind = w.pick("int", "int", "float")
        self.dtype = "int32" if self.kind == "int" else "float32"
        self.row = w.tile((count,), self.dtype, "shared").name
        self.mine = w.name("m")
        self.deep = 0
        if "tx = T.get_thread_binding()" not in w.head:
            w.head.insert(0, "tx = T.get_thread_binding()")
        w.say(f'{self.mine} = T.alloc_var("{self.dtype}")')
        w.scopes[-1:] and w.scopes[-1].append(self.mine)
        w.say(f"{self.mine} = T.cast(tx % {w.pick(3, 7, 50)}, T.{self.dtype})")

    def other(self) -> str:
        """The number of some thread, from this one's."""
        w = self.w
        return w.pick(
            f"(tx + {w.random.randint(1, self.count - 1)}) % {self.count}", f"{self.count - 1} - tx",
            f"tx ^ {w.pick(1, 2, 5, 16)}", "tx // 2", "tx",
        )  # fmt: skip

    def step(self) -> None:
        self.w.pick(*STEPS)(self)

    def some(self, most: int = 3) -> None:
        self.deep += 1
        for _ in range(self.w.random.randint(1, most)):
            self.step()
        self.deep -= 1


def compute(t: _Threads) -> None:
    w = t.w
    t.w.say(f"{t.mine} = {t.mine} {w.pick('+', '-')} {w.pick(t.mine, '1', '3', f'T.cast(tx, T.{t.dtype})')}")


def put(t: _Threads) -> None:
    t.w.say(f"{t.row}[{t.w.pick('tx', 'tx', f'{t.count - 1} - tx', 'tx ^ 1')}] = {t.mine}")


def take(t: _Threads) -> None:
    t.w.say(f"{t.mine} = {t.row}[{t.other()}]{t.w.pick('', f' + {t.mine}')}")


def array(t: _Threads) -> None:
    """An array of the thread's own, used across a meeting."""
    w, name, k = t.w, t.w.name("r"), t.w.name("k")
    count = w.pick(2, 3, 5)
    w.say(f'{name} = T.alloc_local(({count},), "{t.dtype}")')
    with w.block(f"for {k} in T.{w.pick('serial', 'unroll', 'vectorized')}({count}):"):
        w.say(f"{name}[{k}] = {t.mine} + {k}")
    t.step()
    w.say(f"{t.mine} = {t.mine} + {name}[{w.pick('0', f'tx % {count}', str(count - 1))}]")


def exchange(t: _Threads) -> None:
    w = t.w
    if t.deep:
        return
    width = w.pick("", "", ", width=8", ", width=16")
    how = w.pick(
        f"T.shfl_xor({t.mine}, {w.pick(1, 3, 8, 16)}{width})", f"T.shfl_up({t.mine}, {w.pick(1, 5)}{width})",
        f"T.shfl_down({t.mine}, {w.pick(1, 5)}{width})", f"T.shfl_sync({t.mine}, tx % 7{width})",
        f"T.warp_reduce_{w.pick('max', 'min')}({t.mine})", f"T.any_sync({t.mine} > 2)",
        f"T.syncthreads_count({t.mine} > 1)", f"T.cast(T.ballot({t.mine} > 3) % 64, T.{t.dtype})",
    )  # fmt: skip
    w.say(f"{t.mine} = {how}{w.pick('', f' - {t.mine}')}")


def barrier(t: _Threads) -> None:
    if not t.deep:
        t.w.say("T.sync_threads()")


def condition(t: _Threads) -> None:
    w = t.w
    if t.deep > 1:
        return
    test = w.pick(
        f"tx {w.pick('<', '>=', '==')} {w.random.randrange(t.count)}", "tx % 2 == 0", f"{t.mine} > 2",
        "tx // 32 == 0",
    )  # fmt: skip
    with w.block(f"if {test}:"):
        t.some()
    if w.chance(0.4):
        with w.block("else:"):
            t.some(2)


def turns(t: _Threads) -> None:
    w, k = t.w, t.w.name("k")
    if t.deep > 1:
        return
    with w.block(f"for {k} in T.serial({w.pick(2, 3)}):"):
        if w.chance(0.5):
            w.say(f"{t.mine} = {t.mine} + {k}")
        t.some(2)


def own_turns(t: _Threads) -> None:
    """A loop with as many turns as the thread says."""
    k = t.w.name("k")
    with t.w.block(f"for {k} in T.serial(tx % {t.w.pick(2, 4)}):"):
        t.w.say(f"{t.mine} = {t.mine} + {k} + 1")


def atomics(t: _Threads) -> None:
    """An element of each thread's own, and what it was before."""
    how = t.w.pick("add", "add", "max", "min", *(["or"] if t.kind == "int" else []))
    place = t.w.pick("tx", f"{t.count - 1} - tx", "tx ^ 1")
    order = t.w.pick("", "", ", memory_order='relaxed'", ", memory_order='acq_rel'")
    t.w.say(f"{t.mine} = T.atomic_{how}({t.row}[{place}], {t.mine}{order}, return_prev=True)")


def _counter(t: _Threads, size: int) -> str:
    """A shared tile of zeros."""
    name = t.w.name("c")
    t.w.say(f'{name} = T.alloc_shared(({size},), "int32")')
    t.w.say(f"T.clear({name})")
    return name


def count(t: _Threads) -> None:
    """A counter of all: what comes of it is the same in whichever order they come."""
    if t.deep:
        return
    name, step = _counter(t, 3), t.w.pick(2, 3, 4)
    t.w.say(f"f{name} = T.atomic_add({name}[tx % 3], {step}, return_prev=True)")
    t.w.say(f"{t.mine} = {t.mine} + T.cast(f{name} % {step}, T.{t.dtype})")
    read = t.w.pick(f"{name}[{t.w.pick(0, 2)}]", f"T.atomic_load({name}[1])")
    t.w.say("T.sync_threads()")
    t.w.say(f"{t.mine} = {t.mine} + T.cast({read}, T.{t.dtype})")


def flag(t: _Threads) -> None:
    """Stores of one value by whoever finds something."""
    if t.deep:
        return
    name = _counter(t, 2)
    store = t.w.pick(f"{name}[tx % 2] = 5", f"{name}[1] = 7", f"T.atomic_store({name}[tx % 2], 3)")
    with t.w.block(f"if {t.w.pick(f'{t.mine} > 2', 'tx % 7 == 3', f'{t.row}[tx] > 0')}:"):
        t.w.say(store)
    t.w.say(f"{t.mine} = {t.mine} + T.cast({name}[1], T.{t.dtype})")


def match(t: _Threads) -> None:
    if t.deep or t.kind != "int":
        return
    found = t.w.pick("match_any_sync", "match_all_sync")
    t.w.say(f"{t.mine} = {t.mine} + T.cast(T.{found}({t.mine} % {t.w.pick(2, 5)}) % 97, 'int32')")


def warp_turns(t: _Threads) -> None:
    """A loop that a warp leaves by a vote."""
    if t.deep:
        return
    name = t.w.name("n")
    t.w.say(f'{name} = T.alloc_var("int32", init=0)')
    with t.w.block(f"while T.any_sync({name} < tx % {t.w.pick(2, 3, 40)} // {t.w.pick(1, 8)}):"):
        t.w.say(f"{name} = {name} + 1")
        t.w.say(f"{t.mine} = {t.w.pick(f'{t.mine} + 1', f'T.shfl_xor({t.mine}, 1)')}")


STEPS: tuple[Step, ...] = (
    compute, compute, put, put, take, take, array, exchange, exchange, barrier, condition, turns, own_turns,
    atomics, atomics, count, flag, match, warp_turns,
)  # fmt: skip


def threads(w: Writer) -> None:
    """Some statements of single threads, whose results end in a shared tile."""
    if w.group or w.elements or not w.threads or w.threads % 32:
        return
    t = _Threads(w)
    for _ in range(w.random.randint(2, 5)):
        t.step()
    w.say(f"{t.row}[tx] = {t.mine}")
