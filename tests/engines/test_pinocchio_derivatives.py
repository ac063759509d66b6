"""Derivatives of the dynamics agree with Pinocchio's, on its sample models and on random trees.

Both sides differentiate along right perturbations of the configuration, so that only the order of
coordinates differs: D_pin = P^T D P.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from tests.engines import pinocchio_models  # noqa: E402

import dalembert as da  # noqa: E402
from dalembert.algorithms import derivatives  # noqa: E402
from dalembert.algorithms.aligned import aligned  # noqa: E402

Array = np.ndarray[Any, np.dtype[np.float64]]

RELATIVE_ERROR = 1e-9
ROWS = 5
MODELS = ("manipulator", "humanoid", "humanoid_random", "constant subspaces")

CONSTANT = (
    "FreeFlyer", "RX", "PY", "Spherical", "HelicalUnaligned", "Planar", "RevoluteUnaligned", "Translation",
)  # fmt: skip
"""Where S moves with q (universal, Euler angles, ellipsoid, composite) Pinocchio leaves dS/dq out."""


@cache
def case(name: str) -> tuple[Any, da.interop.PinocchioBridge, Array, Array, Array]:
    if name == "constant subspaces":
        rng = np.random.default_rng(8)
        joints = [pinocchio_models.JOINTS[f"JointModel{kind}"](rng) for kind in CONSTANT]
        model = pinocchio_models.tree(rng, joints)
    else:
        model = pinocchio_models.peer_model(name)
    states = pinocchio_models.states(model, np.random.default_rng(4), ROWS)
    return model, da.interop.from_pinocchio(model), *states


def forces_of(model: Any, bridge: Any) -> tuple[list[Any], Array]:
    """Forces on every body in its own coordinates: theirs, one vector a sample, and ours."""
    forces = np.random.default_rng(5).standard_normal((ROWS, model.njoints, 6)) * 10.0
    forces[:, 0] = 0.0
    return [pin.StdVec_Force([pin.Force(f) for f in row]) for row in forces], bridge.external_forces(forces)


def by_pinocchio(
    function: Any, model: Any, q: Array, v: Array, x: Array, forces: list[Any]
) -> list[tuple[Array, ...]]:
    """The derivatives by q, by v and by x of every sample; of the last one Pinocchio fills the upper half."""
    data, found = model.createData(), []
    for k in range(ROWS):
        by_q, by_v, by_x = function(model, data, q[k], v[k], x[k], forces[k])
        upper = np.triu(by_x)
        found.append((by_q.copy(), by_v.copy(), upper + np.triu(upper, 1).T))
    return found


def on_arrays(algorithm: Any, model: da.Model, q: Array, v: Array, x: Array, f: Array) -> list[Array]:
    """An algorithm on NumPy scalars, one sample an element: no compilation."""
    forces = [list(body.T) for body in np.moveaxis(f, 1, 0)]
    found = algorithm(aligned(model), list(q.T), list(v.T), list(x.T), external_forces=forces)
    spread = [[[np.broadcast_to(x, ROWS) for x in row] for row in matrix] for matrix in found]
    return [np.moveaxis(np.array(matrix), 2, 0) for matrix in spread]


def assert_agrees(bridge: Any, ours: Sequence[Array], theirs: list[tuple[Array, ...]]) -> None:
    for matrices, expected in zip(ours, zip(*theirs), strict=True):
        for mine, matrix in zip(bridge.mass_matrix_back(matrices), expected, strict=True):
            assert np.abs(mine - matrix).max() <= RELATIVE_ERROR * max(1.0, np.abs(matrix).max())


@pytest.mark.parametrize("name", MODELS)
def test_inverse_dynamics_derivatives(name: str) -> None:
    """RBDA-5.3-RNEA, RBDA-5.3-EXT: computeRNEADerivatives with forces on every body."""
    model, bridge, q, v, a = case(name)
    f_pin, f = forces_of(model, bridge)
    theirs = by_pinocchio(pin.computeRNEADerivatives, model, q, v, a, f_pin)
    given = (bridge.model, bridge.q(q), bridge.v(v), bridge.a(a), f)
    assert_agrees(bridge, on_arrays(derivatives.inverse_dynamics_derivatives, *given), theirs)
    if name == "manipulator":
        assert_agrees(bridge, da.inverse_dynamics_derivatives(*given), theirs)


@pytest.mark.parametrize("name", MODELS)
def test_forward_dynamics_derivatives(name: str) -> None:
    """RBDA-7.3-ABA: computeABADerivatives with forces on every body."""
    model, bridge, q, v, tau = case(name)
    f_pin, f = forces_of(model, bridge)
    theirs = by_pinocchio(pin.computeABADerivatives, model, q, v, tau, f_pin)
    given = (bridge.model, bridge.q(q), bridge.v(v), bridge.tau(tau), f)
    assert_agrees(bridge, on_arrays(derivatives.forward_dynamics_derivatives, *given), theirs)
    if name == "manipulator":
        assert_agrees(bridge, da.forward_dynamics_derivatives(*given), theirs)
