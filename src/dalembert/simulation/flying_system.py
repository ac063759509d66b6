"""A system as a first-order differential equation in the variables that integrators carry, compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.integrators import CentroidalCoordinates, State, StepConditions
from dalembert.algorithms.open_tree import is_constrained
from dalembert.algorithms.stepping import T_STAB
from dalembert.call.arguments import ArrayArgument, as_array
from dalembert.compiler.compiled import compile
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.lowering import Recipe
from dalembert.compiler.recording import RecordedFunction, kept_kernel
from dalembert.errors import ArgumentError, ShapeError
from dalembert.model.model import Model
from dalembert.simulation.controls import Policy, recorded_policy

__all__ = ["FlyingSystem"]

Array: TypeAlias = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class FlyingSystem:
    """x = (y, w) of `algorithms.flight`: quaternions in it need not have unit norm. Passive forces act."""

    model: Model
    positions: int
    policy: RecordedFunction | None
    held: Array
    rates: CompiledFunction
    there: CompiledFunction
    back: CompiledFunction

    @staticmethod
    def of(model: Model, tau: npt.ArrayLike | Policy | None) -> FlyingSystem:
        """Return the system under torques that are held, or under a policy."""
        policy = tau if callable(tau) else None
        held = np.zeros(model.nv)
        if tau is not None and policy is None:
            held = as_array("tau", tau, (model.nv,))
            if held.shape != (model.nv,):
                raise ShapeError(f"tau has the shape {held.shape}; give ({model.nv},), or a policy")
            if not np.isfinite(held).all():
                raise ArgumentError("tau holds numbers that are not finite")
        bodies = CentroidalCoordinates(model, None).bodies
        positions = sum(body.nq for body in bodies)
        own = None if policy is None else recorded_policy(policy, model)
        functions = () if own is None else (own,)
        found = kept_kernel(model, ("flying system",), functions, lambda: _compile_system(model, own))
        return FlyingSystem(model, positions, own, held, *found)

    def rate(self, t: float, x: Array) -> Array:
        """Return dx/dt."""
        n = self.positions
        return np.concatenate(self.rates(t, x[:n], x[n:], self.held))

    def to_centroidal(self, q: Array, v: Array) -> Array:
        """Return x of a state."""
        return np.concatenate(self.there(q, v))

    def from_centroidal(self, times: Array, x: Array) -> tuple[Array, Array]:
        """Return states `(n, nq)`, `(n, nv)` of x `(n, size)`."""
        n = self.positions
        q, v = self.back(times, np.ascontiguousarray(x[:, :n]), np.ascontiguousarray(x[:, n:]))
        return q, v

    def normalize_quaternions(self, x: Array) -> Array:
        """Normalise the quaternions in x; the state stays the same."""
        place, new = 0, x.copy()
        for body in CentroidalCoordinates(self.model, None).bodies:
            for part in body.joint.unit_quaternions:
                own = slice(place + part.start, place + part.stop)
                new[own] = x[own] / np.linalg.norm(x[own])
            place += body.nq
        return new

    def torques(self, times: Array, q: Array, v: Array) -> Array:
        """Return tau `(n, nv)` in states `(n, …)`."""
        if self.policy is None:
            return np.tile(self.held, (len(times), 1))
        model, policy = self.model, self.policy
        found = kept_kernel(model, ("policy",), (policy,), lambda: _compiled_policy(model, policy))
        return np.asarray(found(times, q, v))


def _compile_system(
    model: Model, policy: RecordedFunction | None
) -> tuple[CompiledFunction, CompiledFunction, CompiledFunction]:
    """Compile the rates, the map to x and the map back."""
    stabilization = T_STAB if is_constrained(model) and model.closure is None else None

    def now(time: Any) -> Any:
        return time if model.time_dependent else None

    def rates(model: Model, time: Any, y: Any, w: Any, tau: Any) -> Any:
        tree = aligned(model)
        coordinates = CentroidalCoordinates(tree, now(time))
        whole = coordinates.from_centroidal(State(list(y), list(w)), 0.0)
        forces = tau if policy is None else policy(model, time, whole.q, whole.v)
        conditions = StepConditions(tree, forces, passive=True, time=now(time), stabilization=stabilization)
        found = coordinates.rates(whole, conditions.acceleration(whole.q, whole.v, 0.0))
        return found.q, found.v

    def there(model: Model, q: Any, v: Any) -> Any:
        found = CentroidalCoordinates(model, None).to_centroidal(State(list(q), list(v)))
        return found.q, found.v

    def back(model: Model, time: Any, y: Any, w: Any) -> Any:
        found = CentroidalCoordinates(model, now(time)).from_centroidal(State(list(y), list(w)), 0.0)
        return found.q, found.v

    bodies = CentroidalCoordinates(model, None).bodies
    shapes = {"y": sum(body.nq for body in bodies), "w": sum(body.nv for body in bodies)}
    return (
        compile(rates, model, inputs=shapes),
        compile(there, model),
        compile(back, model, inputs=shapes),
    )


def _compiled_policy(model: Model, policy: RecordedFunction) -> CompiledFunction:
    arguments = tuple(ArrayArgument(item.name, item.shape) for item in policy.trace.inputs)
    return CompiledFunction(Recipe("torques", policy, model, arguments, traced=policy.trace))
