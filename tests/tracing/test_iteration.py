"""Loops of a trace: recorded once, split into statements, the same as the function on floats."""

import itertools

import numpy as np
import pytest
from tests.tracing.interpreter import interpret

from dalembert import scalar
from dalembert.errors import ArgumentError, ShapeError, TracingError
from dalembert.tracing import (
    Address,
    ArrayArgument,
    ArraySpec,
    Graph,
    Loop,
    Program,
    Store,
    Straight,
    count_program,
    live,
    python_source,
    trace,
)

SAMPLES = np.random.default_rng(3).uniform(0.5, 30.0, (7, 3))


def program_of(function):
    return trace(function, [ArrayArgument("x", (3,))]).program()


def agree(function):
    """The interpreter, on arrays and on floats, and the Python source, against the function on floats."""
    program = program_of(function)
    expected = np.array([function(row) for row in SAMPLES.tolist()], dtype=float)
    together = interpret(program, {"x": list(SAMPLES.T)})["output"]
    found = np.stack([np.broadcast_to(y, len(SAMPLES)) for y in together], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)
    alone = np.array([interpret(program, {"x": row})["output"] for row in SAMPLES.tolist()], dtype=float)
    np.testing.assert_array_equal(alone, found)
    names: dict = {}
    exec(python_source(program), names)
    np.testing.assert_array_equal([names["function"](row) for row in SAMPLES.tolist()], alone)
    return program


def loops_of(program):
    return [item for item in program.statements if isinstance(item, Loop)]


def newton(x):
    """A data-dependent number of steps, with a line search of another inside."""
    a = x[0] * x[1]
    weight = scalar.exp(-x[2])

    def step(carry):
        y, n, tried = carry
        d = (a - y * y) / (2.0 * y) * (1.0 + weight)
        before = scalar.absolute(y * y - a)

        def down(search):
            z = y + search[0] * d
            return scalar.absolute(z * z - a) < before

        t, k = scalar.loop(5, lambda s: (0.5 * s[0], s[1] + 1.0), (8.0, 0.0), until=down)
        return y + t * d, n + 1.0, tried + k

    y, n, tried = scalar.loop(
        40, step, (a, 0.0, 0.0), until=lambda c: scalar.absolute(c[0] * c[0] - a) < 1e-3
    )
    return [y, n, tried, scalar.loop(3, lambda s: s * 0.5 + y * x[2], 0.0)]


def test_loops_are_those_of_the_function_on_floats():
    """RBDA-10.4-SYMBOLIC: several loops, one inside another, each with its own end for each sample."""
    counts = {tuple(newton(row)[1:3]) for row in SAMPLES.tolist()}
    assert len(counts) > 3
    program = agree(newton)
    assert [type(item) for item in program.statements] == [Straight, Loop, Straight, Loop, Straight]
    first, second = loops_of(program)
    assert len(first.cases) == 3
    assert first.count == 40 * (5 + 2)
    assert first.until is not None
    assert sum(flag is not None for flag in first.skips) == 1
    assert (second.count, second.kinds, second.until) == (3, None, None)


def test_a_sample_that_is_done_outside_is_done_inside():
    """The flag of the inner loop begins with that of the outer one, so that its steps are skipped."""
    program = program_of(newton)
    loop = loops_of(program)[0]
    (flag,) = [item for item in loop.skips if item is not None]
    (start,) = [store.value for store in loop.cases[0] if store.address == flag]
    assert start.op == "select"
    assert start.args[0].op == "or"
    outer = [node.data for node in live([start]) if node.op == "load"]
    assert loop.until in outer


def test_three_levels():
    def function(x):
        def outer(a):
            def middle(b):
                c = scalar.loop(3, lambda c: 0.5 * c + a * 0.1 + b[0], x[2], until=lambda c: c < a)
                return [scalar.sin(c) + b[0], b[1] + 1.0]

            b, n = scalar.loop(4, middle, [a, 0.0], until=lambda b: b[0] > x[0])
            return 0.5 * (a + b) + 0.01 * n

        return [scalar.loop(5, outer, x[1], until=lambda a: a > x[0])]

    agree(function)


