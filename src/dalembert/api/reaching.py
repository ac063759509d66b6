"""Inverse kinematics: configurations that bring frames to their targets.

For a configuration the kernel returns the error and the next step. A step that increases the error is
rejected and repeated with more damping. A sample that converges away from its targets, in a local minimum or
at limits, restarts elsewhere: the n-th restart is the same for every sample, so that results do not depend on
the rest of the batch.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np

from dalembert.api.calls import Array, ArrayLike
from dalembert.api.declared import difference, integrate
from dalembert.api.frame_targets import (
    TargetPart,
    broadcast_samples,
    read_array,
    read_configuration,
    read_targets,
)
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import no_model, source_digest
from dalembert.compiler.lowering import Recipe
from dalembert.errors import ArgumentError, positive_number, whole_number
from dalembert.model.joints import Free, Planar
from dalembert.model.model import Model

if TYPE_CHECKING:
    from dalembert.algorithms.inverse_kinematics import Bound

RESTART_ROTATION = 1.5
"""Standard deviation [rad], about each axis, of the rotation of free bodies at every other restart."""

MAX_ITERATIONS: Final = 10**9
"""This many steps take hours for one sample; they are counted in 64-bit integers."""

DAMPING_DECREASE = 0.3
DAMPING_INCREASE = 8.0
MIN_DAMPING = 1e-9
MIN_RETRY_DAMPING = 1e-3
"""Factors of the damping after success and failure, its least value, and its least value after a failure."""

MAX_DAMPING = 1e4
"""Damping times error (at most one) above which an attempt ends, since no step succeeds."""

MIN_RELATIVE_GRADIENT = 1e-4
"""Squared gradient, relative to the squared error, below which an attempt ends in a local minimum."""

INITIAL_POSTURE_FRACTION = 0.5
"""Fraction of the way to the posture that the first steps take."""

POSTURE_HALVING_STEPS = 20
"""Steps after which that fraction is halved; larger steps oscillate about a posture on a curved path."""

MAX_POSTURE_MERIT = 1e-2
"""Squared error up to which a step towards the posture may lead away from the targets."""

POSTURE_TOLERANCE = 1e-5
"""Distance of every coordinate [rad or m] from the best posture at which the search ends."""

FINAL_TARGET_STEPS = 15
"""Final steps of the search for a posture, towards the targets alone."""


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
    if not isinstance(limits, bool | np.bool_):
        raise ArgumentError(
            f"inverse_kinematics: limits is {limits!r}; True keeps those of the joints, False does not; "
            "others go into the model with model.with_values"
        )
    positive_number("inverse_kinematics: tolerance", tolerance)
    positive_number("inverse_kinematics: damping", damping)
    whole_number("inverse_kinematics: max_iterations", max_iterations, 1, MAX_ITERATIONS)
    whole_number("inverse_kinematics: restarts", restarts, 0, MAX_ITERATIONS)
    parts = read_targets(model, targets, weights)
    given = {"q0": (read_configuration(model, "q0", q0), 1)}
    for part in parts:
        given |= {f'{kind} of "{part.frame}"': pair for kind, pair in part.arrays.items()}
    if posture is not None:
        given["posture"] = read_configuration(model, "posture", posture), 1
    if time is not None:
        given["time"] = read_array("time", time, ()), 0
    batch, samples = broadcast_samples(given)
    count = len(samples["q0"])
    data: dict[str, Array] = {name: samples[name] for name in ("posture", "time") if name in samples}
    shares = []
    for kind, name, place in (("rotation", "rotations", 1), ("position", "translations", 0)):
        chosen = [part for part in parts if kind in part.arrays]
        shares += [part.weights[place] for part in chosen]
        if chosen:
            data[name] = np.stack([samples[f'{kind} of "{part.frame}"'] for part in chosen], axis=1)
    data["weights"] = np.tile(shares, (count, 1))
    kernel, bounds = _kernel(model, parts, bool(limits), data)
    names = tuple(kernel.inputs)

    def step(rows: Array, q: Array, mu: Array, draw: Array) -> Any:
        if rows.size == 1 < count:  # a batch of two costs less than compiling a kernel for one row
            return tuple(x[:1] for x in step(*(np.repeat(x, 2, axis=0) for x in (rows, q, mu, draw))))
        values = {name: array[rows] for name, array in data.items()}
        values |= {"q": q, "damping": mu, "draw": draw}
        # A diverging step may overflow; it is then rejected and is no reason to raise an error.
        return kernel(*(values[name] for name in names), check="off")

    problem = Reaching(
        step,
        lambda attempt, first, last: _within(_restart(model, attempt, first, last), bounds),
        tolerance=float(tolerance),
        max_iterations=int(max_iterations),
        restarts=int(restarts),
        damping=float(damping),
    )
    found = reach_local_minimum(reach_targets(_within(samples["q0"], bounds), problem), problem)
    if posture is not None:
        found = move_towards_posture(found, problem)
    residual = found.error.reshape(batch)
    return InverseKinematics(
        found.q.reshape(*batch, model.nq),
        residual[()],
        (residual <= tolerance)[()],
        found.iterations.reshape(batch)[()],
    )


def _kernel(
    model: Model, parts: Sequence[TargetPart], limits: bool, data: Mapping[str, Array]
) -> tuple[CompiledFunction, list[Bound]]:
    """Return the compiled damped step for these frames and prescribed parts, and the position bounds."""
    from dalembert.algorithms.inverse_kinematics import FrameTarget, damped_step, position_bounds

    targets = tuple(
        FrameTarget(part.frame, part.rotation is not None, part.translation is not None) for part in parts
    )
    bounds = position_bounds(model) if limits else []
    key = ("inverse_kinematics", targets, limits, "posture" in data, "time" in data)
    kernel: CompiledFunction | None = model.functions.get(key)
    if kernel is None:
        known: dict[str, tuple[int, ...]] = {name: array.shape[1:] for name, array in data.items()}
        known |= {"q": (model.nq,), "damping": (), **({"draw": ()} if "posture" in data else {})}
        order = ("q", "rotations", "translations", "weights", "damping", "posture", "draw", "time")
        arguments = tuple(ArrayArgument(name, known[name]) for name in order if name in known)

        def step(tree: Model, *values: Any) -> Any:
            given: dict[str, Any] = {"rotations": [], "translations": [], "time": None}
            given |= {item.name: value for item, value in zip(arguments, values, strict=True)}
            return tuple(damped_step(tree, **given, targets=targets, bounds=bounds))

        identity = hashlib.sha256(f"{key} {model.digest} {source_digest()}".encode()).hexdigest()
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


class Reached(NamedTuple):
    """Configurations (rows, nq), their merits and largest errors, and the number of steps."""

    q: Array
    merit: Array
    error: Array
    iterations: Array


@final
@dataclass(frozen=True, slots=True)
class Reaching:
    """A batch of problems: `step(rows, q, damping, draw)` returns next q, merit, error, slope and length.

    `restart(attempt, q0, q)` returns the initial guess of a further attempt.
    """

    step: Callable[[Array, Array, Array, Array], tuple[Array, Array, Array, Array, Array]]
    restart: Callable[[int, Array, Array], Array]
    tolerance: float
    max_iterations: int
    restarts: int
    damping: float
    flat: float = MIN_RELATIVE_GRADIENT
    draw: float = 0.0
    """Fraction of the way to the posture that a step takes."""


def move_towards_posture(found: Reached, problem: Reaching) -> Reached:
    """Move converged samples along their freedom towards the posture; one that would leave targets stays."""
    rows = np.flatnonzero(found.error <= problem.tolerance)
    steps = 2 * problem.max_iterations + FINAL_TARGET_STEPS
    changed = dataclasses.replace(problem, draw=INITIAL_POSTURE_FRACTION, max_iterations=steps)
    more = _continue(found, rows, problem, changed)
    return _merge(found, rows, more, more.error <= problem.tolerance)


def reach_local_minimum(found: Reached, problem: Reaching) -> Reached:
    """Continue the samples that did not converge from their best iterate to the local minimum."""
    rows = np.flatnonzero(found.error > problem.tolerance)
    more = _continue(found, rows, problem, dataclasses.replace(problem, flat=0.0))
    return _merge(found, rows, more, more.merit < found.merit[rows])


def _continue(found: Reached, rows: Array, problem: Reaching, changed: Reaching) -> Reached:
    def step(some: Array, *rest: Array) -> tuple[Array, Array, Array, Array, Array]:
        return problem.step(rows[some], *rest)

    return reach_targets(found.q[rows], dataclasses.replace(changed, step=step, restarts=0))


def _merge(found: Reached, rows: Array, more: Reached, good: Array) -> Reached:
    q, merit, error, iterations = (x.copy() for x in found)
    better = rows[good]
    q[better], merit[better], error[better] = more.q[good], more.merit[good], more.error[good]
    iterations[rows] += more.iterations
    return Reached(q, merit, error, iterations)


def reach_targets(q0: Array, problem: Reaching) -> Reached:
    """Bring the rows of q0 to their targets by damped steps and restarts, as far as possible."""
    n = len(q0)
    found, best, least = q0.copy(), np.full(n, np.nan), np.full(n, np.inf)
    q, tried, merit = q0.copy(), q0.copy(), np.full(n, np.inf)
    damping, draw = np.full(n, problem.damping), np.full(n, problem.draw)
    iterations, begun, attempt = (np.zeros(n, dtype=np.int64) for _ in range(3))
    rows = np.flatnonzero(np.isfinite(q0).all(axis=1))
    while rows.size:
        less = np.maximum(DAMPING_DECREASE * damping[rows], MIN_DAMPING)
        following, new_merit, error, slope, length = problem.step(rows, tried[rows], less, draw[rows])
        allowed = merit[rows]
        if problem.draw:
            allowed = np.where(np.isfinite(allowed), np.maximum(allowed, MAX_POSTURE_MERIT), allowed)
        good = new_merit < allowed
        better, worse = rows[good], rows[~good]
        q[better], merit[better], tried[better] = tried[better], new_merit[good], following[good]
        damping[better] = less[good]
        ceiling = problem.draw * 0.5 ** (iterations[better] / POSTURE_HALVING_STEPS)
        draw[better] = np.minimum(1.5 * draw[better], ceiling)
        arrived = good & (error <= problem.tolerance)
        kept = arrived | (good & (new_merit < least[rows]) & ~(best[rows] <= problem.tolerance))
        found[rows[kept]], best[rows[kept]], least[rows[kept]] = q[rows[kept]], error[kept], new_merit[kept]
        if worse.size:
            damping[worse] = np.maximum(DAMPING_INCREASE * damping[worse], MIN_RETRY_DAMPING)
            draw[worse] *= 0.25
            tried[worse] = problem.step(worse, q[worse], damping[worse], draw[worse])[0]
        iterations[rows] += 1
        if problem.draw:
            draw[rows[iterations[rows] >= problem.max_iterations - FINAL_TARGET_STEPS]] = 0.0
        late = iterations[rows] - begun[rows] >= problem.max_iterations
        done = best[rows] <= problem.tolerance
        if problem.draw:
            done &= late | (arrived & (length <= POSTURE_TOLERANCE * np.maximum(draw[rows], 1e-3)))
        flat = good & (slope < problem.flat * new_merit) & ~(best[rows] <= problem.tolerance)
        hopeless = damping[rows] * np.minimum(merit[rows], 1.0) > MAX_DAMPING
        lost = ~np.isfinite(merit[rows])  # NaN from the start
        stuck = rows[~done & (late | flat | hopeless | lost)]
        attempt[stuck] += 1
        again = stuck[(attempt[stuck] <= problem.restarts) & np.isfinite(merit[stuck])]
        attempt[stuck[~np.isfinite(merit[stuck])]] = problem.restarts + 1
        for k in np.unique(attempt[again]):
            those = again[attempt[again] == k]
            tried[those] = problem.restart(int(k), q0[those], q[those])
            merit[those], damping[those] = np.inf, problem.damping
            draw[those], begun[those] = problem.draw, iterations[those]
        rows = rows[~done & (attempt[rows] <= problem.restarts)]
    return Reached(found, least, best, iterations)
