"""Constraints that a user gives as functions: implicit ones, phi(q) = 0 or psi(q, v) = 0, and q = gamma(y).

    position   phi(model, q) -> residuals            holonomic; phi(model, q, time): rheonomic
    velocity   psi(model, q, v) -> residuals         linear in v; nonholonomic if it is no phi's rate
    closure    gamma(model, y) -> q                  explicit: y are the positions of independent joints

(Featherstone 2008 sections 3.4 and 8.11.) The functions compute with generic scalars and may call
`dalembert.algorithms`; they can tie any number of bodies. Derivatives are taken with dual numbers.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from dalembert.errors import ArgumentError, DalembertError, ModelError
from dalembert.scalar import Scalar

if TYPE_CHECKING:
    from dalembert.model.body import Body
    from dalembert.model.model import Model

__all__ = [
    "KINDS",
    "CarriedFunction",
    "KnownFunction",
    "Constraint",
    "LoopClosure",
    "carried",
    "checked_closure",
    "checked_constraint",
    "takes_time",
]

KINDS: Final[dict[str, tuple[str, ...]]] = {"position": ("model", "q"), "velocity": ("model", "q", "v")}
"""The kinds of constraint and what their functions take; each may take `time` as well."""

LINEARITY_TOLERANCE: Final = 1e-6
"""How far, relative to its size, a residual of velocity may be from a linear one."""

CLOSURE_TOLERANCE: Final = 1e-6
"""How far [m or rad] gamma(y) may break the loops that it is said to close."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A function of the user's, of one of the KINDS, that a motion must keep at zero: `size` residuals."""

    name: str
    kind: str
    function: Callable[..., Any]
    size: int
    time_dependent: bool

    def residual(
        self, model: Model, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None
    ) -> list[Scalar]:
        """phi(q) or psi(q, v), `size` scalars."""
        arguments: list[Any] = [model, list(q)] if self.kind == "position" else [model, list(q), list(v)]
        if self.time_dependent:
            arguments.append(_now(time, f'constraint "{self.name}"'))
        values = _as_list(self.function(*arguments), f'constraint "{self.name}"')
        if len(values) != self.size:
            raise ModelError(
                f'constraint "{self.name}" returned {len(values)} residuals, and {self.size} when the model '
                "was built; their number must not depend on the state"
            )
        return values


@final
@dataclass(frozen=True, slots=True, eq=False)
class LoopClosure:
    """q = gamma(y): every position from those of the independent joints (Featherstone 2008 Eq. 8.56).

    `positions` and `velocities`: where y stands in q, and its rates in v.
    """

    function: Callable[..., Any]
    independent: tuple[str, ...]
    positions: tuple[int, ...]
    velocities: tuple[int, ...]
    time_dependent: bool

    def configuration(self, model: Model, y: Sequence[Scalar], time: Scalar | None = None) -> list[Scalar]:
        """gamma(y) (nq), in which the positions of the independent joints are y itself."""
        arguments: list[Any] = [model, list(y)]
        if self.time_dependent:
            arguments.append(_now(time, "the loop closure"))
        q = _as_list(self.function(*arguments), "the loop closure")
        if len(q) != model.nq:
            raise ModelError(
                f"the loop closure returned {len(q)} numbers; return the whole q, which has {model.nq}"
            )
        for place, own in zip(self.positions, y, strict=True):
            q[place] = own
        return q


class KnownFunction(ABC):
    """Abstract: a function of the library's own, which its data tell from others in every process."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, model: Model, *arguments: Any) -> list[Scalar]:
        """What the function of a constraint or of a loop closure returns."""

    @abstractmethod
    def identity(self) -> tuple[Any, ...]:
        """Strings and numbers that no other function of this class has."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class CarriedFunction(KnownFunction):
    """A constraint of one model in another that surgery made of it: it still sees its own model's q and v.

    `names`: the body of the new model for each independent body of `model`; `locked`: its position instead,
    where surgery took its freedom.
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
    """The bodies whose joints stand in q, in its order."""
    return [body for body in model.bodies if body.dependence is None and body.nq > 0]


def carried(
    constraint: Constraint,
    model: Model,
    rename: Callable[[str], str],
    locked: Callable[[Body], tuple[float, ...] | None] = lambda body: None,
) -> Callable[..., Any]:
    """The constraint's function for a model made from its own by renaming bodies and locking joints."""
    kept = moving_bodies(model)
    return CarriedFunction(
        constraint, model, tuple(rename(body.name) for body in kept), tuple(locked(body) for body in kept)
    )


def takes_time(function: Callable[..., Any], arguments: Sequence[str], what: str) -> bool:
    """Whether a function takes `time` after its other arguments; anything else but them is an error."""
    if not callable(function):
        raise ModelError(f"{what}: give a function({', '.join(arguments)}), not {type(function).__name__}")
    if isinstance(function, KnownFunction):
        return isinstance(function, CarriedFunction) and function.constraint.time_dependent
    try:
        listed = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [
        p for p in listed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in listed):
        raise ModelError(f"{what}: its function has keyword-only arguments; write {_form(arguments)}")
    if len(positional) == len(arguments):
        return False
    if len(positional) == len(arguments) + 1 and positional[-1].name == "time":
        return True
    given = ", ".join(p.name for p in positional)
    raise ModelError(
        f"{what}: its function takes ({given}); write {_form(arguments)}, or with a last argument `time`"
    )


