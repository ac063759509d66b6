"""Programs: their meaning, their digest, and the faults that they refuse."""

import subprocess
import sys

import numpy as np
import pytest
from tests.tracing.interpreter import interpret

from dalembert.errors import ArgumentError, DalembertError, ShapeError, UnknownNameError
from dalembert.tracing import (
    Address,
    ArraySpec,
    Graph,
    Loop,
    Program,
    Store,
    Straight,
    count_program,
    python_source,
)

TABLES = {
    "parent": np.array([0, 0, 1, 1, 3]),
    "kind": np.array([0, 1, 0, 1, 0]),
    "length": np.array([1.0, 0.5, 2.0, 0.25, 3.0]),
}


def tree_program():
    """Depths outward, sums inward: state 0 is the root, node i has state i + 1.

    depth(i) = depth(parent) + length_i, or + q_i for nodes of the second kind; then the sums of the depths of
    all descendants.
    """
    graph = Graph()
    above = graph.load(Address("depth", "parent", 1, 0))
    length = graph.load(Address("length", None, 1, 0))
    q = graph.load(Address("q", None, 1, 0))
    own = Address("depth", None, 1, 1)
    outward = Loop(5, False, "kind", ((Store(own, above + length),), (Store(own, above + q),)))
    total = graph.load(Address("sum", None, 1, 1)) + graph.load(own)
    inward = Loop(
        5,
        True,
        None,
        (
            (
                Store(Address("sum", "parent", 1, 0), total, accumulate=True),
                Store(Address("out", None, 2, 0), total),
                Store(Address("out", None, 2, 1), graph.load(own)),
            ),
        ),
    )
    last = Straight(
        (Store.fixed("root", 0, 2.0 * graph.load(Address.fixed("sum", 0)) + graph.input("q", 0)),)
    )
    return Program(
        inputs=(ArraySpec("q", 5),),
        outputs=(ArraySpec("out", 10), ArraySpec("root", 1)),
        states=(ArraySpec("depth", 6), ArraySpec("sum", 6)),
        statements=(outward, inward, last),
        tables=TABLES,
    )


def tree_by_hand(q):
    depth, total = [0.0] * 6, [0.0] * 6
    for i in range(5):
        depth[i + 1] = depth[TABLES["parent"][i]] + (TABLES["length"][i] if TABLES["kind"][i] == 0 else q[i])
    for i in reversed(range(5)):
        total[i + 1] += depth[i + 1]
        total[TABLES["parent"][i]] += total[i + 1]
    return [item for i in range(5) for item in (total[i + 1], depth[i + 1])], 2.0 * total[0] + q[0]


def test_loops_over_tables_run_outward_and_inward():
    q = [0.1, 0.7, -0.3, 1.9, 0.4]
    out, root = tree_by_hand(q)
    results = interpret(tree_program(), {"q": q})
    assert results["out"] == pytest.approx(out, rel=1e-15)
    assert results["root"] == pytest.approx([root], rel=1e-15)


def test_source_of_loops_is_the_interpreter():
    """RBDA-10.4-SYMBOLIC: the emitted loops, bit for bit, on floats and on samples."""
    program = tree_program()
    scope: dict = {}
    exec(python_source(program), scope)
    samples = np.random.default_rng(3).normal(size=(4, 5))
    for q in samples.tolist():
        expected = interpret(program, {"q": q})
        assert scope["function"](q) == (expected["out"], expected["root"])
    batch = interpret(program, {"q": list(samples.T)})
    for row, q in enumerate(samples.tolist()):
        expected = interpret(program, {"q": q})
        assert [np.broadcast_to(item, 4)[row] for item in batch["out"]] == expected["out"]


def test_loops_are_counted_by_their_iterations():
    """RBDA-10.3-COUNTER: outward 5, inward 5 sums and 5 accumulations, straight 1 m + 1 a."""
    count = count_program(tree_program())
    assert (count.multiplications, count.additions) == (1, 16)


def test_values_of_an_iteration_are_computed_before_its_stores():
    graph = Graph()
    a, b = (graph.load(Address.fixed("s", k)) for k in range(2))
    swap = Straight((Store.fixed("s", 0, b), Store.fixed("s", 1, a + 1.0)))
    first = Straight((Store.fixed("s", 0, graph.input("x", 0)), Store.fixed("s", 1, graph.input("x", 1))))
    out = Straight((Store.fixed("y", 0, a), Store.fixed("y", 1, b)))
    program = Program((ArraySpec("x", 2),), (ArraySpec("y", 2),), (ArraySpec("s", 2),), (first, swap, out))
    assert interpret(program, {"x": [3.0, 5.0]}) == {"y": [5.0, 4.0]}
    scope: dict = {}
    exec(python_source(program), scope)
    assert scope["function"]([3.0, 5.0]) == [5.0, 4.0]


def straight(value, **changes):
    fields = {"inputs": (ArraySpec("x", 2),), "outputs": (ArraySpec("y", 1),)}
    return Program(**{**fields, "statements": (Straight((Store.fixed("y", 0, value),)),), **changes})


