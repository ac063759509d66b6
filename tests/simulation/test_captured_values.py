"""Traced functions follow the values around them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

import dalembert as da

GAIN = 1.0
WEIGHTS = np.array([1.0, 2.0])
OPTIONS = {"gains": [1.0]}


def of_a_global(model, t, q, v):
    return [GAIN]


def of_a_function(model, t, q, v):
    return [2.0 * of_a_global(model, t, q, v)[0]]


def of_an_array(model, t, q, v):
    return [WEIGHTS[0] * 1.0]


def of_a_list(model, t, q, v):
    return [OPTIONS["gains"][0]]


def with_a_keyword(model, t, q, v, *, force):
    return [force]


class Policy:
    def __init__(self, force):
        self.force = force

    def __call__(self, model, t, q, v):
        return [self.force]

    def method(self, model, t, q, v):
        return [-self.force]


@dataclass
class Unhashable:
    force: float

    def __call__(self, model, t, q, v):
        return [self.force]


def forces(policy):
    return float(da.rollout(MODEL, [0.0], [0.0], policy, steps=2, dt=0.01).tau[0, 0])


MODEL = da.models.pendulum()


def test_policies_follow_globals_arrays_and_what_they_call(monkeypatch):
    assert [forces(f) for f in (of_a_global, of_a_function, of_an_array, of_a_list)] == [1.0, 2.0, 1.0, 1.0]
    monkeypatch.setitem(globals(), "GAIN", 3.0)
    monkeypatch.setitem(OPTIONS, "gains", [5.0])
    WEIGHTS[0] = 7.0
    try:
        assert [forces(f) for f in (of_a_global, of_a_function, of_an_array, of_a_list)] == [
            3.0,
            6.0,
            7.0,
            5.0,
        ]
    finally:
        WEIGHTS[0] = 1.0


def test_policies_follow_closures_and_objects():
    gain = 1.0

    def closed(model, t, q, v):
        return [gain]

    made = Policy(2.0)
    method = made.method
    plain = Unhashable(4.0)
    partial = functools.partial(with_a_keyword, force=6.0)
    policies = (closed, made, method, plain, partial)
    assert [forces(f) for f in policies] == [1.0, 2.0, -2.0, 4.0, 6.0]
    gain, made.force, plain.force = 10.0, 20.0, 40.0
    assert [forces(f) for f in policies] == [10.0, 20.0, -20.0, 40.0, 6.0]


def test_observers_servos_and_adaptive_motion_follow_too():
    height = 1.0
    observer = {"height": lambda model, t, q, v: height}
    servo = da.control.Servo(kp=1e6, kd=1e4, q_ref=lambda model, t: [0.1 * height])

    def policy(model, t, q, v):
        return [height]

    def found():
        watched = da.rollout(MODEL, [0.0], [0.0], servo, steps=200, dt=0.01, observe=observer)
        motion = da.simulation.integrate_adaptive(MODEL, [0.0], [0.0], duration=0.1, tau=policy)
        return watched.observed["height"][0], watched.q[-1, 0], motion.trajectory().tau[0, 0]

    assert found() == pytest.approx((1.0, 0.1, 1.0), abs=1e-4)
    height = 3.0
    assert found() == pytest.approx((3.0, 0.3, 3.0), abs=1e-4)


def test_nothing_is_compiled_again_where_nothing_has_changed():
    def policy(model, t, q, v):
        return [GAIN * WEIGHTS[1] - 0.1 * v[0]]

    model, made = da.models.pendulum(), Policy(1.0)
    for used in (policy, made, made.method):
        da.rollout(model, [0.0], [0.0], used, steps=2, dt=0.01)
    kernels = dict(model.functions)
    for used in (policy, made, made.method):
        da.rollout(model, [0.3], [0.0], used, steps=5, dt=0.02)
    assert all(model.functions[key] is kernels[key] for key in kernels)
    assert len(model.functions) == len(kernels)
