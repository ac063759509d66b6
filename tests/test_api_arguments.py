"""What the public functions take and give: shapes, batches, element types, layouts, `out=` and `check=`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conformance.models import branched

import dalembert as da
from dalembert.api import declared
from dalembert.errors import ArgumentError, DtypeError, ShapeError, StateError, UnknownNameError


@pytest.fixture(scope="module")
def arm() -> da.Model:
    return da.models.arm6()


@pytest.fixture(scope="module")
def sample(arm: da.Model) -> list[np.ndarray]:
    """q, v, tau of a moving arm."""
    q, v = arm.random_state(7)
    return [q, v, np.random.default_rng(7).normal(size=arm.nv)]


@pytest.fixture(scope="module")
def batch(arm: da.Model) -> list[np.ndarray]:
    """Twelve rows of q, v, tau."""
    rng = np.random.default_rng(8)
    states = [arm.random_state(rng) for _ in range(12)]
    return [np.array([q for q, _ in states]), np.array([v for _, v in states]), rng.normal(size=(12, arm.nv))]


RESULTS = {
    "mass_matrix": (("q",), "nv nv"),
    "inverse_mass_matrix": (("q",), "nv nv"),
    "gravity_forces": (("q",), "nv"),
    "bias_forces": (("q", "v"), "nv"),
    "coriolis_forces": (("q", "v"), "nv"),
    "passive_forces": (("q", "v"), "nv"),
    "inverse_dynamics": (("q", "v", "a"), "nv"),
    "forward_dynamics": (("q", "v", "tau"), "nv"),
    "kinetic_energy": (("q", "v"), ""),
    "potential_energy": (("q",), ""),
    "center_of_mass": (("q",), "3"),
    "centroidal_momentum": (("q", "v"), "6"),
    "centroidal_momentum_matrix": (("q",), "6 nv"),
    "integrate": (("q", "v"), "nq"),
    "difference": (("q", "q"), "nv"),
    "normalize": (("q",), "nq"),
}
"""Arguments and the shape of the result, without batch axes."""


@pytest.mark.parametrize("name", RESULTS)
def test_results_have_the_batch_shape_of_the_arguments(name: str):
    """One sample, rows, any number of leading axes, broadcast axes and none at all."""
    model = branched()
    function = getattr(declared, name)
    names, suffix = RESULTS[name]
    inner = tuple({"nq": model.nq, "nv": model.nv}.get(word) or int(word) for word in suffix.split())
    rng = np.random.default_rng(1)
    rows = [model.random_state(rng) for _ in range(6)]
    given = [np.array([q if key == "q" else v for q, v in rows]) for key in names]
    flat = function(model, *given)
    assert flat.shape == (6, *inner)
    assert np.shape(function(model, *(x[0] for x in given))) == inner
    shaped = function(model, *(x.reshape(2, 1, 3, -1) for x in given))
    assert shaped.shape == (2, 1, 3, *inner)
    np.testing.assert_array_equal(shaped.reshape(flat.shape), flat)
    mixed = function(model, given[0].reshape(2, 3, -1), *(x[:3] for x in given[1:]))
    assert mixed.shape == (2, 3, *inner)
    empty = function(model, *(x[:0] for x in given))
    assert empty.shape == (0, *inner)
    deep = np.zeros((4, 0, model.nq))
    assert function(model, deep, *(x[:1] for x in given[1:])).shape == (4, 0, *inner)


def test_empty_batch_of_functions_with_several_results(arm: da.Model):
    none, v = np.zeros((0, 6)), np.zeros(6)
    assert da.forward_kinematics(arm, none).rotation.shape == (0, 6, 3, 3)
    assert da.forward_kinematics(arm, none)["tool"].translation.shape == (0, 3)
    assert [x.shape for x in da.step(arm, none, v, v, 0.1)] == [(0, 6), (0, 6)]
    assert [x.shape for x in da.forward_dynamics_derivatives(arm, none, v, v)] == [(0, 6, 6)] * 3
    assert da.force_at_point(arm, none, "wrist", (0, 0, 0), (1, 0, 0)).shape == (0, 6, 6)
    assert da.jacobian(arm, none, "tool").shape == (0, 6, 6)


def test_whole_numbers_and_lists_are_float64(arm: da.Model):
    expected = da.forward_dynamics(arm, np.ones(6), np.zeros(6), np.ones(6))
    for one, zero in (([1] * 6, [0] * 6), ((1,) * 6, (0,) * 6), (np.ones(6, int), np.zeros(6, np.int8)),
                      (np.ones(6, bool), [0.0] * 6)):  # fmt: skip
        result = da.forward_dynamics(arm, one, zero, one)
        assert result.dtype == np.float64
        np.testing.assert_array_equal(result, expected)


def test_read_only_strided_and_unaligned_arrays_are_read(arm: da.Model, batch: list[np.ndarray]):
    """None of them is copied into the caller's sight, and none is written to."""
    expected = da.forward_dynamics(arm, *batch)
    for layout in (read_only, every_other_column, fortran, unaligned, swapped_axes):
        given = [layout(x) for x in batch]
        before = [x.copy() for x in given]
        np.testing.assert_array_equal(da.forward_dynamics(arm, *given), expected)
        np.testing.assert_array_equal(da.forward_dynamics(arm, *(x[3] for x in given)), expected[3])
        np.testing.assert_array_equal(given, before)


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def every_other_column(x: np.ndarray) -> np.ndarray:
    return np.repeat(x, 2, axis=1)[:, ::2]


