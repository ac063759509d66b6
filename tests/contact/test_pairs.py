"""Which shapes may touch: masks, parents, exclusions, names."""

import numpy as np
import pytest

import dalembert as da
from dalembert.contact.pairs import contact_points, pairs_of, point_names
from dalembert.errors import DalembertError, DtypeError, UnknownNameError

INERTIA = da.shapes.Sphere(0.1).inertia(mass=1.0)


def chain(*, grip: str = "revolute", **options):
    """base - upper - lower - hand, where `grip` is the joint of the hand; and a ground."""
    builder = da.ModelBuilder()
    builder.add_shape("world", da.shapes.Plane(name="ground"))
    joint = da.Revolute((0.0, 1.0, 0.0))
    parents = {"base": "world", "upper": "base", "lower": "upper", "hand": "lower"}
    for name, parent in parents.items():
        fixed = name == "base" or (name == "hand" and grip == "fixed")
        builder.add_body(name, parent, da.Fixed() if fixed else joint, inertia=INERTIA)
        builder.add_shape(name, da.shapes.Sphere(0.1, name=f"{name} ball", **options))
    return builder


def touching(model, **options):
    return {frozenset(names) for names in point_names(model, pairs_of(model, **options))}


def pair(a, b):
    return frozenset((a if a == "ground" else f"{a} ball", b if b == "ground" else f"{b} ball"))


def test_parents_and_bodies_that_are_one_never_touch():
    free = touching(chain().build())
    assert free == {
        pair("ground", "upper"), pair("ground", "lower"), pair("ground", "hand"),
        pair("base", "lower"), pair("base", "hand"), pair("upper", "hand"),
    }  # fmt: skip
    held = touching(chain(grip="fixed").build())
    assert held == free - {pair("upper", "hand")}  # hand is of one piece with lower, whose parent is upper


def test_what_hangs_on_one_part_hangs_on_the_whole():
    builder = chain(grip="fixed")
    builder.add_body("finger", "hand", da.Revolute((1.0, 0.0, 0.0)), inertia=INERTIA)
    builder.add_shape("finger", da.shapes.Sphere(0.1, name="finger ball"))
    found = {p for p in touching(builder.build()) if "finger ball" in p}
    assert found == {pair("ground", "finger"), pair("base", "finger"), pair("upper", "finger")}


def test_masks_exclusions_and_explicit_pairs():
    none = chain(group=2, collides_with=4)
    none.add_contact_pair("base ball", "upper ball", friction=(0.25, 0.0, 0.0), restitution=0.5)
    (only,) = pairs_of(none.build())
    assert (only.first.shape.name, only.second.shape.name) == ("base ball", "upper ball")
    assert (only.friction, only.restitution) == (0.25, 0.5)
    assert touching(chain(collision=False).build()) == set()
    one_way = chain(group=2, collides_with=3)  # the ground's group is 1, and it collides with 1
    assert pair("ground", "hand") in touching(one_way.build())
    excluded = chain()
    excluded.exclude_contact("hand", "world")
    excluded.exclude_contact("base", "lower")
    assert touching(chain().build()) - touching(excluded.build()) == {
        pair("ground", "hand"), pair("base", "lower")
    }  # fmt: skip


def test_the_larger_coefficients_hold():
    builder = da.ModelBuilder()
    builder.add_shape("world", da.shapes.Plane(friction=(0.3, 0.0, 0.0), restitution=0.7))
    builder.add_body("ball", "world", da.Free(), inertia=INERTIA)
    builder.add_shape("ball", da.shapes.Sphere(0.1, friction=(0.6, 0.0, 0.0), restitution=0.2))
    (only,) = pairs_of(builder.build())
    assert (only.friction, only.restitution) == (0.6, 0.7)
    assert (only.first.body, only.second.body) == (-1, 0)


@pytest.mark.parametrize(
    ("ball", "ground", "expected"),
    [
        (None, 0.3, 0.3),
        (0.2, None, 0.2),
        (None, None, 1.0),
        (0.2, 0.3, 0.3),
        (0.2, 0.0, 0.2),
        (None, 0.0, 0.0),
    ],
)
def test_the_friction_that_is_given_holds_where_the_other_shape_has_none(ball, ground, expected):
    builder = da.ModelBuilder()
    builder.add_body("ball", "world", da.Free(), inertia=INERTIA)
    builder.add_shape("ball", da.shapes.Sphere(0.1, friction=None if ball is None else (ball, 0.0, 0.0)))
    model = builder.build().with_ground(friction=ground)
    for own in (model, da.Model.from_json(model.to_json())):
        assert [pair.friction for pair in pairs_of(own)] == [expected]


