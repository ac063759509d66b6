"""A sample has one result: alone, in any row of any batch, on any number of threads, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.conformance import models
from tests.conformance.backends import draw_states

import dalembert as da
from dalembert import codegen
from dalembert.api import declared
from dalembert.codegen.cpu import threads

FUNCTIONS = {
    "forward_dynamics": ("q", "v", "tau"),
    "inverse_dynamics": ("q", "v", "a"),
    "mass_matrix": ("q",),
    "integrate": ("q", "dv"),
}
ROWS = 41
"""More than two blocks of every lane width."""


@pytest.fixture(autouse=True)
def restore_threads() -> Iterator[None]:
    before = da.get_num_threads()
    yield
    da.set_num_threads(before)


def arguments(model: da.Model, name: str, dtype: str, rows: int = ROWS) -> list[np.ndarray]:
    states = draw_states(model, rows)
    states["q"] = da.dynamics.normalize(model, states["q"])
    return [states[key].astype(dtype) for key in FUNCTIONS[name]]


def bits(array: np.ndarray) -> np.ndarray:
    """The numbers as integers, the sign of zero included; that of a NaN says nothing (IEEE 754, 6.3)."""
    array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.view(np.uint64 if array.dtype == np.float64 else np.uint32)


def same(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(bits(a), bits(b))


@pytest.fixture(params=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_alone_and_in_batches_of_every_small_size(name: str, dtype: str):
    """The entry point for one sample, one block, its remainders, and blocks with remainders."""
    model = models.branched()
    function = getattr(declared, name)
    given = arguments(model, name, dtype)
    whole = function(model, *given)
    function(model, *(x[0] for x in given))  # the second call and later ones take the entry point
    for k in range(ROWS):
        same(function(model, *(x[k] for x in given)), whole[k])
    lanes = codegen.default_lanes(dtype)
    assert 2 * lanes + 1 < ROWS
    for size in range(1, 2 * lanes + 2):
        same(function(model, *(x[:size] for x in given)), whole[:size])
        same(function(model, *(x[ROWS - size :] for x in given)), whole[ROWS - size :])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_strides_and_broadcasting_do_not_matter(name: str, dtype: str):
    """Rows with gaps, in reverse, in Fortran order, over several axes, and one row for all samples."""
    model = models.branched()
    function = getattr(declared, name)
    given = arguments(model, name, dtype, rows=24)
    whole = function(model, *given)
    wide = [np.pad(x, ((0, 0), (3, 2)), constant_values=np.nan)[:, 3:-2] for x in given]
    same(function(model, *wide), whole)
    same(function(model, *(np.repeat(x, 3, axis=0)[::3] for x in given)), whole)
    same(function(model, *(x[::-1] for x in given)), whole[::-1])
    same(function(model, *(np.asfortranarray(x) for x in given)), whole)
    shaped = function(model, *(x.reshape(2, 3, 4, -1) for x in given))
    same(shaped.reshape(whole.shape), whole)
    one = function(model, given[0][5], *given[1:])
    same(
        one, function(model, np.repeat(given[0][5:6], 24, axis=0), *given[1:]) if len(given) > 1 else whole[5]
    )


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_number_of_threads_does_not_matter(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch):
    """Every piece is worth a thread here, so that two and three threads really share the rows."""
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    model = models.branched()
    given = [np.tile(x, (25, 1)) for x in arguments(model, name, dtype)]
    assert len(given[0]) == 25 * ROWS
    da.set_num_threads(1)
    whole = getattr(declared, name)(model, *given)
    same(whole, np.tile(whole[:ROWS], (25, 1)))
    for count in (2, 3):
        da.set_num_threads(count)
        same(getattr(declared, name)(model, *given), whole)
    same(getattr(declared, name)(model, *(x[7] for x in given)), whole[7])


def test_large_batch_of_the_humanoid_is_its_rows():
    """The real thing once: single calls, a large batch, one thread and two."""
    model = da.models.humanoid()
    states = draw_states(model, 16)
    given = [states["q"], states["v"], states["tau"]]
    large = [np.tile(x, (256, 1)) for x in given]
    alone = np.array([da.forward_dynamics(model, *row) for row in zip(*given)])
    for count in (1, 2):
        da.set_num_threads(count)
        same(da.forward_dynamics(model, *large), np.tile(alone, (256, 1)))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_row_of_nan_stays_its_own_row(name: str, bad: float, dtype: str):
    """Neighbours keep their bits; the row itself is NaN, but for what does not depend on the state."""
    model = models.branched()
    function = getattr(declared, name)
    given = arguments(model, name, dtype, rows=19)
    whole = function(model, *given)
    for row in (0, 7, 18):
        spoilt = [x.copy() for x in given]
        for x in spoilt:
            x[row] = bad
        result = function(model, *spoilt, check="off")
        others = np.arange(19) != row
        same(result[others], whole[others])
        entries = result[row][np.ptp(whole, axis=0) > 1e-3]
        assert not np.any(np.isfinite(entries))
        same(function(model, *(x[row] for x in spoilt), check="off"), result[row])


def test_a_quaternion_that_is_not_a_number_is_refused_or_flagged():
    """One sample and rows, "raise", "flag" and "off"; NaN in another argument passes through."""
    model = models.branched()
    q, v, tau = arguments(model, "forward_dynamics", "float64", rows=9)
    good = da.forward_dynamics(model, q, v, tau)
    others = np.arange(9) != 4
    for place in (3, 6):
        spoilt = q.copy()
        spoilt[4, place] = np.nan
        with pytest.raises(da.errors.StateError, match=r"q\[3:7\], sample \(4,\): the quaternion of joint"):
            da.forward_dynamics(model, spoilt, v, tau)
        with pytest.raises(
            da.errors.StateError, match=r"^q\[3:7\]: the quaternion of joint .* is not a number"
        ):
            da.forward_dynamics(model, spoilt[4], v[4], tau[4])
        flagged = da.forward_dynamics(model, spoilt, v, tau, check="flag")
        assert np.all(np.isnan(flagged[4]))
        unchecked = da.forward_dynamics(model, spoilt, v, tau, check="off")
        assert np.any(np.isnan(unchecked[4]))
        for result in (flagged, unchecked):
            same(result[others], good[others])
    tau[4] = np.nan
    passed = da.forward_dynamics(model, q, v, tau)
    assert np.all(np.isnan(passed[4]))
    same(passed[others], good[others])
