"""Dual numbers through derivatives that use dual numbers themselves: along time, forces and other constants.

A derivative that takes another's direction for its own gives wrong numbers without a word; complex steps,
which have one direction only, tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.algorithms.derivatives.oracles import TIME, carried, close, complex_step, state

import dalembert as da
from dalembert.algorithms import constrained_derivatives, derivatives, kinetic_energy
from dalembert.model.joints.dual import directional_derivative
from dalembert.spatial.value import leaves
from dalembert.textbook.guenter_rose_partials import inverse_dynamics_partials
from dalembert.textbook.lagrange import lagrange_equations


def hybrid(model: da.Model, *arrays: Any, **options: Any) -> Any:
    first = [model.joints[0].name]
    return constrained_derivatives.hybrid_dynamics_derivatives(
        *(model, *arrays, arrays[-1]), prescribed=first, **options
    )


OF_TREES = {
    "composites": derivatives.inverse_dynamics_derivatives,
    "recursion": inverse_dynamics_partials,
    "dual": constrained_derivatives.directional_inverse_dynamics_derivatives,
    "forward": derivatives.forward_dynamics_derivatives,
    "forward dual": constrained_derivatives.directional_forward_dynamics_derivatives,
    "hybrid": hybrid,
}

OF_LOOPS = {
    "implicit": constrained_derivatives.constrained_forward_dynamics_derivatives,
    "dual": constrained_derivatives.directional_forward_dynamics_derivatives,
    "hybrid": hybrid,
}


def check(function: Callable[[list[Any]], Any], x: list[float], name: str) -> None:
    """Dual numbers against a complex step, along a direction."""
    along = np.random.default_rng(9).normal(size=len(x)).tolist()
    stepped = lambda h: function([np.array([y + h * d]) for y, d in zip(x, along)])
    expected = complex_step(lambda h: leaves(stepped(h)), 1)[0]
    found = directional_derivative(lambda y: leaves(function(y)), x, along)[1]
    assert np.abs(expected).max() > 1e-3
    close(found, expected, 1e-10, name)


@pytest.mark.parametrize("name", OF_TREES)
@pytest.mark.parametrize("kind", ["user rheonomic", "driven revolute", "driven in composite"])
def test_along_time(kind: str, name: str) -> None:
    """RBDA-3.5-JOINT: how derivatives by q, v and a change as a driven joint moves on."""
    model = carried(kind)
    at = state(model, 2)
    check(lambda t: OF_TREES[name](model, at["q"], at["v"], at["a"], time=t[0]), [TIME], name)


@pytest.mark.parametrize("name", OF_TREES)
def test_along_external_forces(name: str) -> None:
    """RBDA-5.3-EXT: forces that keep their direction in the world."""
    model = carried("universal skew")
    at = state(model, 2)
    forces = np.random.default_rng(4).normal(size=18).tolist()

    def function(x: list[Any]) -> Any:
        rows = [x[6 * k : 6 * k + 6] for k in range(3)]
        return OF_TREES[name](model, at["q"], at["v"], at["a"], external_forces=rows, external_frame="world")

    check(function, forces, name)


@pytest.mark.parametrize("name", OF_LOOPS)
def test_along_the_time_of_stabilization(name: str) -> None:
    """RBDA-8.3-BAUMGARTE: a linkage that is open and moves off its constraint."""
    model = da.models.four_bar()
    state = [0.3, 0.2, -0.4], [1.0, 2.0, 0.5], [0.3, 0.1, 0.2]
    check(lambda T: OF_LOOPS[name](model, *state, stabilization=T[0]), [0.2], name)


def test_of_lagranges_equations() -> None:
    """LJ-2-LAGRANGE: by the velocities, which stand still in dT/dq."""
    model = da.models.double_pendulum()
    energy = lambda q, v: kinetic_energy(model, q, v)
    check(lambda v: lagrange_equations(energy, [0.3, -0.5], v, [0.7, 0.2]), [1.0, 2.0], "Lagrange")
