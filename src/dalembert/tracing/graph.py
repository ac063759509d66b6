"""A hash-consed graph of arithmetic.

Equal operations on equal arguments are one object (hash-consing), so that common subexpressions vanish while
the function runs; the graph's rewrite rules are applied at construction, so that structural zeros and ones
never become nodes.

Departures from IEEE arithmetic, by design: a structural zero wins over everything (0 x = 0 even where x is
NaN or infinite), and the sign of a zero constant is dropped. Every other fold keeps NaN and infinity.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, final

import numpy as np

from dalembert import scalar
from dalembert.errors import ArgumentError, ProgramSizeError, TracingError, UnknownNameError
from dalembert.scalar import Scalar
from dalembert.scalar.kinds import Table
from dalembert.tracing.expression import Expression, caller
from dalembert.tracing.iteration import OpenLoop, RecordedLoop
from dalembert.tracing.operations import BOOLEAN_OPS, OPERATIONS, WEIGHTS
from dalembert.tracing.program import Program, RowSet, cases_of
from dalembert.tracing.row_loops import FamilyArray
from dalembert.tracing.rules import RULES, RuleSet
from dalembert.tracing.wide_values import WideValues

# The size of a program and its limits.
#
# Every operation costs time and memory to compile, whether a program is one statement or many. A program
# above the limit is refused before that is spent: while it is traced, once the graph has far more nodes than
# such a program needs, or when its operations are counted.
#
#     DALEMBERT_MAX_OPERATIONS    another limit than `MAX_OPERATIONS`

ENVIRONMENT: Final = "DALEMBERT_MAX_OPERATIONS"

MAX_OPERATIONS: Final = 2_000_000
"""The most operations of a program. That many take three to four minutes and 3 GB to compile
(design/codegen.md)."""

MAX_KEY_BYTES: Final = 1 << 16
"""[bytes] The content of larger tables is compared by its digest, so that it is not kept twice."""

NODES_PER_OPERATION: Final = 2
"""Nodes that a trace may have for each operation that a program may have. Traces of large contact scenes have
1.5; the rest are intermediate results that no output needs."""


def max_operations(default: int = MAX_OPERATIONS) -> int:
    """Return the largest number of operations that a program may have: `default`, or what the user says."""
    given = os.environ.get(ENVIRONMENT, "").strip()
    if not given:
        return default
    if not given.isdecimal() or not int(given):
        raise ArgumentError(f"{ENVIRONMENT}={given!r}: expected a number of operations, such as 5000000")
    return int(given)


def max_nodes() -> int:
    """Return the largest number of nodes that a graph may have while a function is traced."""
    return NODES_PER_OPERATION * max_operations()


def check_size(program: Program, default: int = MAX_OPERATIONS) -> int:
    """Return the operations and stores to compile, or raise where they are too many; those of a loop count
    once, however often it runs, those of `WEIGHTS` several times."""
    operations = _operations([program.check]) if program.check is not None else 0
    for statement in program.statements:
        for case in cases_of(statement):
            operations += len(case) + _operations([store.value for store in case])
    return check_count(operations, default)


def check_count(operations: int, default: int = MAX_OPERATIONS) -> int:
    """Return a number of operations, or raise where it is too large."""
    limit = max_operations(default)
    if operations > limit:
        raise ProgramSizeError(f"{operations:,} operations to compile; at most {limit:,} are allowed")
    return operations


def _operations(stack: list[Expression]) -> int:
    """Return the number of operations that expressions depend on."""
    seen: set[int] = set()
    more = 0
    while stack:
        node = stack.pop()
        if node.args and node.index not in seen:
            seen.add(node.index)
            stack.extend(node.args)
            if node.op in WEIGHTS:
                more += WEIGHTS[node.op] - 1
    return len(seen) + more


LOGICAL_OPS: Final = frozenset({"and", "or", "not"})


@final
class Graph:
    """The nodes of one trace; `share=False` records every operation as a new node."""

    def __init__(self, rules: RuleSet = RULES, *, share: bool = True) -> None:
        self.rules = rules
        self.share = share
        self.nodes: list[Expression] = []
        self.max_nodes = max_nodes()
        self.loops: list[RecordedLoop] = []
        self.open_loops: list[OpenLoop] = []
        self.tables: dict[str, Any] = {}
        self.rows: dict[str, RowSet] = {}
        self.families: dict[str, FamilyArray] = {}
        self.loop_depths: dict[str, int] = {}
        self.wide = WideValues(self)
        self._constants: dict[Any, Expression] = {}
        self._leaves: dict[Any, Expression] = {}
        self._table_names: dict[bytes, str] = {}
        self._loops_named = 0
        self._known: dict[str, dict[Any, Expression]] = {name: {} for name in OPERATIONS}
        self.builders: dict[str, Callable[..., Expression]] = {
            name: _builder(self, name, operation.arity) for name, operation in OPERATIONS.items()
        }

    def constant(self, value: float) -> Expression:
        """Return the node of a number; all NaNs share one node, and so do the two zeros."""
        found = self._constants.get(value)
        if found is None:
            number = float(value) + 0.0
            key = number if number == number else "nan"
            found = self._constants.get(key)
            if found is None:
                found = self._constants[key] = self._new("constant", (), number)
        return found

    def input(self, array: str, position: int) -> Expression:
        """Return element `position` of the input array."""
        return self._leaf("input", (array, position))

    def load(self, address: Any) -> Expression:
        """Return the element at an `Address`, before the stores of the same iteration."""
        return self._leaf("load", address)

    def operation(self, op: str, *args: Scalar) -> Expression:
        """Return the operation on expressions and numbers, folded and shared."""
        builder = self.builders.get(op)
        if builder is None:
            raise UnknownNameError.of("operation", op, OPERATIONS)
        if len(args) != OPERATIONS[op].arity:
            raise TracingError(f"operation {op!r} takes {OPERATIONS[op].arity} arguments, got {len(args)}")
        if op in LOGICAL_OPS:
            return builder(*[self.condition(item) for item in args])
        if op == "select":
            return builder(self.condition(args[0]), self.coerce(args[1]), self.coerce(args[2]))
        return builder(*[self.coerce(item) for item in args])

    def lookup(self, table: Table, index: Scalar) -> Expression:
        """Return the element of a table of constants; equal tables are kept once."""
        node = self.coerce(index)
        if node.op == "constant":
            return self.constant(scalar.lookup(table, node.data))
        return self._look_up(self.add_table(table), node)

    def add_table(self, table: Any) -> str:
        """Return the name of a table of constants, floats or integers; equal tables are kept once."""
        content = table.tobytes()
        if len(content) > MAX_KEY_BYTES:
            content = hashlib.blake2b(content).digest()
        key = table.dtype.char.encode() + content
        name = self._table_names.get(key)
        if name is None:
            name = self._table_names[key] = f"lookup {len(self.tables)}"
            self.tables[name] = np.array(table)
        return name

    def add_rows(self, rows: RowSet) -> str:
        """Return a name for a new set of rows."""
        name = f"rows {len(self.rows)}"
        self.rows[name] = rows
        return name

    def loop_name(self) -> str:
        """Return a name for a new loop."""
        self._loops_named += 1
        return f"loop {self._loops_named - 1}"

    def with_arguments(self, node: Expression, args: Sequence[Expression]) -> Expression:
        """Return the operation of a node on other arguments."""
        if all(new is old for new, old in zip(args, node.args, strict=True)):
            return node
        return self._look_up(node.data, args[0]) if node.op == "lookup" else self.operation(node.op, *args)

    def copy(self, node: Expression, args: Sequence[Expression]) -> Expression:
        """Return a new node for the operation on other arguments, without applying the rules."""
        return self._new(node.op, tuple(args), node.data)

    def existing(self, op: str, a: Expression, b: Expression) -> Expression | None:
        """Return the earlier result of this operation on two nodes, or None."""
        return self._known[op].get((a.index, b.index))

    def rewrite(self, op: str, a: Expression, b: Expression) -> Expression | None:
        """Return the expression that the rules replace the operation by, or None if no rule applies."""
        for rule in self.rules.dispatch(op)[a.op][b.op]:
            found: Expression | None = rule(a, b)
            if found is not None:
                return found
        return None

    def boolean(self, value: bool) -> Expression:
        """Return a condition that always or never holds, as 0 <= 0 or 0 < 0: emitters need no literal."""
        op = "le" if value else "lt"
        found = self._leaves.get(op)
        if found is None:
            zero = self.constant(0.0)
            found = self._leaves[op] = self._new(op, (zero, zero), None)
        return found

    def condition(self, value: Scalar) -> Expression:
        """Return a condition of this graph from an expression or a truth value."""
        if isinstance(value, bool | np.bool_):
            return self.boolean(bool(value))
        return self.coerce(value)

    def coerce(self, value: Scalar) -> Expression:
        """Return an expression of this graph from an expression or a number."""
        if type(value) is Expression:
            if value.graph is not self:
                raise TracingError(
                    f"{caller()}: a traced value of another trace; values must not be kept between traces"
                )
            return value
        if isinstance(value, int | float | np.integer | np.floating | np.bool_):
            return self.constant(float(value))
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return self.coerce(value.item())
        raise TracingError(
            f"{caller()}: {type(value).__name__} in arithmetic with a traced value; "
            "use floats, ints, NumPy scalars or other traced values"
        )

    def duplicate(self) -> Graph:
        """Return a copy with each node under the same index, so that later records are equal in both."""
        if self.open_loops:
            raise TracingError("a graph cannot be copied while the step of a loop is recorded in it")
        new = Graph(self.rules, share=self.share)
        nodes = new.nodes
        for node in self.nodes:
            args = tuple([nodes[item.index] for item in node.args])
            nodes.append(Expression(new, node.op, args, node.data, node.index))
        new.loops.extend(loop.copy(nodes, {}) for loop in self.loops)
        new.tables.update(self.tables)
        new.rows.update(self.rows)
        new.families.update(self.families)
        new.loop_depths.update(self.loop_depths)
        new._table_names.update(self._table_names)
        new._constants.update((key, nodes[node.index]) for key, node in self._constants.items())
        new._leaves.update((key, nodes[node.index]) for key, node in self._leaves.items())
        for op, known in self._known.items():
            new._known[op].update((key, nodes[node.index]) for key, node in known.items())
        new._loops_named = self._loops_named
        new.max_nodes = self.max_nodes
        return new

    def grant(self, nodes: int | None = None) -> None:
        """Allow that many nodes beside those that there are; None: as many as a new graph may have."""
        self.max_nodes = len(self.nodes) + (max_nodes() if nodes is None else nodes)

    def refuse_growth(self) -> NoReturn:
        """Raise because the graph has as many nodes as it may."""
        raise ProgramSizeError(
            f"more than {len(self.nodes):,} operations traced, and only {max_operations():,} may be compiled"
        )

    def _leaf(self, op: str, data: Any) -> Expression:
        found = self._leaves.get(data)
        if found is None:
            found = self._leaves[data] = self._new(op, (), data)
        return found

    def _look_up(self, table: str, index: Expression) -> Expression:
        if index.op in BOOLEAN_OPS:
            raise TracingError(
                f"{caller()}: a condition is no index; write scalar.select(condition, 1.0, 0.0)"
            )
        key = ("lookup", table, index.index)
        found = self._leaves.get(key)
        if found is None or not self.share:
            found = self._leaves[key] = self._new("lookup", (index,), table)
        return found

    def _new(self, op: str, args: tuple[Expression, ...], data: Any) -> Expression:
        node = Expression(self, op, args, data, len(self.nodes))
        self.nodes.append(node)
        return node


def _builder(graph: Graph, op: str, arity: int) -> Callable[..., Expression]:
    """Return the constructor of one operation: look up, rewrite, else make a node. Closures, for speed; most
    operations have two arguments."""
    nodes, share = graph.nodes, graph.share
    append = nodes.append
    dispatch = graph.rules.dispatch(op)
    commutative = graph.rules.canonical_order and OPERATIONS[op].commutative
    known = graph._known[op]
    lookup = known.get

    def by_first(*args: Expression) -> Expression:
        key = tuple([item.index for item in args])
        found = lookup(key)
        if found is not None:
            return found
        for rule in dispatch[args[0].op]:
            found = rule(*args)
            if found is not None:
                break
        else:
            if (number := len(nodes)) >= graph.max_nodes:
                graph.refuse_growth()
            append(found := Expression(graph, op, args, None, number))
        if share:
            known[key] = found
        return found

    def binary(a: Expression, b: Expression) -> Expression:
        if commutative and a.index > b.index:
            a, b = b, a
        key = (a.index, b.index)
        found = lookup(key)
        if found is not None:
            return found
        for rule in dispatch[a.op][b.op]:
            found = rule(a, b)
            if found is not None:
                break
        else:
            if (number := len(nodes)) >= graph.max_nodes:
                graph.refuse_growth()
            append(found := Expression(graph, op, (a, b), None, number))
        if share:
            known[key] = found
        return found

    return binary if arity == 2 else by_first