def test_a_step_is_recorded_once_and_counted_as_often_as_it_runs():
    def function(x):
        return [scalar.loop(100, lambda y: y * y * x[1] + x[2], x[0])]

    program = program_of(function)
    (loop,) = loops_of(program)
    assert len(live([store.value for store in loop.cases[0]])) < 8
    count = count_program(program)
    assert (count.multiplications, count.additions) == (200, 100)


def test_what_does_not_change_is_computed_before_and_kept_once():
    def function(x):
        heavy = scalar.sin(x[0]) * x[1]

        def step(y):
            return y * scalar.cos(x[2] * x[2]) + heavy + scalar.sqrt(heavy * heavy)

        return [scalar.loop(9, step, 1.0), heavy]

    program = agree(function)
    before, loop, after = program.statements
    ops = {node.op for node in live([store.value for store in loop.cases[0]])}
    assert ops <= {"load", "add", "mul"}
    values = [spec for spec in program.states if spec.name.startswith("values")]
    assert [spec.size for spec in values] == [3]  # the cosine, heavy and the root
    assert {node.op for node in live(after.values)} == {"load"}
    # Three values and the start of the loop are kept, and `heavy` is stored as a result where it is known.
    assert [store.array for store in before.stores] == ["values 0"] * 3 + ["loop 0", "output"]
    assert [(store.array, store.position) for store in after.stores] == [("output", 0)]


def test_what_only_later_code_needs_is_computed_there():
    def function(x):
        y = scalar.loop(4, lambda y: y * 0.5 + x[0], x[1])
        return [y * scalar.sin(x[2])]

    program = agree(function)
    assert [spec.name for spec in program.states] == ["loop 0"]
    assert "sin" in {node.op for node in live(program.statements[-1].values)}


def test_a_long_sum_is_kept_as_one_number():
    """Its terms are needed before the loop, their sum only after it."""

    def function(x):
        terms = [scalar.sin(x[0] * k) for k in range(1, 9)]
        start = 0.0
        for a, b in itertools.pairwise(terms):
            start = start + a * b
        return [scalar.loop(4, lambda y: y * 0.5, start) + sum(terms, 0.0)]

    program = agree(function)
    assert {spec.name: spec.size for spec in program.states} == {"loop 0": 1, "values 0": 1}


def test_literals_that_stay_fold_and_others_are_carried():
    def function(x):
        def step(carry):
            zero, one, grown, kept, unused = carry
            return 0.0 * x[0] + zero, one, grown + x[1], kept, unused * 2.0

        zero, one, grown, kept, _ = scalar.loop(4, step, (0.0, 1.0, 0.0, x[2], x[0]))
        return [zero, one, grown, kept * one]

    program = agree(function)
    (loop,) = loops_of(program)
    assert [store.address.offset for store in loop.cases[0]] == [2]
    first, last = program.statements[0], program.statements[-1]
    known = {store.position: store.value for store in first.stores if store.array == "output"}
    assert sorted(known) == [0, 1, 3]
    assert known[0].data == 0.0
    assert known[1].data == 1.0
    assert known[3].op == "input"
    assert [store.position for store in last.stores] == [2]


def test_a_literal_that_becomes_traced_in_a_later_step_is_carried():
    def function(x):
        return scalar.loop(4, lambda c: [c[1], c[2], c[2] + x[0]], [0.0, 0.0, 0.0])

    agree(function)


def test_conditions_are_carried_and_captured():
    def function(x):
        large = x[0] > 10.0

        def step(carry):
            y, was, done = carry
            return scalar.select(large, y * 0.5, y * 0.25 + 1.0), y > 3.0, scalar.logical_or(done, was)

        y, was, done = scalar.loop(6, step, (x[1], False, large), until=lambda c: c[0] < 1.5)
        return [y, scalar.select(was, 1.0, 0.0), scalar.select(done, 1.0, 2.0)]

    agree(function)


