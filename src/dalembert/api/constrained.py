"""Constraint forces of loop joints and user constraints."""

from __future__ import annotations

from dalembert.api.calls import (
    Array,
    ArrayLike,
    Check,
    ForceFrame,
    checked_stabilization,
    force_options,
    result,
)
from dalembert.model.model import Model

__all__ = ["constraint_forces", "loop_forces"]


def constraint_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Return lambda `(…, nc)` of the constraint forces K^T lambda in the motion that tau produces.

    lambda solves M a + b = tau + J^T external + K^T lambda. The rows are those of `constraint_jacobian`: loop
    joints in order, then user constraints; in N for a distance, in N m for an angle. If constraints are
    redundant, many lambda give the same motion and this is the one of least norm. Featherstone 2008 Eqs 8.34
    to 8.41.

    >>> model = da.models.four_bar()
    >>> lam = da.constraint_forces(model, q=np.zeros(3), v=np.zeros(3), tau=np.zeros(3))
    >>> a = da.forward_dynamics(model, np.zeros(3), np.zeros(3), np.zeros(3))
    >>> K = da.constraint_jacobian(model, np.zeros(3))
    >>> lack = da.mass_matrix(model, np.zeros(3)) @ a + da.bias_forces(model, np.zeros(3), np.zeros(3))
    >>> print(np.allclose(K.T @ lam, lack))
    True
    """
    arrays = {"external_forces": external_forces, "time": time}
    if stabilization is not None:
        arrays["stabilization"] = checked_stabilization(stabilization)
    options = force_options(external_forces, external_frame)
    return result(model, "constraint_forces", (q, v, tau), arrays, None, options, out, check)


def loop_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Return f = T lambda of each loop joint `(…, n_loops, 6)` [N m, N]: moment and force on its successor.

    They are given in the successor's loop frame (`loop.placement_successor` on the successor body), for the
    motion that tau produces; the predecessor feels the opposite. If constraints are redundant, lambda is the
    one of least norm. Featherstone 2008 section 8.4.

    >>> model = da.models.four_bar()
    >>> f = da.loop_forces(model, q=np.zeros(3), v=np.zeros(3), tau=np.zeros(3))
    >>> print(f.shape, np.abs(f[0, [0, 1, 2, 4]]).max().round(12))  # no moments, nothing across the plane
    (1, 6) 0.0
    """
    arrays = {"external_forces": external_forces, "time": time}
    if stabilization is not None:
        arrays["stabilization"] = checked_stabilization(stabilization)
    options = force_options(external_forces, external_frame)
    return result(model, "loop_forces", (q, v, tau), arrays, None, options, out, check)
