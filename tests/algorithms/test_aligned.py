"""Frames along the joint axes: the same mechanism, described so that its transforms are axial screws."""

import dataclasses

import numpy as np
import pytest
from tests.algorithms.trees import AXIS_JOINTS, close, inertia, place, random_tree, rotation, state

from dalembert.algorithms.aligned import AlignedTree, AxisJoint, aligned
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import inverse_dynamics
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Fixed, Free, Prismatic, Revolute, Spherical
from dalembert.model.model import Model
from dalembert.spatial import AxialScrew, RigidInertia, ScrewChain, Transform, Vec3
from dalembert.tracing.graph import Graph

SEEDS = range(10)


def same_dynamics(model, seed, tolerance=1e-11):
    q, v, a, f = state(model, seed)
    tree = aligned(model)
    for frame in ("body", "world", "center"):
        tau = inverse_dynamics(model, q, v, a, external_forces=f, external_frame=frame)
        close(inverse_dynamics(tree, q, v, a, external_forces=f, external_frame=frame), tau, tolerance)
    M = mass_matrix(model, q)
    close(mass_matrix(tree, q), M, tolerance)
    limit = max(1e-10, 1e-14 * float(np.linalg.cond(M)))
    close(forward_dynamics(tree, q, v, tau, external_forces=f, external_frame=frame), a, limit)


