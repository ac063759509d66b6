"""Derivatives of the dynamics; with respect to configurations they are taken on the tangent space."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

from dalembert import algorithms
from dalembert.api.calls import (
    BODY,
    Array,
    ArrayLike,
    Check,
    ForceFrame,
    checked_stabilization,
    force_options,
    is_large,
    plain,
    results,
)
from dalembert.compiler.library import FUNCTIONS, function, library_recipe, no_model
from dalembert.errors import require_names
from dalembert.model.model import Model

__all__ = [
    "HybridDynamicsDerivatives",
    "forward_dynamics_derivatives",
    "hybrid_dynamics_derivatives",
    "inverse_dynamics_derivatives",
]

Three = tuple[Array, Array, Array]


def inverse_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Three | None = None,
    check: Check = None,
) -> Three:
    """Return (dtau/dq, dtau/dv, dtau/da) of tau = ID(q, v, a), `(…, nv, nv)` each, from one kernel.

    Column k of dtau/dq is the derivative along `integrate(q, e_k)` on the tangent space. For trees dtau/da =
    M. Entries of two joints of which neither supports the other are zero. `external_forces` as in
    `inverse_dynamics`, constant in the coordinates in which they are given. `out`: three arrays for the
    results.

    With composites I^c, B^c, f^c of subtrees and the changes psi, chi, phi of velocity and acceleration,
    dtau_i/dq_j = S_i . (I_i^c chi_j + 2 B_i^c psi_j), in O(n d) (Singh, Russell, Wensing 2022; Carpentier,
    Mansard 2018), extended to joints whose S depends on q. `method="directional"`: by dual numbers, the
    default for models with loops or other constraints; `"guenter_rose"`: the recursions of Guenter and Rose
    (2000).

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> by_q, by_v, by_a = da.inverse_dynamics_derivatives(model, [np.pi / 3], [0.0], [0.0])
    >>> print(by_q.round(4), by_v.round(4), by_a.round(4))  # m g l cos q, 0, m l^2
    [[29.43]] [[0.]] [[12.]]
    """
    name = "inverse_dynamics_derivatives"
    large = is_large(model, name)
    plainly = external_forces is method is time is out is None and check is None
    if plainly and not large and external_frame is BODY:
        return plain(model, name)(q, v, a)  # type: ignore[no-any-return]
    arrays = {"external_forces": external_forces, "time": time}
    options = force_options(external_forces, external_frame)
    if large and method is None and library_recipe(model, "inverse_dynamics").looped:
        return _by_columns(model, "inverse_dynamics", (q, v, a), arrays, options, out, check)
    return cast("Three", results(model, name, (q, v, a), arrays, method, options, out, check))


def forward_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Three | None = None,
    check: Check = None,
) -> Three:
    """Return (da/dq, da/dv, da/dtau) of a = FD(q, v, tau), `(…, nv, nv)` each, from one kernel.

    From tau = ID(q, v, a(q, v, tau)): da/dx = -M^-1 dID/dx at the resulting a, and da/dtau = M^-1, with one
    sparse factorisation of M. Derivatives with respect to q are on the tangent space. `external_forces` as in
    `inverse_dynamics`, constant in the coordinates in which they are given. `out`: three arrays for the
    results.

    If loops or other constraints bind the coordinates, M a + b - K^T lambda = tau and K a = k are
    differentiated together (`method="implicit"`); the rank of da/dtau is then that of the motions that K
    allows. `stabilization` as in `forward_dynamics`. `method="directional"`: by dual numbers.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> by_q, by_v, by_tau = da.forward_dynamics_derivatives(model, [np.pi / 3], [0.0], [0.0])
    >>> print(by_q.round(4), by_tau.round(4))  # -g / l cos q, 1 / (m l^2)
    [[-2.4525]] [[0.0833]]
    """
    name = "forward_dynamics_derivatives"
    large = is_large(model, name)
    plainly = external_forces is method is stabilization is time is out is None
    if plainly and not large and check is None and external_frame is BODY:
        return plain(model, name)(q, v, tau)  # type: ignore[no-any-return]
    arrays = {"external_forces": external_forces, "time": time}
    if stabilization is not None:
        arrays["stabilization"] = checked_stabilization(stabilization)
    options = force_options(external_forces, external_frame)
    if large and method is None and library_recipe(model, "forward_dynamics").looped:
        arrays.pop("stabilization", None)  # of constraints alone
        return _by_columns(model, "forward_dynamics", (q, v, tau), arrays, options, out, check)
    return cast("Three", results(model, name, (q, v, tau), arrays, method, options, out, check))


def _by_columns(
    model: Model,
    name: str,
    values: Sequence[ArrayLike],
    arrays: dict[str, ArrayLike | None],
    options: dict[str, Any],
    out: Three | None,
    check: Check,
) -> Three:
    """Return the three matrices of a large tree from code with loops; straight-line code would be too
    long.
    """
    given = {key: value for key, value in arrays.items() if value is not None}
    by = FUNCTIONS[name].arguments
    compiled = function(model, name, arrays=tuple(given), options=tuple(options.items()), by=by)
    return cast("Three", compiled(*values, *given.values(), out=out, check=check))


class HybridDynamicsDerivatives(NamedTuple):
    """The derivatives of a and tau with respect to q (tangent space), v, tau and a: `(…, nv, nv)` each.

    a and tau are complete. Columns of inputs that are not read, tau of prescribed joints and a of free ones,
    are zero.
    """

    a_by_q: Array
    a_by_v: Array
    a_by_tau: Array
    a_by_a: Array
    tau_by_q: Array
    tau_by_v: Array
    tau_by_tau: Array
    tau_by_a: Array


def hybrid_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Collection[str],
    external_forces: ArrayLike | None = None,
    external_frame: ForceFrame = "body",
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> HybridDynamicsDerivatives:
    """Return the derivatives of (a, tau) = `hybrid_dynamics`, eight matrices `(…, nv, nv)` from one kernel.

    With free joints 1, prescribed joints 2 and D = dID/dx at the resulting motion:

        da_1 = M_11^-1 (dtau_1 - D_1 dx - M_12 da_2),   dtau_2 = D_2 dx + M_21 da_1 + M_22 da_2

    (Featherstone 2008 section 9.1). Models with loops or other constraints use dual numbers. Arguments as in
    `hybrid_dynamics`; `out`: eight arrays for the results.

    >>> model = da.models.double_pendulum()
    >>> first = [model.joints[0].name]
    >>> found = da.hybrid_dynamics_derivatives(
    ...     model, [0.0, 0.1], [0.0, 0.0], [0.0, 0.0], [2.0, 0.0], prescribed=first)
    >>> found.a_by_a.round(3).tolist()  # what the second joint does when the first accelerates
    [[1.0, 0.0], [-1.995, 0.0]]
    """
    if not isinstance(model, Model):
        raise no_model("hybrid_dynamics_derivatives", model)
    names = require_names("hybrid_dynamics_derivatives: prescribed", prescribed)
    algorithms.hybrid.prescribed_places(model, names)
    arrays = {"external_forces": external_forces, "time": time}
    if stabilization is not None:
        arrays["stabilization"] = checked_stabilization(stabilization)
    options = {"prescribed": names, **force_options(external_forces, external_frame)}
    found = results(model, "hybrid_dynamics_derivatives", (q, v, tau, a), arrays, None, options, out, check)
    return HybridDynamicsDerivatives(*found)
