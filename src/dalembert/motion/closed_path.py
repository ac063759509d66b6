"""Splines whose loops are closed at every time, not only at some points.

A spline z(t) in the space of all coordinates does not keep loops closed. So it is shifted along directions
N(t), chosen once, until the loops are closed:

    q(t) = z(t) + delta(t),    delta = N mu,    phi(q) = 0                                           (1)

mu follows by Newton's method at each time, and its rates from the velocity and acceleration constraints,

    K v = 0,    K a = k,    delta' = N mu' + N' mu,    delta'' = N mu'' + 2 N' mu' + N'' mu          (2)

with one matrix, A = K dv/d(delta') N, in all three. v and a are the exact rates of q, and q is a smooth
function of the control values of z. Its gradient is taken through (1) and (2) in reverse: with lambda for the
constraints and G = (dE/d delta, dE/d delta', dE/d delta'')

    A^T lambda_2 = -N^T G_2,   A^T lambda_1 = -(N^T G_1 + 2 N'^T G_2),
    A^T lambda_0 = -(N^T G_0 + N'^T G_1 + N''^T G_2)                                                 (3)

where G includes the lambda found before. The columns of N are a spline through K^T of the initial motion,
along which the loops close by the shortest way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.constraints import ConstraintEquations, closing_equations, constraint_equations
from dalembert.algorithms.dense import dot
from dalembert.api.kinematics import forward_kinematics
from dalembert.compiler.compiled import compile
from dalembert.errors import ArgumentError, DtypeError, StateError
from dalembert.model.body import Loop
from dalembert.model.joints import Fixed, Joint
from dalembert.model.model import Model
from dalembert.model.values import rebuilt
from dalembert.motion.configuration_spline import ORDER, ConfigurationSpline, Controls, SplinePoints
from dalembert.motion.differentiation import Array
from dalembert.scalar import Scalar
from dalembert.spatial import Mat3, Transform, Vec3

CONTACT: Final = "contact of "
"""Prefix that makes a frame's name the name of the loop joint that holds it."""

CLOSURE_TOLERANCE: Final = 1e-9
"""Largest loop error [m or rad] and loop velocity [1/s], relative to 1 + |v|, at the ends."""

ACCELERATION_TOLERANCE: Final = 1e-6
"""Largest loop acceleration [1/s^2] at the ends; accelerations often come from finite differences."""

LOOP_TOLERANCE: Final = 1e-12
"""Loop error [m or rad] at which Newton's method ends."""

MAX_NEWTON_STEPS: Final = 25
"""Largest number of steps of Newton's method; two or three are usual."""

LONGEST_STEP: Final = 0.5
"""Largest change of a coordinate in one step [rad, m]."""

INDEPENDENCE_TOLERANCE: Final = 1e-5
"""Least distance of an independent row of K from the span of the others, relative to its length."""

INITIAL_FITS: Final = 6
"""Number of times the initial spline is fitted to closed loops before the optimisation."""


class Contacts(NamedTuple):
    """Frames that joints tie to the world: names, joints, places (n, 12) (origin, rotation by rows)."""

    names: tuple[str, ...]
    joints: tuple[Joint, ...]
    places: Array


class Closure(NamedTuple):
    """The shift (…, m, 3, nv) at m times, A^-1 (…, m, r, r) of (2), and the loop error (…, m) [rad or m]."""

    shift: Array
    inverse: Array
    gap: Array


def closed_model(model: Model, contacts: Contacts, places: Sequence[Any]) -> Model:
    """Return the model with a loop joint to the world for each contact at its place; places may be traced."""
    loops = list(model.loops)
    for name, joint, place in zip(contacts.names, contacts.joints, places, strict=True):
        frame = model.frame(name)
        R = Mat3.of([list(place[3 + 3 * i : 6 + 3 * i]) for i in range(3)])
        at = Transform(R, Vec3(*place[:3]))
        loops.append(Loop(CONTACT + name, -1, frame.body, joint, at, frame.placement))
    return rebuilt(model, loops=loops)


def acceleration_errors(equations: ConstraintEquations, a: Sequence[Any]) -> list[Scalar]:
    """Return K a - k."""
    return [dot(row, a) - k for row, k in zip(equations.K, equations.k, strict=True)]


