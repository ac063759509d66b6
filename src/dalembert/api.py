"""The public functions: one sample or any batch of them, compiled for the model on first use.

All take one sample `(nq,)` or any leading batch shape `(…, nq)`, row-major; ints and lists become float64;
arrays of float32 give float32. `out=` takes preallocated results. `check="raise"` refuses quaternions off
unit norm, `"flag"` makes such rows NaN, `"off"` does not look. `time=` is needed where a model has
time-dependent joints.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from dalembert.arguments import as_array
from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.execution import CompiledFunction
from dalembert.library import UNROLLED_BODIES, function, no_model
from dalembert.model.model import Model
from dalembert.poses import Poses

__all__ = [
    "bias_forces",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "coriolis_forces",
    "difference",
    "force_at_point",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_kinematics",
    "gravity_forces",
    "inertial_forces",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_mass_matrix",
    "jacobian",
    "jacobian_rate",
    "kinetic_energy",
    "mass_matrix",
    "normalize",
    "passive_forces",
    "point_motion",
    "potential_energy",
    "step",
]

Array: TypeAlias = npt.NDArray[Any]
ArrayLike: TypeAlias = npt.ArrayLike
Check: TypeAlias = Literal["raise", "flag", "off"]
ForceFrame: TypeAlias = Literal["body", "world"]
FORCE_FRAMES: Final = ("body", "world")
JacobianFrame: TypeAlias = Literal["body", "world", "world_aligned"]


def inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """Solve M(q) a + b(q, v) = tau + J^T external for tau `(…, nv)` [N m or N].

    `a`: dv/dt `(…, nv)`. `external_forces`: `(…, n_bodies, 6)`, moment and force on each body in body
    coordinates at its origin, or with `external_frame="world"` in world coordinates at the world's origin.
    Armature is inside; damping, springs, friction and limits are not (`passive_forces`). Recursive
    Newton-Euler, Featherstone 2008 Table 5.1.
    """
    if external_forces is method is time is out is None and check == "raise" and external_frame == "body":
        return _plain(model, "inverse_dynamics")(q, v, a)  # type: ignore[no-any-return]
    arrays = {"external_forces": external_forces, "time": time}
    options = _force_options(external_forces, external_frame)
    return _array(model, "inverse_dynamics", (q, v, a), arrays, method, options, out, check)


def forward_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """Solve M(q) a + b(q, v) = tau + J^T external for a = dv/dt `(…, nv)` [rad/s^2 or m/s^2].

    `external_forces` as in `inverse_dynamics`. `method`: "aba", the articulated-body algorithm (Featherstone
    2008 Table 7.1), or "crba", which forms and factors M; coupled joints take the latter by themselves.
    """
    if external_forces is method is time is out is None and check == "raise" and external_frame == "body":
        return _plain(model, "forward_dynamics")(q, v, tau)  # type: ignore[no-any-return]
    arrays = {"external_forces": external_forces, "time": time}
    options = _force_options(external_forces, external_frame)
    return _array(model, "forward_dynamics", (q, v, tau), arrays, method, options, out, check)


def mass_matrix(
    model: Model,
    q: ArrayLike,
    *,
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """The joint-space inertia M(q) `(…, nv, nv)`, symmetric, with armature; kinetic energy is v^T M v / 2.

    Composite-rigid-body algorithm, Featherstone 2008 Table 6.2; `method="rnea_columns"` takes it from nv
    inverse dynamics, as does a model of more than `UNROLLED_BODIES` coordinates.
    """
    large = _is_large(model)
    if method is time is out is None and check == "raise" and not large:
        return _plain(model, "mass_matrix")(q)  # type: ignore[no-any-return]
    if method is None and large:
        rows = np.asarray(q)[..., np.newaxis, :]
        unit = np.eye(model.nv, dtype=rows.dtype if rows.dtype.kind == "f" else None)
        return inertial_forces(model, rows, unit, time=time, out=out, check=check)
    return _array(model, "mass_matrix", (q,), {"time": time}, method, {}, out, check)


def inertial_forces(
    model: Model,
    q: ArrayLike,
    a: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """M(q) a `(…, nv)` without forming M, in linear time: inverse dynamics without velocity and gravity."""
    return _array(model, "inertial_forces", (q, a), {"time": time}, None, {}, out, check)


def inverse_mass_matrix(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """M(q)^-1 `(…, nv, nv)`, from the sparse L^T D L factors of M, or of a large M by dense ones."""
    if _is_large(model) and out is None:
        return cast("Array", np.linalg.inv(mass_matrix(model, q, time=time, check=check)))
    return _array(model, "inverse_mass_matrix", (q,), {"time": time}, None, {}, out, check)


def bias_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """b(q, v) = inverse_dynamics(q, v, 0) `(…, nv)`: velocity terms and gravity. M a + b = tau."""
    return _array(model, "bias_forces", (q, v), {"time": time}, None, {}, out, check)


def gravity_forces(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """g(q) = inverse_dynamics(q, 0, 0) = +dV/dq `(…, nv)`: the forces that hold the system still."""
    return _array(model, "gravity_forces", (q,), {"time": time}, None, {}, out, check)


def coriolis_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """c(q, v) `(…, nv)`: the velocity terms of the equation of motion alone; bias = coriolis + gravity."""
    return _array(model, "coriolis_forces", (q, v), {"time": time}, None, {}, out, check)


def passive_forces(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = "raise"
) -> Array:
    """Springs, damping and dry friction of the joints `(…, nv)`; simulation adds them to tau."""
    return _array(model, "passive_forces", (q, v), {}, None, {}, out, check)


def forward_kinematics(
    model: Model, q: ArrayLike, *, time: ArrayLike | None = None, check: Check = "raise"
) -> Poses:
    """Where every body is in the world.

    `poses.rotation (…, n_bodies, 3, 3)`, `poses.translation (…, n_bodies, 3)`; `poses["hand"]` by name.
    """
    rotation, translation = _arrays(model, "forward_kinematics", (q,), {"time": time}, None, {}, None, check)
    return Poses(model, rotation, translation)


def jacobian(
    model: Model,
    q: ArrayLike,
    frame_name: str,
    *,
    frame: JacobianFrame = "world_aligned",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """J(q) `(…, 6, nv)`, angular first: the velocity of a body or frame is J v.

    `frame`: "body" at the frame's origin in its axes; "world" at the world's origin in world axes;
    "world_aligned" at the frame's origin in world axes.
    """
    options = {"where": _frame_name(model, frame_name), "frame": frame}
    return _array(model, "jacobian", (q,), {"time": time}, None, options, out, check)


def jacobian_rate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame_name: str,
    *,
    frame: JacobianFrame = "world_aligned",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = "raise",
) -> Array:
    """dJ/dt `(…, 6, nv)` along the motion v, in the same frame as `jacobian`."""
    options = {"where": _frame_name(model, frame_name), "frame": frame}
    return _array(model, "jacobian_rate", (q, v), {"time": time}, None, options, out, check)


def point_motion(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    frame_name: str,
    *,
    time: ArrayLike | None = None,
    check: Check = "raise",
) -> tuple[Array, Array, Array]:
    """Position, velocity and classical acceleration `(…, 3)` each, in world axes, of a frame's origin."""
    options = {"where": _frame_name(model, frame_name)}
    return cast(
        "tuple[Array, Array, Array]",
        _arrays(model, "point_motion", (q, v, a), {"time": time}, None, options, None, check),
    )


