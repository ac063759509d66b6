"""The interface of all joints, and its default implementations.

A joint constrains the motion of its successor frame F_s relative to its predecessor frame F_p (Featherstone
2008, sections 3.5 and 4.4):

    v_J = S(q, t) v + sigma(q, t)                                   (3.31)
    a_J = S dv/dt + c_J + v_s x v_J,   c_J = S° v + sigma°          (3.41 to 3.43)
    f_J = T_a tau + T lambda,   T_a^T S = 1,   T^T S = 0            (3.34 to 3.36)

° is the apparent derivative in F_s. S, T, T_a, v_J and c_J are in successor coordinates. q holds nq position
variables, v holds nv velocity variables; lengths are in metres, angles in radians.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dalembert.errors import ArgumentError, ModelError
from dalembert.model.joints import subspaces
from dalembert.model.joints.subspaces import (
    AXES,
    angle_about,
    basis_around,
    forces,
    moments,
    rotations,
    screw,
    translations,
    unit_axis,
)
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import AxialScrew, Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import principal_direction, quaternion_normalized
from dalembert.spatial.value import Value

# Joints as plain data, and their numbers as flat lists.


def encode(value: Any, place: str) -> Any:
    """Encode a field of a joint as lists, dictionaries, strings and floats; `place` names it in errors."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Vec3):
        return [encode(component, place) for component in value]
    if isinstance(value, Transform | AxialScrew):
        X = value.as_transform() if isinstance(value, AxialScrew) else value
        return {"rotation": [encode(entry, place) for entry in X.R], "translation": encode(X.p, place)}
    if isinstance(value, tuple | list):
        return [encode(item, place) for item in value]
    to_data = getattr(value, "to_data", None)
    if to_data is not None:
        return to_data()
    if callable(value):
        raise ModelError(
            f"{place}: the function {getattr(value, '__qualname__', value)!r} cannot be saved as data; "
            "save the parameters it is made of and build the joint again when loading"
        )
    raise ModelError(f"{place}: {type(value).__name__} cannot be saved as data; only plain numbers can")


def flatten(value: Any) -> list[Scalar]:
    """Return the numbers of a field: a number, a vector, a placement, another joint, or a tuple of them."""
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in flatten(item)]
    if isinstance(value, Joint):
        return value.parameters()
    return value.leaves() if isinstance(value, Value) else [value]


def refill(value: Any, source: Iterator[Scalar]) -> Any:
    """Return a value of the same form with numbers from `source`, in the order of `flatten`."""
    if isinstance(value, tuple | list):
        return tuple(refill(item, source) for item in value)
    if isinstance(value, Joint):
        return value.with_parameters([next(source) for _ in value.parameters()])
    return value.rebuilt(source) if isinstance(value, Value) else next(source)


def displacement(X: Transform) -> Motion:
    """Return d of a zero-DoF joint: the small motion from predecessor to successor (Table 8.1)."""
    # In the book's [E 0; L E], ½ (X53 - X62, ...) is the skew part of L = -E r x with its sign turned.
    return Motion(X.R.axial(), (X.R.transpose() @ X.p.skew()).axial())


UNLIMITED_RANGES: dict[str, tuple[float, float]] = {"angle": (-math.pi, math.pi), "length": (-1.0, 1.0)}
"""Range in which `random` draws a coordinate without limits, by its kind [rad, m]."""


class ExplicitConstraint(NamedTuple):
    """The explicit constraint X_J, S, v_J and c_J of one joint in one state: the book's jcalc."""

    X_J: Placement
    S: tuple[Motion, ...]
    v_J: Motion
    c_J: Motion