def fortran(x: np.ndarray) -> np.ndarray:
    return np.asfortranarray(x)


def unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    view = memory[1:].view(np.float64).reshape(x.shape)
    view[...] = x
    assert not view.flags.aligned
    return view


def swapped_axes(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(np.swapaxes(x.reshape(3, 4, -1), 0, 1).copy(), 0, 1).reshape(3 * 4, -1)


def test_float32_in_gives_float32_out(arm: da.Model, batch: list[np.ndarray]):
    """Every function, several results included; numbers and lists follow the arrays."""
    single = [x.astype(np.float32) for x in batch]
    result = da.forward_dynamics(arm, *single)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, da.forward_dynamics(arm, *batch), rtol=5e-3, atol=5e-2)
    assert da.forward_dynamics(arm, single[0][0], [0.0] * 6, (1, 2, 3, 4, 5, 6)).dtype == np.float32
    assert all(x.dtype == np.float32 for x in da.step(arm, *single, 0.01))
    assert all(x.dtype == np.float32 for x in da.forward_dynamics_derivatives(arm, *single))
    poses = da.forward_kinematics(arm, single[0])
    assert (
        poses.rotation.dtype == poses["tool"].rotation.dtype == poses["tool"].translation.dtype == np.float32
    )
    push = da.force_at_point(arm, single[0], "wrist", (0, 0, 0), (1, 2, 3))
    assert da.forward_dynamics(arm, *single, push).dtype == np.float32


def test_mixed_float_types_are_refused(arm: da.Model, sample: list[np.ndarray]):
    q, v, tau = sample
    with pytest.raises(DtypeError, match=r"mix float types: q is float32, v is float64.*\.astype"):
        da.forward_dynamics(arm, q.astype(np.float32), v, tau)
    with pytest.raises(DtypeError, match="mix float types"):
        da.inverse_dynamics_derivatives(arm, q, v.astype(np.float32), tau)


def test_out_receives_the_result(arm: da.Model, batch: list[np.ndarray]):
    """Contiguous, with gaps, in Fortran order, reversed: the array given is handed back."""
    expected = da.forward_dynamics(arm, *batch)
    wide = np.zeros((12, 13))
    for out in (
        np.zeros((12, 6)),
        np.zeros((12, 9))[:, 2:8],
        wide[:, 1::2],
        np.zeros((6, 12)).T,
        np.zeros((12, 6))[::-1],
    ):
        assert da.forward_dynamics(arm, *batch, out=out) is out
        np.testing.assert_array_equal(out, expected)
    assert not wide[:, ::2].any()
    single = np.zeros(6)
    assert da.forward_dynamics(arm, *(x[0] for x in batch), out=single) is single
    np.testing.assert_array_equal(single, expected[0])
    deep = np.zeros((3, 4, 6))
    da.forward_dynamics(arm, *(x.reshape(3, 4, 6) for x in batch), out=deep)
    np.testing.assert_array_equal(deep.reshape(12, 6), expected)  # fmt: skip


def test_out_may_overlap_the_arguments(arm: da.Model, batch: list[np.ndarray]):
    """In place, and one row further on: the arguments are read before they are overwritten."""
    q, v, tau = batch
    expected = da.forward_dynamics(arm, q, v, tau)
    own = q.copy()
    assert da.forward_dynamics(arm, own, v, tau, out=own) is own
    np.testing.assert_array_equal(own, expected)
    memory = np.zeros((13, 6))
    memory[:12] = q
    da.forward_dynamics(arm, memory[:12], v, tau, out=memory[1:])
    np.testing.assert_array_equal(memory[1:], expected)


def test_unfit_out_is_refused(arm: da.Model, sample: list[np.ndarray]):
    with pytest.raises(ShapeError, match=r"out.*expected shape \(6,\), got \(5,\)"):
        da.forward_dynamics(arm, *sample, out=np.zeros(5))
    with pytest.raises(ShapeError, match=r"expected shape \(6,\), got \(1, 6\)"):
        da.forward_dynamics(arm, *sample, out=np.zeros((1, 6)))
    with pytest.raises(DtypeError, match=r"out.*expected float64, got float32"):
        da.forward_dynamics(arm, *sample, out=np.zeros(6, np.float32))
    with pytest.raises(ArgumentError, match=r"out.*is read-only"):
        da.forward_dynamics(arm, *sample, out=read_only(np.zeros(6)))
    with pytest.raises(DtypeError, match="must be a NumPy array, got int"):
        da.forward_dynamics(arm, *sample, out=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="out holds 2 arrays, but there are 1 results"):
        da.forward_dynamics(arm, *sample, out=(np.zeros(6), np.zeros(6)))  # type: ignore[arg-type]


