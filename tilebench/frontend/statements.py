"""Tracing a kernel's statements: the body of a `@T.prim_func` becomes statements of the `tile` stage."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from .. import language
from ..errors import TileError
from ..ir import Extern, If, Stmt, Var
from ..language.groups import GroupSpec
from ..language.launch import KernelSpec, LoopSpec
from ..language.structure import KernelLaunch, ThreadGroup
from ..language.threads.block import block_of
from ..language.tracing.builder import BodyFrame
from ..language.tracing.expressions import Value
from ..language.tracing.values import BufferView, RegionRef
from . import loops
from .assignments import Assignments
from .inner_macros import InnerMacro
from .scope import Binding

REFUSED: dict[type, tuple[str, str]] = {
    ast.Try: (
        "the language has no `try`",
        "nothing is raised on the device: test with `if` what may go wrong",
    ),
    ast.Raise: (
        "the language has no `raise`",
        "T.device_assert(condition, message) checks values of the running kernel, `assert` those of Python",
    ),
    ast.ClassDef: ("the language has no `class`", "define it outside the kernel"),
    ast.AsyncFunctionDef: ("the language has no `async`", ""),
    ast.AsyncFor: ("the language has no `async`", ""),
    ast.AsyncWith: ("the language has no `async`", ""),
    ast.Import: ("the language has no `import`", "import at the top of the file"),
    ast.ImportFrom: ("the language has no `import`", "import at the top of the file"),
    ast.Delete: ("the language has no `del`", "a name ends with its block"),
    ast.Global: ("the language has no `global`", "pass the value as a parameter"),
    ast.Nonlocal: ("the language has no `nonlocal`", "pass the value as a parameter"),
    ast.Match: ("the language has no `match`", "use `if` and `elif`"),
    ast.Return: (
        "a kernel returns nothing",
        "write the result into one of the arrays it is given; to end early, put what follows under an `if`",
    ),
}

# Names that a block binds, each with the node that says it (None: ours).
Names = list[tuple[str, ast.expr | None]]


def _kind(value: object) -> str:
    """What a person calls a thing."""
    if isinstance(value, (BufferView, RegionRef)):
        return f"{value.name} is a tile"
    return "a value of the running kernel" if isinstance(value, Value) else type(value).__name__


class Statements(Assignments):
    """Runs the statements of one function, filling the builder's bodies."""

    of_statements: ClassVar[dict[type, Callable[[Any, Any], None]]]

    def statements(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            self.statement(node)
            if loops.has_left(self):
                return

    def statement(self, node: ast.stmt) -> None:
        handler = self.of_statements.get(type(node))
        self.current = node
        if handler is None:
            what, hint = REFUSED.get(type(node), ("the language has no such statement", ""))
            self.refuse(node, what, hint)
        try:
            handler(self, node)
        except TileError as error:
            raise self.placed(node, error) from error.__cause__
        except Exception as error:
            raise self.foreign(node, error) from error

    # -- bodies
    def filled(
        self, kind: str, node: Any, body: Iterable[ast.stmt], bind: Callable[[], None]
    ) -> tuple[Stmt, ...]:
        """The statements of one body; names bound in it end with it."""
        frame = BodyFrame(kind, self.place(node))
        self.builder.frames.append(frame)
        try:
            bind()
            self.statements(body)
        finally:
            self.builder.frames.pop()
            self.scope.close(frame)
        return tuple(frame.statements)

    def variables(self, target: ast.expr, count: int, what: str) -> Names:
        """The names that a loop or launch brings in, as many as it has dimensions."""
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if len(parts) != count:
            self.refuse(
                target,
                "{word} has {count} dimensions, found {n} names",
                "one name for each dimension",
                word=what,
                count=count,
                n=len(parts),
            )
        names: Names = []
        for part in parts:
            if not isinstance(part, ast.Name):
                self.refuse(part, "a loop binds plain names")
            names.append((part.id, part))
        return names

    def fresh(self, names: Names) -> tuple[Var, ...]:
        return tuple(Var(self.builder.unique(name), place=self.builder.place) for name, _ in names)

    def bind_loop(self, names: Names, variables: tuple[Var, ...]) -> None:
        for (name, node), var in zip(names, variables, strict=True):
            place = self.place(node) if node is not None else self.builder.place
            self.scope.bind(name, Binding(Value(var), self.builder.frames[-1], place, "loop"))

    # -- blocks
    def with_(self, node: ast.With) -> None:
        if len(node.items) > 1:
            # `with a, b:` is `with a:` around `with b:`.
            inner = ast.copy_location(ast.With(node.items[1:], node.body), node)
            node = ast.copy_location(ast.With(node.items[:1], [inner]), node)
        item = node.items[0]
        call = item.context_expr
        # Looked at before it is evaluated: `with open(...)` must not open anything.
        word = self.expr(call.func) if isinstance(call, ast.Call) else None
        if word is language.threads or word is language.ws:
            self.group(node, self.expr(call))
            return
        if word is language.attr and isinstance(call, ast.Call):
            self.attribute_of(node, call)
            return
        opens = word is language.Kernel or word is language.ClusterKernel
        spec = self.expr(call) if opens else None
        if not isinstance(spec, KernelSpec):
            self.refuse(item.context_expr, "`with` opens T.Kernel(...), or in it T.threads(0, 64) or T.ws(0)")
        if len(self.builder.frames) > 1:
            self.refuse(
                item.context_expr,
                "T.Kernel stands at the top of the function, not in a loop, a branch or another kernel",
            )
        # Launches follow each other; what was said of the order of blocks is said of one.
        self.builder.kernel, self.builder.order = spec.place, None
        self.builder.grid = spec.grid
        self.launch(node, item.optional_vars, spec)

    def attribute_of(self, node: ast.With, call: ast.Call) -> None:
        """`with T.attr(reducer, key, handle):`; the handle is TileLang's own, and not looked at."""
        self.current = call
        spec = language.attr(*(self.expr(each) for each in call.args[:2]))
        around, self.builder.reducer = self.builder.reducer, spec.reducer.kind
        self.statements(node.body)
        self.builder.reducer = around

    def launch(self, node: ast.With, target: ast.expr | None, spec: KernelSpec) -> None:
        # `as bx` for a grid of several dimensions gives a list, as in TileLang.
        listed = isinstance(target, ast.Name) and len(spec.grid) > 1
        names: Names
        if isinstance(target, ast.Name) and listed:
            names = [(f"{target.id}_{axis}", None) for axis in range(len(spec.grid))]
        elif target is None:
            names = [(name, None) for name in ("bx", "by", "bz")[: len(spec.grid)]]
        else:
            names = self.variables(target, len(spec.grid), "T.Kernel")
        variables = self.fresh(names)
        block_of(self.builder).block = variables

        def bind() -> None:
            if listed and isinstance(target, ast.Name):
                blocks = [Value(each) for each in variables]
                self.scope.bind(
                    target.id, Binding(blocks, self.builder.frames[-1], self.place(target), "loop")
                )
            elif target is not None:
                self.bind_loop(names, variables)

        body = self.filled("kernel", node, node.body, bind)
        body = (*self.builder.tensors, *self.builder.before, *body)
        hints = self.builder.launch_hints
        self.builder.before, self.builder.launch_hints = [], {}
        order, place = self.builder.order, self.place(node)
        launch = KernelLaunch(spec.grid, variables, body, order=order, place=place, **hints)
        launch = launch if spec.threads is None else launch.but(threads=spec.threads)
        self.builder.frames[-1].statements.append(launch)

    def group(self, node: ast.With, spec: GroupSpec) -> None:
        """The statements that some threads of the block carry out."""
        if node.items[0].optional_vars is not None:
            self.refuse(node, "a group of threads has no name: leave `as ...` out")
        body = self.filled("threads", node, node.body, lambda: None)
        self.current = node
        if body:
            group = ThreadGroup(spec.first, spec.count, vars=(), body=body, place=self.place(node))
            self.builder.emit(group)

    def for_(self, node: ast.For) -> None:
        if node.orelse:
            self.refuse(node.orelse[0], "a loop of the language has no `else`")
        iterable = self.iterable(node.iter)
        if isinstance(iterable, LoopSpec):
            names = self.variables(node.target, iterable.count, iterable.word)
            if iterable.empty:
                return
            self.current = node
            variables = self.fresh(names)
            body = self.filled(iterable.kind, node, node.body, lambda: self.bind_loop(names, variables))
            self.current = node
            loops.close(self, node, iterable, variables, body)
            return
        if isinstance(iterable, (Value, BufferView, RegionRef, KernelSpec, str)) or not isinstance(
            iterable, Iterable
        ):
            self.refuse(
                node.iter,
                "this cannot be looped over: {kind}",
                "T.serial(n), T.Parallel(...), range(n), or a Python list",
                kind=_kind(iterable),
            )
        for element in list(iterable):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            self.unpack(node.target, element)
            if loops.python_turn(self, node.body):
                break

    def iterable(self, node: ast.expr) -> Any:
        """What a loop runs over; `range` is `T.serial`."""
        if not isinstance(node, ast.Call):
            iterable = self.expr(node)
            return (
                language.serial(iterable.start, iterable.stop, iterable.step)
                if isinstance(iterable, range)
                else iterable
            )
        if self.expr(node.func) is not builtins.range:
            return self.expr(node)
        args, keys = self.arguments(node)
        self.current = node
        try:
            return language.serial(*args, **keys)
        except TileError as error:
            raise self.placed(node, error) from None

    def if_(self, node: ast.If) -> None:
        known = self.decide(self.expr(node.test))
        if isinstance(known, bool):
            self.statements(node.body if known else node.orelse)
            return
        self.current = node
        then = self.filled("if", node, node.body, lambda: None)
        orelse = self.filled("if", node, node.orelse, lambda: None)
        self.current = node
        if then or orelse:
            self.builder.emit(If(known.expr, then, orelse, place=self.place(node)))

    # -- the rest
    def expression(self, node: ast.Expr) -> None:
        value = self.expr(node.value)
        if isinstance(value, LoopSpec):
            self.refuse(node, "{word} does nothing by itself", "for i in {word}(...):", word=value.word)
        if type(value) is Value and isinstance(value.expr, Extern):
            self.refuse(node, "T.call_extern gives a value and has no effect", "store it, or leave it out")
        if isinstance(value, KernelSpec):
            self.refuse(node, "T.Kernel does nothing by itself", "with T.Kernel(...) as (bx, by):")

    def assert_(self, node: ast.Assert) -> None:
        known = self.decide(self.expr(node.test))
        if not isinstance(known, bool):
            self.current = node.test
            language.device_assert(known, "" if node.msg is None else str(self.expr(node.msg)))
            return
        if not known:
            said = "" if node.msg is None else str(self.expr(node.msg))
            self.refuse(
                node.test, "the assertion failed: {said}" if said else "the assertion failed", said=said
            )

    def define(self, node: ast.FunctionDef) -> None:
        """A macro in the kernel's own text."""
        marks = [self.expr(mark) for mark in node.decorator_list]
        if len(marks) != 1 or marks[0] not in (language.macro, language.inline):
            self.refuse(
                node, "a function inside a kernel is a macro",
                "mark it @T.macro, or define the helper outside the @T.prim_func",
            )  # fmt: skip
        place = self.place(node)
        self.scope.bind(node.name, Binding(InnerMacro(node, self), self.builder.frames[-1], place))

    def pass_(self, _: ast.Pass) -> None:
        return


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    ast.With: Statements.with_, ast.For: Statements.for_, ast.If: Statements.if_,
    ast.Assign: Statements.assign, ast.AnnAssign: Statements.annotated,
    ast.AugAssign: Statements.augmented, ast.Expr: Statements.expression,
    ast.FunctionDef: Statements.define, ast.Assert: Statements.assert_, ast.Pass: Statements.pass_,
    ast.While: loops.while_, ast.Break: loops.break_, ast.Continue: loops.continue_,
}  # fmt: skip
Statements.of_statements = HANDLERS