class Joint(ABC):
    """One kind of joint with its parameters: an immutable value.

    A subclass defines `coordinates`, `transform` and `subspace`, and overrides the defaults below, which are
    those of a joint with constant S and v = dq/dt. Where `coordinates` is a constant of the class, `nq`, `nv`
    and `unit_quaternions` follow from it.

    >>> X_J, S, v_J, c_J = da.Revolute((0, 0, 1)).jcalc([0.3], [2.0])
    >>> v_J.to_list()
    [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]
    """

    __slots__ = ()

    kind: ClassVar[str]
    """The name under which the joint is saved."""

    parameter_names: ClassVar[tuple[str, ...]] = ()
    """The fields that hold numbers, in the order of `parameters`."""

    constant_constraint_forces: ClassVar[bool] = False
    """True if T is the same at every position, so that a loop joint need not find its position first."""

    def __init_subclass__(cls) -> None:
        kinds = vars(cls).get("coordinates")
        if isinstance(kinds, tuple):
            starts = [i for i, kind in enumerate(kinds) if kind == "quaternion"][::4]
            own: dict[str, Any] = {"nq": len(kinds), "nv": len(kinds) - len(starts)}
            if starts:
                own["unit_quaternions"] = tuple(slice(start, start + 4) for start in starts)
            for name, value in own.items():
                if name not in vars(cls):
                    setattr(cls, name, value)

    @property
    def nq(self) -> int:
        """Number of position variables."""
        return len(self.coordinates)

    @property
    def nv(self) -> int:
        """Number of velocity variables."""
        return self.nq - len(self.unit_quaternions)

    @property
    @abstractmethod
    def coordinates(self) -> tuple[str, ...]:
        """The kind of each of the nq position variables: "angle" [rad], "length" [m] or "quaternion"."""

    @property
    def unit_quaternions(self) -> tuple[slice, ...]:
        """The slices of q that hold four numbers of unit norm."""
        return ()

    @property
    def time_dependent(self) -> bool:
        """True if the constraint depends on time, so that every method needs `time`."""
        return False

    @abstractmethod
    def transform(self, q: Scalars, time: Time = None) -> Placement:
        """Return X_J, the placement of the successor frame in the predecessor frame."""

    @abstractmethod
    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        """Return the motion subspace S, nv columns in successor coordinates."""

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        """Return v_J = S v + sigma, in successor coordinates."""
        return subspaces.combination(self.subspace(q, time), v)

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        """Return c_J = S° v + sigma° in successor coordinates; zero if S is constant."""
        return Motion.zero()

    def jcalc(self, q: Scalars, v: Scalars, time: Time = None) -> ExplicitConstraint:
        """Return the explicit joint constraint [X_J, S, v_J, c_J] (section 4.4, first form of jcalc)."""
        return ExplicitConstraint(
            self.transform(q, time), self.subspace(q, time), self.velocity(q, v, time), self.bias(q, v, time)
        )

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        """Return dq/dt = Q(q) v (Eq. 3.5; third form of jcalc)."""
        return list(v)

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        """Return the position reached from q by moving with the constant velocity dv for one unit of time."""
        return [position + step for position, step in zip(q, dv)]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        """Return the velocity at q0 that leads to q1 in unit time, the inverse of `integrate`."""
        return [end - start for start, end in zip(q0, q1)]

    def neutral(self) -> list[float]:
        """Return the position of zero displacement."""
        q = [0.0] * self.nq
        for part in self.unit_quaternions:
            q[part.start] = 1.0
        return q

    def normalize(self, q: Scalars) -> list[Scalar]:
        """Return q with its quaternions scaled to unit norm."""
        scaled = list(q)
        for part in self.unit_quaternions:
            scaled[part] = quaternion_normalized(q[part])
        return scaled

    def random(
        self,
        rng: np.random.Generator,
        lower: Sequence[float] | None = None,
        upper: Sequence[float] | None = None,
    ) -> list[float]:
        """Draw a position uniformly between the limits (nq numbers each; infinite for no limit).

        Without limits an angle is drawn from (-pi, pi) and a length from (-1, 1) m; a one-sided limit is
        given the width of that range. Quaternions are uniform over all rotations and ignore limits.
        """
        low = [-math.inf] * self.nq if lower is None else list(lower)
        high = [math.inf] * self.nq if upper is None else list(upper)
        if len(low) != self.nq or len(high) != self.nq:
            raise ArgumentError(
                f"{self.kind} joint: limits for random() have {len(low)} and {len(high)} numbers; "
                f"give {self.nq}, one for each position variable"
            )
        q = [_between(rng, *bounds) for bounds in zip(self.coordinates, low, high)]
        for part in self.unit_quaternions:
            p = rng.standard_normal(4)
            q[part] = (p / np.linalg.norm(p)).tolist()
        return q

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        """Return the constraint-force subspace T, 6 - nv columns in successor coordinates with T^T S = 0."""
        return subspaces.dual_bases(self.subspace(q, time))[1]

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        """Return T_a, nv columns in successor coordinates with T_a^T S = 1; see `active_subspace_along`."""
        return subspaces.dual_bases(self.subspace(q, time))[0]

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        """Return the position q that places the successor at X, or near X if X violates the constraint."""
        raise ModelError(
            f"a {self.kind} joint has no formula for its position at a transform, as a loop joint needs; "
            "put it into the tree and close the loop with a joint that has one, such as Fixed or Revolute"
        )

    def constraint_subspace_at(self, X: Transform, time: Time = None) -> tuple[Force, ...]:
        """Return T for the successor at X, or near X; loop joints use it, since they have no q."""
        if self.constant_constraint_forces:
            return self.constraint_subspace(self.neutral(), time)
        return self.constraint_subspace(self.position_of(X, time), time)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        """Return delta = T^T d, d the small motion from the successor's admissible to its actual frame.

        X places the successor in the predecessor. Eqs 8.25 to 8.27: X = X_err X_J. Joints without a closed
        form in Table 8.1 take X_J at `position_of(X)` and the zero-DoF formula for d.
        """
        q = self.position_of(X, time)
        d = displacement(self.transform(q, time).as_transform().inverse() @ X)
        return [d.dot(force) for force in self.constraint_subspace(q, time)]

    def implicit_constraint(self, X: Transform, time: Time = None) -> tuple[list[Scalar], tuple[Force, ...]]:
        """Return the implicit joint constraint [delta, T] at X (section 4.4, second form of jcalc)."""
        return self.closure_error(X, time), self.constraint_subspace_at(X, time)

    def singularity_measure(self, q: Scalars, time: Time = None) -> Scalar:
        """Return 0 where S loses rank, so that some motions of the joint have no velocity v; at most 1."""
        return 1.0

    def reversed(self) -> Joint:
        """Return this joint with predecessor and successor exchanged."""
        from dalembert.model.joints.combined import Reversed

        return Reversed(self)

    def structure(self) -> tuple[Any, ...]:
        """Return a hashable key: joints of equal structure differ in `parameters` only.

        Numbers that fix the structure (a coordinate axis) stand in `parameters` too, and must stay plain
        floats when joints of one structure are computed together, for a traced axis is a general one.
        """
        return (self.kind, *(_structure(getattr(self, name)) for name in self.parameter_names))

    def parameters(self) -> list[Scalar]:
        """Return the numbers of the joint as a flat list."""
        return [leaf for name in self.parameter_names for leaf in flatten(getattr(self, name))]

    def with_parameters(self, flat: Sequence[Scalar]) -> Joint:
        """Return this joint with other numbers, unchecked or traced, in the order of `parameters`."""
        remaining = list(flat)
        if len(remaining) != len(self.parameters()):
            raise ArgumentError(
                f"{self.kind} joint: {len(remaining)} parameters given, {len(self.parameters())} expected; "
                "keep the order and number of parameters()"
            )
        source = iter(remaining)
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        for name in self.parameter_names:
            values[name] = refill(values[name], source)
        # The constructors check and normalise, which a traced number does not allow.
        copy = object.__new__(type(self))
        for name, value in values.items():
            object.__setattr__(copy, name, value)
        return copy

    def to_data(self) -> dict[str, Any]:
        """Return the joint as plain data, from which `joint_from_data` restores it exactly."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"type": self.kind} | {
            name: encode(value, f"{self.kind} joint, {name}") for name, value in fields.items()
        }

    def __copy__(self) -> Joint:
        return self

    def __deepcopy__(self, memo: object) -> Joint:
        # Immutable, and a user's functions have no copies that are equal to them.
        return self

    def _now(self, time: Time) -> Scalar:
        """Return the time; raise an error if a time-dependent joint is given none."""
        if time is None:
            raise ArgumentError(f"a {self.kind} joint depends on time and none was given; pass time=…")
        return time


def _structure(value: Any) -> Any:
    """Return the part of a parameter that fixes structure: joints inside it, and coordinate axes."""
    if isinstance(value, tuple):
        return tuple(_structure(item) for item in value)
    if isinstance(value, Joint):
        return value.structure()
    return principal_direction(value) if isinstance(value, Vec3) else None


def _between(rng: np.random.Generator, coordinate: str, low: float, high: float) -> float:
    """Draw uniformly between two limits, either of which may be infinite."""
    default_low, default_high = UNLIMITED_RANGES.get(coordinate, (0.0, 0.0))
    width = default_high - default_low
    if math.isinf(low) and math.isinf(high):
        low, high = default_low, default_high
    elif math.isinf(low):
        low = high - width
    elif math.isinf(high):
        high = low + width
    return float(rng.uniform(low, high)) if low < high else float(low)


class ConstantSubspaceJoint(Joint):
    """Abstract: a joint that turns about some axes of a constant basis (t1, t2, a) and shifts along others.

    S holds the axes of `_turns` and `_shifts`, T those that they leave, T_a is S; v has the order of both.
    """

    __slots__ = ()

    _turns: ClassVar[tuple[int, ...]] = ()
    """The axes of the basis about which the joint turns."""
    _shifts: ClassVar[tuple[int, ...]] = ()
    """The axes of the basis along which the joint shifts."""

    constant_constraint_forces = True

    def _axes(self, chosen: Sequence[int]) -> list[Vec3]:
        """Return some axes of the basis: by default that of the successor frame."""
        return [AXES[i] for i in chosen]

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        return rotations(*self._axes(self._turns)) + translations(*self._axes(self._shifts))

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        angular: list[Scalar] = [0.0, 0.0, 0.0]
        linear: list[Scalar] = [0.0, 0.0, 0.0]
        for part, axes, own in ((angular, self._turns, v), (linear, self._shifts, v[len(self._turns) :])):
            for i, speed in zip(axes, own):
                part[i] = speed
        return Motion(Vec3(*angular), Vec3(*linear))

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        rest = [[i for i in range(3) if i not in free] for free in (self._turns, self._shifts)]
        return moments(*self._axes(rest[0])) + forces(*self._axes(rest[1]))

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        return moments(*self._axes(self._turns)) + forces(*self._axes(self._shifts))


@dataclass(frozen=True, slots=True, init=False)
class SingleAxisJoint(ConstantSubspaceJoint):
    """Abstract: a joint whose constant basis has the joint's own unit axis as its third.

    q holds the angle about the axis, the distance along it, or both.
    """

    axis: Vec3

    parameter_names: ClassVar[tuple[str, ...]] = ("axis",)

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "axis", unit_axis(axis, type(self).__name__))

    velocity = Joint.velocity

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return screw(self.axis, q[0] if self._turns else None, q[-1] if self._shifts else None)

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        angle = [angle_about(self.axis, X.R)] if self._turns else []
        return [*angle, self.axis.dot(X.p)] if self._shifts else angle

    def _axes(self, chosen: Sequence[int]) -> list[Vec3]:
        basis = basis_around(self.axis) if any(i < 2 for i in chosen) else (AXES[0], AXES[1], self.axis)
        return [basis[i] for i in chosen]
