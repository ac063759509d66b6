"""Which bodies differ in numbers only: the kinds that a table of numbers can tell apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dalembert.model.body import Body
from dalembert.spatial.structure import leaves, rebuild

__all__ = ["kind", "numbers", "with_numbers"]


def _constants(body: Body) -> tuple[Any, ...]:
    return (body.placement, body.inertia, body.armature)


def numbers(body: Body) -> list[float]:
    """All constants of a body that dynamics reads."""
    return [*body.joint.parameters(), *leaves(_constants(body))]


def with_numbers(body: Body, values: list[Any]) -> Body:
    split = len(body.joint.parameters())
    placement, inertia, armature = rebuild(_constants(body), values[split:])
    joint = body.joint.with_parameters(values[:split])
    return replace(body, joint=joint, placement=placement, inertia=inertia, armature=armature)


def kind(body: Body) -> Any:
    """Bodies of equal kind differ in numbers only."""
    return type(body.joint), body.joint.structure(), _shape(_constants(body))


def _shape(value: Any) -> Any:
    """The nesting of a value without its numbers; the axis of a screw belongs to the structure."""
    if isinstance(value, (tuple, list)):
        return tuple(_shape(item) for item in value)
    return (
        type(value),
        getattr(value, "axis", None),
        tuple(_shape(item) for item in getattr(value, "factors", ())),
    )
