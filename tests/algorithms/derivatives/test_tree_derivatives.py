"""Analytic derivatives of trees against complex steps, dual numbers and differences, for every joint type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.algorithms.trees import JOINTS, geared_chain, random_tree, state

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms import constrained_derivatives, derivatives
from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.constrained_derivatives import jacobians_of
from dalembert.errors import ModelError
from dalembert.model import configuration

STEP = 1e-30


def complex_steps(function: Callable[..., Any], model: da.Model, *arguments: list[float]) -> list[np.ndarray]:
    """Im f(x + i h e) / h, by q along position rates: exact, and without dual numbers.

    The exponential map compares angles, which complex numbers cannot: there dual numbers serve.
    """
    if any(body.joint.kind == "spherical_exponential" for body in model.bodies):
        found = jacobians_of(function, model, arguments)
        return [np.array(matrix, dtype=float) for matrix in found]
    found = []
    for place, argument in enumerate(arguments):
        columns = []
        for e in np.eye(model.nv).tolist():
            rate = configuration.position_rate(model, argument, e) if place == 0 else e
            moved = [complex(x, STEP * float(r)) for x, r in zip(argument, rate)]
            values = [*arguments[:place], moved, *arguments[place + 1 :]]
            columns.append([complex(y).imag / STEP for y in function(*values)])
        found.append(np.array(columns).T)
    return found


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        ours = np.array(ours, dtype=float)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=tolerance * max(1.0, np.abs(theirs).max()))


def one_kind(kind: str) -> da.Model:
    """Joints of one kind in a branched tree; fixed ones between revolute ones."""
    return random_tree(7, 4, ("fixed", "revolute")) if kind == "fixed" else random_tree(7, 3, (kind,))


@pytest.mark.parametrize("kind", JOINTS)
@pytest.mark.parametrize("frame", ["none", "body", "world", "center"])
def test_inverse_dynamics_of_every_joint_by_complex_steps(kind: str, frame: str) -> None:
    """RBDA-4.4-TABLE41, RBDA-5.3-EXT: forces are constant in the coordinates in which they are given."""
    model = one_kind(kind)
    q, v, a, forces = state(model, 2)
    options = {} if frame == "none" else {"external_forces": forces, "external_frame": frame}
    expected = complex_steps(lambda *x: al.inverse_dynamics(model, *x, **options), model, q, v, a)
    for tree in (model, aligned(model)):
        found = derivatives.inverse_dynamics_derivatives(tree, q, v, a, **options)
        assert_close(found, expected, 1e-10)


@pytest.mark.parametrize("kind", JOINTS)
def test_forward_dynamics_of_every_joint_by_complex_steps(kind: str) -> None:
    """RBDA-4.4-TABLE41: da/dq, da/dv, da/dtau of moving joints under external forces."""
    model = one_kind(kind)
    q, v, tau, forces = state(model, 3)
    options = {"external_forces": forces, "external_frame": "world"}
    expected = complex_steps(lambda *x: al.forward_dynamics(model, *x, **options), model, q, v, tau)
    assert_close(derivatives.forward_dynamics_derivatives(model, q, v, tau, **options), expected, 1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_trees_of_mixed_joints(seed: int) -> None:
    model = random_tree(seed, 8)
    q, v, x, forces = state(model, seed)
    inverse = derivatives.inverse_dynamics_derivatives(aligned(model), q, v, x, external_forces=forces)
    dual = constrained_derivatives.directional_inverse_dynamics_derivatives(
        model, q, v, x, external_forces=forces
    )
    assert_close(inverse, [np.array(m, dtype=float) for m in dual], 1e-11)
    forward = derivatives.forward_dynamics_derivatives(aligned(model), q, v, x, external_forces=forces)
    dual = constrained_derivatives.directional_forward_dynamics_derivatives(
        model, q, v, x, external_forces=forces
    )
    assert_close(forward, [np.array(m, dtype=float) for m in dual], 1e-10)


def test_coupled_joints_by_complex_steps() -> None:
    """RBDA-9.6-GEARS: dependent joints enter as G^T (.) G, for G is constant."""
    model = geared_chain(4, 5)
    q, v, x, _ = state(model, 5)
    for function, analytic in (
        (al.inverse_dynamics, derivatives.inverse_dynamics_derivatives),
        (al.forward_dynamics, derivatives.forward_dynamics_derivatives),
    ):
        expected = complex_steps(lambda *y: function(model, *y), model, q, v, x)  # noqa: B023
        assert_close(analytic(model, q, v, x), expected, 1e-10)


def test_joints_that_depend_on_time() -> None:
    """RBDA-3.5-JOINT: sigma and its rate turn with the joint."""
    swing = lambda t: [0.2 * da.scalar.sin(2.0 * t)]
    builder = da.ModelBuilder(gravity=(0.4, 0.2, -9.6))
    inertia = da.RigidInertia(1.3, (0.1, -0.2, 0.3), (0.3, 0.4, 0.5))
    driven = da.joints.TimeDependent(
        da.joints.Universal((1, 0, 0), (0.2, 1, 0)), driver=da.Prismatic((1, 0, 0)), motion=swing
    )
    builder.add_body("a", "world", da.Revolute((0, 1, 0)), inertia=inertia)
    builder.add_body("b", "a", driven, inertia=inertia)
    builder.add_body("c", "b", da.Spherical(), inertia=inertia)
    model = builder.build()
    q, v, a, _ = state(model, 1)
    expected = complex_steps(lambda *x: al.inverse_dynamics(model, *x, time=0.7), model, q, v, a)
    assert_close(derivatives.inverse_dynamics_derivatives(model, q, v, a, time=0.7), expected, 1e-10)
    compiled = da.inverse_dynamics_derivatives(model, q, v, a, time=0.7)
    assert_close(compiled, expected, 1e-10)


def test_user_defined_joints() -> None:
    """RBDA-4.4-USERJOINT: a slider on a curve, whose S and c_J are derivatives themselves."""

    def curve(q: Any) -> da.Transform:
        x = q[0]
        turned = da.spatial.rotations.rotation_about_axis(1, x)
        return da.Transform(turned, da.spatial.Vec3(x, 0.0, x * x))

    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.3, (0.1, -0.2, 0.3), (0.3, 0.4, 0.5))
    builder.add_body("a", "world", da.Revolute((0, 0.3, 1)), inertia=inertia)
    builder.add_body("b", "a", da.joints.UserDefined("curve", 1, 1, curve), inertia=inertia)
    builder.add_body("c", "b", da.Revolute((1, 0, 0)), inertia=inertia)
    model = builder.build()
    q, v, a, _ = state(model, 1)
    expected = complex_steps(lambda *x: al.inverse_dynamics(model, *x), model, q, v, a)
    assert_close(derivatives.inverse_dynamics_derivatives(model, q, v, a), expected, 1e-10)


def test_differences_along_integrate() -> None:
    """RBDA-10.4-SYMBOLIC: compiled, batched, against central differences on the manifold, to 1e-6."""
    model = random_tree(21, 5, ("free", "spherical", "planar", "universal", "spherical_exponential"))
    rng = np.random.default_rng(3)
    states = [model.random_state(rng) for _ in range(5)]
    q, v = (np.array(x) for x in zip(*states))
    x, forces = rng.normal(size=v.shape), rng.normal(size=(5, len(model.bodies), 6))
    h = 1e-5
    for function, analytic in (
        (da.inverse_dynamics, da.inverse_dynamics_derivatives),
        (da.forward_dynamics, da.forward_dynamics_derivatives),
    ):
        found = analytic(model, q, v, x, forces)
        out = tuple(np.full_like(matrix, np.nan) for matrix in found)
        again = analytic(model, q, v, x, forces, out=out)
        for matrix, given, same in zip(found, out, again):
            assert given is same
            np.testing.assert_array_equal(matrix, given)
        for k, e in enumerate(np.eye(model.nv)):
            ends = [
                (
                    function(model, da.integrate(model, q, s * h * e), v, x, forces),
                    function(model, q, v + s * h * e, x, forces),
                    function(model, q, v, x + s * h * e, forces),
                )
                for s in (1.0, -1.0)
            ]
            for matrix, plus, minus in zip(found, *ends):
                slope = (plus - minus) / (2.0 * h)
                np.testing.assert_allclose(
                    matrix[..., k], slope, rtol=0.0, atol=1e-6 * max(1.0, np.abs(matrix).max())
                )


def test_entries_of_unrelated_joints_are_zero_by_structure() -> None:
    """dtau_i/dx_j is zero unless one of the joints carries the other, and M is symmetric."""
    model = da.models.quadruped()
    q, v, a, _ = state(model, 0)
    by_q, by_v, M = da.inverse_dynamics_derivatives(model, q, v, a)
    related = np.eye(model.nv, dtype=bool)
    for body in model.bodies:
        index = body.index
        while index >= 0:
            related[body.v_slice, model.bodies[index].v_slice] = True
            index = model.parents[index]
    related |= related.T
    assert related.sum() < related.size
    for matrix in (by_q, by_v, M):
        assert np.all(matrix[~related] == 0.0)
    np.testing.assert_allclose(M, M.T, atol=1e-12)


def test_constraints_and_empty_models_are_told_apart() -> None:
    loop = da.models.four_bar()
    q, v, a = [0.0] * 3, [0.0] * 3, [0.0] * 3
    with pytest.raises(ModelError, match="loops"):
        da.inverse_dynamics_derivatives(loop, q, v, a, method="spatial")
    builder = da.ModelBuilder()
    builder.add_body("stone", "world", da.Fixed(), inertia=da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1)))
    shapes = [m.shape for m in da.forward_dynamics_derivatives(builder.build(), np.zeros((4, 0)), [], [])]
    assert shapes == [(4, 0, 0)] * 3


def test_compiled_with_parameters_in_both_float_types() -> None:
    """RBDA-10.4-SYMBOLIC: masses and placements at run time, single precision, and rows off unit norm."""
    model = random_tree(5, 3, ("spherical", "revolute"), branching=0.0, root="spherical")
    q, v, a, _ = (np.array(x) for x in state(model, 5))
    compiled = da.compile(da.inverse_dynamics_derivatives, model, parameters=("b1.mass", "b2.placement"))
    heavy = model.with_values({"b1.mass": 4.0})
    for found, expected in zip(
        compiled(q, v, a, parameters={"b1.mass": 4.0}), da.inverse_dynamics_derivatives(heavy, q, v, a)
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    exact = da.forward_dynamics_derivatives(model, q, v, a)
    single = da.forward_dynamics_derivatives(model, *(x.astype(np.float32) for x in (q, v, a)))
    for found, expected in zip(single, exact):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=2e-4 * max(1.0, np.abs(expected).max()))
    rows = np.array([q, 1.1 * q, q])
    flagged = da.inverse_dynamics_derivatives(model, rows, v, a, check="flag")
    for matrix in flagged:
        assert np.isnan(matrix[1]).all()
        assert np.isfinite(matrix[[0, 2]]).all()
