"""The numbers of a model by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalembert.errors import InertiaError, ModelError, ShapeError, UnknownNameError
from dalembert.model import Limits, ModelBuilder, replace_values
from dalembert.model.joints import Free, Helical, Revolute, SphericalEuler, Universal
from dalembert.models import arm6, random_tree
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.spatial import RigidInertia, SymMat3, Transform, Vec3


def small() -> Any:
    builder = ModelBuilder()
    builder.add_body(
        "base", "world", Free(), "root", inertia=random_inertia(1), placement=random_placement(1)
    )
    builder.add_body(
        "upper",
        "base",
        Helical((0, 1, 1), 0.2),
        "shoulder",
        placement=random_placement(2),
        inertia=random_inertia(2),
        armature=0.1,
        limits=Limits(-1.0, 2.0, 3.0, 4.0),
    )
    builder.add_body("lower", "upper", Universal(), "elbow", inertia=random_inertia(3), damping=(0.1, 0.2))
    return builder.build()


def test_names_are_body_and_joint_names_with_their_parts() -> None:
    names = small().value_names()
    assert len(set(names)) == len(names)
    for name in (
        "gravity",
        "upper.mass",
        "upper.com",
        "upper.inertia",
        "shoulder.placement",
        "shoulder.axis",
        "shoulder.pitch",
        "shoulder.armature",
        "elbow.axis2",
        "elbow.damping",
        "root.placement",
    ):
        assert name in names


def test_values_are_floats_and_arrays() -> None:
    model = small()
    inertia = random_inertia(2)
    assert model.value("upper.mass") == inertia.mass
    np.testing.assert_allclose(model.value("upper.com"), list(inertia.com), rtol=1e-15)
    np.testing.assert_allclose(model.value("upper.inertia"), inertia.inertia_at_com.to_list(), rtol=1e-15)
    X = random_placement(2)
    np.testing.assert_array_equal(model.value("shoulder.placement"), np.array(X.homogeneous())[:3])
    np.testing.assert_allclose(model.value("shoulder.axis"), np.array([0, 1, 1]) / np.sqrt(2), rtol=1e-15)
    assert model.value("shoulder.pitch") == 0.2
    assert model.value("shoulder.armature") == 0.1
    assert model.value("shoulder.upper") == 2.0
    np.testing.assert_array_equal(model.value("elbow.damping"), [0.1, 0.2])
    np.testing.assert_array_equal(model.value("gravity"), [0, 0, -9.81])
    assert np.shape(model.value("root.rest")) == (7,)


def test_setting_every_value_to_itself_changes_nothing() -> None:
    model = random_tree(3, bodies=17)
    names = [name for name in model.value_names() if not name.endswith((".mass", ".com", ".inertia"))]
    assert model.with_values({name: model.value(name) for name in names}) == model
    # Mass, centre and inertia pass through their values at the centre of mass, which rounds.
    inertial = {name: model.value(name) for name in model.value_names() if name not in names}
    again = model.with_values(inertial)
    for a, b in zip(model.bodies, again.bodies, strict=True):
        np.testing.assert_allclose(a.inertia.leaves(), b.inertia.leaves(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_set_values_are_read_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = random_placement(rng)
    new = {
        "upper.mass": 2.0,
        "upper.com": rng.uniform(-1, 1, 3),
        "upper.inertia": np.diag([1.0, 1.1, 1.2]),
        "shoulder.placement": X,
        "shoulder.axis": [3.0, 0.0, 4.0],
        "shoulder.pitch": -0.5,
        "shoulder.armature": 0.7,
        "shoulder.lower": -0.5,
        "shoulder.velocity": 9.0,
        "elbow.damping": [0.3, 0.4],
        "elbow.axis1": (0, 0, 1),
        "root.rest": [1, 2, 3, 1, 0, 0, 0],
        "gravity": (0, -9.81, 0),
    }
    model = small().with_values(new)
    new["shoulder.placement"] = np.array(X.homogeneous())[:3]
    new["shoulder.axis"] = np.array([0.6, 0.0, 0.8])
    for name, expected in new.items():
        np.testing.assert_allclose(model.value(name), expected, rtol=1e-13, atol=1e-14, err_msg=name)
    assert small().value("upper.mass") != 2.0


def test_a_new_mass_keeps_centre_and_inertia() -> None:
    model = small().with_values({"upper.mass": 5.0})
    np.testing.assert_allclose(model.value("upper.com"), small().value("upper.com"), rtol=1e-14)
    np.testing.assert_allclose(model.value("upper.inertia"), small().value("upper.inertia"), rtol=1e-12)


def test_placements_come_in_four_forms() -> None:
    X = random_placement(9)
    rows = np.array(X.homogeneous())[:3]
    R, p = rows[:, :3], rows[:, 3]
    for given in (
        X,
        rows,
        rows.tolist(),
        rows.ravel(),
        rows.ravel().tolist(),
        (R, p),
        (R.tolist(), p.tolist()),
    ):
        assert small().with_values({"elbow.placement": given}).body("lower").placement == X


def test_inertias_come_in_four_forms() -> None:
    I = np.array([[1.0, 0.1, 0.2], [0.1, 1.1, 0.3], [0.2, 0.3, 1.2]])
    for given in (I, I.tolist(), I.ravel(), SymMat3(1.0, 1.1, 1.2, 0.1, 0.2, 0.3)):
        found = small().with_values({"upper.inertia": given, "upper.com": Vec3.zero()})
        np.testing.assert_allclose(found.value("upper.inertia"), I, rtol=1e-15)


def test_a_massless_body_has_its_centre_at_the_origin() -> None:
    model = small().with_values({"lower.mass": 0.0, "lower.inertia": np.zeros((3, 3))})
    np.testing.assert_array_equal(model.value("lower.com"), 0.0)


def test_bad_values_are_refused() -> None:
    model = small()
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"uper.mass": 1}, UnknownNameError, 'unknown value "uper.mass".*nearest: "upper.mass"'),
        ({"upper.placement": 1}, UnknownNameError, 'unknown value "upper.placement"'),
        ({"shoulder.mass": 1}, UnknownNameError, 'unknown value "shoulder.mass"'),
        ({"elbow.pitch": 1}, UnknownNameError, 'unknown value "elbow.pitch"'),
        ({"mass": 1}, UnknownNameError, 'unknown value "mass"'),
        ({"upper.com": [1, 2]}, ShapeError, 'value "upper.com" has 2 entries, 3 expected'),
        ({"upper.com": 1.0}, ShapeError, 'value "upper.com" is a single float, 3 entries expected'),
        ({"elbow.damping": [1, 2, 3]}, ShapeError, 'value "elbow.damping" has 3 entries, 2 expected'),
        (
            {"shoulder.placement": np.eye(4)},
            ShapeError,
            'value "shoulder.placement" has 16 entries, 12 expected',
        ),
        ({"shoulder.placement": np.ones((3, 4))}, ModelError, "not a rotation"),
        ({"shoulder.axis": (0, 0, 0)}, ModelError, "axis is zero"),
        ({"shoulder.armature": -1.0}, ModelError, "armature is -1.0"),
        ({"shoulder.lower": 5.0}, ModelError, "lower limit 5.0 is above upper limit 2.0"),
        ({"upper.mass": -1.0}, InertiaError, "mass is negative: -1 kg"),
        ({"upper.mass": np.nan}, ModelError, "inertia holds nan"),
        ({"upper.inertia": np.diag([1, 1, 5])}, InertiaError, "triangle inequality"),
        ({"upper.inertia": [[1, 2, 0], [0, 1, 0], [0, 0, 1]]}, ModelError, "not symmetric"),
        ({"gravity": [0, 0, np.inf]}, ModelError, "three finite numbers"),
    ]
    for new, kind, message in cases:
        with pytest.raises(kind, match=message):
            model.with_values(new)
    model.with_values({"upper.inertia": np.diag([1, 1, 5])}, inertia="as_given")


def test_replace_values_takes_any_scalar_unchecked() -> None:
    """Per-sample arrays stand for traced expressions: each element behaves like its own model."""
    model = small()
    rng = np.random.default_rng(4)
    masses, pitches = rng.uniform(1, 2, 5), rng.uniform(-1, 1, 5)
    coms = rng.uniform(-1, 1, (3, 5))
    axes = rng.standard_normal((3, 5))
    axes /= np.linalg.norm(axes, axis=0)
    placements = [random_placement(rng) for _ in range(5)]
    entries = np.stack([np.array(X.homogeneous())[:3].ravel() for X in placements], axis=-1)
    gravity = rng.standard_normal((3, 5))
    batched = replace_values(
        model,
        {
            "upper.mass": masses,
            "upper.com": list(coms),
            "shoulder.placement": list(entries),
            "shoulder.axis": list(axes),
            "shoulder.pitch": pitches,
            "shoulder.armature": masses,
            "gravity": list(gravity),
        },
    )
    q, v = (x.tolist() for x in model.random_state(4))
    found = batched.body("upper").jcalc(q, v)
    for k in range(5):
        alone = model.with_values(
            {
                "upper.mass": masses[k],
                "upper.com": coms[:, k],
                "shoulder.placement": placements[k],
                "shoulder.axis": axes[:, k],
                "shoulder.pitch": pitches[k],
                "gravity": gravity[:, k],
            },
            inertia="as_given",
        )
        expected = alone.body("upper").jcalc(q, v)
        # Entries that do not depend on the axis are still plain numbers.
        pick = lambda x, k=k: np.broadcast_to(x, 5)[k]
        for a, b in ((found.X.as_transform(), expected.X.as_transform()), (found.v_J, expected.v_J)):
            np.testing.assert_allclose([pick(x) for x in a.leaves()], b.leaves(), rtol=1e-12, atol=1e-13)
        moments = [pick(x) for x in batched.body("upper").inertia.leaves()]
        np.testing.assert_allclose(moments, alone.body("upper").inertia.leaves(), rtol=1e-12, atol=1e-13)
    assert batched.body("upper").armature[0] is masses
    assert batched.body("base") is model.body("base")
    assert batched.gravity.x is gravity[0] or np.array_equal(batched.gravity.x, gravity[0])


def test_replace_values_accepts_symbols() -> None:
    sympy = pytest.importorskip("sympy")
    m, g = sympy.symbols("m g")
    model = replace_values(arm6(), {"forearm.mass": m, "gravity": [0.0, 0.0, -g]})
    assert model.body("forearm").inertia.mass is m
    assert model.gravity.z == -g
    assert model.total_mass.has(m)
    assert model.value("gravity")[2] == -g


def test_values_of_joints_made_of_joints() -> None:
    from dalembert.model.joints import Reversed

    builder = ModelBuilder()
    builder.add_body(
        "a", "world", Reversed(Revolute((0, 1, 0))), inertia=RigidInertia(1.0, (0, 0, 0), (1, 1, 1))
    )
    builder.add_body("b", "a", SphericalEuler("xyz"), placement=Transform.identity())
    model = builder.build()
    np.testing.assert_array_equal(model.value("a.joint"), [0.0, 1.0, 0.0])
    changed = model.with_values({"a.joint": [1.0, 0.0, 0.0]})
    np.testing.assert_array_equal(changed.value("a.joint"), [1.0, 0.0, 0.0])
