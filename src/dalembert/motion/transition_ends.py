"""The ends of a transition: states, contacts, limits, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.constraints import closing_equations, constraint_equations
from dalembert.api.kinematics import forward_kinematics
from dalembert.api.motion import normalize
from dalembert.errors import ArgumentError, DtypeError, ShapeError, StateError
from dalembert.model.joints import Fixed, Free, Joint
from dalembert.model.model import Model
from dalembert.motion.clip import Clip, ClipFrame
from dalembert.motion.closed_path import CONTACT, Contacts, closed_model
from dalembert.motion.configuration_spline import ConfigurationSpline

__all__ = ["bounds", "contacts_of", "end_state", "require_closed", "root_places"]

Array = npt.NDArray[np.float64]

CLOSURE_TOLERANCE: Final = 1e-9
"""Largest loop error [m or rad] and loop velocity [1/s], relative to 1 + |v|, at the ends."""

ACCELERATION_TOLERANCE: Final = 1e-6
"""Largest loop acceleration [1/s^2] at the ends; accelerations often come from finite differences."""


def end_state(model: Model, given: Any, name: str, frame: int) -> tuple[Array, ...]:
    """Return (q, v) or (q, v, a) of one end of the transition."""
    if isinstance(given, Clip):
        if given.model != model:
            raise ArgumentError(f"transition: {name} is a clip of another model, {given.model!r}")
        given = given[frame]
    if isinstance(given, ClipFrame):
        given = given[1:]
    parts = list(given) if isinstance(given, tuple) else [given]
    if len(parts) == 1:
        parts.append(np.zeros(model.nv))
    if len(parts) > 3:
        raise ShapeError(f"transition: {name} has {len(parts)} parts; give q, (q, v), (q, v, a) or a clip")
    sizes = (("q", model.nq), ("v", model.nv), ("a", model.nv))
    state = []
    for part, (letter, size) in zip(parts, sizes, strict=False):
        try:
            array = np.array(part, float)
        except Exception as error:  # of somebody's array, whatever it is
            raise DtypeError(f"transition: {letter} of {name} is not an array of numbers: {error}") from error
        if array.shape != (size,):
            raise ShapeError(
                f"transition: {letter} of {name} has the shape {array.shape}; ({size},) is expected"
            )
        if not np.isfinite(array).all():
            raise ArgumentError(f"transition: {letter} of {name} holds numbers that are not finite")
        state.append(array)
    unit: Array = np.asarray(normalize(model, state[0]), float)
    if np.abs(unit - state[0]).max(initial=0.0) > 1e-6:
        raise StateError(
            f"transition: a quaternion of {name} is not of unit length; see da.normalize(model, q)"
        )
    return (unit, *state[1:])


def root_places(model: Model) -> npt.NDArray[np.intp]:
    """Return the indices in v of the joints without motor, and of free bodies."""
    places: list[int] = []
    for body in model.bodies:
        floats = body.parent < 0 and isinstance(body.joint, Free)
        if floats or body.joint_name not in model.actuated:
            places.extend(range(body.v_slice.start, body.v_slice.stop))
    return np.array(sorted(places), np.intp)


def contacts_of(model: Model, given: Any, start: Array) -> Contacts:
    """Return the contacts: frames that joints tie to their places at the start."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DtypeError('contacts is a sequence of names of frames, ["left_sole"], or joints by name')
    joints = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names := list(given), Fixed())
    if len(joints) < len(given if isinstance(given, Mapping) else names):
        raise ArgumentError(f"contacts: a frame is named twice in {names}")
    for name, joint in joints.items():
        if model.frame(name).body < 0:
            raise ArgumentError(f'contacts: "{name}" is a frame of the world, which does not move')
        if not isinstance(joint, Joint) or joint.time_dependent:
            raise ArgumentError(f'contacts: "{name}" is held by {joint!r}; give a joint, such as da.Fixed()')
    poses = forward_kinematics(model, start)
    places = [np.append(poses[name].translation, poses[name].rotation.ravel()) for name in joints]
    return Contacts(tuple(joints), tuple(joints.values()), np.array(places).reshape(-1, 12))


def require_closed(model: Model, contacts: Contacts, state: tuple[Array, ...], name: str) -> None:
    """Raise an error if loops are open at an end, or open with its velocities or accelerations."""
    closed = closed_model(model, contacts, contacts.places.tolist())
    q, v, a = ([float(x) for x in part] for part in (*state, *[np.zeros(model.nv)] * (3 - len(state))))
    equations = constraint_equations(closed, q, v)
    residual = np.abs(closing_equations(closed, q).residual)
    rate = np.abs(equations.velocity_error)
    second = np.array([np.dot(row, a) - k for row, k in zip(equations.K, equations.k, strict=True)])
    checks = [
        ("is open by", "(m or rad)", residual, CLOSURE_TOLERANCE),
        ("opens at", "(m/s or rad/s)", rate, CLOSURE_TOLERANCE),
    ]
    if len(state) == 3:
        checks.append(("opens with", "(m/s^2 or rad/s^2)", np.abs(second), ACCELERATION_TOLERANCE))
    for what, unit, errors, allowed in checks:
        if not len(errors) or errors.max() <= allowed * (1.0 + np.abs(v).max(initial=0.0)):
            continue
        loop = equations.names[int(np.argmax(errors))]
        if loop.startswith(CONTACT):
            raise StateError(
                f'transition: the contact of "{loop.removeprefix(CONTACT)}", which stays where it is at the '
                f"start, {what} {errors.max():.3g} {unit} at {name}; both ends must have it in one place and "
                "at rest there, see da.inverse_kinematics, or let go of it"
            )
        raise StateError(
            f'transition: loop "{loop}" {what} {errors.max():.3g} {unit} at {name}; '
            "q, v = da.close_loops(model, q, v) closes it"
        )


def bounds(
    spline: ConfigurationSpline, start: Array, end: Array, limits: bool | tuple[Any, Any]
) -> tuple[Array, Array]:
    """Return limits (nv,) of control values that keep the spline within its limits; rotations have none."""
    model = spline.model
    lower, upper = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
    if limits is False:
        return lower, upper
    low, high = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    if limits is True:
        for body in model.bodies:
            if body.q_slice.stop > body.q_slice.start:
                low[body.q_slice], high[body.q_slice] = body.limits.lower, body.limits.upper
    else:
        given = [np.asarray(bound, float) for bound in limits]
        if [bound.shape for bound in given] != [(model.nq,)] * 2:
            raise ShapeError(f"transition: limits are True, False or two arrays of the shape ({model.nq},)")
        low, high = given
        if not (low <= high).all():
            raise ArgumentError("transition: a lower limit is not below its upper limit")
    lower[spline.plain] = np.minimum(low, np.minimum(start, end))[spline.plain_q]
    upper[spline.plain] = np.maximum(high, np.maximum(start, end))[spline.plain_q]
    return lower, upper
