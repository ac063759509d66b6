"""Loops that are closed where the bodies of a tree are, and velocities that keep them so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import dalembert as da
from dalembert.models.random_trees import random_placement
from dalembert.spatial import Transform

Array = np.ndarray[Any, np.dtype[np.float64]]


def copied(model: da.Model, **options: Any) -> da.ModelBuilder:
    """A builder that holds the bodies of a model; `options` for each of them."""
    builder = da.ModelBuilder(gravity=model.gravity.to_list())
    for body in model.bodies:
        builder.add_body(
            body.name,
            "world" if body.parent < 0 else model.bodies[body.parent].name,
            body.joint,
            body.joint_name,
            placement=body.placement,
            inertia=body.inertia,
            armature=list(body.armature),
            **options,
        )
    return builder


def poses_at(model: da.Model, q: Sequence[float], time: float | None = None) -> dict[str, Transform]:
    """The placements of all bodies and of the world, by name."""
    poses = da.algorithms.forward_kinematics(model, list(q), time=time)
    return {"world": Transform.identity(), **dict(zip(model.bodies.names, poses))}


def add_closed_loop(
    builder: da.ModelBuilder,
    name: str,
    joint: da.joints.Joint,
    ends: Sequence[str],
    poses: Mapping[str, Transform],
    rng: np.random.Generator,
    *,
    q: Sequence[float] | None = None,
    time: float | None = None,
) -> None:
    """A loop joint at a random place of its predecessor, ends[0], closed in these poses; q is its own."""
    at_p = random_placement(rng)
    X = joint.transform(joint.random(rng) if q is None else q, time)
    builder.add_loop(name, *ends, joint, at_p, poses[ends[1]].inverse() @ poses[ends[0]] @ at_p @ X)


def closed_velocity(model: da.Model, q: Array, v: Array) -> Array:
    """v without what breaks the loops."""
    K = da.constraints.constraint_jacobian(model, q)
    return v - np.linalg.pinv(K, rcond=1e-9) @ (K @ v)


def moving(model: da.Model, seed: int, *, shift: float = 0.3) -> tuple[Array, Array]:
    """A closed state near the neutral one, in motion."""
    rng = np.random.default_rng(seed)
    q = da.integrate(model, model.neutral(), shift * rng.normal(size=model.nv))
    q, v = da.constraints.close_loops(model, q, rng.normal(size=model.nv))
    return q, v
