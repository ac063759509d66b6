"""Covariant derivatives, geodesics and parallel transport in the metric M(q) of configuration space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from dalembert import algorithms
from dalembert.api.calls import Array, ArrayLike, Check, checked_time_step, results
from dalembert.api.declared import connection_term
from dalembert.call.arguments import ArrayArgument, as_array, as_rows, pick_dtype
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import no_model
from dalembert.compiler.lowering import Recipe
from dalembert.errors import DtypeError, ShapeError, whole_number
from dalembert.host.foreign_arrays import require_numpy
from dalembert.host.process import require_memory
from dalembert.model.model import Model
from dalembert.scalar import Scalar

Field: TypeAlias = Callable[[Any, list[Scalar]], Sequence[Scalar]]
"""`field(model, q)` computes the nv components of a vector field."""

MAX_STEPS: Final = 2**53
"""Upper bound of the number of steps; the memory check rejects far fewer."""


def covariant_derivative(model: Model, field: Field) -> CompiledFunction:
    """Compile the covariant derivative nabla_v u of a vector field u = field(model, q).

    The result is a function of q `(…, nq)` and v `(…, nv)`: (nabla_v u)_k = v_i du_k/dq_i + Gamma_ij^k v_i
    u_j. `field` computes nv numbers from q with `+ - * /` and `dalembert.scalar`; its derivative is exact.
    The connection is that of the metric M.

    Source: Todorov, "Covariant derivatives and geodesics".

    >>> model = da.models.two_link_arm()
    >>> constant = lambda model, q: [1.0, 0.0]
    >>> nabla = da.geometry.covariant_derivative(model, constant)
    >>> q, v = np.array([0.3, 0.8]), np.array([1.0, -2.0])
    >>> Gamma = da.geometry.christoffel_symbols(model, q, kind="second")
    >>> np.allclose(nabla(q, v), np.einsum("ijk,i,j->k", Gamma, v, [1.0, 0.0]))
    True
    """

    if not isinstance(model, Model):
        raise no_model("covariant_derivative", model)
    if not callable(field):
        raise DtypeError(f"covariant_derivative: field must be a function, got {type(field).__name__}")

    def derivative(tree: Any, q: Any, v: Any) -> Any:
        return algorithms.geometry.covariant_derivative(tree, field, q, v)

    arguments = (ArrayArgument("q", (model.nq,)), ArrayArgument("v", (model.nv,)))
    return CompiledFunction(Recipe("covariant_derivative", derivative, model, arguments))


def geodesic(
    model: Model, q: ArrayLike, v: ArrayLike, dt: float, steps: int, *, check: Check = None
) -> tuple[Array, Array]:
    """Return (q, v) along the geodesic from q with velocity v: `(steps + 1, …, nq)` and `(steps + 1, …, nv)`.

    It integrates nabla_v v = 0 by the fourth-order Runge–Kutta method in steps of dt [s]. <v, v> stays
    constant, and the path depends only on the direction of v, not on its magnitude.

    Source: Todorov, "Unforced motions as geodesics".

    >>> model = da.models.two_link_arm()
    >>> q, v = da.geometry.geodesic(model, [0.3, 0.8], [1.0, -2.0], 0.01, 100)
    >>> speeds = da.geometry.inner_product(model, q, v, v)
    >>> bool(np.ptp(speeds) < 1e-6 * speeds[0])
    True
    """
    if not isinstance(model, Model):
        raise no_model("geodesic", model)
    count = whole_number("geodesic: steps", steps, 0, MAX_STEPS)
    checked_time_step(dt)
    signature = tuple(
        ArrayArgument(name, shape) for name, shape in (("q", (model.nq,)), ("v", (model.nv,)), ("dt", ()))
    )
    rows = as_rows(signature, (q, v, dt), pick_dtype([("q", q), ("v", v), ("dt", dt)]))
    size = 8 * rows.count * (count + 1) * (model.nq + model.nv)
    require_memory(f"geodesic: {count} steps of {rows.count} samples", size, "take fewer steps or samples")
    path = [
        tuple(
            np.broadcast_to(x, (rows.count, item.size)).reshape(*rows.batch, item.size)
            for x, item in zip(rows.matrices[:2], signature)
        )
    ]
    for _ in range(count):
        path.append(results(model, "geodesic_step", (*path[-1], dt), {}, None, {}, None, check))
    return np.stack([q for q, _ in path]), np.stack([v for _, v in path])


def parallel_transport(
    model: Model, q: ArrayLike, v: ArrayLike, u: ArrayLike, dt: float, *, check: Check = None
) -> Array:
    """Transport u in parallel along a motion: solve du/dt + Gamma_ij^k v_i u_j = 0.

    `q (steps + 1, …, nq)` and `v (steps + 1, …, nv)` are the motion at times dt [s] apart, as `geodesic`
    returns it, with an even number of steps; `u (…, nv)` is the vector at its start. The result `((steps + 2)
    // 2, …, nv)` is u at every second time, since the fourth-order Runge–Kutta method uses the times between
    as its midpoints. Lengths and angles in the metric M are preserved.

    Source: Todorov, "Covariant derivatives and geodesics".

    >>> model = da.models.two_link_arm()
    >>> q, v = da.geometry.geodesic(model, [0.3, 0.8], [1.0, -2.0], 0.01, 100)
    >>> carried = da.geometry.parallel_transport(model, q, v, v[0], 0.01)
    >>> np.allclose(carried, v[::2])
    True
    """
    if checked_time_step(dt).ndim:
        raise ShapeError(f"dt: expected one number for the whole motion, got shape {np.shape(dt)}")
    for name, value in (("q", q), ("v", v), ("u", u)):
        require_numpy(name, value)
    positions, speeds = as_array("q", q, (), follow=True), as_array("v", v, (), follow=True)
    if min(positions.ndim, speeds.ndim) < 2 or len(positions) != len(speeds) or len(positions) % 2 == 0:
        raise ShapeError(
            f"parallel_transport: q {positions.shape} and v {speeds.shape} are no motion; give both at the "
            "same odd number of times, (steps + 1, …, n) with an even number of steps"
        )

    def rate(at: int, vector: Array) -> Array:
        return -connection_term(model, positions[at], speeds[at], vector, check=check)

    try:
        start = as_array("u", u, (), follow=True).astype(speeds.dtype)
        carried = [np.broadcast_to(start, speeds[0].shape)]
    except ValueError:
        raise ShapeError(
            f"parallel_transport: u {np.shape(u)} does not fit v at one time, {speeds[0].shape}"
        ) from None
    for k in range(0, len(positions) - 1, 2):
        now = carried[-1]
        k1 = rate(k, now)
        k2 = rate(k + 1, now + dt * k1)
        k3 = rate(k + 1, now + dt * k2)
        k4 = rate(k + 2, now + 2.0 * dt * k3)
        carried.append(now + dt / 3.0 * (k1 + 2.0 * (k2 + k3) + k4))
    return np.stack(carried)
