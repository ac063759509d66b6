"""The same options in all functions: `external_forces`, `external_frame`, `time`, `out`, `check`.

The tables here follow from the declarations: a function that is declared without an option that its like have
must state the reason where it is declared.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
from typing import Any

import numpy as np
import pytest
from tests.algorithms.trees import axis, inertia, place, random_tree

import dalembert as da
import dalembert.algorithms
from dalembert.algorithms.applied_forces import FORCE_FRAMES
from dalembert.algorithms.declaration import DECLARED, OWN_SHAPES, LibraryFunction
from dalembert.api import calls
from dalembert.api.calls import make_public, parameters_of

for module in pkgutil.walk_packages(dalembert.algorithms.__path__, "dalembert.algorithms."):
    importlib.import_module(module.name)

FUNCTIONS = {
    name: item for name, item in DECLARED.items() if item.algorithm.__module__.startswith("dalembert")
}
LOADED = [name for name, item in FUNCTIONS.items() if item.subject and "external_forces" in item.optional]


def keywords_of(declared: LibraryFunction) -> set[str]:
    """The keywords that the algorithm reads, those of a TypedDict among them."""
    found = set()
    for item in inspect.signature(declared.algorithm).parameters.values():
        if item.kind is item.KEYWORD_ONLY:
            found.add(item.name)
        elif item.kind is item.VAR_KEYWORD and "Unpack" in str(item.annotation):
            kind = getattr(inspect.getmodule(declared.algorithm), str(item.annotation)[7:-1])
            found |= set(typing.get_type_hints(kind))
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_every_option_or_says_why_not(name: str) -> None:
    declared = FUNCTIONS[name]
    reads, known = keywords_of(declared), {*declared.optional, *declared.without}
    assert "time" in known, "time, or `without` with the reason"
    balances = {"tau", "a", "a_joints"} & {*declared.arguments}
    if balances or "external_forces" in reads:
        assert "external_forces" in known, "external_forces, or `without` with the reason"
    own = {item.name for item in inspect.signature(declared.algorithm).parameters.values()}
    assert not set(declared.without) & {*declared.optional, *own}, "a reason against what it takes"
    assert all(reason.strip() for reason in declared.without.values())
    assert {*declared.optional} - {*OWN_SHAPES, *declared.shapes} == set(), "arrays of unknown shape"


@pytest.mark.parametrize("name", [name for name, item in FUNCTIONS.items() if item.subject])
def test_public_functions_have_out_and_check_and_a_frame_with_forces(name: str) -> None:
    names = [text.partition(":")[0] for text in parameters_of(FUNCTIONS[name])]
    assert {"out", "check"} <= set(names)
    assert ("external_forces" in names) == ("external_frame" in names)


def test_ordinary_functions_have_the_same_options() -> None:
    """Those that are compiled for one purpose, and simulations."""
    for function in (da.step, da.rollout, da.force_at_point):
        assert {"time", "out", "check"} <= set(inspect.signature(function).parameters), function.__name__
    for function in (da.step, da.rollout, da.simulation.integrate_adaptive, da.motion.inverse_dynamics):
        assert {"external_forces", "external_frame"} <= set(inspect.signature(function).parameters)


def test_one_set_of_frames() -> None:
    assert typing.get_args(calls.ForceFrame) == FORCE_FRAMES


def figure() -> da.Model:
    """A free root with limbs whose axes are askew, one link of which has no mass."""
    rng = np.random.default_rng(2)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    joints = [
        da.Free(),
        da.Revolute(axis(rng)),
        da.Revolute(axis(rng)),
        da.Spherical(),
        da.Cylindrical(axis(rng)),
    ]
    for k, (parent, joint) in enumerate(zip(("world", "b0", "b1", "b2", "b0"), joints, strict=True)):
        mass = None if k == 1 else inertia(rng)
        builder.add_body(f"b{k}", parent, joint, inertia=mass, placement=place(rng))
    return builder.build()


def state_of(model: da.Model) -> tuple[np.ndarray, np.ndarray]:
    q, v = model.random_state(3)
    return da.constraints.close_loops(model, q, v) if model.loop_names else (q, v)


def at_centers(model: da.Model, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Forces along world axes at the centres of mass, in body coordinates at the origins of bodies."""
    R = da.forward_kinematics(model, q).rotation
    centers = np.array([body.inertia.com.to_list() for body in model.bodies], float)
    moment, push = (np.einsum("...bji,...bj->...bi", R, forces[..., k : k + 3]) for k in (0, 3))
    return np.concatenate([moment + np.cross(centers, push), push], axis=-1)


@pytest.mark.parametrize("name", [name for name in LOADED if not name.endswith("derivatives")])
def test_forces_at_centers_are_those_forces_in_body_coordinates(name: str) -> None:
    """Of one sample and of a batch, in the model's frames and in aligned ones; a body without mass has its
    centre at its origin."""
    model = da.models.five_bar() if FUNCTIONS[name].subject == "constraints" else figure()
    q, v = state_of(model)
    rng = np.random.default_rng(7)
    values = {"q": q, "v": v, "a_joints": rng.normal(size=max(0, model.nv - 6))}
    given = [values[x] if x in values else rng.normal(size=model.nv) for x in FUNCTIONS[name].arguments]
    function = make_public(FUNCTIONS[name], __name__)
    forces = rng.normal(size=(2, len(model.bodies), 6))
    found = function(model, *given, forces, external_frame="center")
    expected = function(model, *given, at_centers(model, q, forces))
    alone = function(model, *given, external_forces=forces[1], external_frame="center", check="raise")
    for a, b, c in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected, alone)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
        np.testing.assert_allclose(a[1], c, atol=1e-12)


@pytest.mark.parametrize("frame", FORCE_FRAMES)
@pytest.mark.parametrize("system", ["figure", "five_bar", 1, 2])
def test_derivatives_of_moving_systems_under_forces_by_differences(system: str | int, frame: str) -> None:
    """RBDA-5.3-EXT: forces are constant in the frame in which they are given."""
    kinds = {"figure": figure, "five_bar": da.models.five_bar}
    model = kinds[system]() if isinstance(system, str) else random_tree(system, 5)
    q, v = state_of(model)
    rng = np.random.default_rng(5)
    a, tau = rng.normal(size=(2, model.nv))
    options = {"external_forces": rng.normal(size=(len(model.bodies), 6)), "external_frame": frame}
    h = 1e-6

    def differences(function: Any, *state: np.ndarray) -> list[np.ndarray]:
        found = []
        for k, x in enumerate(state):
            moves = h * np.concatenate([np.eye(model.nv), -np.eye(model.nv)])
            there = da.dynamics.integrate(model, x, moves) if k == 0 else x + moves
            y = function(model, *state[:k], there, *state[k + 1 :], **options)
            found.append((y[: model.nv] - y[model.nv :]).T / (2.0 * h))
        return found

    found = da.forward_dynamics_derivatives(model, q, v, tau, **options)
    for ours, theirs in zip(found, differences(da.forward_dynamics, q, v, tau), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6 * max(1.0, np.abs(theirs).max()))
    if model.loop_names:
        return  # where inverse dynamics has another motion, it refuses
    for method in (None, "directional", "guenter_rose")[: 2 if system == "figure" else 3]:
        found = da.inverse_dynamics_derivatives(model, q, v, a, method=method, **options)
        for ours, theirs in zip(found, differences(da.inverse_dynamics, q, v, a), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=2e-6 * max(1.0, np.abs(theirs).max()))
