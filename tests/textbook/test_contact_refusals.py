"""What people do wrong with the book's contact functions, and what they then read."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, ContactError, DtypeError, ModelError, ShapeError, StateError

SOLID = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))


def falling(joint=None):
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_body("ball", "world", joint or da.Prismatic((0.0, 0.0, 1.0)), inertia=SOLID)
    return builder.build()


BALL = falling()
FLOOR = da.textbook.GapFunction(BALL, lambda model, q: [q[0]])


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"q": [np.nan]}, ArgumentError, "q holds numbers that are not finite"),
        ({"v": [np.inf]}, ArgumentError, "v holds numbers that are not finite"),
        ({"q": [1.0, 0.0], "v": []}, ShapeError, r"q: expected \(1,\), got \(2,\)"),
        ({"q": [[1.0], [2.0]], "v": [[0.0], [0.0]]}, ShapeError, "one at a time"),
        ({"tau": [np.nan]}, ArgumentError, "tau holds numbers that are not finite"),
        ({"tau": lambda t, q, v: [np.nan]}, StateError, "tau is not finite at t = 0 s"),
        ({"tau": lambda t, q, v: None}, StateError, "tau is not finite"),
        ({"duration": np.inf}, ArgumentError, "duration"),
        ({"duration": "1"}, DtypeError, "duration is '1'"),
        ({"step": np.nan}, ArgumentError, "step"),
        ({"rest_velocity": -1.0}, ArgumentError, "rest_velocity"),
        (
            {"restitution": [0.5, 0.5]},
            ShapeError,
            r"restitution has the shape \(2,\); give one number, or 1, one for each contact",
        ),
        ({"gaps": None}, DtypeError, "gaps is NoneType; give a GapFunction"),
        ({"gaps": lambda q: q}, DtypeError, "gaps is function; give a GapFunction"),
        ({"model": da.models.pendulum()}, ModelError, '"model" and not of "pendulum"'),
    ],
)
def test_wrong_simulations_are_named(given, kind, text):
    options = {"model": BALL, "q": [1.0], "v": [0.0], "gaps": FLOOR, "duration": 0.5, "step": 0.01} | given
    with pytest.raises(kind, match=text):
        da.textbook.simulate_events(**options)


def test_loops_must_be_closed_at_the_start():
    """RBDA-11.5-PROCEDURE: what begins outside the constraints of the model has no motion under them."""
    model = da.models.four_bar()
    far = da.textbook.GapFunction(model, lambda model, q: [q[0] + 10.0])
    rest = np.zeros(model.nv)
    with pytest.raises(StateError, match="open by"):
        da.textbook.simulate_events(model, model.neutral() + 0.3, rest, far, duration=0.1, step=0.01)
    closed, _ = da.constraints.close_loops(model, model.neutral(), rest)
    with pytest.raises(StateError, match="the velocities open loops"):
        da.textbook.simulate_events(model, closed, rest + 1.0, far, duration=0.1, step=0.01)


def test_models_that_depend_on_time_are_refused():
    slide = da.Prismatic((0.0, 0.0, 1.0))
    moving = falling(da.joints.TimeDependent(slide, driver=slide, motion=lambda t: [0.1 * da.scalar.sin(t)]))
    with pytest.raises(ModelError, match="depends on time"):
        da.textbook.GapFunction(moving, lambda model, q: [q[0]])


@pytest.mark.parametrize(
    ("function", "text"),
    [(lambda model, q: None, "returned None"), (lambda model, q: q[0], "returned one number")],
)
def test_gaps_are_lists(function, text):
    with pytest.raises(DtypeError, match=text):
        da.textbook.GapFunction(BALL, function)


def test_wrong_problems_are_named():
    with pytest.raises(ContactError, match="H is singular"):
        da.textbook.least_constraint(np.zeros((2, 2)), [0.0, 0.0], np.ones((2, 1)), [0.0])
    with pytest.raises(ArgumentError, match="finite"):
        da.textbook.least_constraint(np.eye(1), [np.nan], [[1.0]], [0.0])
    with pytest.raises(ShapeError, match="one at a time"):
        da.textbook.contact_equations(BALL, [[1.0], [2.0]], [[0.0], [0.0]], [[0.0], [0.0]], FLOOR)
    N = da.textbook.contact_normal([0.0, 0.0, -1.0], [0.0, 0.0, 1.0])
    with pytest.raises(ArgumentError, match="velocity2 holds numbers that are not finite"):
        da.textbook.collide_bodies(None, np.zeros(6), SOLID, [0.0, 0.0, 0.0, 0.0, 0.0, np.nan], N)
    with pytest.raises(ArgumentError, match="points hold numbers that are not finite"):
        da.textbook.reduce_contacts([[np.nan, 0.0, 0.0]], [0.0, 0.0, 1.0])
    with pytest.raises(ShapeError, match="a contact solver returns 1 forces"):
        da.textbook.contact_dynamics(BALL, [1.0], [0.0], [0.0], FLOOR, lambda q, v, tau: None)
    with pytest.raises(StateError, match="solver returned forces that are not finite"):
        da.textbook.contact_dynamics(BALL, [1.0], [0.0], [0.0], FLOOR, lambda q, v, tau: [np.nan])
