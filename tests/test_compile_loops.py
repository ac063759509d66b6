"""Compiled functions with loops: calls, and derivatives of every kind through them."""

import dataclasses

import numpy as np
import pytest
from tests.conformance import models
from tests.conformance.backends import draw_states
from tests.tracing.interpreter import interpret

import dalembert as da
from dalembert import algorithms as al
from dalembert import scalar
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.lowering import Recipe, lower
from dalembert.errors import TracingError

ROWS = 11
HEIGHTS = (0.3, -0.2, 0.5)


def iterated(model, q, v):
    """A loop inside a loop, an end for each sample, a table; by unit quaternions too."""
    energy = al.kinetic_energy(model, q, v)

    def step(carry):
        x, work, n = carry
        rate = [scalar.sin(a) + 0.1 * energy * b for a, b in zip(x, v, strict=True)]
        t = scalar.loop(4, lambda t: 0.5 * t, 1.0, until=lambda t: scalar.absolute(t * rate[0]) < 0.3)
        new = [a + t * b for a, b in zip(x, rate, strict=True)]
        return new, work + new[0] * rate[-1] + scalar.lookup(HEIGHTS, x[0]), n + 1.0

    x, work, _ = scalar.loop(6, step, (list(v), 0.0, 0.0), until=lambda c: c[1] > 0.8)
    return x[:3], work * q[-1]


def unrolled(model, q, v):
    """The same, written out."""
    energy = al.kinetic_energy(model, q, v)
    x, work = list(v), 0.0
    for _ in range(6):
        done = work > 0.8
        rate = [scalar.sin(a) + 0.1 * energy * b for a, b in zip(x, v, strict=True)]
        t = 1.0
        for _ in range(4):
            t = scalar.select(scalar.absolute(t * rate[0]) < 0.3, t, 0.5 * t)
        new = [a + t * b for a, b in zip(x, rate, strict=True)]
        more = work + new[0] * rate[-1] + scalar.lookup(HEIGHTS, x[0])
        x = [scalar.select(done, a, b) for a, b in zip(x, new, strict=True)]
        work = scalar.select(done, work, more)
    return x[:3], work * q[-1]


@pytest.fixture(scope="module")
def model():
    return models.branched()


@pytest.fixture(scope="module")
def pair(model):
    return da.compile(iterated, model), da.compile(unrolled, model)


@pytest.fixture(scope="module")
def state(model):
    states = draw_states(model, ROWS)
    return da.dynamics.normalize(model, states["q"]), states["v"]


def close(found, expected):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            close(a, b)
        return
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


def steps_taken(model, q, v):
    counts = []
    for row in zip(q.tolist(), v.tolist(), strict=True):
        original, n = scalar.loop, []

        def counted(count, step, carry, *, until=None, original=original, n=n):
            def watched(carry):
                n.append(count)
                return step(carry)

            return original(count, watched, carry, until=until)

        scalar.loop = counted
        try:
            iterated(model, *row)
        finally:
            scalar.loop = original
        counts.append((n.count(6), n.count(4)))
    return counts


def test_calls_of_every_shape(model, pair, state):
    """RBDA-10.4-SYMBOLIC: one sample, many, by the entry point; each row takes its own number of steps."""
    f, g = pair
    assert len(set(steps_taken(model, *state))) > 3
    x, work = f(*state)
    close((x, work), g(*state))
    for row in range(ROWS):
        for _ in range(3):
            one, own = f(state[0][row], state[1][row])
            np.testing.assert_array_equal(one, x[row])
            assert own == work[row]
    assert f.operation_count.total > 6 * 30
    assert "for i in range" in f.source
    assert f.sparsity[0].all()


@pytest.mark.parametrize("arguments", [("v",), ("q", "v")])
def test_products_and_jacobians_are_those_of_the_unrolled_function(pair, state, arguments):
    f, g = pair
    rng = np.random.default_rng(4)
    changes = [rng.normal(size=state[1].shape) for _ in arguments]
    close(f.jvp(*arguments)(*state, *changes), g.jvp(*arguments)(*state, *changes))
    weights = [rng.normal(size=(ROWS, 3)), rng.normal(size=ROWS)]
    close(f.vjp(*arguments)(*state, *weights), g.vjp(*arguments)(*state, *weights))
    close(f.jacobian(*arguments)(*state), g.jacobian(*arguments)(*state))


def test_one_sample_has_the_derivatives_of_its_row(pair, state):
    """Alone a sample ends its loops when it is done, among others with the last of them."""
    f, _ = pair
    rng = np.random.default_rng(4)
    change, weights = rng.normal(size=state[1].shape), [rng.normal(size=(ROWS, 3)), rng.normal(size=ROWS)]
    for derivative, more in (
        (f.jacobian("q"), []),
        (f.jvp("q"), [change]),
        (f.vjp("q"), weights),
        (f.hessian_vector("q"), [change, *weights]),
    ):
        given = [*state, *more]
        rows = derivative(*given)
        for k in range(ROWS):
            found = derivative(*(x[k] for x in given))
            for own, every in zip(
                *([x] if isinstance(x, np.ndarray) else x for x in (found, rows)), strict=True
            ):
                np.testing.assert_array_equal(own, every[k])


