"""Traced functions follow the values that they read, whatever kind of value that is."""

from __future__ import annotations

import functools
import gc
import itertools
import random
import time
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
from tests.simulation.captured_kinds import KINDS

import dalembert as da
from dalembert import algorithms, scalar
from dalembert.errors import DalembertError, ModelError, TracingError
from dalembert.host.captured_values import reads_of
from dalembert.spatial import Mat3, Transform, Vec3

MODEL = da.models.pendulum()
GAIN = 1.0
kinds = pytest.mark.parametrize("kind", KINDS)


def force(policy, model=MODEL):
    return float(da.rollout(model, [0.0], [0.0], policy, steps=2, dt=0.01).tau[0, 0])


def observed(function):
    return float(
        da.rollout(MODEL, [0.0], [0.0], steps=2, dt=0.01, observe={"seen": function}).observed["seen"][0]
    )


def target(reference):
    """The target [rad] of a stiff servo, by the force in the first step."""
    servo = da.control.Servo(kp=1.0, kd=0.0, q_ref=reference)
    motion = da.rollout(MODEL, [0.0], [0.0], servo, steps=1, dt=1e-9, contact="rigid")
    return round(float(motion.tau[0, 0]), 6)


def adaptive(policy):
    motion = da.simulation.integrate_adaptive(MODEL, [0.0], [0.0], duration=0.01, tau=policy)
    return float(motion.trajectory().tau[0, 0])


@kinds
def test_each_kind_changes_from_one_to_two(kind):
    read, change = KINDS[kind]()
    assert float(read()) == 1.0
    change()
    assert float(read()) == 2.0


@kinds
def test_policies_follow(kind):
    read, change = KINDS[kind]()

    def policy(model, t, q, v):
        return [read()]

    assert (force(policy), force(policy)) == (1.0, 1.0)
    change()
    assert (force(policy), force(policy)) == (2.0, 2.0)


@kinds
def test_observers_follow(kind):
    read, change = KINDS[kind]()

    def observer(model, t, q, v):
        return read() + 0.0 * q[0]

    assert observed(observer) == 1.0
    change()
    assert observed(observer) == 2.0


@kinds
def test_references_follow(kind):
    read, change = KINDS[kind]()

    def reference(model, t):
        return [read()]

    assert target(reference) == 1.0
    change()
    assert target(reference) == 2.0


@kinds
def test_adaptive_integration_follows(kind):
    read, change = KINDS[kind]()

    def policy(model, t, q, v):
        return [read()]

    assert adaptive(policy) == 1.0
    change()
    assert adaptive(policy) == 2.0


@kinds
def test_compiled_functions_are_fixed_with_all_their_derivatives(kind):
    read, change = KINDS[kind]()

    def function(model, q, v):
        return [read() * q[0] * q[0] * v[0]]

    f = da.compile(function, MODEL)
    change()
    q, v, one = np.array([3.0]), np.array([1.0]), np.array([1.0])
    assert f(q, v) == 9.0
    assert f(np.full((9, 1), 3.0), np.ones((9, 1)))[4] == 9.0
    assert f.jacobian("q")(q, v).item() == 6.0
    assert f.jvp("q")(q, v, one) == 6.0
    assert f.vjp("q")(q, v, one) == 6.0
    assert f.hessian_vector("q")(q, v, one, one) == 2.0
    assert f.jacobian("q").jacobian("v")(q, v).item() == 6.0
    assert "2.0" not in f.source
    assert da.compile(function, MODEL)(q, v) == 18.0


def slider(read):
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    joint = da.joints.UserDefined(
        "slider",
        1,
        1,
        lambda q: Transform(Mat3.identity(), Vec3(read() * q[0], 0.0, 0.0)),
        coordinates=["length"],
    )
    builder.add_body("body", "world", joint, inertia=da.RigidInertia(1.0, (0, 0, 0), np.eye(3)))
    return builder.build()


