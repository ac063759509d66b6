"""Inverse dynamics of recorded motion returns what moved the figure."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.trees import close, inertia, place

import dalembert as da
from dalembert.algorithms.energy_momentum import momentum
from dalembert.errors import DalembertError
from dalembert.model.configuration import integrate
from dalembert.motion import Clip, inverse_dynamics
from dalembert.spatial import RigidInertia, Transform

FRAME = 0.01
SUBSTEPS = 10


def figure(root: da.joints.Joint, *, gravity=(0.0, 0.0, -9.81)) -> da.Model:
    """A trunk with two arms and a ball joint; nothing drives its root."""
    rng = np.random.default_rng(2)
    builder = da.ModelBuilder(gravity=gravity)
    parts = (
        ("trunk", "world", root),
        ("arm", "trunk", da.Revolute((1, 2, 3))),
        ("hand", "arm", da.joints.Universal()),
        ("head", "trunk", da.Spherical()),
    )
    for name, parent, joint in parts:
        builder.add_body(name, parent=parent, joint=joint, placement=place(rng), inertia=inertia(rng))
    builder.set_actuated(["arm", "hand", "head"])
    return builder.build()


def random_torques(model: da.Model, seed: int):
    """Smooth torques of time at the joints with motors."""
    rng = np.random.default_rng(seed)
    size, frequency, phase = rng.uniform(-0.5, 0.5, (3, model.nv)) + [[0.0], [1.5], [0.0]]
    driven = np.zeros(model.nv)
    for name in model.actuated:
        driven[model.joint(name).v_slice] = 1.0

    def torques(time):
        t = np.asarray(time)[..., np.newaxis]
        return driven * size * np.sin(2 * np.pi * (frequency * t + phase))

    return torques


def simulated(model: da.Model, torques, frames: int, push=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """time, q and v of a motion under torques(t): each step holds the torques of its middle."""
    q, v = model.random_state(4)
    v = 0.3 * v
    qs, vs = [q], [v]
    h = FRAME / SUBSTEPS
    for k in range(1, SUBSTEPS * (frames - 1) + 1):
        q, v = da.step(model, q, v, torques((k - 0.5) * h), h, integrator="rk4", external_forces=push)
        if k % SUBSTEPS == 0:
            qs.append(q)
            vs.append(v)
    return FRAME * np.arange(frames), np.array(qs), np.array(vs)


@pytest.fixture(scope="module")
def flight():
    """A figure in the air: its model, torques, and its recorded motion."""
    model = figure(da.Free())
    torques = random_torques(model, 1)
    return model, torques, *simulated(model, torques, 61)


def test_simulated_torques_are_recovered(flight):
    """ANIM-ANALYSIS: with q, v and a recorded, inverse dynamics gives the torques, and none at the root."""
    model, torques, time, q, v = flight
    tau = torques(time)
    a = da.forward_dynamics(model, q, v, tau)
    analysis = inverse_dynamics(Clip(model, time, q, v, a))
    close(analysis.tau, tau, 1e-10, terms=(a,))
    close(analysis.residual, np.zeros_like(tau), 1e-10, terms=(a,))
    close(analysis.wrench, np.zeros((61, 6)), 1e-9, terms=(a,))  # nothing holds it in the air
    close(analysis["head"], tau[:, model.joint("head").v_slice], 1e-10, terms=(a,))
    again = inverse_dynamics(Clip(model, time, q, v, a), method="luh_walker_paul")
    close(again.tau, analysis.tau, 1e-11, terms=(a,))


def test_torques_from_positions_alone(flight):
    """ANIM-ANALYSIS: as recordings have them, without velocities; more frames, far smaller errors."""
    model, torques, time, q, _ = flight
    tau = torques(time)
    errors = []
    for every in (2, 1):
        analysis = inverse_dynamics(Clip.from_positions(model, time[::every], q[::every]))
        inner = slice(8 // every, -8 // every)
        errors.append(np.abs(analysis.tau[inner] - tau[::every][inner]).max())
    assert errors[1] < 1e-4 * np.abs(tau).max()
    assert errors[1] < errors[0] / 8.0


def test_work_is_the_energy_that_was_gained(flight):
    """ANIM-ANALYSIS: power summed over joints and integrated is the change of energy."""
    model, torques, time, q, v = flight
    a = da.forward_dynamics(model, q, v, torques(time))
    analysis = inverse_dynamics(Clip(model, time, q, v, a))
    energy = da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)
    assert analysis.power.shape == (61, 4)
    assert analysis.names == model.joints.names
    assert analysis.work.sum() == pytest.approx(energy[-1] - energy[0], rel=1e-5)
    assert abs(analysis.work[1:]).min() > 1e-3
    close(analysis.work[0], 0.0, 1e-8)
    shares = analysis.positive_work + analysis.negative_work
    close(shares, analysis.work, 1e-3)
    assert (analysis.positive_work >= 0.0).all()
    assert (analysis.negative_work <= 0.0).all()


def test_known_external_forces_are_taken_out():
    """ANIM-ANALYSIS: a push that was measured is not counted as a torque, in either frame."""
    model = figure(da.Spherical())
    torques = random_torques(model, 3)
    push = np.zeros((4, 6))
    push[2] = [0.3, -0.2, 0.5, 4.0, -2.0, 1.0]
    time, q, v = simulated(model, torques, 8, push)
    tau = torques(time)
    a = da.forward_dynamics(model, q, v, tau, external_forces=push)
    clip = Clip(model, time, q, v, a)
    close(inverse_dynamics(clip, push).tau, tau, 1e-10, terms=(a,))
    assert np.abs(inverse_dynamics(clip).tau - tau).max() > 0.1
    poses = da.forward_kinematics(model, q)["hand"]
    force = np.einsum("tij,j->ti", poses.rotation, push[2, 3:])
    moment = np.einsum("tij,j->ti", poses.rotation, push[2, :3]) + np.cross(poses.translation, force)
    world = np.zeros((8, 4, 6))
    world[:, 2] = np.hstack([moment, force])
    inside = inverse_dynamics(clip, world, external_frame="world")
    close(inside.tau, tau, 1e-10, terms=(a,))
    held = inverse_dynamics(clip).wrench - world[:, 2]
    close(inside.wrench, held, 1e-10, terms=(a,))


def test_ground_force_is_the_rate_of_momentum_less_weight():
    """ANIM-ANALYSIS: for any motion of a floating figure, against differences of the total momentum."""
    model = figure(da.Free(), gravity=(0.3, -0.4, -9.7))
    rng = np.random.default_rng(6)
    q, v = model.random_state(6)
    a = rng.normal(size=model.nv)
    still = Clip(model, [0.0], q[None], v[None], a[None])
    found = inverse_dynamics(still).wrench[0]
    h = 1e-5
    momenta = []
    for s in (h, -h):
        moved = integrate(model, q.tolist(), (v * s + 0.5 * a * s * s).tolist())
        momenta.append(np.array(momentum(model, moved, (v + a * s).tolist()).to_list()))
    rate = (momenta[0] - momenta[1]) / (2 * h)
    center, g = da.dynamics.center_of_mass(model, q), np.array([0.3, -0.4, -9.7])
    weight = model.total_mass * np.hstack([np.cross(center, g), g])
    close(found, rate - weight, 1e-6)


def test_centre_of_pressure():
    """ANIM-ANALYSIS: a figure at rest presses on the ground below its centre of mass; in the air nowhere."""
    model = figure(da.Free())
    q, v = model.random_state(1)
    rest = np.zeros((1, model.nv))
    standing = inverse_dynamics(Clip(model, [0.0], q[None], rest, rest))
    center = da.dynamics.center_of_mass(model, q)
    close(standing.center_of_pressure(0.25), [[center[0], center[1], 0.25]], 1e-11)
    close(standing.ground_force, [[0.0, 0.0, model.total_mass * 9.81]], 1e-11)
    moving = inverse_dynamics(Clip(model, [0.0], q[None], v[None], rest))
    n, f = moving.wrench[0, :3], moving.wrench[0, 3:]
    (p,) = moving.center_of_pressure(-0.4)
    close((n - np.cross(p, f))[:2], np.zeros(2), 1e-11, terms=(n,))
    fall = da.forward_dynamics(model, q, v, np.zeros(model.nv))
    airborne = inverse_dynamics(Clip(model, [0.0], q[None], v[None], 2.0 * fall[None]))
    assert airborne.ground_force[0, 2] < 0.0
    assert np.isnan(airborne.center_of_pressure()).all()


def test_motion_prescribed_in_time():
    """ANIM-ANALYSIS: the times of the clip reach joints that depend on them."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    lift = da.joints.TimeDependent(da.Fixed(), driver=da.Prismatic((0, 0, 1)), motion=lambda t: [t * t * t])
    solid = RigidInertia(2.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.add_body("lift", parent="world", joint=lift, inertia=solid)
    shift = Transform.from_rotation_translation(np.eye(3).tolist(), (1.0, 0.0, 0.0))
    builder.add_body("arm", parent="lift", joint=da.Revolute((0, 1, 0)), placement=shift, inertia=solid)
    model = builder.build()
    time = np.linspace(0.0, 1.0, 5)
    zero = np.zeros((5, 1))
    analysis = inverse_dynamics(Clip(model, time, zero, zero, zero))
    close(analysis.ground_force[:, 2], 4.0 * 6.0 * time, 1e-12)


def test_wrong_external_forces_are_named():
    model = figure(da.Free())
    q, v = model.random_state(1)
    clip = Clip(model, [0.0], q[None], v[None], v[None])
    with pytest.raises(DalembertError, match="external_forces"):
        inverse_dynamics(clip, np.zeros((3, 6)))
    with pytest.raises(KeyError, match="elbow"):
        inverse_dynamics(clip)["elbow"]
