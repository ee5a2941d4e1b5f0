"""What a browser asks for, by the kind of its message: a table that features add their rows to.

`extension/src/bench/data.ts` has the other side, the type `Ask`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from ..comparison import Against
from ..picturing import MEMORY
from ..session import Session
from ..slider import Slider
from ..wish import moved
from .controls import change_of, targets_offered
from .saves import go_to, save_as


class AskedBench(Protocol):
    """The bench that a message is for."""

    session: Session

    @property
    def knobs(self) -> Sequence[Slider]:
        """Every control that is shown now."""
        ...

    def pin(self, name: str = "") -> str:
        """Keep what the bench shows, to compare others with."""
        ...


Message = Mapping[str, Any]
Answer = Callable[[AskedBench, Message], None]


def _set(bench: AskedBench, message: Message) -> None:
    change = change_of(message, bench.knobs, bench.session.wish)
    view, number = message.get("view"), message.get("number")
    if change and isinstance(view, str) and isinstance(number, int):
        bench.session.change(
            lambda wish, _: moved(wish, bench.session.controls, change).hearing(view, number)
        )
    elif change:
        bench.session.want(**change)


def _target(bench: AskedBench, message: Message) -> None:
    bench.session.want(target=str(message.get("text", "")))


def _toggle(bench: AskedBench, message: Message) -> None:
    if message.get("name") in ("run", "check"):
        bench.session.want(**{str(message["name"]): bool(message.get("on"))})


def _stages(bench: AskedBench, message: Message) -> None:
    bench.session.want(stages=[str(name) for name in message.get("names", ())])


def _restore(bench: AskedBench, message: Message) -> None:
    number = message.get("number")
    if isinstance(number, int):
        bench.session.restore(number)


def _edit(bench: AskedBench, message: Message) -> None:
    stage, text = message.get("stage"), message.get("text")
    if isinstance(text, str) and stage in bench.session.picture.editable:
        bench.session.change(bench.session.edits.writing(str(stage), text))


def _revert(bench: AskedBench, message: Message) -> None:
    stage = str(message.get("stage", ""))
    if not stage or stage in bench.session.picture.editable:
        bench.session.change(bench.session.edits.reverting(stage))


def _edited(bench: AskedBench, message: Message) -> None:
    number = message.get("number")
    if any(each.number == number for each in bench.session.edits.kept):
        bench.session.change(bench.session.edits.going_back(int(str(number))))


def _look(bench: AskedBench, message: Message) -> None:
    """Note which tab is open; what is worked out for it alone is, now or behind what runs."""
    session = bench.session
    session.pictures.looking = str(message.get("tab", ""))
    if session.pictures.looking == MEMORY and session.picture.status.phase == "done":
        session.change(lambda wish, _: wish)


def _sweep(bench: AskedBench, message: Message) -> None:
    if message.get("on"):
        bench.session.sweep()
    else:
        bench.session.sweeper.stop()


def _count(bench: AskedBench, message: Message) -> None:
    bench.session.counting.ask(str(message.get("name", "")), bench.session.wish)
    bench.session.change(lambda wish, _: wish)


def _pin(bench: AskedBench, message: Message) -> None:
    if bench.session.picture.record is not None:
        bench.pin(str(message.get("name", "")))


def _compare(bench: AskedBench, message: Message) -> None:
    kind, name = str(message.get("what", "")), str(message.get("name", ""))
    known = bench.session.comparison.pins if kind == "pin" else targets_offered(None)
    against = Against(kind, name) if kind in ("pin", "target") and name in known else None
    bench.session.change(lambda wish, _: replace(wish, against=against))


ANSWERS: dict[str, Answer] = {
    "set": _set,
    "target": _target,
    "toggle": _toggle,
    "stages": _stages,
    "restore": _restore,
    "edit": _edit,
    "revert": _revert,
    "edited": _edited,
    "pin": _pin,
    "compare": _compare,
    "save": lambda bench, message: save_as(bench.session, str(message.get("what"))),
    "go": lambda bench, message: go_to(bench.session, str(message.get("text", ""))),
    "count": _count,
    "look": _look,
    "sweep": _sweep,
    "timeline": lambda bench, _: bench.session.clock(),
    "again": lambda bench, _: bench.session.again(),
    "stop": lambda bench, _: bench.session.stop(),
}


def answer(bench: AskedBench, message: Message) -> None:
    """Do what a message asks for; what is none is dropped: it may come from another version's page."""
    row = ANSWERS.get(str(message.get("kind")))
    if row is not None:
        row(bench, message)
