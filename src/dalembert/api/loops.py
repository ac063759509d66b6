"""Constraint equations of loop joints and user constraints, and the closing of loops."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, overload

import numpy as np

from dalembert.api.calls import Array, ArrayLike, Check, result, results
from dalembert.api.closing import close_positions, close_velocities
from dalembert.api.motion import integrate
from dalembert.call.arguments import ArrayArgument, as_array, as_rows, pick_dtype, result_rows
from dalembert.compiler.execution import CHECKS
from dalembert.compiler.library import argument_shape, no_model
from dalembert.errors import ArgumentError, ShapeError, StateError, require_choice, require_names
from dalembert.model.model import Model

__all__ = ["close_loops", "constraint_bias", "constraint_error", "constraint_jacobian"]

LISTED_SAMPLES = 5
"""Samples listed in an error message."""


def constraint_jacobian(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the constraint Jacobian K(q) `(…, nc, nv)` of K v = 0 (or a prescribed rate) and K a = k.

    Loop joints come in order, with 6 - nv rows T^T J_L each in the loop joint's successor frame, then the
    user constraints (Featherstone 2008 Eqs 8.18 to 8.20).

    >>> model = da.models.four_bar()
    >>> K = da.constraint_jacobian(model, model.neutral())
    >>> print(K.shape, np.linalg.matrix_rank(K))
    (5, 3) 2
    """
    if _rows(model) == 0:
        return _no_rows(model, (0, model.nv), {"q": q}, time, out, check)
    return result(model, "constraint_jacobian", (q,), {"time": time}, None, {}, out, check)


