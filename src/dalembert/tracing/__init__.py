"""Tracing: running a function on symbols, which records its arithmetic as a program."""

from dalembert.tracing.expression import Expression, Graph, live
from dalembert.tracing.interpret import evaluate, interpret, refused
from dalembert.tracing.operations import BOOLEAN_OPS, LEAF_OPS, OPERATIONS, Operation
from dalembert.tracing.program import (
    Address,
    ArraySpec,
    IndexedStore,
    Loop,
    Program,
    Statement,
    Store,
    Straight,
)
from dalembert.tracing.rewriting import Rule, RuleSet
from dalembert.tracing.rules import BOOK_RULES, NO_RULES, RULES

__all__ = [
    "BOOK_RULES",
    "BOOLEAN_OPS",
    "LEAF_OPS",
    "NO_RULES",
    "OPERATIONS",
    "RULES",
    "Address",
    "ArraySpec",
    "Expression",
    "Graph",
    "IndexedStore",
    "Loop",
    "Operation",
    "Program",
    "Rule",
    "RuleSet",
    "Statement",
    "Store",
    "Straight",
    "evaluate",
    "interpret",
    "live",
    "refused",
]
