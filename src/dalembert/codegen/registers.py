"""Which values stand in registers and which in memory, decided here and not by the code generator.

Straight-line code shows its whole future, so that Belady's rule can be followed exactly: when registers run
out, the value whose next use is farthest away leaves. What memory already holds (inputs, table entries,
earlier spills) leaves without a store. The code generator then finds fewer values alive than it has
registers and spends no time on spilling, which it does worse and slower in blocks of thousands of
instructions (design/codegen.md).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, final

from dalembert.codegen.elementary import ELEMENTARY_OPS
from dalembert.codegen.schedule import Instructions

__all__ = ["BREAK", "COMPUTE", "FETCH", "RELOAD", "SPILL", "Plan", "allocate"]

COMPUTE: Final = 0
FETCH: Final = 1
RELOAD: Final = 2
SPILL: Final = 3
BREAK: Final = 4


@final
@dataclass(slots=True)
class Plan:
    """`steps` are (action, node, slot): compute a node, fetch a leaf from its array, reload or spill a node
    in a slot.

    `home` gives the slots of the nodes that were asked to be in memory at the end.
    """

    steps: list[tuple[int, int, int]]
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

    `keep`: nodes that go to memory slots of their own, for good. `eager`: leaves to fetch at the start,
    because their array is written while the code runs. `homes`: leaves that stand in slots from the start,
    which are free for others after their last use; all of them are among the first `taken` slots, which are
    otherwise not used. `calls`: elementary functions are calls, which empty the registers.
    `breaks`: places in the order before which everything goes to memory, and a step says so. `share`: nodes
    to keep may take slots that others have left.
    """
    allocator = _Allocator(program, registers, set(keep), dict(homes or {}), taken, calls, share)
    return allocator.run(list(eager), frozenset(breaks))


@final
class _Allocator:
    def __init__(
        self,
        program: Instructions,
        registers: int,
        keep: set[int],
        homes: dict[int, int],
        taken: int,
        calls: bool,
        share: bool,
    ) -> None:
        self.program = program
        self.registers = registers
        self.keep = keep
        self.share = share
        self.calling = ELEMENTARY_OPS if calls else frozenset[str]()
        self.steps: list[tuple[int, int, int]] = []
        self.present: dict[int, int] = {}  # node in a register -> its next use
        self.farthest: list[tuple[int, int]] = []
        self.slot: dict[int, int] = homes
        self.free: list[int] = []
        self.fixed = self.slots = taken
        self.kept = 0
        self.fetched: set[int] = set()
        self.uses: dict[int, list[int]] = {}
        for time, node in enumerate(program.order):
            for operand in program.args[node]:
                if self._counts(operand):
                    self.uses.setdefault(operand, []).append(time)
        for times in self.uses.values():
            times.reverse()

    def run(self, eager: list[int], breaks: frozenset[int]) -> Plan:
        program, steps, present = self.program, self.steps, self.present
        ops, args = program.ops, program.args
        for leaf in eager:
            if leaf in self.uses or leaf in self.keep:
                self.fetched.add(leaf)
                steps.append((FETCH, leaf, -1))
                self._defined(leaf)
                self._make_room()
        for time, node in enumerate(program.order):
            if time in breaks:
                self._evict_all(set())
                steps.append((BREAK, -1, -1))
            operands = {item for item in args[node] if self._counts(item)}
            for operand in sorted(operands):
                if operand not in present:
                    if operand in self.slot:
                        steps.append((RELOAD, operand, self.slot[operand]))
                    else:
                        steps.append((FETCH, operand, -1))
                    present[operand] = time
            if ops[node] in self.calling:
                self._evict_all(operands)
            steps.append((COMPUTE, node, -1))
            for operand in operands:
                self._used(operand, time)
                if ops[node] in self.calling:
                    present.pop(operand, None)
            self._defined(node)
            self._make_room()
        return self._plan()

    def _plan(self) -> Plan:
        """Slots in the order of how often they are used, those of results last.

        Few slots see most of the traffic: next to each other they share the cache's lines and short
        addresses.
        """
        used = Counter(slot for action, _, slot in self.steps if action in (RELOAD, SPILL) and slot >= 0)
        often = [slot for slot, _ in used.most_common() if slot >= self.fixed]
        place = {slot: slot for slot in range(self.fixed)}
        place |= {slot: k for k, slot in enumerate(often, self.fixed)}
        place |= {-1 - k: self.slots + k for k in range(self.kept)}
        steps = [
            (action, node, place[slot] if action in (RELOAD, SPILL) else slot)
            for action, node, slot in self.steps
        ]
        home = {node: place[self.slot[node]] for node in self.keep if node in self.slot}
        return Plan(steps, self.slots + self.kept, home)

    def _counts(self, node: int) -> bool:
        """Constants come with the instruction, and conditions have registers of their own."""
        return self.program.ops[node] != "constant" and not self.program.is_mask(node)

    def _used(self, node: int, time: int) -> None:
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

    def _defined(self, node: int) -> None:
        if node in self.keep:
            self._spill(node)
        times = self.uses.get(node)
        if times:
            self.present[node] = times[-1]
            heapq.heappush(self.farthest, (-times[-1], node))

    def _spill(self, node: int) -> None:
        if node in self.slot or (self.program.is_leaf(node) and node not in self.fetched):
            return
        if node in self.keep and not (self.share and self.free):
            self.kept += 1
            slot = -self.kept
        else:
            slot = self.free.pop() if self.free else self.slots
            self.slots = max(self.slots, slot + 1)
        self.slot[node] = slot
        self.steps.append((SPILL, node, slot))

    def _make_room(self) -> None:
        present = self.present
        while len(present) > self.registers:
            negative_use, node = heapq.heappop(self.farthest)
            if present.get(node) == -negative_use:
                self._spill(node)
                del present[node]

    def _evict_all(self, operands: set[int]) -> None:
        """Before a call: whatever is needed later goes to memory."""
        for node in list(self.present):
            if node not in operands or len(self.uses[node]) > 1:
                self._spill(node)
            if node not in operands:
                del self.present[node]
