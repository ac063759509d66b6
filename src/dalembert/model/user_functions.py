"""Functions of the user's in a model: constraints phi(q) = 0 or psi(q, v) = 0, closures q = gamma(y), joints.

    position   phi(model, q) -> residuals            holonomic; phi(model, q, time): rheonomic
    velocity   psi(model, q, v) -> residuals         linear in v; nonholonomic if it is no phi's rate
    closure    gamma(model, y) -> q                  explicit: y are the positions of independent joints

(Featherstone 2008 sections 3.4 and 8.11.) The functions compute with generic scalars and may call
`dalembert.algorithms`; they can tie any number of bodies. Derivatives are taken with dual numbers. They are
tried when a model is built, and watched while it lives: what is compiled for the model goes when they change.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from dalembert.errors import ArgumentError, DalembertError, ModelError
from dalembert.host.captured_values import Reads, reads_of
from dalembert.model.joints import Joint, TimeDependent, UserDefined
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Mat3, Transform, Vec3

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

    def residual(self, model: Model, q: Scalars, v: Scalars, time: Time = None) -> list[Scalar]:
        """Return the residuals phi(q) or psi(q, v), `size` scalars."""
        values = _as_list(self.function(*self._arguments(model, q, v, time)), self._what)
        if len(values) != self.size:
            raise ModelError(
                f"{self._what} returned {len(values)} residuals, and {self.size} when the model was built; "
                "their number must not depend on the state"
            )
        return values

    @property
    def _what(self) -> str:
        return f'constraint "{self.name}"'

    def _arguments(self, model: Model, q: Scalars, v: Scalars, time: Any) -> list[Any]:
        speeds = [list(v)] if self.kind == "velocity" else []
        return [model, list(q), *speeds, *_time_argument(self.time_dependent, time, self._what)]


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

    def configuration(self, model: Model, y: Scalars, time: Time = None) -> list[Scalar]:
        """Return gamma(y) `(nq,)`, in which the positions of the independent joints are y itself."""
        timed = _time_argument(self.time_dependent, time, "the loop closure")
        q = _as_list(self.function(model, list(y), *timed), "the loop closure")
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
class TransferredFunction(KnownFunction):
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
    rename: Callable[[str], str] = str,
    locked: Mapping[str, tuple[float, ...]] = {},
) -> Callable[..., Any]:
    """Return the constraint's function for a model with renamed bodies, and joints `locked` at positions."""
    kept = moving_bodies(model)
    names = tuple(rename(body.name) for body in kept)
    return TransferredFunction(constraint, model, names, tuple(locked.get(body.joint_name) for body in kept))


def _as_list(values: Any, what: str) -> list[Scalar]:
    is_vector = isinstance(values, np.ndarray) and values.ndim == 1
    if not is_vector and not isinstance(values, (list, tuple)):
        raise ModelError(f"{what} returned a {type(values).__name__}; return a list of scalars")
    return values.tolist() if is_vector else list(values)


def _time_argument(time_dependent: bool, time: Time, what: str) -> list[Scalar]:
    """Return the time as the last argument of a function that depends on it."""
    if time_dependent and time is None:
        raise ArgumentError(f"{what} depends on time; pass time=…")
    return [time] if time_dependent else []


# Trial evaluations of the constraint functions of users, when a model is built.
#
# An error reports a function that takes the wrong arguments, returns anything but numbers, is not finite at
# the neutral configuration, is not linear where it must be, or does not close its loops.

LINEARITY_TOLERANCE: Final = 1e-6
"""Largest deviation of a velocity residual from linearity, relative to its size."""

CLOSURE_TOLERANCE: Final = 1e-6
"""Largest error [m or rad] of gamma(y) in the loops that it closes."""

TRIAL_OFFSET: Final = 0.01
"""Distance [m or rad] from the neutral y of the second trial evaluation of gamma."""