def constraint_bias(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the velocity-product term k(q, v) = -K' v `(…, nc)` of K a = k.

    Without stabilisation. k_l = -T^T (a_s - a_p + v_s x v_p) - T°^T (v_s - v_p), at dv/dt = 0 (Featherstone
    2008 Eqs 8.15 and 8.47).

    >>> model = da.models.four_bar()
    >>> q, v = da.close_loops(model, model.neutral(), [1.0, 0.0, 0.0])
    >>> a = da.forward_dynamics(model, q, v, np.zeros(3))
    >>> error = da.constraint_jacobian(model, q) @ a - da.constraint_bias(model, q, v)
    >>> print(np.abs(error).max() < 1e-12)
    True
    """
    if _rows(model) == 0:
        return _no_rows(model, (0,), {"q": q, "v": v}, time, out, check)
    return result(model, "constraint_bias", (q, v), {"time": time}, None, {}, out, check)


def constraint_error(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the position error delta(q) `(…, nc)` [rad or m] of loops and user constraints.

    delta = T^T d of Featherstone 2008 Table 8.1, where d is the small displacement of a loop joint's
    successor from its admissible to its actual place; zero for velocity constraints.

    >>> model = da.models.four_bar()
    >>> print(np.abs(da.constraint_error(model, model.neutral())).max() < 1e-15)
    True
    >>> print(da.constraint_error(model, [0.1, 0.0, 0.0]).round(3))
    [ 0.     0.    -0.096 -0.057  0.   ]
    """
    if _rows(model) == 0:
        return _no_rows(model, (0,), {"q": q}, time, out, check)
    return result(model, "constraint_error", (q,), {"time": time}, None, {}, out, check)


@overload
def close_loops(
    model: Model,
    q: ArrayLike,
    v: None = None,
    *,
    hold: Iterable[str] = (),
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    time: ArrayLike | None = None,
) -> Array: ...
@overload
def close_loops(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    hold: Iterable[str] = (),
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    time: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
def close_loops(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    hold: Iterable[str] = (),
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    time: ArrayLike | None = None,
) -> Any:
    """Find the nearest q `(…, nq)` with closed loops, phi(q) = 0, and for a given v the v' with K v' = 0.

    Damped Gauss-Newton with shortest steps dq = -K^+ phi on the configuration manifold. v' is nearest to v in
    the kinetic-energy metric, (v' - v)^T M (v' - v), as after an impulsive closing of the loops. `hold`:
    joints whose q and v stay as given. `tolerance` [rad or m] bounds every component of the displacement
    across a loop joint, so that a bearing half a turn off does not count as closed. If samples cannot be
    closed, an error lists them. The computation is in float64.

    >>> model = da.models.four_bar()
    >>> q, v = da.close_loops(model, [0.7, 0.0, 0.0], [1.0, 0.0, 0.0], hold=["crank_pivot"])
    >>> print(q.round(4), np.abs(da.constraint_error(model, q)).max() < 1e-10)
    [ 0.7    -0.9752 -0.1366] True
    >>> print(v.round(4))
    [ 1.     -1.3102  0.0518]
    """
    if not isinstance(model, Model):
        raise no_model("close_loops", model)
    _check_options(tolerance, max_iterations)
    free = _free(model, hold)
    pick_dtype([("q", q), ("v", v), ("time", time)])
    positions = as_array("q", q, (model.nq,), follow=True).astype(np.float64)
    speeds = None if v is None else as_array("v", v, (model.nv,), follow=True).astype(np.float64)
    times = None if time is None else as_array("time", time, (), follow=True).astype(np.float64)
    batch = _batch(positions, speeds, times)
    count = math.prod(batch)
    flat_q = np.ascontiguousarray(np.broadcast_to(positions, (*batch, model.nq)).reshape(count, model.nq))
    flat_time = None if times is None else np.ascontiguousarray(np.broadcast_to(times, batch).reshape(count))
    if _rows(model) == 0:
        closed = flat_q
    else:
        closed = _close_positions(model, flat_q, flat_time, free, tolerance, max_iterations, batch)
    shaped = closed.reshape(*batch, model.nq)
    if speeds is None:
        return shaped
    flat_v = np.ascontiguousarray(np.broadcast_to(speeds, (*batch, model.nv)).reshape(count, model.nv))
    if _rows(model) and flat_v.size:
        K, still = results(model, "constraint_velocity", (closed,), {"time": flat_time}, None, {}, None, None)
        M = result(model, "mass_matrix", (closed,), {"time": flat_time}, None, {}, None, None)
        flat_v = close_velocities(flat_v, M, K, -still, free)
    return shaped, flat_v.reshape(*batch, model.nv)


def _close_positions(
    model: Model,
    q: Array,
    time: Array | None,
    free: Array,
    tolerance: float,
    max_iterations: int,
    batch: tuple[int, ...],
) -> Array:
    if all(item.kind == "velocity" for item in model.constraints) and not model.loops and not model.closure:
        return q

    def equations(rows: Array, at: Array | None) -> tuple[Array, Array, Array]:
        # A diverging step may overflow; it is then rejected and is no reason to raise an error.
        found: tuple[Array, Array, Array] = results(
            model, "closing_equations", (rows,), {"time": at}, None, {}, None, "off"
        )
        return found

    if not len(q):
        return q
    integrate(model, q, np.zeros(model.nv))  # rejects quaternions without unit norm
    found = close_positions(
        q,
        time,
        free,
        equations,
        lambda rows, step: integrate(model, rows, step, check="off"),
        tolerance,
        max_iterations,
    )
    stuck = np.flatnonzero(~(found.gap <= tolerance) & np.isfinite(q).all(axis=1))
    if stuck.size:
        named = [
            f"{tuple(int(i) for i in np.unravel_index(row, batch))} by {found.gap[row]:.3g}"
            if batch
            else f"by {found.gap[row]:.3g}"
            for row in stuck[:LISTED_SAMPLES]
        ]
        more = f" and {stuck.size - LISTED_SAMPLES} more" if stuck.size > LISTED_SAMPLES else ""
        which = f"samples {', '.join(named)}{more}" if batch else f"the state {named[0]}"
        raise StateError(
            f"close_loops: {stuck.size} of {len(q)} samples stay open after {max_iterations} steps: {which} "
            "(rad or m); start nearer to a closed configuration, hold fewer joints, or allow more steps with "
            "max_iterations"
        )
    return found.q


def _no_rows(
    model: Model,
    shape: tuple[int, ...],
    given: dict[str, ArrayLike],
    time: ArrayLike | None,
    out: Array | None,
    check: Check,
) -> Array:
    """Return the empty result of a model without constraints, after checking the arguments."""
    if check is not None:
        require_choice("check", check, CHECKS)
    values = given if time is None else {**given, "time": time}
    signature = [ArrayArgument(name, argument_shape(model, name) or ()) for name in values]
    dtype = pick_dtype(list(values.items()))
    rows = as_rows(signature, list(values.values()), dtype)
    return result_rows([ArrayArgument("output", shape)], rows, dtype, out)[0].array


def _rows(model: Model) -> int:
    """Return the number of constraint equations."""
    if not isinstance(model, Model):
        raise no_model("a function of constraints", model)
    rows = sum(6 - loop.joint.nv for loop in model.loops) + sum(item.size for item in model.constraints)
    if model.closure is not None and not model.loops and not model.constraints:
        rows += model.nv - len(model.closure.velocities)
    return rows


def _free(model: Model, hold: Iterable[str]) -> Array:
    """Return a mask of the velocity variables that may move."""
    free = np.ones(model.nv, dtype=bool)
    for name in require_names("close_loops: hold", hold):
        joint = model.joint(name)
        if joint.body.dependence is not None:
            raise ArgumentError(
                f'close_loops: joint "{name}" follows a coupling; hold the joint that drives it'
            )
        free[joint.v_slice] = False
    return free


def _check_options(tolerance: object, max_iterations: object) -> None:
    if not isinstance(tolerance, int | float | np.number) or not tolerance > 0.0:
        raise ArgumentError(f"close_loops: tolerance is {tolerance!r}; give a positive number [rad or m]")
    if (
        not isinstance(max_iterations, int | np.integer)
        or isinstance(max_iterations, bool)
        or max_iterations < 1
    ):
        raise ArgumentError(
            f"close_loops: max_iterations is {max_iterations!r}; give a whole number of 1 or more"
        )


def _batch(q: Array, v: Array | None, time: Array | None) -> tuple[int, ...]:
    """Return the common batch shape."""
    parts = [q.shape[:-1], *(() if v is None else (v.shape[:-1],)), *(() if time is None else (time.shape,))]
    try:
        return np.broadcast_shapes(*parts)
    except (ValueError, RuntimeError):  # the latter for too many axes
        raise ShapeError(f"close_loops: the batch shapes {parts} do not broadcast") from None
