"""Prescribed motion, and systems that hang on nothing."""

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

    Returns (a, tau), both complete `(…, nv)`. tau [N m or N] is read at the free joints and a [rad/s^2 or
    m/s^2] at the joints named in `prescribed`; what stands elsewhere is not looked at. None prescribed:
    forward dynamics; all: inverse dynamics. `method`: "articulated", O(n), or "matrix". `external_forces` as
    in `inverse_dynamics`. Where joints are coupled, prescribe those that the others follow. A model with loop
    joints satisfies them, with T_stab `stabilization` [s]; accelerations are refused (`check`) that they do
    not allow. Featherstone 2008 sections 9.1 and 9.2.

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
    """How a floating base moves while its joints accelerate as given: a_0 = -(I_0^c)^-1 p_0^c.

    Returns (a_0 `(…, 6)`, tau `(…, nv - 6)`): dv/dt of the Free root in base coordinates, angular first, and
    the joint forces tau_i = S_i^T (I_i^c a_0 + p_i^c) [N m or N]. `a_joints`: `(…, nv - 6)`, dv/dt of all
    other joints. `gravity`: as weights of the bodies ("forces") or added to a_0 ("acceleration"), which is
    the same. Featherstone 2008 section 9.5, Table 9.6.

    >>> model = da.models.quadruped()  # in the air, at rest: it falls, whatever its legs hold
    >>> a_0, tau = da.floating_base_inverse_dynamics(
    ...     model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv - 6))
    >>> print(a_0.round(6) + 0.0, bool(abs(tau).max() < 1e-12))
    [ 0.    0.    0.    0.    0.   -9.81] True
    """
    known = algorithms.floating_base.inverse_dynamics.GRAVITY
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
    """[[I_0, F], [F^T, H]] (a_0, a_joints) + (p_0, C) = (f_0, tau): Featherstone 2008 Eq. 9.13.

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
    """The coefficients of [[I_0, F], [F^T, H]] (a_0, a_joints) + (p_0, C) = (f_0, tau).

    The model's root is a Free joint that carries all other bodies; a_0 is dv/dt of it and f_0 the force on
    it [N m, N], in base coordinates; see `FloatingBaseEquations` for the shapes. Weights and external forces
    are in p_0 and C. Featherstone 2008 section 9.3, Table 9.5.

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
    """J^f = J - X (I_0^c)^-1 F `(…, 6, nv - 6)`: how a body or frame moves with the joints in free flight.

    When forces inside the system change the joint rates by delta, nothing holding the base, the velocity of
    the body or frame (angular first, at the place that `frame` says, as in `jacobian`) changes by
    J^f delta. Featherstone 2008 Example 9.4.

    >>> model = da.models.quadruped()
    >>> da.floating_base_jacobian(model, model.neutral(), model.bodies[0].name).shape == (6, model.nv - 6)
    True
    """
    options = {"where": known_frame(model, frame_name), "frame": frame}
    return result(model, "floating_base_jacobian", (q,), {"time": time}, None, options, out, check)
