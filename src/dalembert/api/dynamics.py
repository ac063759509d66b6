"""Forces and accelerations: the equation of motion M(q) a + b(q, v) = tau, and its parts."""

from __future__ import annotations

from typing import cast

import numpy as np

from dalembert.api.calls import (
    BODY,
    Array,
    ArrayLike,
    Check,
    ForceFrame,
    checked_stabilization,
    force_options,
    is_large,
    plain,
    result,
)
from dalembert.api.kinematics import forward_kinematics
from dalembert.call.arguments import as_array, with_column_axis
from dalembert.compiler.library import no_model
from dalembert.host.foreign_arrays import require_numpy
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
    check: Check = None,
) -> Array:
    """Solve M(q) a + b(q, v) = tau + J^T external for tau `(…, nv)` [N m or N].

    `a`: dv/dt `(…, nv)` [rad/s^2 or m/s^2]. `external_forces`: `(…, n_bodies, 6)` [N m, N], moment and force
    on each body in body coordinates at its origin, or with `external_frame="world"` in world coordinates at
    the world's origin. Armature is included; damping, springs, friction and limits are not
    (`passive_forces`). Recursive Newton-Euler, Featherstone 2008 Table 5.1.

    Other methods for trees: "rnea_spatial" (the table word for word), "rnea_common_frame" (in world
    coordinates), "luh_walker_paul" (3-D vectors, Table 5.2), "liu_jain" (local frames, at the centres of
    mass), "balafoutis_patel" (Cartesian tensors), "lagrange" (Jacobians of all bodies), "closed_form" (the
    tensors of Eq. 5.6, O(n^4), as reference).

    In models with loops or other constraints many tau produce the same motion. The result is the one of least
    norm that is zero at joints not in `model.actuated` (section 8.12). An `a` that violates the constraints,
    or that the actuators cannot produce, is rejected (`check`); see `actuation`.

    >>> model = da.models.two_link_arm()
    >>> tau = da.inverse_dynamics(model, q=[0.0, 0.5], v=[0.2, -0.3], a=[1.0, 2.0])
    >>> print(tau.round(4))
    [23.1152  5.7529]
    >>> hold = da.inverse_dynamics(model, np.zeros((1000, 2)), np.zeros(2), np.zeros(2))  # a batch
    >>> hold.shape, hold[0].round(3).tolist()
    ((1000, 2), [19.62, 4.905])
    """
    if external_forces is method is time is out is None and check is None and external_frame is BODY:
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
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Solve M(q) a + b(q, v) = tau + J^T external for a = dv/dt `(…, nv)` [rad/s^2 or m/s^2].

    `external_forces` as in `inverse_dynamics`. `method`: "aba", the articulated-body algorithm (Featherstone
    2008 Table 7.1), or "crba", which forms and factors M. Further assembly methods (sections 3.2, 7.4 and
    7.5): "divide_and_conquer" (in pairs) and "aba_inverse" (one body at a time), both by inverse inertias and
    also for loops, "aba_constraint_space" (by constraint forces), "projection" (all at once).

    Models with loops or other constraints satisfy M a + b = tau + J^T external + K^T lambda, K a = k, and
    have their own methods: "range_space" (lambda first; the default), "direct" (all at once), "null_space"
    (independent accelerations first), "loop_closure" (q = gamma(y); the default if the model has it),
    "sparse" (maximal coordinates, linear in the bodies of trees and ladders) and "maximal" (the same, dense);
    sections 8.5, 8.11 and 8.13. `stabilization`: time constant T_stab [s] of Baumgarte's stabilisation of
    constraint errors (Eq. 8.22), one number or one for each sample.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> a = da.forward_dynamics(model, q=[np.pi / 6], v=[0.0], tau=[0.0])  # -g / l sin q
    >>> print(a.round(6))
    [-2.4525]
    >>> print(da.forward_dynamics(model, [np.pi / 6], [0.0], [0.0], method="crba").round(6))
    [-2.4525]
    >>> linkage = da.models.four_bar()
    >>> print(da.forward_dynamics(linkage, np.zeros(3), np.zeros(3), tau=[1.0, 0.0, 0.0]).round(3))
    [-18.879  26.969   8.091]
    """
    if (
        external_forces is method is stabilization is time is out is None
        and check is None
        and external_frame is BODY
    ):
        return plain(model, "forward_dynamics")(q, v, tau)  # type: ignore[no-any-return]
    arrays = {"external_forces": external_forces, "time": time}
    if stabilization is not None:
        arrays["stabilization"] = checked_stabilization(stabilization)
    options = force_options(external_forces, external_frame)
    return result(model, "forward_dynamics", (q, v, tau), arrays, method, options, out, check)


def mass_matrix(
    model: Model,
    q: ArrayLike,
    *,
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the joint-space inertia M(q) = sum J_i^T I_i J_i + armature `(…, nv, nv)`.

    M is symmetric, and T = v^T M v / 2. Composite-rigid-body algorithm, Featherstone 2008 Table 6.2.
    `method="rnea_columns"` uses nv inverse dynamics, which is the default above `UNROLLED_BODIES`
    coordinates; `"jacobians"` evaluates the sum directly.

    >>> model = da.models.double_pendulum()
    >>> print(da.mass_matrix(model, [0.3, np.pi / 2]).round(6))  # 3 + 2 cos q2, 1 + cos q2, 1
    [[3. 1.]
     [1. 1.]]
    """
    large = is_large(model, "mass_matrix")
    if method is time is out is None and check is None and not large:
        return plain(model, "mass_matrix")(q)  # type: ignore[no-any-return]
    if method is None and large:
        (rows,) = with_column_axis(("q", q, model.nq))
        unit = np.eye(model.nv, dtype=rows.dtype)
        return inertial_forces(model, rows, unit, time=time, out=out, check=check)
    return result(model, "mass_matrix", (q,), {"time": time}, method, {}, out, check)


