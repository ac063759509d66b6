"""Agreement with Pinocchio 4.1 to 1e-10 on moving states, over every joint class it has.

The algorithms run here as pure functions on NumPy scalars, one state an element; `test_pinocchio_compiled`
calls the public, compiled functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from tests.engines import pinocchio_models  # noqa: E402
from tests.engines.pinocchio_models import (  # noqa: E402
    ALL_MODELS,
    MIMICS,
    OPEN_MODELS,
    RANDOM_TREES,
    SINGLE_JOINTS,
    peer_model,
)

from dalembert import algorithms  # noqa: E402
from dalembert.interop import PinocchioBridge, from_pinocchio  # noqa: E402
from dalembert.model.configuration import integrate  # noqa: E402

Array = np.ndarray[Any, np.dtype[np.float64]]

RELATIVE_ERROR = 1e-10
STATES = 3


@dataclass(frozen=True)
class Case:
    """One model in both engines, and the same moving states in both conventions."""

    theirs: Any
    bridge: PinocchioBridge
    q_pin: Array
    v_pin: Array
    a_pin: Array

    @property
    def q(self) -> list[Array]:
        return scalars(self.bridge.q(self.q_pin))

    @property
    def v(self) -> list[Array]:
        return scalars(self.bridge.v(self.v_pin))

    @property
    def a(self) -> list[Array]:
        return scalars(self.bridge.a(self.a_pin))

    def each(self, function: Any) -> Array:
        """function(model, data, q, v, a) of Pinocchio for every state.

        Each state gets data of its own: with mimic joints Pinocchio's crba adds to what an earlier call left
        there.
        """
        rows = zip(self.q_pin, self.v_pin, self.a_pin)
        return np.array([np.array(function(self.theirs, self.theirs.createData(), *row)) for row in rows])


@cache
def case(name: str) -> Case:
    model = peer_model(name)
    q, v, a = pinocchio_models.states(model, np.random.default_rng(7 + ALL_MODELS.index(name)), STATES)
    return Case(model, from_pinocchio(model), q, v, a)


def scalars(array: Array) -> list[Array]:
    """The last axis as a sequence of scalars, each an array with one element a state."""
    return [array[..., i] for i in range(array.shape[-1])]


def dense(values: Sequence[Any]) -> Array:
    """Nested sequences of scalars, some of them plain numbers, as an array with the states first."""
    if isinstance(values, (list, tuple)):
        return np.stack([dense(value) for value in values], axis=1)
    return np.broadcast_to(np.asarray(values, dtype=float), (STATES,))


def assert_agrees(ours: Array, theirs: Array) -> None:
    """Equal to 1e-10 of the largest number of each state."""
    assert ours.shape == theirs.shape
    inner = tuple(range(1, theirs.ndim))
    error = np.abs(ours - theirs).max(axis=inner)
    scale = np.abs(theirs).max(axis=inner)
    assert np.all(error <= RELATIVE_ERROR * scale), f"error {error.max():.2g} at size {scale.max():.2g}"


def symmetric(M: Array) -> Array:
    """Pinocchio may leave the lower triangle untouched."""
    upper = np.triu(M)
    return upper + np.swapaxes(np.triu(M, 1), -1, -2)


def columns(J: Array) -> Array:
    """Matrices (6, nv): Pinocchio's Python returns those of one column as vectors."""
    return J.reshape(STATES, 6, -1)


def random_forces(theirs: Any) -> Array:
    """One force on every joint's body but the universe, as Pinocchio orders its numbers."""
    forces = np.random.default_rng(3).standard_normal((STATES, theirs.njoints, 6)) * 10.0
    forces[:, 0] = 0.0
    return forces


def force_lists(forces: Array) -> list[Any]:
    return [pin.StdVec_Force([pin.Force(vector) for vector in state]) for state in forces]


def test_every_joint_class_of_pinocchio_is_covered() -> None:
    classes = {name for name in dir(pin) if name.startswith("JointModel")} - {"JointModel", "JointModelMimic"}
    assert classes == set(SINGLE_JOINTS)
    in_trees = {joint.shortname() for name in RANDOM_TREES for joint in peer_model(name).joints}
    assert classes <= in_trees


