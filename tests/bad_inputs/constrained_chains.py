"""A chain of two bodies under constraints, and linkages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dalembert as da

LOOP = da.models.four_bar()

Z2, Z3 = np.zeros(2), np.zeros(3)

INERTIA = da.RigidInertia(1.0, (0.5, 0.0, 0.0), np.diag([0.1, 0.1, 0.1]))


def along(x: float) -> da.Transform:
    return da.Transform.from_rotation_translation(np.eye(3), (x, 0.0, 0.0))


def chain() -> da.ModelBuilder:
    builder = da.ModelBuilder()
    builder.add_body("a", "world", da.Revolute((0, 1, 0)), inertia=INERTIA)
    builder.add_body("b", "a", da.Revolute((0, 1, 0)), inertia=INERTIA, placement=along(1.0))
    return builder


def bound(*functions: Callable[..., Any], kind: Any = "position") -> da.Model:
    """A chain of two bodies with constraints."""
    builder = chain()
    for function in functions:
        builder.add_constraint(function, kind)
    return builder.build()


def fd(model: da.Model, **options: Any) -> Any:
    return da.forward_dynamics(model, *np.zeros((3, model.nv)), **options)


def links(crank: float, coupler: float, rocker: float, ground: float) -> da.Model:
    """A four-bar of these lengths, stretched out along x in its neutral configuration, closed or not."""
    builder = da.ModelBuilder()
    builder.add_body("crank", "world", da.Revolute((0, 1, 0)), inertia=INERTIA)
    builder.add_body("coupler", "crank", da.Revolute((0, 1, 0)), inertia=INERTIA, placement=along(crank))
    builder.add_body("rocker", "world", da.Revolute((0, 1, 0)), inertia=INERTIA, placement=along(ground))
    builder.add_loop("pin", "rocker", "coupler", da.Revolute((0, 1, 0)), along(rocker), along(coupler))
    return builder.build()