def takes_time(function: Callable[..., Any], arguments: Sequence[str], what: str) -> bool:
    """Return whether a function takes `time` after the given arguments; any other signature is an error."""
    form = f"function({', '.join(arguments)})"
    if not callable(function):
        raise ModelError(f"{what}: give a {form}, not {type(function).__name__}")
    if isinstance(function, KnownFunction):
        return isinstance(function, TransferredFunction) and function.constraint.time_dependent
    try:
        listed = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [
        p for p in listed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in listed):
        raise ModelError(f"{what}: its function has keyword-only arguments; write {form}")
    if len(positional) == len(arguments):
        return False
    if len(positional) == len(arguments) + 1 and positional[-1].name == "time":
        return True
    given = ", ".join(p.name for p in positional)
    raise ModelError(f"{what}: its function takes ({given}); write {form}, or with a last argument `time`")


def checked_constraint(constraint: Constraint, model: Model) -> Constraint:
    """Return the constraint with its number of residuals, after trials at the neutral configuration."""
    what = constraint._what
    q = model.neutral().tolist()
    v, w = np.random.default_rng(7).standard_normal((2, model.nv)).tolist()

    def evaluate(speed: Sequence[float]) -> list[float]:
        return _numbers(constraint.function, constraint._arguments(model, q, speed, 0.0), what)

    at_rest = evaluate([0.0] * model.nv)
    if constraint.kind == "velocity":
        both = evaluate([x + y for x, y in zip(v, w)])
        parts = zip(at_rest, evaluate(v), evaluate(w), both, strict=True)
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
    """Return the loop closure with its indices, after a trial at the neutral configuration."""
    what = "the loop closure"
    chosen = {name: model.joint(name).body for name in independent}
    follows = [name for name, body in chosen.items() if body.dependence is not None]
    if follows:
        raise ModelError(f'{what}: joint "{follows[0]}" follows a coupling and cannot be independent')
    for body in moving_bodies(model):
        # Trial numbers: dq/dt = v holds for all of them or for none.
        q, v = [0.3 + 0.1 * i for i in range(body.nq)], [0.7 - 0.2 * i for i in range(body.nv)]
        alike = body.nq == body.nv and np.allclose(body.joint.position_rate(q, v), v, rtol=0.0, atol=1e-12)
        if body.joint_name not in chosen and not alike:
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
    q = _numbers(function, [model, y, *_time_argument(time_dependent, 0.0, what)], what)
    if len(q) != model.nq:
        raise ModelError(f"{what} returned {len(q)} numbers; return the whole q, which has {model.nq}")
    for place, own in zip(closure.positions, y):
        if abs(q[place] - own) > CLOSURE_TOLERANCE:
            raise ModelError(
                f"{what}: q[{place}] belongs to an independent joint and must be its y, {own:g}, but is "
                f"{q[place]:g}; y holds the positions of {', '.join(independent)}, in this order"
            )
    _check_loops(closure, model, y)
    return closure


def _check_loops(closure: LoopClosure, model: Model, y: list[float]) -> None:
    """Refuse a gamma(y) that leaves loops open or breaks constraints, at the neutral y or near it."""
    time = 0.0 if model.time_dependent else None
    joints = [model.joint(name).joint for name in closure.independent]
    for near in (y, [x + TRIAL_OFFSET * (1.0 + i) for i, x in enumerate(y)]):
        rest = iter(near)
        unit = [x for joint in joints for x in joint.normalize(list(islice(rest, joint.nq)))]
        try:
            errors = _residuals(model, closure.configuration(model, unit, time), time)
        except (ArithmeticError, ValueError):
            continue  # outside of where gamma is defined, which is the user's to know
        for name, residuals in errors.items():
            error = max(map(abs, residuals), default=0.0)
            if error > CLOSURE_TOLERANCE:
                raise ModelError(
                    f'the loop closure leaves "{name}" open by {error:.2g} (m or rad) at y = '
                    f"{[round(x, 4) for x in near]}; gamma(y) must solve the model's loops and constraints"
                )


def _residuals(model: Model, q: Sequence[float], time: float | None) -> dict[str, list[Scalar]]:
    """Return the residuals of each loop and each position constraint [m or rad]."""
    poses = {-1: Transform.identity()}
    for body in model.bodies:
        poses[body.index] = poses[body.parent] @ body.link_transform(q, time)
    found = {}
    for loop in model.loops:
        X_p = poses[loop.predecessor] @ loop.placement_predecessor
        X_s = poses[loop.successor] @ loop.placement_successor
        found[loop.name] = loop.joint.closure_error(X_p.inverse() @ X_s, time)
    for item in model.constraints:
        if item.kind == "position":
            found[item.name] = item.residual(model, q, [0.0] * model.nv, time)
    return found


