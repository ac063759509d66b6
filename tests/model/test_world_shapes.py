"""Shapes of the world and rules of what may touch: built, saved, carried through surgery."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalembert import models
from dalembert.contact.pairs import pair_names, pairs_of
from dalembert.errors import ArgumentError, DalembertError, ModelError, UnknownNameError
from dalembert.model import Model, ModelBuilder, ShapePair
from dalembert.model.joints import Fixed, Free, Revolute
from dalembert.model.shapes import Box, Capsule, ConvexMesh, HeightField, Plane, Shape, Sphere
from dalembert.models import random_tree
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.spatial import Transform
from dalembert.textbook.guenter_rose_partials import stacked_hinges

TETRAHEDRON = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.1), (0.0, 1.0, 0.2), (0.1, 0.0, 1.0)]


def scene(seed: int = 3) -> Model:
    """A chain on the world, with a fixed hand, that may touch a floor, a field and a stone."""
    rng = np.random.default_rng(seed)
    builder = ModelBuilder(name="scene")
    builder.add_body("a", "world", Free(), inertia=random_inertia(rng), shapes=[Sphere(0.1, name="ball")])
    builder.add_body("b", "a", Revolute(), placement=random_placement(rng), inertia=random_inertia(rng))
    builder.add_body("c", "b", Revolute(), placement=random_placement(rng), inertia=random_inertia(rng))
    builder.add_body("hand", "c", Fixed(), placement=random_placement(rng), inertia=random_inertia(rng))
    builder.add_body("pole", "world", Fixed(), placement=random_placement(rng))
    builder.add_shape("c", Capsule(0.1, 0.2, group=2, collides_with=5))
    builder.add_shape("hand", Box((0.1, 0.2, 0.3), name="palm", placement=random_placement(rng)))
    builder.add_shape("pole", Box((0.1, 0.1, 2.0), name="pole", placement=random_placement(rng)))
    builder.add_shape("world", Plane(name="floor", friction=(0.7, 0.0, 0.0), restitution=0.5))
    builder.add_shape(
        "world", HeightField(rng.normal(size=(3, 4)).tolist(), (2.0, 3.0), placement=random_placement(rng))
    )
    builder.add_shape("world", ConvexMesh(TETRAHEDRON, name="stone", collides_with=2**32 - 1))
    builder.exclude_contact("a", "c")
    builder.exclude_contact("hand", "world")
    builder.add_contact_pair("ball", "palm", friction=(0.3, 0.0, 0.1), restitution=0.25)
    builder.add_contact_pair("stone", "ball")
    return builder.build()


def places(model: Model, q: Any) -> dict[str, np.ndarray]:
    """Where every named shape stands in the world."""
    X = list(model.outward(lambda body, X: (X @ body.link_transform(list(q)),) * 2, Transform.identity()))
    found = {shape.name: shape.placement for shape in model.world_shapes}
    for body in model.bodies:
        found |= {shape.name: X[body.index] @ shape.placement for shape in body.shapes}
    return {name: np.array(at.homogeneous()) for name, at in found.items() if name}


def test_the_builder_gathers_shapes_of_the_world_and_of_bodies() -> None:
    """Shapes of bodies and of the fixed surroundings."""
    model = scene()
    assert [shape.kind for shape in model.world_shapes] == ["plane", "height_field", "convex_mesh"]
    assert model.body("c").shapes == (Capsule(0.1, 0.2, group=2, collides_with=5),)
    assert model.contact_exclusions == (("a", "c"), ("hand", "world"))
    assert model.contact_pairs == (
        ShapePair("ball", "palm", (0.3, 0.0, 0.1), 0.25),
        ShapePair("stone", "ball"),
    )
    assert models.arm6().world_shapes == ()


def test_an_exclusion_counts_once_in_either_order() -> None:
    builder = ModelBuilder()
    builder.exclude_contact("b", "a")
    builder.exclude_contact("a", "b")
    for name in ("a", "b"):
        builder.add_body(name, "world", Free(), inertia=random_inertia(1))
    assert builder.build().contact_exclusions == (("b", "a"),)


def test_the_ground_is_a_horizontal_plane() -> None:
    model = models.humanoid()
    ground = model.with_ground(0.25, friction=0.8, restitution=0.1)
    (plane,) = ground.world_shapes
    assert isinstance(plane, Plane)
    assert plane.name == "ground"
    assert (plane.friction[0], plane.restitution) == (0.8, 0.1)
    np.testing.assert_array_equal(
        np.array(plane.placement.homogeneous())[:3, 2:], [[0, 0], [0, 0], [1, 0.25]]
    )
    assert model.world_shapes == ()
    assert ground != model
    assert ground.with_ground(-1.0).world_shapes[0] == plane
    assert len(ground.with_ground(-1.0).world_shapes) == 2


def test_text_and_pickle_restore_them() -> None:
    model = scene()
    for restored in (Model.from_json(model.to_json()), pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert restored == model
        assert restored.digest == model.digest
        assert restored.world_shapes == model.world_shapes
        assert restored.contact_exclusions == model.contact_exclusions
        assert restored.contact_pairs == model.contact_pairs


def test_texts_without_them_still_load() -> None:
    model = models.arm6()
    lines = [line for line in model.to_json().splitlines() if '"contact_' not in line]
    lines = [line for line in lines if '"world_shapes"' not in line]
    assert len(lines) == len(model.to_json().splitlines()) - 3
    assert Model.from_json("\n".join(lines)) == model


def test_the_digest_covers_every_part() -> None:
    def build(change: str) -> str:
        builder = ModelBuilder()
        masks = {"group": 4} if change == "group" else {"collides_with": 4} if change == "mask" else {}
        shapes = [Sphere(0.1, name="s", **masks), Sphere(0.1, name="t")]
        builder.add_body("a", "world", Revolute(), inertia=random_inertia(1), shapes=shapes)
        builder.add_body("b", "a", Revolute(), inertia=random_inertia(1))
        if change == "world":
            builder.add_shape("world", Plane())
        if change == "exclusion":
            builder.exclude_contact("a", "b")
        if change.startswith("pair"):
            options: dict[str, Any] = {"restitution": 0.5} if change == "pair with numbers" else {}
            builder.add_contact_pair("s", "t", **options)
        return builder.build().digest

    changes = ["", "group", "mask", "world", "exclusion", "pair", "pair with numbers"]
    assert len({build(change) for change in changes}) == len(changes)


def test_new_values_keep_them() -> None:
    model = scene()
    other = model.with_values({"b.mass": 3.0, "gravity": (0.0, 0.0, -1.6)})
    assert other.world_shapes == model.world_shapes
    assert other.contact_exclusions == model.contact_exclusions
    assert other.contact_pairs == model.contact_pairs
    assert model.tree().world_shapes == model.world_shapes


@pytest.mark.parametrize("seed", range(3))
def test_locked_and_lumped_models_keep_shapes_where_they_are(seed: int) -> None:
    model = scene(seed)
    q, _ = model.random_state(seed)
    before = places(model, q)
    locked = model.lock(["b"], q)
    kept = np.delete(q, model.joint("b").q_slice)
    lumped = locked.lumped()
    assert {*before} == {"ball", "palm", "pole", "floor", "stone"}
    for changed in (locked, lumped):
        after = places(changed, kept)
        for name, X in before.items():
            np.testing.assert_allclose(after[name], X, atol=1e-12)
        assert changed.contact_pairs == model.contact_pairs
    assert locked.contact_exclusions == model.contact_exclusions
    assert lumped.contact_exclusions == model.contact_exclusions
    assert may_touch(lumped) == may_touch(locked)
    assert [shape.name for shape in lumped.world_shapes] == ["floor", "", "stone", "pole"]


def may_touch(model: Model) -> set[frozenset[str]]:
    return {frozenset(pair_names(model, pair)) for pair in pairs_of(model)}


def test_an_exclusion_within_a_merged_body_goes() -> None:
    builder = ModelBuilder()
    builder.add_body("a", "world", Free(), inertia=random_inertia(1))
    builder.add_body("b", "a", Fixed(), inertia=random_inertia(1))
    builder.exclude_contact("a", "b")
    assert builder.build().lumped().contact_exclusions == ()


@pytest.mark.parametrize("at", ["world", "hand", "mount"])
def test_a_world_that_is_attached_brings_its_shapes(at: str) -> None:
    """The world of the other system becomes the frame: so do its shapes and exclusions."""
    rng = np.random.default_rng(5)
    host = random_tree(2, bodies=3)
    builder = ModelBuilder()
    builder.add_body("hand", "world", Free(), inertia=random_inertia(rng))
    builder.add_frame("mount", "hand", random_placement(rng))
    host = builder.build()
    X = random_placement(rng)
    model = host.attach(scene(), at, prefix="its ", placement=X)
    q, _ = model.random_state(1)
    base = next(
        Y
        for name, Y in (("world", Transform.identity()), ("hand", _pose(host, q)))
        if name == ("world" if at == "world" else "hand")
    )
    if at == "mount":
        base = base @ host.frame("mount").placement
    own = places(scene(), q[host.nq :])
    found = places(model, q)
    for name, place in own.items():
        np.testing.assert_allclose(
            found[f"its {name}"], np.array((base @ X).homogeneous()) @ place, atol=1e-12
        )
    root = "world" if at == "world" else "hand"
    assert model.contact_exclusions == (("its a", "its c"), ("its hand", root))
    assert model.contact_pairs[1] == ShapePair("its stone", "its ball")
    assert len(model.world_shapes) == (3 if at == "world" else 0)


def _pose(host: Model, q: np.ndarray) -> Transform:
    return host.bodies[0].link_transform(list(q[: host.nq])).as_transform()


def test_the_summary_names_them() -> None:
    text = scene().summary()
    assert "shapes of the world: floor (plane), height_field, stone (convex_mesh)" in text
    assert "bodies that never touch: a – c, hand – world" in text
    assert "shapes that may always touch: ball – palm, stone – ball" in text


def one(change: Callable[[ModelBuilder], Any]) -> Callable[[], Model]:
    def build() -> Model:
        builder = ModelBuilder()
        shapes: list[Shape] = [Sphere(0.1, name="s"), Sphere(0.1, name="t"), Sphere(0.2, name="t")]
        builder.add_body("upper", "world", Free(), inertia=random_inertia(1), shapes=shapes)
        change(builder)
        return builder.build()

    return build


BAD: list[tuple[str, Callable[[], Any], type[DalembertError], str]] = [
    ("no shape", one(lambda b: b.add_shape("world", "floor")), ModelError, '"world": str is no shape'),  # type: ignore[arg-type]
    ("a class", one(lambda b: b.add_shape("world", Plane)), ModelError, "no shape"),  # type: ignore[arg-type]
    ("unknown body", one(lambda b: b.add_shape("uper", Plane())), UnknownNameError, 'add_shape: .*"upper"'),
    ("no name", one(lambda b: b.add_shape(3, Plane())), ModelError, "must be a string"),  # type: ignore[arg-type]
    ("excludes itself", one(lambda b: b.exclude_contact("upper", "upper")), ModelError, "twice"),
    ("excludes nobody", one(lambda b: b.exclude_contact("upper", "x")), UnknownNameError, "exclude_contact"),
    ("excludes 1", one(lambda b: b.exclude_contact("upper", 1)), ModelError, "must be a string"),  # type: ignore[arg-type]
    ("pair of one", one(lambda b: b.add_contact_pair("s", "s")), ModelError, "one shape twice"),
    ("unknown shape", one(lambda b: b.add_contact_pair("s", "r")), UnknownNameError, "add_contact_pair"),
    ("two shapes", one(lambda b: b.add_contact_pair("s", "t")), ModelError, '2 shapes are called "t"'),
    (
        "friction",
        one(lambda b: b.add_contact_pair("s", "t", friction=(1.0, -1.0, 0.0))),
        ModelError,
        "friction is",
    ),
    ("restitution", one(lambda b: b.add_contact_pair("s", "t", restitution=2)), ModelError, "from 0 to 1"),
    ("height", lambda: models.arm6().with_ground(float("nan")), ArgumentError, "height is nan"),
    ("height text", lambda: models.arm6().with_ground("0"), ArgumentError, "height is '0'"),  # type: ignore[arg-type]
    ("ground friction", lambda: models.arm6().with_ground(friction=-0.1), ArgumentError, "friction is -0.1"),
    (
        "ground bounce",
        lambda: models.arm6().with_ground(restitution=1.5),
        ArgumentError,
        "restitution is 1.5",
    ),
    ("mask", lambda: Sphere(1.0, group=-1), ModelError, "group is -1; give a bit mask"),
    ("mask 2", lambda: Sphere(1.0, group=2**32), ModelError, "bit mask"),
    ("mask 3", lambda: Sphere(1.0, collides_with=1.5), ModelError, "collides_with is 1.5"),  # type: ignore[arg-type]
    ("mask 4", lambda: Sphere(1.0, collides_with=True), ModelError, "collides_with is True"),
    ("mask 5", lambda: Sphere(1.0, collides_with="a"), ModelError, "collides_with is 'a'"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("build", "kind", "message"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
def test_bad_input_is_refused(build: Callable[[], Any], kind: type[DalembertError], message: str) -> None:
    with pytest.raises(kind, match=message):
        build()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["hand", "world"]', '["hand"]', "pairs of bodies"),
        ('["hand", "world"]', '["hand", 3]', "must be a string"),
        ('"type": "plane"', '"type": "plain"', 'nearest: "plane"'),
        ('"group": 2', '"group": "2"', "bit mask"),
        ('"condim": 3', '"condim": 5', "condim is 5; give 1"),
        ('"restitution": 0.25,', '"restitution": 0.25, "more": 1,', "unknown entries"),
    ],
)
def test_damaged_texts_are_refused(old: str, new: str, message: str) -> None:
    text = scene().to_json()
    assert old in text
    with pytest.raises(DalembertError, match=message):
        Model.from_json(text.replace(old, new))


def test_stacks_of_hinges_touch_as_their_joints_did() -> None:
    """A body on a stack is no longer its parent's child: it is excluded by name."""
    model = models.humanoid().with_ground()
    stacked = stacked_hinges(model)
    assert stacked.world_shapes == model.world_shapes
    assert {*model.contact_exclusions} < {*stacked.contact_exclusions}
    assert ("abdomen", "chest") in stacked.contact_exclusions
    assert ("left_thigh", "left_shank") not in stacked.contact_exclusions
