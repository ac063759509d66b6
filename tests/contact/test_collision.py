"""Contact points by loops over pairs of each kind: those of all pairs one by one, wherever they are near."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, run

import dalembert as da
from dalembert import scalar
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.codegen import compile_program
from dalembert.contact.collision import MAX_APPROACH_SPEED, Scene
from dalembert.contact.narrow_phase import nearest_point
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP
from dalembert.contact.pairs import contact_points, pairs_of, point_names, poses_of
from dalembert.model.shapes import Box, ConvexMesh, Ellipsoid, HeightField
from dalembert.model.tree import PerBody
from dalembert.simulation import step_plan
from dalembert.spatial import Motion, Vec3
from dalembert.tracing import ArrayArgument, trace
from dalembert.tracing.graph import check_size

DT = 0.005
REACH = MAX_APPROACH_SPEED * DT


def sphere_points(count: int, radii: tuple[float, float, float]) -> ConvexMesh:
    """A mesh of points of an ellipsoid's surface, about a centre beside the origin."""
    x = np.random.default_rng(count).normal(size=(count, 3))
    return ConvexMesh((x / np.linalg.norm(x, axis=1, keepdims=True) * radii + [0.02, 0.0, -0.01]).tolist())


def tilted(x: float, y: float, z: float) -> da.Transform:
    angle = np.array([[np.cos(0.4), -np.sin(0.4), 0.0], [np.sin(0.4), np.cos(0.4), 0.0], [0.0, 0.0, 1.0]])
    return da.Transform.from_rotation_translation(angle @ angle.T[[2, 0, 1]], [x, y, z])


FORMS = (
    da.shapes.Sphere(0.1),
    da.shapes.Sphere(0.07, placement=tilted(0.05, 0.0, 0.0)),
    da.shapes.Capsule(0.05, 0.3),
    da.shapes.Capsule(0.06, 0.2, placement=tilted(0.0, 0.1, 0.0)),
    Box((0.1, 0.3, 0.2)),
    Box((0.2, 0.2, 0.2), placement=tilted(0.0, 0.0, 0.05)),
    da.shapes.Cylinder(0.1, 0.2),
    da.shapes.Cylinder(0.12, 0.05, placement=tilted(0.02, 0.0, 0.0)),
    Ellipsoid((0.12, 0.05, 0.2)),
    Ellipsoid((0.08, 0.15, 0.07)),
    ConvexMesh([(0.0, 0.0, 0.1), (0.1, 0.0, -0.1), (-0.1, 0.1, -0.1), (-0.1, -0.1, -0.1)]),
    ConvexMesh([(x, y, z) for x in (-0.1, 0.1) for y in (-0.05, 0.05) for z in (-0.1, 0.1)]),
    sphere_points(12, (0.1, 0.12, 0.1)),
    sphere_points(30, (0.15, 0.08, 0.1)),
)


def pile(shapes: Any = FORMS) -> da.ModelBuilder:
    """Free bodies of one shape each; every other pair in the opposite order of kinds."""
    builder = da.ModelBuilder()
    for number, shape in enumerate(shapes):
        inertia = da.shapes.Sphere(0.1).inertia(mass=1.0)
        builder.add_body(f"body {number}", "world", da.Free(), inertia=inertia)
        builder.add_shape(f"body {number}", shape)
    return builder


def mixed() -> da.Model:
    builder = pile(FORMS[::2] + FORMS[::-2])
    builder.add_shape("world", da.shapes.Plane(placement=tilted(0.0, 0.0, -0.3), friction=(0.7, 0.0, 0.0)))
    return builder.build()


def stairs() -> da.Model:
    builder = pile((*FORMS[:6], FORMS[13]))
    for k in range(25):
        place = da.Transform.from_rotation_translation(np.eye(3), [0.1 * k - 1.2, 0.0, 0.04 * k - 0.5])
        builder.add_shape("world", Box((0.1, 2.0, 0.3), placement=place))
    return builder.build()


