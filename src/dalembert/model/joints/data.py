"""Joints as plain data, and their numbers as flat lists."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

from dalembert.errors import ModelError
from dalembert.scalar import Scalar
from dalembert.spatial import AxialScrew, Transform, Vec3

__all__ = ["decode_placement", "encode", "flatten", "refill"]


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


def decode_placement(value: Any) -> Any:
    """Decode a placement that `encode` wrote; return any other value unchanged."""
    if isinstance(value, dict) and set(value) == {"rotation", "translation"}:
        from dalembert.spatial import Mat3

        return Transform(Mat3(*value["rotation"]), Vec3(*value["translation"]))
    return value


def flatten(value: Any) -> list[Scalar]:
    """Return the numbers of a field: a number, a vector, a placement, another joint, or a tuple of them."""
    parameters = getattr(value, "parameters", None)
    if callable(parameters):
        return list(parameters())
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in flatten(item)]
    leaves = getattr(value, "leaves", None)
    return list(leaves()) if leaves is not None else [value]


def refill(value: Any, source: Iterator[Scalar]) -> Any:
    """Return a value of the same form with numbers from `source`, in the order of `flatten`."""
    with_parameters = getattr(value, "with_parameters", None)
    if with_parameters is not None:
        return with_parameters([next(source) for _ in value.parameters()])
    if isinstance(value, tuple | list):
        return tuple(refill(item, source) for item in value)
    rebuilt = getattr(value, "rebuilt", None)
    return rebuilt(source) if rebuilt is not None else next(source)
