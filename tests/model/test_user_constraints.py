"""Constraints and loop closures that users give as functions: how models hold, carry and refuse them."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, ModelError, UnknownNameError
from dalembert.scalar import sin

SOLID = da.RigidInertia(1.3, (0.1, 0.02, -0.03), (0.02, 0.03, 0.025))


def meet(model: Any, q: Any) -> list[Any]:
    return [q[0] - 0.3 * sin(q[1])]


def slide(model: Any, q: Any, v: Any) -> list[Any]:
    return [v[0] - sin(q[0]) * v[2]]


def driven(model: Any, q: Any, time: Any) -> list[Any]:
    return [q[2] - 0.1 * time, q[1] - 0.2]


def cam(model: Any, y: Any) -> list[Any]:
    return [y[0], 0.5 * sin(y[0]), y[1]]


def arm() -> da.ModelBuilder:
    builder = da.ModelBuilder(name="arm")
    builder.add_body("a", "world", da.Revolute(), inertia=SOLID)
    builder.add_body("b", "a", da.Revolute((1, 0, 0)), placement=shift(0.5), inertia=SOLID)
    builder.add_body("c", "b", da.Prismatic((0, 1, 0)), placement=shift(0.2), inertia=SOLID)
    return builder


def shift(x: float) -> da.Transform:
    return da.Transform.from_rotation_translation(np.eye(3), (x, 0.1, 0.0))


def constrained() -> da.Model:
    builder = arm()
    builder.add_constraint(meet)
    builder.add_constraint(slide, "velocity", name="slip")
    builder.add_constraint(driven)
    return builder.build()


def test_a_model_holds_its_constraints() -> None:
    model = constrained()
    assert model.constraints.names == ("meet", "slip", "driven")
    assert [(c.kind, c.size, c.time_dependent) for c in model.constraints] == [
        ("position", 1, False),
        ("velocity", 1, False),
        ("position", 2, True),
    ]
    assert model.time_dependent
    assert model.constraints["driven"].residual(model, [0.1, 0.2, 0.3], [0.0] * 3, 1.0) == [
        pytest.approx(0.2),
        0.0,
    ]
    with pytest.raises(ArgumentError, match="time="):
        model.constraints["driven"].residual(model, [0.1, 0.2, 0.3], [0.0] * 3)
    text = model.summary()
    assert "meet: of position, 1 residuals" in text
    assert "driven: of position, 2 residuals, with time" in text


def test_equality_digest_and_pickling_know_functions() -> None:
    one, two = constrained(), constrained()
    assert one == two
    assert hash(one) == hash(two)
    assert one != arm().build()
    assert one.tree() == arm().build()
    assert pickle.loads(pickle.dumps(one)) == one
    other = arm()
    other.add_constraint(lambda model, q: [q[0]], name="meet")
    assert other.build() != arm().build()
    closed = arm()
    closed.set_loop_closure(cam, ["a", "c"])
    model = closed.build()
    assert model.closure is not None
    assert model != arm().build()
    assert pickle.loads(pickle.dumps(model)) == model
    assert model.closure.configuration(model, [0.4, 0.1]) == [0.4, pytest.approx(0.5 * np.sin(0.4)), 0.1]
    assert "loop closure: q is a function of a, c" in model.summary()
    for unsaved in (one, model):
        with pytest.raises(ModelError, match="cannot be saved as data"):
            unsaved.to_json()
    assert da.Model.from_json(one.tree().to_json()) == one.tree()


@pytest.mark.parametrize("name", ["arm.urdf", "arm.xml", "arm.json"])
def test_files_refuse_functions(name: str, tmp_path: Any) -> None:
    one, two = arm(), arm()
    one.set_loop_closure(cam, ["a", "c"])
    two.add_constraint(meet)
    for model in (one.build(), two.build()):
        with pytest.raises(da.errors.DalembertError, match="function"):
            da.save(model, tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (3.0, "position", "give a function"),
        (lambda q: [q[0]], "position", r"takes \(q\)"),
        (lambda model, q, v: [v[0]], "position", "takes"),
        (lambda model, q: [q[0]], "velocity", "takes"),
        (lambda model, q, *, scale: [q[0]], "position", "keyword-only"),
        (lambda model, q: q[0], "position", "return a list"),
        (lambda model, q: [], "position", "no residuals"),
        (lambda model, q: ["x"], "position", "list of scalars"),
        (lambda model, q: [float("nan")], "position", "nan at the neutral"),
        (lambda model, q: [1.0 / q[0]], "position", "ZeroDivisionError"),
        (lambda model, q: [q[7]], "position", "IndexError"),
        (lambda model, q, v: [v[0] * v[1]], "velocity", "not linear in v"),
        (lambda model, q, v: [q[0] * v[0], abs(v[1])], "velocity", "residual 1 is not linear"),
    ],
)
def test_functions_that_cannot_be_constraints_are_refused(function: Any, kind: Any, words: str) -> None:
    def build() -> None:
        builder = arm()
        builder.add_constraint(function, kind, name="wrong")
        builder.build()

    with pytest.raises(ModelError, match=words):
        build()


def test_names_are_checked() -> None:
    builder = arm()
    builder.add_loop("pin", "world", "c", da.Spherical())
    builder.add_constraint(meet)
    with pytest.raises(UnknownNameError, match="nearest"):
        builder.add_constraint(meet, "positon", name="x")  # type: ignore[arg-type]
    for taken in ("meet", "pin", "a"):
        with pytest.raises(ModelError, match="already"):
            builder.add_constraint(slide, "velocity", name=taken)
    with pytest.raises(ModelError, match="already"):
        builder.add_loop("meet", "world", "c", da.Spherical())
    with pytest.raises(ModelError, match="already"):
        builder.add_body("d", "a", da.Revolute(), "meet", inertia=SOLID)
    builder.add_constraint(lambda model, q: [q[0]])
    builder.add_constraint(partial(meet))
    assert builder.build().constraints.names == ("meet", "constraint1", "constraint2")


def test_a_number_of_residuals_that_changes_is_an_error() -> None:
    builder = arm()
    builder.add_constraint(lambda model, q: [q[0]] * (1 if q[0] == 0.0 else 2), name="growing")
    model = builder.build()
    with pytest.raises(ModelError, match="2 residuals, and 1"):
        model.constraints["growing"].residual(model, [1.0, 0.0, 0.0], [0.0] * 3)


@pytest.mark.parametrize(
    ("function", "independent", "words"),
    [
        (cam, ["a", "x"], 'unknown joint "x"'),
        (lambda model, y: [y[0]], ["a"], "returned 1 numbers"),
        (lambda model, y: [y[1] + 1.0, 0.0, y[0]], ["a", "c"], "must be its y"),
        (lambda model: [0.0], ["a"], "takes"),
        (lambda model, y: 1.0, ["a"], "return a list"),
        (lambda model, y: [y[0], float("inf"), 0.0], ["a"], "inf at the neutral"),
    ],
)
def test_functions_that_cannot_close_loops_are_refused(function: Any, independent: Any, words: str) -> None:
    def build() -> None:
        builder = arm()
        builder.set_loop_closure(function, independent)
        builder.build()

    with pytest.raises((ModelError, UnknownNameError), match=words):
        build()


def test_closures_must_solve_the_loops() -> None:
    def crank(wrong: float, off: float = 0.0) -> da.Model:
        base = da.models.slider_crank()
        builder = da.ModelBuilder()
        for body in base.bodies:
            parent = "world" if body.parent < 0 else base.bodies[body.parent].name
            builder.add_body(body.name, parent, body.joint, placement=body.placement, inertia=SOLID)
        builder.add_loop("pin", "rod", "slider", base.loops[0].joint, base.loops[0].placement_predecessor)

        def gamma(model: Any, y: Any) -> list[Any]:
            sine = 0.25 / 0.8 * sin(y[0])
            cosine = da.scalar.sqrt(1.0 - sine * sine)
            slide = 0.25 * da.scalar.cos(y[0]) + 0.8 * cosine - 1.05 + off
            return [y[0], -y[0] - wrong * da.scalar.atan2(sine, cosine), slide]

        builder.set_loop_closure(gamma, ["crank"])
        return builder.build()

    assert crank(1.0).closure is not None
    with pytest.raises(ModelError, match='leaves "pin" open by'):
        crank(-1.0)  # right at y = 0, wrong beside it
    with pytest.raises(ModelError, match='leaves "pin" open by'):
        crank(1.0, off=0.1)
    builder = arm()
    builder.set_loop_closure(cam, ["a", "c"])
    builder.add_constraint(lambda model, q: [q[1] - 0.5 * sin(q[0])], name="same")
    assert builder.build().closure is not None
    builder.add_constraint(lambda model, q: [q[1] - 0.4 * sin(q[0])], name="other")
    with pytest.raises(ModelError, match='leaves "other" open'):
        builder.build()


def test_closures_need_joints_whose_velocity_is_a_rate() -> None:
    builder = arm()
    builder.add_body("ball", "c", da.Spherical(), inertia=SOLID)
    builder.set_loop_closure(lambda model, y: [y[0], 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], ["a"])
    with pytest.raises(ModelError, match="v is not dq/dt"):
        builder.build()
    with pytest.raises(ModelError, match="list of joint names"):
        builder.set_loop_closure(cam, "a")
    coupled = arm()
    coupled.add_coupling("gear", {"a": 1.0, "b": -2.0})
    coupled.set_loop_closure(lambda model, y: [y[0], 0.0], ["b"])
    with pytest.raises(ModelError, match="follows a coupling"):
        coupled.build()


def test_surgery_keeps_what_constraints_mean() -> None:
    """A function goes on seeing the q and v of the model that it was written for."""
    model = constrained()
    q, v = np.array([0.3, -0.4, 0.2]), np.array([0.5, 0.6, -0.7])

    def values(system: Any, name: str, *state: Any) -> Any:
        found = system.constraints[name]
        return found.residual(system, *(list(x) for x in state), 0.5)

    locked = model.lock(["b"], [0.1, 0.7, 0.2])
    assert (locked.nv, locked.constraints.names) == (2, model.constraints.names)
    for name in model.constraints.names:
        there = values(model, name, [0.3, 0.7, 0.2], [0.5, 0.0, -0.7])
        assert values(locked, name, [0.3, 0.2], [0.5, -0.7]) == there
    twice = locked.lock(["c"], [0.0, 0.9])
    assert values(twice, "slip", [0.3], [0.5]) == values(model, "slip", [0.3, 0.7, 0.9], [0.5, 0.0, 0.0])
    assert locked == model.lock(["b"], [0.1, 0.7, 0.2])

    both = da.models.double_pendulum().attach(model, at="world", prefix="left_")
    assert both.constraints.names == ("left_meet", "left_slip", "left_driven")
    for name in model.constraints.names:
        assert values(both, f"left_{name}", [9.0, 9.0, *q], [9.0, 9.0, *v]) == values(model, name, q, v)

    builder = arm()
    builder.add_body("plate", "c", da.Fixed(), inertia=SOLID)
    builder.add_constraint(meet)
    lumped = builder.build().lumped()
    assert values(lumped, "meet", q, v) == values(model, "meet", q, v)

    heavier = model.with_values({"a.mass": 2.0})
    assert heavier.constraints.names == model.constraints.names
    assert heavier.with_values({"b.placement": np.eye(3, 4)}).constraints["meet"].function is meet
    locked.with_values({"a.mass": 2.0})
    with pytest.raises(ModelError, match="sees the model"):
        locked.with_values({"c.placement": np.eye(3, 4)})
    assert not model.tree().constraints


def test_surgery_and_explicit_constraints() -> None:
    builder = arm()
    builder.set_loop_closure(cam, ["a", "c"])
    alone = builder.build()
    assert alone.with_values({"a.mass": 2.0}).closure is not None
    assert alone.tree().closure is None
    with pytest.raises(ModelError, match="set_loop_closure"):
        alone.lock(["b"])
    builder.add_constraint(lambda model, q: [q[1] - 0.5 * sin(q[0])], name="same")
    beside = builder.build().lock(["b"])
    assert beside.closure is None
    assert any("left behind" in line for line in beside.report)


def test_couplings_and_constraints_together() -> None:
    builder = arm()
    builder.add_coupling("gear", {"a": 1.0, "b": -2.0})
    builder.add_constraint(lambda model, q: [q[0] - 0.3 * q[1]], name="tie")
    model = builder.build()
    full = model.uncoupled()
    assert (model.nv, full.nv) == (2, 3)
    q = [0.4, 0.1]
    assert full.constraints["tie"].residual(full, model.expand_q(q), [0.0] * 3) == model.constraints[
        "tie"
    ].residual(model, q, [0.0] * 2)
