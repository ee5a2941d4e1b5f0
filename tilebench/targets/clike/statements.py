"""The rows that every language like C shares: values, stores, branches, loops and allocations."""

from __future__ import annotations

from ...ir import ACQUIRES, RELEASES, AllocStmt, Call, If, Let, LoopStmt, Region, Store, While, const_of
from ...ir.stmt import statements
from ...language.addresses import TensorAt
from ...language.extern import ExternCall
from ...language.lowered.threads import SyncThreads
from ...language.memory import AllocLocal, AllocShared, AllocVar
from ...language.scopes import entered
from ...language.structure import Serial, Unroll
from .dialect import LEVEL
from .renderer import Renderer, StatementText


def let(renderer: Renderer, statement: Let) -> None:
    var, expressions = statement.var, renderer.expressions
    value = expressions.text(statement.value)
    if var.dtype.is_integer:
        low, high = _range(renderer, statement)
        expressions.rough.know(expressions.rough.facts.with_range(var.name, low, high))
    renderer.line(f"const {renderer.type_of(var.type)} {renderer.names[var.name]} = {value};", statement)


def _range(renderer: Renderer, statement: Let) -> tuple[int, int]:
    if isinstance(statement.value, Call) and statement.value.word == "thread_id":
        return 0, renderer.launch.threads - 1
    return renderer.expressions.rough.facts.bounds(statement.value)


def store(renderer: Renderer, statement: Store) -> None:
    packed = renderer.dialect.packed_in(statement.buffer)
    if packed is not None:
        name, value = renderer.names[statement.buffer.name], renderer.text(statement.value)
        offset = renderer.expressions.offset(statement.buffer, statement.index)
        renderer.line(packed.store.format(name=name, offset=offset, value=value), statement)
        return
    element = renderer.expressions.element(statement.buffer, statement.index)
    if statement.atomic:
        _atomic(renderer, statement, element)
        return
    renderer.line(f"{element} = {renderer.text(statement.value)};", statement)


def _atomic(renderer: Renderer, statement: Store, element: str) -> None:
    """An atomic between the fences that its order asks for; what it found goes into its scalar."""
    dialect = renderer.dialect
    text = dialect.atomic_load if statement.looks else dialect.atomic
    combined = text.format(how=statement.atomic, element=element, value=renderer.text(statement.value))
    found = "" if statement.found is None else f"{renderer.names[statement.found.name]} = "
    if statement.order == "seq_cst":
        renderer.line(dialect.fence_of_all, statement)
    elif statement.order in RELEASES:
        renderer.line(dialect.fence, statement)
    renderer.line(f"{found}{combined};", statement)
    if statement.order in ACQUIRES and statement.atomic != "store":
        renderer.line(dialect.fence, statement)


def branch(renderer: Renderer, statement: If) -> None:
    head = f"if ({renderer.text(statement.condition)}) {{"
    renderer.block(head, statement, statement.then, "} else {" if statement.orelse else "}")
    if statement.orelse:
        renderer.depth += 1
        renderer.body(statement.orelse)
        renderer.depth -= 1
        renderer.line("}", None)


def loop(renderer: Renderer, statement: Serial | Unroll) -> None:
    expressions, var = renderer.expressions, statement.vars[0]
    rises = (const_of(statement.step) or 1) > 0
    name, step = renderer.names[var.name], expressions.text(statement.step)
    advance = f"++{name}" if step == "1" else f"{name} += {step}"
    pragma = _pragma(renderer, statement)
    if pragma:
        renderer.line(pragma, statement)
    start, stop = expressions.text(statement.start), expressions.at_least(statement.stop, LEVEL["<"] + 1)
    inside = f"{name} {'<' if rises else '>'} {stop}"
    if statement.condition is not None:
        inside = f"{inside} && {expressions.at_least(statement.condition, LEVEL['and'] + 1)}"
    head = f"for (int {name} = {start}; {inside}; {advance}) {{"
    renderer.block(head, statement, statement.body, facts=entered(statement, expressions.rough.facts))


def turns(renderer: Renderer, statement: While) -> None:
    renderer.block(f"while ({renderer.text(statement.condition)}) {{", statement, statement.body)


def _pragma(renderer: Renderer, statement: Serial | Unroll) -> str:
    if isinstance(statement, Unroll):
        by = renderer.dialect.unrolled_by
        return by.format(factor=statement.factor) if by and statement.factor else renderer.dialect.unrolled
    return renderer.dialect.rolled if _is_outer(statement) else ""


def _is_outer(loop: Serial) -> bool:
    """Whether a rolled loop stays rolled: one with a barrier or loops in it, whose copies would only
    make the text longer (measured: rolling halves the compile time of a pipelined loop, same code).
    """
    return any(isinstance(inner, (LoopStmt, SyncThreads)) for inner in statements(loop.body))


def shared(renderer: Renderer, statement: AllocShared) -> None:
    template, offset = renderer.dialect.shared, statement.offset or 0
    names = {**_declared(renderer, statement), "type": renderer.dialect.memory_type(statement.buffer.dtype)}
    renderer.line(template.format(**names, offset=offset), statement)


def local(renderer: Renderer, statement: AllocLocal) -> None:
    template, size = renderer.dialect.registers, statement.buffer.size
    renderer.line(template.format(**_declared(renderer, statement), size=size), statement)


def var(renderer: Renderer, statement: AllocVar) -> None:
    first = "" if statement.init is None else f" = {renderer.text(statement.init)}"
    renderer.line("{type} {name}{first};".format(**_declared(renderer, statement), first=first), statement)


def tensor(renderer: Renderer, statement: TensorAt) -> None:
    kind = renderer.dialect.memory_type(statement.buffer.dtype)
    name, address = renderer.names[statement.buffer.name], renderer.text(statement.address)
    renderer.line(f"{kind}* const {name} = ({kind}*)({address});", statement)


def call(renderer: Renderer, statement: ExternCall) -> None:
    """A function of the kernel's own; its pointers are to plain memory, whoever owns it."""
    parts: list[str] = []
    for argument in statement.arguments():
        if isinstance(argument, Region):
            kind = renderer.pointee(argument.buffer.dtype)
            where = (
                renderer.address(argument)
                if argument.buffer.rank
                else f"&{renderer.names[argument.buffer.name]}"
            )
            parts.append(f"({kind}*)({where})")
        else:
            parts.append(renderer.text(argument))
    renderer.line(f"{statement.name}({', '.join(parts)});", statement)


def _declared(renderer: Renderer, statement: AllocStmt) -> dict[str, str]:
    buffer = statement.buffer
    return {"type": renderer.type_of(buffer.dtype), "name": renderer.names[buffer.name]}


STATEMENTS: dict[type, StatementText] = {
    Let: let, Store: store, If: branch, Serial: loop, Unroll: loop, While: turns,
    AllocShared: shared, AllocLocal: local, AllocVar: var, ExternCall: call, TensorAt: tensor,
}  # fmt: skip
