"""Straight-line statements: every value in one pass, stored as soon as it is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import groupby

from dalembert.codegen.body import emit_instructions
from dalembert.codegen.context import Context
from dalembert.codegen.ir import LaneType, Value
from dalembert.codegen.outlining import as_number
from dalembert.codegen.row_blocks import Source
from dalembert.codegen.schedule import Instructions
from dalembert.tracing.expression import Expression
from dalembert.tracing.program import Straight

__all__ = ["emit_condition", "emit_straight"]

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
    instructions = context.schedule(list(wanted.values()))
    nodes = dict(zip(wanted, instructions.roots))
    stored = {place: node for place, node in nodes.items() if place[0] not in unstored}
    by_node: dict[int, list[Position]] = {}
    for place, node in stored.items():
        by_node.setdefault(node, []).append(place)

    def at_home(node: int) -> bool:
        """Return whether the lanes of a leaf are in scratch memory, unchanged until the end."""
        if instructions.ops[node] == "input":
            return instructions.data[node][0] in offsets
        address = instructions.data[node]
        return address.array in offsets and (address.array, address.offset) not in stored

    leaves = [node for node in range(len(instructions.ops)) if instructions.ops[node] in ("input", "load")]
    eager = {node for node in leaves if _overwritten(instructions, node, stored)}
    results = {node for place, node in nodes.items() if place[0] in unstored}
    eager |= {node for node in leaves if node in results and not at_home(node)}
    keep = {node for node in results if not instructions.is_leaf(node)} | eager.intersection(
        instructions.roots
    )
    plan = context.plan(instructions, keep=keep, eager=sorted(eager))
    cut = context.begin_function(instructions, interleaved)
    interleaved = () if cut else interleaved

    def fetch(node: int) -> Value:
        array, position = _position(instructions, node)
        return context.places[array].load(writer, position)

    def store_result(node: int, value: Value) -> None:
        for array, position in by_node.get(node, ()):
            context.places[array].store(writer, value, position)

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
        interleaved=interleaved,
        cut=cut,
    )
    for node, places in by_node.items():
        if instructions.ops[node] == "constant":
            _store_constant(context, instructions.data[node], places)
        elif instructions.is_leaf(node):
            store_result(node, context.reload(plan, node) if node in plan.home else fetch(node))
            context.cut_long()
    context.end_function()
    sources = {}
    for place, node in nodes.items():
        if place[0] in unstored:
            if instructions.ops[node] == "constant":
                sources[place] = Source(-1, instructions.data[node])
            elif node in plan.home:
                sources[place] = Source(spill_offset + plan.home[node] * writer.type.size)
            else:
                array, position = _position(instructions, node)
                sources[place] = Source(offsets[array] + position * writer.type.size)
    return sources


def emit_condition(context: Context, check: Expression) -> Value:
    """Write a condition of the arguments and return the mask of the lanes for which it holds."""
    writer, instructions = context.writer, context.schedule([check])
    data, root = instructions.data, instructions.roots[0]
    cut = context.begin_function(instructions)
    plan = context.plan(instructions, keep=[as_number(instructions, root)] if cut else ())
    values = emit_instructions(
        writer,
        instructions,
        plan,
        fetch=lambda node: context.places[data[node][0]].load(writer, data[node][1]),
        store_result=lambda node, value: None,
        spills=context.spills,
        proceed=context.proceed,
        look_up=context.look_up,
        call=context.call,
        cut=cut,
    )
    if cut is None:
        return values[root]
    context.end_function()
    [home] = plan.home.values()
    return writer.compare("une", context.spills.load(writer, home), writer.constant(0.0))


def _position(instructions: Instructions, node: int) -> Position:
    """Return the array and position of a leaf of straight-line code."""
    data = instructions.data[node]
    return data if instructions.ops[node] == "input" else (data.array, data.offset)


def _overwritten(instructions: Instructions, node: int, stored: Mapping[Position, int]) -> bool:
    return instructions.ops[node] == "load" and _position(instructions, node) in stored


def _store_constant(context: Context, number: float, places: list[Position]) -> None:
    """Store runs of one constant, such as the zeros of a sparse matrix, as vectors where elements are
    adjacent."""
    writer = context.writer
    for array, group in groupby(sorted(places), key=lambda place: place[0]):
        place, positions = context.places[array], [position for _, position in group]
        if writer.type.lanes > 1 or place.scattered or place.item > writer.type.size:
            for position in positions:
                place.store(writer, writer.constant(number), position)
                context.cut_long()
            continue
        for start, length in _pieces(positions):
            wide = writer.as_type(LaneType(writer.type.bits, length))
            wide.store(wide.constant(number), place.base, start * place.item, place.align)
            context.cut_long()


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