@kinds
def test_user_defined_joints_follow(kind):
    read, change = KINDS[kind]()
    model = slider(read)
    q, v, tau = np.array([1.0]), np.array([0.0]), np.array([1.0])
    compiled = da.compile(da.forward_dynamics, model)
    before = da.forward_kinematics(model, q)["body"].translation[0], da.forward_dynamics(model, q, v, tau)[0]
    assert before == (1.0, 1.0)
    change()
    assert da.forward_kinematics(model, q)["body"].translation[0] == 2.0
    assert da.forward_dynamics(model, q, v, tau)[0] == 0.25
    assert da.forward_dynamics(model, np.ones((9, 1)), np.zeros((9, 1)), np.ones((9, 1)))[3] == 0.25
    assert force(lambda model, t, q, v: algorithms.mass_matrix(model, q)[0], model) == 4.0
    assert compiled(q, v, tau)[0] == compiled.jacobian("tau")(q, v, tau)[0, 0] == 1.0


@kinds
def test_prescribed_motions_follow(kind):
    read, change = KINDS[kind]()
    builder = da.ModelBuilder()
    joint = da.joints.TimeDependent(
        da.Revolute((0, 0, 1)), driver=da.Prismatic((1, 0, 0)), motion=lambda t: [read() * t]
    )
    builder.add_body("body", "world", joint, inertia=da.RigidInertia(1.0, (0, 0, 0), np.eye(3)))
    model = builder.build()
    assert da.forward_kinematics(model, [0.0], time=1.0)["body"].translation[0] == 1.0
    change()
    assert da.forward_kinematics(model, [0.0], time=1.0)["body"].translation[0] == 2.0


def two_sliders():
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for name in "ab":
        builder.add_body(
            name,
            "world",
            da.Prismatic((1, 0, 0)),
            inertia=da.RigidInertia(1.0, (0, 0, 0), np.eye(3)),
            joint_name=name,
        )
    return builder


@kinds
def test_constraints_follow(kind):
    read, change = KINDS[kind]()
    builder = two_sliders()
    builder.add_constraint(lambda model, q: [q[1] - read() * q[0]], name="gear")
    model = builder.build()
    arguments = np.zeros(2), np.zeros(2), np.array([1.0, 0.0])

    def ratio(model):
        a = da.forward_dynamics(model, *arguments)
        return a[1] / a[0]

    carried = da.models.pendulum().attach(model, prefix="other_")
    assert ratio(model) == pytest.approx(1.0)
    first = da.forward_dynamics(carried, np.zeros(3), np.zeros(3), [0.0, 1.0, 0.0])
    change()
    assert ratio(model) == pytest.approx(2.0)
    second = da.forward_dynamics(carried, np.zeros(3), np.zeros(3), [0.0, 1.0, 0.0])
    assert (first[2] / first[1], second[2] / second[1]) == pytest.approx((1.0, 2.0))


@kinds
def test_loop_closures_follow(kind):
    read, change = KINDS[kind]()
    builder = two_sliders()
    builder.set_loop_closure(lambda model, y: [y[0], read() * y[0]], ["a"])
    model = builder.build()

    def ratio():
        a = da.forward_dynamics(model, np.zeros(2), np.zeros(2), np.array([1.0, 0.0]))
        return a[1] / a[0]

    assert ratio() == pytest.approx(1.0)
    change()
    assert ratio() == pytest.approx(2.0)


@dataclass(frozen=True, slots=True)
class Scaled(da.joints.Joint):
    """A slider whose scale is read from elsewhere."""

    read: object
    kind = "scaled"
    nq = nv = 1
    coordinates = ("length",)

    def structure(self):
        return (self.kind,)

    def transform(self, q, time=None):
        return Transform(Mat3.identity(), Vec3(self.read() * q[0], 0.0, 0.0))

    def subspace(self, q, time=None):
        return (da.spatial.Motion(Vec3(0.0, 0.0, 0.0), Vec3(self.read(), 0.0, 0.0)),)


@kinds
def test_joint_classes_of_the_caller_follow(kind):
    read, change = KINDS[kind]()
    builder = da.ModelBuilder()
    builder.add_body("body", "world", Scaled(read), inertia=da.RigidInertia(1.0, (0, 0, 0), np.eye(3)))
    model = builder.build()
    assert da.mass_matrix(model, [0.0])[0, 0] == 1.0
    change()
    assert da.mass_matrix(model, [0.0])[0, 0] == 4.0


