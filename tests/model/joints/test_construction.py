"""Joints as values: checks, parameters, equality, saving and loading, polarity."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
from tests.model.joints.catalogue import CATALOGUE, SKEW, TIME, close, placement, state

from dalembert.errors import ArgumentError, DalembertError, ModelError, UnknownNameError
from dalembert.model.joints import (
    REGISTRY,
    Composite,
    Cylindrical,
    EllipsoidJoint,
    Fixed,
    Free,
    Helical,
    Joint,
    Prismatic,
    RackPinion,
    Reversed,
    Revolute,
    SphereInCylinder,
    SphericalEuler,
    TimeDependent,
    Universal,
    joint_from_data,
)
from dalembert.spatial import Transform, Vec3

SAVED = [name for name in CATALOGUE if not any(word in name for word in ("user", "driven"))]
WITH_AXIS = [Revolute, Prismatic, Cylindrical, Helical, SphereInCylinder, lambda a: Universal(a, (1, 2, 3))]


@pytest.fixture(params=CATALOGUE, name="joint")
def every_joint(request) -> Joint:
    return CATALOGUE[request.param]


@pytest.mark.parametrize("make", WITH_AXIS)
@pytest.mark.parametrize(
    "axis",
    [(0, 0, 0), (math.nan, 0, 1), (0, math.inf, 0), (0, 1), (1, 0, 0, 0), "xyz", 3, (None, 0, 1)],
    ids=str,
)
def test_an_axis_without_direction_is_refused(make, axis) -> None:
    """RBDA-4.4-TABLE41: zero, non-finite and misshapen axes raise an error that names the axis."""
    with pytest.raises(ModelError, match="axis"):
        make(axis)


@pytest.mark.parametrize(
    "axis", [(2, -1, 2), (3e200, 4e200, 0), (3e-200, 0, 4e-200), [0, 0, 5], np.array([0, 2, 0])]
)
def test_an_axis_is_normalised(axis) -> None:
    """RBDA-4.4-TABLE41: any length, also where its square leaves the range of floats."""
    made = Revolute(axis).axis
    exact = np.array(axis, dtype=float)
    exact = exact / np.abs(exact).max()
    close(list(made), exact / np.linalg.norm(exact), 1e-15)
    assert all(type(component) is float for component in made)


def test_a_unit_axis_keeps_every_bit() -> None:
    """Normalising what is normalised changes nothing, so that saved joints load bit for bit."""
    for seed in range(200):
        once = Revolute(np.random.default_rng(seed).standard_normal(3)).axis
        again = Revolute(once).axis
        close(list(again), list(once), 3e-16)
        assert Revolute(again).axis == again


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Universal((0, 0, 1), (0, 0, -2)), "parallel"),
        (lambda: Helical((0, 0, 1), math.nan), "pitch"),
        (lambda: RackPinion(math.inf), "radius"),
        (lambda: EllipsoidJoint(1.0, math.nan, 1.0), "b = nan"),
        (lambda: EllipsoidJoint(1.0, 1.0, -1.0), "c = -1"),
        (lambda: SphericalEuler("zzx"), "neighbours differ"),
        (lambda: SphericalEuler("abc"), "xyz|zyx"),
        (lambda: SphericalEuler(3), "zyx"),
        (lambda: Composite([]), "at least one"),
        (lambda: Composite([Free(), Revolute()]), "7 freedoms"),
        (lambda: Composite([Revolute()], []), "one for each joint"),
        (
            lambda: TimeDependent(Fixed(), CATALOGUE["driven revolute"], lambda t: [t]),
            "driver depends on time",
        ),
    ],
)
def test_impossible_joints_are_refused(build, words: str) -> None:
    """RBDA-4.4-TABLE41: the message names the fact and the remedy."""
    with pytest.raises(DalembertError, match=words):
        build()


def test_joints_are_frozen_values(joint: Joint) -> None:
    """Equal, hashable, copyable, immutable."""
    assert copy.deepcopy(joint) == joint
    assert hash(copy.copy(joint)) == hash(joint)
    assert len({joint, copy.copy(joint)}) == 1
    for field in dataclasses.fields(joint):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(joint, field.name, None)


@pytest.mark.parametrize("name", SAVED)
def test_saving_and_loading_changes_nothing(name: str) -> None:
    """RBDA-4.6-MODEL: through JSON and through pickle, bit for bit."""
    joint = CATALOGUE[name]
    loaded = joint_from_data(json.loads(json.dumps(joint.to_data())))
    assert loaded == joint
    assert type(loaded) is type(joint)
    assert loaded.parameters() == joint.parameters()
    assert pickle.loads(pickle.dumps(joint)) == joint


def test_saving_keeps_every_bit_of_random_axes() -> None:
    """RBDA-4.6-MODEL: axes whose normalisation is not exact."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        joint = Helical(rng.standard_normal(3), float(rng.standard_normal()))
        assert joint_from_data(json.loads(json.dumps(joint.to_data()))) == joint


