"""Every function of the catalogue, called as outsiders will: samples, batches, layouts, types, rows."""

from __future__ import annotations

import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.catalogue_calls import CALLS, INERTIA, Call, ball_arm, state

import dalembert as da
from dalembert.compiler.library import FUNCTIONS
from dalembert.errors import ArgumentError, DtypeError, ShapeError, StateError

Array = np.ndarray

catalogue = pytest.mark.parametrize("call", CALLS, ids=str)


def batched(values: list[Array], shape: tuple[int, ...]) -> list[Array]:
    return [np.broadcast_to(x, shape + x.shape).copy() for x in values]


def same(found: list[Array], expected: list[Array]) -> None:
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y, strict=True)


@catalogue
def test_a_sample_is_the_same_alone_and_in_any_batch(call: Call):
    """Bit for bit: in every row of batches of any shape, single arguments beside batched ones."""
    values = call.single()
    alone = [np.asarray(x) for x in call(values)]
    assert all(np.isfinite(x).all() for x in alone)
    same([np.asarray(x) for x in call([x.tolist() for x in values])], alone)
    for shape in ((1,), (2, 3), (11,)):
        rows = batched(values, shape)
        for name, x in zip(call.names, rows):
            if not name.startswith("q"):
                x.reshape(-1, *x.shape[len(shape) :])[:-1] *= 1.1
        found = call(rows)
        same([x[tuple(n - 1 for n in shape)] for x in found], alone)
    for k in range(len(values)):
        mixed = [batched([x], (3,))[0] if j == k else x for j, x in enumerate(values)]
        same([x[2] for x in call(mixed)], alone)
    for shape in ((0,), (2, 0)):
        assert [x.shape for x in call(batched(values, shape))] == [shape + x.shape for x in alone]


@catalogue
def test_layouts_and_results_in_given_arrays(call: Call):
    """Strided, reversed, Fortran and read-only arrays; `out` of any layout, over an argument, or refused."""
    rows = batched(call.single(), (4,))
    expected = call(rows)
    for kept in (
        [np.repeat(x, 2, axis=0)[::2] for x in rows],
        [x[::-1] for x in rows],
        [np.asfortranarray(x) for x in rows],
    ):
        for x in kept:
            x.setflags(write=False)
        same(call(kept), expected)
    if "out" not in inspect.signature(call.function).parameters:
        return
    if len(expected) > 1:
        results = tuple(np.zeros(x.shape) for x in expected)
        call(rows, out=results)
        same(list(results), expected)
        with pytest.raises((ShapeError, ArgumentError), match="out"):
            call(rows, out=results[:-1])
        return
    (wanted,) = expected
    for order in "CF":
        out = np.zeros(wanted.shape, order=order)
        call(rows, out=out)
        np.testing.assert_array_equal(out, wanted)
    for k, x in enumerate(rows):
        if x.shape == wanted.shape:
            over = [y.copy() for y in rows]
            call(over, out=over[k])
            np.testing.assert_array_equal(over[k], wanted)
    locked = np.zeros(wanted.shape)
    locked.setflags(write=False)
    for bad, kind in (
        (np.zeros((*wanted.shape, 1)), ShapeError),
        (np.zeros(wanted.shape, np.float32), DtypeError),
        ([0.0], (DtypeError, ArgumentError)),
        (locked, ArgumentError),
    ):
        with pytest.raises(kind, match="out"):
            call(rows, out=bad)


@catalogue
def test_rows_that_are_no_numbers_stay_their_own(call: Call):
    """NaN in one row leaves the others as they are, and is flagged even where structural zeros drop it; a
    quaternion off unit norm is refused or flagged."""
    rows = batched(call.single(), (5,))
    expected = call(rows)
    others = np.arange(5) != 3
    for k, name in enumerate(call.names):
        if name not in ("dt", "stabilization"):
            broken = [x.copy() for x in rows]
            broken[k][3] = np.nan
            if call.options.get("check") is None:
                found = call(broken, check="off" if name in ("q", "q_ref") else None)
                flagged = call(broken, check="flag")
                same([x[others] for x in flagged], [x[others] for x in expected])
                assert all(np.isnan(x[3]).all() for x in flagged), name
            else:
                found = call(broken)
            same([x[others] for x in found], [x[others] for x in expected])
    if expected[0].size and call.options.get("check") is None:
        broken = [x * 1.01 if name == "q" else x for name, x in zip(call.names, rows)]
        with pytest.raises(
            StateError, match=r"q\[\d+:\d+\], sample \(0,\): a quaternion must have unit norm"
        ):
            call(broken)
        flagged = call([np.where(others[:, None], x, 1.01 * x) if name == "q" else x
                        for name, x in zip(call.names, rows)], check="flag")  # fmt: skip
        same([x[others] for x in flagged], [x[others] for x in expected])
        assert all(np.isnan(x[3]).all() for x in flagged)


