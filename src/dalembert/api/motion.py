"""Integration and difference on the configuration manifold, and the time step."""

from __future__ import annotations

from typing import Any, Literal, cast

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.calls import (
    Array,
    ArrayLike,
    Check,
    checked_stabilization,
    checked_time_step,
    result,
    results,
)
from dalembert.compiler.library import no_model
from dalembert.model.model import Model

__all__ = [
    "difference",
    "integrate",
    "normalize",
    "step",
]


def integrate(
    model: Model, q: ArrayLike, dv: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Return the configuration q exp(dv) `(…, nq)`: q moved for unit time at the velocity dv. Pass `v * dt`.

    `dv`: `(…, nv)` [rad or m]. Coordinates add where v = dq/dt; quaternions, planar and free joints use the
    exponential of SO(3), SE(2), SE(3), so that positions stay on the manifold.

    >>> builder = da.ModelBuilder()
    >>> solid = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    >>> _ = builder.add_body("ball", "world", da.Spherical(), inertia=solid)
    >>> model = builder.build()
    >>> q = da.integrate(model, model.neutral(), [0.0, 0.0, np.pi / 2])  # a quarter turn about z
    >>> print(q.round(6), round(float(np.linalg.norm(q)), 12))
    [0.707107 0.       0.       0.707107] 1.0
    """
    return result(model, "integrate", (q, dv), {}, None, {}, out, check)


def difference(
    model: Model, q0: ArrayLike, q1: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Return the displacement dv `(…, nv)` [rad or m] at q0 with `integrate(model, q0, dv) = q1`.

    It is q1 - q0 on the manifold, expressed in the velocity variables at q0. For quaternions it is the
    shorter rotation.

    >>> model = da.models.humanoid()
    >>> q0, q1 = model.random_state(1)[0], model.random_state(2)[0]
    >>> dv = da.difference(model, q0, q1)
    >>> back = da.integrate(model, q0, dv)
    >>> print(model.nq - dv.size, np.abs(da.difference(model, back, q1)).max() < 1e-12)
    3 True
    """
    return result(model, "difference", (q0, q1), {}, None, {}, out, check)


def normalize(model: Model, q: ArrayLike, *, out: Array | None = None, check: Check = None) -> Array:
    """Return q `(…, nq)` with its quaternions scaled to unit norm, p' = p / |p|; nothing else changes.

    A quaternion without a direction is rejected (`check`): zero, NaN, or so long or short that the square of
    its norm is infinite or zero. Featherstone 2008 section 4.5.

    >>> model = da.models.humanoid()
    >>> q = model.neutral()
    >>> q[3:7] *= 1.001  # the root's quaternion, a little off
    >>> print(round(float(np.linalg.norm(da.normalize(model, q)[3:7])), 12))
    1.0
    """
    return result(model, "normalize", (q,), {}, None, {}, out, check)


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
    stabilization: ArrayLike | Literal["automatic"] | None = "automatic",
    time: ArrayLike | None = None,
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
    options: dict[str, Any] = {"integrator": integrator}
    if is_constrained(model):
        if isinstance(stabilization, str) and stabilization == "automatic":
            options["stabilization"] = stabilization
        else:
            arrays["stabilization"] = checked_stabilization(stabilization)
    return cast(
        "tuple[Array, Array]",
        results(model, "step", (q, v, tau, dt), arrays, None, options, None, check),
    )
