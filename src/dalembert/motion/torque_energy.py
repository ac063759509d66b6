"""The torque energy of motions, with or without closed loops, and its gradient.

With the forces tau = ID(q, v, a) along a motion that control values theta of its spline define,

    P = integral of sum_i c_i tau_i^2 dt                                                             (1)
    dP/dtheta = 2 integral of sum_i c_i tau_i (dtau_i/dq dq/dtheta + dtau_i/dv dv/dtheta
                                                                   + dtau_i/da da/dtheta) dt

(Guenter and Rose, whose print leaves out tau_i and the factors by theta). The integrals are sums over Gauss
points. The integrand of the first one, spline, inverse dynamics and squares, is traced as one function of the
six control values that contribute at a point; its derivative is a second function, by reverse accumulation.
Both are evaluated for all points as a batch. The costs c_i weight the joints.

A cost of accelerations, c_i (r a_i)^2, as of a flywheel of inertia r at each joint, may be added to (1):
moving a hand costs almost nothing in (1), whose minimum is then hard to find and looks unnatural.

Loop joints and contacts exert the forces K^T lambda for any lambda; the joints have to provide the rest,

    s = ID(q, v, a) - K^T lambda                                                                     (2)

Joints without motor, u, provide nothing: as far as loops can carry them, s_u = 0. Among all lambda with this
property, those are chosen that minimise the cost sum of c_i s_i^2 of the motors:

    [K_a C_a K_a^T   K_u] [lambda]   [K_a C_a tau_a]
    [K_u^T           Pi ] [nu    ] = [tau_u        ]                                                 (3)

Pi projects onto the motions of u that K_u leaves free; there s_u = Pi tau_u remains and is part of the cost.
With w_a = 2 C_a s_a and w_u = -2 (nu - s_u) + 2 c_u s_u, which satisfies K w = 0, a change of lambda has no
effect, and the gradient of the cost is that of

    w . s + eta . K_u s_u,    K_u^T eta = -2 (nu - s_u)                                              (4)

with w, lambda, eta and the s_u of the last term held constant; the last term is the condition K_u s_u = 0
that loops carry all they can.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.constraints import closing_equations, constraint_equations, loop_rows
from dalembert.algorithms.dense import dot
from dalembert.algorithms.inverse_dynamics import inverse_dynamics as joint_forces
from dalembert.algorithms.inverse_dynamics import spanning_tree_forces
from dalembert.algorithms.kinematics import forward_kinematics as kinematics
from dalembert.api.dynamics import inverse_dynamics, mass_matrix
from dalembert.compiler.compiled import compile
from dalembert.model.model import Model
from dalembert.motion.closed_path import ClosedPath, Closure, acceleration_errors, closed_model, kept_kernels
from dalembert.motion.configuration_spline import ORDER, ConfigurationSpline, Controls, SplinePoints
from dalembert.motion.differentiation import Array
from dalembert.scalar import Scalar
from dalembert.spatial import Force

GAUSS_POINTS_PER_SPAN: Final = 4
"""Exact if tau is linear in a, since squares of x'' are of the sixth degree."""


class SampledMotion(NamedTuple):
    """A motion with the joints' forces, wrenches (m, loops, 6) of loops and contacts, largest loop error."""

    q: Array
    v: Array
    a: Array
    tau: Array
    wrenches: Array
    gap: float


class _Cost:
    """The Gauss points of a spline, the weights c_i `prices (nv,)` and the flywheels' `smoothness`."""

    def __init__(self, spline: ConfigurationSpline, prices: Array, smoothness: float) -> None:
        self.spline, self.model = spline, spline.model
        self.points, self._quadrature = spline.knots.gauss_points(GAUSS_POINTS_PER_SPAN)
        self._prices, self._smoothness = np.asarray(prices, float), smoothness

    def integrate_squares(self, forces: Array) -> float:
        """Return the torque energy (1) of the forces at the Gauss points, without the other costs."""
        return float(self._quadrature @ (forces**2 @ self._prices))

    def assemble_gradient(self, controls: Controls, by_point: Array) -> Array:
        """Assemble dP/dtheta from gradients (…, m, 6, nv) at the points by their six control values."""
        weighed = by_point * self._quadrature[:, None, None]
        spans = len(self._quadrature) // GAUSS_POINTS_PER_SPAN
        by_span = weighed.reshape(*by_point.shape[:-3], spans, GAUSS_POINTS_PER_SPAN, ORDER, -1).sum(axis=-3)
        gradient = np.zeros_like(controls.values)
        for span in range(spans):
            gradient[..., span : span + ORDER, :] += by_span[..., span, :, :]
        return gradient


