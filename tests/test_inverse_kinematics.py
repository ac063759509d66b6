"""Configurations that bring frames to their targets: poses, positions, weights, limits, loops, batches."""

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms import inverse_kinematics as ik
from dalembert.errors import ArgumentError, ModelError, ShapeError, StateError, UnknownNameError

ARM = da.models.arm6()
TIP = ARM.bodies[-1].name


def states(model, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([model.random_state(rng)[0] for _ in range(count)])


def within_limits(model, q):
    bounds = ik.position_bounds(model)
    assert bounds
    return all(np.all((q[..., b.position] >= b.lower) & (q[..., b.position] <= b.upper)) for b in bounds)


@pytest.fixture(scope="module")
def arm_poses():
    return da.forward_kinematics(ARM, states(ARM, 60))[TIP]


@pytest.fixture(scope="module")
def arm_found(arm_poses):
    return da.kinematics.inverse_kinematics(ARM, {TIP: arm_poses}, ARM.neutral())


def test_poses_that_can_be_reached_are_reached(arm_poses, arm_found):
    """RBDA-4.1-JACOBIAN, RBDA-4.2-GEOMETRY"""
    assert arm_found.converged.all()
    assert arm_found.residual.max() <= 1e-8
    reached = da.forward_kinematics(ARM, arm_found.q)[TIP]
    np.testing.assert_allclose(reached.translation, arm_poses.translation, atol=1e-8)
    np.testing.assert_allclose(reached.rotation, arm_poses.rotation, atol=2e-8)
    assert within_limits(ARM, arm_found.q)


def test_a_sample_alone_is_what_it_is_in_a_batch(arm_poses, arm_found):
    hardest = int(arm_found.iterations.argmax())
    target = (arm_poses.rotation[hardest], arm_poses.translation[hardest])
    alone = da.kinematics.inverse_kinematics(ARM, {TIP: target}, ARM.neutral())
    np.testing.assert_array_equal(alone.q, arm_found.q[hardest])
    assert alone.iterations == arm_found.iterations[hardest]
    assert isinstance(alone.converged, np.bool_)
    assert alone.residual.ndim == 0


def test_forms_of_a_target_mean_the_same(arm_poses):
    R, p = arm_poses.rotation[0], arm_poses.translation[0]
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R, p
    placement = da.Transform.from_rotation_translation(R.tolist(), p.tolist())
    found = [
        da.kinematics.inverse_kinematics(ARM, {TIP: form}, ARM.neutral()).q for form in ((R, p), X, placement)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], found[2], atol=1e-9)


def test_batches_broadcast(arm_poses):
    place = arm_poses.translation[:4].reshape(2, 2, 3)
    found = da.kinematics.inverse_kinematics(ARM, {TIP: place}, np.tile(ARM.neutral(), (2, 1)))
    assert found.q.shape == (2, 2, 6)
    assert found.converged.shape == found.residual.shape == found.iterations.shape == (2, 2)
    reached = da.forward_kinematics(ARM, found.q)[TIP].translation
    np.testing.assert_allclose(reached, place, atol=1e-8)
    empty = da.kinematics.inverse_kinematics(ARM, {TIP: np.zeros((0, 3))}, ARM.neutral())
    assert empty.q.shape == (0, 6)


def test_several_frames_of_a_humanoid_are_placed_at_once():
    """RBDA-4.1-JACOBIAN: hands and feet, with quaternions and limits, a free root among the freedoms."""
    model = da.models.humanoid()
    names = ("left_palm", "right_palm", "left_sole", "right_sole")
    poses = da.forward_kinematics(model, states(model, 40, seed=5))
    found = da.kinematics.inverse_kinematics(model, {name: poses[name] for name in names}, model.neutral())
    assert found.converged.all()
    reached = da.forward_kinematics(model, found.q)
    for name in names:
        np.testing.assert_allclose(reached[name].translation, poses[name].translation, atol=1e-8)
        np.testing.assert_allclose(reached[name].rotation, poses[name].rotation, atol=2e-8)
    assert within_limits(model, found.q)
    np.testing.assert_allclose(np.linalg.norm(found.q[:, 3:7], axis=1), 1.0, atol=1e-12)


def planar_arm(**options):
    """Three links of 1 m in a plane, one freedom more than a place in it needs."""
    builder = da.ModelBuilder()
    for k in range(3):
        at = da.Transform.from_rotation_translation(np.eye(3).tolist(), [1.0 if k else 0.0, 0.0, 0.0])
        builder.add_body(
            f"link{k}", f"link{k - 1}" if k else "world", da.Revolute((0, 0, 1)), placement=at, **options
        )
    builder.add_frame(
        "tip", "link2", da.Transform.from_rotation_translation(np.eye(3).tolist(), [1.0, 0.0, 0.0])
    )
    return builder.build()