@pytest.fixture
def spoilt() -> tuple[da.Model, np.ndarray, np.ndarray]:
    """Rows of q of which the second has its ball joint's quaternion off unit norm by 1e-3."""
    model = branched()
    rng = np.random.default_rng(2)
    q = np.array([model.random_state(rng)[0] for _ in range(4)])
    good = q.copy()
    q[1, 7:11] *= 1.001
    return model, good, q


def test_quaternions_off_unit_norm_raise(spoilt: tuple[da.Model, np.ndarray, np.ndarray]):
    """The message says which argument, which entries, which sample, and what to do."""
    model, good, q = spoilt
    with pytest.raises(
        StateError, match=r"q\[7:11\], sample \(1,\): .*unit norm.*1\.001.*da\.dynamics\.normalize"
    ):
        da.gravity_forces(model, q)
    with pytest.raises(StateError, match=r"q\[7:11\], sample \(0, 1\)"):
        da.gravity_forces(model, q.reshape(2, 2, -1))
    with pytest.raises(StateError, match=r"^q\[7:11\]: a quaternion"):
        da.gravity_forces(model, q[1])
    with pytest.raises(StateError, match=r"q1\[7:11\]"):
        da.difference(model, good, q)
    zero = good[0].copy()
    zero[3:7] = 0.0
    with pytest.raises(StateError, match=r"q\[3:7\]: .*this one has 0;"):
        da.dynamics.kinetic_energy(model, zero, np.zeros(model.nv))


def test_quaternions_off_unit_norm_are_flagged(spoilt: tuple[da.Model, np.ndarray, np.ndarray]):
    model, good, q = spoilt
    expected = da.gravity_forces(model, good)
    flagged = da.gravity_forces(model, q, check="flag")
    assert np.all(np.isnan(flagged[1]))
    np.testing.assert_array_equal(np.delete(flagged, 1, 0), np.delete(expected, 1, 0))
    assert np.all(np.isnan(da.gravity_forces(model, q[1], check="flag")))
    turned, moved = da.step(model, q, np.zeros(model.nv), np.zeros(model.nv), 0.1, check="flag")
    assert np.all(np.isnan(turned[1]))
    assert np.all(np.isnan(moved[1]))
    assert np.all(np.isfinite(np.delete(turned, 1, 0)))


def test_unchecked_quaternions_are_taken_as_they_are(spoilt: tuple[da.Model, np.ndarray, np.ndarray]):
    model, good, q = spoilt
    result = da.gravity_forces(model, q, check="off")
    assert np.all(np.isfinite(result))
    assert not np.array_equal(result[1], da.gravity_forces(model, good[1]))
    np.testing.assert_allclose(da.dynamics.normalize(model, q), good, atol=1e-15)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-6), ("float32", 1e-4)])
def test_tolerance_of_unit_norm(dtype: str, tolerance: float):
    """Off by half the tolerance passes, by twice the tolerance does not; one sample and rows alike."""
    model = branched()
    q = model.random_state(3)[0]
    for factor, refused in ((1 + 0.5 * tolerance, False), (1 - 0.5 * tolerance, False),
                            (1 + 2 * tolerance, True), (1 - 2 * tolerance, True)):  # fmt: skip
        x = q.copy()
        x[3:7] *= factor
        x = x.astype(dtype)
        for given in (x, np.tile(x, (5, 1))):
            if refused:
                with pytest.raises(StateError, match="unit norm"):
                    da.dynamics.center_of_mass(model, given)
            else:
                da.dynamics.center_of_mass(model, given)


def test_unknown_check_is_refused(arm: da.Model, sample: list[np.ndarray]):
    with pytest.raises(UnknownNameError, match='unknown check "rais"; valid: "raise", "flag", "off"'):
        da.forward_dynamics(arm, *sample, check="rais")  # type: ignore[arg-type]


def test_derivatives_broadcast_like_any_function(arm: da.Model, batch: list[np.ndarray]):
    q, v, tau = batch
    by_q, by_v, by_a = da.inverse_dynamics_derivatives(arm, q[0], v.reshape(3, 4, 6), tau[0])
    assert by_q.shape == by_v.shape == by_a.shape == (3, 4, 6, 6)
    np.testing.assert_allclose(by_a[2, 1], da.mass_matrix(arm, q[0]), rtol=1e-12, atol=1e-14)
    by_a[0, 0, 0, 0] = 1.0
    single = da.inverse_dynamics_derivatives(arm, q[0], v[5], tau[0])
    np.testing.assert_allclose(by_q[1, 1], single[0], rtol=1e-12, atol=1e-12)
