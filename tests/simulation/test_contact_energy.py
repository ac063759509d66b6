"""What bounces and what is squeezed: spinning bodies, energy over many bounces, heavy on light."""

import numpy as np
import pytest

import dalembert as da

G = 9.81
UPRIGHT = [1.0, 0.0, 0.0, 0.0]


def body(shape, *, mass=1.0, moment=0.004, friction=0.5, restitution=0.0):
    """A body whose moments of inertia are equal, so that in flight it feels no gyroscopic torque."""
    builder = da.ModelBuilder()
    builder.add_body("body", "world", da.Free(), inertia=da.RigidInertia(mass, (0, 0, 0), (moment,) * 3))
    builder.add_shape("body", shape)
    return builder.build().with_ground(friction=friction, restitution=restitution)


def upward(motion):
    """The velocity upwards in the world `(…, T+1)`."""
    return np.einsum("...j,...j->...", motion.poses().rotation[..., 0, 2, :], motion.v[..., 3:6])


@pytest.mark.parametrize("friction", [0.0, 0.9])
def test_a_spinning_ball_rebounds_with_its_ratio(friction):
    """TOD-CONTACT: whatever its spin, and its speed along the ground."""
    e = 0.9
    model = body(da.shapes.Sphere(0.1), friction=friction, restitution=e)
    v = np.zeros((3, 6))
    v[:, 5], v[1:, 3], v[1:, 1], v[2, :3] = -4.0, 3.0, 20.0, (-5.0, 12.0, 7.0)
    found = da.rollout(model, [0.0, 0.0, 0.11, *UPRIGHT], v, steps=1, dt=0.005, contact="rigid")
    np.testing.assert_allclose(upward(found)[:, 1], 4.0 * e, rtol=1e-9)


@pytest.mark.parametrize(
    "shape", [da.shapes.Box((0.15, 0.15, 0.15)), da.shapes.Cylinder(0.1, 0.1)], ids=["cube", "cylinder"]
)
def test_what_bounces_on_its_corners_does_not_climb(shape):
    """TOD-CONTACT: in flight a step keeps T + V; contact never adds to it."""
    model = body(shape, friction=0.6, restitution=0.98)
    rng = np.random.default_rng(2)
    q, v = np.tile(model.neutral(), (64, 1)), rng.normal(size=(64, 6)) * [3.0, 3.0, 3.0, 1.0, 1.0, 1.0]
    q[:, 2], q[:, 3:7] = 1.0, rng.normal(size=(64, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    dt = 0.005
    found = da.rollout(model, q, v, steps=600, dt=dt, contact="rigid", observe="energy")
    kept, v_z = found.observed["energy"], upward(found)
    mean = 0.5 * (v_z[:, 1:] + v_z[:, :-1])
    lifted = G * np.maximum(np.diff(found.q[..., 2], axis=1) - dt * mean, 0.0)
    gained = np.diff(kept, axis=1) - lifted  # an overlap that is mended lifts
    assert gained.max() < 1e-10
    assert (kept[:, -1] < kept[:, 0]).all()
    assert kept[:, -1].max() > 0.3 * kept[:, 0].min()


@pytest.mark.parametrize(("law", "sinks"), [("rigid", 2e-4), ("compliant", 6e-3)])
@pytest.mark.parametrize("ratio", [10.0, 1e6])
def test_light_bodies_bear_heavy_ones(law, sinks, ratio):
    """TOD-CONTACT: 1000 kg on 100 kg, and on 1 g; springs yield as they do under ten times the weight."""
    builder = da.ModelBuilder()
    for name, mass, side in (("light", 1000.0 / ratio, 0.2), ("heavy", 1000.0, 0.5)):
        inertia = da.RigidInertia(mass, (0, 0, 0), (mass * side**2 / 6,) * 3)
        builder.add_body(name, "world", da.Free(), inertia=inertia)
        builder.add_shape(name, da.shapes.Box((side, side, side)))
    model = builder.build().with_ground(friction=0.6)
    q = np.array([0.0, 0.0, 0.1, *UPRIGHT, 0.0, 0.0, 0.45, *UPRIGHT])
    found = da.rollout(model, q, np.zeros(12), steps=400, dt=0.005, contact=law)
    assert abs(found.q[-1, 9] - q[9]) < sinks
    ground = [names[0] == "ground" for names in found.contacts.names]
    weight = (1000.0 + 1000.0 / ratio) * G
    assert found.contacts.force[-1, ground, 2].sum() == pytest.approx(weight, rel=1e-3)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_what_tumbles_keeps_its_energy(law):
    """TOD-CONTACT: bricks of unequal moments, origins off their centres, at 14 rad/s or so without weight.

    First-order steps would give them a third more in these 3 s at 5 ms.
    """
    builder = da.ModelBuilder()
    tensor = np.diag([0.05, 0.10, 0.13]) / 12.0
    inertia = da.RigidInertia(1.0, (0.02, -0.01, 0.03), tensor)
    builder.add_body("brick", "world", da.Free(), inertia=inertia)
    builder.add_shape("brick", da.shapes.Box((0.3, 0.2, 0.1)))
    model = builder.build().with_ground().with_values({"gravity": (0.0, 0.0, 0.0)})
    rng = np.random.default_rng(5)
    q, v = np.tile(model.neutral(), (200, 1)), rng.normal(size=(200, 6)) * [8.0, 8.0, 8.0, 2.0, 2.0, 2.0]
    q[:, 2] = 100.0

    def gained(dt):
        steps = round(3.0 / dt)
        found = da.rollout(
            model, q, v, steps=steps, dt=dt, contact=law, observe=("energy", "momentum"), every=steps
        )
        energy, momentum = found.observed["energy"], found.observed["momentum"][..., 3:]
        np.testing.assert_allclose(momentum[:, 1], momentum[:, 0], atol=1e-10)
        spin = energy - 0.5 * np.square(momentum).sum(axis=-1)
        return np.abs(spin[:, 1] / spin[:, 0] - 1.0)

    coarse, fine = gained(0.005), gained(0.0025)
    assert coarse.max() < 0.01
    assert np.median(coarse) < 1e-4
    assert coarse.mean() / fine.mean() > 6.0
