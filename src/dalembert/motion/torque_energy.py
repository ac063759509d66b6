"""The torque energy of a motion and its gradient by the control values of its spline.

With the forces tau = ID(q, v, a) along a motion that control values theta define,

    P = integral of sum_i c_i tau_i^2 dt                                                             (1)
    dP/dtheta = 2 integral of sum_i c_i tau_i (dtau_i/dq dq/dtheta + dtau_i/dv dv/dtheta
                                                                   + dtau_i/da da/dtheta) dt

(Guenter and Rose, whose print leaves out tau_i and the factors by theta). The integrals are sums over Gauss
points. What stands under the first one, spline, inverse dynamics and squares, is traced as one function of
the six control values that count at a point; its derivative is a second one, by reverse accumulation. Both
are computed for all points as a batch. The prices c_i weigh joints.

A price on accelerations, c_i (r a_i)^2, as if each joint also had to turn a flywheel of the inertia r, may
be added to (1): moving a hand costs next to nothing in (1), whose least value is then hard to find and no
pleasure to look at.

Where frames are in contact with the world, the world's forces on them, lambda, are those that make (1) least:

    A lambda = J C tau,    A = J C J^T                                                               (2)

with J the Jacobian of the frames. At the least value a change of lambda changes nothing, so the gradient of
(1) counts them as given. Keeping frames in place is part of the price: stiffness times the integral of
(distance^2 + angle^2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.inverse_dynamics import inverse_dynamics as forces
from dalembert.algorithms.kinematics import forward_kinematics as poses
from dalembert.api.dynamics import inverse_dynamics, mass_matrix
from dalembert.api.kinematics import forward_kinematics, jacobian
from dalembert.compiled import compile
from dalembert.model.model import Model
from dalembert.motion.bspline import ORDER, gauss_points
from dalembert.motion.configuration_spline import ConfigurationSpline, Controls
from dalembert.scalar import Scalar
from dalembert.spatial import Transform

__all__ = ["Contacts", "TorqueEnergy", "contact_forces", "places_of"]

Array = npt.NDArray[np.float64]

POINTS: Final = 4
"""Gauss points a span: exact where tau is linear in a, since squares of x'' are of the sixth degree."""

RIDGE: Final = 1e-10
"""Of the diagonal of (2), for contacts that share a load in many ways."""


class Contacts(NamedTuple):
    """Frames that stay where they are: names, places (n, 12) (origin, rotation by rows), stiffness."""

    names: tuple[str, ...]
    places: Array
    stiffness: float


@final
class TorqueEnergy:
    """(1) of the motions of a model on a spline with that many knots over a duration [s]."""

    def __init__(
        self,
        spline: ConfigurationSpline,
        knots: int,
        duration: float,
        *,
        prices: Array,
        smoothness: float = 0.0,
        contacts: Contacts | None = None,
    ) -> None:
        self.model = spline.model
        self.points, self._shares = gauss_points(knots, duration, POINTS)
        self._window = self.points.first[:, None] + np.arange(ORDER)
        self._prices = np.asarray(prices, float)
        self._smoothness = smoothness
        self._contacts = contacts
        names = contacts.names if contacts else ()
        kernels = self.model.functions.get(("torque energy", names))
        if kernels is None:
            kernels = self.model.functions[("torque energy", names)] = _kernels(spline, names)
        self._motion, self._density, self._gradient = kernels

    def __call__(self, controls: Controls) -> float:
        """P."""
        return float(self._shares @ self._density(*self._arguments(controls), check="off"))

    def with_gradient(self, controls: Controls) -> tuple[float, Array]:
        """P and dP/dtheta, of the shape of the control values."""
        arguments = self._arguments(controls)
        energy = float(self._shares @ self._density(*arguments, check="off"))
        by_point = self._gradient(*arguments, check="off") * self._shares[:, None, None]
        by_span = by_point.reshape(-1, POINTS, *by_point.shape[1:]).sum(axis=1)
        gradient = np.zeros_like(controls.values)
        for span, share in enumerate(by_span):
            gradient[span : span + ORDER] += share
        return energy, gradient

    def curvature(self, controls: Controls) -> Array:
        """About the second derivative of P by each control value, as if accelerations alone mattered."""
        q, _, _ = self.motion(controls)
        M = mass_matrix(self.model, q, check="off")
        by_acceleration = np.einsum("i,tij->tj", self._prices, M * M) + self._prices * self._smoothness**2
        by_position = np.zeros_like(by_acceleration)
        if self._contacts is not None:
            for name in self._contacts.names:
                J = jacobian(self.model, q, name, check="off")
                by_position += self._contacts.stiffness * np.sum(J * J, axis=1)
        result = np.zeros_like(controls.values)
        squares = 2.0 * self._shares[:, None, None] * self.points.weights**2
        shares = squares[:, 2, :, None] * by_acceleration[:, None, :]
        shares += squares[:, 0, :, None] * by_position[:, None, :]
        np.add.at(result, self._window, shares)
        return result

    def motion(self, controls: Controls) -> tuple[Array, Array, Array]:
        """q, v and a at the points of the integral."""
        q, v, a = self._motion(
            controls.values[self._window], controls.anchors[self._window], self.points.weights, check="off"
        )
        return q, v, a

    def contact_forces(self, q: Array, v: Array, a: Array) -> Array:
        """lambda (m, contacts, 6) of (2): moment about the world's origin and force on each frame."""
        names = self._contacts.names if self._contacts else ()
        return contact_forces(self.model, names, self._prices, q, v, a)

    def _arguments(self, controls: Controls) -> list[Any]:
        arguments = [
            controls.values[self._window],
            controls.anchors[self._window],
            self.points.weights,
            self._prices,
            self._smoothness,
        ]
        if self._contacts is not None:
            arguments += [
                self.contact_forces(*self.motion(controls)),
                self._contacts.places,
                self._contacts.stiffness,
            ]
        return arguments


