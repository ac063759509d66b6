"""From maximal to generalized velocities: exact where the joints allow them, nearest where they do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.algorithms.trees import JOINTS, close, inertia, mat, place, random_tree, state, vec

import dalembert as da
from dalembert.algorithms import cartesian as ca
from dalembert.algorithms.kinematics import body_motions, forward_kinematics, point_motion
from dalembert.errors import ShapeError
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import (
    Composite,
    Helical,
    Prismatic,
    Revolute,
    Spherical,
    SphericalEuler,
    TimeDependent,
    Universal,
)
from dalembert.spatial import RigidInertia, Transform, Vec3

WAYS = (
    ca.generalized_velocity,
    ca.generalized_velocity_by_pseudo_inverse,
    ca.generalized_velocity_joint_by_joint,
    ca.generalized_velocity_rotations_first,
)


def rows_of(values) -> np.ndarray:
    return np.array([value.to_list() for value in values], dtype=float)


def stacked(model, q) -> np.ndarray:
    return np.array([row for J in ca.maximal_jacobians(model, q) for row in J], dtype=float)


@pytest.mark.parametrize("kind", JOINTS)
def test_feasible_velocities_are_recovered_for_every_joint_type(kind):
    """LJ-6.1-VEL2GEN: V = J v gives back v with no residual, by every way."""
    model = random_tree(2, 4, (kind, "revolute"), root=kind)
    q, v, _, _ = state(model, 5)
    V = rows_of(ca.maximal_velocities(model, q, v))
    for body, motion in zip(model.bodies, body_motions(model, q, v)):
        point = point_motion(motion, body.inertia.com)
        close(
            V[body.index], [*(mat(motion.pose.R) @ vec(motion.velocity.angular)), *vec(point.velocity)], 1e-12
        )
    close((stacked(model, q) @ v).reshape(-1, 6), V, 1e-12)
    for way in WAYS:
        found = way(model, q, V.tolist())
        close(found.v, v, 1e-9, terms=(v,))
        close(rows_of(found.residual), np.zeros_like(V), 1e-10, terms=(V,))


@pytest.mark.parametrize("seed", range(4))
def test_infeasible_velocities_are_approached_and_flagged(seed):
    """LJ-6.1-VEL2GEN: v = J^+ V by NumPy's pseudo-inverse; the residual is V - J v, not zero."""
    model = random_tree(seed, 6)
    q, _, _, _ = state(model, seed)
    V = np.random.default_rng(seed).normal(size=(6, 6))
    J = stacked(model, q)
    expected = np.linalg.pinv(J) @ V.ravel()
    for way in WAYS[:2]:
        found = way(model, q, V.tolist())
        close(found.v, expected, 1e-9)
        residual = rows_of(found.residual)
        close(residual.ravel(), V.ravel() - J @ expected, 1e-9)
        assert np.abs(residual).max() > 0.1
    nearest = float(np.linalg.norm(V.ravel() - J @ expected))
    for way in WAYS[2:]:
        assert np.linalg.norm(rows_of(way(model, q, V.tolist()).residual)) >= nearest * (1.0 - 1e-12)


@pytest.mark.parametrize(
    "joint", [SphericalEuler("xyz"), Composite([SphericalEuler("zyx")], [Transform.identity()])]
)
def test_a_singular_joint_takes_the_shortest_velocity(joint):
    """LJ-6.1-VEL2GEN: at gimbal lock J loses rank; NumPy's J^+ is met inside a tree, compiled too."""
    rng = np.random.default_rng(3)
    builder = ModelBuilder()
    for i, own in enumerate((Revolute((1, 2, 3)), joint, Spherical())):
        builder.add_body(
            f"b{i}",
            parent=f"b{i - 1}" if i else "world",
            joint=own,
            placement=place(rng),
            inertia=inertia(rng),
        )
    model = builder.build()
    q, _, _, _ = state(model, 1)
    q[2] = math.pi / 2
    J = stacked(model, q)
    assert np.linalg.matrix_rank(J, 1e-9) == model.nv - 1
    V = rng.normal(size=(3, 6))
    expected = np.linalg.pinv(J, 1e-9) @ V.ravel()
    for way in WAYS[:2]:
        close(way(model, q, V.tolist()).v, expected, 1e-7)
    feasible = (J @ rng.normal(size=model.nv)).reshape(3, 6)
    for way in WAYS:
        found = way(model, q, feasible.tolist())
        close(found.v, np.linalg.pinv(J, 1e-9) @ feasible.ravel(), 1e-7)
    compiled, residual = da.cartesian.generalized_velocity(model, [q, q], V)
    close(compiled, [expected, expected], 1e-7)
    assert residual.shape == (2, 3, 6)


