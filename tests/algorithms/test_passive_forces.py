"""Springs, dampers and dry friction."""

import numpy as np
import pytest
from tests.algorithms.trees import close, random_tree, state

from dalembert.algorithms.applied_forces import FRICTION_SPEED, passive_forces, spring_energy
from dalembert.model.builder import ModelBuilder
from dalembert.model.configuration import integrate
from dalembert.model.joints import Revolute, Spherical
from dalembert.spatial import RigidInertia

INERTIA = RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def hinge(**constants):
    builder = ModelBuilder()
    builder.add_body("b", parent="world", joint=Revolute((0.0, 0.0, 1.0)), inertia=INERTIA, **constants)
    return builder.build()


def test_each_term_alone():
    """The law of the module, term by term."""
    close(passive_forces(hinge(damping=0.7), [0.2], [3.0]), [-2.1], 1e-15)
    close(passive_forces(hinge(stiffness=5.0, rest=0.5), [0.2], [3.0]), [1.5], 1e-15)
    close(passive_forces(hinge(friction=2.0), [0.2], [3.0]), [-2.0], 1e-6)
    close(passive_forces(hinge(friction=2.0), [0.2], [-3.0]), [2.0], 1e-6)
    close(passive_forces(hinge(friction=2.0), [0.2], [FRICTION_SPEED]), [-2.0 / np.sqrt(2.0)], 1e-12)
    assert passive_forces(hinge(friction=2.0), [0.2], [0.0]) == [0.0]


@pytest.mark.parametrize("seed", range(6))
def test_dampers_and_friction_only_take_energy(seed):
    """tau . v <= 0 without springs, on every joint type."""
    model = random_tree(seed)
    q, v, _, _ = state(model, seed)
    resting = np.subtract(passive_forces(model, q, v), passive_forces(model, q, [0.0] * model.nv))
    assert np.dot(resting, v) < 0.0


def test_ball_joint_spring_is_gradient_of_its_energy():
    """A uniform spring on a ball joint: tau = -dV/d(rotation)."""
    builder = ModelBuilder()
    builder.add_body("b", parent="world", joint=Spherical(), inertia=INERTIA, stiffness=3.0)
    model = builder.build()
    q, _, _, _ = state(model, 2)
    h = 1e-6
    gradient = []
    for k in range(3):
        ends = [
            spring_energy(model, integrate(model, q, (s * h * np.eye(3)[k]).tolist())) for s in (1.0, -1.0)
        ]
        gradient.append((ends[0] - ends[1]) / (2 * h))
    close(passive_forces(model, q, [0.0] * 3), np.negative(gradient), 1e-7)