def hills() -> da.Model:
    builder = pile(FORMS[::2])
    for seed, x in ((1, -1.0), (2, 1.0)):
        heights = 0.1 * np.random.default_rng(seed).normal(size=(7 + seed, 9))
        place = da.Transform.from_rotation_translation(np.eye(3), [x, 0.0, -0.1])
        builder.add_shape("world", HeightField(heights.tolist(), size=(2.0, 2.5), placement=place))
    return builder.build()


def in_file(package: str, path: str, root: str | None = None) -> da.Model:
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    [found] = [file for file in files if str(file).endswith(path)]
    model = da.load(Path(str(found.locate())), root=root)
    return model if root is None else model.with_ground()


ROBOTS = "share/example-robot-data/robots/"
MODELS = {
    "mixed": mixed,
    "stairs": stairs,
    "hills": hills,
    "quadruped": lambda: in_file("dm_control", "dm_control/suite/quadruped.xml"),
    "humanoid_CMU": lambda: in_file("dm_control", "dm_control/suite/humanoid_CMU.xml"),
    "a1": lambda: in_file("example-robot-data", ROBOTS + "a1_description/urdf/a1.urdf", "floating"),
    "anymal": lambda: in_file(
        "example-robot-data", ROBOTS + "anymal_b_simple_description/robots/anymal.urdf", "floating"
    ),
}
PILES = ("mixed", "stairs", "hills")


@cache
def scene_of(name: str) -> tuple[da.Model, Any, Scene]:
    model = MODELS[name]()
    pairs = pairs_of(model)
    return model, pairs, Scene.of(model, pairs)


def states(model: da.Model, count: int, seed: int = 0) -> np.ndarray:
    """Random states, free bodies near the origin."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random_state(rng)[0] for _ in range(count)])
    for joint in model.joints:
        if joint.kind == "free":
            q[:, joint.q_slice.start : joint.q_slice.start + 3] = rng.uniform(-0.35, 0.35, (count, 3))
        elif joint.nq == 1:
            q[:, joint.q_slice] = rng.uniform(-1.0, 1.0, (count, 1))
    return q


def every_point(model: da.Model, scene: Scene) -> Any:
    """The function from q to the gap, position and normal of every point, zeros where it is absent."""

    def function(q: Any) -> Any:
        found = scene.contacts(forward_kinematics(model, q), None, DT, q)
        every = scalar.rows(scene.point_count, like=q)

        def put(i: Any) -> Any:
            point = found.points[i]
            near = point.gap < ABSENT_POINT_GAP
            place = [scalar.select(near, x, 0.0) for x in (*point.position, *point.normal)]
            yield found.number[i], [point.gap, *place]

        absent = scalar.Write(every, lambda i: [(i, [ABSENT_POINT_GAP] + [0.0] * 6)])
        written = every.write([absent, scalar.Write(found.near, put)])
        return [leaf for k in range(scene.point_count) for leaf in written.at(k)]

    return function


def on_arrays(function: Any, q: np.ndarray) -> np.ndarray:
    """The points of a batch (samples, points, 7)."""
    return np.stack([np.broadcast_to(x, len(q)) for x in function(list(q.T))], axis=1).reshape(len(q), -1, 7)


def one_by_one(model: da.Model, pairs: Any, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All points (samples, points, 7) of all pairs, and which of them must be found.

    Boxes that are apart have a point with a gap below their distance; a height field, planes of triangles
    beside the point: there the distance, or an overlap, counts.
    """
    poses = forward_kinematics(model, list(q.T))
    points, must, pose = [], [], poses_of(poses)
    for candidate in contact_points(poses, pairs):
        point = candidate.point
        points.append([np.broadcast_to(x, len(q)) for x in (point.gap, *point.position, *point.normal)])
        must.append(points[-1][0] <= REACH)
    place = 0
    for pair, count in zip(pairs, counts(model, pairs), strict=True):
        a, b = pair.first, pair.second
        if isinstance(a.shape, Box) and isinstance(b.shape, Box):
            distance = nearest_point(a.shape, pose(a), b.shape, pose(b)).gap
            must[place : place + count] = [x & (distance <= REACH) for x in must[place : place + count]]
        if isinstance(a.shape, HeightField):
            must[place : place + count] = [x[0] < 0.0 for x in points[place : place + count]]
        place += count
    return np.array(points).transpose(2, 0, 1), np.array(must).T


