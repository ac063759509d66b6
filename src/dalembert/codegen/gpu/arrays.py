"""Memory spaces of a program's arrays in a GPU kernel.

    shared    a row of each sample in the block's shared memory: staged inputs and results, what a rollout
              carries, spill slots. All in one row of odd length.
    gathered  results of one straight statement: each distinct value once in shared memory, in reused columns
              where possible, from where all elements, zeros and repeated ones included, are written in the
              order of the row
    direct    where the caller has them, in global memory
    local     the thread's own memory: small states
    cells     states at fixed positions, element by element among the spill slots (`slots`)
    scratch   global memory of the threads in flight, the 32 numbers of a warp side by side: states and
              carried values that find no room elsewhere

Only local memory is lost between the phases of a kernel.
"""

from __future__ import annotations

from typing import Final, final

from dalembert.codegen.gpu.layout import WARP_SIZE, Layout
from dalembert.codegen.gpu.staging import Tile
from dalembert.codegen.ir import LaneType, Writer
from dalembert.codegen.memory import Place, Tables
from dalembert.codegen.rollout import Rollout
from dalembert.tracing.expression import live
from dalembert.tracing.program import ArraySpec, Loop, Program, Straight

__all__ = ["Arrays", "gathered_columns"]

STAGED_RESULTS: Final = 64
"""Results of more numbers than this have no row of their own in shared memory: they would fill it."""

LOCAL_BYTES: Final = 16 * 1024
"""States larger than this are in scratch memory: local memory is reserved for every thread a GPU can hold."""


def gathered_columns(program: Program) -> int:
    """Return the number of distinct values of the one large result of a straight program, zero included; 0
    without such a result."""
    if len(program.statements) != 1 or not isinstance(program.statements[0], Straight):
        return 0
    large = [spec.name for spec in program.outputs if spec.size > STAGED_RESULTS]
    if len(large) != 1:
        return 0
    values = [store.value for store in program.statements[0].stores if store.array == large[0]]
    different = {value.index for value in values if value.op != "constant"}
    return len(different) + len({value.data for value in values if value.op == "constant"} | {0.0})


def _is_fixed(program: Program, name: str) -> bool:
    """Return whether all iterations of all loops use the same elements of a state."""
    for loop in program.statements:
        if isinstance(loop, Loop):
            for number, case in enumerate(loop.cases):
                used = [store.address for store in case] + loop.flags(number)
                used += [node.data for node in live([store.value for store in case]) if node.op == "load"]
                if any(address.array == name and address.scale for address in used):
                    return False
    return True