def test_derivatives_of_compiled_functions_keep_the_rates_of_user_defined_joints():
    scale = 2.0
    builder = da.ModelBuilder()
    joint = da.joints.UserDefined(
        "scaled",
        1,
        1,
        lambda q: Transform(Mat3.identity(), Vec3(q[0], 0.0, 0.0)),
        position_rate=lambda q, v: [scale * v[0]],
        integrate=lambda q, dv: [q[0] + scale * dv[0]],
        difference=lambda q0, q1: [(q1[0] - q0[0]) / scale],
    )
    builder.add_body("body", "world", joint, inertia=da.RigidInertia(1.0, (0, 0, 0), np.eye(3)))
    model = builder.build()
    f = da.compile(lambda model, q: [3.0 * q[0]], model)
    g = da.compile(da.integrate, model)
    assert da.integrate(model, [1.0], [1.0]) == 3.0
    scale = 5.0
    assert f.jacobian("q")([0.0]).item() == 6.0
    assert f.vjp("q")([0.0], [1.0]) == 6.0
    assert (g([1.0], [1.0]), da.integrate(model, [1.0], [1.0])) == (3.0, 6.0)
    assert da.compile(lambda model, q: [3.0 * q[0]], model).jacobian("q")([0.0]).item() == 15.0


def test_models_of_the_library_have_no_functions_to_watch():
    for name in ("pendulum", "arm6", "humanoid", "quadruped", "four_bar", "slider_crank"):
        assert not getattr(da.models, name)().has_functions
    assert slider(lambda: 1.0).has_functions
    assert slider(lambda: 1.0).attach(da.models.pendulum(), prefix="other_").has_functions


CLOCK = itertools.count()
SEEDED = random.Random(5)
GENERATOR = np.random.default_rng(3)
IMPURE = {
    "random": lambda: random.random(),
    "a generator of its own": lambda: SEEDED.random(),
    "NumPy's random numbers": lambda: np.random.rand(),  # noqa: NPY002
    "a generator of NumPy": lambda: GENERATOR.normal(),
    "a clock": lambda: time.perf_counter(),
    "an iterator": lambda: float(next(CLOCK)),
    "a generator": lambda values=(float(i) for i in range(10**6)): next(values),
}


@pytest.mark.parametrize("what", IMPURE)
def test_functions_that_change_by_themselves_are_refused(what):
    read = IMPURE[what]
    with pytest.raises(TracingError, match="parameters="):
        force(lambda model, t, q, v: [read()])
    with pytest.raises(TracingError, match="observer"):
        observed(lambda model, t, q, v: read())
    with pytest.raises(TracingError, match="reference q_ref"):
        target(lambda model, t: [read()])
    with pytest.raises(ModelError, match="another function each time"):
        da.forward_dynamics(slider(read), [0.0], [0.0], [0.0])


class Policy:
    def __init__(self, gain):
        self.gain = gain

    def __call__(self, model, t, q, v):
        return [self.gain]

    def method(self, model, t, q, v):
        return [-self.gain]


@dataclass
class Unhashable:
    gain: float

    def __call__(self, model, t, q, v):
        return [self.gain]


class Slotted:
    __slots__ = ("gain",)

    def __call__(self, model, t, q, v):
        return [self.gain]


def with_a_keyword(model, t, q, v, *, gain):
    return [gain[0]]


def test_policies_that_are_objects_follow():
    made, plain, slotted, gains = Policy(1.0), Unhashable(4.0), Slotted(), [6.0]
    slotted.gain = 5.0
    partial = functools.partial(with_a_keyword, gain=gains)
    policies = (made, made.method, plain, slotted, partial)
    assert [force(f) for f in policies] == [1.0, -1.0, 4.0, 5.0, 6.0]
    made.gain, plain.gain, slotted.gain, gains[0] = 10.0, 40.0, 50.0, 60.0
    assert [force(f) for f in policies] == [10.0, -10.0, 40.0, 50.0, 60.0]


def test_constraints_may_be_objects_of_any_kind():
    @dataclass
    class Gear:
        ratio: float

        def __call__(self, model, q):
            return [q[1] - self.ratio * q[0]]

    gear = Gear(1.0)
    builder = two_sliders()
    builder.add_constraint(gear, name="gear")
    model = builder.build()
    ratios = []
    for gear.ratio in (1.0, 3.0):
        a = da.forward_dynamics(model, np.zeros(2), np.zeros(2), np.array([1.0, 0.0]))
        ratios.append(a[1] / a[0])
    assert ratios == pytest.approx([1.0, 3.0])


