"""The kinds of bodies: bodies of one kind differ in numbers only, which a table holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dalembert.model.body import Body, Dependence
from dalembert.spatial.structure import leaves, rebuild

__all__ = ["kind", "numbers", "with_numbers"]


def _constants(body: Body) -> tuple[Any, ...]:
    return (body.placement, body.inertia, body.armature)


def numbers(body: Body) -> list[float]:
    """Return all constants of a body that dynamics reads."""
    return [*body.joint.parameters(), *leaves(_constants(body)), *_ratios(body.dependence)]


def with_numbers(body: Body, values: list[Any]) -> Body:
    split = len(body.joint.parameters())
    end = len(values) - len(_ratios(body.dependence))
    placement, inertia, armature = rebuild(_constants(body), values[split:end])
    joint = body.joint.with_parameters(values[:split])
    dependence = _with_ratios(body.dependence, values[end:])
    return replace(
        body, joint=joint, placement=placement, inertia=inertia, armature=armature, dependence=dependence
    )


def kind(body: Body) -> Any:
    """Return the kind of a body: bodies of equal kind differ in numbers only."""
    followed = -1 if body.dependence is None else len(body.dependence.terms)
    return type(body.joint), body.joint.structure(), _shape(_constants(body)), followed


def _ratios(dependence: Dependence | None) -> list[float]:
    """Return the numbers of a coupling: its offset and the ratio of each term."""
    return [] if dependence is None else [dependence.offset, *(ratio for _, _, ratio in dependence.terms)]


def _with_ratios(dependence: Dependence | None, values: list[Any]) -> Dependence | None:
    if dependence is None:
        return None
    terms = tuple((q, v, ratio) for (q, v, _), ratio in zip(dependence.terms, values[1:], strict=True))
    return Dependence(terms, values[0])


def _shape(value: Any) -> Any:
    """Return the nesting of a value without its numbers; the axis of a screw belongs to the structure."""
    if isinstance(value, (tuple, list)):
        return tuple(_shape(item) for item in value)
    return (
        type(value),
        getattr(value, "axis", None),
        tuple(_shape(item) for item in getattr(value, "factors", ())),
    )
