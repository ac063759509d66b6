"""One source, every kind of scalar: floats, NumPy batches, SymPy symbols, dual numbers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.model.joints.catalogue import CATALOGUE, TIME, close, state
from tests.tracing.interpreter import evaluate

from dalembert.model.joints import (
    Cylindrical,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    RackPinion,
    Revolute,
    Spherical,
    SphericalEuler,
    SphericalExponential,
    Universal,
)
from dalembert.spatial import leaves
from dalembert.tracing import ArrayArgument, trace

ROWS = 5


@pytest.fixture(params=CATALOGUE, name="joint")
def every_joint(request) -> Joint:
    return CATALOGUE[request.param]


def everything(joint: Joint, q, v, q2, time) -> list:
    """All scalars that the methods of a joint return."""
    X = joint.transform(q, time).as_transform()
    results = [
        X,
        joint.subspace(q, time),
        joint.velocity(q, v, time),
        joint.bias(q, v, time),
        joint.position_rate(q, v),
        joint.integrate(q, v),
        joint.difference(q, q2),
        joint.normalize(q),
        joint.constraint_subspace(q, time),
        joint.active_subspace(q, time),
        joint.singularity_measure(q, time),
    ]
    if not joint.kind.startswith(("user", "composite")) and "composite" not in str(joint.structure()):
        results += [joint.closure_error(X, time), joint.position_of(X, time)]
    return leaves(results)


def test_a_batch_is_its_rows(joint: Joint) -> None:
    """RBDA-4.4-TABLE41: NumPy arrays give, row by row, what floats give; also a zero angle."""
    states = [(*state(joint, seed), state(joint, seed + 30)[0]) for seed in range(ROWS)]
    states[0] = (joint.neutral(), [0.0] * joint.nv, joint.neutral())
    if joint.nv and joint.singularity_measure(states[0][0], TIME) < 0.1:
        states[0] = states[1]
    batch = [[np.array(column) for column in zip(*part)] for part in zip(*states)]
    rows = everything(joint, *batch, np.full(ROWS, TIME))
    for index, (q, v, q2) in enumerate(states):
        single = everything(joint, q, v, q2, TIME)
        assert len(single) == len(rows)
        actual = [np.broadcast_to(np.asarray(item, dtype=float), (ROWS,))[index] for item in rows]
        close(actual, single, 1e-13)


def test_a_trace_computes_what_floats_do(joint: Joint) -> None:
    """RBDA-4.4-TABLE41: no value decides outside `select`: one trace serves every state."""
    inputs = [
        ArrayArgument("q", (joint.nq,)),
        ArrayArgument("v", (joint.nv,)),
        ArrayArgument("q2", (joint.nq,)),
        ArrayArgument("t"),
    ]
    traced = trace(lambda q, v, q2, t: everything(joint, q, v, q2, t), inputs)
    for seed in range(3):
        (q, v), q2 = state(joint, seed), state(joint, seed + 30)[0]
        result = evaluate(traced.outputs[0].values, {"q": q, "v": v, "q2": q2, "t": [TIME]})
        close(result, everything(joint, q, v, q2, TIME), 1e-12)


def test_traced_parameters_compute_what_numbers_do(joint: Joint) -> None:
    """RBDA-4.4-JCALC: every number of a joint may be an input of the trace."""
    flat = joint.parameters()
    inputs = [
        ArrayArgument("q", (joint.nq,)),
        ArrayArgument("v", (joint.nv,)),
        ArrayArgument("p", (len(flat),)),
        ArrayArgument("t"),
    ]
    traced = trace(lambda q, v, p, t: everything(joint.with_parameters(p), q, v, q, t), inputs)
    q, v = state(joint, 5)
    result = evaluate(traced.outputs[0].values, {"q": q, "v": v, "p": flat, "t": [TIME]})
    # An axis that is traced is a general one, as is one of NumPy's numbers: the same bases of T.
    general = joint.with_parameters([np.float64(x) for x in flat])
    close(result, everything(general, q, v, q, TIME), 1e-12)


SMALL = {
    "revolute": Revolute((0, 0, 1)),
    "revolute skew": Revolute((0.48, -0.6, 0.64)),
    "prismatic": Prismatic((0, 1, 0)),
    "helical": Helical((1, 0, 0), 0.3),
    "cylindrical": Cylindrical((0, 0, -1)),
    "planar": Planar(),
    "spherical": Spherical(),
    "euler": SphericalEuler("zyx"),
    "exponential": SphericalExponential(),
    "universal": Universal(),
    "free": Free(),
    "rack": RackPinion(0.4),
    "user": CATALOGUE["user helix"],
}


@pytest.mark.parametrize("name", SMALL)
def test_symbols_differentiate_to_the_same_motion(name: str) -> None:
    """RBDA-4.4-TABLE41: SymPy's own derivatives of X_J(q(t)) are v_J and c_J, compared at one state."""
    sympy = pytest.importorskip("sympy")
    joint = SMALL[name]
    q, v = state(joint, 3)
    symbols_q = sympy.symbols(f"q0:{joint.nq}", real=True)
    symbols_v = sympy.symbols(f"v0:{joint.nv}", real=True)
    values = dict(zip((*symbols_q, *symbols_v), (*q, *v)))

    def number(expression) -> float:
        return float(sympy.sympify(expression).subs(values))

    rates = joint.position_rate(symbols_q, symbols_v)
    X = joint.transform(symbols_q).as_transform()

    def rate(expression):
        return sum(sympy.diff(expression, x) * dx for x, dx in zip(symbols_q, rates))

    R = np.array([[number(entry) for entry in row] for row in X.R.to_list()])
    dR = np.array([[number(rate(entry)) for entry in row] for row in X.R.to_list()])
    W = R.T @ dR
    dp = np.array([number(rate(entry)) for entry in X.p])
    v_J = joint.velocity(symbols_q, symbols_v)
    close([number(x) for x in v_J.to_list()], [W[2, 1], W[0, 2], W[1, 0], *(R.T @ dp)], 1e-11)
    close(
        [number(rate(x)) for x in v_J.to_list()],
        [number(x) for x in joint.bias(symbols_q, symbols_v).to_list()],
        1e-11,
    )