def test_pairs_are_chosen_by_names_of_bodies_or_shapes():
    model = chain().build()
    everything = touching(model)
    assert touching(model, only=["hand"]) == {p for p in everything if "hand ball" in p}
    assert touching(model, only=["hand ball"]) == touching(model, only=["hand"])
    assert touching(model, only=[("hand", "base ball")]) == {pair("base", "hand")}
    assert touching(model, only=["world"]) == {p for p in everything if "ground" in p}
    assert touching(model, exclude=[("upper", "ground"), "lower"]) == {
        pair("ground", "hand"), pair("base", "hand"), pair("upper", "hand")
    }  # fmt: skip
    assert touching(model, self_collision=False) == {
        p for p in everything if "ground" in p or "base ball" in p
    }
    for options in ({"only": ["hnd"]}, {"exclude": [("hand", "grond")]}, {"only": [("a", "b", "c")]}):
        with pytest.raises(UnknownNameError):
            pairs_of(model, **options)
    with pytest.raises(UnknownNameError, match='nearest: "hand'):
        pairs_of(model, only=["hnd"])


def test_a_missing_mesh_file_is_a_kind_error():
    builder = chain()
    builder.add_shape("hand", da.shapes.Mesh("nowhere/hand.stl"))
    with pytest.raises(DalembertError, match=r"hand\.stl"):
        pairs_of(builder.build())


def test_every_pair_may_touch_but_planes_with_planes():
    builder = da.ModelBuilder()
    builder.add_shape("world", da.shapes.Plane())
    builder.add_body("tilting", "world", da.Revolute((0.0, 1.0, 0.0)), inertia=INERTIA)
    builder.add_shape("tilting", da.shapes.Plane())
    assert pairs_of(builder.build()) == ()


def test_candidates_follow_the_pairs_and_the_poses():
    model = da.models.humanoid().with_ground(height=-0.2, friction=0.3)
    pairs = pairs_of(model, self_collision=False)
    q, _ = model.random_state(5)
    poses = da.algorithms.forward_kinematics(model, q.tolist())
    candidates = contact_points(poses, pairs)
    assert len(candidates) == len(point_names(model, pairs)) > 20
    by_body = {}
    for candidate in candidates:
        by_body.setdefault(candidate.second, []).append(candidate.point.gap)
        assert candidate.first == -1
    for body in model.bodies:
        lowest = [
            (poses[body] @ shape.placement).p.z + 0.2
            - abs((poses[body] @ shape.placement).R.zz) * 0.5 * shape.length - shape.radius
            for shape in body.shapes
            if isinstance(shape, da.shapes.Capsule)
        ]  # fmt: skip
        if lowest and len(lowest) == len(body.shapes):
            assert min(by_body[body.index]) == pytest.approx(min(lowest), abs=1e-12)
    assert np.isfinite([gap for gaps in by_body.values() for gap in gaps]).all()


def test_options_choose_the_same_pairs_every_time_and_among_given_ones():
    model = chain().build()
    everything = {frozenset((p.first.body, p.second.body)) for p in pairs_of(model)}

    def chosen(**options):
        found = []
        for law in (da.contact.Rigid, da.contact.Compliant):
            option = law(**{name: iter(x) if isinstance(x, list) else x for name, x in options.items()})
            first, second = option.pairs_in(model), option.pairs_in(model)
            assert first == second
            found.append(first)
        assert found[0] == found[1]
        return found[0]

    assert set(chosen(pairs=["hand"])) == set(pairs_of(model, only=["hand"]))
    assert set(chosen(exclude=["hand"])) == set(pairs_of(model, exclude=["hand"]))
    given = list(pairs_of(model))
    assert set(chosen(pairs=given, exclude=["hand"])) == set(pairs_of(model, exclude=["hand"]))
    assert set(chosen(pairs=given, self_collision=False)) == set(pairs_of(model, self_collision=False))
    one = [pair for pair in given if pair not in pairs_of(model, only=["hand"])][:1]
    assert set(chosen(pairs=[*one, "hand"])) == {*one, *pairs_of(model, only=["hand"])}
    assert chosen(pairs=[]) == ()
    assert len(everything) > 1


@pytest.mark.parametrize(
    ("law", "options"),
    [
        (da.contact.Rigid, {"pairs": 3}),
        (da.contact.Rigid, {"pairs": [3]}),
        (da.contact.Rigid, {"exclude": [None]}),
        (da.contact.Rigid, {"tolerance": "small"}),
        (da.contact.Rigid, {"rebound_speed": "slow"}),
        (da.contact.Rigid, {"position_correction": None}),
        (da.contact.Rigid, {"limits": "no"}),
        (da.contact.Compliant, {"stiffness": "hard"}),
        (da.contact.Compliant, {"damping": [1.0, 2.0]}),
        (da.contact.Compliant, {"self_collision": 1}),
    ],
)
def test_options_of_another_kind_are_named(law, options):
    (name,) = options
    with pytest.raises(DtypeError, match=name):
        law(**options)


def test_the_former_name_of_position_correction_still_works():
    with pytest.warns(DeprecationWarning, match="position_correction"):
        law = da.contact.Rigid(mending=0.5)
    assert law == da.contact.Rigid(position_correction=0.5)