@catalogue
def test_wrong_arguments_are_named(call: Call):
    """The error says which argument, what came and what was expected; nothing is compiled for it."""
    values = call.single()
    for k, (name, x) in enumerate(zip(call.names, values)):
        wrong = list(values)
        if x.ndim and x.size:
            wrong[k] = np.zeros((*x.shape[:-1], x.shape[-1] + 1))
            with pytest.raises(
                ShapeError, match=rf"{name}: expected .*{x.shape[-1]}.*got .*{x.shape[-1] + 1}"
            ):
                call(wrong)
        for junk in ("abc", x.astype(complex), {}):
            wrong[k] = junk
            with pytest.raises(DtypeError, match=f"{name} has type .*; expected real numbers"):
                call(wrong)
    if len(values) > 1:
        with pytest.raises(DtypeError, match="mix float types"):
            call([values[0].astype(np.float32), *values[1:]])
        with pytest.raises(ShapeError, match="do not broadcast"):
            call([batched([x], (2,) if k else (3,))[0] for k, x in enumerate(values)])
    for other in (None, "arm"):
        with pytest.raises(DtypeError, match=f"must be a Model, got {type(other).__name__}"):
            call._replace(model=lambda other=other: other)(values)


@pytest.mark.parametrize("call", CALLS[::4], ids=str)
def test_single_precision_in_gives_single_precision_out(call: Call):
    values = [x.astype(np.float32) for x in call.single()]
    found, exact = call(values), call(call.single())
    for x, y in zip(found, exact, strict=True):
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, y, rtol=5e-3, atol=5e-3 * (1.0 + np.abs(y).max(initial=0.0)))


@pytest.mark.parametrize("call", CALLS[1::6], ids=str)
def test_threads_share_a_model(call: Call):
    """Eight threads that meet at the first call of a fresh model all get the one result."""
    fresh = pickle.loads(pickle.dumps(call.model()))
    values = call.single()
    expected = call(values)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: call._replace(model=lambda: fresh)(values), range(16)):
            same(found, expected)


def test_every_function_of_the_catalogue_is_called_here():
    """A public function without a row in the list above is one that nobody has tried."""
    subjects = ("constraints", "floating_base", "cartesian", "geometry")
    public = {name for name, declared in FUNCTIONS.items() if declared.subject in subjects}
    public |= {"hybrid_dynamics"} | {name for name in da.control.__all__ if name in FUNCTIONS}
    assert public <= {call.function.__name__ for call in CALLS}


PLAIN = [
    call for call in CALLS
    if not call.options and "*" not in call.arguments
    and FUNCTIONS[call.function.__name__].subject and not hasattr(call.function, "__wrapped__")
]  # fmt: skip


@pytest.mark.parametrize("call", PLAIN, ids=str)
def test_compiled_by_hand_is_the_same(call: Call):
    """da.compile(da.f, model) computes what da.f does, also with values of the model given at run time."""
    model, values = call.model(), call.single()
    expected = call(values)
    if not expected[0].size:
        return  # without constraints there is nothing to compile
    name = f"{model.bodies[0].name}.mass"
    compiled = da.compile(call.function, model, parameters=(name,))
    for given in (None, {name: [model.value(name)] * 2}):
        found = compiled(*values, parameters=given)
        for x, y in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            np.testing.assert_allclose(x, np.broadcast_to(y, x.shape), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["projection", "null_space"])
