"""The IR: nodes, dtypes, printer, parser, verifier, rewriting, index arithmetic.

Immutable dataclasses; the printed form is Python in the words of the language and parses back to
an equal tree. The room knows no operation by name: words come from a registry that is passed in.
"""

from .dtypes import DType, boolean, dtype_of, int32
from .expr import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Arith,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Region,
    Var,
    all_of,
    const_of,
    lift,
    whole,
    zero_of,
)
from .node import Node, attribute, binder, body, children, map_children, node, operand, result, walk
from .parser import parse_function
from .printer import Printed, print_function, print_statements, show
from .registry import Registry, ScalarFunction, Word, call, same_as_first
from .rewrite import refold, rename_buffers, rewrite, substitute
from .stmt import AllocStmt, Function, If, Let, LoopStmt, OpStmt, Stmt, Store, WithStmt, WordStmt
from .verifier import LegalForms, verify

__all__ = [
    "FALSE", "ONE", "TRUE", "ZERO", "AllocStmt", "Arith", "Buffer", "Call", "Cast", "Const", "DType", "Expr",
    "Function", "If", "LegalForms", "Let", "Load", "LoopStmt", "Node", "OpStmt", "Printed", "Region",
    "Registry", "ScalarFunction", "Stmt", "Store", "Var", "WithStmt", "Word", "WordStmt", "all_of",
    "attribute", "binder",
    "body", "boolean", "call", "children", "const_of", "dtype_of", "int32", "lift", "map_children", "node",
    "operand", "parse_function", "print_function", "print_statements", "refold", "rename_buffers", "result",
    "rewrite", "same_as_first", "show", "substitute", "verify", "walk", "whole",
    "zero_of",
]  # fmt: skip
