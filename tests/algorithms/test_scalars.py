"""One source, every scalar: batches, traces and symbols give what floats give."""

import numpy as np
import pytest
import sympy
from tests.algorithms.trees import close, random_tree, state
from tests.tracing.interpreter import evaluate

from dalembert import algorithms
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Revolute
from dalembert.spatial import RigidInertia, Transform, leaves
from dalembert.tracing.program import ArrayArgument
from dalembert.tracing.trace import trace

FUNCTIONS = {
    "inverse_dynamics": lambda m, q, v, a: algorithms.inverse_dynamics(m, q, v, a),
    "rnea_spatial": lambda m, q, v, a: algorithms.rnea_spatial(m, q, v, a).tau,
    "gravity_forces": lambda m, q, v, a: algorithms.gravity_forces(m, q),
    "coriolis_forces": lambda m, q, v, a: algorithms.coriolis_forces(m, q, v),
    "mass_matrix": lambda m, q, v, a: algorithms.mass_matrix(m, q),
    "inverse_mass_matrix": lambda m, q, v, a: algorithms.inverse_mass_matrix(m, q),
    "forward_dynamics": lambda m, q, v, a: algorithms.forward_dynamics(m, q, v, a),
    "forward_dynamics_by_matrix": lambda m, q, v, a: algorithms.forward_dynamics(m, q, v, a, method="crba"),
    "forward_kinematics": lambda m, q, v, a: [leaves(x) for x in algorithms.forward_kinematics(m, q)],
    "jacobian": lambda m, q, v, a: algorithms.jacobian(m, q, m.bodies[-1]),
    "jacobian_rate": lambda m, q, v, a: algorithms.jacobian_rate(m, q, v, m.bodies[-1]),
    "kinetic_energy": lambda m, q, v, a: [algorithms.kinetic_energy(m, q, v)],
    "potential_energy": lambda m, q, v, a: [algorithms.potential_energy(m, q)],
    "centroidal_momentum_matrix": lambda m, q, v, a: algorithms.centroidal_momentum_matrix(m, q),
    "centroidal_momentum_rate_matrix": lambda m, q, v, a: algorithms.centroidal_momentum_rate_matrix(m, q, v),
    "passive_forces": lambda m, q, v, a: algorithms.passive_forces(m, q, v),
    "step": lambda m, q, v, a: [x for part in algorithms.step(m, q, v, a, 0.01) for x in part],
    "step_rk4": lambda m, q, v, a: [
        x for part in algorithms.step(m, q, v, a, 0.01, integrator="rk4") for x in part
    ],
}


def flat(values):
    if isinstance(values, (list, tuple)):
        return [x for value in values for x in flat(value)]
    return [values]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_batches_equal_single_samples(name):
    """RBDA-1.1-API: NumPy scalars, one sample an element, on a tree of every joint type."""
    function = FUNCTIONS[name]
    model = random_tree(2, 9)
    states = [state(model, 60 + k)[:3] for k in range(3)]
    columns = [list(np.array([s[i] for s in states]).T) for i in range(3)]
    batch = np.array(
        [np.broadcast_to(np.asarray(x, dtype=float), 3) for x in flat(function(model, *columns))]
    )
    for k, single in enumerate(states):
        close(batch[:, k], np.array(flat(function(model, *single)), dtype=float), 1e-10)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_traces_equal_floats(name):
    """RBDA-10.4-SYMBOLIC: the recorded arithmetic, interpreted, gives the function's own results."""
    function = FUNCTIONS[name]
    model = random_tree(2, 9)
    single = state(model, 61)[:3]
    inputs = [ArrayArgument(n, (len(x),)) for n, x in zip("qva", single)]
    traced = trace(lambda q, v, a: flat(function(model, q, v, a)), inputs)
    results = evaluate(traced.values, {n: np.array(x) for n, x in zip("qva", single)})
    close(np.array(results, dtype=float), np.array(flat(function(model, *single)), dtype=float), 1e-10)


def two_links():
    builder = ModelBuilder(gravity=(0.0, -9.81, 0.0))
    for i in range(2):
        builder.add_body(
            f"link{i}",
            parent="link0" if i else "world",
            joint=Revolute((0.0, 0.0, 1.0)),
            placement=Transform.from_rotation_translation(np.eye(3).tolist(), [float(i), 0.0, 0.0]),
            inertia=RigidInertia(1.0 + i, (0.5, 0.0, 0.0), (0.1, 0.2, 0.2)),
        )
    return builder.build()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_symbols_equal_floats(name):
    """RBDA-10.4-SYMBOLIC: SymPy expressions of a two-link arm, evaluated."""
    function, model = FUNCTIONS[name], two_links()
    names = [sympy.symbols(f"{n}0 {n}1", real=True) for n in "qva"]
    single = [[0.3, -0.7], [0.9, 0.4], [0.2, -0.5]]
    values = {symbol: x for symbols, xs in zip(names, single) for symbol, x in zip(symbols, xs)}
    expressions = flat(function(model, *(list(symbols) for symbols in names)))
    found = [float(sympy.sympify(x).subs(values)) for x in expressions]
    close(found, np.array(flat(function(model, *single)), dtype=float), 1e-10)


def test_textbook_formula_of_a_two_link_arm():
    """TOD-TWOLINK: M of a planar arm comes out as the formula, symbolically."""
    model = two_links()
    q = sympy.symbols("q0 q1", real=True)
    M = algorithms.mass_matrix(model, list(q))
    m2, l1, c2, I2 = 2.0, 1.0, 0.5, 0.2
    expected = I2 + m2 * (c2**2 + l1 * c2 * sympy.cos(q[1]))
    assert abs(sympy.N(sympy.simplify(M[0][1] - expected).subs({q[0]: 0.3, q[1]: 0.8}))) < 1e-14
    assert abs(float(M[1][1]) - (I2 + m2 * c2**2)) < 1e-14
