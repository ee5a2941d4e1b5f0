"""Evaluating a kernel's expressions while it is traced: Python where Python knows, IR where not."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from .. import language
from ..errors import LanguageError, Place, TileError, nearest
from ..ir import Const, Let
from ..language.known import explain_missing
from ..language.tracing.arithmetic import logical, logical_not, truth
from ..language.tracing.expressions import Value
from ..language.tracing.values import BufferView, RegionRef, VarRef
from .evaluator import Evaluator
from .scope import Binding, UnknownName

# The stubs of `operator` leave the types of some functions open.
_python: Any = operator
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: _python.add, ast.Sub: _python.sub, ast.Mult: _python.mul, ast.Div: _python.truediv,
    ast.FloorDiv: _python.floordiv, ast.Mod: _python.mod, ast.Pow: _python.pow,
    ast.LShift: _python.lshift, ast.RShift: _python.rshift, ast.BitAnd: _python.and_,
    ast.BitOr: _python.or_, ast.BitXor: _python.xor, ast.MatMult: _python.matmul,
}  # fmt: skip
COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


class Expressions(Evaluator):
    """The expressions of the language."""

    # -- leaves
    def constant(self, node: ast.Constant) -> Any:
        return node.value

    def name(self, node: ast.Name) -> Any:
        try:
            return self.scope.lookup(node.id)
        except UnknownName:
            later = self.bound_later(node)
            if later is None:
                raise
            self.refuse(
                node, "{name} is used before it is bound", name=node.id, also=[("it is bound here", later)]
            )

    def bound_later(self, node: ast.Name) -> Place | None:
        """Where the function binds a name further down."""
        for part in ast.walk(self.source.node):
            if not isinstance(part, ast.Name) or part.id != node.id or not isinstance(part.ctx, ast.Store):
                continue
            if part.lineno > node.lineno:
                return self.place(part)
        return None

    def attribute(self, node: ast.Attribute) -> Any:
        base = self.expr(node.value)
        self.current = node
        try:
            return getattr(base, node.attr)
        except AttributeError as error:
            if base is language:
                what, hint = explain_missing(node.attr, language.NAMES)
                self.refuse(node, what, hint)
            if isinstance(base, (Value, BufferView, RegionRef)):
                known = [each for each in dir(base) if not each.startswith("_")]
                close = nearest(node.attr, known, limit=1)
                kind = "value" if isinstance(base, Value) else "buffer"
                hint = f"did you mean .{close[0]}?" if close else ""
                self.refuse(
                    node, "a {kind} of a kernel has no attribute {name}", hint, kind=kind, name=node.attr
                )
            raise error

    # -- operators
    def binary(self, node: ast.BinOp) -> Any:
        # A chain `a + b + c + ...` leans to the left: walked in a loop, it may be of any length.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        total = self.expr(chain[-1].left)
        for step in reversed(chain):
            try:
                right = self.expr(step.right)
                self.current = step
                total = self.apply(step.op, total, right)
            except TileError as error:
                raise self.placed(step, error) from error.__cause__
            except Exception as error:
                raise self.foreign(step, error) from error
        return total

    def apply(self, op: ast.operator, left: Any, right: Any) -> Any:
        """A binary operator; whole tiles have none."""
        for side in (left, right):
            if isinstance(side, (BufferView, RegionRef)):
                raise LanguageError(
                    "{name} is a tile: operators work on its elements",
                    name=side.name,
                    hint="loop over the elements: for i, j in T.Parallel(...): ... {name}[i, j] ...",
                )
        return BINARY[type(op)](left, right)

    def unary(self, node: ast.UnaryOp) -> Any:
        operand = self.expr(node.operand)
        self.current = node
        if isinstance(node.op, ast.Not):
            return Value(logical_not(operand.expr)) if isinstance(operand, Value) else not operand
        return UNARY[type(node.op)](operand)

    def compare(self, node: ast.Compare) -> Any:
        left = self.expr(node.left)
        parts: list[Any] = []
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.expr(comparator)
            self.current = node
            found = COMPARE[type(op)](left, right)
            if not isinstance(found, Value) and not found and len(node.ops) > 1:
                return False
            parts.append(found)
            left = right
        return self.conjunction("and", parts)

    def boolean(self, node: ast.BoolOp) -> Any:
        op = "and" if isinstance(node.op, ast.And) else "or"
        parts: list[Any] = []
        for part in node.values:
            value = self.perhaps(part) if any(isinstance(p, Value) for p in parts) else self.expr(part)
            known = value.expr if isinstance(value, Value) else None
            decided = (
                bool(known.value) if isinstance(known, Const) else None if known is not None else bool(value)
            )
            if decided is (op == "or") and not any(isinstance(p, Value) for p in parts):
                return value
            parts.append(value)
            if decided is (op == "or"):
                break
        self.current = node
        return self.conjunction(op, parts)

    def perhaps(self, node: ast.expr) -> Any:
        """A value that Python would ask for only where a condition of the running kernel holds."""
        body = self.builder.frames[-1].statements
        before = len(body)
        value = self.expr(node)
        if any(not isinstance(statement, Let) for statement in body[before:]):
            self.refuse(
                node, "this does something, and would do it whatever the condition says",
                "put it under `if`, or on a line of its own before",
            )  # fmt: skip
        return value

    def conjunction(self, op: str, parts: list[Any]) -> Any:
        """Parts joined: traced ones as IR, those that Python knows have no say any more."""
        traced = [truth(each.expr) for each in parts if isinstance(each, Value)]
        if not traced:
            return parts[-1]
        known = [each for each in parts if not isinstance(each, Value)]
        if any(bool(each) is (op == "or") for each in known):
            return op == "or"
        return Value(logical(op, traced))

    def decide(self, condition: Any) -> bool | Value:
        """What a condition comes to: a bool that is known, or a traced one."""
        if isinstance(condition, (BufferView, RegionRef)):
            raise LanguageError(
                "{name} is a tile and has no truth value", name=condition.name, hint="test an element"
            )
        if not isinstance(condition, Value):
            return bool(condition)
        test = truth(condition.expr)
        return bool(test.value) if isinstance(test, Const) else Value(test)

    def conditional(self, node: ast.IfExp) -> Any:
        known = self.decide(self.expr(node.test))
        if isinstance(known, bool):
            return self.expr(node.body if known else node.orelse)
        yes, no = self.perhaps(node.body), self.perhaps(node.orelse)
        self.current = node
        return language.if_then_else(known, yes, no)

    # -- subscripts
    def subscript(self, node: ast.Subscript) -> Any:
        base = self.expr(node.value)
        key = self.expr(node.slice)
        self.current = node
        if isinstance(base, Value) and not isinstance(base, VarRef):
            raise LanguageError("a single value cannot be indexed: {text}", text=base)
        return base[key]

    def slice(self, node: ast.Slice) -> Any:
        return slice(
            *(None if each is None else self.expr(each) for each in (node.lower, node.upper, node.step))
        )

    # -- calls
    def call(self, node: ast.Call) -> Any:
        function = self.expr(node.func)
        args, keys = self.arguments(node)
        self.current = node
        return self.invoke(function, args, keys)

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """The values of a call's arguments."""
        args = self.elements(node.args)
        keys: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.expr(keyword.value)
            if keyword.arg is None:
                keys.update(value)
            else:
                keys[keyword.arg] = value
        return args, keys

    # -- displays
    def elements(self, nodes: list[ast.expr]) -> list[Any]:
        out: list[Any] = []
        for element in nodes:
            if isinstance(element, ast.Starred):
                out.extend(self.expr(element.value))
            else:
                out.append(self.expr(element))
        return out

    def tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.elements(node.elts))

    def list(self, node: ast.List) -> Any:
        return self.elements(node.elts)

    def set(self, node: ast.Set) -> Any:
        return {*self.elements(node.elts)}

    def dict(self, node: ast.Dict) -> Any:
        out: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                out.update(self.expr(value))
            else:
                out[self.expr(key)] = self.expr(value)
        return out

    def text(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.expr(each)) for each in node.values)

    def formatted(self, node: ast.FormattedValue) -> str:
        value = self.expr(node.value)
        value = {115: str, 114: repr, 97: ascii}[node.conversion](value) if node.conversion > 0 else value
        spec = self.expr(node.format_spec) if node.format_spec else ""
        return format(value, spec) if not isinstance(value, (Value, BufferView)) else repr(value)

    # -- comprehensions and lambdas
    def comprehension(self, node: Any) -> Any:
        before = dict(self.scope.locals)
        try:
            if isinstance(node, ast.DictComp):
                return {self.expr(node.key): self.expr(node.value) for _ in self.runs(node.generators)}
            elements = [self.expr(node.elt) for _ in self.runs(node.generators)]
        finally:
            self.scope.locals = before
        return set(elements) if isinstance(node, ast.SetComp) else elements

    def runs(self, generators: list[ast.comprehension]) -> Iterator[None]:
        if not generators:
            yield
            return
        first, *rest = generators
        for element in self.expr(first.iter):
            self.unpack(first.target, element)
            checks = [self.decide(self.expr(test)) for test in first.ifs]
            if any(isinstance(check, Value) for check in checks):
                self.refuse(first.ifs[0], "a comprehension can only filter on what Python knows")
            if all(checks):
                yield from self.runs(rest)

    def unpack(self, target: ast.expr, value: Any) -> None:
        """Bind names of a comprehension or a list loop to Python values."""
        if isinstance(target, ast.Name):
            self.scope.bind(target.id, Binding(value, self.builder.frames[-1], self.place(target)))
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            self.refuse(target, "only names can be bound here")
        parts = list(value)
        if len(parts) != len(target.elts):
            self.refuse(target, "{n} names for {m} values", n=len(target.elts), m=len(parts))
        for inner, part in zip(target.elts, parts, strict=True):
            self.unpack(inner, part)

    def lambda_(self, node: ast.Lambda) -> Any:
        given = node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
            self.refuse(node, "a lambda in a kernel takes plain arguments only")
        names = [each.arg for each in given.args]
        filled = [self.expr(each) for each in given.defaults]

        def call(*args: Any) -> Any:
            missing = len(names) - len(args)
            args = (*args, *filled[len(filled) - missing :]) if 0 < missing <= len(filled) else args
            if len(args) != len(names):
                raise TypeError(f"this lambda takes {len(names)} arguments, found {len(args)}")
            before = dict(self.scope.locals)
            try:
                for name, value in zip(names, args, strict=True):
                    self.scope.bind(name, Binding(value, self.builder.frames[-1], self.place(node)))
                return self.expr(node.body)
            finally:
                self.scope.locals = before

        call.__module__ = "tilebench.lambda"
        return call


Expressions.handlers = {
    ast.Constant: Expressions.constant, ast.Name: Expressions.name, ast.Attribute: Expressions.attribute,
    ast.BinOp: Expressions.binary, ast.UnaryOp: Expressions.unary, ast.Compare: Expressions.compare,
    ast.BoolOp: Expressions.boolean, ast.IfExp: Expressions.conditional, ast.Subscript: Expressions.subscript,
    ast.Slice: Expressions.slice, ast.Call: Expressions.call, ast.Tuple: Expressions.tuple,
    ast.List: Expressions.list,
    ast.Set: Expressions.set, ast.Dict: Expressions.dict, ast.JoinedStr: Expressions.text,
    ast.FormattedValue: Expressions.formatted, ast.ListComp: Expressions.comprehension,
    ast.GeneratorExp: Expressions.comprehension, ast.SetComp: Expressions.comprehension,
    ast.DictComp: Expressions.comprehension, ast.Lambda: Expressions.lambda_,
}  # fmt: skip
