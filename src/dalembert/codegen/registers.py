"""Register allocation: the values that stay in registers and those that are spilled, planned before LLVM.

In straight-line code all later uses are known, so that Belady's rule can be followed exactly: when registers
run out, the value whose next use is farthest away is evicted. A value that memory already holds (an input, a
table entry, an earlier spill) is evicted without a store. LLVM then finds fewer live values than registers
and does not spill, which it does worse and slower in blocks of thousands of instructions (design/codegen.md).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, final

from dalembert.codegen.elementary import ELEMENTARY_OPS
from dalembert.codegen.schedule import Instructions

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
