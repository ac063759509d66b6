"""Items: pairs of a row and a sample, which a loop visits as many at a time as a block has lanes.

The samples of a block share the rows of a set, and most of them need few of those. A loop of which each
sample needs its own rows lists them as items, row by row, and fills its lanes with these: each lane reads
from and writes to the row and the sample of its item. What the loop keeps for itself, from one statement to
the next, is that of its lanes. The last item is repeated to fill the lanes; it writes the same numbers twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, final

from dalembert.codegen.elementary import ELEMENTARY_OPS
from dalembert.codegen.ir import LaneType, Value, Writer
from dalembert.codegen.memory import REGION_ALIGNMENT, Place
from dalembert.tracing.expression import live
from dalembert.tracing.program import Append, Program, Repeat, Straight

EachLane: TypeAlias = tuple[Value, ...]
"""A value for each lane: an integer or an address."""

ITEM_BYTES: Final = 4
"""[bytes] An item: a 32-bit integer, the row's place times the number of lanes, plus the sample's lane."""


def item_bytes(rows: int, lanes: int) -> int:
    """Return the memory that the items of so many rows may need: their number, and each of them."""
    return REGION_ALIGNMENT + rows * lanes * ITEM_BYTES


class LaneItems(NamedTuple):
    """The items of the lanes: how far in memory each sample is behind the first [bytes], and the arrays that
    hold what the loop keeps for its lanes."""

    samples: EachLane
    own: frozenset[str]


@final
@dataclass(frozen=True, slots=True)
class ItemList:
    """The items of a loop, at an address: how many there are, and from the next region on the items. Loops
    over them have lanes of the type `kind`, maybe more than a block has, and their own data at `kept`."""

    base: Value
    kind: LaneType
    kept: Value

    def clear(self, writer: Writer) -> None:
        """Remove all items."""
        writer.write("i64", "0", self.base)

    def append(self, writer: Writer, place: Value, mask: Value) -> None:
        """Add a row for the samples for which a condition holds."""
        lanes = writer.type.lanes
        count = writer.read("i64", self.base)
        first = writer.let(f"trunc i64 {writer.let(f'mul i64 {place}, {lanes}')} to i32")
        for lane in range(lanes):
            item = writer.let(f"add i32 {first}, {lane}")
            writer.line(f"store i32 {item}, ptr {self._at(writer, count)}, align {ITEM_BYTES}")
            holds = writer.let(f"extractelement {writer.type.mask} {mask}, i32 {lane}")
            count = writer.let(f"add i64 {count}, {writer.let(f'zext i1 {holds} to i64')}")
        writer.write("i64", count, self.base)

    def groups(self, writer: Writer) -> Value:
        """Return how many times lanes are filled."""
        lanes, count = self.kind.lanes, writer.read("i64", self.base)
        more = writer.let(f"add i64 {count}, {lanes - 1}")
        return writer.let(f"lshr i64 {more}, {lanes.bit_length() - 1}")

    def lanes(self, writer: Writer, group: Value) -> tuple[EachLane, EachLane]:
        """Return the places of the rows of a group, and how far its samples are behind the first [bytes]; the
        last item fills the lanes that are left."""
        block, places, samples = writer.type, list[Value](), list[Value]()
        first = writer.let(f"mul i64 {group}, {self.kind.lanes}")
        left = writer.let(f"sub i64 {writer.read('i64', self.base)}, {first}")
        last = writer.let(f"sub i64 {left}, 1")
        for lane in range(self.kind.lanes):
            number = writer.let(f"call i64 @llvm.umin.i64(i64 {last}, i64 {lane})")
            item = writer.read(
                "i32", self._at(writer, writer.let(f"add i64 {first}, {number}")), align=ITEM_BYTES
            )
            wide = writer.let(f"zext i32 {item} to i64")
            places.append(writer.let(f"lshr i64 {wide}, {block.lanes.bit_length() - 1}"))
            sample = writer.let(f"and i64 {wide}, {block.lanes - 1}")
            samples.append(writer.let(f"mul i64 {sample}, {block.bits // 8}"))
        writer.declared.add("declare i64 @llvm.umin.i64(i64, i64)")
        return tuple(places), tuple(samples)

    def places(self, writer: Writer, arrays: Iterable[str], sizes: Mapping[str, int]) -> dict[str, Place]:
        """Return the places of the arrays that a loop keeps for its lanes."""
        found, at = {}, 0
        for name in arrays:
            found[name] = Place(
                writer.address(self.kept, at * self.kind.size), self.kind.size, self.kind.align
            )
            at += sizes[name]
        return found

    def _at(self, writer: Writer, number: Value) -> Value:
        distance = writer.let(f"mul i64 {number}, {ITEM_BYTES}")
        return writer.address(writer.address(self.base, REGION_ALIGNMENT), distance)


def gather(writer: Writer, place: Place, position: int, bases: Sequence[Value]) -> Value:
    """Load element `position` of each lane, counted from addresses of their own."""
    kind = writer.type
    result = "poison"
    for lane, base in enumerate(bases):
        number = writer.read(kind.element, base, position * place.item, kind.bits // 8)
        result = writer.let(f"insertelement {kind.text} {result}, {kind.element} {number}, i32 {lane}")
    return result


def scatter(writer: Writer, value: Value, place: Place, position: int, bases: Sequence[Value]) -> None:
    """Store element `position` of each lane, counted from addresses of their own."""
    kind = writer.type
    for lane, base in enumerate(bases):
        number = writer.let(f"extractelement {kind.text} {value}, i32 {lane}")
        target = writer.address(base, position * place.item)
        writer.line(f"store {kind.element} {number}, ptr {target}, align {kind.bits // 8}")


def loops_over_items(program: Program) -> list[Repeat]:
    """Return the loops over sets of which each sample has its own rows."""
    found, items = [], list(program.statements)
    while items:
        item = items.pop()
        if isinstance(item, Repeat):
            items += [inner for inner in item.body if isinstance(inner, Repeat)]
            found += [item] if item.rows is not None and program.rows[item.rows].own else []
    return found


def kept_elements(program: Program) -> int:
    """Return the most elements that a loop over items keeps for its lanes."""
    sizes = {spec.name: spec.size for spec in program.states}
    kept = (set(kept_arrays(repeat.body)) for repeat in loops_over_items(program))
    return max((sum(sizes[name] for name in own) for own in kept), default=0)


def calls_functions(program: Program) -> bool:
    """Return whether a loop over items calls elementary functions."""
    straights = [straight for repeat in loops_over_items(program) for straight in repeat.straights()]
    return any(node.op in ELEMENTARY_OPS for item in straights for node in live(item.values))


def kept_arrays(body: Sequence[Straight | Repeat | Append]) -> Iterator[str]:
    """Yield the arrays that a loop keeps for its lanes: those of which it stores fixed elements."""
    for item in body:
        if isinstance(item, Repeat):
            yield from kept_arrays(item.body)
        elif isinstance(item, Straight):
            yield from (store.array for store in item.stores if not store.address.scale)