def _numbers(function: Callable[..., Any], arguments: Sequence[Any], what: str) -> list[float]:
    """Call a user's function on floats and return its values as finite numbers."""
    try:
        values = _as_list(function(*arguments), what)
    except DalembertError:
        raise
    except Exception as error:
        raise ModelError(
            f"{what}: its function failed at the neutral configuration: {type(error).__name__}: {error}"
        ) from error
    found = []
    for value in values:
        try:
            found.append(float(value))
        except (TypeError, ValueError):
            raise ModelError(
                f"{what} returned {value!r} among its numbers; return a list of scalars"
            ) from None
        if not math.isfinite(found[-1]):
            raise ModelError(
                f"{what} is {found[-1]} at the neutral configuration; place the joints so that it is finite"
            )
    return found


# User functions inside a model, and the compiled functions that depend on them.
#
# Constraints, loop closures, `UserDefined` and `TimeDependent` joints and users' joint classes are Python
# functions that may read values from elsewhere. If such a value changes, compiled functions of the model are
# out of date. So a model with such functions keeps its compiled functions in a dictionary that checks them on
# every access, and is cleared once one of them computes something else. Models without such functions have a
# plain dictionary.
#
# A change is found by tracing the function again, or by the proof of `captured_values` that this is not
# needed. The tracer belongs to the compiler, which physics does not import; the module that imports both
# registers it.

ArrayShape: TypeAlias = tuple[int, ...]

_tracers: list[Callable[[Callable[..., Any], Sequence[ArrayShape]], str]] = []


def enrol_tracer(tracer: Callable[[Callable[..., Any], Sequence[ArrayShape]], str]) -> None:
    """Register the function that returns the digest of the trace of a function of arrays of given shapes."""
    _tracers[:] = [tracer]


class Part(NamedTuple):
    """A function of arrays of symbols with their shapes; one that is `essential` can always be traced."""

    function: Callable[..., Any]
    shapes: Sequence[ArrayShape]
    essential: bool = True


@final
class WatchedFunctions(dict[Any, Any]):
    """The compiled functions of a model, cleared when a user's function in it computes something else."""

    __slots__ = ("_looking", "_watches")

    def __init__(self, watches: Iterable[Watch]) -> None:
        super().__init__()
        self._watches = tuple(watches)
        self._looking = threading.local()

    def __getitem__(self, key: Any) -> Any:
        self._look()
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self._look()
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._look()
        return super().__contains__(key)

    def state(self) -> str:
        """Return a digest of what the functions in the model compute now."""
        self._look()
        return " ".join(watch.digest or "" for watch in self._watches)

    def _look(self) -> None:
        if getattr(self._looking, "now", False):
            return  # a function that is traced here uses the model itself
        self._looking.now = True
        try:
            if any(watch.has_changed() for watch in self._watches):
                self.clear()
        finally:
            self._looking.now = False


@final
@dataclass(slots=True, eq=False)
class Watch:
    """A watched constraint, closure or joint: `functions` are the user's, `parts` is all that it computes."""

    place: str
    functions: Sequence[Callable[..., Any]]
    parts: Sequence[Part]
    reads: Sequence[Reads] = ()
    digest: str | None = None

    def has_changed(self) -> bool:
        """Return whether the functions compute something else than at the last call."""
        if self.reads and all(reads.is_unchanged() for reads in self.reads):
            return False
        before = self.digest
        proven = [reads for function in self.functions if (reads := reads_of(function)) is not None]
        now = self._trace_digest()
        is_proven = len(proven) == len(self.functions) and all(reads.is_unchanged() for reads in proven)
        if not is_proven and now != before and self._trace_digest() != now:
            raise ModelError(
                f"{self.place} is another function each time it is traced: it reads something that changes "
                "by itself, such as random numbers, a clock or an iterator. Make it a function of its "
                "arguments alone; values that change belong to q, to `time` or to `parameters`"
            )
        self.reads, self.digest = proven if is_proven else (), now
        return before is not None and now != before

    def _trace_digest(self) -> str:
        digest = hashlib.sha256()
        for part in self.parts:
            try:
                found = _tracers[0](part.function, part.shapes)
            except Exception as error:
                if part.essential:
                    raise
                found = f"{type(error).__qualname__}: {error}"  # a joint need not have all of them
            digest.update(found.encode())
        return digest.hexdigest()


