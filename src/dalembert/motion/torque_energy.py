"""The torque energy of a motion and its gradient with respect to the control values of its spline.

With the forces tau = ID(q, v, a) along a motion that control values theta define,

    P = integral of sum_i c_i tau_i^2 dt                                                             (1)
    dP/dtheta = 2 integral of sum_i c_i tau_i (dtau_i/dq dq/dtheta + dtau_i/dv dv/dtheta
                                                                   + dtau_i/da da/dtheta) dt

(Guenter and Rose, whose print leaves out tau_i and the factors by theta). The integrals are sums over Gauss
points. The integrand of the first one, spline, inverse dynamics and squares, is traced as one function of the
six control values that contribute at a point; its derivative is a second function, by reverse accumulation.
Both are evaluated for all points as a batch. The costs c_i weight the joints.

A cost of accelerations, c_i (r a_i)^2, as of a flywheel of inertia r at each joint, may be added to (1):
moving a hand costs almost nothing in (1), whose minimum is then hard to find and looks unnatural.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.inverse_dynamics import inverse_dynamics as forces
from dalembert.compiler.compiled import compile
from dalembert.model.model import Model
from dalembert.motion.bspline import ORDER, gauss_points
from dalembert.motion.configuration_spline import ConfigurationSpline, Controls
from dalembert.scalar import Scalar

__all__ = ["GAUSS_POINTS_PER_SPAN", "TorqueEnergy", "assemble_gradient"]

Array = npt.NDArray[np.float64]

GAUSS_POINTS_PER_SPAN: Final = 4
"""Exact if tau is linear in a, since squares of x'' are of the sixth degree."""


@final
class TorqueEnergy:
    """The torque energy (1) of motions on a spline with `knots` knots over a duration [s].

    `prices (nv,)`: the weights c_i; `smoothness`: the inertia r of the flywheels [kg m^2, kg].
    """

    def __init__(
        self,
        spline: ConfigurationSpline,
        knots: int,
        duration: float,
        *,
        prices: Array,
        smoothness: float = 0.0,
    ) -> None:
        self.spline, self.model = spline, spline.model
        self.points, self._quadrature = gauss_points(knots, duration, GAUSS_POINTS_PER_SPAN)
        self._window = self.points.first[:, None] + np.arange(ORDER)
        self._prices = np.asarray(prices, float)
        self._smoothness = smoothness
        kernels = self.model.functions.get("torque energy")
        if kernels is None:
            kernels = self.model.functions["torque energy"] = _kernels(spline)
        self._motion, self._density, self._gradient = kernels

    def __call__(self, controls: Controls) -> float:
        """Return the torque energy P."""
        return float(self._quadrature @ self._density(*self._arguments(controls), check="off"))

    def torque_energy(self, controls: Controls) -> float:
        """Return P without the cost of accelerations."""
        values, anchors, weights, prices, _ = self._arguments(controls)
        return float(self._quadrature @ self._density(values, anchors, weights, prices, 0.0, check="off"))

    def with_gradient(self, controls: Controls) -> tuple[Array, Array]:
        """Return P and dP/dtheta, of the shape of the control values, for one motion or a batch (…, n,
        nv).
        """
        arguments = self._arguments(controls)
        energy = self._density(*arguments, check="off") @ self._quadrature
        return energy, assemble_gradient(controls, self._gradient(*arguments, check="off"), self._quadrature)

    def _arguments(self, controls: Controls) -> list[Any]:
        return [
            controls.values[..., self._window, :],
            controls.anchors[self._window],
            self.points.weights,
            self._prices,
            self._smoothness,
        ]


def assemble_gradient(controls: Controls, by_point: Array, shares: Array) -> Array:
    """Assemble dP/dtheta from gradients (…, m, 6, nv) at the points by their six control values."""
    spans = len(shares) // GAUSS_POINTS_PER_SPAN
    weighed = (by_point * shares[:, None, None]).reshape(
        *by_point.shape[:-3], spans, GAUSS_POINTS_PER_SPAN, ORDER, -1
    )
    by_span = weighed.sum(axis=-3)
    gradient = np.zeros_like(controls.values)
    for span in range(spans):
        gradient[..., span : span + ORDER, :] += by_span[..., span, :, :]
    return gradient


def _kernels(spline: ConfigurationSpline) -> tuple[Any, Any, Any]:
    """Compile the motion, the integrand of (1) and its gradient with respect to the control values."""
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
    compiled = compile(density, model, inputs=inputs)
    return motion, compiled, compiled.jacobian("values")


def _density(spline: ConfigurationSpline) -> Callable[..., Scalar]:
    def torque_energy(
        model: Model, values: Any, anchors: Any, weights: Any, prices: Any, smoothness: Any
    ) -> Scalar:
        q, v, a = spline.motion(values, anchors, weights)
        return _price(forces(aligned(model), q, v, a), a, prices, smoothness)

    return torque_energy


def _price(
    tau: Sequence[Scalar], a: Sequence[Scalar], prices: Sequence[Scalar], smoothness: Scalar
) -> Scalar:
    total: Scalar = 0.0
    square = smoothness * smoothness
    for price, force, rate in zip(prices, tau, a, strict=True):
        total = total + price * (force * force + square * (rate * rate))
    return total
