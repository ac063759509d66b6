"""Conversions between generalized and maximal coordinates, in which every body has six coordinates."""

from __future__ import annotations

from typing import cast

from dalembert.api.calls import Array, ArrayLike, Check, ForceFrame, force_options, result, results
from dalembert.errors import ArgumentError
from dalembert.model.model import Model

__all__ = [
    "base_wrench",
    "body_torques",
    "cartesian_forces",
    "cartesian_forces_at_points",
    "generalized_force",
    "generalized_velocity",
    "joint_torques",
    "maximal_jacobians",
    "maximal_velocities",
]


def maximal_velocities(
    model: Model, q: ArrayLike, v: ArrayLike, *, time: ArrayLike | None = None, check: Check = None
) -> Array:
    """Return the velocities V_k = (omega_k, v_k) = J_k v of all bodies `(…, n_bodies, 6)` [rad/s, m/s].

    v_k is the velocity of the body's centre of mass; both parts are in world axes, angular first. Engines
    that use maximal coordinates have these velocities, mostly with the linear part first. Liu & Jain Eqs 58
    and 60.

    >>> import dalembert as da
    >>> model = da.models.pendulum()
    >>> da.maximal_velocities(model, [0.0], [2.0]).shape
    (1, 6)
    """
    return result(model, "maximal_velocities", (q, v), {"time": time}, None, {}, None, check)


def maximal_jacobians(
    model: Model, q: ArrayLike, *, time: ArrayLike | None = None, check: Check = None
) -> Array:
    """Return the Jacobians J_k(q) `(…, n_bodies, 6, nv)` with `maximal_velocities` = J v.

    The rows are those of J_omega, then of J_v at the body's centre of mass, in world axes. A torque and a
    force at that point contribute the generalized force J_k^T (torque, force). Liu & Jain Eq. 58.

    >>> import dalembert as da, numpy as np
    >>> model = da.models.two_link_arm()
    >>> J = da.maximal_jacobians(model, [0.3, -0.8])
    >>> V = da.maximal_velocities(model, [0.3, -0.8], [1.0, 2.0])
    >>> bool(np.allclose(J @ [1.0, 2.0], V))
    True
    """
    return result(model, "maximal_jacobians", (q,), {"time": time}, None, {}, None, check)


