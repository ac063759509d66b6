"""The geometry of configuration space: M(q) as a metric, its connection, its geodesics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from dalembert import algorithms
from dalembert.api.calls import Array, ArrayLike, Check, checked_time_step, is_large, result, results
from dalembert.api.dynamics import forward_dynamics, gravity_forces
from dalembert.call.arguments import (
    ArrayArgument,
    as_array,
    as_rows,
    check_result,
    pick_dtype,
    with_column_axis,
)
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import no_model
from dalembert.compiler.lowering import Recipe
from dalembert.errors import DtypeError, ShapeError, whole_number
from dalembert.host.foreign_arrays import require_numpy
from dalembert.host.process import require_memory
from dalembert.model.model import Model
from dalembert.scalar import Scalar

__all__ = [
    "christoffel_symbols",
    "connection_term",
    "coriolis_matrix",
    "coriolis_product",
    "covariant_derivative",
    "geodesic",
    "geodesic_acceleration",
    "inner_product",
    "mass_matrix_rate",
    "parallel_transport",
]

Field: TypeAlias = Callable[[Any, list[Scalar]], Sequence[Scalar]]
"""`field(model, q)` computes the nv components of a vector field."""

MAX_STEPS: Final = 2**53
"""Upper bound of the number of steps; the memory check rejects far fewer."""


def coriolis_matrix(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute the Coriolis matrix C(q, v) `(…, nv, nv)` of M a + C v + g = tau.

    [kg m^2/s, kg m/s or kg/s]. C v = `coriolis_forces`, and dM/dt - 2 C is skew. C = sum over bodies of J^T
    (I J' + B J), with B m = ((v x* I - I v x) m + m x* I v) / 2: the matrix of the Christoffel symbols, C_kj
    = Gamma_ij,k v_i. It is defined for all joint types, and is G^T C G where joints are coupled.

    Source: Todorov, "Dynamics in generalized coordinates"; Echeandia & Wensing 2021.

    >>> model = da.models.two_link_arm()
    >>> q, v = np.array([0.3, 0.8]), np.array([1.0, -2.0])
    >>> C = da.coriolis_matrix(model, q, v)
    >>> np.allclose(C @ v, da.coriolis_forces(model, q, v))
    True
    >>> X = da.mass_matrix_rate(model, q, v) - 2.0 * C
    >>> np.allclose(X, -X.T)
    True
    """
    if is_large(model, "coriolis_matrix"):
        rows, speeds = with_column_axis(("q", q, model.nq), ("v", v, model.nv))
        columns = coriolis_product(model, rows, speeds, np.eye(model.nv, dtype=rows.dtype), check=check)
        return _store(np.swapaxes(columns, -1, -2), out)
    return result(model, "coriolis_matrix", (q, v), {}, None, {}, out, check)


