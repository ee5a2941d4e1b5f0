"""The names of a function are those that its statements' marks bind, whoever brought the statement."""

from __future__ import annotations

from tilebench.ir import Buffer, Function, OpStmt, Var, node, result
from tilebench.ir.dtypes import int32
from tilebench.ir.names import Names, names_of


@node
class Opened(OpStmt):
    """A statement of a plug-in that binds a buffer and is no allocation."""

    word = "opened"
    buffer: Buffer = result()


def function() -> Function:
    return Function("main", (Var("n"),), (Opened(Buffer("port", (4,), int32, "local")),))


def test_what_a_plugin_binds_is_taken() -> None:
    assert names_of(function()) == {"main", "n", "port"}


def test_a_fresh_name_is_the_next_spelling_and_taken_from_then_on() -> None:
    names = Names(function())
    assert [names.fresh("port"), names.fresh("port"), names.fresh("new"), names.fresh("new")] == [
        "port__2", "port__3", "new", "new__2",
    ]  # fmt: skip
