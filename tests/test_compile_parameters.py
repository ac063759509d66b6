"""Values of the model as run-time arguments: each sample has a robot of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conformance.models import arm, branched

import dalembert as da
from dalembert import algorithms as al
from dalembert.api import declared
from dalembert.errors import DtypeError, ShapeError, UnknownNameError

SAMPLES = 5


def turned(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def variations(model: da.Model) -> dict[str, np.ndarray]:
    """New values for every kind of parameter, one for each sample."""
    rng = np.random.default_rng(1)
    places = model.value("link1.placement")
    axes = rng.normal(size=(SAMPLES, 3))
    spread = rng.normal(size=(SAMPLES, 3, 3)) * 0.02
    return {
        "link0.mass": rng.uniform(0.5, 3.0, SAMPLES),
        "link2.mass": rng.uniform(0.5, 3.0, SAMPLES),
        "link1.com": rng.normal(size=(SAMPLES, 3)) * 0.1,
        "link1.inertia": 0.1 * np.eye(3) + spread @ np.swapaxes(spread, 1, 2),
        "link0.armature": rng.uniform(0.0, 1.0, SAMPLES),
        "link1.axis": axes / np.linalg.norm(axes, axis=1, keepdims=True),
        "link1.placement": np.array([
            np.column_stack([places[:, :3] @ turned(k), places[:, 3] + 0.1 * k]) for k in range(SAMPLES)
        ]),
        "gravity": rng.normal(size=(SAMPLES, 3)) * 5.0,
    }  # fmt: skip


@pytest.fixture(scope="module")
def states() -> list[np.ndarray]:
    """q, v, a `(SAMPLES, nv)`."""
    model = arm()
    rng = np.random.default_rng(2)
    return [
        *np.swapaxes([model.random_state(rng) for _ in range(SAMPLES)], 0, 1),
        rng.normal(size=(SAMPLES, 2)),
    ]


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "center_of_mass"])
@pytest.mark.parametrize("value", sorted(variations(arm())))
def test_parameter_is_the_model_with_that_value(name: str, value: str, states: list[np.ndarray]):
    """Batched per sample, against one rebuilt model a sample; without a value the model's own is taken."""
    model = arm()
    count = {"mass_matrix": 1, "center_of_mass": 1}.get(name, 3)
    f = da.compile(getattr(declared, name), model, parameters=(value,))
    given = variations(model)[value]
    assert f.parameters == {value: np.shape(given)[1:]}
    found = f(*states[:count], parameters={value: given})
    algorithm = getattr(al, name)
    for k in range(SAMPLES):
        other = model.with_values({value: given[k]})
        expected = algorithm(other, *(x[k].tolist() for x in states[:count]))
        expected = np.array(expected.to_list() if name == "center_of_mass" else expected, dtype=float)
        np.testing.assert_allclose(found[k], expected, atol=1e-11 * max(1.0, np.abs(expected).max()))
    own = np.array([getattr(declared, name)(model, *(x[k] for x in states[:count])) for k in range(SAMPLES)])
    np.testing.assert_allclose(f(*states[:count]), own, atol=1e-11 * max(1.0, np.abs(own).max()))


def test_all_parameters_at_once_and_broadcast(states: list[np.ndarray]):
    """Several values per sample, some for all samples; a value alone makes the batch."""
    model = arm()
    new = variations(model)
    f = da.compile(da.forward_dynamics, model, parameters=tuple(new))
    shared = new | {"gravity": np.array([0.0, 0.0, -3.0])}
    found = f(*states, parameters=shared)
    for k in range(SAMPLES):
        other = model.with_values({name: x if name == "gravity" else x[k] for name, x in shared.items()})
        expected = al.forward_dynamics(other, *(x[k].tolist() for x in states))
        np.testing.assert_allclose(found[k], np.array(expected, dtype=float), rtol=1e-9, atol=1e-9)
    alone = f(*(x[0] for x in states), parameters={"link2.mass": new["link2.mass"]})
    assert alone.shape == (SAMPLES, 2)
    np.testing.assert_array_equal(
        f(*(x[0] for x in states), parameters={"link2.mass": new["link2.mass"][3]}), alone[3]
    )


def test_parameters_of_a_user_function_and_its_jacobian(states: list[np.ndarray]):
    model = arm()
    f = da.compile(lambda m, q: al.potential_energy(m, q), model, parameters=("link2.mass", "gravity"))
    mass = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    slope = f.jacobian("q")(states[0], parameters={"link2.mass": mass})
    for k in range(SAMPLES):
        other = model.with_values({"link2.mass": mass[k]})
        np.testing.assert_allclose(
            slope[k], np.array(al.gravity_forces(other, states[0][k].tolist())), atol=1e-11
        )


def test_passive_parameters():
    """Damping, stiffness and friction reach `passive_forces`."""
    model = arm()
    q, v = model.random_state(3)
    f = da.compile(
        da.passive_forces, model, parameters=("link0.damping", "link1.stiffness", "link0.friction")
    )
    new = {"link0.damping": 2.0, "link1.stiffness": 7.0, "link0.friction": 0.5}
    np.testing.assert_allclose(
        f(q, v, parameters=new), da.passive_forces(model.with_values(new), q, v), rtol=1e-13
    )


def test_parameters_of_a_free_tree_with_a_ball_joint():
    model = branched()
    q, v = model.random_state(5)
    tau = np.random.default_rng(5).normal(size=model.nv)
    new = {"ball.mass": 2.5, "root.com": np.array([0.1, 0.2, -0.1]), "screw.pitch": 0.4}
    f = da.compile(da.forward_dynamics, model, parameters=tuple(new))
    expected = da.forward_dynamics(model.with_values(new), q, v, tau)
    np.testing.assert_allclose(f(q, v, tau, parameters=new), expected, rtol=1e-9, atol=1e-9)


def test_bad_parameters_are_refused(states: list[np.ndarray]):
    model = arm()
    q, v, a = (x[0] for x in states)
    with pytest.raises(UnknownNameError, match=r'unknown value "link1\.mas".*nearest: "link1\.mass"'):
        da.compile(da.forward_dynamics, model, parameters=("link1.mas",))
    f = da.compile(da.forward_dynamics, model, parameters=("link1.mass", "gravity"))
    with pytest.raises(
        UnknownNameError, match=r'run-time parameter.*"link0\.mass"; valid: "link1\.mass", "gravity"'
    ):
        f(q, v, a, parameters={"link0.mass": 1.0})
    with pytest.raises(ShapeError, match=r"gravity: expected \(3,\).*got \(2,\)"):
        f(q, v, a, parameters={"gravity": [0.0, 1.0]})
    with pytest.raises(ShapeError, match="do not broadcast"):
        f(np.tile(q, (4, 1)), v, a, parameters={"link1.mass": np.ones(3)})
    with pytest.raises(DtypeError, match=r"link1\.mass.*expected real numbers"):
        f(q, v, a, parameters={"link1.mass": 1j})
    plain: Any = da.compile(da.forward_dynamics, model)
    with pytest.raises(
        UnknownNameError, match=r'run-time parameter of forward_dynamics "gravity"; valid: none'
    ):
        plain(q, v, a, parameters={"gravity": [0, 0, 0]})
