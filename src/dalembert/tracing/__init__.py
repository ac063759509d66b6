"""Tracing: a function runs on symbols, and its arithmetic is recorded as a program."""

from dalembert.tracing.differentiate import jacobian, jvp, vjp
from dalembert.tracing.expression import Address, Expression, live
from dalembert.tracing.graph import Graph
from dalembert.tracing.operations import BOOLEAN_OPS, LEAF_OPS, OPERATIONS, Operation
from dalembert.tracing.program import (
    ArrayArgument,
    ArraySpec,
    Loop,
    OperationCount,
    Program,
    Statement,
    Store,
    Straight,
    count_operations,
    count_program,
)
from dalembert.tracing.rules import BOOK_RULES, NO_RULES, RULES, Rule, RuleSet
from dalembert.tracing.source import python_source
from dalembert.tracing.trace import ArrayOutput, Trace, trace

__all__ = [
    "Address",
    "ArrayArgument",
    "ArrayOutput",
    "ArraySpec",
    "BOOK_RULES",
    "BOOLEAN_OPS",
    "Expression",
    "Graph",
    "LEAF_OPS",
    "Loop",
    "NO_RULES",
    "OPERATIONS",
    "Operation",
    "OperationCount",
    "Program",
    "RULES",
    "Rule",
    "RuleSet",
    "Statement",
    "Store",
    "Straight",
    "Trace",
    "count_operations",
    "count_program",
    "jacobian",
    "jvp",
    "live",
    "python_source",
    "trace",
    "vjp",
]
