"""Guenter and Rose 2000: figures of hinges, whose stacks move like the joints that they stand for."""

from typing import Any

import numpy as np
import pytest
from tests.algorithms.trees import close, six, state

import dalembert as da
from dalembert import algorithms as al
from dalembert.model.model import Model
from dalembert.textbook import guenter_rose_partials as guenter_rose
from dalembert.textbook.cartesian_tensors import balafoutis_patel


def accelerations(model: Model, q: Any, v: Any, a: Any) -> dict[str, np.ndarray]:
    return {b.name: six(m) for b, m in zip(model.bodies, al.rnea_spatial(model, q, v, a).a, strict=True)}


def variables_to_variables(model: Model, stacked: Model, q: Any) -> tuple[list[float], np.ndarray]:
    """The same pose in the model's coordinates, and B of v = B v_stacked."""
    poses = dict(zip(stacked.bodies.names, al.forward_kinematics(stacked, q), strict=True))
    J = dict(zip(stacked.bodies.names, al.all_jacobians(stacked, q, frame="body"), strict=True))
    position, B = [0.0] * model.nq, np.zeros((model.nv, stacked.nv))
    for body in model.bodies:
        name = model.bodies[body.parent].name if body.parent >= 0 else None
        link = poses[name].inverse() @ poses[body.name] if name else poses[body.name]
        own = body.joint.position_of((body.placement.as_transform().inverse() @ link).as_transform())
        position[body.q_slice] = own
        parent = np.array(link.motion_matrix()) @ np.array(J[name]) if name else 0.0
        T_a = np.array([t.to_list() for t in body.joint.active_subspace(own)]).reshape(-1, 6)
        B[body.v_slice] = T_a @ (np.array(J[body.name], dtype=float) - parent)
    return position, B


@pytest.mark.parametrize("seed", range(4))
def test_a_stack_of_hinges_moves_like_the_joint_it_stands_for(seed):
    """GR-MULTIDOF: a free root, balls and others as hinges and slides with massless links between them: under
    the same forces, every body has the same acceleration, and M_stacked = B^T M B with v = B v_stacked.
    """
    kinds = ("free", "spherical", "planar", "universal", "cylindrical", "translation", "spherical_euler")
    model = da.models.random_tree(seed, bodies=5, joints=kinds)
    stacked = guenter_rose.stacked_hinges(model)
    assert stacked.nv == model.nv
    assert all(body.nv <= 1 for body in stacked.bodies)
    q, v, tau, _ = state(stacked, seed)
    position, B = variables_to_variables(model, stacked, q)
    velocity, force = B @ v, np.linalg.solve(B.T, tau)
    a = al.forward_dynamics(stacked, q, v, tau)
    close(balafoutis_patel(stacked, q, v, a).tau, tau, 1e-8)
    M = np.array(al.mass_matrix(model, position))
    close(guenter_rose.inverse_dynamics_partials(stacked, q, v, a)[2], B.T @ M @ B, 1e-10)
    acceleration = al.forward_dynamics(model, position, velocity.tolist(), force.tolist())
    expected = accelerations(model, position, velocity.tolist(), acceleration)
    found = accelerations(stacked, q, v, a)
    for name, motion in expected.items():
        close(found[name], motion, 1e-7)


def test_the_human_figure_of_hinges():
    """GR-MULTIDOF: the bundled humanoid, free root and ball joints, as a tree of joints of one freedom."""
    stacked = guenter_rose.stacked_hinges(da.models.humanoid())
    assert stacked.nv == stacked.nq == da.models.humanoid().nv
    q, v, a, _ = state(stacked, 0)
    close(balafoutis_patel(stacked, q, v, a).tau, al.inverse_dynamics(stacked, q, v, a), 1e-11)


def test_a_stack_keeps_the_numbers_of_its_joint():
    """GR-MULTIDOF: limits, friction and rotors go along where the coordinates are the same, names are told
    apart, and joints without a stack are refused by name.
    """
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.0, (0.1, 0.2, 0.0), (0.1, 0.2, 0.3))
    fork = da.joints.Universal((1, 0, 0), (0, 1, 0))
    limits = da.Limits((-1.0, -2.0), (1.0, 2.0), (3.0, 4.0), (5.0, 6.0))
    builder.add_body("thigh", joint=fork, joint_name="hip", inertia=solid, armature=(0.1, 0.2), limits=limits)
    builder.add_body("shin", "thigh", da.Revolute(), "knee", inertia=solid, damping=0.3)
    builder.add_frame("sole", "shin")
    builder.add_coupling("none", {"knee": 1.0, "heel": -0.5})
    builder.add_body("foot", "shin", da.Revolute(), "heel", inertia=solid)
    builder.set_actuated(["hip"])
    stacked = guenter_rose.stacked_hinges(builder.build())
    assert list(stacked.joints.names) == ["hip_1", "hip", "knee", "heel"]
    assert list(stacked.bodies.names) == ["hip_1", "thigh", "shin", "foot"]
    assert stacked.actuated == ("hip_1", "hip")
    assert [body.armature for body in stacked.bodies] == [(0.1,), (0.2,), (0.0,), (0.0,)]
    assert [(body.limits.lower, body.limits.effort) for body in stacked.bodies][:2] == [
        ((-1.0,), (5.0,)),
        ((-2.0,), (6.0,)),
    ]
    assert stacked.bodies[2].damping == (0.3,)
    assert stacked.frame("sole").body == 2
    assert stacked.nv == 3
    refused = da.models.random_tree(0, bodies=1, joints=("ellipsoid",))
    with pytest.raises(da.errors.ModelError, match=r'"joint0" is ellipsoid with 3 freedoms.*spherical'):
        guenter_rose.stacked_hinges(refused)
    builder.add_body("ball", "foot", da.Spherical(), inertia=solid, armature=0.1)
    with pytest.raises(da.errors.ModelError, match='"ball" is spherical and has armature'):
        guenter_rose.stacked_hinges(builder.build())