def places_of(model: Model, q: Array, names: Sequence[str]) -> Array:
    """Where frames are, (…, n, 12): origin and rotation row by row."""
    found = forward_kinematics(model, q)
    frames = [found[name] for name in names]
    rows = [
        np.concatenate([f.translation, f.rotation.reshape(*f.translation.shape[:-1], 9)], -1) for f in frames
    ]
    return np.stack(rows, axis=-2)


def contact_forces(model: Model, names: Sequence[str], prices: Array, q: Array, v: Array, a: Array) -> Array:
    """lambda (m, contacts, 6) of (2)."""
    tau = inverse_dynamics(model, q, v, a, check="off")
    J = np.concatenate([jacobian(model, q, name, frame="world", check="off") for name in names], axis=-2)
    weighted = J * prices
    A = weighted @ np.swapaxes(J, -1, -2)
    diagonal = np.einsum("...ii->...i", A)
    diagonal += RIDGE * diagonal.max(axis=-1, keepdims=True)
    found = np.linalg.solve(A, np.einsum("...ij,...j->...i", weighted, tau)[..., None])[..., 0]
    result: Array = found.reshape(*found.shape[:-1], len(names), 6)
    return result


def _kernels(spline: ConfigurationSpline, contacts: tuple[str, ...]) -> tuple[Any, Any, Any]:
    """The motion, what stands under the integral (1), and its gradient by the control values."""
    model = spline.model
    inputs: dict[str, int | tuple[int, ...]] = {
        "values": (ORDER, model.nv),
        "anchors": (ORDER, spline.turns, 4),
        "weights": (3, ORDER),
    }

    def spline_motion(model: Model, values: Any, anchors: Any, weights: Any) -> Any:
        return spline.motion(values, anchors, weights)

    motion = compile(spline_motion, model, inputs=inputs)
    inputs |= {"prices": (model.nv,), "smoothness": ()}
    density = _density(spline)
    if contacts:
        inputs |= {"wrenches": (len(contacts), 6), "places": (len(contacts), 12), "stiffness": ()}
        density = _density_in_contact(spline, contacts)
    compiled = compile(density, model, inputs=inputs)
    return motion, compiled, compiled.jacobian("values")


def _density(spline: ConfigurationSpline) -> Callable[..., Scalar]:
    def torque_energy(
        model: Model, values: Any, anchors: Any, weights: Any, prices: Any, smoothness: Any
    ) -> Scalar:
        q, v, a = spline.motion(values, anchors, weights)
        return _price(forces(aligned(model), q, v, a), a, prices, smoothness)

    return torque_energy


def _density_in_contact(spline: ConfigurationSpline, contacts: tuple[str, ...]) -> Callable[..., Scalar]:
    def torque_energy(
        model: Model,
        values: Any,
        anchors: Any,
        weights: Any,
        prices: Any,
        smoothness: Any,
        wrenches: Any,
        places: Any,
        stiffness: Any,
    ) -> Scalar:
        q, v, a = spline.motion(values, anchors, weights)
        external: list[list[Scalar]] = [[0.0] * 6 for _ in model.bodies]
        frames = [model.frame(name) for name in contacts]
        for frame, wrench in zip(frames, wrenches):
            external[frame.body] = [x + y for x, y in zip(external[frame.body], wrench)]
        tau = forces(aligned(model), q, v, a, external_forces=external, external_frame="world")
        total = _price(tau, a, prices, smoothness)
        found = poses(model, q)
        for frame, place in zip(frames, places):
            total = total + stiffness * _offset(found[frame.body] @ frame.placement.as_transform(), place)
        return total

    return torque_energy


def _price(
    tau: Sequence[Scalar], a: Sequence[Scalar], prices: Sequence[Scalar], smoothness: Scalar
) -> Scalar:
    total: Scalar = 0.0
    square = smoothness * smoothness
    for price, force, rate in zip(prices, tau, a, strict=True):
        total = total + price * (force * force + square * (rate * rate))
    return total


def _offset(X: Transform, place: Sequence[Scalar]) -> Scalar:
    """Squared distance [m^2] and, for small angles, squared angle: |R - R_0|^2 / 2."""
    distance: Scalar = 0.0
    for x, y in zip(X.p, place[:3], strict=True):
        distance = distance + (x - y) * (x - y)
    turn: Scalar = 0.0
    for x, y in zip([x for row in X.R.to_list() for x in row], place[3:], strict=True):
        turn = turn + (x - y) * (x - y)
    return distance + 0.5 * turn