@final
class Arrays:
    """The memory spaces of all arrays: `shared` gives the column of an array in the samples' rows, `scratch`
    its first element there; `gathered` names results; `width` of `most` columns are taken."""

    def __init__(
        self, program: Program, rollout: Rollout | None, lane_type: LaneType, layout: Layout
    ) -> None:
        self.program = program
        self.type = lane_type
        self.tables = Tables(program, lane_type.bits)
        self.shared: dict[str, int] = {}
        self.scratch: dict[str, int] = {}
        self.local: dict[str, int] = {}
        self.cells: dict[str, int] = {}
        self.looped = rollout is not None and any(isinstance(x, Loop) for x in program.statements)
        self.lean = self.looped and layout.values is not None
        self.width = self.scratch_elements = 0
        self.most = max((layout.shared // (layout.samples * lane_type.size) - 1) // 2 * 2 + 1, 0)
        carried = {name for name, _ in rollout.carried} if rollout else set()
        self.streams = set(rollout.streams) if rollout else set()
        held = {spec.name for spec in program.outputs} if rollout else set()
        staged = [spec for spec in program.inputs if layout.staged or spec.name in carried]
        for spec in sorted(staged, key=lambda spec: spec.name not in carried | self.streams):
            self._give(spec, needed=spec.name in carried)
        self.inputs_end = self.width
        planned = layout.staged and rollout is None and layout.values is not None and layout.parts == 1
        self.gathered = (
            self._gathered_results(small=planned) if layout.staged and rollout is None else frozenset()
        )
        for spec in program.outputs:
            small = layout.staged and spec.size <= STAGED_RESULTS
            if spec.name not in self.gathered and (spec.name in held or small):
                self._give(spec, needed=spec.name in held)
        small = sum(spec.size for spec in program.states) * lane_type.size <= LOCAL_BYTES
        for spec in program.states:
            if small and layout.values is not None and _is_fixed(program, spec.name):
                self.cells[spec.name] = spec.size
            elif small:
                self.local[spec.name] = spec.size
            else:
                self._scratch(spec)
        self.base = {spec.name: f"%in{k}" for k, spec in enumerate(program.inputs)}
        self.base |= {spec.name: f"%out{k}" for k, spec in enumerate(program.outputs)}

    def _gathered_results(self, *, small: bool) -> frozenset[str]:
        """Return the results whose distinct values fit into shared memory: a large one, and `small` ones."""
        if len(self.program.statements) != 1 or not isinstance(self.program.statements[0], Straight):
            return frozenset()
        little = [spec for spec in self.program.outputs if spec.size <= STAGED_RESULTS]
        room = self.most - self.width - sum(spec.size + 1 for spec in little)
        columns = gathered_columns(self.program)
        large = len(little) < len(self.program.outputs)
        names = {spec.name for spec in little} if small and room >= 0 and (columns or not large) else set()
        if columns and columns <= room:
            names |= {spec.name for spec in self.program.outputs if spec.size > STAGED_RESULTS}
        return frozenset(names)

    def _give(self, spec: ArraySpec, *, needed: bool) -> None:
        """Reserve columns of shared memory if there is room, else scratch memory if the array is `needed`."""
        if self.lean:
            self._scratch(spec)
        elif self.width + spec.size <= self.most:
            self.shared[spec.name] = self.width
            self.width += spec.size
        elif needed:
            self._scratch(spec)

    def _scratch(self, spec: ArraySpec) -> None:
        self.scratch[spec.name] = self.scratch_elements
        self.scratch_elements += spec.size

    def is_direct(self, spec: ArraySpec) -> bool:
        """Return whether an array is accessed in the caller's memory."""
        own = spec.name in self.shared or spec.name in self.scratch or spec.name in self.local
        own = own or spec.name in self.cells
        return not own and spec.name not in self.gathered

    def tile(self, spec: ArraySpec, base: str) -> Tile:
        """Return the block's rows of an array, whose first row is at `base`, and the place of their copy."""
        return Tile(base, spec.size, self.shared.get(spec.name), self.scratch.get(spec.name))

    def places(self, writer: Writer) -> dict[str, Place]:
        """Return the places of the thread's elements of every array, and of tables; uses %mine, %scratch.mine
        and %row."""
        item = self.type.size
        places: dict[str, Place] = {}
        for spec in (*self.program.inputs, *self.program.outputs, *self.program.states):
            name = spec.name
            if name in self.cells:
                continue
            if name in self.shared:
                places[name] = Place(writer.address("%mine", self.shared[name] * item), item, item)
            elif name in self.scratch:
                start = self.scratch[name] * WARP_SIZE * item
                places[name] = Place(writer.address("%scratch.mine", start), WARP_SIZE * item, item)
            elif name in self.local:
                places[name] = Place(f"%local.{list(self.local).index(name)}", item, item)
            else:
                base = writer.address(self.base[name], writer.let(f"mul i64 %row, {self.base[name]}.stride"))
                if name in self.streams:
                    base = writer.address(base, writer.let(f"mul i64 %now, {self.base[name]}.step"))
                places[name] = Place(base, item, item)
        for name, table in self.program.tables.items():
            if table.dtype.kind == "f":
                base = writer.address("%tables", self.tables.offsets[name])
                places[name] = Place(base, item, item, uniform=True)
        return places

    def local_memory(self) -> list[str]:
        """Return the lines that reserve the thread's local memory."""
        return [
            f"%local.{k} = alloca [{max(size, 1)} x {self.type.text}], align {self.type.size}"
            for k, size in enumerate(self.local.values())
        ]
