"""The rewrite rules change the cost of a result, never its value."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.tracing.interpreter import evaluate
from tests.tracing.recipes import BRANCHING, RING, SMOOTH, cook, recipes

from dalembert import scalar
from dalembert.tracing import BOOK_RULES, NO_RULES, OPERATIONS, RULES, Graph, count_operations, live

VALUES = st.lists(st.integers(-40, 40).map(lambda n: n / 8.0), min_size=3, max_size=3)


def inputs(graph, number=3):
    return [graph.input("x", k) for k in range(number)]


def constant_node(graph, value):
    return value if hasattr(value, "op") else graph.constant(value)


def exactly(nodes, values):
    """An independent evaluator in rational arithmetic, where every rule must hold without rounding."""
    found = {}
    for node in live(nodes):
        a = [found[item.index] for item in node.args]
        found[node.index] = {
            "constant": lambda node=node: Fraction(node.data),
            "input": lambda node=node: Fraction(values[node.data[1]]),
            "add": lambda a=a: a[0] + a[1],
            "sub": lambda a=a: a[0] - a[1],
            "mul": lambda a=a: a[0] * a[1],
            "neg": lambda a=a: -a[0],
            "abs": lambda a=a: abs(a[0]),
            "min": lambda a=a: min(a),
            "max": lambda a=a: max(a),
            "lt": lambda a=a: a[0] < a[1],
            "le": lambda a=a: a[0] <= a[1],
            "not": lambda a=a: not a[0],
            "select": lambda a=a: a[1] if a[0] else a[2],
        }[node.op]()
    return [found[node.index] for node in nodes]


@pytest.mark.parametrize("rules", [BOOK_RULES, RULES], ids=lambda rules: rules.name)
@settings(max_examples=400, deadline=None)
@given(recipe=recipes(RING + BRANCHING), values=VALUES)
def test_rewritten_results_are_exactly_those_written(rules, recipe, values):
    """RBDA-10.4-SYMBOLIC: ring and branches in rational arithmetic, every intermediate value."""
    written, rewritten = Graph(NO_RULES), Graph(rules)
    plain = [constant_node(written, item) for item in cook(recipe, inputs(written))]
    simple = [constant_node(rewritten, item) for item in cook(recipe, inputs(rewritten))]
    assert exactly(plain, values) == exactly(simple, values)


@settings(max_examples=400, deadline=None)
@given(recipe=recipes(RING + SMOOTH), values=VALUES)
def test_rewritten_results_agree_to_rounding(recipe, values):
    """RBDA-10.4-SYMBOLIC: every smooth operation, against the function run on floats."""
    direct = cook(recipe, values)
    assume(all(math.isfinite(item) and abs(item) < 1e4 for item in direct))
    graph = Graph(RULES)
    traced = [constant_node(graph, item) for item in cook(recipe, inputs(graph))]
    bound = 1e-10 * (1.0 + max(abs(item) for item in direct)) ** 2
    assert evaluate(traced, {"x": values}) == pytest.approx(direct, rel=0.0, abs=bound)


@settings(max_examples=300, deadline=None)
@given(recipe=recipes(RING + BRANCHING + SMOOTH, longest=20))
def test_no_rule_costs_an_operation(recipe):
    """Each richer rule set needs at most the operations of the poorer one, for every intermediate value."""
    totals = []
    for rules in (NO_RULES, BOOK_RULES, RULES):
        graph = Graph(rules)
        nodes = [constant_node(graph, item) for item in cook(recipe, inputs(graph))]
        count = count_operations(nodes)
        totals.append(count.total + count.other + count.square_roots + count.trigonometric)
    assert totals[0] >= totals[1] >= totals[2]


def instances(graph, kind):
    """Nodes with the operation `kind`, on arguments among which equal ones, constants and sines occur."""
    x, y, _ = inputs(graph)
    atoms = [x, y, scalar.sin(x), scalar.cos(x), *(graph.constant(c) for c in (0.0, 1.0, 2.0, -3.0, 0.25))]
    conditions = [x < y, y <= x, graph.boolean(True), graph.boolean(False)]
    if kind == "constant":
        return [item for item in atoms if item.op == "constant"]
    if kind == "input":
        return [x, y]
    if kind == "condition":
        return [*conditions, graph.operation("not", x < y)]
    if kind == "not":
        return [graph.operation("not", item) for item in conditions]
    pools = [atoms] * OPERATIONS[kind].arity
    return [graph.operation(kind, *args) for args in itertools.product(*pools)]


def candidates(graph, rule, place):
    kind = rule.pattern[place]
    if kind != "*":
        return instances(graph, kind)
    if rule.op in ("and", "or", "not") or (rule.op == "select" and place == 0):
        return instances(graph, "condition")
    return [*instances(graph, "input"), *instances(graph, "constant"), *instances(graph, "sub")[:3]]


@pytest.mark.parametrize("rule", RULES.rules, ids=lambda rule: f"{rule.op}: {rule.name}")
def test_each_rule_fires_and_keeps_the_value(rule):
    """One step of one rule, on every small instance of its pattern, in a graph without other rules."""
    graph, values = Graph(NO_RULES), {"x": [0.6, 0.35, 1.7]}
    graph.rules = RULES  # For rules that ask what others would make of a part; constructors stay as they are.
    fired = 0
    for args in itertools.product(*(candidates(graph, rule, place) for place in range(len(rule.pattern)))):
        result = rule.apply(*args)
        if result is None:
            continue
        expected = OPERATIONS[rule.op].evaluate(*evaluate(args, values))
        if math.isfinite(expected):
            assert evaluate([result], values)[0] == pytest.approx(expected, rel=1e-14, abs=1e-15), args
            fired += 1
    assert fired > 0


@pytest.mark.parametrize("rule", RULES.rules, ids=lambda rule: f"{rule.op}: {rule.name}")
def test_each_rule_is_found_under_its_pattern(rule):
    found = RULES.dispatch(rule.op)
    kinds = ["add" if kind == "*" else kind for kind in rule.pattern]
    if rule.op in ("and", "or", "not", "select"):
        kinds = ["eq" if kind == "add" else kind for kind in kinds]
    assert rule.apply in (found[kinds[0]][kinds[1]] if len(kinds) == 2 else found[kinds[0]])


CASES = {
    "structural zero": (lambda x, y, z: 0.0 * x + y, lambda x, y, z: y),
    "one": (lambda x, y, z: 1 * x, lambda x, y, z: x),
    "cancelling": (lambda x, y, z: (x + y) - (y + x), lambda x, y, z: x * 0.0),
    "difference and back": (lambda x, y, z: (x - y) + y, lambda x, y, z: x),
    "sum and back": (lambda x, y, z: y - (y + x), lambda x, y, z: -x),
    "constant factors": (lambda x, y, z: 2.0 * (3.0 * x) * 0.5, lambda x, y, z: 3.0 * x),
    "constant terms": (lambda x, y, z: 1.0 - (x + 2.0) - 3.0, lambda x, y, z: -(x + 4.0)),
    "constant over constant": (lambda x, y, z: (6.0 * x) / 3.0, lambda x, y, z: 2.0 * x),
    "terms": (lambda x, y, z: 3.0 * x - 0.5 * x, lambda x, y, z: 2.5 * x),
    "negation outward": (lambda x, y, z: (-x) * (y * -z), lambda x, y, z: x * (y * z)),
    "difference of negatives": (lambda x, y, z: -x - (-y), lambda x, y, z: y - x),
    "negative constant": (lambda x, y, z: x + -2.0 * y, lambda x, y, z: x - 2.0 * y),
    "commuting": (lambda x, y, z: (y * x) + z, lambda x, y, z: z + (x * y)),
    "power of two": (lambda x, y, z: x / 4.0, lambda x, y, z: 0.25 * x),
    "divided by a reciprocal": (lambda x, y, z: x / (1.0 / y), lambda x, y, z: x * y),
    "sine is odd": (lambda x, y, z: scalar.sin(-x), lambda x, y, z: -scalar.sin(x)),
    "cosine is even": (lambda x, y, z: scalar.cos(-x), lambda x, y, z: scalar.cos(x)),
    "pythagoras": (
        lambda x, y, z: scalar.cos(x) ** 2 + scalar.sin(x) ** 2 - 1.0 + y,
        lambda x, y, z: y,
    ),
    "shared factor of a known sum": (
        lambda x, y, z: z * (x - y) + z * y,
        lambda x, y, z: z * x,
    ),
    "shared factor of squares": (
        lambda x, y, z: z * scalar.cos(x) ** 2 + z * scalar.sin(x) ** 2,
        lambda x, y, z: z,
    ),
    "sums that share a term": (lambda x, y, z: (x + y) - (z + x), lambda x, y, z: y - z),
    "differences that share a term": (lambda x, y, z: (y - x) - (z - x), lambda x, y, z: y - z),
    "select of equals": (lambda x, y, z: scalar.select(x < y, z, z), lambda x, y, z: z),
    "select, known": (lambda x, y, z: scalar.select((x - x) < 1.0, y, z), lambda x, y, z: y),
    "select by not": (
        lambda x, y, z: scalar.select(scalar.logical_not(x < y), y, z),
        lambda x, y, z: scalar.select(x < y, z, y),
    ),
    "known conjunction": (
        lambda x, y, z: scalar.select(scalar.logical_and(True, x < y), y, z),
        lambda x, y, z: scalar.select(x < y, y, z),
    ),
    "known disjunction": (
        lambda x, y, z: scalar.select(scalar.logical_or(x < y, True), y, z),
        lambda x, y, z: y,
    ),
    "zero to a power": (lambda x, y, z: (x * 0.0) ** 3 + y, lambda x, y, z: y),
    "square of a root": (lambda x, y, z: scalar.sqrt(x) * scalar.sqrt(x), lambda x, y, z: x),
    "minimum of equals": (lambda x, y, z: scalar.minimum(x, x + 0.0), lambda x, y, z: x),
    "even magnitude": (lambda x, y, z: abs(-x), lambda x, y, z: abs(x)),
}


@pytest.mark.parametrize("name", CASES)
def test_normal_form(name):
    """Both ways to write it give one node."""
    graph = Graph()
    left, right = (function(*inputs(graph)) for function in CASES[name])
    assert left is right


def test_opposite_difference_is_shared():
    graph = Graph()
    x, y, z = inputs(graph)
    assert count_operations([(x - y) * z, (y - x) * z]).total == 2


def test_nonfinite_constants_are_kept_except_beside_a_structural_zero():
    graph = Graph()
    (x,) = inputs(graph, 1)
    nodes = [
        x * math.inf,
        x + math.nan,
        graph.constant(math.inf) - graph.constant(math.inf),
        math.inf * (0.0 * x),
    ]
    values = evaluate(nodes, {"x": [-2.0]})
    assert values[0] == -math.inf
    assert math.isnan(values[1])
    assert math.isnan(values[2])
    assert values[3] == 0.0


def test_gathering_never_overflows_a_finite_result():
    graph = Graph()
    (x,) = inputs(graph, 1)
    product = 1e200 * (1e200 * x)
    quotient = 1e-200 * (x / 1e200)
    total = (x + 1e308) + 1e308
    assert evaluate([product], {"x": [1e-300]})[0] == pytest.approx(1e100)
    assert evaluate([quotient], {"x": [1e300]})[0] == pytest.approx(1e-100)
    assert evaluate([total], {"x": [-1.5e308]})[0] == pytest.approx(0.5e308)


@settings(max_examples=200, deadline=None)
@given(recipe=recipes(RING + BRANCHING + SMOOTH, longest=20))
def test_rewriting_runs_to_its_fixpoint(recipe):
    """RBDA-10.4-SYMBOLIC: to trace what was traced finds nothing more to simplify."""
    once, twice = Graph(), Graph()
    nodes = [constant_node(once, item) for item in cook(recipe, inputs(once))]
    again = [constant_node(twice, item) for item in evaluate(nodes, {"x": inputs(twice)})]
    assert count_operations(again) == count_operations(nodes)
