"""Joints made of other joints (reversed, driven by a prescribed motion, several in a row) or of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar, final

import numpy as np

from dalembert.errors import ModelError, items_of
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import combination, relative_volume
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import AxialScrew, Force, Motion, Placement, Transform

Result = TypeVar("Result")

PositionFunction: TypeAlias = Callable[..., Any]
"""A function of (q) or, for a joint that depends on time, of (q, time)."""


def relative_velocity(X: Placement, rate: Placement) -> Motion:
    """Return a frame's velocity (R^T dR, R^T dp), in its own coordinates, from its placement's rate."""
    R, dR = X.R, rate.R
    return Motion((R.transpose() @ dR).axial(), R.transposed_times(rate.p))


class DerivedJoint(Joint):
    """Abstract: a joint that places its frames otherwise than `joint` does, while q and v mean the same."""

    __slots__ = ()

    joint: Joint

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.joint.coordinates


def _of_inner_joint(name: str) -> Any:
    """Return the property or method of a derived joint that is its inner joint's."""
    declared = getattr(Joint, name)
    if isinstance(declared, property):
        return property(lambda self: getattr(self.joint, name), doc=declared.__doc__)

    @functools.wraps(declared)
    def method(self: DerivedJoint, *arguments: Any, **options: Any) -> Any:
        return getattr(self.joint, name)(*arguments, **options)

    return method


for _name in (
    *("nq", "nv", "unit_quaternions", "time_dependent"),
    *("position_rate", "integrate", "difference", "neutral", "normalize", "random", "singularity_measure"),
    *("constraint_subspace", "active_subspace"),
):
    setattr(DerivedJoint, _name, _of_inner_joint(_name))


@final
@dataclass(frozen=True, slots=True)
class Reversed(DerivedJoint):
    """A joint with predecessor and successor exchanged; q and v keep their meaning (Featherstone 2008 Table
    4.2).

    With X = ^pX_s of the joint as it was: X_J = X, S = -X S, v_J = -X v_J, c_J = -X c_J, T = -X* T. (The
    table prints the row of T without the star; only the force transform keeps T^T S = 0.)

    >>> da.joints.Reversed(da.Prismatic((1, 0, 0))).transform([0.5]).p
    Vec3(x=-0.5, y=0.0, z=0.0)
    """

    joint: Joint

    kind = "reversed"
    parameter_names = ("joint",)

    def reversed(self) -> Joint:
        return self.joint

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return self.joint.transform(q, time).inverse()

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.subspace(q, time))

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return -self.joint.transform(q, time).inverse_apply(self.joint.velocity(q, v, time))

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return -self.joint.transform(q, time).inverse_apply(self.joint.bias(q, v, time))

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.constraint_subspace(q, time))

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.active_subspace(q, time))

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return self.joint.position_of(X.inverse(), time)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        # d and T both change sign and frame, so that delta = T^T d is the same number.
        return self.joint.closure_error(X.inverse(), time)


