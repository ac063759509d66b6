"""The same formulas on floats, NumPy batches, SymPy symbols and traced expressions."""

import numpy as np
import pytest
import sympy
from tests.spatial.dense import Random
from tests.tracing.interpreter import evaluate

from dalembert import tracing
from dalembert.spatial import (
    BodyAcceleration,
    Force,
    Mat3,
    Motion,
    RigidInertia,
    ScrewChain,
    Transform,
    Vec3,
    leaves,
    rebuild,
    scrx,
    scry,
    scrz,
)
from dalembert.spatial.exponential import (
    quaternion_exp,
    quaternion_log,
    se2_exp,
    se2_log,
    se3_exp,
    se3_log,
    so3_log,
)
from dalembert.spatial.rotations import (
    axis_angle_of_rotation,
    euler_angles_of_rotation,
    quaternion_of_rotation,
    rotation_of_euler_angles,
    rotation_of_quaternion,
)

BATCH = 5


def angle_functions(a, b, c):
    """Everything that branches on values, on one angle triple."""
    phi = Vec3(a, b, c)
    X = se3_exp(Motion(phi, Vec3(c, a, b)))
    R = rotation_of_euler_angles("zyx", [a, b, c])
    axis, angle = axis_angle_of_rotation(R)
    x, y, t = se2_exp(a, b, c)
    return [
        *X.leaves(),
        *se3_log(X),
        *so3_log(R),
        *quaternion_exp(phi),
        *quaternion_log(quaternion_exp(phi)),
        *rotation_of_quaternion(quaternion_of_rotation(R)),
        *euler_angles_of_rotation("zyx", R),
        *euler_angles_of_rotation("zxz", R),
        *axis,
        angle,
        x,
        y,
        t,
        *se2_log(x, y, t),
    ]


def vector_functions(*values):
    """A little of everything that does not branch, of 31 scalars."""
    x = list(values)
    screws = ScrewChain((scrx(x[0], x[1]), scry(x[2], x[3]), scrz(x[4], x[5])))
    v, a, f = Motion.of(x[6:12]), Motion.of(x[12:18]), Force.of(x[18:24])
    I = RigidInertia.from_compact(x[24], Vec3(*x[25:28]), _moments(x[28:31]))
    A = BodyAcceleration(v.angular, a.angular, a.linear).across_joint(screws, v, a)
    Y = screws.as_transform()
    IA = Y.inverse_apply(screws.apply(Random(0).articulated()[0]) + I)
    return [
        *screws.apply(v),
        *screws.inverse_apply(f),
        *(I * a + v.cross(I * v)),
        v.dot(f),
        *Y.apply(I),
        *screws.inverse_apply(I),
        *I.force_of(A),
        *IA,
        I.kinetic_energy(v),
    ]


def _moments(diagonal):
    return RigidInertia(1.0, Vec3.zero(), tuple(diagonal)).inertia


@pytest.mark.parametrize(("function", "arity"), [(angle_functions, 3), (vector_functions, 31)])
def test_batches_give_each_sample_what_it_gets_alone(function, arity):
    """RBDA-A.3-OPS on NumPy: one sample an element, zero and small angles among them"""
    samples = np.random.default_rng(0).uniform(-1.4, 1.4, (BATCH, arity))
    samples[0] = 0.0
    samples[1] *= 1e-5
    columns = [samples[:, j].copy() for j in range(arity)]
    with np.errstate(all="raise", under="ignore"):
        batch = function(*columns)
    for row in range(BATCH):
        alone = function(*[float(item) for item in samples[row]])
        together = [np.broadcast_to(item, BATCH)[row] for item in batch]
        np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("function", "arity"), [(angle_functions, 3), (vector_functions, 31)])
def test_traces_give_what_floats_give(function, arity):
    """RBDA-A.3-OPS on traced expressions"""
    graph = tracing.Graph()
    inputs = [graph.input("x", j) for j in range(arity)]
    outputs = [graph.coerce(item) for item in function(*inputs)]
    for scale in (0.0, 1e-5, 1.0):
        sample = scale * np.random.default_rng(1).uniform(-1.4, 1.4, arity)
        values = evaluate(outputs, {"x": sample})
        np.testing.assert_allclose(values, function(*sample.tolist()), rtol=1e-12, atol=1e-12)


def test_symbols_give_the_textbook_formulas():
    """RBDA-2.9-CROSS6, RBDA-2.14-EOM on SymPy"""
    w, v, m = sympy.symbols("w v m", real=True)
    body = Motion(Vec3(0.0, 0.0, w), Vec3(v, 0.0, 0.0))
    I = RigidInertia(m, Vec3.zero(), (0.0, 0.0, 1.0))
    f = body.cross(I * body)
    assert sympy.simplify(f.linear.y - m * v * w) == 0
    assert sympy.simplify(f.angular.z) == 0
    q, d = sympy.symbols("q d", real=True)
    X = scrz(q, d)
    back = X.inverse_apply(X.apply(I))
    assert _equal(back, I)
    general = X.as_transform()
    round_trip = general.inverse() @ general
    assert _equal(round_trip, Transform.identity())
    assert sympy.diff(w * body.angular.z, w) == 2 * w
    scaled = w * body
    assert scaled.angular.z == w**2


def _equal(a, b):
    """Whether two values are equal as formulas; literals are floats, so they are made exact first."""
    differences = [sympy.nsimplify(x - y) for x, y in zip(a.leaves(), b.leaves(), strict=True)]
    return all(sympy.simplify(item) == 0 for item in differences)


def test_arrays_and_numpy_scalars_multiply_from_the_left():
    """RBDA-A.3-OPS: a batch of factors times a value is a value of batches"""
    factors = np.array([1.0, 2.0, 3.0])
    for value in (*_one_of_each(),):
        scaled = factors * value
        assert type(scaled) is type(value)
        np.testing.assert_allclose(np.broadcast_to(scaled.leaves()[0], 3), factors * value.leaves()[0])
        assert np.float64(2.0) * value == value * 2.0


def _one_of_each():
    random = Random(0)
    return (
        random.vec3(),
        random.mat3(),
        random.motion()[0],
        random.force()[0],
        random.rigid()[0],
        random.articulated()[0],
    )


def test_traced_factors_multiply_from_the_left():
    """RBDA-A.3-OPS: expression * value"""
    graph = tracing.Graph()
    x = graph.input("x", 0)
    for value in _one_of_each():
        scaled = x * value
        assert type(scaled) is type(value)
        values = evaluate([graph.coerce(item) for item in leaves(scaled)], {"x": np.array([2.0])})
        np.testing.assert_allclose(values, [2.0 * item for item in leaves(value)])


def test_structural_zeros_of_a_trace_are_seen():
    """RBDA-A.4-ZEROROWS: a zero folded inside a trace is as good as a literal"""
    graph = tracing.Graph()
    zero = graph.input("x", 0) * 0.0
    E = rebuild(Mat3.identity(), [item if item == 1.0 else zero for item in Mat3.identity()])
    moved = Transform(E, Vec3.zero()).apply(Random(0).rigid()[0])
    assert all(graph.coerce(item).op == "constant" for item in moved.leaves())
