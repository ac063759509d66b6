"""Derivatives under loops, constraints and prescribed motions, against dual numbers and differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.algorithms.trees import random_tree, state
from tests.conformance import models
from tests.looped_models import moving

import dalembert as da
from dalembert.algorithms import constrained_derivatives, derivatives
from dalembert.algorithms.constrained_derivatives import jacobians_of
from dalembert.algorithms.hybrid import hybrid_dynamics
from dalembert.model.tree import Tree


def floats(values: Any) -> list[float]:
    return [float(x) for x in values]


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        theirs = np.array(theirs, dtype=float)
        bound = tolerance * max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(np.array(ours, dtype=float), theirs, rtol=0.0, atol=bound)


def rolling_tree() -> da.Model:
    """A branched tree with a users' constraint of position and one of velocity."""
    model = random_tree(3, 4, ("revolute", "spherical", "universal"))
    builder = da.ModelBuilder(gravity=(0.7, -0.4, -9.5))
    for body in model.bodies:
        parent = "world" if body.parent < 0 else model.bodies[body.parent].name
        builder.add_body(
            body.name,
            parent,
            body.joint,
            placement=body.placement,
            inertia=body.inertia,
            armature=body.armature,
        )
    builder.add_constraint(lambda model, q: [q[0] * q[0] + q[1] - 0.4])
    builder.add_constraint(lambda model, q, v: [v[0] * q[2] + v[2]], kind="velocity")
    return builder.build()


@pytest.mark.parametrize(
    "make", [da.models.four_bar, da.models.slider_crank, da.models.five_bar, rolling_tree]
)
@pytest.mark.parametrize("T_stab", [None, 0.1])
def test_implicit_differentiation_is_that_of_dual_numbers(make: Any, T_stab: float | None) -> None:
    """RBDA-8.5-M2: one factorisation of the constrained equations gives da by q, v and tau."""
    model = make()
    q, v = moving(model, 4) if make is not rolling_tree else model.random_state(4)
    tau = np.random.default_rng(1).normal(size=model.nv)
    forces = np.random.default_rng(2).normal(size=(len(model.bodies), 6)).tolist()
    options: dict[str, Any] = {"external_forces": forces, "stabilization": T_stab}
    given = (model, floats(q), floats(v), floats(tau))
    found = constrained_derivatives.constrained_forward_dynamics_derivatives(*given, **options)
    assert_close(
        found, constrained_derivatives.directional_forward_dynamics_derivatives(*given, **options), 1e-10
    )


def test_explicit_constraints() -> None:
    """RBDA-8.11-GAMMA: q = gamma(y) is differentiated as it is computed."""
    model = models.crank()
    q, v = moving(model, 4)
    tau = np.random.default_rng(1).normal(size=model.nv)
    found = da.forward_dynamics_derivatives(model, q, v, tau)
    h = 1e-6
    for k, e in enumerate(np.eye(model.nv)):
        ends = [da.forward_dynamics(model, q, v + s * h * e, tau) for s in (1.0, -1.0)]
        np.testing.assert_allclose(found[1][:, k], (ends[0] - ends[1]) / (2 * h), atol=1e-5)
        ends = [da.forward_dynamics(model, q, v, tau + s * h * e) for s in (1.0, -1.0)]
        np.testing.assert_allclose(found[2][:, k], (ends[0] - ends[1]) / (2 * h), atol=1e-5)


def test_compiled_derivatives_of_a_linkage() -> None:
    """RBDA-8.5-M2: a batch, with stabilisation, against central differences."""
    model = da.models.four_bar()
    q, v = (np.array([x] * 3) for x in moving(model, 5))
    tau = np.random.default_rng(2).normal(size=v.shape)
    found = da.forward_dynamics_derivatives(model, q, v, tau, stabilization=0.1)
    h = 1e-6
    for k, e in enumerate(np.eye(model.nv)):
        ends = [da.forward_dynamics(model, q + s * h * e, v, tau, stabilization=0.1) for s in (1.0, -1.0)]
        slope = (ends[0] - ends[1]) / (2 * h)
        np.testing.assert_allclose(found[0][..., k], slope, rtol=0.0, atol=1e-6 * np.abs(found[0]).max())


def prescribed_of(model: Tree) -> list[str]:
    return [body.joint_name for body in model.bodies if body.nv and body.dependence is None][::2]


@pytest.mark.parametrize("seed", range(3))
def test_hybrid_dynamics(seed: int) -> None:
    """RBDA-9.1-HYBRID: eight derivatives of (a, tau), against dual numbers through Table 9.3."""
    model = random_tree(seed, 5)
    q, v, a, forces = state(model, seed)
    tau = np.random.default_rng(seed).normal(size=model.nv).tolist()
    options: dict[str, Any] = {"prescribed": prescribed_of(model), "external_forces": forces}
    found = constrained_derivatives.hybrid_dynamics_derivatives(model, q, v, tau, a, **options)

    def both(*x: Any) -> list[Any]:
        return [y for part in hybrid_dynamics(model, *x, **options) for y in part]

    expected = jacobians_of(both, model, (q, v, tau, a))
    n = model.nv
    assert_close(found, [m[:n] for m in expected] + [m[n:] for m in expected], 1e-10)


def test_hybrid_dynamics_between_forward_and_inverse() -> None:
    """RBDA-9.1-HYBRID: none prescribed is forward dynamics, all is inverse dynamics."""
    model = models.geared()
    q, v, x, _ = state(model, 3)
    every = [b.joint_name for b in model.bodies if b.nv and b.dependence is None]
    none = constrained_derivatives.hybrid_dynamics_derivatives(model, q, v, x, x, prescribed=[])
    assert_close(none[:3], derivatives.forward_dynamics_derivatives(model, q, v, x), 1e-10)
    whole = constrained_derivatives.hybrid_dynamics_derivatives(model, q, v, x, x, prescribed=every)
    inverse = derivatives.inverse_dynamics_derivatives(model, q, v, x)
    assert_close((whole.tau_by_q, whole.tau_by_v, whole.tau_by_a), inverse, 1e-10)
    linkage = da.models.four_bar()
    q, v = moving(linkage, 2)
    tau, h = np.array([0.3, -0.2, 0.1]), 1e-6
    first = [linkage.joints[0].name]
    found = da.dynamics.hybrid_dynamics_derivatives(linkage, q, v, tau, [1.0, 0.0, 0.0], prescribed=first)
    ends = [
        da.dynamics.hybrid_dynamics(
            linkage, q, v + [0.0, s * h, 0.0], tau, [1.0, 0.0, 0.0], prescribed=first, check="off"
        )
        for s in (1.0, -1.0)
    ]
    np.testing.assert_allclose(found.a_by_v[:, 1], (ends[0][0] - ends[1][0]) / (2 * h), atol=1e-5)
    np.testing.assert_allclose(found.tau_by_v[:, 1], (ends[0][1] - ends[1][1]) / (2 * h), atol=1e-5)