@pytest.mark.parametrize("name", ALL_MODELS)
def test_poses(name: str) -> None:
    """RBDA-4.4-JCALC"""
    one = case(name)

    def placements(model: Any, data: Any, q: Array, v: Array, a: Array) -> list[Any]:
        pin.forwardKinematics(model, data, q)
        return [M.homogeneous for M in data.oMi[1:]]

    poses = algorithms.forward_kinematics(one.bridge.model, one.q)
    assert_agrees(dense([pose.homogeneous() for pose in poses]), one.each(placements))


@pytest.mark.parametrize("name", ALL_MODELS)
def test_velocities_and_accelerations_of_bodies(name: str) -> None:
    """RBDA-2.11-ACCEL"""
    one = case(name)

    def motions(model: Any, data: Any, q: Array, v: Array, a: Array) -> list[Any]:
        pin.forwardKinematics(model, data, q, v, a)
        return [
            [[*v_i.angular, *v_i.linear], [*a_i.angular, *a_i.linear]]
            for v_i, a_i in zip(list(data.v)[1:], list(data.a)[1:])
        ]

    ours = algorithms.body_motions(one.bridge.model, one.q, one.v, one.a)
    listed = [
        [[*m.velocity.angular, *m.velocity.linear], [*m.acceleration.angular, *m.acceleration.linear]]
        for m in ours
    ]
    assert_agrees(dense(listed), one.each(motions))


@pytest.mark.parametrize("name", ALL_MODELS)
def test_inverse_dynamics(name: str) -> None:
    """RBDA-5.3-RNEA"""
    one = case(name)
    tau = algorithms.inverse_dynamics(one.bridge.model, one.q, one.v, one.a)
    assert_agrees(one.bridge.tau_back(dense(tau)), one.each(pin.rnea))


@pytest.mark.parametrize("name", ALL_MODELS)
def test_bias_and_gravity_forces(name: str) -> None:
    """RBDA-6.1-CBIAS, RBDA-5.3-GRAVCOMP"""
    one = case(name)
    bias = algorithms.bias_forces(one.bridge.model, one.q, one.v)
    gravity = algorithms.gravity_forces(one.bridge.model, one.q)
    assert_agrees(
        one.bridge.tau_back(dense(bias)), one.each(lambda m, d, q, v, a: pin.nonLinearEffects(m, d, q, v))
    )
    held = one.each(lambda m, d, q, v, a: pin.computeGeneralizedGravity(m, d, q))
    assert_agrees(one.bridge.tau_back(dense(gravity)), held)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_inverse_dynamics_with_external_forces(name: str) -> None:
    one = case(name)
    forces = random_forces(one.theirs)
    ours = one.bridge.external_forces(forces)
    given = [scalars(ours[:, i]) for i in range(ours.shape[1])]
    tau = algorithms.inverse_dynamics(one.bridge.model, one.q, one.v, one.a, external_forces=given)
    lists = iter(force_lists(forces))
    theirs = one.each(lambda m, d, q, v, a: pin.rnea(m, d, q, v, a, next(lists)))
    assert_agrees(one.bridge.tau_back(dense(tau)), theirs)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_mass_matrix(name: str) -> None:
    """RBDA-6.2-CRBA"""
    one = case(name)
    M = dense(algorithms.mass_matrix(one.bridge.model, one.q))
    assert_agrees(
        one.bridge.mass_matrix_back(M), symmetric(one.each(lambda m, d, q, v, a: pin.crba(m, d, q)))
    )


@pytest.mark.parametrize("name", OPEN_MODELS)
def test_forward_dynamics_with_external_forces(name: str) -> None:
    """RBDA-7.3-ABA"""
    one = case(name)
    forces = random_forces(one.theirs)
    ours = one.bridge.external_forces(forces)
    given = [scalars(ours[:, i]) for i in range(ours.shape[1])]
    tau_pin = np.random.default_rng(5).standard_normal(one.v_pin.shape)
    tau = scalars(one.bridge.tau(tau_pin))
    for external, lists in ((None, None), (given, force_lists(forces))):
        a = algorithms.forward_dynamics(one.bridge.model, one.q, one.v, tau, external_forces=external)
        rows = []
        for i, state in enumerate(zip(one.q_pin, one.v_pin, tau_pin)):
            extra = () if lists is None else (lists[i],)
            rows.append(pin.aba(one.theirs, one.theirs.createData(), *state, *extra))
        assert_agrees(one.bridge.a_back(dense(a)), np.array(rows))


