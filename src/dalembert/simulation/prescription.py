"""Joints that move as given in a step: what `prescribed=` of a rollout means, on generic scalars.

A function of time is differentiated twice by dual numbers, so that positions, velocities and accelerations
belong together; between the positions of an array a joint has the mean velocity of each step. A joint is
moved to where it should be, not pulled: it has no error that could add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from dalembert.algorithms.integrators import GivenMotion, centroidal_rates, to_centroidal
from dalembert.call.arguments import Array, ArrayArgument
from dalembert.compiler.recording import RecordedFunction, record_function
from dalembert.contact.prescribed import PrescribedMotion, along_axes, mean_velocity
from dalembert.control import Belt
from dalembert.errors import ArgumentError, DtypeError, ModelError, ShapeError, TracingError, short_repr
from dalembert.host.foreign_arrays import is_foreign
from dalembert.model.body import Body
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.model import Model
from dalembert.scalar import Scalar, select


class _Instant(NamedTuple):
    """Positions, velocity variables and their rates of one joint."""

    q: list[Scalar]
    v: list[Scalar]
    a: list[Scalar]


@final
@dataclass(frozen=True)
class PrescribedJoint:
    """One joint: its name, whether it is a belt, and the function that gives its positions (a belt's
    velocities), else None: an array does."""

    name: str
    is_belt: bool
    function: Any = None

    @property
    def argument(self) -> str:
        """The name of the argument of a step that has its array."""
        return f"prescribed.{self.name}"

    def given_size(self, body: Body) -> int:
        """Return how many numbers are given at a time."""
        return body.nv if self.is_belt else body.nq

    def record(self, model: Model, parameters: Sequence[ArrayArgument]) -> PrescribedJoint:
        """Return the joint with what its function computes now: q, v and a at a time."""
        if self.function is None:
            return self

        def call(model: Model, time: Scalar) -> list[Scalar]:
            return [x for part in self.at(model, time) for x in part]

        time, role = [ArrayArgument("time", ())], f"motion of joint {self.name}"
        recorded = record_function(role, self.function, model, time, parameters, call)
        return replace(self, function=recorded)

    def at(self, model: Model, time: Scalar) -> _Instant:
        """Return the motion at a time; positions of a belt are empty."""
        body = body_of(model, self.name)
        size = self.given_size(body)
        if isinstance(self.function, RecordedFunction):
            found = self.function(model, time)
            k = 0 if self.is_belt else body.nq
            return _Instant(found[:k], found[k : k + body.nv], found[k + body.nv :])

        def given(t: Sequence[Scalar]) -> list[Scalar]:
            return _numbers(self.name, self.function(model, t[0]), size)

        def velocity(t: Sequence[Scalar]) -> list[Scalar]:
            here = given(t)
            return directional_derivative(
                lambda later: body.joint.difference(here, given(later)), t, [1.0], [*t, *here]
            )[1]

        v, a = directional_derivative(given if self.is_belt else velocity, [time], [1.0])
        return _Instant([] if self.is_belt else given([time]), v, a)


def _numbers(name: str, found: Any, size: int) -> list[Scalar]:
    """Return the numbers that the function of a joint returned, or refuse another count."""
    try:
        values = list(found)
    except (TypeError, TracingError):
        values = [found]
    if len(values) != size or any(isinstance(x, str | complex | list | tuple | dict | None) for x in values):
        raise ShapeError(
            f'prescribed: the function of joint "{name}" returned {short_repr(found)}; expected '
            + ("one number" if size == 1 else f"{size} numbers")
        )
    return values


@final
@dataclass(frozen=True)
class Prescription:
    """The prescribed joints of a rollout."""

    joints: tuple[PrescribedJoint, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the joints."""
        return tuple(joint.name for joint in self.joints)

    @property
    def has_functions(self) -> bool:
        """True if a joint moves by a function of the caller's."""
        return any(joint.function is not None for joint in self.joints)

    @property
    def functions(self) -> tuple[RecordedFunction, ...]:
        """The recorded functions, in the order of joints."""
        found = (joint.function for joint in self.joints)
        return tuple(item for item in found if isinstance(item, RecordedFunction))

    @property
    def identity(self) -> tuple[Any, ...]:
        """The key that tells the prescription from others with the same functions."""
        return tuple((joint.name, joint.is_belt, joint.function is None) for joint in self.joints)

    def record(self, model: Model, parameters: Sequence[ArrayArgument]) -> Prescription:
        """Return the prescription with what its functions compute now."""
        return Prescription(tuple(joint.record(model, parameters) for joint in self.joints))

    def arguments(self, model: Model) -> dict[str, tuple[int, ...]]:
        """Return the arguments of a step, with shapes."""
        arrays = [joint for joint in self.joints if joint.function is None]
        return {joint.argument: (joint.given_size(body_of(model, joint.name)),) for joint in arrays}

    def bodies(self, model: Model) -> list[tuple[PrescribedJoint, Body]]:
        """Return each joint with its body."""
        return [(joint, body_of(model, joint.name)) for joint in self.joints]

    def places(self, model: Model) -> frozenset[int]:
        """Return the places of the joints in v."""
        return frozenset(k for _, body in self.bodies(model) for k in range(model.nv)[body.v_slice])

    def starts(self, model: Model, time: Array, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the state with joints that functions move where these begin, at `time` of each sample."""
        moved = [(joint, body) for joint, body in self.bodies(model) if joint.function is not None]
        if not moved:
            return q, v
        batch = np.broadcast_shapes(np.shape(time), q.shape[:-1], v.shape[:-1])
        q, v = (np.broadcast_to(x, (*batch, x.shape[-1])).copy() for x in (q, v))
        for joint, body in moved:
            begun = joint.at(model, np.asarray(time, float))
            for array, place, values in ((q, body.q_slice, begun.q), (v, body.v_slice, begun.v)):
                for k, x in enumerate(values, start=place.start):
                    array[..., k] = x
        return q, v

    def step(
        self, model: Model, given: Mapping[str, Any], clock: Callable[[Scalar], Scalar]
    ) -> PrescribedStep:
        """Return the motion in the step that begins now; `given`: the arguments of the step, `clock(s)`: the
        time after s steps from its start."""
        q, v, dt, first = list(given["q"]), list(given["v"]), given["dt"], given["lasted"] <= 0.0
        parts: list[_JointStep] = []
        carried = list(given["driven"])
        for joint, body in self.bodies(model):
            earlier, carried = carried[: body.nv], carried[body.nv :]
            array = None if joint.function is not None else given[joint.argument]
            if array is None:
                now, end = joint.at(model, clock(0.0)), joint.at(model, clock(1.0))
                own_q, q_end = (body.own_q(q),) * 2 if joint.is_belt else (now.q, end.q)
                here = to_centroidal(body, own_q, now.v)[1]
                there = to_centroidal(body, q_end, end.v)[1]
                w = [0.5 * (a + b) for a, b in zip(here, there, strict=True)]
                rate = centroidal_rates(body, own_q, now.v, now.a)[1]
                begun = [x - dt * y for x, y in zip(w, rate, strict=True)]
                v_end, own_v = end.v, now.v
            else:
                own_q, own_v = body.own_q(q), body.own_v(v)
                q_end = own_q if joint.is_belt else list(array)
                w = (
                    to_centroidal(body, own_q, list(array))[1]
                    if joint.is_belt
                    else mean_velocity(body, own_q, q_end, dt)
                )
                begun = to_centroidal(body, own_q, own_v)[1]
                v_end = along_axes(body, q_end, w)
            earlier = [select(first, a, b) for a, b in zip(begun, earlier, strict=True)]
            q[body.q_slice], v[body.v_slice] = own_q, own_v
            parts.append(_JointStep(joint, body, earlier, w, q_end, v_end))
        return PrescribedStep(model, q, v, dt, clock, parts)


class _JointStep(NamedTuple):
    """One joint in a step: mean velocities in centroidal coordinates of the step before and of this one, and
    its state at the end."""

    joint: PrescribedJoint
    body: Body
    earlier: list[Scalar]
    w: list[Scalar]
    q_end: list[Scalar]
    v_end: list[Scalar]


@final
@dataclass(frozen=True)
class PrescribedStep:
    """The prescribed joints in one step of dt [s], and the whole state (q, v) where it begins."""

    model: Model
    q: list[Scalar]
    v: list[Scalar]
    dt: Scalar
    clock: Callable[[Scalar], Scalar]
    parts: list[_JointStep]

    @property
    def places(self) -> frozenset[int]:
        """The places of the joints in v."""
        return frozenset(k for part in self.parts for k in range(self.model.nv)[part.body.v_slice])

    @property
    def velocities_for_next_step(self) -> list[Scalar]:
        """The velocities that the next step takes for those of the previous one."""
        return [x for part in self.parts for x in part.w]

    @property
    def given(self) -> list[Scalar]:
        """All numbers that are given for the step, to be checked."""
        return [x for part in self.parts for x in (*part.w, *part.q_end, *part.v_end)]

    def motion(self) -> PrescribedMotion:
        """Return the motion as a step with contact takes it."""
        v, nv = list(self.v), self.model.nv
        earlier, velocity, q = [0.0] * nv, [0.0] * nv, list(self.q)
        for part in self.parts:
            body = part.body
            own = body.own_q(self.q)
            earlier[body.v_slice] = along_axes(body, own, part.earlier)
            velocity[body.v_slice] = along_axes(body, own, part.w)
            q[body.q_slice], v[body.v_slice] = part.q_end, part.v_end
        return PrescribedMotion(self.places, earlier, velocity, q, v)

    def stages(self) -> GivenMotion:
        """Return the motion as integrators take it, at any time within the step."""
        names = tuple(part.joint.name for part in self.parts)

        def at(elapsed: Scalar) -> tuple[dict[int, Scalar], dict[int, Scalar], dict[int, Scalar]]:
            q: dict[int, Scalar] = {}
            v: dict[int, Scalar] = {}
            a: dict[int, Scalar] = {}
            for part in self.parts:
                body, now = part.body, self._instant(part, elapsed)
                for found, place, values in zip((q, v, a), (body.q_slice, body.v_slice, body.v_slice), now):
                    found.update(enumerate(values, start=place.start))
            return q, v, a

        return GivenMotion(names, at)

    def _instant(self, part: _JointStep, elapsed: Scalar) -> _Instant:
        """Return the motion of a joint `elapsed` [s] after the start of the step."""
        body = part.body
        own, fraction = body.own_q(self.q), elapsed / self.dt
        if part.joint.function is not None:
            now = part.joint.at(self.model, self.clock(fraction))
            return now if not part.joint.is_belt else now._replace(q=own)
        v = along_axes(body, own, part.w)
        before = along_axes(body, own, part.earlier)
        rate = 1.0 / self.dt
        a = [(x - y) * rate for x, y in zip(v, before, strict=True)]
        if part.joint.is_belt:
            return _Instant(own, v, a)
        travel = [fraction * x for x in body.joint.difference(own, part.q_end)]
        return _Instant(body.joint.integrate(own, travel), v, a)


def prescription_of(
    model: Model, given: object, *, integrator: str
) -> tuple[Prescription | None, dict[str, Any]]:
    """Return the prescription that an argument `prescribed` means, and its arrays by arguments of a step."""
    if given is None:
        return None, {}
    if not isinstance(given, Mapping):
        raise DtypeError(
            f"rollout: prescribed is {type(given).__name__}; give a dict of motions by the names of joints"
        )
    if not given:
        return None, {}
    if integrator == "variational":
        raise ArgumentError(
            'rollout: integrator="variational" finds the motion that a least action has, and knows no '
            "prescribed joints; take another integrator"
        )
    if model.closure is not None:
        raise ArgumentError(
            "rollout: in a model with a loop closure q = gamma(y) no joint can be prescribed; make gamma "
            "depend on time instead"
        )
    joints, arrays = [], {}
    for name, motion in given.items():
        body = _independent(model, name)
        is_belt = isinstance(motion, Belt)
        source = motion.velocity if isinstance(motion, Belt) else motion
        joint = PrescribedJoint(name, is_belt, source if callable(source) else None)
        joints.append(joint)
        if joint.function is None:
            arrays[joint.argument] = _array(source, joint.given_size(body), name)
    return Prescription(tuple(joints)), arrays


def body_of(model: Model, name: str) -> Body:
    """Return the body that the named joint moves."""
    return next(body for body in model.bodies if body.joint_name == name)


def _independent(model: Model, name: str) -> Body:
    """Return the body of a joint that has variables of its own."""
    model.joint(name)  # which refuses a name that is unknown
    body = body_of(model, name)
    if body.dependence is not None:
        leaders = {place for _, place, _ in body.dependence.terms}
        named = [b.joint_name for b in model.bodies if b.dependence is None and not leaders.isdisjoint(
            range(b.v_slice.start, b.v_slice.stop))]  # fmt: skip
        raise ModelError(
            f'rollout: joint "{name}" follows others by a coupling; prescribe {", ".join(named)} instead'
        )
    if not body.nv:
        raise ModelError(f'rollout: joint "{name}" is fixed, and cannot be prescribed')
    return body


def _array(given: Any, size: int, name: str) -> Any:
    """Return the array of a joint; numbers `(steps,)` of a joint with one variable as `(steps, 1)`."""
    if given is None:
        raise DtypeError(f'rollout: prescribed["{name}"] is None; give a function of (model, t) or an array')
    if is_foreign(given):
        return given[..., None] if size == 1 and given.ndim == 1 and given.shape[0] != 1 else given
    values = np.asarray(given)
    if size == 1 and (values.ndim == 0 or (values.ndim == 1 and len(values) != 1)):
        return values[..., np.newaxis]
    return values