def test_limits_are_kept_where_they_are_in_the_way():
    tight = planar_arm(limits=da.Limits(-0.5, 0.5))
    q = np.random.default_rng(2).uniform(-0.5, 0.5, (50, 3))
    q[:25, 1:] = np.sign(q[:25, 1:]) * 0.5  # on the edge of what can be reached
    places = da.forward_kinematics(tight, q)["tip"].translation
    found = da.kinematics.inverse_kinematics(tight, {"tip": places}, np.zeros(3))
    assert found.converged.mean() >= 0.98
    assert within_limits(tight, found.q)
    folded = np.tile([0.2, 0.0, 0.0], (1, 1))
    assert not da.kinematics.inverse_kinematics(tight, {"tip": folded}, np.zeros(3)).converged[0]
    free = da.kinematics.inverse_kinematics(tight, {"tip": folded}, [0.1, 0.1, 0.1], limits=False)
    assert free.converged[0]
    assert np.abs(free.q).max() > 0.5


def test_places_out_of_reach_give_the_nearest_one_and_no_error():
    model = planar_arm()
    found = da.kinematics.inverse_kinematics(model, {"tip": [3.0, 4.0, 0.0]}, [0.3, 0.2, 0.1], restarts=1)
    assert not found.converged
    np.testing.assert_allclose(found.residual, 2.0, atol=1e-6)
    np.testing.assert_allclose(
        da.forward_kinematics(model, found.q)["tip"].translation, [1.8, 2.4, 0.0], atol=1e-3
    )


def test_weights_decide_between_targets_that_contradict():
    """The least squares of two places for one point: their mean, weighted by squares."""
    model = planar_arm()
    targets = {"tip": [1.0, 1.0, 0.0], "link2": [5.0, 5.0, 0.0]}
    even = da.kinematics.inverse_kinematics(model, targets, [0.3, 0.2, 0.1], restarts=0, max_iterations=300)
    near = da.kinematics.inverse_kinematics(
        model, targets, [0.3, 0.2, 0.1], weights={"tip": 100.0}, restarts=0, max_iterations=300
    )
    errors = [
        np.linalg.norm(da.forward_kinematics(model, found.q)["tip"].translation - [1.0, 1.0, 0.0])
        for found in (even, near)
    ]
    assert errors[1] < 1e-2 < errors[0]


def test_weight_zero_leaves_a_part_open(arm_poses):
    pose = (arm_poses.rotation[0], arm_poses.translation[0])
    place = da.kinematics.inverse_kinematics(ARM, {TIP: pose}, ARM.neutral(), weights={TIP: (1.0, 0.0)})
    np.testing.assert_array_equal(
        place.q, da.kinematics.inverse_kinematics(ARM, {TIP: pose[1]}, ARM.neutral()).q
    )
    turn = da.kinematics.inverse_kinematics(ARM, {TIP: (pose[0], None)}, ARM.neutral())
    assert turn.converged
    np.testing.assert_allclose(da.forward_kinematics(ARM, turn.q)[TIP].rotation, pose[0], atol=2e-8)


def test_the_freedom_that_is_left_goes_to_the_posture():
    """q is a stationary point of |q - posture| among the solutions: the difference has no part along them."""
    model = planar_arm()
    posture = np.array([0.9, -1.1, 1.3])
    for seed in range(5):
        place = da.forward_kinematics(model, states(model, 1, seed)[0])["tip"].translation
        found = da.kinematics.inverse_kinematics(model, {"tip": place}, [0.3, 0.2, 0.1], posture=posture)
        assert found.converged
        J = da.jacobian(model, found.q, "tip")[3:5]
        along = np.linalg.svd(J)[2][2]
        way = np.remainder(found.q - posture + np.pi, 2.0 * np.pi) - np.pi
        if np.allclose(way, found.q - posture):
            np.testing.assert_allclose(along @ way, 0.0, atol=1e-3)


def test_loops_stay_closed():
    """RBDA-8.3-DELTA: the coupler of a four-bar linkage is led along its own path, and beyond it."""
    model = da.models.four_bar()
    start = model.neutral()
    q = np.array(
        [
            da.constraints.close_loops(model, [angle, 0.0, 0.0], hold=["crank_pivot"])
            for angle in (0.3, 0.6, 0.9)
        ]
    )
    name = model.bodies[1].name
    places = da.forward_kinematics(model, q)[name].translation
    found = da.kinematics.inverse_kinematics(model, {name: places}, start)
    assert found.converged.all()
    assert found.iterations.max() < 20
    assert np.abs(da.constraints.constraint_error(model, found.q)).max() < 1e-8
    away = da.kinematics.inverse_kinematics(model, {name: places[0] + [0.0, 0.05, 0.05]}, start, restarts=2)
    assert not away.converged
    assert np.abs(da.constraints.constraint_error(model, away.q)).max() < 1e-6


