"""Loops over tables: one iteration per body of a large tree, one case per kind of body."""

from __future__ import annotations

from dalembert.codegen.body import emit_instructions
from dalembert.codegen.context import Context
from dalembert.codegen.ir import Value
from dalembert.codegen.memory import loop_hazards
from dalembert.tracing.program import Address, IndexedStore, Loop, Program

__all__ = ["emit_case", "emit_loop", "leave"]


def emit_loop(context: Context, program: Program, loop: Loop) -> None:
    """Write a loop: a counter, a switch to the case of the iteration, and the cases."""
    if loop.count == 0:
        return
    writer = context.writer
    before, head, tail, after = (writer.label() for _ in range(4))
    writer.line(f"br label %{before}")
    writer.begin(before)
    writer.line(f"br label %{head}")
    writer.begin(head)
    counter = f"%{head}.i"
    writer.line(f"{counter} = phi i64 [ 0, %{before} ], [ {counter}.next, %{tail} ]")
    index = writer.let(f"sub i64 {loop.count - 1}, {counter}") if loop.reverse else counter
    leave(context, loop.until, index, after)
    labels = [writer.label() for _ in loop.cases]
    if loop.kinds is None:
        writer.line(f"br label %{labels[0]}")
    else:
        kind = _entry(context, loop.kinds, index)
        cases = " ".join(f"i64 {number}, label %{label}" for number, label in enumerate(labels[1:], 1))
        writer.line(f"switch i64 {kind}, label %{labels[0]} [ {cases} ]")
    for number, (label, stores) in enumerate(zip(labels, loop.cases)):
        writer.begin(label)
        context.entering(loop, number)
        leave(context, loop.skips[number] if loop.skips else None, index, tail)
        emit_case(context, program, loop, number, stores, index)
        writer.line(f"br label %{tail}")
    writer.begin(tail)
    writer.line(f"{counter}.next = add i64 {counter}, 1")
    more = writer.let(f"icmp ult i64 {counter}.next, {loop.count}")
    writer.line(f"br i1 {more}, label %{head}, label %{after}")
    writer.begin(after)


def leave(context: Context, flag: Address | None, index: Value, target: str) -> None:
    """Branch to the block `target` if all lanes are done."""
    if flag is None:
        return
    writer = context.writer
    base = _bases(context, [flag], index)[_key(flag)]
    value = context.places[flag.array].load_at(writer, base, flag.offset)
    done = writer.every(writer.compare("une", value, writer.constant(0.0)))
    more = writer.label()
    writer.line(f"br i1 {done}, label %{target}, label %{more}")
    writer.begin(more)


def _entry(context: Context, table: str, index: Value) -> Value:
    """Load entry `index` of a table of integers."""
    writer = context.writer
    base = writer.address(context.table_base, context.table_offsets[table])
    place = writer.address(base, writer.let(f"shl i64 {index}, 2"))
    return writer.let(f"sext i32 {writer.let(f'load i32, ptr {place}, align 4')} to i64")


def emit_case(
    context: Context,
    program: Program,
    loop: Loop,
    number: int,
    stores: tuple[IndexedStore, ...],
    index: Value,
) -> None:
    """Write the stores of one case."""
    writer = context.writer
    instructions = context.schedule([store.value for store in stores])
    hazards = loop_hazards(program, loop, number)
    loads = [node for node in range(len(instructions.ops)) if instructions.ops[node] == "load"]
    bases = _bases(
        context, [instructions.data[node] for node in loads] + [store.address for store in stores], index
    )
    by_node: dict[int, list[IndexedStore]] = {}
    late: list[tuple[int, IndexedStore]] = []
    for node, store in zip(instructions.roots, stores):
        if store.address.array in hazards.deferred or instructions.is_leaf(node):
            late.append((node, store))
        else:
            by_node.setdefault(node, []).append(store)
    eager = [node for node in loads if instructions.data[node].array in hazards.eager]
    late_nodes = {node for node, _ in late}
    keep = {node for node in late_nodes if not instructions.is_leaf(node)} | late_nodes.intersection(eager)
    plan = context.plan(instructions, keep=keep, eager=eager)
    cut = context.begin_function(instructions)

    def fetch(node: int) -> Value:
        if instructions.ops[node] == "input":
            array, position = instructions.data[node]
            return context.places[array].load(writer, position)
        address = instructions.data[node]
        return context.places[address.array].load_at(writer, bases[_key(address)], address.offset)

    def put(store: IndexedStore, value: Value) -> None:
        place, base = context.places[store.address.array], bases[_key(store.address)]
        if store.accumulate:
            value = writer.add(place.load_at(writer, base, store.address.offset), value)
        place.store_at(writer, value, base, store.address.offset)

    def store_result(node: int, value: Value) -> None:
        for store in by_node.get(node, ()):
            put(store, value)

    emit_instructions(
        writer,
        instructions,
        plan,
        fetch=fetch,
        store_result=store_result,
        spills=context.spills,
        proceed=context.proceed,
        look_up=context.look_up,
        call=context.call,
        cut=cut,
    )
    final: dict[int, Value] = {}
    for node in late_nodes:  # all values before the first late store, which may change what a leaf reads
        if instructions.ops[node] == "constant":
            final[node] = writer.constant(instructions.data[node])
        else:
            final[node] = context.reload(plan, node) if node in plan.home else fetch(node)
    for node, store in late:
        put(store, final[node])
    context.end_function()


def _key(address: Address) -> tuple[str, str | None, int]:
    return address.array, address.table, address.scale


def _bases(
    context: Context, addresses: list[Address], index: Value
) -> dict[tuple[str, str | None, int], Value]:
    """Return the address of the element at offset zero in this iteration, by array and kind of indexing."""
    writer = context.writer
    entries: dict[str | None, Value] = {None: index}
    bases: dict[tuple[str, str | None, int], Value] = {}
    for address in addresses:
        key = _key(address)
        if key in bases:
            continue
        place = context.places[address.array]
        if address.scale == 0:
            bases[key] = place.base
            continue
        if address.table not in entries:
            entries[address.table] = _entry(context, address.table or "", index)
        distance = writer.let(f"mul i64 {entries[address.table]}, {address.scale * place.item}")
        bases[key] = writer.address(place.base, distance)
    return bases
