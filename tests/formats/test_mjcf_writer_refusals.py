"""Models that MJCF cannot hold are refused when they are written, with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import FileError
from dalembert.formats.mjcf.mjcf_writer import mjcf_text
from dalembert.model.joints import (
    Composite,
    Cylindrical,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)

ROD = da.RigidInertia(1.5, (0.1, 0.2, -0.3), [[0.3, 0.01, 0.02], [0.01, 0.25, -0.03], [0.02, -0.03, 0.2]])


def refused(joint: da.joints.Joint, **options: Any) -> str:
    builder = da.ModelBuilder()
    builder.add_body("body", "world", joint, "joint", **({"inertia": ROD} | options))
    with pytest.raises(FileError) as caught:
        mjcf_text(builder.build(inertia="as_given"))
    return str(caught.value)


def test_what_the_format_cannot_hold_is_an_error() -> None:
    assert 'joint "joint" is of kind helical' in refused(Helical(pitch=0.1))
    assert "composite with a planar" in refused(Composite((Planar(), Revolute())))
    assert "different armature" in refused(Spherical(), armature=(1.0, 2.0, 3.0))
    assert "has armature" in refused(Free(), armature=1.0)
    assert "has stiffness" in refused(Free(), stiffness=1.0)
    assert "different damping along its axes" in refused(Planar(), damping=(0.0, 1.0, 2.0))
    assert "slack at" in refused(Spherical(), stiffness=1.0, rest=(0.6, 0.8, 0.0, 0.0))
    assert "moves and has no mass" in refused(Revolute(), inertia=da.RigidInertia.zero())
    wrong = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.diag([1.0, 1.0, 5.0]))
    assert "triangle inequality" in refused(Revolute(), inertia=wrong)


def test_loop_joints_that_the_format_has_not_are_an_error() -> None:
    builder = da.ModelBuilder()
    builder.add_body("a", "world", Revolute(), inertia=ROD)
    builder.add_loop("slot", "a", "world", Prismatic())
    with pytest.raises(FileError, match='loop joint "slot" is of kind prismatic'):
        mjcf_text(builder.build())


def test_more_than_six_joints_on_one_mass_are_an_error() -> None:
    builder = da.ModelBuilder()
    builder.add_body("empty", "world", Composite((Prismatic(), Cylindrical(), Universal())))
    builder.add_body("full", "empty", Universal(), inertia=ROD)
    with pytest.raises(FileError, match='body "full" carries 7 freedoms'):
        mjcf_text(builder.build())


def test_long_chains_are_refused_before_the_reader_does() -> None:
    with pytest.raises(FileError, match="nested deeper"):
        mjcf_text(da.models.random_tree(0, bodies=300, joints=("revolute",), branching=0.0))
