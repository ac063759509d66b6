"""The public, compiled functions agree with Pinocchio, on batches that do not fill their last lanes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from tests.engines import pinocchio_models  # noqa: E402

import dalembert as da  # noqa: E402

Array = np.ndarray[Any, np.dtype[np.float64]]

RELATIVE_ERROR = 1e-10
ROWS = 11
MODELS = ("manipulator", "humanoid_random", "tree0", "tree1", "tree2")


@cache
def case(name: str) -> tuple[Any, da.interop.PinocchioBridge, Array, Array, Array]:
    model = pinocchio_models.peer_model(name)
    return (
        model,
        da.interop.from_pinocchio(model),
        *pinocchio_models.states(model, np.random.default_rng(1), ROWS),
    )


def forces_of(model: Any) -> Array:
    forces = np.random.default_rng(2).standard_normal((ROWS, model.njoints, 6)) * 10.0
    forces[:, 0] = 0.0
    return forces


def force_list(forces: Array) -> Any:
    return pin.StdVec_Force([pin.Force(force) for force in forces])


def assert_agrees(ours: Array, theirs: Array) -> None:
    assert ours.shape == theirs.shape
    inner = tuple(range(1, theirs.ndim))
    assert np.all(np.abs(ours - theirs).max(axis=inner) <= RELATIVE_ERROR * np.abs(theirs).max(axis=inner))


@pytest.mark.parametrize("name", [*MODELS, "mimics0"])
def test_inverse_dynamics(name: str) -> None:
    model, bridge, q, v, a = case(name)
    theirs = np.array([pin.rnea(model, model.createData(), *row) for row in zip(q, v, a)])
    assert_agrees(
        bridge.tau_back(da.inverse_dynamics(bridge.model, bridge.q(q), bridge.v(v), bridge.a(a))), theirs
    )
    alone = da.inverse_dynamics(bridge.model, bridge.q(q[3]), bridge.v(v[3]), bridge.a(a[3]))
    assert_agrees(bridge.tau_back(alone)[None], theirs[3:4])


@pytest.mark.parametrize("name", [*MODELS, "mimics0"])
def test_mass_matrix(name: str) -> None:
    model, bridge, q, _, _ = case(name)
    theirs = np.array([pin.crba(model, model.createData(), row) for row in q])
    theirs = np.triu(theirs) + np.swapaxes(np.triu(theirs, 1), 1, 2)
    assert_agrees(bridge.mass_matrix_back(da.mass_matrix(bridge.model, bridge.q(q))), theirs)


@pytest.mark.parametrize("name", MODELS)
def test_forward_dynamics(name: str) -> None:
    model, bridge, q, v, tau = case(name)
    theirs = np.array([pin.aba(model, model.createData(), *row) for row in zip(q, v, tau)])
    ours = da.forward_dynamics(bridge.model, bridge.q(q), bridge.v(v), bridge.tau(tau))
    assert_agrees(bridge.a_back(ours), theirs)


@pytest.mark.parametrize("name", ["manipulator", "tree1"])
def test_external_forces(name: str) -> None:
    model, bridge, q, v, a = case(name)
    forces = forces_of(model)
    rows = list(zip(q, v, a, map(force_list, forces)))
    ours = (bridge.q(q), bridge.v(v), bridge.a(a), bridge.external_forces(forces))
    inverse = np.array([pin.rnea(model, model.createData(), *row) for row in rows])
    assert_agrees(bridge.tau_back(da.inverse_dynamics(bridge.model, *ours)), inverse)
    forward = np.array([pin.aba(model, model.createData(), *row) for row in rows])
    assert_agrees(bridge.a_back(da.forward_dynamics(bridge.model, *ours)), forward)


@pytest.mark.parametrize("name", ["humanoid_random", "tree2"])
def test_kinematics_and_momentum(name: str) -> None:
    model, bridge, q, v, _ = case(name)
    frame = model.frames[model.nframes - 1].name
    poses, jacobians, momenta, centers = [], [], [], []
    for q_row, v_row in zip(q, v):
        data = model.createData()
        pin.framesForwardKinematics(model, data, q_row)
        poses.append(data.oMf[model.nframes - 1].translation)
        reference = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        jacobians.append(pin.computeFrameJacobian(model, data, q_row, model.nframes - 1, reference))
        h = pin.computeCentroidalMomentum(model, data, q_row, v_row)
        momenta.append(np.r_[h.angular, h.linear])
        centers.append(pin.centerOfMass(model, data, q_row).copy())
    q_ours, v_ours = bridge.q(q), bridge.v(v)
    assert_agrees(da.forward_kinematics(bridge.model, q_ours)[frame].translation, np.array(poses))
    assert_agrees(bridge.jacobian_back(da.jacobian(bridge.model, q_ours, frame)), np.array(jacobians))
    assert_agrees(da.dynamics.centroidal_momentum(bridge.model, q_ours, v_ours), np.array(momenta))
    assert_agrees(da.dynamics.center_of_mass(bridge.model, q_ours), np.array(centers))