def test_loops_tables_and_parameters_pass_through_a_recorded_policy():
    table = np.array([1.0, 4.0, 9.0])

    def policy(model, t, q, v):
        root = scalar.loop(20, lambda x: 0.5 * (x + (2.0 + q[0] * q[0]) / x), 1.0, until=lambda x: x < 0.0)
        inner = scalar.loop(3, lambda x: scalar.loop(2, lambda y: y + v[0], x), 1.0)
        picked = scalar.lookup(table, scalar.select(q[0] > 0.05, 1.0, 2.0))
        gravity = algorithms.gravity_forces(model, q)[0]
        return [root + inner + picked + gravity]

    mass = 2.5
    model = da.models.pendulum()
    motion = da.rollout(
        model, [0.1], [0.3], policy, steps=3, dt=0.01, parameters={"bob.mass": mass}, observe=("energy",)
    )
    heavy = model.with_values({"bob.mass": mass})
    for k in range(3):
        q, v = motion.q[k, 0], motion.v[k, 0]
        expected = np.sqrt(2.0 + q * q) + 1.0 + 6.0 * v + (4.0 if q > 0.05 else 9.0)
        expected += da.gravity_forces(heavy, motion.q[k])[0]
        assert motion.tau[k, 0] == pytest.approx(expected, rel=1e-12)
    table[1] = 5.0
    changed = da.rollout(
        model, [0.1], [0.3], policy, steps=3, dt=0.01, parameters={"bob.mass": mass}, observe=("energy",)
    )
    assert changed.tau[0, 0] == pytest.approx(motion.tau[0, 0] + 1.0)


def test_nothing_is_compiled_or_traced_again_where_nothing_has_changed():
    calls = []

    def policy(model, t, q, v):
        return [GAIN * 2.0 - 0.1 * v[0]]

    def counted(model, t, q, v):
        calls.append(t)  # reads a list that it changes: traced each time
        return [-0.1 * v[0]]

    model, made = da.models.pendulum(), Policy(1.0)
    used = (policy, made, made.method, counted)
    for function in used:
        da.rollout(model, [0.0], [0.0], function, steps=2, dt=0.01)
    kernels = list(model.functions["kept kernels"].values())
    number = len(calls)
    for function in used:
        da.rollout(model, [0.3], [0.0], function, steps=5, dt=0.02)
    assert list(model.functions["kept kernels"].values()) == kernels
    assert len(calls) == number + 1


def test_equal_functions_share_a_kernel_and_are_not_kept():
    model, references = da.models.pendulum(), []
    for _ in range(5):
        policy = lambda model, t, q, v: [-0.3 * v[0]]
        observe = {"angle": lambda model, t, q, v: 2.0 * q[0]}
        servo = da.control.Servo(kp=1.0, kd=1.0, q_ref=lambda model, t: [0.1 * t])
        references += [weakref.ref(item) for item in (policy, observe["angle"], servo.q_ref)]
        da.rollout(model, [0.0], [0.0], policy, steps=2, dt=0.01, observe=observe)
        da.rollout(model, [0.0], [0.0], servo, steps=2, dt=0.01)
    assert len(model.functions["kept kernels"]) == 3
    del policy, observe, servo
    gc.collect()
    assert [reference() for reference in references] == [None] * 15


def test_a_model_keeps_a_bounded_number_of_kernels():
    model = da.models.pendulum()
    for k in range(40):
        motion = da.rollout(model, [0.0], [0.0], lambda model, t, q, v, k=k: [0.1 * k], steps=1, dt=0.01)
        assert motion.tau[0, 0] == 0.1 * k
    assert len(model.functions["kept kernels"]) <= 16


def test_an_error_of_a_function_appears_when_it_is_compiled():
    def wrong(model, q):
        return [q[0]] if q[0] > 0.0 else [-q[0]]

    with pytest.raises(DalembertError, match=r"scalar\.select"):
        da.compile(wrong, MODEL)


def test_a_proof_records_values_by_content():
    values = {"gains": [1.0, (2.0, np.arange(3.0))]}

    def function(q):
        return values["gains"][0] * q

    reads = reads_of(function)
    assert reads is not None
    assert reads.is_unchanged()
    values["gains"][1][1][2] = 7.0
    assert not reads.is_unchanged()