def test_digest_is_of_the_program_and_not_of_dead_code():
    def build(noise, constant=2.0, position=0):
        graph = Graph()
        inputs = [graph.input("x", k) for k in range(2)]
        for k in range(noise):
            inputs[1] * float(k + 7)
        return straight(inputs[position] * constant + inputs[1])

    assert build(0).digest() == build(5).digest()
    assert len({build(0).digest(), build(0, constant=2.5).digest(), build(0, position=1).digest()}) == 3
    assert tree_program().digest() == tree_program().digest()


def test_digest_is_the_same_in_another_process():
    code = (
        "from dalembert.tracing import *\n"
        "g = Graph()\n"
        "p = Program((ArraySpec('x', 2),), (ArraySpec('y', 1),),"
        " statements=(Straight((Store.fixed('y', 0, g.input('x', 0) * 3.0),)),))\n"
        "print(p.digest())"
    )
    here = straight(Graph().input("x", 0) * 3.0).digest()
    there = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout.strip()
    assert there == here


def looping(store, **changes):
    fields = {
        "inputs": (ArraySpec("x", 2),),
        "outputs": (ArraySpec("y", 3),),
        "tables": {"t": np.array([0, 1, 2])},
    }
    loop = changes.pop("loop", Loop(3, False, None, ((store,),)))
    return Program(**{**fields, "statements": (loop,), **changes})


GRAPH = Graph()
X = GRAPH.input("x", 0)
GOOD = Store(Address("y", "t", 1, 0), X)

FAULTS = {
    "unknown output": (
        lambda: straight(X, outputs=(ArraySpec("z", 1),)),
        UnknownNameError,
        '"y"; valid: "z"',
    ),
    "unknown input": (lambda: straight(GRAPH.input("w", 0)), UnknownNameError, 'unknown input "w"'),
    "input too short": (lambda: straight(GRAPH.input("x", 2)), ShapeError, r"x\[2\].*size is 2"),
    "output too short": (lambda: straight(X, outputs=(ArraySpec("y", 0),)), ShapeError, r"y\[0\].*size is 0"),
    "negative size": (lambda: ArraySpec("x", -1), ShapeError, "-1"),
    "unnamed": (lambda: ArraySpec("", 1), ArgumentError, "name"),
    "same name twice": (lambda: straight(X, states=(ArraySpec("x", 1),)), ArgumentError, "given twice: x"),
    "condition stored": (lambda: straight(X < 1.0), ArgumentError, "condition"),
    "number as check": (lambda: straight(X, check=X), ArgumentError, "check must be a condition"),
    "check of a state": (
        lambda: straight(X, states=(ArraySpec("s", 1),), check=GRAPH.load(Address.fixed("s", 0)) < 1.0),
        ArgumentError,
        "inputs alone",
    ),
    "table in straight code": (
        lambda: straight(GRAPH.load(Address("x", "t", 1, 0)), tables={"t": np.array([0])}),
        ArgumentError,
        "only a loop",
    ),
    "store past the end": (
        lambda: looping(Store(Address("y", "t", 1, 1), X)),
        ShapeError,
        "element 3",
    ),
    "store before the start": (
        lambda: looping(Store(Address("y", "t", 1, -1), X)),
        ShapeError,
        "element -1",
    ),
    "store to an input": (
        lambda: looping(Store(Address("x", None, 0, 0), X)),
        UnknownNameError,
        '"x"',
    ),
    "unknown table": (lambda: looping(Store(Address("y", "u", 1, 0), X)), UnknownNameError, '"u"'),
    "table of floats": (
        lambda: looping(GOOD, tables={"t": np.array([0.0, 1.0, 2.0])}),
        UnknownNameError,
        "table of integers",
    ),
    "short table": (lambda: looping(GOOD, tables={"t": np.array([0, 1])}), ShapeError, "2 entries for 3"),
    "two axes": (lambda: looping(GOOD, tables={"t": np.zeros((3, 1), dtype=int)}), ShapeError, "one axis"),
    "load past the end": (
        lambda: looping(Store(Address("y", "t", 1, 0), GRAPH.load(Address("x", "t", 1, 0)))),
        ShapeError,
        "element 2",
    ),
    "kinds missing": (
        lambda: looping(None, loop=Loop(3, False, None, ((GOOD,), (GOOD,)))),
        ArgumentError,
        "one case",
    ),
    "kind out of range": (
        lambda: looping(None, loop=Loop(3, False, "t", ((GOOD,), (GOOD,)))),
        ArgumentError,
        "outside 0 … 1",
    ),
    "negative count": (lambda: looping(None, loop=Loop(-1, False, None, ((GOOD,),))), ArgumentError, "-1"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_programs_are_refused(name):
    build, error, message = FAULTS[name]
    with pytest.raises(error, match=message) as caught:
        build()
    assert isinstance(caught.value, DalembertError)


def test_wrong_inputs_of_the_interpreter_are_named():
    program = straight(X)
    with pytest.raises(ShapeError, match=r"expected \(2,\), got \(3,\)"):
        interpret(program, {"x": [1.0, 2.0, 3.0]})
    with pytest.raises(UnknownNameError, match='"x" is missing'):
        interpret(program, {})
    with pytest.raises(UnknownNameError, match='unknown input "q"'):
        interpret(program, {"x": [1.0, 2.0], "q": [1.0]})


def test_programs_are_frozen():
    with pytest.raises(AttributeError):
        straight(X).check = None