@final
@dataclass(frozen=True, slots=True)
class TimeDependent(DerivedJoint):
    """A joint whose predecessor frame is carried along a prescribed motion x(t).

    `driver` is the joint that the motion drives and `motion(time)` its nq position variables, written with
    the functions of `dalembert.scalar`; `joint` keeps its freedoms. The successor stands at P(t) X(q), P(t)
    = driver at x(t). With sigma_P the velocity of P in its own frame and X the joint's transform
    (Featherstone 2008 section 3.5):

        v_J = S v + X sigma_P                                          sigma = X sigma_P
        c_J = S° v + X sigma_P° + v_J x S v                            since dX/dt = -(S v) x X

    sigma_P and sigma_P° are exact derivatives of the placement with respect to time. A cylinder whose
    sliding is prescribed is `TimeDependent(Revolute(a), driver=Prismatic(a), motion=…)`; with `Fixed()`
    everything is prescribed.

    >>> swing = lambda t: [0.1 * da.scalar.sin(2.0 * t)]
    >>> joint = da.joints.TimeDependent(da.Revolute((0, 1, 0)), driver=da.Prismatic((1, 0, 0)), motion=swing)
    >>> print(joint.velocity([0.0], [0.0], 0.0).to_list())  # carried along x at 0.2 m/s
    [0.0, 0.0, 0.0, 0.2, 0.0, 0.0]
    """

    joint: Joint
    driver: Joint
    motion: Callable[[Scalar], Sequence[Scalar]]

    kind = "time_dependent"
    parameter_names = ("joint", "driver")
    time_dependent = True

    def __post_init__(self) -> None:
        for name in ("joint", "driver"):
            if not isinstance(getattr(self, name), Joint):
                raise ModelError(
                    f"TimeDependent: {name} must be a Joint, got {type(getattr(self, name)).__name__}"
                )
        if not callable(self.motion):
            raise ModelError(f"TimeDependent: motion is a function of time, got {type(self.motion).__name__}")
        if self.driver.time_dependent:
            raise ModelError("TimeDependent: the driver depends on time itself; put its motion into `motion`")

    def structure(self) -> tuple[Any, ...]:
        return (*Joint.structure(self), self.motion)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return self._placement(self._now(time)) @ self.joint.transform(q, time)

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        return self.joint.subspace(q, time)

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        sigma = self._driven_velocity(self._now(time))
        return self.joint.velocity(q, v, time) + self.joint.transform(q, time).apply(sigma)

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        now = self._now(time)
        sigma, sigma_rate = directional_derivative(lambda t: self._driven_velocity(t[0]), [now], [1.0])
        X = self.joint.transform(q, time)
        own = self.joint.velocity(q, v, time)
        # v_J x S v, in which S v x S v is zero for a joint that does not depend on time.
        total = own + X.apply(sigma)
        return self.joint.bias(q, v, time) + X.apply(sigma_rate) + total.cross(own)

    def constraint_subspace_at(self, X: Transform, time: Time = None) -> tuple[Force, ...]:
        return self.joint.constraint_subspace_at(self._seen_from_driver(X, time), time)

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return self.joint.position_of(self._seen_from_driver(X, time), time)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return self.joint.closure_error(self._seen_from_driver(X, time), time)

    def _placement(self, time: Scalar) -> Transform:
        """Return P(t) after checking the number of its coordinates."""
        x = list(self.motion(time))
        if len(x) != self.driver.nq:
            raise ModelError(
                f"TimeDependent: motion returned {len(x)} numbers; "
                f"give the {self.driver.nq} positions of its {self.driver.kind} driver"
            )
        return self.driver.transform(x).as_transform()

    def _driven_velocity(self, time: Scalar) -> Motion:
        """Return the driven velocity sigma_P in the driven frame."""
        return relative_velocity(*directional_derivative(lambda t: self._placement(t[0]), [time], [1.0]))

    def _seen_from_driver(self, X: Transform, time: Time) -> Transform:
        return self._placement(self._now(time)).inverse() @ X


