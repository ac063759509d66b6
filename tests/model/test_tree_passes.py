"""The outward and inward passes, and geometry written with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalembert.model import Model, ModelBuilder
from dalembert.model.body import Body
from dalembert.model.joints import Prismatic, Revolute, Spherical, Universal
from dalembert.models import random_tree
from dalembert.spatial import Motion, Transform, Vec3


def poses(model: Model, q: Any) -> list[np.ndarray]:
    """Homogeneous matrices of all bodies in the world, by an outward pass."""

    def step(body: Body, X: Transform) -> tuple[Transform, Transform]:
        here = X @ body.link_transform(q)
        return here, here

    return [np.array(X.homogeneous()) for X in model.outward(step, Transform.identity())]


def velocities(model: Model, q: Any, v: Any) -> list[Motion]:
    """v_i = X v_lambda(i) + v_J, in body coordinates (Example 4.1)."""

    def step(body: Body, v_parent: Motion) -> tuple[Motion, Motion]:
        joint = body.jcalc(q, v)
        here = joint.X.apply(v_parent) + joint.v_J
        return here, here

    return list(model.outward(step, Motion(Vec3.zero(), Vec3.zero())))


def six(m: Motion) -> np.ndarray:
    return np.array([*m.angular, *m.linear])


@pytest.mark.parametrize("seed", range(4))
def test_poses_are_products_of_homogeneous_matrices(seed: int) -> None:
    """RBDA-4.2-GEOMETRY: i_X_0 as a chain of X_J X_T, against a product taken body by body."""
    model = random_tree(seed, bodies=20)
    q = model.random_state(seed)[0].tolist()
    found = poses(model, q)
    for body in model.bodies:
        expected = np.eye(4)
        for i in sorted(model.support(body)):
            link = model.bodies[i]
            X_J = link.joint.transform(link.own_q(q))
            expected = expected @ np.array(link.placement.homogeneous()) @ np.array(X_J.homogeneous())
        np.testing.assert_allclose(found[body.index], expected, atol=1e-12)


def test_motion_transforms_are_those_of_the_homogeneous_matrices() -> None:
    """RBDA-4.2-GEOMETRY: the product of link transforms equals the Plücker matrix of the pose."""
    model = random_tree(5, bodies=12, branching=0.0)
    q = model.random_state(5)[0].tolist()
    product = np.eye(6)
    for body in model.bodies:
        product = np.array(body.link_transform(q).motion_matrix()) @ product
    T = poses(model, q)[-1]
    E, r = T[:3, :3].T, T[:3, 3]
    skew = np.cross(np.eye(3), r)
    expected = np.block([[E, np.zeros((3, 3))], [-E @ skew, E]])
    np.testing.assert_allclose(product, expected, atol=1e-12)


def test_locating_frames_number_bodies_plus_two_for_each_loop() -> None:
    """RBDA-4.2-GEOMETRY: N_B + 2 N_L constant transforms."""
    from dalembert.models import four_bar

    model = four_bar()
    placements = [body.placement for body in model.bodies]
    for loop in model.loops:
        placements += [loop.placement_predecessor, loop.placement_successor]
    assert len(placements) == 3 + 2 * 1
    # Both ends of the loop joint meet at the configuration in which the linkage is assembled.
    T = poses(model, model.neutral().tolist())
    loop = model.loops["rocker_pin"]
    ends = [
        T[loop.predecessor] @ np.array(loop.placement_predecessor.homogeneous()),
        T[loop.successor] @ np.array(loop.placement_successor.homogeneous()),
    ]
    np.testing.assert_allclose(ends[0][:3, 3], ends[1][:3, 3], atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_body_jacobian_times_rates_is_the_recursive_velocity(seed: int) -> None:
    """RBDA-4.1-JACOBIAN: J_i = [eps_i1 S_1 … eps_iN S_N] in world and body coordinates (Eq. 4.6)."""
    model = random_tree(seed, bodies=15)
    q, v = (x.tolist() for x in model.random_state(seed))
    recursive = velocities(model, q, v)
    placed = [Transform.from_rotation_translation(T[:3, :3], T[:3, 3]) for T in poses(model, q)]
    for i in range(len(model.bodies)):
        world, own = np.zeros((6, model.nv)), np.zeros((6, model.nv))
        for body in model.bodies:
            if body.index in model.support(i):
                S_world = [placed[body.index].inverse_apply(s) for s in body.jcalc(q).S]
                world[:, body.v_slice] = np.array([six(s) for s in S_world]).reshape(-1, 6).T
                here = [six(placed[i].apply(s)) for s in S_world]
                own[:, body.v_slice] = np.array(here).reshape(-1, 6).T
        np.testing.assert_allclose(own @ v, six(recursive[i]), atol=1e-11)
        np.testing.assert_allclose(world @ v, six(placed[i].inverse_apply(recursive[i])), atol=1e-11)


def test_velocities_are_the_rates_of_the_poses() -> None:
    """RBDA-4.1-JACOBIAN, LJ-5.1-TREE: Cartesian from generalized state, against differences along
    integrate.
    """
    from dalembert.model import configuration

    model = random_tree(
        7, bodies=12, joints=["revolute", "free", "spherical", "planar", "universal", "helical"]
    )
    q, v = (x.tolist() for x in model.random_state(7))
    h = 1e-6
    ahead = poses(model, configuration.integrate(model, q, [h * x for x in v]))
    behind = poses(model, configuration.integrate(model, q, [-h * x for x in v]))
    for T, T1, T0, m in zip(poses(model, q), ahead, behind, velocities(model, q, v)):
        rate = (T1 - T0) / (2.0 * h)
        spin = T[:3, :3].T @ rate[:3, :3]
        np.testing.assert_allclose([spin[2, 1], spin[0, 2], spin[1, 0]], list(m.angular), atol=1e-7)
        np.testing.assert_allclose(T[:3, :3].T @ rate[:3, 3], list(m.linear), atol=1e-7)


def test_figure_1_system_of_lagrangian_joints() -> None:
    """LJ-5.1-TREE: p(4) = 2, p(1,4) = {1, 2, 4}, n = (2, 3, 1, 1), 7 freedoms; R0_k = R0_p(k) R_k."""
    builder = ModelBuilder()
    builder.add_body("link1", "world", Universal())
    builder.add_body(
        "link2", "link1", Spherical(), placement=Transform.from_rotation_translation(np.eye(3), (0, 0, 1))
    )
    builder.add_body("link3", "link2", Revolute((0, 1, 0)))
    builder.add_body("link4", "link2", Revolute((1, 0, 0)))
    model = builder.build()
    assert model.parents[3] + 1 == 2
    assert {i + 1 for i in model.support(model.body("link4"))} == {1, 2, 4}
    assert [joint.nv for joint in model.joints] == [2, 3, 1, 1]
    assert model.nv == 7
    q, v = (x.tolist() for x in model.random_state(1))
    R0 = [T[:3, :3] for T in poses(model, q)]
    for body in model.bodies[1:]:
        R_k = np.array(body.link_transform(q).R.to_list())
        np.testing.assert_allclose(R0[body.index], R0[body.parent] @ R_k, atol=1e-14)
    # Back from the Cartesian to the generalized state: relative rotations and velocities return q and v.
    m = velocities(model, q, v)
    for body in model.bodies:
        parent = Motion(Vec3.zero(), Vec3.zero()) if body.parent < 0 else m[body.parent]
        S = np.array([six(s) for s in body.jcalc(q).S]).T
        v_J = six(m[body.index] - body.link_transform(q).apply(parent))
        np.testing.assert_allclose(np.linalg.lstsq(S, v_J, rcond=None)[0], v[body.v_slice], atol=1e-12)


def test_inward_sums_over_subtrees() -> None:
    """RBDA-4.1-ARRAYS: what the inward pass gathers is the sum over nu(i), for single values and for
    tuples.
    """
    model = random_tree(8, bodies=25)
    weight = np.random.default_rng(8).standard_normal((25, 2)).tolist()

    def step(body: Body, below: tuple[float, list[float]]) -> tuple[tuple[float, list[float]], float]:
        a, b = weight[body.index]
        total = (below[0] + a, [below[1][0] + b])
        return total, total[0]

    owns, world = model.inward(step, (0.0, [0.0]))
    for body in model.bodies:
        assert owns[body] == pytest.approx(sum(weight[i][0] for i in model.subtree(body)), rel=1e-12)
    assert world[0] == pytest.approx(sum(a for a, _ in weight), rel=1e-12)
    assert world[1][0] == pytest.approx(sum(b for _, b in weight), rel=1e-12)


def test_a_leaf_gathers_zero_and_an_only_child_is_handed_on_unchanged() -> None:
    """Structure reaches the folder: nothing is added to the literal zero."""
    model = random_tree(9, bodies=3, branching=0.0)
    seen: list[object] = []

    def step(body: Body, gathered: object) -> tuple[object, None]:
        seen.append(gathered)
        return f"from {body.name}", None

    _, world = model.inward(step, "zero")
    assert seen == ["zero", "from body2", "from body1"]
    assert world == "from body0"


def test_collect_puts_joint_values_in_v_order() -> None:
    """RBDA-4.6-MODEL: offsets of the joints in the stacked vectors."""
    model = random_tree(10, bodies=18)
    v = list(range(model.nv))
    assert model.collect([body.own_v(v) for body in model.bodies]) == v
    q = list(range(model.nq))
    assert [x for body in model.bodies for x in body.own_q(q)] == q


def test_axial_placements_stay_factored() -> None:
    """Two axial screws cost less than one general transform, so that jcalc keeps them apart."""
    from dalembert.spatial import AxialScrew, ScrewChain, scrx

    builder = ModelBuilder()
    builder.add_body("a", "world", Revolute((0, 0, 1)), placement=scrx(0.3, 0.2))
    builder.add_body("b", "a", Prismatic((0, 0, 1)), placement=ScrewChain((scrx(0.1, 0.2), scrx(0.3, 0.0))))
    model = builder.build()
    X = [body.jcalc([0.4, 0.5], [0.1, 0.2]).X for body in model.bodies]
    assert [type(x) for x in X] == [ScrewChain, ScrewChain]
    assert [len(x.factors) for x in X] == [2, 3]
    assert all(isinstance(factor, AxialScrew) for x in X for factor in x.factors)
    for body, x, q in zip(model.bodies, X, (0.4, 0.5)):
        expected = body.placement.as_transform() @ body.joint.transform([q])
        np.testing.assert_allclose(x.as_transform().leaves(), expected.leaves(), atol=1e-15)