def figure_one() -> da.Model:
    """The tree of the text: a universal joint, a ball joint and two hinges on it."""
    rng = np.random.default_rng(7)
    builder = ModelBuilder()
    parts = (
        ("1", "world", Universal()),
        ("2", "1", Spherical()),
        ("3", "2", Revolute((1, 2, 3))),
        ("4", "2", Revolute((3, 1, -1))),
    )
    for name, parent, joint in parts:
        builder.add_body(name, parent=parent, joint=joint, placement=place(rng), inertia=inertia(rng))
    return builder.build()


def test_connectivity_matrix_of_figure_one():
    """LJ-6.1-DMATRIX: rows (1 0 0 0), (-1 1 0 0), (0 -1 1 0), (0 -1 0 1); R^T D J_omega is block-diagonal."""
    model = figure_one()
    D = np.array(ca.connectivity_matrix(model.parents))
    assert D.tolist() == [[1, 0, 0, 0], [-1, 1, 0, 0], [0, -1, 1, 0], [0, -1, 0, 1]]
    q, v, _, _ = state(model, 2)
    poses = forward_kinematics(model, q)
    R = np.zeros((12, 12))
    for body in model.bodies:
        block = slice(3 * body.index, 3 * body.index + 3)
        R[block, block] = np.eye(3) if body.parent < 0 else mat(poses[body.parent].R)
    J_omega = np.vstack([np.array(J)[:3] for J in ca.maximal_jacobians(model, q)])
    blocks = np.zeros_like(J_omega)
    for body in model.bodies:
        columns = [vec(s.angular) for s in ca.joint_jacobian(body, q)]
        blocks[3 * body.index : 3 * body.index + 3, body.v_slice] = np.array(columns).T
    close(R.T @ np.kron(D, np.eye(3)) @ J_omega, blocks, 1e-13)
    omegas = [Vec3(*row[:3]) for row in rows_of(ca.maximal_velocities(model, q, v)).tolist()]
    relative = ca.relative_angular_velocities(model, q, omegas)
    close(np.hstack([vec(x) for x in relative]), blocks @ v, 1e-13)


def test_any_rows_of_full_rank_give_the_same_velocity():
    """LJ-6.1-SUBSET: several random subsets of the rows of V = J v."""
    model = figure_one()
    q, v, _, _ = state(model, 3)
    V = rows_of(ca.maximal_velocities(model, q, v)).tolist()
    J = stacked(model, q)
    rng = np.random.default_rng(3)
    tried = 0
    while tried < 6:
        rows = rng.choice(24, size=model.nv, replace=False).tolist()
        if np.linalg.cond(J[rows]) < 1e3:
            close(ca.generalized_velocity_from_rows(model, q, V, rows).v, v, 1e-8)
            tried += 1


def test_rotations_alone_determine_a_system_that_only_turns():
    """LJ-6.1-ROTONLY: m small pseudo-inverses of omega^ find v, and v_k = J_v v then holds of itself.

    The linear parts of V are not looked at: wrong ones leave v as it is, and stand in the residual.
    """
    model = figure_one()
    q, v, _, _ = state(model, 4)
    V = rows_of(ca.maximal_velocities(model, q, v))
    found = ca.generalized_velocity_rotations_first(model, q, V.tolist())
    close(found.v, v, 1e-12)
    close(found.v, ca.generalized_velocity(model, q, V.tolist()).v, 1e-10)
    close(rows_of(found.residual)[:, 3:], np.zeros((4, 3)), 1e-12)
    wrong = V + np.hstack([np.zeros((4, 3)), np.ones((4, 3))])
    again = ca.generalized_velocity_rotations_first(model, q, wrong.tolist())
    close(again.v, v, 1e-12)
    close(rows_of(again.residual)[:, 3:], np.ones((4, 3)), 1e-12)


def test_rotations_first_then_translations():
    """LJ-6.1-TRANS: a floating root and sliding joints; the root's translation is read off."""
    model = random_tree(8, 6, ("revolute", "prismatic", "cylindrical", "planar", "translation"), root="free")
    q, v, _, _ = state(model, 6)
    V = rows_of(ca.maximal_velocities(model, q, v))
    close(ca.generalized_velocity_rotations_first(model, q, V.tolist()).v, v, 1e-11)
    pose = forward_kinematics(model, q)[0]
    J = [vec(s.linear) for s in ca.joint_jacobian(model.bodies[0], q)][3:]
    close(np.array(J).T, mat(pose.R) if model.bodies[0].parent < 0 else J, 1e-12)


