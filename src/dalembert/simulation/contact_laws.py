"""Contact laws of the caller's in rollouts: traced by themselves before each use, like policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, final

from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.recording import RecordedFunction, record_function
from dalembert.contact.compliant import States, Surface
from dalembert.contact.law import Law
from dalembert.errors import DtypeError, ShapeError
from dalembert.model.model import Model
from dalembert.scalar import Scalar

NO_MODEL = cast(Any, None)
"""Recorded laws are functions of numbers alone."""


@final
@dataclass(frozen=True)
class RecordedSurface(Surface):
    """A surface of the caller's as it computes now: f with its derivatives, and its states after a step."""

    count: int
    forces: RecordedFunction
    states: RecordedFunction | None

    @property
    def order(self) -> int:
        return self.count

    @property
    def functions(self) -> tuple[RecordedFunction, ...]:
        """The recorded functions."""
        return (self.forces,) if self.states is None else (self.forces, self.states)

    def force(self, z: States, p: Scalar, p_rate: Scalar) -> Scalar:
        return self.tangent(z, p, p_rate)[0]

    def tangent(self, z: States, p: Scalar, p_rate: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        f, by_p, by_rate = self.forces(NO_MODEL, p, p_rate, *([list(z)] if self.count else []))
        return f, by_p, by_rate

    def rate(self, z: States, p: Scalar, p_rate: Scalar) -> list[Scalar]:
        raise NotImplementedError("steps of a rollout use the states after a step")

    def after(self, z: States, p: Scalar, p_rate: Scalar, dt: Scalar) -> list[Scalar]:
        return [] if self.states is None else self.states(NO_MODEL, p, p_rate, list(z), dt)


def recorded_law(law: Law, model: Model, parameters: Sequence[ArrayArgument]) -> Law:
    """Return a law with what the caller's functions compute now."""
    surface, order = law.surface, law.order
    point = [ArrayArgument("gap", ()), ArrayArgument("rate", ())]
    states = [ArrayArgument("states", (order,))] if order else []

    def forces(_: Model, p: Scalar, p_rate: Scalar, z: Sequence[Scalar] = ()) -> list[Scalar]:
        found = surface.tangent(list(z), p, p_rate)
        if isinstance(found[0], str | complex | list | tuple | dict | None):
            raise DtypeError(f"Law: the normal force is {found[0]!r}; return one number")
        return list(found)

    def after(_: Model, p: Scalar, p_rate: Scalar, z: Sequence[Scalar], dt: Scalar) -> list[Scalar]:
        found = list(surface.after(list(z), p, p_rate, dt))
        if len(found) != order:
            raise ShapeError(f"Law: the surface has {len(found)} states after a step, and order {order}")
        return found

    owner: Any = law.normal
    source = owner.force if isinstance(owner, Surface) else owner
    force = record_function("normal force", source, model, [*point, *states], parameters, forces)
    kept = None
    if order:
        given = [*point, *states, ArrayArgument("dt", ())]
        kept = record_function("states of a surface", owner.after, model, given, parameters, after)
    return replace(law, normal=RecordedSurface(order, force, kept))
