"""Instruction scheduling and register allocation: expressions become an ordered list of instructions.

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

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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


# Register allocation: the values that stay in registers and those that are spilled, planned before LLVM.
#
# In straight-line code all later uses are known, so that Belady's rule can be followed exactly: when
# registers run out, the value whose next use is farthest away is evicted. A value that memory already holds
# (an input, a table entry, an earlier spill) is evicted without a store. LLVM then finds fewer live values
# than registers and does not spill, which it does worse and slower in blocks of thousands of instructions
# (design/codegen.md).

# The actions of a step. Plain integers: a plan has tens of thousands of steps, and an Enum compares slower.
COMPUTE_STEP: Final = 0
LOAD_STEP: Final = 1
RELOAD_STEP: Final = 2
SPILL_STEP: Final = 3
BREAK_STEP: Final = 4

Step = tuple[int, int, int]
"""(action, node, stack slot); -1 where the action has no node or slot."""


@final
@dataclass(slots=True)
class Plan:
    """A register plan: `steps` are (action, node, stack slot): compute a node, load a leaf from its array,
    reload a node from a slot or spill it to a slot.

    `slots` is the number of stack slots; `home` gives the slots of the nodes to keep in memory at the end.
    """

    steps: list[Step]
    slots: int
    home: dict[int, int]


def allocate(
    program: Instructions,
    *,
    registers: int,
    keep: Iterable[int] = (),
    eager: Iterable[int] = (),
    homes: Mapping[int, int] | None = None,
    taken: int = 0,
    calls: bool = True,
    breaks: Collection[int] = (),
    share: bool = False,
) -> Plan:
    """Plan the code with `registers` registers.

    `keep`: nodes that are spilled to stack slots of their own and stay there. `eager`: leaves to load at the
    start, because their array is written while the code runs. `homes`: leaves that are in slots from the
    start; a slot is free for others after the last use of its leaf; all of them are among the first `taken`
    slots, which are otherwise not used. `calls`: elementary functions are calls, which clobber the registers.
    `breaks`: positions in the order before which all live values are spilled, marked by a step. `share`:
    nodes to keep may take slots that are free again.
    """
    calling = ELEMENTARY_OPS if calls else frozenset[str]()
    allocator = _Allocator(program, registers, set(keep), share, calling, dict(homes or {}), taken, taken)
    return allocator.run(list(eager), frozenset(breaks))


@final
@dataclass(slots=True)
class _Allocator:
    """The state of the allocation while the order is walked once."""

    program: Instructions
    registers: int
    keep: set[int]
    share: bool
    calling: frozenset[str]
    slot: dict[int, int]
    fixed: int
    slots: int
    kept: int = 0  # slots of nodes to keep are numbered -1, -2, … until `_plan` puts them behind all others
    free: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    present: dict[int, int] = field(default_factory=dict)  # node in a register -> its next use
    # A heap of (-next use, node). Entries go stale when a node is used or evicted; `_make_room` skips them.
    farthest: list[tuple[int, int]] = field(default_factory=list)
    # Eager leaves: their array may have changed since, so that eviction needs a store.
    fetched: set[int] = field(default_factory=set)
    # The later uses of a node, next use last, so that a use is removed by `pop`.
    uses: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for time, node in enumerate(self.program.order):
            for operand in self.program.args[node]:
                if self._counts(operand):
                    self.uses.setdefault(operand, []).append(time)
        for times in self.uses.values():
            times.reverse()

    def run(self, eager: list[int], breaks: frozenset[int]) -> Plan:
        """Walk the order once and return the plan."""
        program, steps, present = self.program, self.steps, self.present
        ops, args = program.ops, program.args
        for leaf in eager:
            if leaf in self.uses or leaf in self.keep:
                self.fetched.add(leaf)
                steps.append((LOAD_STEP, leaf, -1))
                self._define(leaf)
                self._make_room()
        for time, node in enumerate(program.order):
            if time in breaks:
                self._evict_all(set())
                steps.append((BREAK_STEP, -1, -1))
            operands = {item for item in args[node] if self._counts(item)}
            for operand in sorted(operands):  # a fixed order: the same program gives the same code
                if operand not in present:
                    if operand in self.slot:
                        steps.append((RELOAD_STEP, operand, self.slot[operand]))
                    else:
                        steps.append((LOAD_STEP, operand, -1))
                    present[operand] = time
            if ops[node] in self.calling:
                self._evict_all(operands)  # the call clobbers the registers; its operands are passed in them
            steps.append((COMPUTE_STEP, node, -1))
            for operand in operands:
                self._end_use(operand, time)
                if ops[node] in self.calling:
                    present.pop(operand, None)
            # Room is made after the definition, so that operands and result may exceed `registers` for a
            # moment; callers plan with fewer registers than the processor has.
            self._define(node)
            self._make_room()
        return self._plan()

    def _plan(self) -> Plan:
        """Return the plan, with stack slots in order of decreasing use and those of results last.

        Few slots have most of the traffic: side by side they share cache lines and short displacements.
        """
        used = Counter(
            slot for action, _, slot in self.steps if action in (RELOAD_STEP, SPILL_STEP) and slot >= 0
        )
        often = [slot for slot, _ in used.most_common() if slot >= self.fixed]
        place = {slot: slot for slot in range(self.fixed)}
        place |= {slot: k for k, slot in enumerate(often, self.fixed)}
        place |= {-1 - k: self.slots + k for k in range(self.kept)}
        steps = [
            (action, node, place[slot] if action in (RELOAD_STEP, SPILL_STEP) else slot)
            for action, node, slot in self.steps
        ]
        home = {node: place[self.slot[node]] for node in self.keep if node in self.slot}
        return Plan(steps, self.slots + self.kept, home)

    def _counts(self, node: int) -> bool:
        """Return whether a node takes a register: constants are operands, conditions have mask registers."""
        return self.program.ops[node] != "constant" and not self.program.is_mask(node)

    def _end_use(self, node: int, time: int) -> None:
        """Advance a node to its next use, or end its live range and free its slot."""
        times = self.uses[node]
        while times and times[-1] <= time:
            times.pop()
        if times:
            self.present[node] = times[-1]
            heapq.heappush(self.farthest, (-times[-1], node))
        else:
            del self.present[node]
            if node in self.slot and node not in self.keep:
                self.free.append(self.slot.pop(node))

    def _define(self, node: int) -> None:
        """Begin the live range of a node in a register, and store the node if it is to be kept."""
        if node in self.keep:
            self._spill(node)
        times = self.uses.get(node)
        if times:
            self.present[node] = times[-1]
            heapq.heappush(self.farthest, (-times[-1], node))

    def _spill(self, node: int) -> None:
        """Store a node in a stack slot, unless memory holds it already."""
        if node in self.slot or (self.program.is_leaf(node) and node not in self.fetched):
            return
        if node in self.keep and not (self.share and self.free):
            self.kept += 1
            slot = -self.kept
        else:
            slot = self.free.pop() if self.free else self.slots
            self.slots = max(self.slots, slot + 1)
        self.slot[node] = slot
        self.steps.append((SPILL_STEP, node, slot))

    def _make_room(self) -> None:
        """Evict values by Belady's rule, farthest next use first, until the rest fits the registers."""
        present = self.present
        while len(present) > self.registers:
            negative_use, node = heapq.heappop(self.farthest)
            if present.get(node) == -negative_use:  # else the entry is stale
                self._spill(node)
                del present[node]

    def _evict_all(self, operands: set[int]) -> None:
        """Spill every value with a later use and clear the registers of all but a call's operands."""
        for node in list(self.present):
            # One of the remaining uses of an operand is the call itself; only a further use needs a store.
            if node not in operands or len(self.uses[node]) > 1:
                self._spill(node)
            if node not in operands:
                del self.present[node]
