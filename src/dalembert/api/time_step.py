"""A time step, and the external forces of a force at a point that act during one."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.calls import (
    Array,
    ArrayLike,
    Check,
    ForceFrame,
    checked_stabilization,
    checked_time_step,
    force_options,
    results,
    store_result,
)
from dalembert.api.declared import forward_kinematics
from dalembert.call.arguments import as_array
from dalembert.compiler.library import no_model
from dalembert.host.foreign_arrays import require_numpy
from dalembert.model.model import Model


def step(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: float,
    *,
    integrator: Literal[
        "semi_implicit", "midpoint", "implicit", "variational", "rk4", "heun", "euler"
    ] = "semi_implicit",
    external_forces: ArrayLike | None = None,
    external_frame: ForceFrame = "body",
    stabilization: ArrayLike | Literal["automatic"] | None = "automatic",
    time: ArrayLike | None = None,
    out: tuple[Array, Array] | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Return (q, v) after one time step of dt [s] with constant tau, on the configuration manifold.

    "semi_implicit": v' = v + dt FD(q, v, tau + passive), q' = integrate(q, dt v'), of order one, with the
    gyroscopic force of each single body evaluated at mid-step. It requires dt D below the damped inertias,
    and fast swinging limbs gain energy. "midpoint", the default of `da.rollout`: (M + dt D) (v' - v)/dt = tau
    - b(q, v_m) - K x - D v with v_m half a step on: stable for any joint damping and friction, and of order
    two for rotations, at 1.5 times the cost. "implicit": (M + dt D + dt^2 K) (v' - v)/dt = tau - b(q, v_m) -
    K (x + dt v) - D v, stable with stiff springs too. "rk4": the classical fourth-order Runge–Kutta method;
    "euler" (explicit, for teaching) and "heun" (trapezoidal), of order one and two; "variational": discrete
    mechanics, of order two, for trees, which preserves linear and angular momentum to rounding and keeps the
    energy error bounded.

    Passive joint forces are added to tau. The linear velocity of a free joint is integrated in world axes, so
    that a thrown spinning body keeps its momentum to rounding. `stabilization`: time constant [s] with which
    errors of loops and other constraints decay (Featherstone 2008 Eq. 8.22), by default five steps for
    "semi_implicit", "midpoint" and "implicit", 0.1 s for others; with None they drift; it has no effect
    without constraints. A model with a loop closure integrates its independent joints alone and has no such
    errors (section 8.11).

    >>> model = da.models.pendulum()
    >>> q, v = np.array([0.1]), np.zeros(1)
    >>> for _ in range(300):
    ...     q, v = da.step(model, q, v, tau=[0.0], dt=0.001, integrator="rk4")
    >>> print(q.round(4), (0.1 * np.cos(np.sqrt(9.81) * 0.3)).round(4))  # a small swing
    [0.0591] 0.059
    """
    if not isinstance(model, Model):
        raise no_model("step", model)
    checked_time_step(dt)
    arrays = {"external_forces": external_forces, "time": time}
    options = {"integrator": integrator, **force_options(external_forces, external_frame)}
    if is_constrained(model):
        if isinstance(stabilization, str) and stabilization == "automatic":
            options["stabilization"] = stabilization
        else:
            arrays["stabilization"] = checked_stabilization(stabilization)
    return cast(
        "tuple[Array, Array]", results(model, "step", (q, v, tau, dt), arrays, None, options, out, check)
    )


def force_at_point(
    model: Model,
    q: ArrayLike,
    body: str,
    point: ArrayLike,
    force: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
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
    pose = forward_kinematics(model, q, time=time, check=check)[body]
    arm = np.einsum("...ji,...j->...i", pose.rotation, at - pose.translation)
    push = np.einsum("...ji,...j->...i", pose.rotation, push)
    arm, push = np.broadcast_arrays(arm, push)
    wrench = np.concatenate([np.cross(arm, push), push], axis=-1)
    forces = np.zeros((*wrench.shape[:-1], len(model.bodies), 6), pose.rotation.dtype)
    forces[..., index, :] = wrench
    return store_result(forces, out)
