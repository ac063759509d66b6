"""The arithmetic of a kernel: statements as instructions in their planned order, for any processor.

Nothing here depends on where arrays live: the context of a kernel knows the places of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final, Protocol, TypeAlias, final, overload

from dalembert.codegen.cpu.row_code import Source
from dalembert.codegen.elementary import ELEMENTARY_OPS, call, function_of
from dalembert.codegen.ir import NEVER, NONEMPTY, LaneType, Value, Writer
from dalembert.codegen.memory import Hazards, Place, RowList, Tables, copied_runs, loop_hazards, row_hazards
from dalembert.codegen.outlining import Outliner, as_number
from dalembert.codegen.row_items import EachLane, ItemList, LaneItems, gather, kept_arrays, scatter
from dalembert.codegen.schedule import (
    BREAK_STEP,
    COMPUTE_STEP,
    LOAD_STEP,
    RELOAD_STEP,
    Instructions,
    Plan,
    Step,
    allocate,
    schedule,
)
from dalembert.errors import CompileError
from dalembert.tracing.expression import Address, Expression, RowIndex
from dalembert.tracing.operations import WEIGHTS
from dalembert.tracing.program import Append, Loop, Program, Repeat, Store, Straight

BLOCK_LENGTH: Final = 1000
"""Instructions in a basic block. A compiler's time grows faster than the length of a block; its result gets
worse in short ones, which share fewer constants and memory operands. The processor's own code is cut into
shorter ones where it is put together (`outlining.MAX_BLOCK_LINES`)."""

MAX_HELD_RESULTS: Final = 12
"""Results of an iteration that stay in registers until its end, of the 16 or 32 that processors have. From
spill slots LLVM copies two of 8 bytes by one load of 16, which has to wait for both stores: 20 cycles a row
of a fold."""

Caller: TypeAlias = Callable[[Writer, str, list[Value]], dict[str, Value]]
"""Writes the call of an elementary function; its results by operation, as `elementary.call` does."""


class Memory(Protocol):
    """Numbered places, as `memory.Place` has them."""

    def load(self, writer: Writer, position: int) -> Value: ...

    def store(self, writer: Writer, value: Value, position: int) -> None: ...


def emit_instructions(
    context: Context,
    program: Instructions,
    steps: Sequence[Step],
    *,
    fetch: Callable[[int], Value] | None = None,
    store_result: Callable[[int, Value], None] = lambda node, value: None,
    spills: Memory | None = None,
    interleaved: Sequence[Callable[[], None]] = (),
    values: dict[int, Value] | None = None,
    cut: Callable[[], None] | None = None,
) -> dict[int, Value]:
    """Write the planned steps and return the named values by node.

    `fetch` loads the value of a leaf, where that is not an element at a fixed position; `store_result` takes
    each result as it is made. `spills` are the spill slots, if they are not the context's. `interleaved` is
    work for the memory units, spread evenly over the arithmetic so that both overlap. `values`: named values
    from before, to which the new ones are added. `cut` ends a function where the plan has a break.
    """
    writer, spills = context.writer, spills or context.spills
    values = {} if values is None else values
    ops, args, data = program.ops, program.args, program.data
    pending: dict[tuple[str, tuple[int, ...]], Value] = {}
    done = 0

    def operands(node: int) -> list[Value]:
        return [
            writer.constant(data[item]) if ops[item] == "constant" else values[item] for item in args[node]
        ]

    in_block = 0
    for count, (action, node, slot) in enumerate(steps, 1):
        if action == COMPUTE_STEP:
            op = ops[node]
            if op in ELEMENTARY_OPS:
                value = pending.pop((op, args[node]), "")
                if not value:
                    results = context.call(writer, op, operands(node))
                    value = results.pop(op)
                    pending = {(other, args[node]): each for other, each in results.items()}
            elif op == "lookup":
                value = context.look_up(data[node], values[args[node][0]])
            elif op in _OPERATIONS:
                value = _OPERATIONS[op](writer, *operands(node))
            else:
                raise CompileError(
                    f"the operation {op!r} has no machine code; define it in codegen/statement_code.py"
                )
            values[node] = value
            store_result(node, value)
        elif action == LOAD_STEP:
            values[node] = fetch(node) if fetch else context.fetch(program, node)
        elif action == RELOAD_STEP:
            values[node] = spills.load(writer, slot)
        elif action == BREAK_STEP and cut is not None:
            values.clear()
            pending.clear()
            cut()
        else:
            spills.store(writer, values[node], slot)
        while done < len(interleaved) * count // len(steps):
            interleaved[done]()
            done += 1
        in_block += 1 if cut is None or action != COMPUTE_STEP else WEIGHTS.get(ops[node], 1)
        if in_block >= BLOCK_LENGTH:
            in_block = 0
            writer.require(NONEMPTY, NEVER)
    for task in interleaved[done:]:
        task()
    return values


_OPERATIONS: Final[dict[str, Callable[..., Value]]] = {
    "add": Writer.add,
    "sub": Writer.sub,
    "mul": Writer.mul,
    "div": Writer.div,
    "neg": Writer.neg,
    "abs": Writer.abs,
    "sqrt": Writer.sqrt,
    "floor": Writer.floor,
    "select": Writer.select,
    "not": Writer.invert,
    "lt": lambda writer, a, b: writer.compare("olt", a, b),
    "le": lambda writer, a, b: writer.compare("ole", a, b),
    "eq": lambda writer, a, b: writer.compare("oeq", a, b),
    "and": lambda writer, a, b: writer.logic("and", a, b),
    "or": lambda writer, a, b: writer.logic("or", a, b),
    "min": lambda writer, a, b: writer.select(writer.compare("olt", a, b), a, b),
    "max": lambda writer, a, b: writer.select(writer.compare("olt", b, a), a, b),
    "copy": lambda writer, a: a,
    "fma": Writer.fused_multiply_add,
    "fms": lambda writer, a, b, c: writer.fused_multiply_add(a, b, writer.neg(c)),
    "fnma": lambda writer, a, b, c: writer.fused_multiply_add(writer.neg(a), b, c),
    "fnms": lambda writer, a, b, c: writer.fused_multiply_add(writer.neg(a), b, writer.neg(c)),
}


@final
@dataclass(slots=True)
class Context:
    """The state of code generation for one kernel.

    `places` of all arrays and float tables; `spills`, the spill slots, and `slots`, their number; `outliner`
    splits a large program into functions; `call` writes elementary functions, `calls` tells whether they
    clobber registers; `sizes` of states; `lists` are the collected sets of rows, `indices` the rows of the
    loops around; `homes` gives the slots of leaves, among the first `taken`, `share` whether results may take
    their slots (see `allocate`); `contiguous`: whether elements of an array are side by side in memory;
    `entering` is called with the case of a loop that is written next; `copy_address` writes a copy of an
    address from which addresses of rows come; what lanes are `at` while a loop is written in which they are
    at rows of their own."""

    writer: Writer
    places: dict[str, Place]
    tables: Tables
    registers: int
    spills: Memory
    outliner: Outliner
    slots: int = 0
    call: Caller = call
    calls: bool = True
    taken: int = 0
    share: bool = False
    homes: Callable[[Instructions], Mapping[int, int]] = lambda instructions: {}
    entering: Callable[[Loop | Repeat, int], None] = lambda loop, case: None
    copy_address: Callable[[Writer, Value], Value] = lambda writer, base: writer.let(f"freeze ptr {base}")
    functions: set[str] = field(default_factory=set)
    sizes: Mapping[str, int] = field(default_factory=dict)
    lists: dict[str, RowList | ItemList] = field(default_factory=dict)
    indices: dict[RowIndex, Value | EachLane] = field(default_factory=dict)
    contiguous: bool = False
    at: LaneItems | None = None

    def schedule(self, values: list[Expression]) -> Instructions:
        found = schedule(values, fma=self.writer.fma)
        ops = {found.ops[node] for node in found.order}
        self.functions |= {function_of(op) for op in ops if op in ELEMENTARY_OPS}
        return found

    def plan(
        self, instructions: Instructions, *, keep: Iterable[int] = (), eager: Iterable[int] = ()
    ) -> Plan:
        plan = allocate(
            instructions,
            registers=self.registers,
            keep=keep,
            eager=eager,
            homes=self.homes(instructions),
            taken=self.taken,
            share=self.share,
            calls=self.calls,
            breaks=self.outliner.cuts(instructions),
        )
        self.slots = max(self.slots, plan.slots)
        return plan

    def fetch(self, instructions: Instructions, node: int) -> Value:
        """Load the element at a fixed position that a leaf stands for."""
        array, position = position_of(instructions, node)
        place = self.places[array]
        if self.at is None or array in self.at.own or place.uniform:
            return place.load(self.writer, position)
        bases = [self.writer.address(place.base, sample) for sample in self.at.samples]
        return gather(self.writer, place, position, bases)

    def of_items(self, items: ItemList, at: LaneItems, kept: Mapping[str, Place]) -> Context:
        """Return the context of a loop over items."""
        assert isinstance(self.spills, Place)
        spills = replace(self.spills, item=items.kind.size, align=items.kind.align)
        writer = self.writer.as_type(items.kind)
        return replace(self, writer=writer, places={**self.places, **kept}, spills=spills, slots=0, at=at)

    def look_up(self, table: str, index: Value) -> Value:
        """Load element floor(index) of a table of floats, clamped to its ends; the first element for NaN."""
        return self.places[table].look_up(self.writer, index, self.tables.lengths[table])


# Straight-line statements: every value in one pass, stored as soon as it is known.

Position = tuple[str, int]


def emit_straight(
    context: Context,
    statement: Straight,
    *,
    unstored: Set[str],
    offsets: Mapping[str, int],
    spill_offset: int,
    interleaved: Sequence[Callable[[], None]] = (),
) -> dict[Position, Source]:
    """Write a statement. Elements of the arrays `unstored` are not stored: the result says where their
    lanes are.

    `offsets` gives the places of arrays in scratch memory, `spill_offset` that of the spill slots;
    `interleaved` is work to spread over the arithmetic.
    """
    writer = context.writer
    wanted = {(store.array, store.position): store.value for store in statement.stores}
    runs = copied_runs(wanted) if context.contiguous and not unstored else []
    for run in runs:
        for k in range(run.length):
            del wanted[run.target, run.position + k]
    instructions = context.schedule(list(wanted.values()))
    nodes = dict(zip(wanted, instructions.roots))
    stored = {place: node for place, node in nodes.items() if place[0] not in unstored}
    by_node: dict[int, list[Position]] = {}
    for place, node in stored.items():
        by_node.setdefault(node, []).append(place)

    results = {node for place, node in nodes.items() if place[0] in unstored}
    eager = set()
    for node, op in enumerate(instructions.ops):
        if op in ("input", "load"):
            place = position_of(instructions, node)
            overwritten = op == "load" and place in stored
            # The lanes of other results are in scratch memory, unchanged until the end.
            if overwritten or (node in results and place[0] not in offsets):
                eager.add(node)
    keep = {node for node in results if not instructions.is_leaf(node)} | eager.intersection(
        instructions.roots
    )
    plan = context.plan(instructions, keep=keep, eager=sorted(eager))
    cut = context.outliner.open(instructions, interleaved)
    interleaved = () if cut else interleaved

    def store_result(node: int, value: Value) -> None:
        for array, position in by_node.get(node, ()):
            context.places[array].store(writer, value, position)

    emit_instructions(
        context, instructions, plan.steps, store_result=store_result, interleaved=interleaved, cut=cut
    )
    for node, places in by_node.items():
        if instructions.ops[node] == "constant":
            _store_constant(context, instructions.data[node], places)
        elif instructions.is_leaf(node):
            kept = plan.home.get(node)
            value = context.fetch(instructions, node) if kept is None else context.spills.load(writer, kept)
            store_result(node, value)
            context.outliner.cut_long()
    context.outliner.close()
    for run in runs:
        source = context.places[run.source]
        context.places[run.target].copy(writer, run.position, source, run.begin, run.length)
    sources = {}
    for place, node in nodes.items():
        if place[0] in unstored:
            if instructions.ops[node] == "constant":
                sources[place] = Source(-1, instructions.data[node])
            elif node in plan.home:
                sources[place] = Source(spill_offset + plan.home[node] * writer.type.size)
            else:
                array, position = position_of(instructions, node)
                sources[place] = Source(offsets[array] + position * writer.type.size)
    return sources


def emit_condition(context: Context, check: Expression) -> Value:
    """Write a condition of the arguments and return the mask of the lanes for which it holds."""
    writer, instructions = context.writer, context.schedule([check])
    root = instructions.roots[0]
    cut = context.outliner.open(instructions)
    plan = context.plan(instructions, keep=[as_number(instructions, root)] if cut else ())
    values = emit_instructions(context, instructions, plan.steps, cut=cut)
    if cut is None:
        return values[root]
    context.outliner.close()
    [home] = plan.home.values()
    return writer.compare("une", context.spills.load(writer, home), writer.constant(0.0))


def position_of(instructions: Instructions, node: int) -> Position:
    """Return the array and position of a leaf of straight-line code."""
    data = instructions.data[node]
    return data if instructions.ops[node] == "input" else (data.array, data.offset)


def _store_constant(context: Context, number: float, places: list[Position]) -> None:
    """Store one constant, such as the zeros of a sparse matrix; adjacent elements as vectors."""
    writer = context.writer
    for array, group in groupby(sorted(places), key=lambda place: place[0]):
        place, positions = context.places[array], [position for _, position in group]
        if writer.type.lanes > 1 or place.scattered or place.item > writer.type.size:
            for position in positions:
                place.store(writer, writer.constant(number), position)
                context.outliner.cut_long()
            continue
        for start, length in _pieces(positions):
            wide = writer.as_type(LaneType(writer.type.bits, length))
            wide.store(wide.constant(number), place.base, start * place.item, place.align)
            context.outliner.cut_long()


def _pieces(positions: list[int]) -> list[tuple[int, int]]:
    """Divide adjacent positions into pieces (start, length) of 8, 4, 2 or 1."""
    pieces, k = [], 0
    while k < len(positions):
        run = 1
        while k + run < len(positions) and positions[k + run] == positions[k] + run and run < 8:
            run += 1
        length = 1 << run.bit_length() - 1
        pieces.append((positions[k], length))
        k += length
    return pieces


# Loops over tables: one iteration per body of a large tree, one case per kind of body.


def emit_loop(context: Context, program: Program, loop: Loop) -> None:
    """Write a loop: a counter, a switch to the case of the iteration, and the cases."""
    if loop.count == 0:
        return
    writer = context.writer
    with writer.loop(loop.count) as (counter, tail, after):
        index = writer.let(f"sub i64 {loop.count - 1}, {counter}") if loop.reverse else counter
        leave(context, loop.until, index, after)
        labels = [writer.label() for _ in loop.cases]
        if loop.kinds is None:
            writer.jump(labels[0])
        else:
            kind = _entry(context, loop.kinds, index)
            cases = " ".join(f"i64 {number}, label %{label}" for number, label in enumerate(labels[1:], 1))
            writer.line(f"switch i64 {kind}, label %{labels[0]} [ {cases} ]")
        for number, label in enumerate(labels):
            if number:
                writer.jump(tail)
            writer.begin(label)
            context.entering(loop, number)
            leave(context, loop.skips[number] if loop.skips else None, index, tail)
            emit_case(context, program, loop, number, index)


def leave(context: Context, flag: Address | None, index: Value, target: str) -> None:
    """Branch to the block `target` if all lanes are done."""
    if flag is None:
        return
    writer = context.writer
    base = _bases(context, [flag], index)[_key(flag)]
    assert isinstance(base, str)  # a flag is the lanes' own
    value = context.places[flag.array].load(writer, flag.offset, base)
    writer.leave(writer.every(writer.compare("une", value, writer.constant(0.0))), target)


@overload
def _entry(context: Context, table: str, index: Value) -> Value: ...
@overload
def _entry(context: Context, table: str, index: Value | EachLane) -> Value | EachLane: ...
def _entry(context: Context, table: str, index: Value | EachLane) -> Value | EachLane:
    """Load entry `index` of a table of integers."""
    writer = context.writer
    if isinstance(index, tuple):
        return tuple(_entry(context, table, lane) for lane in index)
    base = writer.address("%tables", context.tables.offsets[table])
    entry = writer.read("i32", base, writer.let(f"shl i64 {index}, 2"), 4)
    return writer.let(f"sext i32 {entry} to i64")


def emit_case(context: Context, program: Program, loop: Loop, number: int, index: Value) -> None:
    """Write the stores of one case."""
    emit_stores(context, loop.cases[number], loop_hazards(program, loop, number), index)


def emit_stores(context: Context, stores: Sequence[Store], hazards: Hazards, index: Value) -> None:
    """Write the stores of one iteration."""
    writer = context.writer
    instructions = context.schedule([value for store in stores for value in store.values])
    roots = iter(instructions.roots)
    results = [(next(roots), None if store.row is None else next(roots)) for store in stores]
    numbered = [(node, row, store) for (node, row), store in zip(results, stores) if row is not None]
    stores = [store for store in stores if store.row is None]
    loads = [node for node in range(len(instructions.ops)) if instructions.ops[node] == "load"]
    bases = _bases(
        context, [instructions.data[node] for node in loads] + [store.address for store in stores], index
    )
    by_node: dict[int, list[Store]] = {}
    late: list[tuple[int, Store]] = []
    for node, store in zip((node for node, row in results if row is None), stores):
        if store.address.array in hazards.deferred or instructions.is_leaf(node):
            late.append((node, store))
        else:
            by_node.setdefault(node, []).append(store)
    eager = [node for node in loads if instructions.data[node].array in hazards.eager]
    late_nodes = {node for node, _ in late} | {node for *nodes, _ in numbered for node in nodes}
    computed = {node for node in late_nodes if not instructions.is_leaf(node)}
    cut = context.outliner.open(instructions)
    held = computed if cut is None and len(computed) <= MAX_HELD_RESULTS else set()
    keep = (computed - held) | late_nodes.intersection(eager)
    plan = context.plan(instructions, keep=keep, eager=eager)

    def fetch(node: int) -> Value:
        address = instructions.data[node]
        if instructions.ops[node] == "input":
            return context.fetch(instructions, node)
        place, base = context.places[address.array], bases[_key(address)]
        if isinstance(base, tuple):
            return gather(writer, place, address.offset, base)
        return place.load(writer, address.offset, base)

    def put(store: Store, value: Value) -> None:
        place, base = context.places[store.address.array], bases[_key(store.address)]
        if isinstance(base, tuple):
            scatter(writer, value, place, store.position, base)
            return
        if store.accumulate:
            value = writer.add(place.load(writer, store.position, base), value)
        place.store(writer, value, store.position, base)

    def store_result(node: int, value: Value) -> None:
        for store in by_node.get(node, ()):
            put(store, value)

    values = emit_instructions(
        context, instructions, plan.steps, fetch=fetch, store_result=store_result, cut=cut
    )
    final: dict[int, Value] = {}
    for node in late_nodes:  # all values before the first late store, which may change what a leaf reads
        if instructions.ops[node] == "constant":
            final[node] = writer.constant(instructions.data[node])
        elif node in held:
            final[node] = values[node]
        else:
            kept = plan.home.get(node)
            final[node] = fetch(node) if kept is None else context.spills.load(writer, kept)
    for node, store in late:
        put(store, final[node])
    for node, row, store in numbered:
        _store_numbered(context, store.address, final[node], final[row])
    context.outliner.close()


def _store_numbered(context: Context, address: Address, value: Value, row: Value) -> None:
    """Store a value in the row that each lane names, or in the array's last."""
    writer, lane_type, place = context.writer, context.writer.type, context.places[address.array]
    last = context.sizes[address.array] // address.scale - 1
    inside = writer.logic(
        "and",
        writer.compare("oge", row, writer.constant(0.0)),
        writer.compare("olt", row, writer.constant(last)),
    )
    chosen = writer.select(inside, row, writer.constant(last))
    integer = lane_type.of("i32")
    whole = writer.let(f"fptosi {lane_type.text} {chosen} to {integer}")
    for lane in range(lane_type.lanes):
        number, element = whole, value
        if lane_type.lanes > 1:
            number = writer.let(f"extractelement {integer} {whole}, i32 {lane}")
            element = writer.let(f"extractelement {lane_type.text} {value}, i32 {lane}")
        wide = writer.let(f"zext i32 {number} to i64")
        at = writer.let(f"mul i64 {wide}, {address.scale * place.item}")
        offset = address.offset * place.item + lane * lane_type.bits // 8
        target = writer.address(writer.address(place.base, at), offset)
        writer.line(f"store {lane_type.element} {element}, ptr {target}, align {lane_type.bits // 8}")


