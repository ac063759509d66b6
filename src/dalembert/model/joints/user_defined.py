"""Joints that a user defines by functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, TypeVar, final

from dalembert.errors import ModelError
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import combination, relative_volume
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import AxialScrew, Motion, Placement, Transform

Result = TypeVar("Result")

PositionFunction: TypeAlias = Callable[..., Any]
"""A function of (q) or, for a joint that depends on time, of (q, time)."""


def relative_velocity(X: Placement, rate: Placement) -> Motion:
    """Return a frame's velocity (R^T dR, R^T dp), in its own coordinates, from its placement's rate."""
    R, dR = X.R, rate.R
    return Motion((R.transpose() @ dR).axial(), R.transposed_times(rate.p))


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