@final
@dataclass(frozen=True, slots=True, init=False)
class Composite(Joint):
    """Joints one after the other without a body between them; q and v are theirs, one after the other.

    Placement k is where joint k's predecessor frame stands in the successor frame of joint k - 1 (of the
    whole joint for k = 0); the last successor frame is that of the whole. Frame by frame, with u the
    velocity and c its apparent derivative since the predecessor:

        u_k = X_k u_{k-1} + v_Jk                            (1)
        c_k = X_k c_{k-1} + c_Jk + u_k x v_Jk               (2)  since dX_k/dt = -v_Jk x X_k

    At most six freedoms; T and T_a follow from S by elimination.

    >>> joint = da.joints.Composite([da.Revolute((1, 0, 0)), da.Revolute((0, 1, 0))])  # a universal joint
    >>> joint.nq, joint.nv
    (2, 2)
    """

    joints: tuple[Joint, ...]
    placements: tuple[Transform, ...]

    kind = "composite"
    parameter_names = ("joints", "placements")

    def __init__(self, joints: Sequence[Joint], placements: Sequence[Placement] | None = None) -> None:
        members = tuple(items_of(joints))
        where = tuple([Transform.identity()] * len(members) if placements is None else items_of(placements))
        for name, items, kind in (("joints", members, Joint), ("placements", where, Placement)):
            wrong = [type(item).__name__ for item in items if not isinstance(item, kind)]
            if wrong:
                listed = "Joints" if kind is Joint else "Transforms"
                raise ModelError(f"Composite: {name} is a list of {listed}, got a {wrong[0]} in it")
        if not members:
            raise ModelError("Composite: no joints given; give at least one, or use Fixed")
        if len(where) != len(members):
            raise ModelError(
                f"Composite: {len(where)} placements given for {len(members)} joints; give one for each joint"
            )
        freedoms = sum(joint.nv for joint in members)
        if freedoms > 6:
            raise ModelError(
                f"Composite: the joints have {freedoms} freedoms together, more than a body's 6; "
                "put bodies between them"
            )
        object.__setattr__(self, "joints", members)
        object.__setattr__(self, "placements", tuple(placement.as_transform() for placement in where))

    @property
    def nv(self) -> int:
        return sum(joint.nv for joint in self.joints)

    @property
    def coordinates(self) -> tuple[str, ...]:
        return tuple(kind for joint in self.joints for kind in joint.coordinates)

    @property
    def unit_quaternions(self) -> tuple[slice, ...]:
        slices, start = [], 0
        for joint in self.joints:
            slices += [slice(start + part.start, start + part.stop) for part in joint.unit_quaternions]
            start += joint.nq
        return tuple(slices)

    @property
    def time_dependent(self) -> bool:
        return any(joint.time_dependent for joint in self.joints)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        X = Transform.identity()
        for placement, joint, own in zip(self.placements, self.joints, self._split(q, "nq")):
            X = X @ placement @ joint.transform(own, time)
        return X

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        columns: list[Motion] = []
        for placement, joint, own in zip(self.placements, self.joints, self._split(q, "nq")):
            X = placement @ joint.transform(own, time)
            columns = [X.apply(column) for column in columns] + list(joint.subspace(own, time))
        return tuple(columns)

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return self._motion(q, v, time)[0]

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return self._motion(q, v, time)[1]

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return self._join("position_rate", self._split(q, "nq"), self._split(v, "nv"))

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        return self._join("integrate", self._split(q, "nq"), self._split(dv, "nv"))

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return self._join("difference", self._split(q0, "nq"), self._split(q1, "nq"))

    def neutral(self) -> list[float]:
        return self._join("neutral")

    def normalize(self, q: Scalars) -> list[Scalar]:
        return self._join("normalize", self._split(q, "nq"))

    def random(
        self,
        rng: np.random.Generator,
        lower: Sequence[float] | None = None,
        upper: Sequence[float] | None = None,
    ) -> list[float]:
        low = [None] * len(self.joints) if lower is None else self._split(lower, "nq")
        high = [None] * len(self.joints) if upper is None else self._split(upper, "nq")
        return self._join("random", [rng] * len(self.joints), low, high)

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        moving = [k for k, joint in enumerate(self.joints) if joint.nq > 0]
        if len(moving) != 1:
            return Joint.position_of(self, X, time)  # not super(): slots make another class than this
        before, after = Transform.identity(), Transform.identity()
        for k, (placement, joint) in enumerate(zip(self.placements, self.joints)):
            if k < moving[0]:
                before = before @ placement @ joint.transform([], time)
            elif k == moving[0]:
                before = before @ placement
            else:
                after = after @ placement @ joint.transform([], time)
        return self.joints[moving[0]].position_of(before.inverse() @ X @ after.inverse(), time)

    def singularity_measure(self, q: Scalars, time: Time = None) -> Scalar:
        return relative_volume(self.subspace(q, time))

    def _motion(self, q: Scalars, v: Scalars, time: Time) -> tuple[Motion, Motion]:
        """Return v_J and c_J by (1) and (2)."""
        u, c = Motion.zero(), Motion.zero()
        parts = zip(self.placements, self.joints, self._split(q, "nq"), self._split(v, "nv"))
        for placement, joint, own, speed in parts:
            X = placement @ joint.transform(own, time)
            v_J = joint.velocity(own, speed, time)
            u = X.apply(u) + v_J  # (1)
            c = X.apply(c) + joint.bias(own, speed, time) + u.cross(v_J)  # (2)
        return u, c

    def _join(self, method: str, *arguments: Sequence[Any]) -> list[Scalar]:
        """Return the results of one method of every joint, each with its own arguments, in one list."""
        return [x for joint, *own in zip(self.joints, *arguments) for x in getattr(joint, method)(*own)]

    def _split(self, values: Scalars, size: str) -> list[Scalars]:
        """Split q (size "nq") or v ("nv") into the joints' own."""
        sizes = [getattr(joint, size) for joint in self.joints]
        return [values[end - own : end] for own, end in zip(sizes, accumulate(sizes))]