def watches_of(model: Model) -> Iterator[Watch]:
    """Yield a watch for each part of a model that has functions of the caller's."""
    for body in model.bodies:
        yield from _watch_joint(f'joint "{body.joint_name}"', body.joint)
    for loop in model.loops:
        yield from _watch_joint(f'loop joint "{loop.name}"', loop.joint)
    for constraint in model.constraints:
        function = constraint.function
        if isinstance(function, TransferredFunction):
            yield from watches_of(function.model)
        elif not isinstance(function, KnownFunction):
            residual = functools.partial(constraint.residual, model)
            yield Watch(constraint._what, [function], [Part(residual, [(model.nq,), (model.nv,), ()])])
    closure = model.closure
    if closure is not None and not isinstance(closure.function, KnownFunction):
        configuration = functools.partial(closure.configuration, model)
        shapes = [(len(closure.positions),), ()]
        yield Watch("the loop closure", [closure.function], [Part(configuration, shapes)])


def _watch_joint(place: str, joint: Any) -> Iterator[Watch]:
    """Yield the watches of a joint and of the joints that it is made of."""
    if isinstance(joint, tuple):
        for item in joint:
            yield from _watch_joint(place, item)
    elif isinstance(joint, UserDefined):
        parts = _parts_of(joint)
        names, functions = zip(*joint.functions, strict=True)
        yield Watch(place, functions, [parts[name] for name in names])
    elif isinstance(joint, Joint):
        if not type(joint).__module__.startswith("dalembert."):
            yield Watch(place, [joint], list(_parts_of(joint).values()))  # type: ignore[list-item]
            return
        if isinstance(joint, TimeDependent):
            motion = joint.motion
            yield Watch(place, [motion], [Part(lambda time: list(motion(time)), [()])])
        fields: Any = getattr(type(joint), "__dataclass_fields__", {})
        for name in fields:
            yield from _watch_joint(place, getattr(joint, name))


def _parts_of(joint: Joint) -> dict[str, Part]:
    """Return what a joint computes, under the names that `UserDefined` gives it."""
    q, v, X = (joint.nq,), (joint.nv,), (12,)

    def placement(numbers: Sequence[Any]) -> Transform:
        return Transform(Mat3(*numbers[:9]), Vec3(*numbers[9:]))

    def now(time: Any) -> Any:
        return time if joint.time_dependent else None

    return {
        "placement": Part(lambda q, time: joint.transform(q, now(time)), [q, ()]),
        "subspace": Part(lambda q, time: list(joint.subspace(q, now(time))), [q, ()]),
        "velocity": Part(lambda q, v, time: joint.velocity(q, v, now(time)), [q, v, ()]),
        "bias": Part(lambda q, v, time: joint.bias(q, v, now(time)), [q, v, ()]),
        "position_rate": Part(joint.position_rate, [q, v], False),
        "integrate": Part(joint.integrate, [q, v], False),
        "difference": Part(joint.difference, [q, q], False),
        "normalize": Part(joint.normalize, [q], False),
        "constraint forces": Part(lambda q, t: list(joint.constraint_subspace(q, now(t))), [q, ()], False),
        "active forces": Part(lambda q, t: list(joint.active_subspace(q, now(t))), [q, ()], False),
        "position_of": Part(lambda X, t: joint.position_of(placement(X), now(t)), [X, ()], False),
        "closure error": Part(lambda X, t: joint.closure_error(placement(X), now(t)), [X, ()], False),
        "constraint forces at a placement": Part(
            lambda X, t: list(joint.constraint_subspace_at(placement(X), now(t))), [X, ()], False
        ),
    }