def checked_constraint(constraint: Constraint, model: Model) -> Constraint:
    """The constraint with its number of residuals, tried out at the neutral configuration and around it."""
    what = f'constraint "{constraint.name}"'
    rng = np.random.default_rng(7)
    q = model.neutral().tolist()
    v, w = rng.standard_normal((2, model.nv)).tolist()
    time = 0.0 if constraint.time_dependent else None

    def tried(speed: Sequence[float]) -> list[float]:
        arguments = [model, list(q)] if constraint.kind == "position" else [model, list(q), list(speed)]
        return _numbers(constraint.function, [*arguments, *([] if time is None else [time])], what)

    at_rest = tried([0.0] * model.nv)
    if constraint.kind == "velocity":
        both = tried([x + y for x, y in zip(v, w)])
        parts = zip(at_rest, tried(v), tried(w), both, strict=True)
        for row, (zero, one, two, three) in enumerate(parts):
            size = abs(zero) + abs(one) + abs(two) + abs(three)
            if abs(three - one - two + zero) > LINEARITY_TOLERANCE * size:
                raise ModelError(
                    f"{what}: residual {row} is not linear in v; a constraint of velocity is K(q) v = 0, "
                    'and a relation of positions is kind="position"'
                )
    if not at_rest:
        raise ModelError(f"{what} returned no residuals; return one for each relation that must stay zero")
    return replace(constraint, size=len(at_rest))


def checked_closure(
    function: Callable[..., Any], independent: Sequence[str], time_dependent: bool, model: Model
) -> LoopClosure:
    """The loop closure with its places, tried out at the neutral positions of the independent joints."""
    what = "the loop closure"
    chosen = {name: model.joint(name).body for name in independent}
    follows = [name for name, body in chosen.items() if body.dependence is not None]
    if follows:
        raise ModelError(f'{what}: joint "{follows[0]}" follows a coupling and cannot be independent')
    for body in moving_bodies(model):
        if body.joint_name not in chosen and not _rates_are_velocities(body):
            raise ModelError(
                f'{what}: joint "{body.joint_name}" is of kind {body.joint.kind}, whose v is not dq/dt; make '
                "it independent, or use joints of angles and lengths"
            )
    closure = LoopClosure(
        function,
        tuple(independent),
        tuple(i for body in chosen.values() for i in range(body.q_slice.start, body.q_slice.stop)),
        tuple(i for body in chosen.values() for i in range(body.v_slice.start, body.v_slice.stop)),
        time_dependent,
    )
    neutral = model.neutral().tolist()
    y = [neutral[place] for place in closure.positions]
    q = _numbers(function, [model, y, *([0.0] if time_dependent else [])], what)
    if len(q) != model.nq:
        raise ModelError(f"{what} returned {len(q)} numbers; return the whole q, which has {model.nq}")
    for place, own in zip(closure.positions, y):
        if abs(q[place] - own) > CLOSURE_TOLERANCE:
            raise ModelError(
                f"{what}: q[{place}] belongs to an independent joint and must be its y, {own:g}, but is "
                f"{q[place]:g}; y holds the positions of {', '.join(independent)}, in this order"
            )
    return closure


def _rates_are_velocities(body: Body) -> bool:
    """Whether dq/dt = v for a joint."""
    joint = body.joint
    if joint.nq != joint.nv:
        return False
    q, v = [0.3 + 0.1 * i for i in range(joint.nq)], [0.7 - 0.2 * i for i in range(joint.nv)]
    return all(abs(rate - x) < 1e-12 for rate, x in zip(joint.position_rate(q, v), v))


def _numbers(function: Callable[..., Any], arguments: Sequence[Any], what: str) -> list[float]:
    """What a user's function returns at a state of floats: finite numbers."""
    try:
        values = _as_list(function(*arguments), what)
    except DalembertError:
        raise
    except Exception as error:
        raise ModelError(
            f"{what}: its function failed at the neutral configuration: {type(error).__name__}: {error}"
        ) from error
    for value in values:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ModelError(
                f"{what} returned {value!r} among its numbers; return a list of scalars"
            ) from None
        if not math.isfinite(number):
            raise ModelError(
                f"{what} is {number} at the neutral configuration; place the joints so that it is finite"
            )
    return [float(value) for value in values]


def _as_list(values: Any, what: str) -> list[Scalar]:
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return list(values.tolist() if values.dtype != object else values)
    if not isinstance(values, (list, tuple)):
        raise ModelError(f"{what} returned a {type(values).__name__}; return a list of scalars")
    return list(values)


def _now(time: Scalar | None, what: str) -> Scalar:
    if time is None:
        raise ArgumentError(f"{what} depends on time; pass time=…")
    return time


def _form(arguments: Sequence[str]) -> str:
    return f"function({', '.join(arguments)})"