def kinetic_energy(model: Model, q: ArrayLike, v: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """T = v^T M v / 2 `(…)` [J], the armatures' share included."""
    return _array(model, "kinetic_energy", (q, v), {"time": time}, None, {}, None, "raise")


def potential_energy(model: Model, q: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """V = -sum m g . c `(…)` [J], zero with every centre of mass at the world's origin."""
    return _array(model, "potential_energy", (q,), {"time": time}, None, {}, None, "raise")


def center_of_mass(model: Model, q: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """The centre of mass of the whole system `(…, 3)` [m], in world coordinates."""
    return _array(model, "center_of_mass", (q,), {"time": time}, None, {}, None, "raise")


def centroidal_momentum(model: Model, q: ArrayLike, v: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """(angular momentum about the centre of mass, linear momentum) `(…, 6)`, in world axes."""
    return _array(model, "centroidal_momentum", (q, v), {"time": time}, None, {}, None, "raise")


def centroidal_momentum_matrix(model: Model, q: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """A(q) `(…, 6, nv)` with centroidal momentum = A v."""
    return _array(model, "centroidal_momentum_matrix", (q,), {"time": time}, None, {}, None, "raise")


def inverse_dynamics_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, check: Check = "raise"
) -> tuple[Array, Array, Array]:
    """(dtau/dq, dtau/dv, dtau/da), `(…, nv, nv)` each; by q on the tangent space; dtau/da = M."""
    by_q = function(model, "inverse_dynamics", by="q")(q, v, a, check=check)
    by_v = function(model, "inverse_dynamics", by="v")(q, v, a, check="off")
    batch = np.broadcast_shapes(*(np.shape(item)[:-1] for item in (q, v, a)))
    by_a = np.broadcast_to(mass_matrix(model, q, check="off"), (*batch, model.nv, model.nv))
    return by_q, by_v, by_a.copy() if by_a.shape != np.shape(by_q) or not by_a.flags.writeable else by_a


def forward_dynamics_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, check: Check = "raise"
) -> tuple[Array, Array, Array]:
    """(da/dq, da/dv, da/dtau), `(…, nv, nv)` each; by q on the tangent space.

    From tau = ID(q, v, a(q, v, tau)): da/dx = -M^-1 dID/dx at the a that results, and da/dtau = M^-1.
    """
    a = forward_dynamics(model, q, v, tau, check=check)
    by_q, by_v, _ = inverse_dynamics_derivatives(model, q, v, a, check="off")
    inverse = np.broadcast_to(inverse_mass_matrix(model, q, check="off"), by_q.shape)
    return -inverse @ by_q, -inverse @ by_v, inverse.copy()


def integrate(
    model: Model, q: ArrayLike, dv: ArrayLike, *, out: Array | None = None, check: Check = "raise"
) -> Array:
    """The configuration `(…, nq)` reached from q in unit time at constant velocity dv: pass `v * dt`."""
    return _array(model, "integrate", (q, dv), {}, None, {}, out, check)


def difference(
    model: Model, q0: ArrayLike, q1: ArrayLike, *, out: Array | None = None, check: Check = "raise"
) -> Array:
    """The displacement `(…, nv)` at q0 with `integrate(model, q0, difference(model, q0, q1)) = q1`."""
    return _array(model, "difference", (q0, q1), {}, None, {}, out, check)


def normalize(model: Model, q: ArrayLike, *, out: Array | None = None) -> Array:
    """q `(…, nq)` with its quaternions scaled to unit norm."""
    return _array(model, "normalize", (q,), {}, None, {}, out, "off")


def step(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: float,
    *,
    integrator: Literal["semi_implicit", "rk4"] = "semi_implicit",
    external_forces: ArrayLike | None = None,
    time: ArrayLike | None = None,
    check: Check = "raise",
) -> tuple[Array, Array]:
    """(q, v) after one step of dt [s] with tau held, on the configuration manifold.

    Passive joint forces are added to tau. The linear velocity of a free joint is carried in world axes, so
    that a thrown spinning body keeps its momentum to rounding.
    """
    span = as_array("dt", dt, ())
    if not np.all(np.isfinite(span) & (span > 0.0)):
        raise ArgumentError(f"dt must be positive and finite, got {dt}")
    arrays = {"external_forces": external_forces, "time": time}
    return cast(
        "tuple[Array, Array]",
        _arrays(model, "step", (q, v, tau, dt), arrays, None, {"integrator": integrator}, None, check),
    )


def force_at_point(model: Model, q: ArrayLike, body: str, point: ArrayLike, force: ArrayLike) -> Array:
    """External forces `(…, n_bodies, 6)` of a push on one body.

    `force (…, 3)` [N] at `point (…, 3)` [m], both in world coordinates.
    """
    index = model.body(body).index
    at, push = as_array("point", point, (3,)), as_array("force", force, (3,))
    pose = forward_kinematics(model, q)[body]
    arm = np.einsum("...ji,...j->...i", pose.rotation, at - pose.translation)
    push = np.einsum("...ji,...j->...i", pose.rotation, push)
    arm, push = np.broadcast_arrays(arm, push)
    wrench = np.concatenate([np.cross(arm, push), push], axis=-1)
    forces = np.zeros((*wrench.shape[:-1], len(model.bodies), 6), pose.rotation.dtype)
    forces[..., index, :] = wrench
    return forces


def _plain(model: Model, name: str) -> CompiledFunction:
    """A library function without options: the way of most calls, kept short."""
    try:
        return model.functions[name]  # type: ignore[no-any-return]
    except (KeyError, AttributeError):
        return function(model, name)


def _is_large(model: Model) -> bool:
    """Whether a matrix of the model's coordinates is too large for straight-line code."""
    try:
        return model.nv > UNROLLED_BODIES
    except AttributeError:
        raise no_model("mass_matrix", model) from None


def _frame_name(model: Model, name: str) -> str:
    """The name of a frame or body that exists."""
    try:
        return model.frame(name).name
    except AttributeError:
        raise no_model("a function of a frame", model) from None


def _force_options(external_forces: ArrayLike | None, frame: str) -> dict[str, Any]:
    """The frame of external forces is a wrong name even where there are none."""
    if frame not in FORCE_FRAMES:
        raise UnknownNameError.of("external_frame", frame, FORCE_FRAMES)
    return {} if external_forces is None else {"external_frame": frame}


def _array(
    model: Model,
    name: str,
    values: tuple[Any, ...],
    arrays: dict[str, Any],
    method: str | None,
    options: dict[str, Any],
    out: Array | None,
    check: Check,
) -> Array:
    """The result of a library function, with those of the optional arrays that were given."""
    return cast("Array", _arrays(model, name, values, arrays, method, options, out, check))


def _arrays(
    model: Model,
    name: str,
    values: tuple[Any, ...],
    arrays: dict[str, Any],
    method: str | None,
    options: dict[str, Any],
    out: Array | None,
    check: Check,
) -> Any:
    """The results of a library function; one comes bare."""
    given = {key: value for key, value in arrays.items() if value is not None}
    compiled = function(model, name, method, arrays=tuple(given), options=tuple(options.items()))
    return compiled(*values, *given.values(), out=out, check=check)
