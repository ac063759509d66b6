"""The low-pass: Butterworth, without delay, half of the power at the cutoff."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.errors import ArgumentError
from dalembert.motion import low_pass

DT = 0.01


def wave(frequency: float, count: int = 4000) -> np.ndarray:
    return np.sin(2.0 * np.pi * frequency * DT * np.arange(count) + 0.7)[:, None]


@pytest.mark.parametrize("frequency", [0.2, 3.0, 6.0, 12.0, 30.0])
def test_gain_without_delay(frequency: float) -> None:
    ratio = np.tan(np.pi * frequency * DT) / np.tan(np.pi * 6.0 * DT)
    gain = 1.0 / (1.0 + (np.sqrt(2.0) - 1.0) * ratio**4)
    assert frequency != 6.0 or gain == pytest.approx(np.sqrt(0.5))
    signal = wave(frequency)
    inner = slice(500, -500)
    result = low_pass(signal, DT, 6.0)
    np.testing.assert_allclose(result[inner], gain * signal[inner], atol=1e-5)


def test_what_does_not_move_stays_and_a_ramp_stays_a_ramp() -> None:
    ramp = np.linspace(-3.0, 5.0, 200)[:, None] * [1.0, 0.0] + [2.0, 7.0]
    np.testing.assert_allclose(low_pass(ramp, DT, 3.0), ramp, atol=1e-6)


def test_forward_and_backward_are_the_same_filter() -> None:
    signal = pytest.importorskip("scipy.signal")
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.normal(size=(300, 2)), axis=0)
    cutoff = 8.0
    b, a = signal.butter(
        2, 2.0 / np.pi * np.arctan(np.tan(np.pi * cutoff * DT) / (np.sqrt(2.0) - 1.0) ** 0.25)
    )
    pad = int(np.ceil(8.0 * (0.5 / DT) / cutoff))
    reference = signal.filtfilt(b, a, values, axis=0, padtype="odd", padlen=pad)
    np.testing.assert_allclose(low_pass(values, DT, cutoff), reference, atol=1e-9)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_short_signals_pass(count: int) -> None:
    assert low_pass(np.ones((count, 2)), DT, 1.0) == pytest.approx(np.ones((count, 2)))


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 50.0, np.inf, np.nan])
def test_cutoffs_beyond_what_frames_can_show_are_refused(cutoff: float) -> None:
    with pytest.raises(ArgumentError, match="cutoff"):
        low_pass(np.ones((9, 1)), DT, cutoff)
