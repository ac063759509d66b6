"""PD control of the joints, explicit and implicit (stable PD)."""

from __future__ import annotations

from dalembert.api.calls import Array, ArrayLike, Check, checked_time_step, result
from dalembert.control.gains import joint_gain
from dalembert.model.model import Model

__all__ = ["pd", "stable_pd"]


def pd(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    v_ref: ArrayLike | None = None,
    *,
    kp: ArrayLike,
    kd: ArrayLike,
    effort: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = kp (q_ref - q) + kd (v_ref - v) `(…, nv)` [N m or N], limited to ± effort.

    q_ref - q is `difference(q, q_ref)`, for a ball joint the rotation vector of the error. `q_ref (…, nq)`,
    `v_ref (…, nv)`: the reference motion, at rest by default. `kp` [N m/rad or N/m] and `kd` [N m s/rad or N
    s/m]: one number, or one for each velocity variable. `effort`: the largest torques or forces likewise; by
    default the model's limits. Free joints, and joints not in `model.actuated`, have no motor and no force.
    Applied for a step of dt the law is explicit: it requires dt kd well below the inertias; `stable_pd` does
    not.

    Source: the "voluntary" and "response" motions of physically based animation.

    >>> model = da.models.two_link_arm()
    >>> print(da.control.pd(model, [0.1, 0.0], [0.0, 1.0], [0.3, 0.0], kp=[10.0, 5.0], kd=1.0))
    [ 2. -1.]
    """
    beside = [("q", q), ("v", v), ("q_ref", q_ref)]
    gains = [joint_gain(model, "pd", name, gain, beside) for name, gain in (("kp", kp), ("kd", kd))]
    arrays = {"v_ref": v_ref, "effort": joint_gain(model, "pd", "effort", effort, beside)}
    return result(model, "pd", (q, v, q_ref, *gains), arrays, None, {}, out, check)


def stable_pd(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    v_ref: ArrayLike | None = None,
    *,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: ArrayLike,
    effort: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = kp (q_ref - q') + kd (v_ref - v') `(…, nv)` [N m or N], q' and v' after a step dt [s].

    v' = v + dt a, q' = q + dt v' and (M + dt kd + dt^2 kp) a = kp (q_ref - q - dt v) + kd (v_ref - v) - b +
    passive forces. Hold tau during the step; it is stable for all gains. The other arguments as in `pd`. In a
    rollout `da.control.Servo` is the same law.

    Source: Tan, Liu and Turk, "Stable Proportional-Derivative Controllers", 2011, who leave out dt^2 kp.

    >>> model = da.models.pendulum()
    >>> q, v = np.array([0.0]), np.array([0.0])
    >>> for _ in range(100):  # gains a thousand times beyond what `pd` stands at this step
    ...     tau = da.control.stable_pd(model, q, v, [0.5], kp=1e6, kd=1e4, dt=0.01)
    ...     q, v = da.step(model, q, v, tau, 0.01)
    >>> print(q.round(4))
    [0.5]
    """
    checked_time_step(dt)
    beside = [("q", q), ("v", v), ("q_ref", q_ref)]
    gains = [joint_gain(model, "stable_pd", name, gain, beside) for name, gain in (("kp", kp), ("kd", kd))]
    effort = joint_gain(model, "stable_pd", "effort", effort, beside)
    arrays = {"v_ref": v_ref, "effort": effort, "time": time}
    return result(model, "stable_pd", (q, v, q_ref, *gains, dt), arrays, None, {}, out, check)
