"""Where friction presses a body down and pressure raises friction, the solver of a step still converges."""

from dataclasses import replace

import numpy as np

import dalembert as da
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.contact.pairs import contact_points, pairs_of
from dalembert.contact.step import contact_step

G = 9.81


def rod() -> da.Model:
    """1 kg, 1 m, thin: it jams where it slides on its end."""
    builder = da.ModelBuilder()
    builder.add_body(
        "rod", "world", da.Free(), inertia=da.RigidInertia(1.0, (0, 0, 0), (0.0004, 0.083, 0.083))
    )
    along = da.Transform.from_rotation_translation([[0, 0, 1], [0, 1, 0], [-1, 0, 0]], (0, 0, 0))
    builder.add_shape("rod", da.shapes.Capsule(0.01, 1.0, placement=along))
    return builder.build().with_ground()


def test_rods_thrown_on_rough_ground_come_to_rest():
    """TOD-CONTACT: 128 rods, mu from 0.5 to 1.5, 3 s in steps of 5 ms: each step converges, no energy comes.

    Friction that followed pressure wholly each time went to and fro in some steps until they were cut off,
    and threw rods away.
    """
    model = rod()
    pairs = pairs_of(model)

    def stepped(model, q, v, mu, memory, dt):
        rough = tuple(replace(pair, friction=mu, restitution=0.0) for pair in pairs)
        points = contact_points(forward_kinematics(model, q), rough)
        after = contact_step(model, q, v, [0.0] * model.nv, dt, points, memory=memory)
        return after.q, after.v, after.memory, after.residual

    advance = da.compile(stepped, model, inputs={"mu": (), "memory": (2, 5), "dt": ()})
    rng = np.random.default_rng(1)
    q, v = np.tile(model.neutral(), (128, 1)), rng.normal(size=(128, 6)) * [2.0, 2.0, 2.0, 3.0, 3.0, 3.0]
    q[:, 2], q[:, 3:7] = rng.uniform(0.6, 1.0, 128), rng.normal(size=(128, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    mu, memory, left = rng.uniform(0.5, 1.5, 128), np.zeros((128, 2, 5)), 0.0
    start = da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)
    highest = start
    for _ in range(600):
        q, v, memory, residual = advance(q, v, mu, memory, 0.005)
        left = max(left, residual.max())
        highest = np.maximum(
            highest, da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)
        )
    assert left < 1e-4
    assert (highest - start).max() < 0.01 * start.min()
    assert np.abs(q[:, 2]).max() < 0.02