def test_second_derivatives_are_those_of_the_unrolled_function(pair, state):
    f, g = pair
    rng = np.random.default_rng(4)
    change = rng.normal(size=state[1].shape)
    weights = [rng.normal(size=(ROWS, 3)), rng.normal(size=ROWS)]
    close(f.hessian_vector("v")(*state, change, *weights), g.hessian_vector("v")(*state, change, *weights))


def test_the_hessian_of_one_number_needs_no_weight(model, state):
    f = da.compile(lambda model, q, v: iterated(model, q, v)[1], model)
    g = da.compile(lambda model, q, v: unrolled(model, q, v)[1], model)
    change = np.random.default_rng(4).normal(size=state[1].shape)
    close(f.hessian_vector("q")(*state, change), g.hessian_vector("q")(*state, change))


def test_jacobians_are_those_of_complex_steps(model, pair, state):
    """An oracle that differentiates nothing: the interpreter on complex numbers."""
    f, _ = pair
    program = lower(
        Recipe("f", iterated, model, tuple(ArrayArgument(k, s) for k, s in f.inputs.items())), "float64"
    ).program
    found = np.concatenate([y.reshape(ROWS, -1, model.nv) for y in f.jacobian("v")(*state)], axis=1)
    step = 1e-30
    for row in range(4):
        for column in range(model.nv):
            v = state[1][row].astype(complex)
            v[column] += 1j * step
            outputs = interpret(program, {"q": state[0][row].tolist(), "v": v.tolist()})
            expected = [complex(y).imag / step for spec in program.outputs for y in outputs[spec.name]]
            np.testing.assert_allclose(found[row, :, column], expected, rtol=1e-9, atol=1e-11)


def test_the_interpreter_goes_the_same_way_back(model, pair, state):
    """RBDA-10.4-SYMBOLIC: it leaves out what the kernels leave out, sample by sample and together."""
    gradient = pair[0].vjp("v")
    rng = np.random.default_rng(4)
    weights = [rng.normal(size=(ROWS, 3)), rng.normal(size=ROWS)]
    expected = gradient(*state, *weights)
    recipe = dataclasses.replace(
        Recipe("f", iterated, model, tuple(ArrayArgument(k, s) for k, s in pair[0].inputs.items())),
        derivatives=gradient._kernels.recipe.derivatives,
    )
    program = lower(recipe, "float64").program
    names = [spec.name for spec in program.inputs]
    given = [x.reshape(ROWS, -1) for x in (*state, *weights)]
    (output,) = program.outputs
    together = interpret(program, {name: list(x.T) for name, x in zip(names, given, strict=True)})
    close(np.stack(together[output.name], axis=1), expected)
    for row in range(ROWS):
        alone = interpret(program, {name: x[row].tolist() for name, x in zip(names, given, strict=True)})
        np.testing.assert_allclose(alone[output.name], expected[row], rtol=1e-9, atol=1e-10)


def test_parameters_are_seen_inside_loops(model):
    body = model.bodies[0].name
    name = f"{body}.mass"

    def function(model, v):
        return scalar.loop(3, lambda x: x * 0.5 + model.bodies[0].inertia.mass * v[0], v[1])

    f = da.compile(function, model, parameters=(name,))
    v = np.random.default_rng(1).normal(size=(5, model.nv))
    mass = np.linspace(1.0, 3.0, 5)
    expected = v[:, 1] / 8.0 + 1.75 * mass * v[:, 0]
    np.testing.assert_allclose(f(v, parameters={name: mass}), expected, rtol=1e-13)
    slope = f.jacobian(name)(v, parameters={name: mass})
    np.testing.assert_allclose(slope.reshape(5), 1.75 * v[:, 0], rtol=1e-13)


def test_iteration_inside_a_large_tree_is_refused_by_name():
    model = models.arm()

    def function(tree, v):
        def step(body, carry):
            return carry, [scalar.loop(3, lambda x: x * 0.5, x) for x in body.own_v(v)]

        return tree.collect(tree.outward(step, ()))

    recipe = Recipe("halved", function, model, (ArrayArgument("v", (model.nv,)),))
    v = np.random.default_rng(1).normal(size=(4, model.nv))
    np.testing.assert_allclose(CompiledFunction(recipe)(v), v / 8.0, rtol=1e-15)
    looped = Recipe("halved", function, model, recipe.arguments, looped=True)
    with pytest.raises(TracingError, match="halved: a function that iterates"):
        CompiledFunction(looped)(v)
