"""Hybrid dynamics (prescribed joint motion) and floating-base systems."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple, cast

from dalembert import algorithms
from dalembert.api.calls import (
    Array,
    ArrayLike,
    Check,
    ForceFrame,
    checked_stabilization,
    force_options,
    known_frame,
    result,
    results,
)
from dalembert.compiler.library import no_model
from dalembert.errors import require_choice, require_names
from dalembert.model.model import Model

__all__ = [
    "FloatingBaseEquations",
    "floating_base_equations",
    "floating_base_inverse_dynamics",
    "floating_base_jacobian",
    "hybrid_dynamics",
]


def hybrid_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Collection[str] = (),
    external_forces: ArrayLike | None = None,
    external_frame: ForceFrame = "body",
    method: Literal["articulated", "matrix"] | None = None,
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Solve M(q) a + b(q, v) = tau + J^T external for a at the free joints and tau at the prescribed ones.

    Returns (a, tau), both complete `(…, nv)`. tau [N m or N] is read at the free joints, and a [rad/s^2 or
    m/s^2] at the joints named in `prescribed`; other entries are ignored. With no joint prescribed it is
    forward dynamics, with all prescribed inverse dynamics. `method`: "articulated", O(n), or "matrix".
    `external_forces` as in `inverse_dynamics`. Of coupled joints prescribe those that the others follow. Loop
    joints are satisfied, with time constant `stabilization` T_stab [s]; prescribed accelerations that violate
    them are rejected (`check`). Featherstone 2008 sections 9.1 and 9.2.

    >>> model = da.models.cart_pole()  # push the cart with given acceleration: how does the pole swing?
    >>> names = [joint.name for joint in model.joints]
    >>> a, tau = da.hybrid_dynamics(model, [0, 0.1], [0, 0], tau=[0, 0], a=[2.0, 0], prescribed=names[:1])
    >>> float(a[0]), bool(abs(da.inverse_dynamics(model, [0, 0.1], [0, 0], a) - tau).max() < 1e-12)
    (2.0, True)
    """
    if not isinstance(model, Model):
        raise no_model("hybrid_dynamics", model)
    names = require_names("hybrid_dynamics: prescribed", prescribed)
    algorithms.hybrid.prescribed_places(model, names)
    arrays = {"external_forces": external_forces, "time": time}
    if stabilization is not None:
        arrays["stabilization"] = checked_stabilization(stabilization)
    options = {"prescribed": names, **force_options(external_forces, external_frame)}
    return cast(
        "tuple[Array, Array]",
        results(model, "hybrid_dynamics", (q, v, tau, a), arrays, method, options, None, check),
    )


def floating_base_inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a_joints: ArrayLike,
    *,
    external_forces: ArrayLike | None = None,
    external_frame: ForceFrame = "body",
    gravity: Literal["forces", "acceleration"] = "forces",
    time: ArrayLike | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Compute the base acceleration a_0 = -(I_0^c)^-1 p_0^c and the joint forces from joint accelerations.

    Returns (a_0 `(…, 6)`, tau `(…, nv - 6)`): dv/dt of the Free root in base coordinates, angular first, and
    the joint forces tau_i = S_i^T (I_i^c a_0 + p_i^c) [N m or N]. `a_joints`: `(…, nv - 6)`, dv/dt of all
    other joints. `gravity`: applied as weights of the bodies ("forces") or added to a_0 ("acceleration");
    both give the same result. Featherstone 2008 section 9.5, Table 9.6.

    >>> model = da.models.quadruped()  # in the air, at rest: it falls with any pose of its legs
    >>> a_0, tau = da.floating_base_inverse_dynamics(
    ...     model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv - 6))
    >>> print(a_0.round(6) + 0.0, bool(abs(tau).max() < 1e-12))
    [ 0.    0.    0.    0.    0.   -9.81] True
    """
    known = algorithms.floating_base.GRAVITY
    require_choice("gravity treatment", gravity, known)
    arrays = {"external_forces": external_forces, "time": time}
    options = force_options(external_forces, external_frame)
    return cast(
        "tuple[Array, Array]",
        results(
            model,
            "floating_base_inverse_dynamics",
            (q, v, a_joints),
            arrays,
            gravity,
            options,
            None,
            check,
        ),
    )


class FloatingBaseEquations(NamedTuple):
    """The terms of [[I_0, F], [F^T, H]] (a_0, a_joints) + (p_0, C) = (f_0, tau): Featherstone 2008 Eq. 9.13.

    `I_0` `(…, 6, 6)` is the inertia of the whole system as one rigid body, `F` `(…, 6, n)`, `H` `(…, n, n)`,
    `p_0` `(…, 6)`, `C` `(…, n)` with n = nv - 6, all in base coordinates.

    >>> da.FloatingBaseEquations._fields
    ('I_0', 'F', 'H', 'p_0', 'C')
    """

    I_0: Array
    F: Array
    H: Array
    p_0: Array
    C: Array


def floating_base_equations(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    external_forces: ArrayLike | None = None,
    external_frame: ForceFrame = "body",
    time: ArrayLike | None = None,
    check: Check = None,
) -> FloatingBaseEquations:
    """Compute the coefficients of [[I_0, F], [F^T, H]] (a_0, a_joints) + (p_0, C) = (f_0, tau).

    The model's root must be a Free joint that carries all other bodies; a_0 is its dv/dt and f_0 the force on
    it [N m, N], in base coordinates; see `FloatingBaseEquations` for the shapes. p_0 and C include weights
    and external forces. Featherstone 2008 section 9.3, Table 9.5.

    >>> model = da.models.quadruped()
    >>> q, v = model.random_state(0)
    >>> equations = da.floating_base_equations(model, q, v)
    >>> float(equations.I_0[5, 5].round(6)) == round(float(model.total_mass), 6)
    True
    """
    arrays = {"external_forces": external_forces, "time": time}
    options = force_options(external_forces, external_frame)
    return FloatingBaseEquations(
        *results(model, "floating_base_equations", (q, v), arrays, None, options, None, check)
    )


def floating_base_jacobian(
    model: Model,
    q: ArrayLike,
    frame_name: str,
    *,
    frame: Literal["body", "world", "world_aligned"] = "world_aligned",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the free-flight Jacobian J^f = J - X (I_0^c)^-1 F `(…, 6, nv - 6)` of a body or frame.

    If internal forces change the joint rates by delta and nothing holds the base, the velocity of the body or
    frame changes by J^f delta (angular first, at the point and in the axes that `frame` selects, as in
    `jacobian`). Featherstone 2008 Example 9.4.

    >>> model = da.models.quadruped()
    >>> da.floating_base_jacobian(model, model.neutral(), model.bodies[0].name).shape == (6, model.nv - 6)
    True
    """
    options = {"where": known_frame(model, frame_name), "frame": frame}
    return result(model, "floating_base_jacobian", (q,), {"time": time}, None, options, out, check)
