"""Tracing a kernel's statements: the body of a `@T.prim_func` becomes statements of the `tile` stage."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable
from typing import Any

from .. import language
from ..errors import LanguageError, TileError
from ..ir import Const, DType, If, Let, Stmt, Var
from ..language.builder import Frame
from ..language.launch import KernelSpec, LoopSpec
from ..language.memory import assign_var, store_element
from ..language.promote import cast_value
from ..language.structure import KernelLaunch
from ..language.values import BufferView, ElementRef, RegionRef, Value, VarRef
from .expressions import Expressions
from .scope import Binding

REFUSED: dict[type, tuple[str, str]] = {
    ast.While: ("the language has no `while`", "loop over T.serial(n) and guard the body with `if`"),
    ast.Break: ("the language has no `break`", "guard the rest of the body with `if`"),
    ast.Continue: ("the language has no `continue`", "guard the rest of the body with `if`"),
    ast.Try: ("the language has no `try`", "nothing can be raised on the device"),
    ast.Raise: ("the language has no `raise`", "check Python values before the kernel, in the @tilebench.jit function"),
    ast.ClassDef: ("the language has no `class`", "define it outside the kernel"),
    ast.FunctionDef: ("the language has no `def` inside a kernel", "define the helper outside the @T.prim_func"),
    ast.AsyncFunctionDef: ("the language has no `async`", ""),
    ast.AsyncFor: ("the language has no `async`", ""),
    ast.AsyncWith: ("the language has no `async`", ""),
    ast.Import: ("the language has no `import`", "import at the top of the file"),
    ast.ImportFrom: ("the language has no `import`", "import at the top of the file"),
    ast.Delete: ("the language has no `del`", "a name ends with its block"),
    ast.Global: ("the language has no `global`", "pass the value as a parameter"),
    ast.Nonlocal: ("the language has no `nonlocal`", "pass the value as a parameter"),
    ast.Match: ("the language has no `match`", "use `if` and `elif`"),
    ast.Return: ("a kernel returns nothing", "write the result into one of the arrays it is given"),
}


class Statements(Expressions):
    """Runs the statements of one function, filling the builder's bodies."""

    def statements(self, body: Iterable[ast.stmt]) -> None:
        for each in body:
            self.statement(each)

    def statement(self, node: ast.stmt) -> None:
        handler = HANDLERS.get(type(node))
        self.at = node
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
    def filled(self, kind: str, node: Any, body: Iterable[ast.stmt], bind: Callable[[], None]) -> tuple[Stmt, ...]:
        """The statements of one body; names bound in it end with it."""
        frame = Frame(kind, self.place(node))
        self.builder.frames.append(frame)
        try:
            bind()
            self.statements(body)
        finally:
            self.builder.frames.pop()
            self.scope.close(frame)
        return tuple(frame.statements)

    def variables(self, target: ast.expr | None, count: int, what: str, default: str) -> list[tuple[str, ast.expr | None]]:
        """The names that a loop or launch brings in, as many as it has dimensions."""
        if target is None:
            return [(default[k], None) for k in range(count)] if what == "T.Kernel" else []
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if len(parts) != count:
            self.refuse(
                target, "{word} has {count} dimensions, found {n} names", "one name for each dimension",
                word=what, count=count, n=len(parts),
            )  # fmt: skip
        names: list[tuple[str, ast.expr | None]] = []
        for each in parts:
            if not isinstance(each, ast.Name):
                self.refuse(each, "a loop binds plain names")
            names.append((each.id, each))
        return names

    def fresh(self, names: list[tuple[str, ast.expr | None]]) -> tuple[Var, ...]:
        return tuple(Var(self.builder.unique(name), place=self.builder.place) for name, _ in names)

    def bind_loop(self, names: list[tuple[str, ast.expr | None]], variables: tuple[Var, ...]) -> None:
        for (name, node), var in zip(names, variables, strict=True):
            place = self.place(node) if node is not None else self.builder.place
            self.scope.bind(name, Binding(Value(var), self.builder.frames[-1], place, "loop"))

    # -- blocks
    def with_(self, node: ast.With) -> None:
        if len(node.items) != 1:
            self.refuse(node, "a kernel opens one `with` at a time")
        item = node.items[0]
        spec = self.expr(item.context_expr)
        if not isinstance(spec, KernelSpec):
            self.refuse(item.context_expr, "the only `with` of the language is `with T.Kernel(...)`")
        if self.builder.kernel is not None:
            raise LanguageError(
                "a kernel has one `with T.Kernel(...)`", at=self.place(item.context_expr),
                also=[("the first is here", self.builder.kernel)],
                hint="write a second @T.prim_func for a second launch",
            )  # fmt: skip
        if len(self.builder.frames) > 1:
            self.refuse(item.context_expr, "T.Kernel stands at the top of the function, not in a loop or branch")
        self.builder.kernel = spec.place
        self.launch(node, item.optional_vars, spec)

    def launch(self, node: ast.With, target: ast.expr | None, spec: KernelSpec) -> None:
        # `as bx` for a grid of several dimensions gives a list, as in TileLang.
        listed = isinstance(target, ast.Name) and len(spec.grid) > 1
        if isinstance(target, ast.Name) and len(spec.grid) > 1:
            names = [(f"{target.id}_{axis}", None) for axis in range(len(spec.grid))]
        else:
            names = self.variables(target, len(spec.grid), "T.Kernel", "xyz")
            names = [(f"b{name}", None) for name, _ in names] if target is None else names
        variables = self.fresh(names)

        def bind() -> None:
            if listed and isinstance(target, ast.Name):
                held = [Value(each) for each in variables]
                self.scope.bind(target.id, Binding(held, self.builder.frames[-1], self.place(target), "loop"))
            elif target is not None:
                self.bind_loop(names, variables)

        body = self.filled("kernel", node, node.body, bind)
        made = KernelLaunch(
            spec.grid, variables, body, threads=spec.threads, order=self.builder.order, place=self.place(node)
        )
        self.builder.frames[-1].statements.append(made)

    def for_(self, node: ast.For) -> None:
        if node.orelse:
            self.refuse(node.orelse[0], "a loop of the language has no `else`")
        held = self.iterable(node.iter)
        if isinstance(held, LoopSpec):
            names = self.variables(node.target, held.count, held.word, "")
            self.at = node
            variables = self.fresh(names)
            body = self.filled(held.kind, node, node.body, lambda: self.bind_loop(names, variables))
            self.at = node
            self.builder.emit(held.build(variables, body).at(self.place(node)))
            return
        if isinstance(held, (Value, BufferView, RegionRef, KernelSpec, str)) or not isinstance(held, Iterable):
            self.refuse(
                node.iter, "this cannot be looped over: {kind}", "T.serial(n), T.Parallel(...), range(n), or a Python list",
                kind=type(held).__name__,
            )  # fmt: skip
        for each in list(held):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            self.unpack(node.target, each)
            self.statements(node.body)

    def iterable(self, node: ast.expr) -> Any:
        """What a loop runs over; `range` is `T.serial`."""
        if not isinstance(node, ast.Call):
            held = self.expr(node)
            return language.serial(held.start, held.stop, held.step) if isinstance(held, range) else held
        if self.expr(node.func) is not builtins.range:
            return self.expr(node)
        args, keys = self.arguments(node)
        self.at = node
        try:
            return language.serial(*args, **keys)
        except TileError as error:
            raise self.placed(node, error) from None

    def if_(self, node: ast.If) -> None:
        known = self.decide(self.expr(node.test))
        if isinstance(known, bool):
            self.statements(node.body if known else node.orelse)
            return
        self.at = node
        then = self.filled("if", node, node.body, lambda: None)
        orelse = self.filled("if", node, node.orelse, lambda: None)
        if then or orelse:
            self.at = node
            self.builder.emit(If(known.expr, then, orelse, place=self.place(node)))

    # -- assignment
    def assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        value = self.valued(node.value, first.id if isinstance(first, ast.Name) else "")
        for each in node.targets:
            self.at = node
            self.assign_to(each, value, node)

    def valued(self, node: ast.expr, target: str) -> Any:
        """The value of an assignment; an allocation in it takes the name it is assigned to."""
        self.builder.target = target
        try:
            return self.expr(node)
        finally:
            self.builder.target = ""

    def assign_to(self, target: ast.expr, value: Any, node: Any) -> None:
        match target:
            case ast.Name():
                self.assign_name(target, value, fresh=isinstance(getattr(node, "value", None), ast.Call))
            case ast.Tuple() | ast.List():
                self.assign_many(target, value, node)
            case ast.Subscript():
                held, key = self.expr(target.value), self.expr(target.slice)
                if isinstance(held, BufferView):
                    self.store(target, self.element(target, held, key), value, node)
                elif isinstance(held, (Value, RegionRef)):
                    self.refuse(target, "this cannot be assigned to: it is no buffer")
                else:
                    held[key] = value
            case ast.Attribute():
                self.refuse(target, "an attribute cannot be assigned in a kernel", "use a name or a buffer")
            case _:
                self.refuse(target, "this cannot be assigned to")

    def element(self, target: ast.Subscript, held: Any, key: Any) -> Any:
        """`held[key]`, with the subscript as the place of what is wrong with it."""
        self.at = target
        try:
            return held[key]
        except TileError as error:
            raise self.placed(target, error) from None

    def store(self, target: ast.Subscript, element: Any, value: Any, node: Any) -> None:
        self.at = node
        if not isinstance(element, ElementRef):
            self.refuse(
                target, "a whole region of {name} cannot be assigned",
                "use T.copy(source, {name}[...]) or T.fill({name}[...], value)", name=element.name,
            )  # fmt: skip
        store_element(element, value)

    def assign_many(self, target: ast.Tuple | ast.List, value: Any, node: Any) -> None:
        if isinstance(value, (Value, BufferView, RegionRef)) or not isinstance(value, Iterable):
            self.refuse(target, "a single value cannot be taken apart into {n} names", n=len(target.elts))
        held: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        if len(held) != len(target.elts):
            self.refuse(target, "{n} names for {m} values", n=len(target.elts), m=len(held))
        # All right sides are read before the first is assigned, so `a, b = b, a` swaps.
        held = [self.named(each, f"{each.name}_before") if isinstance(each, VarRef) else each for each in held]
        for each, part in zip(target.elts, held, strict=True):
            self.assign_to(each, part, node)

    def assign_name(self, target: ast.Name, value: Any, fresh: bool = False) -> None:
        name = target.id
        held = self.scope.locals.get(name)
        if held is not None:
            old = held.value
            if isinstance(old, VarRef) and not (fresh and isinstance(value, VarRef)):
                assign_var(old, value)
                return
            self.check_rebinding(target, held, fresh and isinstance(value, BufferView))
        made = self.named(value, name) if isinstance(value, Value) and not (fresh and isinstance(value, VarRef)) else value
        self.scope.bind(name, Binding(made, self.builder.frames[-1], self.place(target)))

    def check_rebinding(self, target: ast.Name, held: Binding, allocated: bool) -> None:
        """Refuse what would silently do nothing: names are bound once, only T.alloc_var can change."""
        also = [("it is bound here", held.place)]
        name = target.id
        if held.how == "loop":
            raise LanguageError("the loop variable {name} cannot be assigned", at=self.place(target), name=name, also=also)
        if isinstance(held.value, BufferView) and not allocated:
            raise LanguageError(
                "{name} is a buffer and cannot be assigned as a whole", at=self.place(target), name=name, also=also,
                hint="assign its elements in T.Parallel, or use T.copy or T.fill",
            )  # fmt: skip
        if held.frame is not self.builder.frames[-1] and self.builder.frames[-1].kind != "kernel":
            raise LanguageError(
                "{name} is bound outside this loop or branch, so the new value would be lost after it",
                at=self.place(target), name=name, also=also,
                hint="keep it in a variable: {name} = T.alloc_var(dtype, init=...) before the block",
            )  # fmt: skip

    def named(self, value: Value, name: str) -> Value:
        """The value under a name of its own, computed once; constants stay as they are."""
        expr = value.expr
        if isinstance(expr, Const):
            return Value(expr)
        var = Var(self.builder.unique(name), type=expr.dtype, place=self.builder.place)
        self.builder.emit(Let(var, expr, place=self.builder.place))
        return Value(var)

    def annotated(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.refuse(node, "a bare annotation declares a tensor only in the eager form", "give the name a value")
        if not isinstance(node.target, ast.Name):
            self.refuse(node.target, "only a name can be annotated")
        kind = self.expr(node.annotation)
        value = self.valued(node.value, node.target.id)
        self.at = node
        if isinstance(kind, (DType, str)) and not isinstance(value, (BufferView, VarRef, RegionRef)):
            value = cast_value(value, kind)
        self.assign_to(node.target, value, node)

    def augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            old, value = self.expr(target_as_load(target)), self.expr(node.value)
            self.at = node
            self.assign_name(target, self.apply(node.op, old, value))
        elif isinstance(target, ast.Subscript):
            held, key = self.expr(target.value), self.expr(target.slice)
            old = self.element(target, held, key)
            value = self.expr(node.value)
            self.at = node
            result = self.apply(node.op, old, value)
            if isinstance(held, BufferView):
                self.store(target, old, result, node)
            else:
                held[key] = result
        else:
            self.refuse(target, "an attribute cannot be assigned in a kernel", "use a name or a buffer")

    # -- the rest
    def expression(self, node: ast.Expr) -> None:
        held = self.expr(node.value)
        if isinstance(held, LoopSpec):
            self.refuse(node, "{word} does nothing by itself", "for i in {word}(...):", word=held.word)
        if isinstance(held, KernelSpec):
            self.refuse(node, "T.Kernel does nothing by itself", "with T.Kernel(...) as (bx, by):")

    def assert_(self, node: ast.Assert) -> None:
        known = self.decide(self.expr(node.test))
        if not isinstance(known, bool):
            self.refuse(node.test, "an assertion on a value of the running kernel is TileLang's, not here yet")
        if not known:
            said = "" if node.msg is None else str(self.expr(node.msg))
            self.refuse(node.test, "the assertion failed: {said}" if said else "the assertion failed", said=said)

    def pass_(self, _: ast.Pass) -> None:
        return


def target_as_load(target: ast.Name) -> ast.expr:
    """The target of `x += 1` as an expression that reads it."""
    return ast.copy_location(ast.Name(target.id, ast.Load()), target)


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    ast.With: Statements.with_, ast.For: Statements.for_, ast.If: Statements.if_, ast.Assign: Statements.assign,
    ast.AnnAssign: Statements.annotated, ast.AugAssign: Statements.augmented, ast.Expr: Statements.expression,
    ast.Assert: Statements.assert_, ast.Pass: Statements.pass_,
}  # fmt: skip