# Loops over rows.


def emit_repeat(context: Context, program: Program, repeat: Repeat) -> None:
    """Write a loop over the rows of a set, or over a number of iterations, with the loops inside."""
    writer = context.writer
    for name in repeat.empties:
        context.lists[name].clear(writer)
    listed = None if repeat.rows is None else context.lists.get(repeat.rows)
    if isinstance(listed, ItemList):
        _emit_items(context, program, repeat, listed)
        return
    first, count = "", str(repeat.count) if listed is None else listed.count(writer)
    if repeat.bounds is not None:
        first, count = (_entry(context, str(entry.table), _row(context, entry)) for entry in repeat.bounds)
    end = writer.label()
    with writer.for_each(count) as number:
        leave(context, repeat.until, number, end)
        place = number if not first else writer.let(f"add i64 {first}, {number}")
        for level, row in _row_levels(context, program, repeat.rows, place):
            context.indices[RowIndex(repeat.name, level)] = row
        for item in repeat.body:
            emit_item(context, program, repeat, item, number)
    writer.enter(end)


def _row_levels(
    context: Context, program: Program, rows: str | None, place: Value
) -> Iterator[tuple[str, Value]]:
    """Yield a set and those that it was collected from, and the row's place in each."""
    while rows is not None:
        yield rows, place
        parent = program.rows[rows].parent
        if parent is not None:
            listed = context.lists[rows]
            assert isinstance(listed, RowList)
            place = listed.entry(context.writer, place)
        rows = parent