def coriolis_product(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    w: ArrayLike,
    *,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute C(q, v) w `(…, nv)` [N m or N] in linear time, without forming C.

    `w`: any velocity `(…, nv)`; with w = v the result is `coriolis_forces`. The outward pass computes J v, J
    w and J' w, the inward pass I J' w + B J w of each body.

    Source: as `coriolis_matrix`.

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> np.allclose(da.coriolis_product(model, q, v, v), da.coriolis_forces(model, q, v))
    True
    """
    return result(model, "coriolis_product", (q, v, w), {}, None, {}, out, check)


def mass_matrix_rate(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute dM/dt `(…, nv, nv)` [kg m^2/s, kg m/s or kg/s] along the motion v.

    M' = sum of S_j^T (I^c' S_i + I^c S_i') + S_j'^T I^c S_i, and M' = C + C^T.

    Source: the composite inertias of Featherstone 2008 Eq. 6.17, differentiated (§2.13); Todorov, "Dynamics
    in generalized coordinates".

    >>> model = da.models.two_link_arm()
    >>> q, v = np.array([0.3, 0.8]), np.array([1.0, -2.0])
    >>> difference = da.mass_matrix(model, q + 1e-6 * v) - da.mass_matrix(model, q - 1e-6 * v)
    >>> np.allclose(da.mass_matrix_rate(model, q, v), difference / 2e-6)
    True
    """
    if is_large(model, "mass_matrix_rate"):
        C = coriolis_matrix(model, q, v, check=check)
        return _store(C + np.swapaxes(C, -1, -2), out)
    return result(model, "mass_matrix_rate", (q, v), {}, None, {}, out, check)


def christoffel_symbols(
    model: Model,
    q: ArrayLike,
    *,
    kind: Literal["first", "second"] = "first",
    method: str | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute Gamma_ij,k = (dM_ik/dq_j + dM_jk/dq_i - dM_ij/dq_k) / 2 `(…, nv, nv, nv)`, indices i, j, k.

    `kind`: "first", or "second": Gamma_ij^k = (M^-1)_ks Gamma_ij,s. The velocity terms are c_k = Gamma_ij,k
    v_i v_j. Where v is not dq/dt (spherical, planar and free joints) the symbols are those of the same
    connection in the frame of the velocity variables, nabla_{e_i} e_j = Gamma_ij^k e_k, which is not
    symmetric in i and j. `method`: "coriolis_matrix" (C_kj at v = e_i) or "derivatives" (exact derivatives of
    M). The nv^3 numbers limit it to systems of up to about twenty variables.

    Source: Todorov, "Dynamics in generalized coordinates", "Covariant derivatives and geodesics".

    >>> model = da.models.two_link_arm()
    >>> Gamma = da.christoffel_symbols(model, np.array([0.3, 0.8]))
    >>> v = np.array([1.0, -2.0])
    >>> c = np.einsum("ijk,i,j->k", Gamma, v, v)
    >>> np.allclose(c, da.coriolis_forces(model, np.array([0.3, 0.8]), v))
    True
    """
    return result(model, "christoffel_symbols", (q,), {}, method, {"kind": kind}, out, check)


def inner_product(
    model: Model,
    q: ArrayLike,
    u: ArrayLike,
    w: ArrayLike,
    *,
    space: Literal["tangent", "cotangent"] = "tangent",
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the inner product <u, w> = u^T M(q) w `(…)` of two velocities `(…, nv)`.

    <v, v> is twice the kinetic energy. `space="cotangent"`: u^T M(q)^-1 w of two forces or momenta.

    Source: Todorov, "Manifolds and metrics" (where p^T v is called kinetic energy; it is twice that).

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> np.allclose(da.inner_product(model, q, v, v), 2.0 * da.kinetic_energy(model, q, v))
    True
    """
    return result(model, "inner_product", (q, u, w), {}, None, {"space": space}, out, check)


def connection_term(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    u: ArrayLike,
    *,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute Gamma_ij^k v_i u_j = M^-1 C(q, v) u `(…, nv)`, the connection's part of nabla_v u.

    A vector u(t) is transported in parallel along a motion if du/dt + connection_term = 0.

    Source: Todorov, "Covariant derivatives and geodesics".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> np.allclose(da.connection_term(model, q, v, v), -da.geodesic_acceleration(model, q, v))
    True
    """
    return result(model, "connection_term", (q, v, u), {}, None, {}, out, check)


def covariant_derivative(model: Model, field: Field) -> CompiledFunction:
    """Compile the covariant derivative nabla_v u of a vector field u = field(model, q).

    The result is a function of q `(…, nq)` and v `(…, nv)`: (nabla_v u)_k = v_i du_k/dq_i + Gamma_ij^k v_i
    u_j. `field` computes nv numbers from q with `+ - * /` and `dalembert.scalar`; its derivative is exact.
    The connection is that of the metric M.

    Source: Todorov, "Covariant derivatives and geodesics".

    >>> model = da.models.two_link_arm()
    >>> constant = lambda model, q: [1.0, 0.0]
    >>> nabla = da.covariant_derivative(model, constant)
    >>> q, v = np.array([0.3, 0.8]), np.array([1.0, -2.0])
    >>> Gamma = da.christoffel_symbols(model, q, kind="second")
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


def geodesic_acceleration(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute dv/dt = -M^-1 C(q, v) v `(…, nv)` [rad/s^2 or m/s^2], the motion without forces and gravity.

    It solves nabla_v v = 0, dv_k/dt + Gamma_ij^k v_i v_j = 0.

    Source: Todorov, "Unforced motions as geodesics".

    >>> model = da.models.cart_pole().with_values({"gravity": (0.0, 0.0, 0.0)})
    >>> q, v = [0.1, 0.7], [1.0, -2.0]
    >>> np.allclose(da.geodesic_acceleration(model, q, v), da.forward_dynamics(model, q, v, [0.0, 0.0]))
    True
    """
    if is_large(model, "geodesic_acceleration") and not model.loop_names:
        return forward_dynamics(model, q, v, gravity_forces(model, q, check=check), out=out, check=check)
    return result(model, "geodesic_acceleration", (q, v), {}, None, {}, out, check)


def geodesic(
    model: Model, q: ArrayLike, v: ArrayLike, dt: float, steps: int, *, check: Check = None
) -> tuple[Array, Array]:
    """Return (q, v) along the geodesic from q with velocity v: `(steps + 1, …, nq)` and `(steps + 1, …, nv)`.

    It integrates nabla_v v = 0 by the fourth-order Runge–Kutta method in steps of dt [s]. <v, v> stays
    constant, and the path depends only on the direction of v, not on its magnitude.

    Source: Todorov, "Unforced motions as geodesics".

    >>> model = da.models.two_link_arm()
    >>> q, v = da.geodesic(model, [0.3, 0.8], [1.0, -2.0], 0.01, 100)
    >>> speeds = da.inner_product(model, q, v, v)
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
    >>> q, v = da.geodesic(model, [0.3, 0.8], [1.0, -2.0], 0.01, 100)
    >>> carried = da.parallel_transport(model, q, v, v[0], 0.01)
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


def _store(matrix: Array, out: Array | None) -> Array:
    """Return a matrix that NumPy assembled, copied into `out` if that is given."""
    if out is None:
        return np.ascontiguousarray(matrix)
    check_result(ArrayArgument("output", matrix.shape[-2:]), out, matrix.shape, matrix.dtype.name)
    out[...] = matrix
    return out