def test_methods_for_loops_serve_trees_too(method: str):
    """Without constraints every joint force is its own: the shortest one is that of the tree."""
    model, (q, v, a) = ball_arm(), (state(ball_arm)[name] for name in ("q", "v", "a"))
    tau = da.inverse_dynamics(model, q, v, a)
    np.testing.assert_allclose(
        da.inverse_dynamics(model, q, v, a, method=method), tau, rtol=1e-10, atol=1e-10
    )


def test_control_laws_are_compiled_like_other_functions():
    model = ball_arm()
    q, v = state(ball_arm)["q"], state(ball_arm)["v"]
    forces = da.compile(da.control.feedback_linearization, model)
    expected = da.control.feedback_linearization(model, q, v, q, stiffness=3.0)
    np.testing.assert_array_equal(forces(q, v, q, np.full(model.nv, 3.0)), expected)


def test_systems_without_freedoms_keep_their_shapes():
    """All joints locked: matrices are (0, 0), their batches (…, 0, 0), and nothing is an error."""
    builder = da.ModelBuilder()
    builder.add_body("rock", "world", da.Fixed(), inertia=INERTIA)
    model = builder.build()
    none = np.zeros((4, 0))
    for function, shape in (
        (da.mass_matrix, (0, 0)),
        (da.inverse_mass_matrix, (0, 0)),
        (da.geometry.christoffel_symbols, (0, 0, 0)),
    ):
        assert function(model, none).shape == (4, *shape)
        assert function(model, []).shape == shape
    assert da.geometry.coriolis_matrix(model, none, none).shape == (4, 0, 0)
    assert da.geometry.mass_matrix_rate(model, none, none).shape == (4, 0, 0)
    assert [x.shape for x in da.constraints.close_loops(model, none, none)] == [(4, 0), (4, 0)]
    assert da.analysis.mobility(model).mobility == da.analysis.actuation(model).mobility == 0


def test_plain_numbers_follow_the_arrays_beside_them():
    """A dt, a time or a T_stab that is a Python number has no float type of its own."""
    model, q = da.models.four_bar(), np.zeros(3, np.float32)
    exact = da.step(model, np.zeros(3), np.zeros(3), np.zeros(3), 0.01, stabilization=0.2)
    for dt in (0.01, np.float32(0.01), np.array(0.01, np.float32), [0.01]):
        for values in ((q, q, q), ([0, 0, 0], q, [0.0, 0.0, 0.0])):
            found = da.step(model, *values, dt, stabilization=0.2)
            assert [x.dtype for x in found] == [np.float32] * 2
            np.testing.assert_allclose(np.ravel(found[1]), exact[1], rtol=1e-4)
    with pytest.raises(DtypeError, match="mix float types"):
        da.step(model, q, q, q, np.array(0.01))


def test_matrices_of_large_systems_check_their_arguments_too():
    """Beyond straight-line code they come column by column, with the same errors and the same `out`."""
    model = da.models.gu(155)
    q, v = model.random_state(0)
    C = da.geometry.coriolis_matrix(model, q.tolist(), v)
    np.testing.assert_allclose(C @ v, da.coriolis_forces(model, q, v), rtol=1e-9, atol=1e-6)
    out = np.zeros((155, 155))
    assert da.geometry.coriolis_matrix(model, q, v, out=out) is out
    np.testing.assert_array_equal(out, C)
    np.testing.assert_array_equal(da.geometry.mass_matrix_rate(model, q, v, out=out), C + C.T)
    for function, values in (
        (da.geometry.coriolis_matrix, (q, v)),
        (da.geometry.mass_matrix_rate, (q, v)),
        (da.mass_matrix, (q,)),
    ):
        with pytest.raises(ShapeError, match=r"q: expected \(155,\), got \(4,\)"):
            function(model, q[:4], *values[1:])
        with pytest.raises(ArgumentError, match="q is missing"):
            function(model, None, *values[1:])
        with pytest.raises(ShapeError, match=r"expected shape \(155, 155\), got \(2, 155, 155\)"):
            function(model, *values, out=np.zeros((2, 155, 155)))
        with pytest.raises(DtypeError, match="out"):
            function(model, *values, out=np.zeros((155, 155), np.float32))