@final
class TorqueEnergy(_Cost):
    """The torque energy (1) of motions without closed loops, and the cost of their accelerations."""

    def __init__(self, spline: ConfigurationSpline, *, prices: Array, smoothness: float = 0.0) -> None:
        super().__init__(spline, prices, smoothness)
        self._density, self._gradient = kept_kernels(self.model, "torque energy", lambda: _kernels(spline))

    def __call__(self, controls: Controls) -> float:
        return float(self._quadrature @ self._density(*self._arguments(controls), check="off"))

    def with_gradient(self, controls: Controls) -> tuple[Array, Array]:
        """Return the cost and its gradient by the control values of one motion or a batch (…, n, nv)."""
        arguments = self._arguments(controls)
        energy = self._density(*arguments, check="off") @ self._quadrature
        return energy, self.assemble_gradient(controls, self._gradient(*arguments, check="off"))

    def sample(self, controls: Controls, points: SplinePoints) -> SampledMotion:
        """Return the motion and its forces at the points."""
        q, v, a = self.spline.sample(controls, points)
        tau = inverse_dynamics(self.model, q, v, a)
        return SampledMotion(q, v, a, tau, np.zeros((len(points.time), 0, 6)), 0.0)

    def _arguments(self, controls: Controls) -> list[Any]:
        return [*controls.arguments(self.points), self._prices, self._smoothness]


def _kernels(spline: ConfigurationSpline) -> tuple[Any, Any]:
    """Compile the integrand of (1) and its gradient with respect to the control values."""

    def torque_energy(
        model: Model, values: Any, anchors: Any, weights: Any, prices: Any, smoothness: Any
    ) -> Scalar:
        q, v, a = spline.motion(values, anchors, weights)
        tau = joint_forces(aligned(model), q, v, a)
        square = smoothness * smoothness
        costs = [force * force + square * (rate * rate) for force, rate in zip(tau, a, strict=True)]
        return dot(prices, costs)

    inputs = spline.inputs(shift=False) | {"prices": (spline.model.nv,), "smoothness": ()}
    density = compile(torque_energy, spline.model, inputs=inputs)
    return density, density.jacobian("values")


RELATIVE_REGULARIZATION: Final = 1e-12
"""Added to the diagonal of (3), relative to its largest entry, for statically indeterminate loops."""

NULL_SPACE_TOLERANCE: Final = 1e-12
"""Relative eigenvalue of K_u^T K_u below which loops leave a motion of joints without motor free."""

SHIFT_COST_RATIO: Final = 1e3
"""Cost of a shift relative to that of the accelerations that undo it within one span: limits bound the
splines, and a motion must not leave them by its shift. Limits hold to about 3e-4 rad; 1e2 gives 8e-3 rad.
"""

MAX_LOOP_ERROR: Final = 1e-6
"""Loop error [m or rad] above which the loops of a motion count as not closed."""


class ClosedMotion(NamedTuple):
    """A closed motion at m times: forces s, lambda, w and eta of (3) and (4); `left` holds s_u, else 0."""

    q: Array
    v: Array
    a: Array
    forces: Array
    multipliers: Array
    w: Array
    eta: Array
    left: Array