def counts(model: da.Model, pairs: Any) -> list[int]:
    return [len(point_names(model, [pair])) for pair in pairs]


@pytest.mark.parametrize("name", MODELS)
def test_points_are_those_of_all_pairs_one_by_one(name: str) -> None:
    model, pairs, scene = scene_of(name)
    q = states(model, 400 if name in PILES else 100)
    found = on_arrays(every_point(model, scene), q)
    expected, must = one_by_one(model, pairs, q)
    named = found[..., 0] < ABSENT_POINT_GAP
    assert (expected[named][:, 0] < 0.0).sum() > 100
    assert named[must].all()
    assert (expected[named][:, 0] <= REACH).all()
    np.testing.assert_allclose(found[named], expected[named], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", [*PILES, "quadruped", "humanoid_CMU", "a1"])
def test_numbers_arrays_and_machine_code_agree(name: str) -> None:
    model, _, scene = scene_of(name)
    q = states(model, 37, seed=3)
    function = every_point(model, scene)
    found = on_arrays(function, q)
    for k in range(3):
        alone = np.array(function(q[k].tolist()), dtype=float).reshape(-1, 7)
        np.testing.assert_allclose(found[k], alone, rtol=0.0, atol=1e-12)
    program = trace(function, [ArrayArgument("q", (model.nq,))]).program()
    single = run(compile_program(program, lanes=1), {"q": q})["output"]
    lanes = run(compile_program(program), {"q": q})["output"]
    np.testing.assert_array_equal(bits(lanes), bits(single))
    # Where an iteration ends on a curved surface, and which of two equal corners is taken, is up to rounding.
    single = single.reshape(found.shape)
    named = np.minimum(single, found)[..., 0] < ABSENT_POINT_GAP
    difference = np.abs(single - found)[named].max(axis=-1)
    assert named.sum() > 100
    assert (difference > 1e-8).mean() < 0.1
    assert (difference > 1e-3).mean() < 0.005


def test_code_does_not_grow_with_the_number_of_pairs() -> None:
    """From 12 balls to 36, each of which adds its kinematics and its pose, but no code for pairs."""
    sizes = []
    for count in (12, 24, 36):
        model = pile([da.shapes.Sphere(0.1)] * count).build()
        scene = Scene.of(model, pairs_of(model))

        def function(q: Any, model: Any = model, scene: Scene = scene) -> Any:
            found = scene.contacts(forward_kinematics(model, q), None, DT, q)
            return found.near.fold(lambda total, i: total + found.points[i].gap, 0.0)

        sizes.append(check_size(trace(function, [ArrayArgument("q", (model.nq,))]).program()))
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]


def test_names_and_constants_of_points() -> None:
    model, pairs, scene = scene_of("mixed")
    assert scene.names(model) == point_names(model, pairs)
    q = states(model, 1)[0].tolist()
    candidates = contact_points(forward_kinematics(model, q), pairs)
    found = scene.contacts(forward_kinematics(model, q), None, DT, q)
    place = found.bodies.numbers([float(k) for k in range(len(model.bodies))] + [-1.0])
    seen = []

    def check(i: Any) -> None:
        candidate = candidates[int(found.number[i])]
        assert (found.friction[i], found.restitution[i]) == (candidate.friction, candidate.restitution)
        assert place[found.first[i]] == candidate.first
        assert place[found.second[i]] == candidate.second
        seen.append(found.number[i])

    found.near.each(check)
    assert len(seen) > 10