def generalized_velocity(
    model: Model,
    q: ArrayLike,
    body_velocities: ArrayLike,
    *,
    method: str | None = None,
    time: ArrayLike | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Return v = J^+ V `(…, nv)` and the residual V - J v `(…, n_bodies, 6)` for given body velocities V.

    `body_velocities`: V `(…, n_bodies, 6)`, (omega, v of the centre of mass) of every body in world axes. The
    residual is zero if and only if V is compatible with the joints; otherwise v is the least-squares
    solution, with a radian weighted like a metre. At a singular joint it is the solution of least norm. Liu &
    Jain Eq. 61.

    `method`: "least_squares" (the default, in linear time), "pseudo_inverse" (the same by J^T J, as in the
    text), "joint_by_joint" (from each joint's relative velocity alone; the same if the residual is zero),
    "rotations_first" (Eq. 66: rotations, then translations; not for joints that chain parallel axes).

    >>> import dalembert as da, numpy as np
    >>> model = da.models.two_link_arm()
    >>> V = da.maximal_velocities(model, [0.3, -0.8], [1.0, 2.0])
    >>> v, residual = da.generalized_velocity(model, [0.3, -0.8], V)
    >>> v.round(6).tolist(), bool(abs(residual).max() < 1e-12)
    ([1.0, 2.0], True)
    """
    values = (q, body_velocities)
    return cast(
        "tuple[Array, Array]",
        tuple(results(model, "generalized_velocity", values, {"time": time}, method, {}, None, check)),
    )


def generalized_force(
    model: Model,
    q: ArrayLike,
    forces: ArrayLike | None = None,
    *,
    points: ArrayLike | None = None,
    torques: ArrayLike | None = None,
    joint_torques: ArrayLike | None = None,
    time: ArrayLike | None = None,
    check: Check = None,
) -> Array:
    """Compute Q = sum J'_v^T f_k + J_omega^T tau'_k + J^_omega^T tau^_k `(…, nv)` [N m or N].

    All arguments are `(…, n_bodies, 3)`. `forces`: f_k [N] at the world `points` r_k [m] (default: the
    centres of mass), in world axes. `torques`: tau'_k [N m] on the bodies, in world axes, without the moments
    of f_k. `joint_torques`: tau^_k [N m] in the axes of the parent body, on body k and reversed on its
    parent. Liu & Jain Eqs 67 and 69.

    >>> import dalembert as da, numpy as np
    >>> model = da.models.pendulum()
    >>> weight = model.total_mass * np.array([[0.0, 0.0, -9.81]])
    >>> Q = da.generalized_force(model, [0.5], weight)
    >>> bool(np.allclose(Q, -da.gravity_forces(model, [0.5])))
    True
    """
    arrays = {"forces": forces, "points": points, "torques": torques, "joint_torques": joint_torques}
    if forces is torques is joint_torques is None:
        raise ArgumentError("generalized_force needs forces, torques or joint_torques; none was given")
    if forces is None and points is not None:
        raise ArgumentError("generalized_force: points are where forces act, and no forces were given")
    return result(model, "generalized_force", (q,), arrays | {"time": time}, None, {}, None, check)


def body_torques(
    model: Model,
    q: ArrayLike,
    joint_torques: ArrayLike,
    *,
    time: ArrayLike | None = None,
    check: Check = None,
) -> Array:
    """Return the torques tau' = (R^T D)^T tau^ `(…, n_bodies, 3)` [N m] of joint torques on the bodies.

    `joint_torques`: tau^_k `(…, n_bodies, 3)` [N m] in the axes of the parents. Each acts as R_p tau^_k on
    body k and reversed on its parent; the result is in world axes. Torques of joints between two bodies add
    up to zero. Liu & Jain Eq. 68.

    >>> import dalembert as da
    >>> model = da.models.two_link_arm()
    >>> da.body_torques(model, [0.0, 0.0], [[0.0, 3.0, 0.0], [0.0, 1.0, 0.0]]).tolist()
    [[0.0, 2.0, 0.0], [0.0, 1.0, 0.0]]
    """
    return result(model, "body_torques", (q, joint_torques), {"time": time}, None, {}, None, check)


def cartesian_forces(
    model: Model, q: ArrayLike, tau: ArrayLike, *, time: ArrayLike | None = None, check: Check = None
) -> Array:
    """Return torques and forces (tau_k, f_k) = (J^T)^+ Q on all bodies `(…, n_bodies, 6)` [N m, N].

    `tau`: generalized forces Q `(…, nv)`. Of all torques and forces at the centres of mass, in world axes,
    that do the same work, the result has the least norm. `generalized_force` with `forces` and `torques` maps
    it back to Q. Liu & Jain Eq. 70.

    >>> import dalembert as da, numpy as np
    >>> model = da.models.two_link_arm()
    >>> F = da.cartesian_forces(model, [0.3, -0.8], [1.0, 2.0])
    >>> da.generalized_force(model, [0.3, -0.8], F[:, 3:], torques=F[:, :3]).round(6).tolist()
    [1.0, 2.0]
    """
    return result(model, "cartesian_forces", (q, tau), {"time": time}, None, {}, None, check)


def cartesian_forces_at_points(
    model: Model,
    q: ArrayLike,
    tau: ArrayLike,
    points: ArrayLike,
    *,
    time: ArrayLike | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Return forces f_k at given points and joint torques tau^_k `(…, n_bodies, 3)` [N, N m] that equal tau.

    They are the least-norm solution of Q = J'_v^T f + J^_omega^T tau^ (Liu & Jain Eq. 69), with forces in
    world axes at the world `points` `(…, n_bodies, 3)` [m] and joint torques in the axes of the parents.

    >>> import dalembert as da, numpy as np
    >>> model, q = da.models.two_link_arm(), [0.3, -0.8]
    >>> points = np.ones((2, 3))
    >>> f, torques = da.cartesian_forces_at_points(model, q, [1.0, 2.0], points)
    >>> da.generalized_force(model, q, f, points=points, joint_torques=torques).round(6).tolist()
    [1.0, 2.0]
    """
    values = (q, tau, points)
    return cast(
        "tuple[Array, Array]",
        results(model, "cartesian_forces_at_points", values, {"time": time}, None, {}, None, check),
    )


def joint_torques(
    model: Model, q: ArrayLike, tau: ArrayLike, *, time: ArrayLike | None = None, check: Check = None
) -> tuple[Array, Array]:
    """Return the joint torques tau^_k = (J^_omega,k^T)^+ Q_k `(…, n_bodies, 3)` [N m] and the rest `(…, nv)`.

    Each torque is the shortest one that does the work of its joint's generalized forces, in the axes of the
    parent body. The rest Q - J^_omega^T tau^ holds the forces of translations, which torques cannot produce;
    it is zero for joints that only rotate. Liu & Jain Eq. 71.

    >>> import dalembert as da, numpy as np
    >>> model = da.models.two_link_arm()
    >>> torques, rest = da.joint_torques(model, [0.3, -0.8], [1.0, 2.0])
    >>> np.linalg.norm(torques, axis=1).round(6).tolist(), rest.round(6).tolist()
    ([1.0, 2.0], [0.0, 0.0])
    """
    return cast(
        "tuple[Array, Array]",
        results(model, "joint_torques", (q, tau), {"time": time}, None, {}, None, check),
    )


def base_wrench(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    time: ArrayLike | None = None,
    check: Check = None,
) -> Array:
    """Return the base wrench (n, f) = d/dt (momentum) - weight - external forces `(…, 6)` [N m, N].

    It is the moment about the world's origin and the force, in world axes, that the world exerts on the
    system while it moves with q, v and a: through the joints to the world or, for a figure with an unactuated
    root, through the ground. Recursive Newton-Euler continued to body 0, Featherstone 2008 Eq. 5.10.

    >>> import dalembert as da, numpy as np
    >>> model = da.models.humanoid()
    >>> still = np.zeros(model.nv)
    >>> support = da.base_wrench(model, model.neutral(), still, still)
    >>> bool(np.isclose(support[5], model.total_mass * 9.81))
    True
    """
    arrays = {"external_forces": external_forces, "time": time}
    options = force_options(external_forces, external_frame)
    return result(model, "base_wrench", (q, v, a), arrays, None, options, None, check)
