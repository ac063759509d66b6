"""Scheduling keeps the meaning: contraction is exact, the order respects dependencies, spills come back
unharmed."""

import numpy as np
import pytest
from tests.codegen.sample_programs import random_straight

from dalembert.codegen.schedule import COMPUTE_STEP, LOAD_STEP, RELOAD_STEP, SPILL_STEP, allocate, schedule
from dalembert.tracing.graph import Graph


def _inputs(graph: Graph, count: int):
    return [graph.input("x", k) for k in range(count)]


def _ops(values):
    program = schedule(values, fma=True)
    return sorted(program.ops[node] for node in program.order)


def test_a_product_used_once_is_fused_and_one_used_twice_is_not():
    graph = Graph()
    a, b, c, d = _inputs(graph, 4)
    assert _ops([a * b + c]) == ["fma"]
    assert _ops([a * b - c]) == ["fms"]
    assert _ops([c - a * b]) == ["fnma"]
    assert _ops([-(a * b) - c]) in (["fnms"], ["fma", "neg"])
    assert _ops([a * b + c * d]) == ["fma", "mul"]
    assert _ops([a * b + c, a * b]) == ["add", "mul"]
    assert _ops([a * b + c, a * b + d]) == ["add", "add", "mul"]


def test_without_fused_instructions_nothing_is_fused():
    graph = Graph()
    a, b, c, _ = _inputs(graph, 4)
    program = schedule([a * b + c], fma=False)
    assert [program.ops[node] for node in program.order] == ["mul", "add"]


def test_dead_code_is_left_out():
    graph = Graph()
    a, b, c, d = _inputs(graph, 4)
    _ = a * d + b
    assert len(schedule([a + c], fma=True).order) == 1


def test_sine_and_cosine_of_one_angle_are_neighbours_and_come_first():
    graph = Graph()
    a, b, c, _ = _inputs(graph, 4)
    value = a * b
    sine, cosine = graph.operation("sin", c), graph.operation("cos", c)
    program = schedule([value * value + sine, value - cosine], fma=True)
    assert sorted(program.ops[node] for node in program.order[:2]) == ["cos", "sin"]


@pytest.mark.parametrize("registers", [4, 7, 13, 28])
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_computes_every_value_and_never_needs_more_registers(seed, registers):
    statement = random_straight(seed, size=150).statements[0]
    program = schedule(list(statement.values), fma=True)
    keep = {node for node in program.roots if not program.is_leaf(node)}
    eager = [node for node in range(len(program.ops)) if program.ops[node] == "input"][::3]
    plan = allocate(program, registers=registers, keep=keep, eager=eager)
    # Values are symbols: a register or slot must hold the very node that is expected of it.
    present, memory, computed, fetched = set(), {}, set(), set()
    made, alive = {}, np.zeros(len(plan.steps) + 1, dtype=int)
    for time, (action, node, slot) in enumerate(plan.steps):
        if action != SPILL_STEP and not program.is_mask(node):
            made[node] = time
        if action == COMPUTE_STEP:
            for operand in program.args[node]:
                if operand in made:
                    alive[made[operand] + 1 : time + 1] += 1
                    made[operand] = time
                if program.ops[operand] != "constant" and not program.is_mask(operand):
                    assert operand in present, f"{program.ops[node]} uses a value that is not in a register"
            assert all(program.is_leaf(item) or item in computed for item in program.args[node])
            computed.add(node)
            present.add(node)
        elif action == LOAD_STEP:
            assert program.is_leaf(node)
            assert not (node in eager and node in fetched), "an eager leaf is read once, before any store"
            fetched.add(node)
            present.add(node)
        elif action == RELOAD_STEP:
            assert memory[slot] == node
            present.add(node)
        else:
            assert node in present
            memory[slot] = node
    assert computed == set(program.order)
    assert all(memory[slot] == node for node, slot in plan.home.items())
    assert set(plan.home) >= keep
    assert alive.max() <= registers + 3, "beside the operands of one instruction"


def test_slots_stand_in_the_order_of_their_use_and_results_last():
    program = schedule(list(random_straight(3, size=400).statements[0].values), fma=True)
    keep = {node for node in program.roots if not program.is_leaf(node)}
    plan = allocate(program, registers=6, keep=keep)
    temporaries = plan.slots - len(plan.home)
    assert temporaries > 2
    assert sorted(plan.home.values()) == list(range(temporaries, plan.slots))
    uses = np.zeros(plan.slots, dtype=int)
    for action, _, slot in plan.steps:
        if action in (RELOAD_STEP, SPILL_STEP):
            uses[slot] += 1
    assert np.all(np.diff(uses[:temporaries]) <= 0)


def test_fewer_registers_mean_more_traffic():
    program = schedule(list(random_straight(1).statements[0].values), fma=True)
    steps = [len(allocate(program, registers=count).steps) for count in (6, 12, 24, 48)]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > steps[-1]


def test_a_schedule_is_the_same_every_time():
    values = list(random_straight(2).statements[0].values)
    first, second = schedule(values, fma=True), schedule(values, fma=True)
    assert first.order == second.order
    assert np.array_equal(allocate(first, registers=9).steps, allocate(second, registers=9).steps)


def test_directions_computed_side_by_side_are_taken_one_at_a_time():
    graph = Graph()
    start = _inputs(graph, 60)
    chains = list(start)
    for step in range(8):
        chains = [chain * (1.5 + step) + graph.input("y", step) for chain in chains]
    program = schedule(chains, fma=True)
    assert len(set(program.order)) == len(program.order) == 60 * 8
    assert allocate(program, registers=12).slots == 0