def test_functions_cannot_be_saved() -> None:
    """RBDA-4.6-MODEL: the error names the joint and the function."""
    with pytest.raises(ModelError, match=r"user_defined joint, functions: the function '.*place'"):
        CATALOGUE["user helix"].to_data()
    with pytest.raises(ModelError, match=r"time_dependent joint, motion: the function '.*lambda"):
        CATALOGUE["driven revolute"].to_data()
    sympy = pytest.importorskip("sympy")
    with pytest.raises(ModelError, match="only plain numbers"):
        Revolute(sympy.symbols("x y z")).to_data()


def test_unknown_and_broken_data_are_refused() -> None:
    """RBDA-4.6-MODEL: the nearest joint type is named; missing or extra fields are named."""
    with pytest.raises(UnknownNameError, match='nearest: "revolute"'):
        joint_from_data({"type": "revolut", "axis": [0, 0, 1]})
    with pytest.raises(ModelError, match="axle"):
        joint_from_data({"type": "revolute", "axle": [0, 0, 1]})
    with pytest.raises(ModelError, match="type"):
        joint_from_data({"axis": [0, 0, 1]})
    with pytest.raises(ModelError, match="axis is zero"):
        joint_from_data({"type": "revolute", "axis": [0, 0, 0]})


def test_every_class_is_enrolled() -> None:
    """RBDA-4.4-USERJOINT: one line of REGISTRY a class, under its own name."""
    assert {type(joint) for joint in CATALOGUE.values()} == set(REGISTRY.values())
    assert all(REGISTRY[name].kind == name for name in REGISTRY)


def test_parameters_rebuild_the_joint(joint: Joint) -> None:
    """RBDA-4.4-JCALC: descriptors carry a type and parameters; the flat list restores the joint."""
    same = joint.with_parameters(joint.parameters())
    assert same == joint
    assert same.structure() == joint.structure()
    hash(joint.structure())
    if joint.parameters():
        with pytest.raises(ArgumentError, match="expected"):
            joint.with_parameters(joint.parameters()[:-1])


def test_parameters_may_be_a_batch(joint: Joint) -> None:
    """RBDA-4.4-JCALC: each sample has its own numbers; a row is the joint with that row's numbers."""
    flat = np.array(joint.parameters())
    # Placements hold rotations, which no other numbers of theirs are.
    spread = 0.0 if "composite" in str(joint.structure()) else 0.1
    tables = flat * (1.0 + spread * np.random.default_rng(1).standard_normal((3, len(flat))))
    q, v = state(joint, 1)
    batch = joint.with_parameters(list(tables.T))
    rows = [joint.with_parameters(row.tolist()) for row in tables]
    together = [np.broadcast_to(x, (3,)) for x in batch.transform(q, TIME).as_transform().leaves()]
    close(np.array(together).T, [row.transform(q, TIME).as_transform().leaves() for row in rows])
    together = [np.broadcast_to(x, (3,)) for x in batch.bias(q, v, TIME).to_list()]
    close(np.array(together).T, [row.bias(q, v, TIME).to_list() for row in rows])


def test_structure_tells_what_runs_the_same_arithmetic() -> None:
    """Hinges about one coordinate axis share it; about another, or a general one, they do not."""
    assert Revolute((0, 0, 1)).structure() == Revolute((0, 0, 3)).structure()
    assert Revolute(SKEW).structure() == Revolute((1, 2, 3)).structure()
    different = {Revolute(a).structure() for a in [(0, 0, 1), (0, 0, -1), (1, 0, 0), SKEW]} | {
        Prismatic().structure()
    }
    assert len(different) == 5


