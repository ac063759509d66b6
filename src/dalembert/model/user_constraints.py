"""Constraints that a user gives as functions: implicit ones, phi(q) = 0 or psi(q, v) = 0, and q = gamma(y).

    position   phi(model, q) -> residuals            holonomic; phi(model, q, time): rheonomic
    velocity   psi(model, q, v) -> residuals         linear in v; nonholonomic if it is no phi's rate
    closure    gamma(model, y) -> q                  explicit: y are the positions of independent joints

(Featherstone 2008 sections 3.4 and 8.11.) The functions compute with generic scalars and may call
`dalembert.algorithms`; they can tie any number of bodies. Derivatives are taken with dual numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from dalembert.errors import ArgumentError, ModelError
from dalembert.scalar import Scalar

if TYPE_CHECKING:
    from dalembert.model.body import Body
    from dalembert.model.model import Model

KINDS: Final[dict[str, tuple[str, ...]]] = {"position": ("model", "q"), "velocity": ("model", "q", "v")}
"""The kinds of constraint and what their functions take; each may take `time` as well."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A user's function of one of the KINDS that a motion must keep at zero: `size` residuals."""

    name: str
    kind: str
    function: Callable[..., Any]
    size: int
    time_dependent: bool

    def residual(
        self, model: Model, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None
    ) -> list[Scalar]:
        """Return the residuals phi(q) or psi(q, v), `size` scalars."""
        arguments: list[Any] = [model, list(q)] if self.kind == "position" else [model, list(q), list(v)]
        if self.time_dependent:
            arguments.append(_now(time, f'constraint "{self.name}"'))
        values = as_list(self.function(*arguments), f'constraint "{self.name}"')
        if len(values) != self.size:
            raise ModelError(
                f'constraint "{self.name}" returned {len(values)} residuals, and {self.size} when the model '
                "was built; their number must not depend on the state"
            )
        return values


@final
@dataclass(frozen=True, slots=True, eq=False)
class LoopClosure:
    """The loop closure q = gamma(y): all positions from the independent ones (Featherstone 2008 Eq. 8.56).

    `positions` and `velocities`: the indices of y in q, and of its rates in v.
    """

    function: Callable[..., Any]
    independent: tuple[str, ...]
    positions: tuple[int, ...]
    velocities: tuple[int, ...]
    time_dependent: bool

    def configuration(self, model: Model, y: Sequence[Scalar], time: Scalar | None = None) -> list[Scalar]:
        """Return gamma(y) `(nq,)`, in which the positions of the independent joints are y itself."""
        arguments: list[Any] = [model, list(y)]
        if self.time_dependent:
            arguments.append(_now(time, "the loop closure"))
        q = as_list(self.function(*arguments), "the loop closure")
        if len(q) != model.nq:
            raise ModelError(
                f"the loop closure returned {len(q)} numbers; return the whole q, which has {model.nq}"
            )
        for place, own in zip(self.positions, y, strict=True):
            q[place] = own
        return q


class KnownFunction(ABC):
    """Abstract base of the library's own functions, which their data identify in every process."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, model: Model, *arguments: Any) -> list[Scalar]:
        """Return the values of the constraint or of the loop closure."""

    @abstractmethod
    def identity(self) -> tuple[Any, ...]:
        """Return strings and numbers that identify the function within its class."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class CarriedFunction(KnownFunction):
    """A constraint transferred to a model that surgery made; it still sees its own model's q and v.

    `names`: the body of the new model for each independent body of `model`; `locked`: the body's position
    instead, if surgery removed its freedom.
    """

    constraint: Constraint
    model: Model
    names: tuple[str, ...]
    locked: tuple[tuple[float, ...] | None, ...]

    def __call__(self, model: Model, *arguments: Any) -> list[Scalar]:
        q, *rest = arguments
        v = rest.pop(0) if self.constraint.kind == "velocity" else [0.0] * model.nv
        own_q: list[Scalar] = []
        own_v: list[Scalar] = []
        for body, name, fixed in zip(moving_bodies(self.model), self.names, self.locked, strict=True):
            own_q += model.bodies[name].own_q(q) if fixed is None else fixed
            own_v += model.bodies[name].own_v(v) if fixed is None else [0.0] * body.nv
        return self.constraint.residual(self.model, own_q, own_v, rest[0] if rest else None)

    def identity(self) -> tuple[Any, ...]:
        return (self.model.digest, self.constraint.name, self.names, self.locked)


def moving_bodies(model: Model) -> list[Body]:
    """Return the bodies whose joints have position variables in q, in order."""
    return [body for body in model.bodies if body.dependence is None and body.nq > 0]


def transfer_constraint(
    constraint: Constraint,
    model: Model,
    rename: Callable[[str], str],
    locked: Callable[[Body], tuple[float, ...] | None] = lambda body: None,
) -> Callable[..., Any]:
    """Return the constraint's function for a model made from its own by renaming bodies and locking
    joints.
    """
    kept = moving_bodies(model)
    return CarriedFunction(
        constraint, model, tuple(rename(body.name) for body in kept), tuple(locked(body) for body in kept)
    )


def as_list(values: Any, what: str) -> list[Scalar]:
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return list(values.tolist() if values.dtype != object else values)
    if not isinstance(values, (list, tuple)):
        raise ModelError(f"{what} returned a {type(values).__name__}; return a list of scalars")
    return list(values)


def _now(time: Scalar | None, what: str) -> Scalar:
    if time is None:
        raise ArgumentError(f"{what} depends on time; pass time=…")
    return time
