"""`da.compile` on functions that users write: results of any form, checked arguments, derivatives, source."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.conformance.models import arm, branched

import dalembert as da
from dalembert import algorithms as al
from dalembert import scalar
from dalembert.api import declared
from dalembert.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    TracingError,
    UnknownNameError,
)
from dalembert.spatial import Vec3


class Energies(NamedTuple):
    kinetic: Any
    potential: Any


def energies(m: da.Model, q: Any, v: Any) -> Energies:
    return Energies(al.kinetic_energy(m, q, v), al.potential_energy(m, q))


@pytest.fixture(scope="module")
def state() -> tuple[np.ndarray, np.ndarray]:
    return arm().random_state(3)


def test_own_function_with_own_inputs(state: tuple[np.ndarray, np.ndarray]):
    """A PD law with gains as an input, beside known names; one sample and a batch of any rank."""
    model = arm()
    law = da.compile(
        lambda m, q, v, gains, target: [
            gains[0][k] * (target[k] - q[k]) - gains[1][k] * v[k] + g
            for k, g in enumerate(al.gravity_forces(m, q))
        ],
        model,
        inputs={"gains": (2, model.nv), "target": model.nq},
    )
    q, v = state
    gains, target = np.array([[3.0, 4.0], [0.5, 0.6]]), np.array([0.1, -0.2])
    expected = gains[0] * (target - q) - gains[1] * v + da.gravity_forces(model, q)
    np.testing.assert_allclose(law(q, v, gains, target), expected, atol=1e-12)
    many = law(np.tile(q, (2, 3, 1)), v, np.tile(gains, (3, 1, 1)), target=target)
    np.testing.assert_allclose(many, np.broadcast_to(expected, (2, 3, 2)), atol=1e-12)
    assert law.inputs == {"q": (2,), "v": (2,), "gains": (2, 2), "target": (2,)}
    assert law.outputs == {"output": (2,)}


def test_results_keep_the_form_that_the_function_gives(state: tuple[np.ndarray, np.ndarray]):
    """Named tuples, tuples and mappings, at the first call and at every later one, alone and in batches."""
    model = arm()
    q, v = state
    expected = (da.dynamics.kinetic_energy(model, q, v), da.dynamics.potential_energy(model, q))
    forms: list[tuple[Callable[..., Any], Callable[[Any], tuple[Any, ...]]]] = [
        (energies, lambda r: (r.kinetic, r.potential)),
        (lambda m, q, v: tuple(energies(m, q, v)), tuple),
        (lambda m, q, v: energies(m, q, v)._asdict(), lambda r: (r["kinetic"], r["potential"])),
    ]
    for function, parts in forms:
        f = da.compile(function, model)
        first = f(q, v)
        for _ in range(3):
            again = f(q, v)
            assert type(again) is type(first)
            assert [type(x) for x in parts(again)] == [type(x) for x in parts(first)]
            np.testing.assert_allclose(parts(again), expected, rtol=1e-13)
        batch = f(np.tile(q, (5, 1)), np.tile(v, (5, 1)))
        assert type(batch) is type(first)
        np.testing.assert_allclose(np.stack(parts(batch), axis=-1), np.tile(expected, (5, 1)), rtol=1e-13)


def test_several_results_of_different_shapes_take_out(state: tuple[np.ndarray, np.ndarray]):
    model = arm()
    q, v = state
    f = da.compile(
        lambda m, q, v: (al.mass_matrix(m, q), al.gravity_forces(m, q), al.momentum(m, q, v)), model
    )
    M, g, h = f(q, v)
    assert (M.shape, g.shape, h.shape) == ((2, 2), (2,), (6,))
    out = (np.zeros((4, 2, 2)), np.zeros((4, 2)), np.zeros((4, 6)))
    results = f(np.tile(q, (4, 1)), v, out=out)
    assert all(a is b for a, b in zip(results, out))
    np.testing.assert_array_equal(out[0][3], M)
    np.testing.assert_array_equal(out[2][3], h)
    with pytest.raises(ArgumentError, match="out holds 1 arrays, but there are 3 results"):
        f(q, v, out=M)


def test_spatial_values_become_arrays(state: tuple[np.ndarray, np.ndarray]):
    """Vec3, motions and poses: 3 numbers, 6 numbers angular first, 4x4 homogeneous."""
    model = arm()
    q, v = state
    f = da.compile(
        lambda m, q, v: (
            al.center_of_mass(m, q), list(al.body_velocities(m, q, v)), al.forward_kinematics(m, q)
        ),
        model,
    )  # fmt: skip
    com, velocities, poses = f(q, v)
    np.testing.assert_allclose(com, da.dynamics.center_of_mass(model, q), atol=1e-14)
    expected = [da.jacobian(model, q, body.name, frame="body") @ v for body in model.bodies]
    np.testing.assert_allclose(velocities, expected, atol=1e-13)
    np.testing.assert_allclose(poses[:, :3, :3], da.forward_kinematics(model, q).rotation, atol=1e-14)
    np.testing.assert_array_equal(poses[:, 3], np.tile([0.0, 0.0, 0.0, 1.0], (3, 1)))


def test_constants_and_arguments_may_be_results():
    """What does not depend on the arguments is the same in every row; what is not changed comes back."""
    model = arm()
    q = np.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(da.compile(lambda m, q: 3.0, model)(q), np.full(5, 3.0))
    np.testing.assert_array_equal(da.compile(lambda m, q: [0.0] * 20, model)(q), np.zeros((5, 20)))
    np.testing.assert_array_equal(da.compile(lambda m, q: [4.0] * 17, model)(q), np.full((5, 17), 4.0))
    np.testing.assert_array_equal(da.compile(lambda m, q: q, model)(q), q)
    assert da.compile(lambda m, q: [], model)(q).shape == (5, 0)
    assert float(da.compile(lambda m, q: 3.0, model)(q[0])) == 3.0


def test_callables_of_every_kind():
    """Functions with defaults, partial ones, callable objects, methods, algorithms and public functions."""
    model = arm()
    q = np.array([0.3, -0.4])

    class Scale:
        factor = 2.0

        def __call__(self, m: da.Model, q: Any) -> Any:
            return [self.factor * x for x in q]

        def method(self, m: da.Model, q: Any) -> Any:
            return [self.factor + x for x in q]

    np.testing.assert_array_equal(da.compile(Scale(), model)(q), 2.0 * q)
    np.testing.assert_array_equal(da.compile(Scale().method, model)(q), 2.0 + q)
    np.testing.assert_array_equal(da.compile(lambda m, q, k=3.0: [k * x for x in q], model)(q), 3.0 * q)
    J = da.compile(functools.partial(al.jacobian, where="link1", frame="body"), model)(q)
    np.testing.assert_allclose(J, da.jacobian(model, q, "link1", frame="body"), atol=1e-14)
    np.testing.assert_allclose(da.compile(al.mass_matrix, model)(q), da.mass_matrix(model, q), atol=1e-14)
    np.testing.assert_array_equal(da.compile(da.mass_matrix, model)(q), da.mass_matrix(model, q))


def test_own_function_with_the_name_and_place_of_a_public_one_is_compiled_itself():
    model = arm()

    @functools.wraps(da.mass_matrix)
    def twice(m: da.Model, q: Any) -> Any:
        return [[2.0 * entry for entry in row] for row in al.mass_matrix(m, q)]

    del twice.__wrapped__  # type: ignore[attr-defined]
    q = np.array([0.3, -0.4])
    np.testing.assert_allclose(da.compile(twice, model)(q), 2.0 * da.mass_matrix(model, q), atol=1e-14)


def test_choice_by_value_goes_through_select():
    model = arm()
    f = da.compile(lambda m, q: scalar.select(q[0] > 0.0, q[1], scalar.minimum(q[1], -1.0)), model)
    np.testing.assert_array_equal(f([[1.0, 5.0], [-1.0, 5.0], [-1.0, -3.0]]), [5.0, -1.0, -3.0])


def test_traced_value_in_if_names_the_line_and_select():
    """The message points into the caller's file, at the line of the `if`, and says what to write."""

    def branch(m: da.Model, q: Any) -> Any:
        if q[0] > 0.0:
            return q[0]
        return q[1]

    line = branch.__code__.co_firstlineno + 1
    with pytest.raises(TracingError, match=rf"test_compile_user_functions\.py:{line}.*`if`.*scalar\.select"):
        da.compile(branch, arm())(np.zeros(2))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda m, q: float(q[0]), r"cannot become float; use the functions of dalembert\.scalar"),
        (lambda m, q: None, "output is a NoneType; a traced function returns scalars"),
        (lambda m, q: "text", "output is a str"),
        (lambda m, q: (), "at least; got none"),
        (lambda m, q: [q, q[:1]], r"output\[1\] has shape \(1,\) but output\[0\] has \(2,\).*tuple"),
        (lambda m, q: q[0] < 1.0, r"is a condition; return scalar\.select"),
    ],
)
def test_what_cannot_be_traced_says_so(function: Callable[..., Any], message: str):
    with pytest.raises(TracingError, match=message):
        da.compile(function, arm())(np.zeros(2))


