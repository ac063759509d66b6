"""Gradients by the coordinates of q, and what is imported when."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tests.interop.public_calls import rate_matrix

import dalembert as da
from dalembert.compiler import CompiledFunction
from dalembert.errors import MissingExtraError
from dalembert.interop.coordinate_gradients import evaluate, pull_back, push_forward

SOLID = da.RigidInertia(1.3, (0.1, 0.05, -0.2), np.diag([0.1, 0.12, 0.09]))


def mixed() -> da.Model:
    """Every way in which v differs from the rates of q."""
    builder = da.ModelBuilder()
    builder.add_body("base", "world", da.Free(), inertia=SOLID)
    builder.add_body("sheet", "base", da.joints.Planar(), inertia=SOLID)
    builder.add_body("ball", "sheet", da.Spherical(), inertia=SOLID)
    builder.add_body("tip", "ball", da.Revolute((0, 1, 0)), inertia=SOLID)
    return builder.build()


def called(function: CompiledFunction, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return evaluate(function, arrays, "raise")


def test_gradients_by_coordinates_are_the_shortest_with_the_same_slope():
    """g = pinv(Q)^T g_t: equal to g_t along the manifold, nothing across it."""
    model = mixed()
    q, v = model.random_state(3)
    f = da.compile(da.dynamics.kinetic_energy, model)
    (gradient,) = pull_back(called, f, [q, v], [np.array(1.0)], [0])
    Q = rate_matrix(model, q)
    np.testing.assert_allclose(gradient, np.linalg.pinv(Q).T @ f.vjp("q")(q, v, 1.0), rtol=1e-12, atol=1e-12)
    for part in (slice(3, 7), slice(10, 14)):
        assert abs(gradient[part] @ q[part]) < 1e-12


def test_changes_of_coordinates_become_the_nearest_velocities():
    model = mixed()
    q, _ = model.random_state(4)
    change = np.random.default_rng(0).normal(size=model.nq)
    f = da.compile(da.gravity_forces, model)
    (pushed,) = push_forward(called, f, [q], [change], [0])
    dv = np.linalg.pinv(rate_matrix(model, q)) @ change
    np.testing.assert_allclose(pushed, f.jvp("q")(q, dv), rtol=1e-11, atol=1e-11)


def test_importing_dalembert_loads_neither_library():
    code = (
        "import sys, dalembert as da\n"
        "da.mass_matrix(da.models.pendulum(), [0.1])\n"
        "print(*(n for n in ('torch', 'jax') if n in sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert loaded.stdout.split() == []


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_missing_library_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"dalembert.interop.{name}", raising=False)
    monkeypatch.delitem(vars(da.interop), name, raising=False)
    with pytest.raises(MissingExtraError, match=rf"dalembert\[{name}\]"):
        getattr(da.interop, name)
    with pytest.raises(AttributeError, match="nonsense"):
        da.interop.nonsense
