"""Coefficients of contact and numbers of its laws at run time: closed forms, and models built with them."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, ModelError, UnknownNameError

G, DT = 9.81, 0.001


def cube_on_ground(**shape):
    box = da.shapes.Box((0.2, 0.2, 0.2), **shape)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("cube", joint=da.Free(), inertia=box.inertia(mass=2.0), shapes=[box])
    return builder.build().with_ground(friction=0.05)


def start(model, samples, height=0.1, speed=0.0):
    q, v = np.tile(model.neutral(), (samples, 1)), np.zeros((samples, 6))
    q[:, 2], v[:, 3] = height, speed
    return q, v


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_friction_of_each_sample_slows_it_down(law):
    model, mu = cube_on_ground(), np.linspace(0.1, 0.8, 8)
    q, v = start(model, 8, speed=1.0)
    found = da.rollout(model, q, v, steps=100, dt=DT, contact=law, parameters={"cube.contact_friction": mu})
    np.testing.assert_allclose(1.0 - found.v[:, -1, 3], mu * G * 0.1, rtol=5e-3)
    for k in (0, 5):
        built = model.with_values({"cube.contact_friction": mu[k]})
        alone = da.rollout(built, q[k], v[k], steps=100, dt=DT, contact=law)
        np.testing.assert_array_equal(found.q[k], alone.q)
        assert found[k].simulated_model().value("cube.contact_friction") == mu[k]


def test_the_larger_friction_counts_and_the_ground_has_a_name():
    model, mu = cube_on_ground(friction=(0.3, 0.0, 0.0)), np.array([0.1, 0.6])
    q, v = start(model, 2, speed=1.0)
    found = da.rollout(
        model, q, v, steps=100, dt=DT, contact="rigid", parameters={"ground.contact_friction": mu}
    )
    np.testing.assert_allclose(1.0 - found.v[:, -1, 3], np.maximum(mu, 0.3) * G * 0.1, rtol=1e-4)


def test_restitution_of_each_sample_rebounds():
    model, e = cube_on_ground(), np.linspace(0.2, 1.0, 5)
    q, v = start(model, 5, height=0.3)
    found = da.rollout(model, q, v, steps=400, dt=DT, contact="rigid", parameters={"cube.restitution": e})
    for speed, ratio in zip(found.v[:, :, 5], e, strict=True):
        hit = int(np.argmin(speed))
        assert speed[hit:].max() / -speed[hit] == pytest.approx(ratio, abs=1e-6)


def test_torsional_friction_of_each_sample_stops_a_spin():
    model, mu = cube_on_ground(condim=4), np.array([0.02, 0.05])
    model = model.with_values({"ground.contact_friction": 0.0, "cube.contact_friction": 0.0})
    q, v = start(model, 2)
    v[:, 2] = 2.0
    found = da.rollout(
        model, q, v, steps=20, dt=DT, contact="rigid", parameters={"cube.torsional_friction": mu}
    )
    moment = 2.0 * 0.2**2 / 6.0
    np.testing.assert_allclose(2.0 - found.v[:, -1, 2], mu * 2.0 * G * 0.02 / moment, rtol=1e-3)


def test_stiffness_of_each_sample_gives_way():
    model, K = cube_on_ground(), np.array([1e3, 1e4, 1e5])
    q, v = start(model, 3)
    found = da.rollout(
        model, q, v, steps=3000, dt=DT, contact="compliant", parameters={"contact.stiffness": K}
    )
    np.testing.assert_allclose(0.1 - found.q[:, -1, 2], 2.0 * G / (4.0 * K), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:rollout. shapes of 2 samples overlap")
def test_numbers_of_a_law_are_those_of_its_options():
    """Each sample moves as with a law that has the numbers, and other numbers compile nothing."""
    model = cube_on_ground()
    q, v = start(model, 2, height=0.099, speed=0.5)
    numbers = {"tolerance": 1e-7, "compliance": 0.02, "position_correction": 0.5, "rebound_speed": 0.3}
    given = {f"contact.{name}": number for name, number in numbers.items()}
    options = {"steps": 100, "dt": DT}
    found = da.rollout(model, q, v, contact="rigid", parameters=given, **options)
    built = da.rollout(model, q, v, contact=da.contact.Rigid(**numbers), **options)
    usual = da.rollout(model, q, v, contact="rigid", **options)
    np.testing.assert_allclose(found.q, built.q, atol=1e-12)
    assert np.abs(found.q - usual.q).max() > 1e-6
    kernels = len(model.functions)
    da.rollout(
        model, q, v, contact="rigid", parameters=given | {"contact.tolerance": [1e-3, 1e-9]}, **options
    )
    assert len(model.functions) == kernels


def test_friction_of_a_name_that_both_have_is_refused():
    model = cube_on_ground()
    message = 'give "cube.joint_friction" or "cube.contact_friction"'
    with pytest.raises(UnknownNameError, match=message):
        model.value("cube.friction")
    with pytest.raises(UnknownNameError, match=message):
        da.rollout(model, *start(model, 1), steps=1, contact="rigid", parameters={"cube.friction": 0.3})
    with pytest.raises(UnknownNameError, match=r'is called "ground\.contact_friction"'):
        model.with_values({"ground.friction": 0.3})
    slower = model.with_values({"cube.joint_friction": [0.5] * 6})
    np.testing.assert_array_equal(slower.bodies["cube"].friction, 0.5)
    assert slower.value("cube.contact_friction") == model.value("cube.contact_friction")
    assert {"cube.joint_friction", "cube.contact_friction"} <= set(model.value_names())
    assert "cube.friction" not in model.value_names()


def test_names_of_several_shapes():
    """A body's name means all of its shapes, where these agree."""
    builder = da.ModelBuilder()
    feet = [da.shapes.Sphere(0.1, name=name, friction=(mu, 0, 0)) for name, mu in (("a", 0.2), ("b", 0.4))]
    builder.add_body("feet", joint=da.Free(), inertia=feet[0].inertia(mass=1.0), shapes=feet)
    model = builder.build()
    with pytest.raises(ModelError, match="differ in contact_friction; name one of them"):
        model.value("feet.contact_friction")
    same = model.with_values({"feet.contact_friction": 0.7})
    assert same.value("a.contact_friction") == same.value("b.contact_friction") == 0.7
    assert model.with_values({"b.contact_friction": 0.9}).value("a.contact_friction") == 0.2
    again = same.with_values({name: same.value(name) for name in same.value_names()})
    assert again.bodies["feet"].shapes == same.bodies["feet"].shapes


