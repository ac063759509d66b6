"""One damped step toward the targets of frames: errors, their Jacobians, limits and loops."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from tests.conformance import models

import dalembert as da
from dalembert.algorithms import inverse_kinematics as ik
from dalembert.errors import ModelError

PLACED = np.array([[0.0, 0.6, -0.8], [1.0, 0.0, 0.0], [0.0, -0.8, -0.6]])


def errors_at(model, q, target):
    found = ik.frame_errors(model, q.tolist(), [target], [PLACED.tolist()], [[0.3, 0.2, 0.1]])
    return np.array([e.to_list() for e in found.errors]), np.array(found.J)


def test_errors_are_rotation_vectors_and_distances():
    """RBDA-4.2-GEOMETRY: exp of the error, applied in the world, leads from the target to the frame."""
    model = models.branched()
    q = model.random_state(3)[0]
    name = model.bodies[-1].name
    (turn, away), _ = errors_at(model, q, ik.FrameTarget(name, True, True))
    pose = da.forward_kinematics(model, q)[name]
    exp = np.array(da.spatial.exponential.so3_exp(da.spatial.Vec3(*turn)).to_list())
    np.testing.assert_allclose(exp @ PLACED, pose.rotation, atol=1e-12)
    np.testing.assert_allclose(away, pose.translation - [0.3, 0.2, 0.1], atol=1e-12)


@pytest.mark.parametrize("make", [models.branched, models.every_joint, models.geared])
def test_jacobians_give_the_exact_gradient_of_squared_errors(make):
    """RBDA-4.1-JACOBIAN: by central differences along the configuration manifold."""
    model = make()
    q = model.random_state(5)[0]
    target = ik.FrameTarget(model.bodies[-1].name, True, True)
    e, J = errors_at(model, q, target)
    gradient = np.einsum("pi,pij->j", e, J)
    for j, unit in enumerate(np.eye(model.nv)):
        ends = [
            0.5 * np.sum(errors_at(model, da.integrate(model, q, h * unit), target)[0] ** 2)
            for h in (1e-5, -1e-5)
        ]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, gradient[j], atol=1e-7)


def arm_of_four():
    builder = da.ModelBuilder()
    for k in range(4):
        at = da.Transform.from_rotation_translation(np.eye(3).tolist(), [0.5 if k else 0.0, 0.1 * k, 0.0])
        axis = ((0, 0, 1), (0, 1, 0), (0, 0, 1), (1, 0, 0))[k]
        builder.add_body(f"link{k}", f"link{k - 1}" if k else "world", da.Revolute(axis), placement=at)
    return builder.build()


@pytest.mark.parametrize("turned", [False, True])
def test_a_step_that_meets_limits_is_the_bounded_least_squares(turned):
    """Coordinates that stop at a limit leave their share to the others: against SciPy's bounded solver, with
    fewer errors than coordinates and with more.
    """
    model = arm_of_four()
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(20):
        q = rng.uniform(-1.0, 1.0, 4)
        pose = da.forward_kinematics(model, q + rng.uniform(-0.2, 0.2, 4))["link3"]
        target = ik.FrameTarget("link3", turned, True)
        data = ([pose.rotation.tolist()] * turned, [pose.translation.tolist()])
        found = ik.frame_errors(model, q.tolist(), [target], *data)
        r, J = np.concatenate([e.to_list() for e in found.errors]), np.concatenate(found.J)
        mu = 0.5 * r @ r + 1e-11 * np.sum(J**2)
        low, high = q - rng.uniform(0.02, 0.3, 4), q + rng.uniform(0.02, 0.3, 4)
        exact = lsq_linear(
            np.vstack([J, np.sqrt(mu) * np.eye(4)]), np.concatenate([-r, np.zeros(4)]),
            bounds=(low - q, high - q), method="bvls", tol=1e-14,
        )  # fmt: skip
        bounds = [ik.Bound(i, i, low[i], high[i]) for i in range(4)]
        step = ik.damped_step(
            model, q.tolist(), *data, [1.0] * (1 + turned), 0.5, targets=[target], bounds=bounds
        )
        loose = -J.T @ np.linalg.solve(J @ J.T + mu * np.eye(len(r)), r)
        beyond = (loose < low - q) | (high - q < loose)
        if np.sum(beyond) == 1 and np.array_equal(exact.active_mask != 0, beyond):
            held += 1
            np.testing.assert_allclose(step.q, q + exact.x, atol=1e-9)
    assert held >= 5


def test_many_errors_cost_what_they_are_and_not_their_cube():
    """Beyond the number of coordinates each further target adds its own errors and Jacobian alone."""
    model = arm_of_four()

    def operations(names):
        targets = [ik.FrameTarget(name, True, True) for name in names]
        shapes = {"R": (len(names), 3, 3), "p": (len(names), 3), "w": (2 * len(names),), "mu": ()}

        def step(model, q, R, p, w, mu):
            return tuple(ik.damped_step(model, q, R, p, w, mu, targets=targets))

        return da.compile(step, model, inputs=shapes).operation_count.total

    one, two, four = (operations(names) for names in (["link3"], ["link3"] * 2, ["link3"] * 4))
    assert four - two < 2.2 * (two - one)


def test_a_step_closes_loops_to_first_order_and_no_further_from_targets():
    """RBDA-8.3-DELTA: K dq = -c holds exactly, whatever the targets ask for."""
    model = da.models.four_bar()
    q = np.array([0.3, -0.35, -0.05])
    name = model.bodies[1].name
    step = ik.damped_step(
        model, q.tolist(), [], [[0.4, 0.0, 0.3]], [1.0], 0.1, targets=[ik.FrameTarget(name, False, True)]
    )
    closing = da.algorithms.constraints.closing_equations(model, q.tolist())
    dq = np.array(step.q) - q
    K, c = np.array(closing.K, float), np.array(closing.residual, float)
    assert np.abs(c).max() > 1e-3
    np.testing.assert_allclose(K @ dq, -c, atol=1e-12)


def hinges(*more):
    """Four hinges or more about different axes, half a metre apart."""
    builder = da.ModelBuilder()
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 0, 1), (1, 0, 0), *more)):
        at = da.Transform.from_rotation_translation(np.eye(3).tolist(), [0.5 if k else 0.0, 0.1 * k, 0.0])
        builder.add_body(f"link{k}", f"link{k - 1}" if k else "world", da.Revolute(axis), placement=at)
    return builder.build()


def test_a_step_reports_where_it_starts():
    """RBDA-8.3-DELTA: merit, its gradient by differences, the greatest error, and the length of the step."""
    model = da.models.four_bar()
    q, place = np.array([0.3, -0.35, -0.05]), np.array([0.4, 0.0, 0.3])
    target = ik.FrameTarget(model.bodies[1].name, False, True)

    def step(q):
        return ik.damped_step(model, q.tolist(), [], [place.tolist()], [1.5], 0.1, targets=[target])

    found = step(q)
    away = da.forward_kinematics(model, q)[target.frame].translation - place
    closing = da.algorithms.constraints.closing_equations(model, q.tolist())
    c = np.array(closing.residual, float)
    np.testing.assert_allclose(found.merit, 1.5**2 * away @ away + 10.0 * c @ c, rtol=1e-12)
    gap = np.abs(np.array(closing.gap, float)).max()
    np.testing.assert_allclose(found.error, max(np.linalg.norm(away), gap), rtol=1e-12)
    slopes = [(step(q + h).merit - step(q - h).merit) / 4e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(found.slope, np.sum(np.square(slopes)), rtol=1e-5)
    np.testing.assert_allclose(found.length, np.abs(np.array(found.q) - q).max(), rtol=1e-12)


def test_the_greatest_error_may_be_that_of_a_loop():
    """RBDA-8.3-DELTA"""
    model = da.models.four_bar()
    q = np.array([0.3, 0.5, -0.05])
    name = model.bodies[0].name
    place = da.forward_kinematics(model, q)[name].translation.tolist()
    targets = [ik.FrameTarget(name, False, True)]
    found = ik.damped_step(model, q.tolist(), [], [place], [1.0], 0.1, targets=targets)
    gap = np.abs(np.array(da.algorithms.constraints.closing_equations(model, q.tolist()).gap, float)).max()
    assert gap > 0.1
    np.testing.assert_allclose(found.error, gap, rtol=1e-12)


def test_long_steps_are_shortened():
    """No coordinate moves by more than 0.8, and all by the same part of the step."""
    model = hinges()
    target = ik.FrameTarget("link3", False, True)
    given = ([], [[-0.9, 0.6, 0.2]], [1.0])
    long = ik.damped_step(model, [0.1, 0.0, 0.1, 0.2], *given, 1e-9, targets=[target])
    assert long.length > 0.8
    moved = np.array(long.q) - [0.1, 0.0, 0.1, 0.2]
    np.testing.assert_allclose(np.abs(moved).max(), 0.8, rtol=1e-12)


def test_a_coordinate_at_its_limit_moves_away_from_it_alone():
    """What the descent would take beyond is held and counts in no slope; the opposite limit holds nothing."""
    model = hinges()
    q = np.array([0.3, -0.2, 0.4, 0.1])
    target = ik.FrameTarget("link3", False, True)
    given = ([], [[0.6, 0.4, 0.5]], [1.0], 0.1)
    free = ik.damped_step(model, q.tolist(), *given, targets=[target])
    (away,), (J,) = ik.frame_errors(model, q.tolist(), [target], *given[:2])
    gradient = np.array(away.to_list()) @ np.array(J)
    np.testing.assert_allclose(free.slope, gradient @ gradient, rtol=1e-12)
    k = int(np.argmax(np.abs(gradient)))
    ends = [(q[k], 9.0), (-9.0, q[k])]
    held, loose = ends if gradient[k] > 0.0 else ends[::-1]
    stopped = ik.damped_step(model, q.tolist(), *given, targets=[target], bounds=[ik.Bound(k, k, *held)])
    assert stopped.q[k] == q[k]
    np.testing.assert_allclose(stopped.slope, gradient @ gradient - gradient[k] ** 2, rtol=1e-12)
    same = ik.damped_step(model, q.tolist(), *given, targets=[target], bounds=[ik.Bound(k, k, *loose)])
    np.testing.assert_allclose(same.slope, free.slope, rtol=1e-12)


def test_a_step_to_a_posture_leaves_targets_alone():
    """z without its part along J: |dq - z| is least where J dq = 0."""
    model = hinges((0, 1, 0), (0, 0, 1))
    q, posture = np.array([0.3, -0.2, 0.4, 0.1, 0.5, 0.2]), np.array([0.4, 0.1, 0.2, -0.3, 0.9, 0.4])
    target = ik.FrameTarget("link5", False, True)
    place = [da.forward_kinematics(model, q)["link5"].translation.tolist()]
    J = np.array(ik.frame_errors(model, q.tolist(), [target], [], place).J[0])
    found = ik.damped_step(model, q.tolist(), [], place, [1.0], 0.1, posture.tolist(), 0.5, targets=[target])
    z = 0.5 * (posture - q)
    expected = z - np.linalg.pinv(J, rcond=1e-9) @ (J @ z)
    np.testing.assert_allclose(np.array(found.q) - q, expected, atol=1e-9)
    k = int(np.argmax(expected * np.any(J, axis=0)))
    assert expected[k] > 0.01
    near = [(np.array(place[0]) - 1e-12 * J[:, k]).tolist()]  # rounding, that would hold coordinate k
    found = ik.damped_step(
        model, q.tolist(), [], near, [1.0], 0.1, posture.tolist(), 0.5,
        targets=[target], bounds=[ik.Bound(k, k, q[k], 9.0)],
    )  # fmt: skip
    np.testing.assert_allclose(np.array(found.q) - q, expected, atol=1e-9)


@pytest.mark.parametrize(("own", "expected"), [((-0.2, 2.0), (-0.2, 0.35)), ((-2.0, 0.1), (-0.4, 0.1))])
def test_bounds_of_a_joint_and_of_one_that_follows_it_meet(own, expected):
    """RBDA-9.6-GEARS: b = 0.2 - 2 a within [-0.5, 1.0]."""
    builder = da.ModelBuilder()
    builder.add_body("a", "world", da.Revolute((0, 0, 1)), limits=da.Limits(*own))
    builder.add_body("b", "a", da.Revolute((0, 0, 1)), limits=da.Limits(-0.5, 1.0))
    builder.add_coupling("gear", {"a": 2.0, "b": 1.0}, offset=-0.2, dependent="b")
    model = builder.build()
    ends = [model.expansion()[0][1][0] * a + model.expansion()[1][1] for a in (0.0, 0.1)]
    np.testing.assert_allclose(ends, [0.2, 0.0])
    (bound,) = ik.position_bounds(model)
    np.testing.assert_allclose(bound[2:], expected)


def test_bounds_that_leave_nothing_are_refused():
    """RBDA-9.6-GEARS"""
    builder = da.ModelBuilder()
    builder.add_body("a", "world", da.Revolute((0, 0, 1)), limits=da.Limits(1.0, 2.0))
    builder.add_body("b", "a", da.Revolute((0, 0, 1)), limits=da.Limits(-0.5, 1.0))
    builder.add_coupling("gear", {"a": 2.0, "b": 1.0}, dependent="b")
    with pytest.raises(ModelError, match='"b" and the joint that it follows have no position'):
        ik.position_bounds(builder.build())


def test_rows_of_a_loop_that_depend_on_others_but_for_rounding_are_left_out():
    """RBDA-8.10-OVERCON: a planar linkage in a tilted plane, where no row is zero by structure."""
    flat = da.models.four_bar()
    tilt = da.Transform.from_rotation_translation(PLACED.tolist(), [0.0, 0.0, 0.0]) @ da.Transform(
        da.spatial.rotations.rotation_about_axis(0, 0.4), da.spatial.Vec3(0.1, 0.2, 0.3)
    )
    builder = da.ModelBuilder()
    for body in flat.bodies:
        root = body.parent < 0
        builder.add_body(
            body.name,
            "world" if root else flat.bodies[body.parent].name,
            body.joint,
            placement=tilt @ body.placement.as_transform() if root else body.placement,
            inertia=body.inertia,
        )
    loop = flat.loops[0]
    ends = [flat.bodies[k].name if k >= 0 else "world" for k in (loop.predecessor, loop.successor)]
    places = [x.as_transform() for x in (loop.placement_predecessor, loop.placement_successor)]
    places = [tilt @ x if end == "world" else x for x, end in zip(places, ends)]
    builder.add_loop("tilted", *ends, loop.joint, *places)
    model, q = builder.build(), [0.3, -0.35, -0.05]
    name = model.bodies[1].name
    place = np.array([0.4, 0.0, 0.3])
    there = np.array(tilt.transform_point(da.spatial.Vec3(*place)).to_list())
    steps = [
        ik.damped_step(m, q, [], [x.tolist()], [1.0], 0.1, targets=[ik.FrameTarget(name, False, True)])
        for m, x in ((flat, place), (model, there))
    ]
    np.testing.assert_allclose(steps[1].q, steps[0].q, atol=1e-9)