def test_what_cannot_be_compiled_says_so():
    model = arm()
    with pytest.raises(ArgumentError, match=r'shape of "gains" is not known.*inputs=\{"gains": \(3,\)\}'):
        da.compile(lambda m, q, gains: q[0], model)
    with pytest.raises(UnknownNameError, match='"gain"; valid: "q", "gains"; nearest: "gains"'):
        da.compile(lambda m, q, gains=1: q[0], model, inputs={"gain": 3})
    for shape in (-1, 1.5, "3", (2, -1), (2, "x")):
        with pytest.raises(ArgumentError, match=r'shape of "gains" is .*; give a length'):
            da.compile(lambda m, q, gains: q[0], model, inputs={"gains": shape})  # type: ignore[dict-item]
    with pytest.raises(ArgumentError, match=r'parameters=\("gravity",\)'):
        da.compile(energies, model, parameters="gravity")
    with pytest.raises(DtypeError, match="got CompiledFunction; what is compiled can be called"):
        da.compile(da.compile(energies, model), model)
    with pytest.raises(ArgumentError, match="takes no arguments; its first one must be the model"):
        da.compile(lambda: 1.0, model)
    with pytest.raises(ArgumentError, match="q is keyword-only"):
        da.compile(lambda m, *, q: q[0], model)
    with pytest.raises(UnknownNameError, match='unknown dtype "float16"; valid: "float64", "float32"'):
        da.compile(energies, model, dtype="float16")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match='unknown device "abacus"; valid: "cpu", "cuda"'):
        da.compile(energies, model, device="abacus")  # type: ignore[arg-type]