@pytest.mark.parametrize("seed", SEEDS)
def test_aligned_tree_is_the_same_system(seed):
    """RBDA-10.3-OPTIM: all dynamics agree on trees of every joint type, with external forces in body and
    world frames.
    """
    same_dynamics(random_tree(seed, 12), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_aligned_bodies_stand_where_the_model_says(seed):
    """The pose of the model's frame in the aligned one leads back to the model's poses."""
    model = random_tree(seed, 12)
    q, _, _, _ = state(model, seed)
    tree = aligned(model)
    assert isinstance(tree, AlignedTree)
    poses, expected = forward_kinematics(tree, q), forward_kinematics(model, q)
    for body in tree.bodies:
        found = body.world_frame.inverse() @ poses[body] @ body.original_frame
        close(found.homogeneous(), expected[body].homogeneous(), 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_chains_of_axis_joints_take_two_screws_a_link(seed):
    """RBDA-10.3-OPTIM: scrx then scrz for the child with the largest subtree, one leading scrz for its
    siblings.
    """
    model = random_tree(seed, 10, AXIS_JOINTS)
    tree = aligned(model)
    leading = 0
    for body in tree.bodies:
        assert isinstance(body.joint, AxisJoint)
        factors = body.placement.factors if isinstance(body.placement, ScrewChain) else (body.placement,)
        assert [factor.axis for factor in factors] in ([2], [0], [2, 0], [0, 1], [2, 0, 1])
        leading += len(factors) > 1 and factors[0].axis == 2
    with_children = len(set(model.parents))
    assert leading <= len(model.bodies) - with_children


def chain(offsets, joints, gravity=(0.3, -9.0, 2.0)):
    rng = np.random.default_rng(0)
    builder = ModelBuilder(gravity=gravity)
    for i, (offset, joint) in enumerate(zip(offsets, joints)):
        builder.add_body(
            f"b{i}", parent=f"b{i - 1}" if i else "world", joint=joint, placement=offset, inertia=inertia(rng)
        )
    return builder.build()


def tilted(angle, p):
    c, s = np.cos(angle), np.sin(angle)
    return Transform.from_rotation_translation([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]], p)


@pytest.mark.parametrize(
    "angle", [0.0, 1e-17, 1e-16, 1e-15, 1e-13, 1e-9, 1e-5, 1e-3, 0.04, 0.2, np.pi / 2, np.pi - 1e-9, np.pi]
)
@pytest.mark.parametrize(
    "p", [[0.0, 0.0, 0.0], [0.0, 0.0, 0.7], [0.3, 0.2, 0.0], [0.1, -0.4, 0.5], [0.0, 1e-9, 0.3]]
)
def test_axes_in_every_position_to_each_other(angle, p):
    """Parallel, anti-parallel, coaxial, intersecting and almost so: frames stay near and results exact."""
    z = Revolute((0.0, 0.0, 1.0))
    model = chain(
        [tilted(0.5, [0.1, 0.2, 0.3]), tilted(angle, p), tilted(angle, p)], [z, z, Prismatic((0.0, 0.0, 1.0))]
    )
    same_dynamics(model, 1, 1e-12)
    for body in aligned(model).bodies:
        assert max(abs(x) for x in body.original_frame.p) < 50.0


def test_structural_constants_are_exact():
    """Right angles and shared axes give exact zeros and ones, which fold away."""
    quarter = tilted(np.pi / 2, [0.0, 0.0, 0.4])
    model = chain(
        [Transform.identity(), quarter, quarter], [Revolute((0.0, 0.0, 1.0))] * 3, gravity=(0.0, 0.0, -9.81)
    )
    for body in aligned(model).bodies:
        factors = body.placement.factors if isinstance(body.placement, ScrewChain) else (body.placement,)
        for factor in factors:
            assert isinstance(factor, AxialScrew)
            assert {factor.c, factor.s} <= {0.0, 1.0, -1.0}
    gravity = aligned(model).gravity
    assert (gravity.x, gravity.y, gravity.z) == (0.0, 0.0, -9.81)


def test_fixed_bodies_take_the_frame_of_what_carries_them():
    """A fixed link costs no transform, and its children see through it."""
    rng = np.random.default_rng(3)
    builder = ModelBuilder()
    builder.add_body("plate", parent="world", joint=Fixed(), placement=place(rng), inertia=inertia(rng))
    builder.add_body(
        "arm", parent="plate", joint=Revolute((1.0, 2.0, 3.0)), placement=place(rng), inertia=inertia(rng)
    )
    builder.add_body("flange", parent="arm", joint=Fixed(), placement=place(rng), inertia=inertia(rng))
    builder.add_body(
        "tool", parent="flange", joint=Revolute((0.3, 0.1, 1.0)), placement=place(rng), inertia=inertia(rng)
    )
    model = builder.build()
    same_dynamics(model, 3)
    flange = aligned(model).bodies[2]
    assert np.array_equal(np.array(flange.jcalc([0.1, 0.2]).X.homogeneous(), dtype=float), np.eye(4))


def test_other_joints_keep_their_frames():
    """v of a free or ball joint is expressed in the body's frame, which therefore stays."""
    rng = np.random.default_rng(4)
    builder = ModelBuilder()
    builder.add_body("base", parent="world", joint=Free(), inertia=inertia(rng))
    builder.add_body(
        "hip", parent="base", joint=Revolute((0.0, 1.0, 0.0)), placement=place(rng), inertia=inertia(rng)
    )
    builder.add_body("ball", parent="hip", joint=Spherical(), placement=place(rng), inertia=inertia(rng))
    model = builder.build()
    same_dynamics(model, 4)
    tree = aligned(model)
    for name, index in (("base", 0), ("ball", 2)):
        assert tree.bodies[index].joint is model.body(name).joint
        assert tree.bodies[index].original_frame == Transform.identity()


def test_traced_placements_are_left_alone():
    """A placement that is a run-time parameter has no common normal yet."""
    x = Graph().input("x", 0)
    placement = Transform(rotation_value(), Vec3(x, 0.0, 0.0))
    model = chain([Transform.identity()], [Revolute((0.0, 0.0, 1.0))])
    body = dataclasses.replace(model.bodies[0], placement=placement)
    changed = Model(bodies=[body], gravity=model.gravity)
    assert aligned(changed) is changed
    assert aligned(aligned(model)).bodies[0].name == "b0"


def rotation_value():
    return Transform.from_rotation_translation(rotation(np.random.default_rng(0)).tolist(), [0.0, 0.0, 0.0]).R


def test_massless_body_and_zero_gravity():
    """Nothing divides by mass or by gravity."""
    model = chain(
        [tilted(0.3, [0.1, 0.0, 0.2])] * 2, [Revolute((0.0, 0.0, 1.0))] * 2, gravity=(0.0, 0.0, 0.0)
    )
    light = dataclasses.replace(model.bodies[0], inertia=RigidInertia.zero())
    same_dynamics(Model(bodies=[light, model.bodies[1]], gravity=model.gravity), 2)