def test_a_loop_that_nothing_needs_is_left_out():
    def function(x):
        scalar.loop(9, lambda y: y * 0.5, x[0])
        return [scalar.loop(3, lambda y: [y[0] * 0.5, y[1] + 1.0], [x[1], 0.0])[0]]

    program = agree(function)
    (loop,) = loops_of(program)
    assert loop.count == 3
    assert len(loop.cases[0]) == 1


def test_carries_of_numbers_alone_become_traced_by_what_they_meet():
    agree(lambda x: [scalar.loop(3, lambda y: y * 2.0 + x[0], 1.0)])
    agree(lambda x: [scalar.loop(30, lambda y: y * 2.0, 1.0, until=lambda y: y > x[0])])


def test_a_value_of_the_step_is_not_to_be_had_outside():
    kept = []

    def function(x):
        def step(y):
            kept.append(scalar.sin(y))
            return y + x[1]

        return [scalar.loop(3, step, x[0]) + kept[-1]]

    with pytest.raises(TracingError, match="used outside it"):
        program_of(function)


def test_without_loops_a_trace_is_one_straight_statement():
    program = program_of(lambda x: [x[0] * x[1], scalar.lookup([1.0, 2.0], x[2])])
    (statement,) = program.statements
    assert isinstance(statement, Straight)
    assert not program.states
    assert list(program.tables) == ["lookup 0"]


def flagged(count=5, until=None, skips=(), cell=0.0):
    graph = Graph()
    load = graph.load(Address.fixed("s", 0))
    return Program(
        (),
        (ArraySpec("y", 1),),
        (ArraySpec("s", 2),),
        (
            Straight((Store.fixed("s", 1, graph.constant(cell)),)),
            Loop(count, False, None, ((Store(Address.fixed("s", 0), load + 1.0),),), until, skips),
            Straight((Store.fixed("y", 0, load),)),
        ),
    )


def test_a_flag_ends_or_skips_and_belongs_to_the_digest():
    """The definition: iterations are left out once the flag is set."""
    flag = Address.fixed("s", 1)
    assert interpret(flagged(), {})["y"] == [5.0]
    for options in ({"until": flag}, {"skips": (flag,)}):
        assert interpret(flagged(**options), {})["y"] == [5.0]
        assert interpret(flagged(**options, cell=1.0), {})["y"] == [0.0]
    digests = {flagged(**x).digest() for x in ({}, {"until": flag}, {"skips": (flag,)}, {"count": 6})}
    assert len(digests) == 4


def test_flags_are_validated():
    with pytest.raises(ArgumentError, match="one fixed element"):
        flagged(until=Address("s", None, 1, 0))
    with pytest.raises(ShapeError, match="reaches element 2"):
        flagged(until=Address.fixed("s", 2))
    with pytest.raises(ArgumentError, match="2 skips"):
        flagged(skips=(None, None))
    with pytest.raises(ShapeError, match="reaches element 4"):
        flagged(skips=(Address("s", None, 1, 0),))
    flagged(count=2, skips=(Address("s", None, 1, 0),))


def test_a_looked_up_table_must_be_there():
    graph = Graph()
    y = scalar.lookup([1.0, 2.0], graph.input("x", 0))
    parts = ((ArraySpec("x", 1),), (ArraySpec("y", 1),), (), (Straight((Store.fixed("y", 0, y),)),))
    assert interpret(Program(*parts, tables=graph.tables), {"x": [1.5]})["y"] == [2.0]
    with pytest.raises(KeyError, match='table of floats "lookup 0"'):
        Program(*parts)
    with pytest.raises(ShapeError, match="empty"):
        Program(*parts, tables={"lookup 0": np.zeros(0)})
