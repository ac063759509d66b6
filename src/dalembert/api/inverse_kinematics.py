"""Inverse kinematics: configurations that bring frames to their targets."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dalembert.api.calls import Array, ArrayLike
from dalembert.api.declared import difference, integrate
from dalembert.api.frame_targets import TargetPart, read_array, read_configuration, read_targets
from dalembert.api.reaching import Reaching, move_towards_posture, reach_local_minimum, reach_targets
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import no_model, source_digest
from dalembert.compiler.lowering import Recipe
from dalembert.errors import ArgumentError, ShapeError, positive_number, whole_number
from dalembert.model.joints import Free, Planar
from dalembert.model.model import Model

if TYPE_CHECKING:
    from dalembert.algorithms.inverse_kinematics import Bound

__all__ = ["InverseKinematics", "inverse_kinematics"]

RESTART_ROTATION = 1.5
"""Standard deviation [rad], about each axis, of the rotation of free bodies at every other restart."""

MAX_ITERATIONS: Final = 10**9
"""This many steps take hours for one sample; they are counted in 64-bit integers."""


class InverseKinematics(NamedTuple):
    """The result of `inverse_kinematics`.

    `q (…, nq)`; `residual (…)`, the largest position [m] or angle [rad] error of a frame or loop; `converged
    (…)`, whether the residual is within the tolerance; `iterations (…)`, summed over all attempts.

    >>> model = da.models.two_link_arm()
    >>> found = da.kinematics.inverse_kinematics(model, {"tip": [1.0, 0.0, 1.0]}, [0.1, 0.3])
    >>> print(found.converged, found.residual < 1e-8)
    True True
    """

    q: Array
    residual: Array
    converged: Array
    iterations: Array


def inverse_kinematics(
    model: Model,
    targets: Mapping[str, Any],
    q0: ArrayLike,
    *,
    weights: Mapping[str, Any] | None = None,
    limits: bool = True,
    posture: ArrayLike | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 60,
    restarts: int = 40,
    damping: float = 1e-2,
    time: ArrayLike | None = None,
) -> InverseKinematics:
    """Find q with X_f(q) = X_f* for frames f: minimise sum w² |log(R R*^T)|² + w² |p - p*|².

    `targets`: by name of a frame or body, each `(…, 3)`, a position in the world [m]; `(…, 4, 4)`, a
    homogeneous matrix; a `Transform`; or a pair (rotation `(…, 3, 3)`, translation `(…, 3)`) such as a
    `Pose`, with None for a part that is not prescribed. `q0 (…, nq)`: the initial guess. Leading batch shapes
    broadcast.

    Damped Gauss-Newton on the configuration manifold, dq = -J^T (J J^T + mu)^-1 r with mu = damping |r|²,
    decreased after successful steps and increased after others. `limits`: keep positions within the limits of
    the joints. Loops and other constraints of the model are kept as hard equations. A sample that converges
    to a point away from its targets restarts, up to `restarts` times, each of at most `max_iterations` steps;
    the restarts are deterministic. `weights`: by frame, a number or a pair (position, orientation); zero
    leaves a part free. `posture (…, nq)`: use the remaining freedom to approach this configuration. An
    unreachable target is not an error: see `converged`. The computation is in float64. Featherstone 2008
    section 4.1 (Jacobians); Sugihara (2011), "Solvability-unconcerned inverse kinematics".

    >>> model = da.models.humanoid()
    >>> poses = da.forward_kinematics(model, model.random_state(1)[0])
    >>> targets = {name: poses[name] for name in ("left_palm", "right_palm", "left_sole", "right_sole")}
    >>> found = da.kinematics.inverse_kinematics(model, targets, model.neutral())
    >>> hand = da.forward_kinematics(model, found.q)["left_palm"].translation
    >>> print(found.converged, np.abs(hand - poses["left_palm"].translation).max() < 1e-8)
    True True
    """
    if not isinstance(model, Model):
        raise no_model("inverse_kinematics", model)
    _check_options(limits, tolerance, max_iterations, restarts, damping)
    parts = read_targets(model, targets, weights)
    start = read_configuration(model, "q0", q0)
    wanted = None if posture is None else read_configuration(model, "posture", posture)
    times = None if time is None else read_array("time", time, ())
    batch = _batch(start, parts, wanted, times)
    count = math.prod(batch)

    def rows_of(array: Array, own: int) -> Array:
        shape = array.shape[array.ndim - own :]
        return np.ascontiguousarray(np.broadcast_to(array, (*batch, *shape)).reshape(count, *shape))

    rotations = [rows_of(part.rotation, 2) for part in parts if part.rotation is not None]
    translations = [rows_of(part.translation, 1) for part in parts if part.translation is not None]
    data = [np.stack(arrays, axis=1) for arrays in (rotations, translations) if arrays]
    turned = [part.weights[1] for part in parts if part.rotation is not None]
    moved = [part.weights[0] for part in parts if part.translation is not None]
    data.append(rows_of(np.array([*turned, *moved]), 1))
    further = [] if wanted is None else [rows_of(wanted, 1)]
    clocks = [] if times is None else [rows_of(times, 0)]
    kernel, bounds = _kernel(model, parts, bool(limits), bool(further), bool(clocks))

    def step(rows: Array, q: Array, mu: Array, draw: Array) -> Any:
        if rows.size == 1 < count:  # a batch of two costs less than compiling a kernel for one row
            return tuple(x[:1] for x in step(*(np.repeat(x, 2, axis=0) for x in (rows, q, mu, draw))))
        drawn = [further[0][rows], draw] if further else []
        # A diverging step may overflow; it is then rejected and is no reason to raise an error.
        return kernel(q, *(x[rows] for x in data), mu, *drawn, *(x[rows] for x in clocks), check="off")

    problem = Reaching(
        step,
        lambda attempt, first, last: _within(_restart(model, attempt, first, last), bounds),
        tolerance=float(tolerance),
        max_iterations=int(max_iterations),
        restarts=int(restarts),
        damping=float(damping),
    )
    first = _within(rows_of(start, 1), bounds)
    found = reach_local_minimum(reach_targets(first, problem), problem)
    if further:
        found = move_towards_posture(found, problem)
    residual = found.error.reshape(batch)
    return InverseKinematics(
        found.q.reshape(*batch, model.nq),
        residual[()],
        (residual <= tolerance)[()],
        found.iterations.reshape(batch)[()],
    )


def _kernel(
    model: Model, parts: Sequence[TargetPart], limits: bool, posture: bool, timed: bool
) -> tuple[CompiledFunction, list[Bound]]:
    """Return the compiled damped step for these frames and prescribed parts, and the position bounds."""
    from dalembert.algorithms.inverse_kinematics import FrameTarget, damped_step, position_bounds

    targets = tuple(
        FrameTarget(part.frame, part.rotation is not None, part.translation is not None) for part in parts
    )
    bounds = position_bounds(model) if limits else []
    key = ("inverse_kinematics", targets, limits, posture, timed)
    kernel: CompiledFunction | None = model.functions.get(key)
    if kernel is None:
        turned = sum(target.orientation for target in targets)
        moved = sum(target.position for target in targets)

        def step(tree: Model, *values: Any) -> Any:
            given = {"rotations": [], "translations": [], "time": None, **dict(zip(shapes, values))}
            return tuple(damped_step(tree, **given, targets=targets, bounds=bounds))

        shapes: dict[str, tuple[int, ...]] = {
            "q": (model.nq,),
            **({"rotations": (turned, 3, 3)} if turned else {}),
            **({"translations": (moved, 3)} if moved else {}),
            "weights": (turned + moved,),
            "damping": (),
            **({"posture": (model.nq,), "draw": ()} if posture else {}),
            **({"time": ()} if timed else {}),
        }
        identity = hashlib.sha256(f"{key} {model.digest} {source_digest()}".encode()).hexdigest()
        arguments = tuple(ArrayArgument(name, shape) for name, shape in shapes.items())
        kernel = CompiledFunction(Recipe("inverse_kinematics", step, model, arguments, identity=identity))
        model.functions[key] = kernel
    return kernel, bounds


def _restart(model: Model, attempt: int, first: Array, last: Array) -> Array:
    """Return the initial guess of a further attempt: a random posture, the same for all rows.

    Free bodies stay where the last attempt took them, and are rotated at every other attempt.
    """
    rng = np.random.default_rng(attempt)
    posture = model.random_state(rng)[0]
    base = first.copy()
    turns = np.zeros(model.nv)
    roaming = np.zeros(model.nv, dtype=bool)
    for body in model.bodies:
        if isinstance(body.joint, Free | Planar):
            base[:, body.q_slice] = last[:, body.q_slice]
            roaming[body.v_slice] = True
            axes = slice(body.v_slice.start, body.v_slice.start + (3 if isinstance(body.joint, Free) else 1))
            turns[axes] = RESTART_ROTATION * (attempt % 2) * rng.standard_normal(axes.stop - axes.start)
    return integrate(model, base, np.where(roaming, turns, difference(model, base, posture)))


def _within(q: Array, bounds: Sequence[Bound]) -> Array:
    q = q.copy()
    for bound in bounds:
        q[:, bound.position] = np.clip(q[:, bound.position], bound.lower, bound.upper)
    return q


def _batch(
    q0: Array, parts: Sequence[TargetPart], posture: Array | None, time: Array | None
) -> tuple[int, ...]:
    """Return the common batch shape."""
    shapes = {"q0": q0.shape[:-1]}
    for part in parts:
        if part.rotation is not None:
            shapes[f'rotation of "{part.frame}"'] = part.rotation.shape[:-2]
        if part.translation is not None:
            shapes[f'position of "{part.frame}"'] = part.translation.shape[:-1]
    if posture is not None:
        shapes["posture"] = posture.shape[:-1]
    if time is not None:
        shapes["time"] = time.shape
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ShapeError(f"inverse_kinematics: the batch shapes do not broadcast: {listed}") from None


def _check_options(
    limits: object, tolerance: object, max_iterations: object, restarts: object, damping: object
) -> None:
    if not isinstance(limits, bool | np.bool_):
        raise ArgumentError(
            f"inverse_kinematics: limits is {limits!r}; True keeps those of the joints, False does not; "
            "others go into the model with model.with_values"
        )
    for name, number in (("tolerance", tolerance), ("damping", damping)):
        positive_number(f"inverse_kinematics: {name}", number)
    whole_number("inverse_kinematics: max_iterations", max_iterations, 1, MAX_ITERATIONS)
    whole_number("inverse_kinematics: restarts", restarts, 0, MAX_ITERATIONS)