def contacts_of(model: Model, given: Any, start: Array) -> Contacts:
    """Return the contacts: frames that joints tie to their places at the start."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DtypeError('contacts is a sequence of names of frames, ["left_sole"], or joints by name')
    joints = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names := list(given), Fixed())
    if len(joints) < len(given if isinstance(given, Mapping) else names):
        raise ArgumentError(f"contacts: a frame is named twice in {names}")
    for name, joint in joints.items():
        if model.frame(name).body < 0:
            raise ArgumentError(f'contacts: "{name}" is a frame of the world, which does not move')
        if not isinstance(joint, Joint) or joint.time_dependent:
            raise ArgumentError(f'contacts: "{name}" is held by {joint!r}; give a joint, such as da.Fixed()')
    poses = forward_kinematics(model, start)
    places = [np.append(poses[name].translation, poses[name].rotation.ravel()) for name in joints]
    return Contacts(tuple(joints), tuple(joints.values()), np.array(places).reshape(-1, 12))


def require_closed(model: Model, contacts: Contacts, state: tuple[Array, ...], name: str) -> None:
    """Raise an error if loops are open at an end, or open with its velocities or accelerations."""
    closed = closed_model(model, contacts, contacts.places.tolist())
    q, v, a = ([float(x) for x in part] for part in (*state, *[np.zeros(model.nv)] * (3 - len(state))))
    equations = constraint_equations(closed, q, v)
    residual = np.abs(closing_equations(closed, q).residual)
    rate = np.abs(equations.velocity_error)
    second = np.abs(acceleration_errors(equations, a))
    checks = [
        ("is open by", "(m or rad)", residual, CLOSURE_TOLERANCE),
        ("opens at", "(m/s or rad/s)", rate, CLOSURE_TOLERANCE),
    ]
    if len(state) == 3:
        checks.append(("opens with", "(m/s^2 or rad/s^2)", second, ACCELERATION_TOLERANCE))
    for what, unit, errors, allowed in checks:
        if not len(errors) or errors.max() <= allowed * (1.0 + np.abs(v).max(initial=0.0)):
            continue
        loop = equations.names[int(np.argmax(errors))]
        if loop.startswith(CONTACT):
            raise StateError(
                f'transition: the contact of "{loop.removeprefix(CONTACT)}", which stays where it is at the '
                f"start, {what} {errors.max():.3g} {unit} at {name}; both ends must have it in one place and "
                "at rest there, see da.kinematics.inverse_kinematics, or let go of it"
            )
        raise StateError(
            f'transition: loop "{loop}" {what} {errors.max():.3g} {unit} at {name}; '
            "q, v = da.constraints.close_loops(model, q, v) closes it"
        )


@final
class ClosedPath:
    """The closed motions of a model on a spline.

    `controls`: an initial motion, fitted to closed loops as well as its spline allows; `free (n, nv)`: the
    control values that may vary; `held (nv,)`: coordinates that no shift may move.
    """

    def __init__(
        self,
        spline: ConfigurationSpline,
        contacts: Contacts,
        controls: Controls,
        free: npt.NDArray[np.bool_],
        held: npt.NDArray[np.bool_],
    ) -> None:
        self.spline, self.contacts = spline, contacts
        self._moving = np.where(held, 0.0, 1.0)
        self.key = (contacts.names, contacts.joints)
        self.inputs = spline.inputs(shift=True) | {"places": (len(contacts.names), 12)}
        """Shapes of the inputs of kernels at one time."""
        self._closing, self._rates = kept_kernels(
            spline.model, ("closed path", self.key), lambda: _kernels(self)
        )
        points, _ = spline.knots.gauss_points(4)
        weights = points.matrix(0, len(controls.values))
        values = controls.values.copy()
        for _ in range(INITIAL_FITS):
            shift, D = self._nearest(Controls(values, controls.anchors), points)
            for j in np.flatnonzero(~held):
                own = free[:, j]
                values[own, j] += np.linalg.lstsq(weights[:, own], shift[:, j], rcond=None)[0]
        self.controls = Controls(values, controls.anchors)
        shift, D = self._nearest(self.controls, points)
        self.count = D.shape[1]
        self.rows = _independent_rows(D)
        N = np.swapaxes(D[:, self.rows], 1, 2)
        fitted = np.linalg.lstsq(weights, N.reshape(len(N), -1), rcond=None)[0]
        self._N = fitted.reshape(-1, *N.shape[1:])

    def arguments(self, controls: Controls, points: SplinePoints, shift: Array | None = None) -> list[Array]:
        """Return the arguments of the kernels, in the order of `inputs`; without a shift it is zero."""
        if shift is None:
            shift = np.zeros((*controls.values.shape[:-2], len(points.time), 3, self.spline.model.nv))
        values, *others = controls.arguments(points)
        return [np.concatenate([values, shift], axis=-2), *others, self.contacts.places]

    def directions(self, points: SplinePoints) -> Array:
        """Return N, N' and N'' (m, 3, nv, r) at the points."""
        found: Array = np.einsum("mok,mkvr->movr", points.weights, self._N[points.window], optimize=True)
        return found

    def close(self, controls: Controls, points: SplinePoints, directions: Array) -> Closure:
        """Solve (1) and (2) at the points with the directions there, for one motion or a batch (…, n, nv)."""
        arguments = self.arguments(controls, points)
        shift = arguments[0][..., ORDER:, :]
        N, N_rate, N_second = (directions[:, order] for order in range(3))
        rows = self.rows
        mu = np.zeros((*shift.shape[:-2], len(rows)))
        for _ in range(MAX_NEWTON_STEPS):
            error, D = self._closing(*arguments, check="off")
            A = D[..., rows, :] @ N
            if not np.abs(error[..., rows]).max(initial=0.0) > LOOP_TOLERANCE:
                break
            step = _times(np.linalg.inv(A), error[..., rows])
            mu -= step * _step_fraction(_times(N, step))
            shift[..., 0, :] = _times(N, mu)
        inverse = np.linalg.inv(A)
        shift[..., 1, :] = _times(N_rate, mu)
        rate = -_times(inverse, self._rates(*arguments, check="off")[0][..., rows])
        shift[..., 1, :] += _times(N, rate)
        shift[..., 2, :] = _times(N_second, mu) + 2.0 * _times(N_rate, rate)
        shift[..., 2, :] -= _times(N, _times(inverse, self._rates(*arguments, check="off")[1][..., rows]))
        return Closure(shift.copy(), inverse, np.abs(error).max(axis=-1, initial=0.0))

    def _nearest(self, controls: Controls, points: SplinePoints) -> tuple[Array, Array]:
        """Return the shift (m, nv) that closes the loops by shortest steps, and D = K dv/d(delta') there."""
        arguments = self.arguments(controls, points)
        held = arguments[0][:, ORDER:]
        for _ in range(2 * MAX_NEWTON_STEPS):
            error, D = self._closing(*arguments, check="off")
            D = D * self._moving
            if not np.abs(error).max(initial=0.0) > 1e-10:
                break
            step = _times(np.linalg.pinv(D, rcond=1e-7), error)
            held[:, 0] -= step * _step_fraction(step)
        gap = np.abs(error).max(axis=1, initial=0.0)
        worst = int(np.argmax(gap))
        if not gap[worst] <= 1e-6:
            raise StateError(
                f"transition: loops cannot be closed all the way: at {points.time[worst]:.3g} s they stay "
                f"open by {gap[worst]:.3g} (rad or m); bring the ends nearer together, or go by way of a "
                "state between them"
            )
        return held[:, 0].copy(), D