def inertial_forces(
    model: Model,
    q: ArrayLike,
    a: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = M(q) a `(…, nv)` [N m or N] in linear time, without forming M.

    `a`: `(…, nv)` [rad/s^2 or m/s^2]. It is inverse dynamics without velocity and gravity, ID_delta of
    Featherstone 2008 Eq. 6.4.

    >>> model = da.models.two_link_arm()
    >>> q, a = [0.1, 0.4], [1.0, -2.0]
    >>> print(da.inertial_forces(model, q, a).round(6))
    [1.       0.127197]
    >>> print((da.mass_matrix(model, q) @ a).round(6))
    [1.       0.127197]
    """
    return result(model, "inertial_forces", (q, a), {"time": time}, None, {}, out, check)


def inverse_mass_matrix(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute M(q)^-1 = L^-1 D^-1 L^-T `(…, nv, nv)` from the sparse factors M = L^T D L.

    A large M is factored densely. Featherstone 2008 Tables 6.3 and 6.5.

    >>> model = da.models.cart_pole()
    >>> q = [0.0, 0.2]
    >>> product = da.inverse_mass_matrix(model, q) @ da.mass_matrix(model, q)
    >>> print(np.abs(product - np.eye(2)).max() < 1e-12)
    True
    """
    if is_large(model, "inverse_mass_matrix") and out is None:
        return cast("Array", np.linalg.inv(mass_matrix(model, q, time=time, check=check)))
    return result(model, "inverse_mass_matrix", (q,), {"time": time}, None, {}, out, check)


def bias_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute b(q, v) = inverse_dynamics(q, v, 0) `(…, nv)` [N m or N], velocity terms and gravity.

    M a + b = tau. b is C of Featherstone 2008 Eq. 6.1, without external forces.

    >>> model = da.models.cart_pole()
    >>> q, v = [0.0, 0.2], [0.5, -1.0]
    >>> print(da.bias_forces(model, q, v).round(5))
    [-0.00993 -0.09745]
    >>> print((da.coriolis_forces(model, q, v) + da.gravity_forces(model, q)).round(5))
    [-0.00993 -0.09745]
    """
    return result(model, "bias_forces", (q, v), {"time": time}, None, {}, out, check)


def gravity_forces(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the gravity forces g(q) = inverse_dynamics(q, 0, 0) = +dV/dq `(…, nv)` [N m or N].

    tau = g holds the system at rest. One inward pass, f_i = -I_i a_g + sum of the children's, tau_i = S_i^T
    f_i; Featherstone 2008 Eqs 5.12 and 5.13.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> print(da.gravity_forces(model, [np.pi / 6]).round(6))  # m g l sin q
    [29.43]
    """
    return result(model, "gravity_forces", (q,), {"time": time}, None, {}, out, check)


def coriolis_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute c(q, v) = inverse_dynamics(q, v, 0) - inverse_dynamics(q, 0, 0) `(…, nv)` [N m or N].

    These are the velocity terms of the equation of motion, quadratic in v: bias = coriolis + gravity.
    Featherstone 2008 section 5.3.

    >>> model = da.models.double_pendulum()
    >>> q, v = [0.3, np.pi / 2], np.array([1.0, 2.0])
    >>> print(da.coriolis_forces(model, q, v).round(6))  # -sin q2 (2 v1 v2 + v2^2), sin q2 v1^2
    [-8.  1.]
    >>> print(da.coriolis_forces(model, q, 2.0 * v).round(6))
    [-32.   4.]
    """
    return result(model, "coriolis_forces", (q, v), {"time": time}, None, {}, out, check)


def passive_forces(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute tau_p = -k (q - q_rest) - d v - f sign(v) `(…, nv)` [N m or N].

    These are the spring, damping and dry-friction forces of the joints. They are not part of the equation of
    motion; `step` adds them to tau.

    >>> model = da.models.pendulum(damping=0.5)
    >>> print(da.passive_forces(model, q=[0.3], v=[2.0]))
    [-1.]
    """
    return result(model, "passive_forces", (q, v), {}, None, {}, out, check)


def force_at_point(model: Model, q: ArrayLike, body: str, point: ArrayLike, force: ArrayLike) -> Array:
    """Return the external forces `(…, n_bodies, 6)` of a force on one body: n = R^T ((r - p) x f), R^T f.

    `force (…, 3)`: f [N], acting at `point (…, 3)`: r [m], both in world coordinates; R and p are the body's
    pose. Pass the result as `external_forces`. Featherstone 2008 Eq. 2.7.

    >>> model = da.models.pendulum()
    >>> push = da.force_at_point(model, [0.0], "bob", point=[0.0, 0.0, -1.0], force=[2.0, 0.0, 0.0])
    >>> print(push)  # 2 N along x at 1 m below the pivot: -2 N m about y
    [[ 0. -2.  0.  2.  0.  0.]]
    >>> print(da.forward_dynamics(model, [0.0], [0.0], [0.0], push))
    [-2.]
    """
    if not isinstance(model, Model):
        raise no_model("force_at_point", model)
    index = model.body(body).index
    require_numpy("q", q)
    at, push = as_array("point", point, (3,)), as_array("force", force, (3,))
    pose = forward_kinematics(model, q)[body]
    arm = np.einsum("...ji,...j->...i", pose.rotation, at - pose.translation)
    push = np.einsum("...ji,...j->...i", pose.rotation, push)
    arm, push = np.broadcast_arrays(arm, push)
    wrench = np.concatenate([np.cross(arm, push), push], axis=-1)
    forces = np.zeros((*wrench.shape[:-1], len(model.bodies), 6), pose.rotation.dtype)
    forces[..., index, :] = wrench
    return forces