def test_reversal_exchanges_predecessor_and_successor(joint: Joint) -> None:
    """RBDA-4.4-REVERSE RBDA-4.1-POLARITY: Table 4.2, with the star on T that it lacks."""
    back = Reversed(joint)
    q, v = state(joint, 2)
    X = np.array(joint.transform(q, TIME).motion_matrix(), dtype=float)
    close(back.transform(q, TIME).motion_matrix(), np.linalg.inv(X), 1e-11)
    inverse, dual = np.linalg.inv(X), X.T
    for mine, theirs, transform in (
        (back.subspace(q, TIME), joint.subspace(q, TIME), inverse),
        (back.constraint_subspace(q, TIME), joint.constraint_subspace(q, TIME), dual),
        (back.active_subspace(q, TIME), joint.active_subspace(q, TIME), dual),
        ([back.velocity(q, v, TIME)], [joint.velocity(q, v, TIME)], inverse),
        ([back.bias(q, v, TIME)], [joint.bias(q, v, TIME)], inverse),
    ):
        for ours, original in zip(mine, theirs):
            close(ours.to_list(), -transform @ np.array(original.to_list(), dtype=float), 1e-11)
    close(back.position_rate(q, v), joint.position_rate(q, v))


def test_reversal_twice_is_the_joint_itself(joint: Joint) -> None:
    """RBDA-4.4-REVERSE: as a value by `reversed()`, and as a motion by wrapping twice."""
    assert isinstance(joint, Reversed) or joint.reversed().reversed() == joint
    twice = Reversed(Reversed(joint))
    q, v = state(joint, 3)
    close(twice.transform(q, TIME).motion_matrix(), joint.transform(q, TIME).motion_matrix())
    close(twice.velocity(q, v, TIME).to_list(), joint.velocity(q, v, TIME).to_list(), 1e-11)
    close(twice.bias(q, v, TIME).to_list(), joint.bias(q, v, TIME).to_list(), 1e-11)


def test_composite_of_hinges_is_the_joint_they_make() -> None:
    """RBDA-4.4-TABLE41: two hinges are a universal joint, three Euler angles, hinge and slide a cylinder."""
    x, y, z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    pairs = [
        (Composite([Revolute(x), Revolute(y)]), Universal(x, y)),
        (Composite([Revolute(z), Revolute(y), Revolute(x)]), SphericalEuler("zyx")),
        (Composite([Revolute(SKEW), Prismatic(SKEW)]), Cylindrical(SKEW)),
        (Composite([Prismatic(SKEW), Composite([Fixed()])]), Prismatic(SKEW)),
    ]
    for chain, joint in pairs:
        q, v = state(joint, 4)
        for a, b in zip(chain.jcalc(q, v)[2:], joint.jcalc(q, v)[2:]):
            close(a.to_list(), b.to_list())
        close(chain.transform(q).motion_matrix(), joint.transform(q).motion_matrix())
        close([s.to_list() for s in chain.subspace(q)], [s.to_list() for s in joint.subspace(q)])


def test_composite_placements_stand_before_their_joints() -> None:
    """RBDA-4.2-GEOMETRY: X = P_1 J_1 P_2 J_2, each placement in the frame before it."""
    first, second = placement(1), placement(2)
    joint = Composite([Revolute(SKEW), Helical((1, 0, 0), 0.2)], [first, second])
    a, b = Revolute(SKEW).transform([0.4]), Helical((1, 0, 0), 0.2).transform([-0.9])
    homogeneous = [np.array(X.homogeneous()) for X in (first, a, second, b)]
    close(joint.transform([0.4, -0.9]).homogeneous(), np.linalg.multi_dot(homogeneous))
    assert isinstance(joint.transform([0.4, -0.9]), Transform)


def test_singular_composites_are_measured() -> None:
    """RBDA-4.5-EULERZYX: a chain of hinges is singular where the Euler angles it makes are."""
    chain = Composite([Revolute((0, 0, 1)), Revolute((0, 1, 0)), Revolute((1, 0, 0))])
    assert chain.singularity_measure([0.3, math.pi / 2, 0.1]) < 1e-7
    assert math.isclose(chain.singularity_measure([0.3, 0.5, 0.1]), math.cos(0.5), rel_tol=1e-12)
    assert Revolute(Vec3.unit(0)).singularity_measure([0.1]) == 1.0
