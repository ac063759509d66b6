"""Differentiation of positions over time to velocities and accelerations, on the joints' manifolds.

A joint relates the rates of its position variables to its velocity by dq/dt = Q(q) v. The rates are the
slopes of splines through the samples of q, and

    v = (Q^T Q)^-1 Q^T dq/dt                                                        (1)

which removes the component of a spline through unit quaternions that leaves the unit sphere. v consists of
scalar functions of time, body components included, and `a` is its derivative component by component: the
slopes of splines through v. Both are of fourth order in the time between frames.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dalembert.model.body import Body
from dalembert.model.model import Model
from dalembert.motion.spline import spline_slopes

__all__ = ["continuous", "normalize_quaternions", "position_rates", "velocities_and_accelerations"]

Array = npt.NDArray[np.float64]


def velocities_and_accelerations(model: Model, time: Array, q: Array) -> tuple[Array, Array]:
    """Return v and a, (T, nv) each, of the continuous motion q (T, nq) at increasing times (T,) [s]."""
    rates = spline_slopes(time, q)
    v = np.zeros((len(time), model.nv))
    for body in _moving(model):
        Q = _rate_matrix(body, q)
        right = np.einsum("tij,ti->tj", Q, rates[:, body.q_slice])
        v[:, body.v_slice] = np.linalg.solve(np.einsum("tij,tik->tjk", Q, Q), right[..., None])[..., 0]  # (1)
    return v, spline_slopes(time, v)


def position_rates(model: Model, q: Array, v: Array) -> Array:
    """Return dq/dt = Q(q) v, (T, nq)."""
    rates = np.zeros_like(q)
    for body in _moving(model):
        rates[:, body.q_slice] = np.einsum("tij,tj->ti", _rate_matrix(body, q), v[:, body.v_slice])
    return rates


def continuous(model: Model, q: Array) -> Array:
    """Return the same configurations without jumps: quaternion signs are aligned, angles unwrapped."""
    result = q.copy()
    for body in _moving(model):
        start = body.q_slice.start
        for part in body.joint.unit_quaternions:
            quaternion = result[:, start + part.start : start + part.stop]
            sign = np.where(np.einsum("ti,ti->t", quaternion[1:], quaternion[:-1]) < 0.0, -1.0, 1.0)
            quaternion[1:] *= np.cumprod(sign)[:, None]
        for k, kind in enumerate(body.joint.coordinates):
            if kind == "angle":
                result[:, start + k] = np.unwrap(result[:, start + k])
    return result


def normalize_quaternions(model: Model, q: Array) -> Array:
    """Return q with its quaternions scaled to unit norm."""
    result = q.copy()
    for body in _moving(model):
        start = body.q_slice.start
        for part in body.joint.unit_quaternions:
            quaternion = result[:, start + part.start : start + part.stop]
            quaternion /= np.linalg.norm(quaternion, axis=1)[:, None]
    return result


def _moving(model: Model) -> list[Body]:
    return [body for body in model.bodies if body.v_slice.stop > body.v_slice.start]


def _rate_matrix(body: Body, q: Array) -> Array:
    """Return Q(q) (T, nq, nv) of one joint."""
    joint = body.joint
    own = list(q[:, body.q_slice].T)
    Q = np.empty((len(q), joint.nq, joint.nv))
    for k in range(joint.nv):
        unit = [1.0 if i == k else 0.0 for i in range(joint.nv)]
        for i, rate in enumerate(joint.position_rate(own, unit)):
            Q[:, i, k] = rate
    return Q
