"""Assignments: names bound once, variables of `T.alloc_var`, and elements of buffers."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from ..errors import LanguageError, TileError
from ..ir import Const, DType, Let, Load, Var, walk
from ..language.launch import LoopSpec
from ..language.thread_numbers import is_thread_number
from ..language.tracing.expressions import Pending, Value, cast_value
from ..language.tracing.kinds import SideBySide
from ..language.tracing.stores import assign_var, store_element
from ..language.tracing.values import BufferView, ElementRef, RegionRef, VarRef
from .expressions import Expressions
from .scope import Binding


class Assignments(Expressions):
    """The statements that bind a name or store a value."""

    def assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        if isinstance(first, ast.Tuple) and isinstance(node.value, ast.Tuple):
            value: Any = self.paired(first, node.value)
        else:
            value = self.valued(node.value, first.id if isinstance(first, ast.Name) else "")
        for target in node.targets:
            self.current = node
            self.assign_to(target, value, node)

    def paired(self, target: ast.Tuple, value: ast.Tuple) -> tuple[Any, ...]:
        """The values of `a, b = x, y`, each knowing the name it is for."""
        if len(target.elts) != len(value.elts) or any(isinstance(each, ast.Starred) for each in value.elts):
            return self.valued(value, "")
        names = [each.id if isinstance(each, ast.Name) else "" for each in target.elts]
        return tuple(self.valued(each, name) for each, name in zip(value.elts, names, strict=True))

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
                base, key = self.expr(target.value), self.expr(target.slice)
                lanes = self.of_lanes(key, value) if isinstance(base, BufferView) else None
                if lanes is not None:
                    self.current = node
                    lanes.store(base, _parts(key), value)
                elif isinstance(base, BufferView):
                    self.store(target, self.element(target, base, key), value, node)
                elif isinstance(base, VarRef):
                    self.current = node
                    base[key] = value
                elif isinstance(base, (Value, RegionRef)):
                    self.refuse(target, "this cannot be assigned to: it is no buffer")
                else:
                    base[key] = value
            case ast.Attribute():
                self.refuse(target, "an attribute cannot be assigned in a kernel", "use a name or a buffer")
            case _:
                self.refuse(target, "this cannot be assigned to")

    def of_lanes(self, key: Any, value: Any) -> SideBySide | None:
        """The vector among the parts of a key, or the value: what stores several elements."""
        return next((part for part in (*_parts(key), value) if isinstance(part, SideBySide)), None)

    def element(self, target: ast.Subscript, base: Any, key: Any) -> Any:
        """`held[key]`, with the subscript as the place of what is wrong with it."""
        self.current = target
        try:
            return base[key]
        except TileError as error:
            raise self.placed(target, error) from None

    def store(self, target: ast.Subscript, element: Any, value: Any, node: Any) -> None:
        self.current = node
        if not isinstance(element, ElementRef):
            self.refuse(
                target,
                "a whole region of {name} cannot be assigned",
                "use T.copy(source, {name}[...]) or T.fill({name}[...], value)",
                name=element.name,
            )
        store_element(element, value)

    def assign_many(self, target: ast.Tuple | ast.List, value: Any, node: Any) -> None:
        if isinstance(value, (Value, BufferView, RegionRef)) or not isinstance(value, Iterable):
            self.refuse(target, "a single value cannot be taken apart into {n} names", n=len(target.elts))
        parts: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        parts = self.gathered(target, parts)
        # All right sides are read before the first store, so `a, b = b, a` swaps.
        if any(self.stores(each) for each in target.elts):
            parts = [self.read_now(each) for each in parts]
        for name, part in zip(target.elts, parts, strict=True):
            self.assign_to(name.value if isinstance(name, ast.Starred) else name, part, node)

    def gathered(self, target: ast.Tuple | ast.List, parts: list[Any]) -> list[Any]:
        """A value for each name; a name with a star takes the list of those that are left."""
        stars = [k for k, name in enumerate(target.elts) if isinstance(name, ast.Starred)]
        rest = len(parts) - len(target.elts)
        if stars and rest >= -1:
            first = stars[0]
            parts = [*parts[:first], parts[first : first + rest + 1], *parts[first + rest + 1 :]]
        if len(parts) != len(target.elts):
            self.refuse(target, "{n} names for {m} values", n=len(target.elts), m=len(parts))
        return parts

    def stores(self, target: ast.expr) -> bool:
        """Whether assigning to this target writes to memory, rather than binding a name."""
        if isinstance(target, ast.Name):
            binding = self.scope.locals.get(target.id)
            return binding is not None and (binding.how == "ref" or isinstance(binding.value, VarRef))
        return isinstance(target, ast.Subscript)

    def read_now(self, value: Any) -> Any:
        """A value that reads memory under a name, so that later stores do not change it."""
        if not isinstance(value, Value) or not any(isinstance(each, Load) for each in walk(value.expr)):
            return value
        name = value.name if isinstance(value, (VarRef, ElementRef)) else "value"
        return self.named(value, f"{name}_before")

    def assign_name(self, target: ast.Name, value: Any, fresh: bool = False) -> None:
        name = target.id
        if isinstance(value, LoopSpec) and value.number is not None:
            value = Value(value.number)
        binding = self.scope.locals.get(name)
        if binding is not None:
            old = binding.value
            if isinstance(old, VarRef) and not (fresh and isinstance(value, VarRef)):
                assign_var(old, value)
                return
            if isinstance(old, ElementRef) and binding.how == "ref":
                store_element(old, value)
                return
            self.check_rebinding(target, binding, fresh and isinstance(value, BufferView))
        elif not (fresh and isinstance(value, (VarRef, BufferView))):
            self.check_enclosing(target)
        bound = (
            self.named(value, name)
            if isinstance(value, Value) and not (fresh and isinstance(value, (VarRef, Pending)))
            else value
        )
        self.scope.bind(name, Binding(bound, self.builder.frames[-1], self.place(target)))

    def check_enclosing(self, target: ast.Name) -> None:
        """Refuse a macro's assignment to a variable around it, which would make a name of its own."""
        around = self.scope.enclosing(target.id)
        if around is not None and isinstance(around.value, VarRef):
            raise LanguageError(
                "{name} is a variable around this macro, which an assignment here does not change",
                at=self.place(target), name=target.id, also=[("it is made here", around.place)],
                hint="say `nonlocal {name}` in the macro, or pass it: {name}: T.Ref",
            )  # fmt: skip

    def check_rebinding(self, target: ast.Name, binding: Binding, allocated: bool) -> None:
        """Refuse what would silently do nothing: names are bound once, only T.alloc_var can change."""
        also = [("it is bound here", binding.place)]
        name = target.id
        if binding.how == "loop":
            raise LanguageError(
                "the loop variable {name} cannot be assigned", at=self.place(target), name=name, also=also
            )
        if isinstance(binding.value, BufferView) and not allocated:
            raise LanguageError(
                "{name} is a buffer and cannot be assigned as a whole",
                at=self.place(target),
                name=name,
                also=also,
                hint="assign its elements in T.Parallel, or use T.copy or T.fill",
            )
        if binding.frame is not self.builder.frames[-1] and self.builder.frames[-1].kind != "kernel":
            raise LanguageError(
                "{name} is bound outside this loop or branch, so the new value would be lost after it",
                at=self.place(target),
                name=name,
                also=also,
                hint="keep it in a variable: {name} = T.alloc_var(dtype, init=...) before the block"
                " (TileLang would make a {name} that ends with the block)",
            )

    def named(self, value: Value, name: str) -> Value:
        """The value under a name of its own, computed once; constants stay as they are."""
        expr = value.expr
        # The number of a thread stays what it is: conditions on it are read, not computed. Before the kernel
        # opens there are sizes only, which are written out where they are used.
        if isinstance(expr, Const) or is_thread_number(expr, self.builder) or len(self.builder.frames) == 1:
            return Value(expr)
        var = Var(self.builder.unique(name), type=expr.dtype, place=self.builder.place)
        self.builder.emit(Let(var, expr, place=self.builder.place))
        if not any(isinstance(each, Load) for each in walk(expr)):
            self.builder.values[var.name] = expr
        return Value(var)

    def annotated(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.refuse(
                node, "a bare annotation declares a tensor only in the eager form", "give the name a value"
            )
        if not isinstance(node.target, ast.Name):
            self.refuse(node.target, "only a name can be annotated")
        kind = self.expr(node.annotation)
        value = self.valued(node.value, node.target.id)
        self.current = node
        if isinstance(kind, (DType, str)) and not isinstance(value, (BufferView, VarRef, RegionRef)):
            value = cast_value(value, kind)
        self.assign_to(node.target, value, node)

    def augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            try:
                old = self.scope.lookup(target.id)
            except TileError as error:
                raise self.placed(target, error) from None
            value = self.expr(node.value)
            self.current = node
            self.assign_name(target, self.apply(node.op, old, value))
        elif isinstance(target, ast.Subscript):
            base, key = self.expr(target.value), self.expr(target.slice)
            old = self.element(target, base, key)
            value = self.expr(node.value)
            self.current = node
            result = self.apply(node.op, old, value)
            if isinstance(base, BufferView):
                self.store(target, old, result, node)
            else:
                base[key] = result
        else:
            self.refuse(target, "an attribute cannot be assigned in a kernel", "use a name or a buffer")


def _parts(key: Any) -> tuple[Any, ...]:
    """The indices of a key, one a dimension."""
    return tuple(key) if isinstance(key, tuple) else (key,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
