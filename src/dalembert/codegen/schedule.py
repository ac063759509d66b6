"""Instruction scheduling: expressions become a list of instructions, ordered for low register pressure.

    expand      live nodes only, numbered in order of creation
    contract    a b + c becomes one fused multiply-add where the product has no other use; negations are
                folded into it. Decided on the graph, never by the code generator: scalar and lane code
                round alike.
    order       calls of elementary functions first, in groups, because a call clobbers the registers; then
                the best of the order of creation and of two depth-first walks from the outputs

The order of creation, which is that of the traced passes over the tree, is best for the algorithms
themselves: they finish a body before they go to the next, while a walk from one output computes one
component of a spatial inertia and leaves the operands of the other twenty live. For derivatives a walk is
better: a pass computes all directions side by side, a walk computes one output at a time
(design/codegen.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from dalembert.codegen.elementary import ELEMENTARY_OPS, function_of
from dalembert.tracing.expression import Expression, live
from dalembert.tracing.operations import BOOLEAN_OPS, LEAF_OPS

FUSED_OPS: Final = frozenset({"fma", "fms", "fnma", "fnms"})
"""a b + c, a b - c, -a b + c, -a b - c, each rounded once."""

REGISTER_REUSE_DISTANCE: Final = 30
"""[instructions] The reuse distance up to which a value is expected to stay in a register. Used only to
compare orders with each other, so that it need not match a processor."""

_NEGATED: Final = {"fma": "fnms", "fms": "fnma", "fnma": "fms", "fnms": "fma"}


@final
@dataclass(slots=True)
class Instructions:
    """The instructions of a program: node k computes `ops[k]` of the nodes `args[k]`. `order` lists the nodes
    to compute, `roots` the results."""

    ops: list[str]
    args: list[tuple[int, ...]]
    data: list[Any]
    roots: list[int]
    order: list[int]

    def append(self, op: str, operands: tuple[int, ...], data: Any = None) -> int:
        """Return the number of a new node."""
        self.ops.append(op)
        self.args.append(operands)
        self.data.append(data)
        return len(self.ops) - 1

    def is_leaf(self, node: int) -> bool:
        return self.ops[node] in LEAF_OPS

    def is_mask(self, node: int) -> bool:
        return self.ops[node] in BOOLEAN_OPS


def schedule(values: Sequence[Expression], *, fma: bool) -> Instructions:
    """Return instructions that compute `values`, with fused multiply-adds if the target has them."""
    program = _expand(values)
    if fma:
        _contract(program)
    program.order = _order(program)
    return program


def _expand(values: Sequence[Expression]) -> Instructions:
    """Return the live nodes as instructions, without an order."""
    nodes = live(list(values))
    number = {node.index: k for k, node in enumerate(nodes)}
    return Instructions(
        ops=[node.op for node in nodes],
        args=[tuple([number[item.index] for item in node.args]) for node in nodes],
        data=[node.data for node in nodes],
        roots=[number[value.index] for value in values],
        order=[],
    )


def _contract(program: Instructions) -> None:
    """Fuse multiply-adds in place. Of two products the later is fused: the earlier is ready as the addend."""
    ops, args = program.ops, program.args
    # A product with a second use would have to be computed as well, and rounded differently there.
    uses = [0] * len(ops)
    for operands in args:
        for operand in operands:
            uses[operand] += 1
    for root in program.roots:
        uses[root] += 1

    def product(node: int) -> tuple[tuple[int, ...], bool] | None:
        """Return the factors of a product without another use, and whether it is negated; else None."""
        if uses[node] != 1:
            return None
        if ops[node] == "mul":
            return args[node], False
        if ops[node] == "neg" and ops[args[node][0]] == "mul" and uses[args[node][0]] == 1:
            return args[args[node][0]], True
        return None

    for node, op in enumerate(ops):
        if op in ("add", "sub"):
            left, right = args[node]
            found = product(right)  # in a sum the operand that was created later
            if found is not None:
                negative = found[1] != (op == "sub")
                ops[node], args[node] = ("fnma" if negative else "fma"), (*found[0], left)
                continue
            found = product(left)
            if found is not None:
                name = ("fnms" if found[1] else "fms") if op == "sub" else ("fnma" if found[1] else "fma")
                ops[node], args[node] = name, (*found[0], right)
        elif op == "neg":
            inner = args[node][0]  # -(a b + c) = -a b - c: exact, since rounding is symmetric
            if ops[inner] in FUSED_OPS and uses[inner] == 1:
                ops[node], args[node] = _NEGATED[ops[inner]], args[inner]


def _order(program: Instructions) -> list[int]:
    """Return the order of computation: elementary functions by depth, then the rest of the nodes."""
    ops, args = program.ops, program.args
    needed = [False] * len(ops)  # the nodes that are still needed after contraction
    for root in program.roots:
        needed[root] = True
    for node in reversed(range(len(ops))):
        if needed[node]:
            for operand in args[node]:
                needed[operand] = True
    # `depth` counts the elementary functions on the longest path to a node. Functions of one depth are
    # independent of each other, so that they share one clobbering of the registers.
    depth = [0] * len(ops)
    groups: dict[int, list[int]] = {}
    for node, operands in enumerate(args):
        if needed[node] and operands:
            depth[node] = max([depth[item] for item in operands])
            if ops[node] in ELEMENTARY_OPS:
                depth[node] += 1
                groups.setdefault(depth[node], []).append(node)
    placed = [ops[node] in LEAF_OPS or not needed[node] for node in range(len(ops))]
    order: list[int] = []

    def place(nodes: list[int]) -> None:
        for node in nodes:
            if not placed[node]:
                placed[node] = True
                order.append(node)

    # Before each group, only the operands of its functions are computed, so that few values are live across
    # the calls.
    for level in sorted(groups):
        place(sorted(postorder(args, [item for node in groups[level] for item in args[node]], placed)))
        # Sine and cosine of one angle are neighbours: one call computes both.
        place(sorted(groups[level], key=lambda node: (function_of(ops[node]), args[node], node)))
    # No order is best for all programs (see above), and comparing three costs little beside compilation.
    rest = [
        [node for node in range(len(ops)) if not placed[node]],
        postorder(args, program.roots, placed),
        postorder(args, program.roots, placed, backwards=True),
    ]
    return order + min(rest, key=lambda candidate: _traffic(program, candidate))


def postorder(
    args: list[tuple[int, ...]], roots: list[int], placed: list[bool], *, backwards: bool = False
) -> list[int]:
    """Return the nodes not placed yet in depth-first postorder; `backwards`: last operand first."""
    done, order = list(placed), []
    for root in roots:
        stack = [root]  # not recursive: chains may be deeper than Python's recursion limit
        while stack:
            node = stack[-1]
            if done[node]:
                stack.pop()
                continue
            waiting = [item for item in args[node] if not done[item]]
            if not waiting:
                done[node] = True
                order.append(node)
                stack.pop()
            else:
                stack.append(waiting[-1] if backwards else waiting[0])
    return order


def _traffic(program: Instructions, order: list[int]) -> int:
    """Estimate the loads from memory: the operands whose reuse distance is too long for a register."""
    args, touched, count = program.args, [-REGISTER_REUSE_DISTANCE] * len(program.ops), 0
    for time, node in enumerate(order, 1):
        for operand in args[node]:
            if time - touched[operand] > REGISTER_REUSE_DISTANCE:
                count += 1
            touched[operand] = time
        touched[node] = time
    return count