def kept_kernels(model: Model, key: object, make: Callable[[], Any]) -> Any:
    """Return the kernels that the model keeps under a key; compile them on first use."""
    if key not in model.functions:
        model.functions[key] = make()
    return model.functions[key]


def _kernels(path: ClosedPath) -> list[Any]:
    """Compile the loop errors with their derivatives by the shift, and the errors of their two rates."""
    spline, contacts = path.spline, path.contacts

    def closing(model: Model, values: Any, anchors: Any, weights: Any, places: Any) -> Any:
        still = [[0.0] * model.nv] * 2
        q, _, _ = spline.motion([*values[: ORDER + 1], *still], anchors, weights)
        found = closing_equations(closed_model(model, contacts, places), q)
        return found.residual, spline.by_shift(values, anchors, weights, found.K)

    def rates(model: Model, values: Any, anchors: Any, weights: Any, places: Any) -> Any:
        q, v, a = spline.motion(values, anchors, weights)
        found = constraint_equations(closed_model(model, contacts, places), q, v)
        return found.velocity_error, acceleration_errors(found, a)

    return [compile(kernel, spline.model, inputs=path.inputs) for kernel in (closing, rates)]


def _independent_rows(D: Array) -> npt.NDArray[np.intp]:
    """Return the largest set of rows of D (m, n, nv) that are linearly independent at each of the m times."""
    rest = D.copy()
    lengths = np.linalg.norm(D, axis=2).max(axis=0, initial=0.0)
    scale = np.where(lengths > 0.0, lengths, 1.0)
    rows: list[int] = []
    for _ in range(min(D.shape[1:])):
        left = np.linalg.norm(rest, axis=2) / scale
        best = int(np.argmax(left.min(axis=0)))
        if left[:, best].min() < INDEPENDENCE_TOLERANCE:
            break
        rows.append(best)
        way = rest[:, best] / np.linalg.norm(rest[:, best], axis=1, keepdims=True)
        rest -= _times(rest, way)[:, :, None] * way[:, None, :]
    left = np.linalg.norm(rest, axis=2) / scale
    if left.max(initial=0.0) > INDEPENDENCE_TOLERANCE:
        raise StateError(
            "transition: loops pass a place where they bind fewer freedoms than elsewhere, a dead centre or "
            "a stretched leg with a fixed root; go around it, or let the root move"
        )
    return np.array(sorted(rows), np.intp)


def _step_fraction(step: Array) -> Array:
    """Return the fraction (…, 1) of a step of coordinates that respects the largest step."""
    longest = np.abs(step).max(axis=-1, keepdims=True, initial=0.0)
    part: Array = np.minimum(1.0, LONGEST_STEP / np.maximum(longest, 1e-300))
    return part


def _times(A: Array, x: Array) -> Array:
    product: Array = (A @ x[..., None])[..., 0]
    return product