@pytest.mark.parametrize("name", MIMICS)
def test_forward_dynamics_of_mimic_joints_inverts_inverse_dynamics(name: str) -> None:
    """Pinocchio has no forward dynamics for them; its inverse dynamics is the oracle of ours."""
    one = case(name)
    tau = scalars(one.bridge.tau(one.each(pin.rnea)))
    a = algorithms.forward_dynamics(one.bridge.model, one.q, one.v, tau)
    error = np.abs(one.bridge.a_back(dense(a)) - one.a_pin).max()
    assert error <= 1e-9 * np.abs(one.a_pin).max()


REFERENCE_FRAMES = {
    "body": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
    "world_aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


def frames_to_try(model: Any) -> list[Any]:
    """A few frames that are spread over the tree."""
    frames = list(model.frames)[1:]
    return frames[:: max(1, len(frames) // 4)]


VARYING = ("JointModelUniversal", "JointModelEllipsoid", "JointModelSphericalZYX", "JointModelComposite")


def constant_columns(model: Any) -> list[int]:
    """The velocity variables of joints with a constant S: for the others Pinocchio's rate leaves out that of
    S.
    """
    joints = [joint for joint in list(model.joints)[1:] if joint.shortname() not in VARYING]
    return [joint.idx_v + k for joint in joints for k in range(joint.nv)]


@pytest.mark.parametrize("frame", REFERENCE_FRAMES)
@pytest.mark.parametrize("name", OPEN_MODELS)
def test_jacobians_and_their_rates(name: str, frame: str) -> None:
    """RBDA-4.1-JACOBIAN"""
    one = case(name)
    model = one.bridge.model
    reference = REFERENCE_FRAMES[frame]
    constant = constant_columns(one.theirs)
    for place in frames_to_try(one.theirs):
        index = one.theirs.getFrameId(place.name, place.type)

        def jacobian(m: Any, d: Any, q: Array, v: Array, a: Array, index: int = index) -> Array:
            return pin.computeFrameJacobian(m, d, q, index, reference)

        def rate(m: Any, d: Any, q: Array, v: Array, a: Array, index: int = index) -> Array:
            pin.computeJointJacobiansTimeVariation(m, d, q, v)
            pin.updateFramePlacements(m, d)
            return pin.getFrameJacobianTimeVariation(m, d, index, reference)

        J = dense(algorithms.jacobian(model, one.q, place.name, frame=frame))
        assert_agrees(one.bridge.jacobian_back(J), columns(one.each(jacobian)))
        J_dot = dense(algorithms.jacobian_rate(model, one.q, one.v, place.name, frame=frame))
        theirs = columns(one.each(rate))
        # A body on one joint has a rate of zero in its own coordinates: the Jacobian gives the size.
        error = np.abs(one.bridge.jacobian_back(J_dot) - theirs)[:, :, constant].max(initial=0.0)
        assert error <= RELATIVE_ERROR * max(np.abs(theirs).max(), np.abs(J).max())


@pytest.mark.parametrize("name", OPEN_MODELS)
def test_jacobian_rates_give_the_acceleration(name: str) -> None:
    """RBDA-2.11-CHAINACC: dv/dt of a frame is J a + J' v, for joints of varying subspace too."""
    one = case(name)
    for place in frames_to_try(one.theirs):
        index = one.theirs.getFrameId(place.name, place.type)

        def acceleration(m: Any, d: Any, q: Array, v: Array, a: Array, index: int = index) -> Array:
            pin.forwardKinematics(m, d, q, v, a)
            moved = pin.getFrameAcceleration(m, d, index, pin.ReferenceFrame.LOCAL)
            return np.r_[moved.angular, moved.linear]

        J = dense(algorithms.jacobian(one.bridge.model, one.q, place.name, frame="body"))
        J_dot = dense(algorithms.jacobian_rate(one.bridge.model, one.q, one.v, place.name, frame="body"))
        ours = np.einsum("bij,jb->bi", J, one.a) + np.einsum("bij,jb->bi", J_dot, one.v)
        assert_agrees(ours, one.each(acceleration))


@pytest.mark.parametrize("name", ALL_MODELS)
def test_center_of_mass(name: str) -> None:
    one = case(name)
    c = dense([*algorithms.center_of_mass(one.bridge.model, one.q)])
    assert_agrees(c, one.each(lambda m, d, q, v, a: pin.centerOfMass(m, d, q)))


@pytest.mark.parametrize("name", OPEN_MODELS)
def test_potential_energy(name: str) -> None:
    one = case(name)
    V = dense([algorithms.potential_energy(one.bridge.model, one.q)])
    assert_agrees(V, one.each(lambda m, d, q, v, a: [pin.computePotentialEnergy(m, d, q)]))


@pytest.mark.parametrize("name", OPEN_MODELS)
def test_kinetic_energy(name: str) -> None:
    """RBDA-3.1-KE: of bodies and armatures."""
    one = case(name)
    T = dense([algorithms.kinetic_energy(one.bridge.model, one.q, one.v)])
    armature = 0.5 * (np.asarray(one.theirs.armature) * one.v_pin**2).sum(axis=1, keepdims=True)
    # Pinocchio counts armatures too, but forgets those of unaligned revolute and helical joints.
    bodies = one.theirs.copy()
    bodies.armature = np.zeros(bodies.nv)
    data = bodies.createData()
    energies = [[pin.computeKineticEnergy(bodies, data, q, v)] for q, v in zip(one.q_pin, one.v_pin)]
    assert_agrees(T, np.array(energies) + armature)


@pytest.mark.parametrize("name", OPEN_MODELS)
def test_centroidal_momentum(name: str) -> None:
    """RBDA-2.12-MOMENTUM"""
    one = case(name)
    model = one.bridge.model

    def momentum(m: Any, d: Any, q: Array, v: Array, a: Array) -> list[Array]:
        pin.computeCentroidalMomentumTimeVariation(m, d, q, v, a)
        return [np.r_[d.hg.angular, d.hg.linear], np.r_[d.dhg.angular, d.dhg.linear]]

    h = algorithms.centroidal_momentum(model, one.q, one.v)
    h_rate = algorithms.centroidal_momentum_rate(model, one.q, one.v, one.a)
    ours = dense([[*h.angular, *h.linear], [*h_rate.angular, *h_rate.linear]])
    theirs = one.each(momentum)
    # A body that may only slide has no momentum about its centre of mass: each vector is judged as a whole.
    for k in range(2):
        assert_agrees(ours[:, k], theirs[:, k])
    A = dense(algorithms.centroidal_momentum_matrix(model, one.q))
    assert_agrees(one.bridge.jacobian_back(A), columns(one.each(lambda m, d, q, v, a: pin.ccrba(m, d, q, v))))


@pytest.mark.parametrize("name", ALL_MODELS)
def test_maps_undo_each_other(name: str) -> None:
    one = case(name)
    bridge = one.bridge
    np.testing.assert_allclose(bridge.q_back(bridge.q(one.q_pin)), one.q_pin, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(bridge.v_back(bridge.v(one.v_pin)), one.v_pin)
    np.testing.assert_array_equal(bridge.a_back(bridge.a(one.a_pin)), one.a_pin)
    np.testing.assert_array_equal(bridge.tau_back(bridge.tau(one.v_pin)), one.v_pin)
    forces = random_forces(one.theirs)
    np.testing.assert_array_equal(bridge.external_forces_back(bridge.external_forces(forces)), forces)


@pytest.mark.parametrize("name", OPEN_MODELS)
def test_integration_follows_the_same_paths(name: str) -> None:
    """RBDA-4.5-QUAT: a displacement leads to the same pose in both conventions of q and v."""
    one = case(name)
    model = one.bridge.model
    ends = one.each(lambda m, d, q, v, a: pin.integrate(m, q, 0.3 * v))
    q_end = integrate(model, one.q, [0.3 * x for x in one.v])
    theirs = algorithms.forward_kinematics(model, scalars(one.bridge.q(ends)))
    ours = algorithms.forward_kinematics(model, q_end)
    assert_agrees(dense([X.homogeneous() for X in ours]), dense([X.homogeneous() for X in theirs]))
