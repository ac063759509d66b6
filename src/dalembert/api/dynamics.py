"""Forces and accelerations: the equation of motion M(q) a + b(q, v) = tau, and its parts."""

from __future__ import annotations

from typing import cast

import numpy as np

from dalembert.api.calls import (
    Array,
    ArrayLike,
    Check,
    ForceFrame,
    force_options,
    is_large,
    plain,
    result,
)
from dalembert.api.kinematics import forward_kinematics
from dalembert.arguments import as_array
from dalembert.model.model import Model

__all__ = [
    "bias_forces",
    "coriolis_forces",
    "force_at_point",
    "forward_dynamics",
    "gravity_forces",
    "inertial_forces",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "mass_matrix",
    "passive_forces",
]


def inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """Solve M(q) a + b(q, v) = tau + J^T external for tau `(…, nv)` [N m or N].

    `a`: dv/dt `(…, nv)`. `external_forces`: `(…, n_bodies, 6)`, moment and force on each body in body
    coordinates at its origin, or with `external_frame="world"` in world coordinates at the world's origin.
    Armature is inside; damping, springs, friction and limits are not (`passive_forces`). Recursive
    Newton-Euler, Featherstone 2008 Table 5.1.
    """
    if external_forces is method is time is out is None and check == "raise" and external_frame == "body":
        return plain(model, "inverse_dynamics")(q, v, a)  # type: ignore[no-any-return]
    arrays = {"external_forces": external_forces, "time": time}
    options = force_options(external_forces, external_frame)
    return result(model, "inverse_dynamics", (q, v, a), arrays, method, options, out, check)


def forward_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """Solve M(q) a + b(q, v) = tau + J^T external for a = dv/dt `(…, nv)` [rad/s^2 or m/s^2].

    `external_forces` as in `inverse_dynamics`. `method`: "aba", the articulated-body algorithm (Featherstone
    2008 Table 7.1), or "crba", which forms and factors M; coupled joints take the latter by themselves.
    """
    if external_forces is method is time is out is None and check == "raise" and external_frame == "body":
        return plain(model, "forward_dynamics")(q, v, tau)  # type: ignore[no-any-return]
    arrays = {"external_forces": external_forces, "time": time}
    options = force_options(external_forces, external_frame)
    return result(model, "forward_dynamics", (q, v, tau), arrays, method, options, out, check)


def mass_matrix(
    model: Model,
    q: ArrayLike,
    *,
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """The joint-space inertia M(q) `(…, nv, nv)`, symmetric, with armature; kinetic energy is v^T M v / 2.

    Composite-rigid-body algorithm, Featherstone 2008 Table 6.2; `method="rnea_columns"` takes it from nv
    inverse dynamics, as does a model of more than `UNROLLED_BODIES` coordinates.
    """
    large = is_large(model)
    if method is time is out is None and check == "raise" and not large:
        return plain(model, "mass_matrix")(q)  # type: ignore[no-any-return]
    if method is None and large:
        rows = np.asarray(q)[..., np.newaxis, :]
        unit = np.eye(model.nv, dtype=rows.dtype if rows.dtype.kind == "f" else None)
        return inertial_forces(model, rows, unit, time=time, out=out, check=check)
    return result(model, "mass_matrix", (q,), {"time": time}, method, {}, out, check)


def inertial_forces(
    model: Model,
    q: ArrayLike,
    a: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """M(q) a `(…, nv)` without forming M, in linear time: inverse dynamics without velocity and gravity."""
    return result(model, "inertial_forces", (q, a), {"time": time}, None, {}, out, check)


def inverse_mass_matrix(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """M(q)^-1 `(…, nv, nv)`, from the sparse L^T D L factors of M, or of a large M by dense ones."""
    if is_large(model) and out is None:
        return cast("Array", np.linalg.inv(mass_matrix(model, q, time=time, check=check)))
    return result(model, "inverse_mass_matrix", (q,), {"time": time}, None, {}, out, check)


def bias_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """b(q, v) = inverse_dynamics(q, v, 0) `(…, nv)`: velocity terms and gravity. M a + b = tau."""
    return result(model, "bias_forces", (q, v), {"time": time}, None, {}, out, check)


def gravity_forces(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """g(q) = inverse_dynamics(q, 0, 0) = +dV/dq `(…, nv)`: the forces that hold the system still."""
    return result(model, "gravity_forces", (q,), {"time": time}, None, {}, out, check)


def coriolis_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """c(q, v) `(…, nv)`: the velocity terms of the equation of motion alone; bias = coriolis + gravity."""
    return result(model, "coriolis_forces", (q, v), {"time": time}, None, {}, out, check)


def passive_forces(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = "raise"
) -> Array:
    """Springs, damping and dry friction of the joints `(…, nv)`; simulation adds them to tau."""
    return result(model, "passive_forces", (q, v), {}, None, {}, out, check)


def force_at_point(model: Model, q: ArrayLike, body: str, point: ArrayLike, force: ArrayLike) -> Array:
    """External forces `(…, n_bodies, 6)` of a push on one body.

    `force (…, 3)` [N] at `point (…, 3)` [m], both in world coordinates.
    """
    index = model.body(body).index
    at, push = as_array("point", point, (3,)), as_array("force", force, (3,))
    pose = forward_kinematics(model, q)[body]
    arm = np.einsum("...ji,...j->...i", pose.rotation, at - pose.translation)
    push = np.einsum("...ji,...j->...i", pose.rotation, push)
    arm, push = np.broadcast_arrays(arm, push)
    wrench = np.concatenate([np.cross(arm, push), push], axis=-1)
    forces = np.zeros((*wrench.shape[:-1], len(model.bodies), 6), pose.rotation.dtype)
    forces[..., index, :] = wrench
    return forces