def test_pairs_keep_coefficients_of_their_own():
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    box = da.shapes.Box((0.2, 0.2, 0.2), name="box")
    builder.add_body("cube", joint=da.Free(), inertia=box.inertia(mass=2.0), shapes=[box])
    builder.add_shape("world", da.shapes.Plane(name="ground"))
    builder.add_contact_pair("box", "ground", friction=(0.2, 0.0, 0.0))
    model = builder.build()
    q, v = start(model, 1, speed=1.0)
    given = {"box.contact_friction": 0.6, "box.restitution": 0.5}
    found = da.rollout(model, q, v, steps=100, dt=DT, contact="rigid", parameters=given)
    assert 1.0 - found.v[0, -1, 3] == pytest.approx(0.2 * G * 0.1, rel=1e-4)
    dropped = da.rollout(model, *start(model, 1, 0.3), steps=400, dt=DT, contact="rigid", parameters=given)
    speed = dropped.v[0, :, 5]
    assert speed.max() / -speed.min() == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(
    ("contact", "given", "error", "message"),
    [
        ("compliant", {"contact.stiffness": -1.0}, ArgumentError, "stiffness is -1.0"),
        ("compliant", {"contact.stiffness": [1e4, np.nan]}, ArgumentError, "stiffness is nan"),
        ("rigid", {"contact.stiffness": 1e4}, UnknownNameError, 'valid: "contact.tolerance"'),
        (None, {"contact.tolerance": 1e-3}, UnknownNameError, "valid: none"),
        ("rigid", {"contact.iterations": 3}, UnknownNameError, "unknown parameter of the contact law"),
        ("rigid", {"cube.rolling_friction": 0.1}, UnknownNameError, "unknown value"),
    ],
)
def test_wrong_numbers_are_refused(contact, given, error, message):
    model = cube_on_ground()
    with pytest.raises(error, match=message):
        da.rollout(model, *start(model, 2), steps=1, contact=contact, parameters=given)
