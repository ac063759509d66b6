"""Joint-space control: gravity compensation and feedback linearisation."""

from __future__ import annotations

from dalembert.api.calls import Array, ArrayLike, Check, result
from dalembert.control.gains import joint_gain
from dalembert.model.model import Model

__all__ = ["feedback_linearization", "gravity_compensation", "posture_forces"]


def gravity_compensation(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = g(q) = +dV/dq `(…, nv)` [N m or N], which holds the system at rest in any configuration.

    Source: Todorov, "Using the dynamics for control", with the gravity term.

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> a = da.forward_dynamics(model, q, 0.0 * v, da.control.gravity_compensation(model, q))
    >>> np.allclose(a, 0.0, atol=1e-9)
    True
    """
    return result(model, "gravity_compensation", (q,), {"time": time}, None, {}, out, check)


def feedback_linearization(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    v_ref: ArrayLike | None = None,
    a_ref: ArrayLike | None = None,
    *,
    stiffness: ArrayLike,
    damping: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = b + M a* `(…, nv)` [N m or N], with which the error e obeys e'' + B e' + K e = 0.

    a* = a_ref - B (v - v_ref) - K (q - q_ref). e = `difference(q_ref, q)`, which for quaternions is the
    rotation vector of the error. `q_ref (…, nq)`, `v_ref` and `a_ref` `(…, nv)`: the reference motion, at
    rest by default. `stiffness` K [1/s^2] and `damping` B [1/s]: one number, or one for each velocity
    variable; B is critical, 2 sqrt(K), by default. Every joint must be actuated.

    Source: Todorov, "Using the dynamics for control".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> tau = da.control.feedback_linearization(model, q, v, model.neutral(), stiffness=25.0, damping=10.0)
    >>> np.allclose(da.forward_dynamics(model, q, v, tau), -10.0 * v - 25.0 * q)
    True
    """
    beside = [("q", q), ("v", v), ("q_ref", q_ref)]
    K = joint_gain(model, "feedback_linearization", "stiffness", stiffness, beside)
    B = joint_gain(model, "feedback_linearization", "damping", damping, beside)
    arrays = {"v_ref": v_ref, "a_ref": a_ref, "damping": B, "time": time}
    return result(model, "feedback_linearization", (q, v, q_ref, K), arrays, None, {}, out, check)


def posture_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    *,
    stiffness: ArrayLike,
    damping: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau_0 = M a* `(…, nv)` [N m or N]: `feedback_linearization` without the bias forces b.

    a* = -B v - K (q - q_ref). Pass the result to `operational_space` as `null_space` to move an arm towards
    the posture q_ref as far as its task allows. Gains as in `feedback_linearization`.

    Source: Todorov, "Using the dynamics for control".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> tau = da.control.posture_forces(model, q, v, model.neutral(), stiffness=25.0)
    >>> np.allclose(tau, da.mass_matrix(model, q) @ (-10.0 * v - 25.0 * q))
    True
    """
    beside = [("q", q), ("v", v), ("q_ref", q_ref)]
    K = joint_gain(model, "posture_forces", "stiffness", stiffness, beside)
    B = joint_gain(model, "posture_forces", "damping", damping, beside)
    arrays = {"damping": B, "time": time}
    return result(model, "posture_forces", (q, v, q_ref, K), arrays, None, {}, out, check)