def test_arguments_of_a_compiled_function_are_checked(state: tuple[np.ndarray, np.ndarray]):
    f = da.compile(energies, arm())
    q, v = state
    for _ in range(2):  # before and after the entry point is open
        with pytest.raises(ArgumentError, match=r"energies takes 2 arrays \(q, v\), got 3"):
            f(q, v, v)
        with pytest.raises(ArgumentError, match="energies needs v; its arguments are q, v"):
            f(q)
        with pytest.raises(ArgumentError, match="energies got q twice"):
            f(q, v, q=q)
        with pytest.raises(UnknownNameError, match='unknown argument of energies "w"; valid: "q", "v"'):
            f(q, w=v)
        with pytest.raises(ShapeError, match=r"v: expected \(2,\).*got \(3,\)"):
            f(q, np.zeros(3))
        with pytest.raises(
            DtypeError, match=r"v is float32, but this function is compiled for float64.*astype"
        ):
            f(q, v.astype(np.float32))
        assert f(v=v, q=q) == f(q, v)


def test_single_precision_is_compiled_on_request(state: tuple[np.ndarray, np.ndarray]):
    model = arm()
    q, v = (x.astype(np.float32) for x in state)
    f = da.compile(da.forward_dynamics, model, dtype="float32")
    assert f(q, v, v).dtype == np.float32
    np.testing.assert_array_equal(f(q, v, v), da.forward_dynamics(model, q, v, v))
    with pytest.raises(DtypeError, match="q is float64, but this function is compiled for float32"):
        f(*state, state[1])