@final
@dataclass(frozen=True, slots=True, init=False)
class UserDefined(Joint):
    """A joint given by functions on generic scalars (the user's own jcalc, Featherstone 2008 section 4.6).

    `placement(q)` returns the successor placed in the predecessor, a `Transform` or `AxialScrew`, written
    with the functions of `dalembert.scalar`. That is enough: S, v_J, sigma and c_J are its exact
    derivatives, taken with dual numbers, of which tracing keeps only what the joint needs. Each may be given
    instead, where a formula is known:

        subspace(q) -> nv motions;  bias(q, v) -> c_J
        position_rate(q, v) -> nq rates, needed where v is not dq/dt (then give integrate and difference as
        well) integrate(q, dv), difference(q0, q1), normalize(q) -> lists;  position_of(X) -> q, needed to
        close a loop

    With `time_dependent=True` placement, subspace, bias and position_of take the time as one more argument,
    and sigma = the velocity at v = 0 is taken from the placement's dependence on time. T and T_a follow from
    S by elimination.

    >>> from dalembert.spatial import Mat3, Transform, Vec3
    >>> def parabola(q):  # a slider on the curve z = x^2
    ...     return Transform(Mat3.identity(), Vec3(q[0], 0.0, q[0] * q[0]))
    >>> joint = da.joints.UserDefined("parabola", 1, 1, parabola, coordinates=["length"])
    >>> joint.subspace([0.5])[0].linear.to_list()
    [1.0, 0.0, 1.0]
    """

    name: str
    number_of_positions: int
    number_of_velocities: int
    functions: tuple[tuple[str, PositionFunction], ...]
    coordinate_kinds: tuple[str, ...]
    quaternion_starts: tuple[int, ...]
    neutral_position: tuple[float, ...]
    rheonomic: bool

    kind = "user_defined"

    def __init__(
        self,
        name: str,
        nq: int,
        nv: int,
        placement: PositionFunction,
        *,
        subspace: PositionFunction | None = None,
        bias: PositionFunction | None = None,
        position_rate: PositionFunction | None = None,
        integrate: PositionFunction | None = None,
        difference: PositionFunction | None = None,
        normalize: PositionFunction | None = None,
        position_of: PositionFunction | None = None,
        neutral: Sequence[float] | None = None,
        coordinates: Sequence[str] | None = None,
        unit_quaternions: Sequence[slice] = (),
        time_dependent: bool = False,
    ) -> None:
        if not 0 <= nv <= 6 or nq < nv:
            raise ModelError(
                f"UserDefined {name!r}: nq = {nq} and nv = {nv}; a joint has 0 to 6 velocity variables and "
                "at least as many position variables"
            )
        own_manifold = (position_rate, integrate, difference)
        if any(own_manifold) and not all(own_manifold):
            raise ModelError(
                f"UserDefined {name!r}: position_rate, integrate and difference belong together; "
                "give all three or none"
            )
        if nq != nv and position_rate is None:
            raise ModelError(
                f"UserDefined {name!r}: nq = {nq} differs from nv = {nv}, so that v is not dq/dt; "
                "give position_rate, integrate and difference"
            )
        kinds = ("angle",) * nq if coordinates is None else tuple(coordinates)
        start = (0.0,) * nq if neutral is None else tuple(float(x) for x in neutral)
        if len(start) != nq or len(kinds) != nq:
            raise ModelError(
                f"UserDefined {name!r}: neutral and coordinates must have nq = {nq} entries each"
            )
        if any(part.start + 4 != part.stop or part.stop > nq for part in unit_quaternions):
            raise ModelError(f"UserDefined {name!r}: a quaternion is a slice of 4 of the nq = {nq} positions")
        named = ("placement", "subspace", "bias", "position_rate", "integrate", "difference", "normalize")
        given = (placement, subspace, bias, position_rate, integrate, difference, normalize, position_of)
        functions = tuple((key, f) for key, f in zip((*named, "position_of"), given) if f is not None)
        quaternions = tuple(part.start for part in unit_quaternions)
        values = (name, nq, nv, functions, kinds, quaternions, start, bool(time_dependent))
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    @property
    def nq(self) -> int:
        return self.number_of_positions

    @property
    def nv(self) -> int:
        return self.number_of_velocities

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.coordinate_kinds

    @property
    def unit_quaternions(self) -> tuple[slice, ...]:
        return tuple(slice(start, start + 4) for start in self.quaternion_starts)

    @property
    def time_dependent(self) -> bool:
        return self.rheonomic

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, self.name, self.functions)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        X = self._call("placement", q, time=time)
        if not isinstance(X, Transform | AxialScrew):
            raise ModelError(
                f"UserDefined {self.name!r}: placement returned {type(X).__name__}; return a Transform"
            )
        return X

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        if self._has("subspace"):
            columns = tuple(self._call("subspace", q, time=time))
            if len(columns) != self.nv:
                raise ModelError(
                    f"UserDefined {self.name!r}: subspace returned {len(columns)} columns; "
                    f"give nv = {self.nv}"
                )
            return columns
        units = [[1.0 if j == i else 0.0 for j in range(self.nv)] for i in range(self.nv)]
        return tuple(self._derived_velocity(q, unit, time, 0.0) for unit in units)

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        if not self._has("subspace"):
            return self._derived_velocity(q, v, time, 1.0)
        total = combination(self.subspace(q, time), v)
        if self.time_dependent:
            total = total + self._derived_velocity(q, [0.0] * self.nv, time, 1.0)
        return total

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        if self._has("bias"):
            given: Motion = self._call("bias", q, v, time=time)
            return given
        return self._derivative(lambda x, t: self.velocity(x, v, t), q, v, time, 1.0)[1]

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return list(self._call("position_rate", q, v))

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        return list(self._call("integrate", q, dv))

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return list(self._call("difference", q0, q1))

    def neutral(self) -> list[float]:
        return list(self.neutral_position)

    def normalize(self, q: Scalars) -> list[Scalar]:
        return list(self._call("normalize", q)) if self._has("normalize") else list(q)

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(self._call("position_of", X, time=time))

    def singularity_measure(self, q: Scalars, time: Time = None) -> Scalar:
        return relative_volume(self.subspace(q, time))

    def _derived_velocity(self, q: Scalars, v: Scalars, time: Time, clock: float) -> Motion:
        """Return the velocity of the placement at velocities v while time passes at the rate `clock`."""
        return relative_velocity(*self._derivative(self.transform, q, v, time, clock))

    def _derivative(
        self, f: Callable[[Scalars, Time], Result], q: Scalars, v: Scalars, time: Time, clock: float
    ) -> tuple[Result, Result]:
        """Return f(q, time) and its rate at velocities v while time passes at the rate `clock`."""
        rates = self.position_rate(q, v)
        if not self.time_dependent:
            return directional_derivative(lambda x: f(x, None), q, rates)
        extended = [*q, self._now(time)]
        return directional_derivative(lambda x: f(x[:-1], x[-1]), extended, [*rates, clock])

    def _has(self, key: str) -> bool:
        return any(name == key for name, _ in self.functions)

    def _call(self, key: str, *arguments: Any, time: Time = None) -> Any:
        """Call a user's function, with the time if both take it; default: the method of all joints."""
        function = dict(self.functions).get(key)
        if function is None:
            return getattr(Joint, key)(self, *arguments)
        if self.time_dependent and key in ("placement", "subspace", "bias", "position_of"):
            return function(*arguments, self._now(time))
        return function(*arguments)
