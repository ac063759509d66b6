"""Derivatives of random graphs and random programs with loops, against the interpreter on dual numbers, and
these against complex steps.
"""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.tracing.interpreter import evaluate, interpret
from tests.tracing.recipes import BRANCHING, RING, SMOOTH, cook, recipes

from dalembert import scalar
from dalembert.errors import TracingError
from dalembert.model.joints.dual import Dual
from dalembert.tracing import (
    Address,
    ArraySpec,
    Expression,
    Graph,
    Loop,
    Program,
    Store,
    Straight,
    jacobian,
    jvp,
    vjp,
)
from dalembert.tracing.program_derivatives import Frame, colour_columns, dependence, program_jvp, program_vjp

NUMBERS = st.floats(-2.0, 2.0).map(lambda x: round(x, 3) + 1e-4)
VALUES = st.lists(NUMBERS, min_size=3, max_size=3)
ALL = RING + SMOOTH + BRANCHING


def rest_of_the_operations(values):
    """Those that random recipes leave out, each inside its domain."""
    y, z = values[-1], values[len(values) // 2]
    inside = 0.9 * scalar.sin(y)
    return [
        scalar.asin(inside) * z,
        scalar.acos(inside) + z,
        scalar.log(1.5 + scalar.cos(y)) * z,
        scalar.floor(3.0 * scalar.sin(y)) * z,
    ]


def poisoned(values):
    """Every branch that is not taken is the square root or the logarithm of a negative number."""
    y, z = values[-1], values[len(values) // 2]
    root = scalar.select(y < z, scalar.sqrt(z - y), scalar.sqrt(y - z) * y)
    power = scalar.select(root < y, scalar.log(y - root) * z, scalar.log(root - y))
    return [root, power, scalar.minimum(power, root) * y]


def nodes_of(graph, values):
    return [value if type(value) is Expression else graph.constant(value) for value in values]


def rate(value, level=1):
    return value.rate if isinstance(value, Dual) and value.level == level else 0.0


def stepped(x, dx):
    """x + i h dx: a complex step."""
    return [complex(a, 1e-40 * b) for a, b in zip(x, dx, strict=True)]


def imaginary(values):
    return [complex(value).imag / 1e-40 for value in values]


def number(value, x):
    return evaluate([value], {"x": x})[0] if type(value) is Expression else value


def agree(found, expected):
    assume(np.all(np.isfinite(expected)))
    assume(np.all(np.abs(expected) < 1e6))
    np.testing.assert_allclose(
        found, expected, rtol=1e-8, atol=1e-8 * (1.0 + np.abs(expected).max(initial=0.0))
    )


@settings(max_examples=120, deadline=None)
@given(recipe=recipes(ALL), x=VALUES, dx=VALUES, w=NUMBERS, spoil=st.booleans())
def test_products_of_random_graphs_are_those_of_dual_numbers(recipe, x, dx, w, spoil):
    """RBDA-10.4-SYMBOLIC: all operations; forward, in reverse and as a matrix; NaN in untaken branches."""
    graph = Graph()
    symbols = [graph.input("x", k) for k in range(3)]
    values = cook(recipe, symbols)
    outputs = nodes_of(graph, (poisoned(values) if spoil else rest_of_the_operations(values)) + values[-2:])
    moved = [rate(y) for y in evaluate(outputs, {"x": [Dual(a, b, 1) for a, b in zip(x, dx, strict=True)]})]
    agree(imaginary(evaluate(outputs, {"x": stepped(x, dx)})), moved)
    agree([number(y, x) for y in jvp(outputs, symbols, dx)], moved)
    weights = [w * (k + 1) for k in range(len(outputs))]
    gradient = [number(g, x) for g in vjp(outputs, symbols, weights)]
    agree(np.dot(gradient, dx), np.dot(weights, moved))
    rows = [[number(row.get(k, 0.0), x) for k in range(3)] for row in jacobian(outputs, symbols)]
    agree(np.dot(rows, dx), moved)


@settings(max_examples=60, deadline=None)
@given(recipe=recipes(RING + SMOOTH + BRANCHING, longest=8), x=VALUES, dx=VALUES, w=VALUES)
def test_second_derivatives_are_those_of_dual_numbers_of_dual_numbers(recipe, x, dx, w):
    """Forward over reverse, contracted with a direction on either side."""
    graph = Graph()
    symbols = [graph.input("x", k) for k in range(3)]
    outputs = nodes_of(graph, cook(recipe, symbols))[-1:]
    gradient = nodes_of(graph, vjp(outputs, symbols, [1.0]))
    found = np.dot([number(item, x) for item in jvp(gradient, symbols, dx)], w)
    twice = [Dual(Dual(a, b, 1), Dual(c, 0.0, 1), 2) for a, b, c in zip(x, dx, w, strict=True)]
    agree(found, rate(rate(evaluate(outputs, {"x": twice})[0], 2), 1))


SIZES = {"x": 5, "p": 2, "s": 4, "y": 3}


@st.composite
def programs(draw):
    """Loops in both directions over cases, with slots that are written again and sums; and straight code."""
    graph = Graph()
    count = draw(st.integers(1, 5))
    places = st.lists(st.integers(0, 2), min_size=count, max_size=count)
    tables = {name: np.array(draw(places)) for name in ("own", "other", "place", "kind")}
    tables["kind"] = tables["kind"] % 2
    tables["numbers"] = np.linspace(0.5, 1.5, count)
    leaves = [
        graph.load(Address("x", "place", 2, 0)),
        graph.load(Address("x", None, 1, 0)),
        graph.load(Address("s", "own", 1, 1)),
        graph.load(Address("s", "other", 1, 0)),
        graph.load(Address("numbers", None, 1, 0)),
        graph.input("p", 1),
    ]
    ops = RING + ("sin", "select", "max", "div")

    def case():
        a, b, c, d = itertools.islice(itertools.cycle(cook(draw(recipes(ops, longest=5)), leaves)[::-1]), 4)
        own, other = Address("s", "own", 1, 1), Address("s", "other", 1, 0)
        return tuple(
            Store(address, *nodes_of(graph, [scalar.sin(value)]), accumulate=accumulate)
            for address, value, accumulate in (
                (own, a, False),
                (other, b, True),
                (Address("y", "place", 1, 0), c, True),
                (Address("history", None, 1, 0), d, False),
            )
        )

    product = graph.load(Address("history", None, 1, 0)) * leaves[2]
    gathered = Store(Address("y", "own", 1, 0), product, accumulate=True)
    after = Loop(count, draw(st.booleans()), None, ((gathered,),))
    start = Straight(
        (
            Store.fixed("s", 1, graph.input("x", 2) * graph.input("p", 0)),
            Store.fixed("y", 0, graph.input("p", 1)),
        )
    )
    loops = [
        Loop(count, draw(st.booleans()), "kind", (case(), case())) for _ in range(draw(st.integers(1, 2)))
    ]
    end = Straight(
        (Store.fixed("y", 2, graph.load(Address.fixed("y", 2)) * graph.load(Address.fixed("s", 2))),)
    )
    program = Program(
        inputs=(ArraySpec("x", 5), ArraySpec("p", 2)),
        outputs=(ArraySpec("y", 3),),
        states=(ArraySpec("s", 4), ArraySpec("history", count)),
        statements=(start, *loops, after, end),
        tables=tables,
    )
    return graph, program


@settings(max_examples=80, deadline=None)
@given(made=programs(), data=st.data())
def test_products_of_programs_with_loops_are_those_of_dual_numbers(made, data):
    """RBDA-10.4-SYMBOLIC: states written again and again, sums, cases, both directions, and both in turn."""
    graph, program = made
    x, dx, w = (data.draw(st.lists(NUMBERS, min_size=n, max_size=n)) for n in (5, 5, 3))
    p = [0.7, -1.2]
    duals = [Dual(a, b, 1) for a, b in zip(x, dx, strict=True)]
    moved = [rate(y) for y in interpret(program, {"x": duals, "p": p})["y"]]
    agree(imaginary(interpret(program, {"x": stepped(x, dx), "p": p})["y"]), moved)
    tangent = program_jvp(program, graph, {"x": "dx"}, Frame(inputs=(ArraySpec("dx", 5),)))
    (found,) = interpret(tangent, {"x": x, "p": p, "dx": dx}).values()
    agree(found, moved)
    gradient = program_vjp(
        program, graph, {"y": "w"}, {"x": "by x"}, [ArraySpec("by x", 5)], Frame(inputs=(ArraySpec("w", 3),))
    )
    (slopes,) = interpret(gradient, {"x": x, "p": p, "w": w}).values()
    agree(np.dot(slopes, dx), np.dot(w, moved))
    second = program_jvp(gradient, graph, {"x": "dx"}, Frame(inputs=(ArraySpec("dx", 5),)))
    (bent,) = interpret(second, {"x": x, "p": p, "w": w, "dx": dx}).values()
    (expected,) = interpret(gradient, {"x": duals, "p": p, "w": w}).values()
    agree(bent, [rate(item) for item in expected])
    again = program_jvp(tangent, graph, {"x": "ex"}, Frame(inputs=(ArraySpec("ex", 5),)))
    (found,) = interpret(again, {"x": x, "p": p, "dx": dx, "ex": x}).values()
    (expected,) = interpret(tangent, {"x": [Dual(a, a, 1) for a in x], "p": p, "dx": dx}).values()
    agree(found, [rate(item) for item in expected])
    back = program_vjp(
        gradient, graph, {"by x": "u"}, {"x": "by x again"}, [ArraySpec("by x again", 5)],
        Frame(inputs=(ArraySpec("u", 5),)),
    )  # fmt: skip
    (slopes,) = interpret(back, {"x": x, "p": p, "w": w, "u": dx}).values()
    agree(np.dot(slopes, dx), np.dot(bent, dx))


def test_gradients_of_programs_leave_out_what_they_do_not_need():
    """A loop that only writes an output is not run again; arrays that last need no tape."""
    graph = Graph()
    x = graph.load(Address("x", None, 1, 0))
    kept = Store(Address("h", None, 1, 0), scalar.sin(x))
    last = Store(Address("y", None, 0, 0), graph.load(Address("h", None, 1, 0)) * x, accumulate=True)
    program = Program(
        inputs=(ArraySpec("x", 4),),
        outputs=(ArraySpec("y", 1),),
        states=(ArraySpec("h", 4),),
        statements=(Loop(4, False, None, ((kept,),)), Loop(4, False, None, ((last,),))),
    )
    gradient = program_vjp(
        program, graph, {"y": "w"}, {"x": "g"}, [ArraySpec("g", 4)], Frame(inputs=(ArraySpec("w", 1),))
    )
    assert not any("tape" in spec.name or spec.name == "y" for spec in gradient.states)
    assert "y" not in {
        store.address.array for loop in gradient.statements for case in loop.cases for store in case
    }
    values = [0.1, 0.2, 0.3, 0.4]
    expected = [2.0 * (np.sin(a) + a * np.cos(a)) for a in values]
    np.testing.assert_allclose(interpret(gradient, {"x": values, "w": [2.0]})["g"], expected, rtol=1e-14)


def test_what_a_later_iteration_reads_depends_too():
    """y gathers s, which a store after it in the same loop makes of x."""
    graph = Graph()
    s, x = graph.load(Address.fixed("s", 0)), graph.load(Address("x", None, 1, 0))
    case = (
        Store(Address.fixed("y", 0), s * s, accumulate=True),
        Store(Address.fixed("s", 0), scalar.sin(x)),
    )
    program = Program(
        inputs=(ArraySpec("x", 3),),
        outputs=(ArraySpec("y", 1),),
        states=(ArraySpec("s", 1),),
        statements=(Loop(3, False, None, (case,)),),
    )
    frame = Frame(inputs=(ArraySpec("w", 1),))
    gradient = program_vjp(program, graph, {"y": "w"}, {"x": "g"}, [ArraySpec("g", 3)], frame)
    values = [0.3, 0.5, 0.7]
    expected = [np.sin(0.6), np.sin(1.0), 0.0]
    np.testing.assert_allclose(interpret(gradient, {"x": values, "w": [1.0]})["g"], expected, rtol=1e-14)
    frame = Frame(inputs=(ArraySpec("dx", 3),))
    (moved,) = interpret(
        program_jvp(program, graph, {"x": "dx"}, frame), {"x": values, "dx": [1.0, 2.0, 5.0]}
    ).values()
    np.testing.assert_allclose(moved, [np.sin(0.6) + 2.0 * np.sin(1.0)], rtol=1e-14)


def test_stores_over_one_another_are_refused_in_reverse():
    graph = Graph()
    x = graph.load(Address("x", None, 1, 0))
    stores = tuple(Store(Address("y", table, 1, 0), x * k) for k, table in ((2.0, None), (3.0, "own")))
    program = Program(
        inputs=(ArraySpec("x", 2),),
        outputs=(ArraySpec("y", 2),),
        statements=(Loop(2, False, None, (stores,)),),
        tables={"own": np.array([1, 1])},
    )
    with pytest.raises(TracingError, match="no reverse derivative"):
        program_vjp(
            program, graph, {"y": "w"}, {"x": "g"}, [ArraySpec("g", 2)], Frame(inputs=(ArraySpec("w", 2),))
        )


def test_a_place_may_be_cleared_before_it_is_filled():
    """A zero that is stored over has no adjoint to lose."""
    graph = Graph()
    x = graph.load(Address("x", None, 1, 0))
    place = Address("y", None, 1, 0)
    stores = (Store(place, graph.constant(0.0)), Store(place, scalar.sin(x)))
    program = Program(
        inputs=(ArraySpec("x", 2),),
        outputs=(ArraySpec("y", 2),),
        statements=(Loop(2, False, None, (stores,)),),
    )
    frame = Frame(inputs=(ArraySpec("w", 2),))
    gradient = program_vjp(program, graph, {"y": "w"}, {"x": "g"}, [ArraySpec("g", 2)], frame)
    found = interpret(gradient, {"x": [0.3, 0.5], "w": [2.0, 3.0]})["g"]
    np.testing.assert_allclose(found, [2.0 * np.cos(0.3), 3.0 * np.cos(0.5)], rtol=1e-14)


@settings(max_examples=60, deadline=None)
@given(made=programs(), x=st.lists(NUMBERS, min_size=5, max_size=5))
def test_outputs_depend_on_no_more_than_the_sets_say(made, x):
    """Every derivative that is not zero has its place; x[1] * 0 and conditions have none."""
    _, program = made
    rows = dependence(program, ["x"])["y"]
    for k in range(5):
        moved = [Dual(a, float(i == k), 1) for i, a in enumerate(x)]
        for row, y in zip(rows, interpret(program, {"x": moved, "p": [0.7, -1.2]})["y"], strict=True):
            assert row >> k & 1 or not rate(y)


def test_dependence_follows_elements_through_states():
    """Two chains through one state array; a condition and a step function carry nothing."""
    graph = Graph()
    x, s = (graph.load(Address(name, "place", 1, 0)) for name in "xs")
    grown = Store(Address("s", "place", 1, 0), s + x * x)
    program = Program(
        inputs=(ArraySpec("x", 4), ArraySpec("z", 1)),
        outputs=(ArraySpec("y", 3),),
        states=(ArraySpec("s", 2),),
        statements=(
            Loop(2, False, None, ((grown,),)),
            Straight(
                (
                    Store.fixed("y", 0, graph.load(Address.fixed("s", 0)) * graph.input("z", 0)),
                    Store.fixed("y", 1, scalar.sin(graph.load(Address.fixed("s", 1)))),
                    Store.fixed("y", 2, scalar.select(graph.input("x", 3) > 0.0, graph.input("x", 2), 1.0)),
                )
            ),
        ),
        tables={"place": np.array([0, 1])},
    )
    assert dependence(program, ["x", "z"])["y"] == [0b10001, 0b00010, 0b00100]


@given(rows=st.lists(st.integers(0, 2**9 - 1), max_size=9))
def test_columns_of_one_colour_share_no_row(rows):
    groups = colour_columns(rows, 9)
    assert sorted(column for group in groups for column in group) == list(range(9))
    for group in groups:
        chosen = sum(1 << column for column in group)
        assert all((row & chosen).bit_count() <= 1 for row in rows)
    assert len(groups) >= max((row.bit_count() for row in rows), default=0)


def test_few_colours_are_found():
    """Arrow: one column meets all others, which meet no other. Diagonal: one colour."""
    assert len(colour_columns([0b00001 | 1 << k for k in range(5)], 5)) == 2
    assert len(colour_columns([1 << k for k in range(5)], 5)) == 1