def test_structural_zeros_are_literals() -> None:
    """RBDA-4.4-TABLE41: S, T and c_J of the table's joints are literal zeros and ones: structure folds."""
    sympy = pytest.importorskip("sympy")
    for joint in (Revolute((0, 0, -1)), Prismatic((1, 0, 0)), Cylindrical(), Planar(), Spherical(), Free()):
        q, v = sympy.symbols(f"q0:{joint.nq}"), sympy.symbols(f"v0:{joint.nv}")
        constants = [
            joint.subspace(q),
            joint.bias(q, v),
            joint.constraint_subspace(q),
            joint.active_subspace(q),
        ]
        assert all(type(leaf) is float and leaf in (0.0, 1.0, -1.0) for leaf in leaves(constants))


def test_symbolic_parameters() -> None:
    """Axes and lengths may be symbols: nothing is checked or normalised, and S holds them as they are."""
    sympy = pytest.importorskip("sympy")
    a = sympy.symbols("a0:3")
    joint = Revolute((0, 0, 1)).with_parameters(a)
    assert tuple(joint.subspace([0.3])[0].angular) == a
    assert Revolute(a).axis.to_list() == list(a)
    values = dict(zip(a, (0.48, -0.6, 0.64)))
    q = sympy.Symbol("q")
    numeric = np.array(
        [
            [float(sympy.sympify(x).subs({**values, q: 0.7})) for x in row]
            for row in joint.transform([q]).R.to_list()
        ]
    )
    close(numeric, Revolute((0.48, -0.6, 0.64)).transform([0.7]).R.to_list())