def _emit_items(context: Context, program: Program, repeat: Repeat, items: ItemList) -> None:
    """Write a loop over a set of which each sample has its own rows: lanes are at rows of their own."""
    writer, parent = context.writer, program.rows[str(repeat.rows)].parent
    groups = items.groups(writer)
    with writer.for_each(groups) as group:
        places, samples = items.lanes(writer, group)
        levels = [list(_row_levels(context, program, parent, place)) for place in places]
        for lanes in zip(*levels, strict=True):
            context.indices[RowIndex(repeat.name, lanes[0][0])] = tuple(row for _, row in lanes)
        own = dict.fromkeys(kept_arrays(repeat.body))
        inner = context.of_items(
            items, LaneItems(samples, frozenset(own)), items.places(writer, own, context.sizes)
        )
        for item in repeat.body:
            emit_item(inner, program, repeat, item, group)
        context.slots = max(context.slots, -(-inner.slots * items.kind.size // writer.type.size))


def emit_item(
    context: Context, program: Program, repeat: Repeat, item: Straight | Repeat | Append, number: Value
) -> None:
    """Write a statement of the body of a loop, in its iteration `number`."""
    context.entering(repeat, 0)
    if isinstance(item, Repeat):
        emit_repeat(context, program, item)
    elif isinstance(item, Append):
        _emit_append(context, item)
    else:
        emit_stores(context, item.stores, row_hazards(item.stores), number)


def _emit_append(context: Context, append: Append) -> None:
    """Write the addition of a row to a set where a condition holds in any lane."""
    writer, condition, rows = context.writer, append.condition, context.lists[append.to]
    holds = context.places[condition.array].load(writer, condition.offset)
    found = writer.compare("une", holds, writer.constant(0.0))
    if isinstance(rows, ItemList):
        rows.append(writer, _row(context, append.entry), found)
        return
    with writer.when(writer.any(found)):
        place = rows.count(writer)
        address, row = append.entry, _row(context, append.entry)
        row = row if address.table is None else _entry(context, address.table, row)
        for target, source in append.values:
            value = context.places[source.array].load(writer, source.offset)
            array = context.places[target.array]
            base = writer.address(array.base, writer.let(f"mul i64 {place}, {target.scale * array.item}"))
            array.store(writer, value, target.offset, base)
        rows.append(writer, place, row)


def _index(context: Context, address: Address, index: Value) -> Value | EachLane:
    """Return i of an address: the row that it names, or the iteration `index`."""
    return index if address.index is None else context.indices[address.index]


def _row(context: Context, address: Address) -> Value:
    """Return the row that an address names, which is one for all lanes."""
    row = _index(context, address, "")
    if not isinstance(row, str):
        raise CompileError("a loop over rows, and what is appended to a set, must not be inside each_where")
    return row


_Key: TypeAlias = tuple[str, str | None, int, RowIndex | None]


def _key(address: Address) -> _Key:
    return address.array, address.table, address.scale, address.index if address.scale else None


def _bases(context: Context, addresses: list[Address], index: Value) -> dict[_Key, Value | EachLane]:
    """Return the address of the element at offset zero in this iteration, by array and kind of indexing; one
    for each lane where lanes are at rows of their own.

    Addresses of rows come from a copy of the address of all memory, so that LLVM, which looks for each loop
    at all that comes from the same address as one of its rows, sees few.
    """
    writer = context.writer
    entries: dict[tuple[str | None, RowIndex | None], Value | EachLane] = {}
    bases: dict[_Key, Value | EachLane] = {}
    rows: dict[tuple[Value, str | None, RowIndex | None, int], Value] = {}
    lanes: dict[tuple[object, ...], EachLane] = {}
    for address in addresses:
        key = _key(address)
        if key in bases:
            continue
        place = context.places[address.array]
        is_own = context.at is None or address.array in context.at.own
        if address.scale == 0 and (is_own or place.uniform):
            bases[key] = place.base
            continue
        own = address.table, address.index
        if own not in entries:
            i = _index(context, address, index)
            entries[own] = i if address.table is None else _entry(context, address.table, i)
        root, offset = writer.constant_offset(place.base)
        row = root, *own, address.scale * place.item
        if context.at is not None:
            if (*row, place.uniform) not in lanes:
                entry = entries[own] if address.scale else "0"
                lanes[*row, place.uniform] = _lane_addresses(context, root, entry, row[-1], place.uniform)
            bases[key] = tuple(writer.address(lane, offset) for lane in lanes[*row, place.uniform])
            continue
        if row not in rows:
            distance = writer.let(f"mul i64 {entries[own]}, {row[-1]}")
            rows[row] = writer.address(context.copy_address(writer, root), distance)
        bases[key] = writer.address(rows[row], offset)
    return bases


def _lane_addresses(
    context: Context, root: Value, rows: Value | EachLane, distance: int, uniform: bool
) -> EachLane:
    """Return the address behind another of the row that each lane is at, and of its sample there."""
    writer, found = context.writer, list[Value]()
    assert context.at is not None
    for lane, sample in enumerate(context.at.samples):
        row = rows if isinstance(rows, str) else rows[lane]
        behind = writer.let(f"mul i64 {row}, {distance}")
        behind = behind if uniform else writer.let(f"add i64 {behind}, {sample}")
        found.append(writer.address(context.copy_address(writer, root), behind))
    return tuple(found)
