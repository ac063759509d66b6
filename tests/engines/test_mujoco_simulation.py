"""Simulation beside MuJoCo: the humanoid of dm_control's suite in flight, on the floor, at its joints' ends.

In flight both integrate the same equations by the same method. On the floor the models of contact
differ: MuJoCo's surfaces are springs that the figure sinks into by up to about a millimetre, and its friction
creeps under a lasting load; points here bear lasting loads without overlap, and stick. What must agree is
what statics tells: forces, and the pose wherever friction leaves one pose only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from tests.engines import mujoco_humanoid as humanoid  # noqa: E402

import dalembert as da  # noqa: E402

pytestmark = pytest.mark.skipif(humanoid.path() is None, reason="dm_control is not installed")

Array = np.ndarray[Any, np.dtype[np.float64]]

DT = 0.005
STEPS = 1600
HALF = np.sqrt(0.5)
TURNS = {
    "back": (HALF, 0.0, -HALF, 0.0),
    "left": (HALF, HALF, 0.0, 0.0),
    "right": (HALF, -HALF, 0.0, 0.0),
    "upright": tuple(humanoid.standing()[3:7]) if humanoid.path() else (),
    "front": (HALF, 0.0, HALF, 0.0),
    "head": (0.0, 1.0, 0.0, 0.0),
}
"""How the held figure is let go, 2 cm above the floor. Lying on its front it leans on its arms, and friction
lets them rest in more than one way; from the other turns it comes to rest on its back, or stands."""

ONE_REST = [name for name in TURNS if name not in ("front", "head")]


@pytest.mark.parametrize("seed", range(6))
def test_flight_is_that_of_mujoco(seed: int) -> None:
    """ANIM-SIMLOOP: until the first contact or limit, by RK4 with equal steps; springs, dampers, armature."""
    dt = 0.002
    model, peer = humanoid.figure(), humanoid.peer(dt)
    peer.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    assert min(peer.dof_damping[6:].min(), peer.dof_armature[6:].min(), peer.jnt_stiffness[1:].max()) > 0.0
    rng = np.random.default_rng(seed)
    q = humanoid.random_poses(1, seed, height=2.0)
    v = rng.normal(size=(1, model.nv))
    data = mujoco.MjData(peer)
    data.qpos[:], data.qvel[:] = (
        x[0] for x in da.convert_state(model, q, v, source="dalembert", target="mujoco")
    )
    positions, velocities = [], []
    while len(positions) < 400:
        mujoco.mj_forward(peer, data)
        if data.nefc:
            break
        mujoco.mj_step(peer, data)
        positions.append(data.qpos.copy())
        velocities.append(data.qvel.copy())
    # The last step may have met a limit in one of its stages.
    q_peer, v_peer = da.convert_state(
        model, np.array(positions[:-1]), np.array(velocities[:-1]), source="mujoco", target="dalembert"
    )
    assert len(q_peer) > 20
    ours = da.rollout(model, q[0], v[0], steps=len(q_peer), dt=dt, integrator="rk4")
    assert np.abs(ours.q[1:] - q_peer).max() < 1e-6
    assert np.abs(ours.v[1:] - v_peer).max() < 1e-6


@pytest.fixture(scope="module")
def let_go() -> tuple[da.Trajectory, Array]:
    """8 s of the held figure from all turns: ours, and MuJoCo's last states."""
    q = np.tile(humanoid.standing(), (len(TURNS), 1))
    q[:, 3:7] = list(TURNS.values())
    q[:, 2] += 0.02 - humanoid.lowest(q)
    v = np.zeros((len(TURNS), humanoid.figure().nv))
    contact = da.contact.Rigid(pairs=humanoid.floor_pairs())
    ours = da.rollout(humanoid.held(), q, v, steps=STEPS, dt=DT, contact=contact)
    peer = humanoid.hold(humanoid.peer(DT))
    return ours, humanoid.peer_rollouts(peer, humanoid.peer_states(peer, q, v), STEPS)[:, -1].copy()


def peer_contacts(state: Array) -> tuple[int, float]:
    """The number of MuJoCo's contacts in a state, and the sum of their normal forces [N]."""
    peer = humanoid.hold(humanoid.peer(DT))
    data = mujoco.MjData(peer)
    mujoco.mj_setState(peer, data, state, humanoid.STATE)
    mujoco.mj_forward(peer, data)
    wrench, total = np.zeros(6), 0.0
    for k in range(data.ncon):
        mujoco.mj_contactForce(peer, data, k, wrench)
        total += wrench[0]
    return data.ncon, total


@pytest.mark.parametrize("name", TURNS)
def test_floor_bears_the_weight(let_go: tuple[da.Trajectory, Array], name: str) -> None:
    """TOD-CONTACT: normal forces sum to m g on both sides; 1e-3, as the upright figure still sways."""
    ours, last = let_go
    k = list(TURNS).index(name)
    weight = humanoid.figure().total_mass * 9.81
    assert ours.contacts is not None
    assert ours.contacts.force[k, -1, :, 2].sum() == pytest.approx(weight, rel=1e-3)
    assert peer_contacts(last[k])[1] == pytest.approx(weight, rel=1e-3)


@pytest.mark.parametrize("name", ONE_REST)
def test_rest_is_that_of_mujoco(let_go: tuple[da.Trajectory, Array], name: str) -> None:
    """TOD-CONTACT: the height within the 2 mm that MuJoCo's surfaces give way, joints within 5 mrad, the same
    number of contacts; here, whatever is nearer than 0.1 mm touches."""
    ours, last = let_go
    k = list(TURNS).index(name)
    q, _ = humanoid.own_states(humanoid.peer(DT), last[k])
    assert ours.contacts is not None
    assert ours.q[k, -1, 2] == pytest.approx(q[2], abs=2e-3)
    np.testing.assert_allclose(ours.q[k, -1, 7:], q[7:], atol=5e-3)
    assert (ours.contacts.gap[k, -1] < 1e-4).sum() == peer_contacts(last[k])[0]
    assert ours.contacts.gap[k, STEPS // 2 :].min() > -1e-4


def test_joints_of_falling_figures_end_at_their_limits() -> None:
    """TOD-CONTACT: limp figures fall from 1.5 m; 0.6 degrees is what limits yield to hard impacts."""
    model = humanoid.figure()
    q = humanoid.random_poses(8, 1, height=1.5)
    contact = da.contact.Rigid(pairs=humanoid.floor_pairs())
    motion = da.rollout(model, q, np.zeros((8, model.nv)), steps=400, dt=DT, contact=contact)
    lower = np.array([body.limits.lower[0] for body in model.bodies[1:]])
    upper = np.array([body.limits.upper[0] for body in model.bodies[1:]])
    beyond = np.maximum(lower - motion.q[..., 7:], motion.q[..., 7:] - upper)
    assert (beyond.max(axis=(1, 2)) > -1e-3).all()
    assert beyond.max() < 0.01
    assert not motion.failed.any()