@final
class ClosedTorqueEnergy(_Cost):
    """The cost of closed motions: of forces, accelerations, shift; `unpowered` joints have no motor."""

    def __init__(
        self, path: ClosedPath, *, prices: Array, smoothness: float, unpowered: npt.NDArray[np.intp]
    ) -> None:
        super().__init__(path.spline, prices, smoothness)
        self.path = path
        self._N = path.directions(self.points)
        self._unpowered = unpowered[prices[unpowered] > 0.0]
        self._state, self._by_price, self._by_loops = kept_kernels(
            self.model, ("closed torque energy", path.key), lambda: _closed_kernels(path)
        )
        q = self._motion(path.controls)[0].q
        squares = np.einsum("i,tij->tj", prices, mass_matrix(self.model, q, check="off") ** 2)
        squares += prices * smoothness**2
        # The weight of |delta|^2, which selects the nearest of all splines that give the same motion.
        self._tether = SHIFT_COST_RATIO * float(np.median(squares)) / path.spline.knots.span**4
        self._worst = 1e3 * (1.0 + abs(self(path.controls)))

    def __call__(self, controls: Controls) -> float:
        return float(self._price(*self._motion(controls)))

    def with_gradient(self, controls: Controls) -> tuple[Array, Array]:
        """Return the cost and its gradient by the control values of one motion or a batch (…, n, nv)."""
        state, closure = self._motion(controls)
        arguments = self.path.arguments(controls, self.points, closure.shift)
        prices = (self._prices, self._smoothness, self._tether)
        rates = self._by_price(*arguments, *prices, *state[4:], check="off")
        loads = np.zeros((*state.w.shape[:-1], 3, state.multipliers.shape[-1]))
        total = rates
        for order in (2, 1, 0):
            # The right sides of (3) of closed_path, with the factors of derivatives of a product.
            pull = np.zeros((*state.w.shape[:-1], len(self.path.rows)))
            for k in range(order, 3):
                pull += math.comb(k, order) * _onto(self._N[:, k - order], total[..., ORDER + k, :])
            loads[..., order, self.path.rows] = -_onto(closure.inverse, pull)
            total = rates + self._by_loops(*arguments, loads, check="off")
        gradient = self.assemble_gradient(controls, total[..., :ORDER, :])
        closed = closure.gap.max(axis=-1) < MAX_LOOP_ERROR
        price = np.where(closed, self._price(state, closure), self._worst)
        return price, np.where(closed[..., None, None], gradient, 0.0)

    def _motion(self, controls: Controls, points: SplinePoints | None = None) -> tuple[ClosedMotion, Closure]:
        """Close the loops at the points, by default the Gauss points; return motion and forces by (3)."""
        N = self._N if points is None else self.path.directions(points)
        points = points or self.points
        closure = self.path.close(controls, points, N)
        q, v, a, tau, K = self._state(*self.path.arguments(controls, points, closure.shift), check="off")
        return ClosedMotion(q, v, a, *self._distribute_forces(tau, K)), closure

    def sample(self, controls: Controls, points: SplinePoints) -> SampledMotion:
        """Return the motion, its forces and those of the loops at the points."""
        found, closure = self._motion(controls, points)
        return SampledMotion(*found[:4], self._loop_forces(found), float(closure.gap.max()))

    def _loop_forces(self, motion: ClosedMotion) -> Array:
        """Return the wrench (m, loops, 6) on each loop joint's successor, about the world's origin."""
        path = self.path
        closed = closed_model(self.model, path.contacts, path.contacts.places.tolist())
        q = list(motion.q.T)
        still: list[Scalar] = [0.0] * self.model.nv
        poses = kinematics(closed, q)
        result = np.zeros((len(motion.q), len(closed.loops), 6))
        start = 0
        for k, loop in enumerate(closed.loops):
            T = loop_rows(closed, loop, q, still).T
            push = Force.zero()
            for column, x in zip(T, motion.multipliers.T[start : start + len(T)], strict=True):
                push = push + column * x
            start += len(T)
            push = loop.placement_successor.inverse_apply(push)
            if loop.successor >= 0:
                push = poses[loop.successor].inverse_apply(push)
            for i, x in enumerate(push.to_list()):
                result[:, k, i] = x
        return result

    def _distribute_forces(self, tau: Array, K: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Solve (3) and (4) for s, lambda, w, eta and s_u."""
        u, rows = self._unpowered, self.path.rows
        prices = self._prices.copy()
        prices[u] = 0.0
        own = K[..., rows, :]
        across = own[..., u]
        r, size = len(rows), len(rows) + len(u)
        weighed = own * prices
        A = np.zeros((*tau.shape[:-1], size, size))
        A[..., :r, :r] = weighed @ np.swapaxes(own, -1, -2)
        diagonal = np.einsum("...ii->...i", A)[..., :r]
        diagonal += RELATIVE_REGULARIZATION * diagonal.max(axis=-1, keepdims=True)
        A[..., :r, r:] = across
        A[..., r:, :r] = np.swapaxes(across, -1, -2)
        loose, inverse = _null_space_projector(across)
        A[..., r:, r:] = loose
        right = np.concatenate([(weighed @ tau[..., None])[..., 0], tau[..., u]], axis=-1)
        found = np.linalg.solve(A, right[..., None])[..., 0]
        multipliers = np.zeros(K.shape[:-1])
        multipliers[..., rows] = found[..., :r]
        forces = tau - _onto(own, found[..., :r])
        w = 2.0 * prices * forces
        eta, left = np.zeros_like(multipliers), np.zeros_like(tau)
        left[..., u] = forces[..., u] = free = (loose @ tau[..., u, None])[..., 0]
        reaction = -2.0 * (found[..., r:] - free)
        w[..., u] = reaction + 2.0 * self._prices[u] * free
        eta[..., rows] = (across @ inverse @ reaction[..., None])[..., 0]
        return forces, multipliers, w, eta, left

    def _price(self, state: ClosedMotion, closure: Closure) -> Array:
        squares = state.forces**2 + self._smoothness**2 * state.a**2
        tether = self._tether * np.sum(closure.shift[..., 0, :] ** 2, axis=-1)
        price: Array = (squares @ self._prices + tether) @ self._quadrature
        return price


def _null_space_projector(K: Array) -> tuple[Array, Array]:
    """Return the projector Pi onto the null space of K (…, r, u), and the pseudo-inverse of K^T K."""
    normal = np.swapaxes(K, -1, -2) @ K
    if not K.shape[-1]:
        return normal, normal
    sizes, ways = np.linalg.eigh(normal)
    free = sizes <= NULL_SPACE_TOLERANCE * sizes[..., -1:]
    inverse = np.where(free, 0.0, 1.0 / np.where(free, 1.0, sizes))
    back = np.swapaxes(ways, -1, -2)
    return (ways * free[..., None, :]) @ back, (ways * inverse[..., None, :]) @ back


def _onto(rows: Array, x: Array) -> Array:
    """Return rows^T x for matrices (…, n, m) and vectors (…, n)."""
    product: Array = (x[..., None, :] @ rows)[..., 0, :]
    return product


def _closed_kernels(path: ClosedPath) -> tuple[Any, Any, Any]:
    """Compile state and forces, and the gradients of cost and loop equations by values and shift."""
    spline, contacts = path.spline, path.contacts
    model = spline.model

    def state(model: Model, values: Any, anchors: Any, weights: Any, places: Any) -> Any:
        q, v, a = spline.motion(values, anchors, weights)
        found = closing_equations(closed_model(model, contacts, places), q)
        return q, v, a, spanning_tree_forces(aligned(model), q, v, a), found.K

    def price(
        model: Model,
        values: Any,
        anchors: Any,
        weights: Any,
        places: Any,
        prices: Any,
        smoothness: Any,
        tether: Any,
        multipliers: Any,
        w: Any,
        eta: Any,
        left: Any,
    ) -> Scalar:
        q, v, a = spline.motion(values, anchors, weights)
        tau = spanning_tree_forces(aligned(model), q, v, a)
        K = closing_equations(closed_model(model, contacts, places), q).K
        loops = dot(eta, [dot(row, left) for row in K]) - dot(multipliers, [dot(row, w) for row in K])
        squares = dot(prices, [x * x for x in a]) * (smoothness * smoothness)
        return dot(w, tau) + loops + squares + tether * dot(values[ORDER], values[ORDER])

    def loops(model: Model, values: Any, anchors: Any, weights: Any, places: Any, loads: Any) -> Scalar:
        q, v, a = spline.motion(values, anchors, weights)
        closed = closed_model(model, contacts, places)
        found = constraint_equations(closed, q, v)
        total = dot(loads[0], closing_equations(closed, q).residual)
        return total + dot(loads[1], found.velocity_error) + dot(loads[2], acceleration_errors(found, a))

    nv, n = (model.nv,), (path.count,)
    priced = {"prices": nv, "smoothness": (), "tether": (), "multipliers": n, "w": nv, "eta": n, "left": nv}
    return (
        compile(state, model, inputs=path.inputs),
        compile(price, model, inputs=path.inputs | priced).jacobian("values"),
        compile(loops, model, inputs=path.inputs | {"loads": (3, *n)}).jacobian("values"),
    )
