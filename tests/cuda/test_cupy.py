"""Arrays of CuPy, for which a small stand-in on memory of the host answers what CuPy answers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_libcuda import FakeCuda

import dalembert as da
from dalembert.errors import ArgumentError, DeviceError


def put(array: np.ndarray) -> Any:
    return sys.modules["cupy"].ndarray(array)


def states(rows: int) -> list[np.ndarray]:
    return list(np.random.default_rng(9).standard_normal((3, rows, 6)))


def test_results_are_arrays_of_cupy_on_its_stream(cupy_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    for rows in (40, 40, 7):
        given = states(rows)
        found = da.forward_dynamics(model, *map(put, given))
        assert type(found) is sys.modules["cupy"].ndarray
        np.testing.assert_allclose(found.array, da.forward_dynamics(model, *given), rtol=1e-12)
    assert {launch["stream"] for launch in cupy_gpu.launches} == {77}


def test_batches_are_repeated_and_out_is_written(cupy_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(12)
    found = da.forward_dynamics(model, put(q.reshape(3, 4, 6)), put(v[:4]), put(tau[0]))
    np.testing.assert_allclose(
        found.array, da.forward_dynamics(model, q.reshape(3, 4, 6), v[:4], tau[0]), rtol=1e-12
    )
    out = put(np.empty((12, 6)))
    for _ in range(2):
        out.array[...] = 0.0
        assert da.forward_dynamics(model, put(q), put(v), put(tau), out=out) is out
        np.testing.assert_allclose(out.array, da.forward_dynamics(model, q, v, tau), rtol=1e-12)


def test_remedies_are_cupys(cupy_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(4)
    with pytest.raises(ArgumentError, match=r"pass cupy\.ascontiguousarray\(q\)"):
        da.forward_dynamics(model, put(q.T.copy().T), put(v), put(tau))
    with pytest.raises(DeviceError, match="must be an array on GPU 0"):
        da.forward_dynamics(model, put(q), put(v), put(tau), out=np.empty((4, 6)))


def test_poses_of_frames_are_arrays_of_cupy(cupy_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q = states(5)[0]
    found = da.forward_kinematics(model, put(q))
    wanted = da.forward_kinematics(model, q)
    np.testing.assert_allclose(found.rotation.array, wanted.rotation, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.translation.array, wanted.translation, rtol=1e-12, atol=1e-12)