def test_joints_that_follow_others_bound_them():
    """RBDA-9.6-GEARS"""
    builder = da.ModelBuilder()
    builder.add_body("a", "world", da.Revolute((0, 0, 1)), limits=da.Limits(-2.0, 2.0))
    at = da.Transform.from_rotation_translation(np.eye(3).tolist(), [1.0, 0.0, 0.0])
    builder.add_body("b", "a", da.Revolute((0, 0, 1)), placement=at, limits=da.Limits(-0.5, 1.0))
    builder.add_coupling("gear", {"a": 2.0, "b": 1.0})  # b = -2 a
    model = builder.build()
    (bound,) = ik.position_bounds(model)
    np.testing.assert_allclose(bound[2:], (-0.5, 0.25))


def test_limits_that_cannot_be_kept_are_refused_by_name():
    builder = da.ModelBuilder()
    builder.add_body(
        "a", "world", da.Free(), "root", limits=([-1.0] * 3 + [-np.inf] * 4, [1.0] * 3 + [np.inf] * 4)
    )
    model = builder.build()
    with pytest.raises(ModelError, match=r'joint "root".*limits=False'):
        da.kinematics.inverse_kinematics(model, {"a": [0.0, 0.0, 1.0]}, model.neutral())
    assert da.kinematics.inverse_kinematics(
        model, {"a": [0.0, 0.0, 3.0]}, model.neutral(), limits=False
    ).converged


def test_numbers_of_any_kind_are_taken(arm_poses):
    single = [x[0].astype(np.float32) for x in (arm_poses.rotation, arm_poses.translation)]
    found = da.kinematics.inverse_kinematics(ARM, {TIP: tuple(single)}, np.zeros(6, dtype=np.float32))
    assert found.converged
    assert found.q.dtype == np.float64
    listed = da.kinematics.inverse_kinematics(ARM, {TIP: single[1].astype(float).tolist()}, [0] * 6)
    assert listed.converged


def test_samples_that_are_no_numbers_stay_alone(arm_poses):
    places = arm_poses.translation[:3].copy()
    places[1, 0] = np.nan
    found = da.kinematics.inverse_kinematics(ARM, {TIP: places}, ARM.neutral())
    np.testing.assert_array_equal(found.converged, [True, False, True])
    assert np.isnan(found.residual[1])


@pytest.mark.parametrize(
    ("error", "match", "targets", "options"),
    [
        (UnknownNameError, "hand", {"hand": [0.0, 0.0, 1.0]}, {}),
        (ArgumentError, "mapping by frame", {}, {}),
        (ArgumentError, "mapping by frame", [0.0, 0.0, 1.0], {}),
        (ShapeError, r"shape \(2,\)", {TIP: [0.0, 1.0]}, {}),
        (StateError, "orthonormal", {TIP: (2.0 * np.eye(3), None)}, {}),
        (StateError, "right-handed", {TIP: (-np.eye(3), None)}, {}),
        (StateError, "last column", {TIP: np.eye(4) + np.outer([0, 0, 0, 1], [0.5, 0, 0, 0])}, {}),
        (ShapeError, "round brackets", {TIP: [np.eye(3).tolist(), [0.5, 0.0, 0.5]]}, {}),
        (ShapeError, "differ in shape", {TIP: [[0.0, 0.0, 1.0], [0.0, 1.0]]}, {}),
        (ArgumentError, "prescribes nothing", {TIP: (None, None)}, {}),
        (ArgumentError, "fixed in the world", {"world": [0.0, 0.0, 1.0]}, {}),
        (ArgumentError, "weight", {TIP: [0.0, 0.0, 1.0]}, {"weights": {TIP: -1.0}}),
        (ArgumentError, "weight", {TIP: [0.0, 0.0, 1.0]}, {"weights": {TIP: "much"}}),
        (UnknownNameError, "nose", {TIP: [0.0, 0.0, 1.0]}, {"weights": {"nose": 1.0}}),
        (ArgumentError, "tolerance", {TIP: [0.0, 0.0, 1.0]}, {"tolerance": 0.0}),
        (ArgumentError, "max_iterations", {TIP: [0.0, 0.0, 1.0]}, {"max_iterations": 0}),
        (ArgumentError, "limits is", {TIP: [0.0, 0.0, 1.0]}, {"limits": (-1.0, 1.0)}),
        (ArgumentError, "restarts", {TIP: [0.0, 0.0, 1.0]}, {"restarts": -1}),
        (ShapeError, "broadcast", {TIP: np.zeros((2, 3))}, {"posture": np.zeros((3, 6))}),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(error, match, targets, options):
    with pytest.raises(error, match=match):
        da.kinematics.inverse_kinematics(ARM, targets, ARM.neutral(), **options)


def test_quaternions_off_unit_norm_are_refused():
    model = da.models.humanoid()
    with pytest.raises(StateError, match=r"q0\[3:7\]"):
        da.kinematics.inverse_kinematics(model, {"left_palm": [0.0, 0.0, 1.0]}, np.zeros(model.nq))
