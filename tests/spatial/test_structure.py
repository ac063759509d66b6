"""Nested values as flat lists of scalars and back."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest
from tests.spatial.dense import Random

from dalembert.errors import ShapeError
from dalembert.spatial import AxialScrew, Motion, ScrewChain, Transform, Vec3, leaves, rebuild, scrx, scrz


@dataclass(frozen=True)
class Carry:
    name: str
    X: object
    parts: tuple
    weight: float
    rest: object = None
    moving: bool = True


class Pair(NamedTuple):
    left: object
    right: object


def test_any_nesting_survives_being_taken_apart():
    value = Carry(
        "arm",
        ScrewChain((scrx(0.1, 0.2), scrz(0.3, 0.4))),
        (
            Random(0).rigid()[0],
            [Random(0).motion()[0], 3.0],
            Pair(Vec3.unit(0), {"a": Random(0).articulated()[0]}),
        ),
        2.5,
    )
    flat = leaves(value)
    assert len(flat) == 6 + 10 + 6 + 1 + 3 + 21 + 1
    again = rebuild(value, flat)
    assert again == value
    assert type(again.parts[2]) is Pair
    doubled = rebuild(value, [2.0 * item for item in flat])
    assert doubled.weight == 5.0
    assert doubled.name == "arm"
    assert doubled.X.factors[0].axis == 0
    assert doubled.X.factors[1] == AxialScrew(2, 2.0 * scrz(0.3, 0.4).c, 2.0 * scrz(0.3, 0.4).s, 0.8)


def test_derived_quantities_are_not_leaves():
    screw = scrz(0.3, 0.4)
    _ = screw.turn
    inertia = Random(0).rigid()[0]
    _ = inertia.euler_tensor
    assert len(leaves(screw)) == 3
    assert len(leaves(inertia)) == 10
    changed = rebuild(inertia, [2.0 * item for item in leaves(inertia)])
    assert changed.euler_tensor == inertia.euler_tensor * 2.0


def test_a_wrong_number_of_leaves_is_refused():
    with pytest.raises(ShapeError, match="a Motion of 6 scalars cannot be rebuilt from 5"):
        rebuild(Motion.zero(), [0.0] * 5)
    with pytest.raises(ShapeError, match="from 13"):
        rebuild(Transform.identity(), [0.0] * 13)
