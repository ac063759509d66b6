"""The animation lecture and the multibody tutorial: one body, a chain of methods, the tree of Figure 1."""

import numpy as np
import pytest
from tests.algorithms.trees import close, inertia, mat, place, random_tree, state, vec

from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import bias_forces, gravity_forces, inverse_dynamics
from dalembert.algorithms.kinematics import body_motions, point_motion
from dalembert.algorithms.mass_matrix import mass_matrix_by_columns
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Free, Helical, Prismatic, Revolute, Spherical, Universal
from dalembert.spatial import RigidInertia, Vec3


def test_newton_and_euler_for_one_body():
    """ANIM-NE: F = M x'' at the centre of mass and r x F + tau = I omega' + omega x I omega about it."""
    rng = np.random.default_rng(0)
    body_inertia = inertia(rng)
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("body", parent="world", joint=Free(), inertia=body_inertia)
    model = builder.build()
    q, v, _, _ = state(model, 0)
    moment, push = rng.normal(size=3), rng.normal(size=3)  # at the body's origin, in its axes
    a = forward_dynamics(model, q, v, [0.0] * 6, external_forces=[[*moment, *push]])
    motion = body_motions(model, q, v, a)[0]
    R, c = mat(motion.pose.R), vec(body_inertia.com)
    acceleration = vec(point_motion(motion, Vec3(*c)).acceleration)
    close(body_inertia.mass * acceleration, R @ push, 1e-12)
    I, omega, alpha = (
        np.array(body_inertia.inertia_at_com.to_list(), dtype=float),
        np.array(v[:3]),
        np.array(a[:3]),
    )
    close(np.cross(-c, push) + moment, I @ alpha + np.cross(omega, I @ omega), 1e-12)


@pytest.mark.parametrize(
    "joint", [Revolute((1, 2, 3)), Spherical(), Prismatic((3, 1, 2)), Helical((1, 0, 1), 0.2)]
)
def test_lecture_joints_in_an_articulated_body(joint):
    """ANIM-JOINTS: hinge, ball, prismatic and screw joints in a chain move as the other methods say."""
    rng = np.random.default_rng(1)
    builder = ModelBuilder()
    for i in range(3):
        builder.add_body(
            f"b{i}",
            parent=f"b{i - 1}" if i else "world",
            joint=joint,
            placement=place(rng),
            inertia=inertia(rng),
        )
    model = builder.build()
    q, v, a, _ = state(model, 2)
    tau = inverse_dynamics(model, q, v, a)
    close(forward_dynamics(model, q, v, tau), a, 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_three_methods_of_forward_dynamics_agree(seed):
    """ANIM-ABA, ANIM-RNEFD, TOD-RNE: O(N) propagation, composite bodies, and N + 1 inverse dynamics; +c,
    not -c.
    """
    model = random_tree(seed, 6)
    q, v, tau, _ = state(model, seed)
    c = bias_forces(model, q, v)
    H = np.array(mass_matrix_by_columns(model, q))
    solved = np.linalg.solve(H, np.subtract(tau, c))
    limit = max(1e-10, 1e-13 * float(np.linalg.cond(H)))
    close(forward_dynamics(model, q, v, tau, method="aba"), solved, limit)
    close(forward_dynamics(model, q, v, tau, method="crba"), solved, limit)


def test_gravity_and_velocity_terms_are_separate():
    """ANIM-EOM: tau = H q'' + C(q, q') + tau_g."""
    model = random_tree(2)
    q, v, _, _ = state(model, 2)
    zero = [0.0] * model.nv
    close(gravity_forces(model, q), inverse_dynamics(model, q, zero, zero), 1e-12)
    close(bias_forces(model, q, v), inverse_dynamics(model, q, v, zero), 1e-12)


def test_tree_of_figure_one():
    """LJ-5.1-TREE: p(4) = 2, p(1, 4) = {1, 2, 4}, n = (2, 3, 1, 1), 7 in all, numbered from one."""
    solid = RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder = ModelBuilder()
    builder.add_body("1", parent="world", joint=Universal(), inertia=solid)
    builder.add_body("2", parent="1", joint=Spherical(), inertia=solid)
    builder.add_body("3", parent="2", joint=Revolute(), inertia=solid)
    builder.add_body("4", parent="2", joint=Revolute(), inertia=solid)
    model = builder.build()
    assert model.parents[3] + 1 == 2
    assert {i + 1 for i in model.support(3)} == {1, 2, 4}
    assert [body.nv for body in model.bodies] == [2, 3, 1, 1]
    assert model.nv == 7