def test_what_a_turn_slides_is_taken_off_before_the_translations():
    """LJ-6.1-TRANS: a slide on a turning arm: the turn alone moves the body along the slide, too."""
    step = Transform.from_rotation_translation(np.eye(3).tolist(), (1.0, 0.0, 0.0))
    arm = Composite([Revolute((0, 0, 1)), Prismatic((0.6, 0.8, 0))], [Transform.identity(), step])
    rng = np.random.default_rng(2)
    builder = ModelBuilder()
    for i in range(2):
        parent = f"b{i - 1}" if i else "world"
        builder.add_body(f"b{i}", parent=parent, joint=arm, placement=place(rng), inertia=inertia(rng))
    model = builder.build()
    q, v, _, _ = state(model, 3)
    V = rows_of(ca.maximal_velocities(model, q, v)).tolist()
    close(ca.generalized_velocity_rotations_first(model, q, V).v, v, 1e-12)


def test_joints_that_chain_parallel_axes_need_their_whole_velocity():
    """LJ-6.1-TRANS: parallel axes in one joint turn alike; its whole velocity tells them apart."""
    step = Transform.from_rotation_translation(np.eye(3).tolist(), (1.0, 0.0, 0.0))
    builder = ModelBuilder()
    scara = Composite([Revolute((0, 0, 1)), Revolute((0, 0, 1))], [Transform.identity(), step])
    builder.add_body("b", parent="world", joint=scara, inertia=RigidInertia(1.0, (0.1, 0.2, 0.3), (1, 1, 1)))
    model = builder.build()
    q, v = [0.3, 0.9], [1.0, 2.0]
    V = rows_of(ca.maximal_velocities(model, q, v)).tolist()
    close(ca.generalized_velocity_joint_by_joint(model, q, V).v, v, 1e-12)
    close(ca.generalized_velocity(model, q, V).v, v, 1e-12)
    assert np.abs(np.array(ca.generalized_velocity_rotations_first(model, q, V).v) - v).max() > 0.1


def test_coupled_and_rheonomic_joints():
    """LJ-6.1-VEL2GEN: v holds independent coordinates; motion prescribed in time is no part of it."""
    rng = np.random.default_rng(5)
    builder = ModelBuilder()
    drive = TimeDependent(Revolute((1, 1, 0)), driver=Helical((1, 2, 0), 0.3), motion=lambda t: [t * t])
    joints = (drive, Revolute((1, 2, 3)), Revolute((3, 1, 0)), Spherical())
    for i, joint in enumerate(joints):
        parent = f"b{i - 1}" if i else "world"
        builder.add_body(f"b{i}", parent=parent, joint=joint, placement=place(rng), inertia=inertia(rng))
    for coupled in (False, True):
        if coupled:
            builder.add_coupling("mimic", {"b1": 1.0, "b2": -2.0}, offset=0.1)
        model = builder.build()
        q, v, _, _ = state(model, 7)
        V = rows_of(ca.maximal_velocities(model, q, v, time=0.4)).tolist()
        for way in WAYS:
            found = way(model, q, V, time=0.4)
            close(found.v, v, 1e-10)
            close(rows_of(found.residual), np.zeros((4, 6)), 1e-11)


def test_public_functions_take_batches_and_agree():
    """LJ-6.1-VEL2GEN, LJ-6.1-ROTONLY: compiled, batched, by each method; wrong shapes name the argument."""
    model = figure_one()
    states = [state(model, k) for k in range(5)]
    q, v = np.array([s[0] for s in states]), np.array([s[1] for s in states])
    V = da.cartesian.maximal_velocities(model, q, v)
    assert V.shape == (5, 4, 6)
    close(np.einsum("bkij,bj->bki", da.cartesian.maximal_jacobians(model, q), v), V, 1e-12)
    for method in ("least_squares", "pseudo_inverse", "joint_by_joint", "rotations_first"):
        found, residual = da.cartesian.generalized_velocity(model, q, V, method=method)
        close(found, v, 1e-9)
        close(residual, np.zeros_like(V), 1e-10)
    with pytest.raises(ShapeError, match="body_velocities"):
        da.cartesian.generalized_velocity(model, q, V[:, :3])


def test_least_squares_are_linear_in_the_number_of_bodies():
    """LJ-6.1-VEL2GEN: the whole J^+ V costs a constant number of operations a body."""
    from tests.algorithms.counting import count

    def operations(n: int) -> int:
        model = da.models.gu(n)
        return count(lambda q, V: ca.generalized_velocity(model, q, V).v, q=n, V=(n, 6)).total

    counts = [operations(n) for n in (4, 6, 8)]
    assert counts[2] - counts[1] == pytest.approx(counts[1] - counts[0], rel=0.02)