def test_what_touches_within_the_step_is_found_at_its_beginning() -> None:
    """Balls that fly straight, fast and slow, next to each other and to the ground."""
    count, samples = 8, 400
    builder = pile([da.shapes.Sphere(0.05)] * count)
    builder.add_shape("world", da.shapes.Plane())
    model = builder.build()
    pairs = pairs_of(model)
    scene = Scene.of(model, pairs)
    q, rng = states(model, samples), np.random.default_rng(5)
    velocities = rng.normal(size=(samples, count, 3)) * rng.choice([0.1, 2.0, 20.0], size=(samples, count, 1))
    later = q.copy()
    for k, body in enumerate(model.bodies):
        later[:, body.q_slice.start : body.q_slice.start + 3] += DT * velocities[:, k]
    moving = PerBody([Motion(Vec3.zero(), Vec3(*velocities[:, k].T)) for k in range(count)])
    before, after = (contact_points(forward_kinematics(model, list(x.T)), pairs) for x in (q, later))
    found = scene.contacts(forward_kinematics(model, list(q.T)), moving, DT, list(q.T))
    named = np.zeros((scene.point_count, samples), bool)

    def note(i: Any) -> None:
        named[int(found.number[i])] = found.points[i].gap < ABSENT_POINT_GAP

    found.near.each(note)
    new = np.array([(x.point.gap > 0.0) & (y.point.gap < 0.0) for x, y in zip(before, after, strict=True)])
    assert new.sum() > 100
    assert named[new].all()
    # What is named is nearer than two bodies can travel that move as fast as the fastest of all.
    assert 0.1 < named.mean() < 0.9


def figure_of_meshes():
    """A chain whose meshes are near each other but for the joint between them."""
    rng = np.random.default_rng(5)
    builder = da.ModelBuilder()
    parent = "world"
    for k in range(6):
        mesh = ConvexMesh((rng.normal(size=(20, 3)) * [0.06, 0.02, 0.02]).tolist())
        joint = da.Free() if k == 0 else da.Revolute((0.0, float(k % 2), float(1 - k % 2)))
        place = da.Transform.from_rotation_translation(np.eye(3), (0.1 * (k > 0), 0.0, 0.0))
        inertia = da.RigidInertia(0.5, (0.0, 0.0, 0.0), np.eye(3) * 1e-3)
        builder.add_body(f"part{k}", parent=parent, joint=joint, placement=place, inertia=inertia)
        builder.add_shape(f"part{k}", mesh)
        parent = f"part{k}"
    return builder.build().with_ground()


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_remembered_axes_change_no_bit(law, monkeypatch):
    rng = np.random.default_rng(6)
    model = figure_of_meshes()
    q = np.tile(model.neutral(), (9, 1))
    q[:, 2], q[:, 7:] = 0.3, rng.uniform(-1.5, 1.5, (9, 5))
    v = rng.normal(size=(9, model.nv))
    motions = []
    for kept in (0, 1, 3):
        monkeypatch.setattr(step_plan, "KEPT_AXES_PER_BODY", kept)
        plan = step_plan.StepPlan(model, contact=da.contact.Rigid(), pairs=pairs_of(model))
        assert ("axes" in plan.carried_results) is (kept > 0)
        motions.append(da.rollout(figure_of_meshes(), q, v, steps=120, dt=0.004, contact=law))
    for motion in motions[1:]:
        np.testing.assert_array_equal(motion.q, motions[0].q)
        np.testing.assert_array_equal(
            motion.contacts.force.sum(axis=-2), motions[0].contacts.force.sum(axis=-2)
        )


def test_a_step_remembers_axes_that_separate():
    model = figure_of_meshes()
    scene = Scene.of(model, pairs_of(model))
    q = [*model.neutral()]
    q[2] = 0.3
    q[7:] = [0.9, -0.9, 0.9, -0.9, 0.9]
    none = [[-1.0, 0.0, 0.0, 0.0]] * 12
    poses = forward_kinematics(model, q)
    found = scene.contacts(poses, None, DT, q, none)
    axes = [[float(x) for x in row] for row in found.axes if row[0] >= 0.0]
    assert axes
    assert len({row[0] for row in axes}) == len(axes)
    np.testing.assert_allclose(np.linalg.norm([row[1:] for row in axes], axis=1), 1.0, atol=1e-12)
    again = scene.contacts(poses, None, DT, q, found.axes)
    assert [[float(x) for x in row] for row in again.axes if row[0] >= 0.0] == axes
    named = lambda contacts: [float(contacts.number[place]) for place in contacts.near._places]
    assert named(again) == named(found)