def test_jacobian_by_a_configuration_is_on_the_tangent():
    """Of a user's function on a model with quaternions: (…, output, nv), against central differences."""
    model = branched()
    rng = np.random.default_rng(5)
    q = np.array([model.random_state(rng)[0] for _ in range(3)])
    f = da.compile(lambda m, q: (al.center_of_mass(m, q), al.potential_energy(m, q)), model)
    J, slope = f.jacobian("q")(q)
    assert (J.shape, slope.shape) == ((3, 3, model.nv), (3, model.nv))
    h = 1e-5
    for k, e in enumerate(np.eye(model.nv)):
        ahead, behind = f(da.integrate(model, q, h * e)), f(da.integrate(model, q, -h * e))
        np.testing.assert_allclose(J[..., k], (ahead[0] - behind[0]) / (2 * h), atol=1e-8)
        np.testing.assert_allclose(slope[..., k], (ahead[1] - behind[1]) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(slope, da.gravity_forces(model, q), atol=1e-10)


def test_jacobian_by_any_other_argument(state: tuple[np.ndarray, np.ndarray]):
    """By v, and by an input of the user's own of any shape: (…, output, *shape)."""
    model = arm()
    q, v = state
    f = da.compile(da.inverse_dynamics, model)
    np.testing.assert_allclose(f.jacobian("a")(q, v, v), da.mass_matrix(model, q), atol=1e-12)
    g = da.compile(lambda m, x: [x[0][0] * x[1][2], scalar.sin(x[0][1])], model, inputs={"x": (2, 3)})
    x = np.arange(6.0).reshape(2, 3)
    J = g.jacobian("x")(x)
    expected = np.zeros((2, 2, 3))
    expected[0, 0, 0], expected[0, 1, 2], expected[1, 0, 1] = x[1, 2], x[0, 0], np.cos(x[0, 1])
    np.testing.assert_allclose(J, expected, atol=1e-15)
    with pytest.raises(UnknownNameError, match='unknown argument "u"; valid: "x"'):
        g.jacobian("u")


def test_source_is_python_that_computes_the_same(state: tuple[np.ndarray, np.ndarray]):
    """Of a public function, of a named one with several results, of a lambda, and with parameters."""
    model = arm()
    q, v = state
    cases: list[tuple[Any, tuple[np.ndarray, ...], tuple[str, ...]]] = [
        (da.forward_dynamics, (q, v, v), ()),
        (energies, (q, v), ()),
        (lambda m, q: al.gravity_forces(m, q), (q,), ()),
        (da.gravity_forces, (q,), ("link1.mass", "gravity")),
    ]
    for function, arguments, parameters in cases:
        f = da.compile(function, model, parameters=parameters)
        space: dict[str, Any] = {}
        exec(f.source, space)
        name = next(line for line in f.source.splitlines() if line.startswith("def "))[4:].split("(")[0]
        given = [*arguments, *(np.ravel(model.value(item)) for item in parameters)]
        found = space[name](*(x.tolist() for x in given))
        result = f(*arguments)
        expected = np.concatenate([np.ravel(x) for x in (result if isinstance(result, tuple) else (result,))])
        np.testing.assert_allclose(
            np.ravel(np.concatenate([np.ravel(x) for x in found])), expected, rtol=1e-12
        )


def test_operations_are_counted_after_simplification():
    """A point that turns about a fixed axis: sine, cosine and two products; the third coordinate folds."""
    f = da.compile(
        lambda m, q: Vec3(scalar.cos(q[0]) * q[1], scalar.sin(q[0]) * q[1], 0.0 * q[1] + 1.0), arm()
    )
    count = f.operation_count
    assert (count.multiplications, count.additions, count.trigonometric) == (2, 0, 2)
    assert repr(f).startswith("<CompiledFunction")
    assert da.compile(al.forward_dynamics, arm()).operation_count.multiplications > 50


def test_only_a_configuration_is_checked_as_one():
    """An input of the user's own named q, q0, q1 or q2, of another shape, is any array."""
    model = branched()
    double = da.compile(lambda m, q: [2.0 * x for x in q], model, inputs={"q": 2})
    np.testing.assert_array_equal(double([3.0, 4.0]), [6.0, 8.0])
    np.testing.assert_array_equal(double.jacobian("q")([3.0, 4.0]), 2.0 * np.eye(2))
    assert float(da.compile(lambda m, q1: 2.0 * q1, model, inputs={"q1": ()})(3.0)) == 6.0
    knots = da.compile(lambda m, q: [row[0] for row in q], model, inputs={"q": (3, model.nq)})
    np.testing.assert_array_equal(knots(np.ones((3, model.nq))), np.ones(3))


def test_model_without_freedoms_has_empty_results():
    builder = da.ModelBuilder()
    builder.add_body("stone", "world", da.Fixed(), inertia=arm().bodies[0].inertia)
    model = builder.build()
    assert da.forward_dynamics(model, np.zeros((4, 0)), [], []).shape == (4, 0)
    assert da.jacobian(model, [], "stone").shape == (6, 0)
    assert da.dynamics.center_of_mass(model, np.zeros((4, 0))).shape == (4, 3)
    assert da.dynamics.center_of_mass(model, np.zeros((2, 4, 0))).shape == (2, 4, 3)
    f = da.compile(lambda m, q, x: [2.0], model, inputs={"x": (3, 0)})
    assert f(np.zeros((5, 0)), np.zeros((5, 3, 0))).shape == (5, 1)


@pytest.mark.parametrize("name", ["jacobian", "hybrid_dynamics_derivatives"])
def test_public_functions_that_need_more_than_arrays_say_so(name: str):
    """They take a name or give several derivatives: the error says what to compile instead."""
    with pytest.raises(ArgumentError, match=rf"{name}.*(algorithms|jacobian)"):
        da.compile(getattr(declared, name), arm())
