"""The builder: what it accepts, in any order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.model.small_builders import rod, two_bodies

from dalembert.model import Limits, ModelBuilder
from dalembert.model.joints import Fixed, Free, Revolute
from dalembert.models import random_tree
from dalembert.models.random_trees import random_inertia
from dalembert.spatial import RigidInertia, Transform, Vec3


def test_bodies_may_come_in_any_order() -> None:
    """RBDA-4.1-NUMBER, RBDA-4.6-MODEL: parents that come later; the numbering is regular."""
    source = random_tree(1, bodies=30)
    order = np.random.default_rng(2).permutation(30)
    builder = ModelBuilder(gravity=source.gravity, name=source.name)
    for i in order:
        body = source.bodies[int(i)]
        parent = "world" if body.parent < 0 else source.bodies[body.parent].name
        builder.add_body(
            body.name, parent, body.joint, body.joint_name, placement=body.placement, inertia=body.inertia
        )
    model = builder.build()
    assert all(parent < i for i, parent in enumerate(model.parents))
    for body in model.bodies:
        twin = source.body(body.name)
        assert (body.placement, body.inertia, body.joint) == (twin.placement, twin.inertia, twin.joint)
        parents = [
            None if b.parent < 0 else m.bodies[b.parent].name for b, m in ((body, model), (twin, source))
        ]
        assert parents[0] == parents[1]
    assert (model.nq, model.nv) == (source.nq, source.nv)
    # Where a joint stands in q follows the numbering: slices tile q and v without gaps.
    assert [body.q_slice.start for body in model.bodies] == [
        sum(b.nq for b in model.bodies[:i]) for i in range(30)
    ]
    assert model.bodies[-1].v_slice.stop == model.nv


def test_a_chain_of_5000_links_builds_without_recursion() -> None:
    """Added from the tip to the root, the hardest order; twice the depth of Python's recursion limit and
    more.
    """
    builder = ModelBuilder()
    inertia = random_inertia(1)
    for i in reversed(range(5000)):
        builder.add_body(f"link{i}", f"link{i - 1}" if i else "world", Revolute(), inertia=inertia)
    model = builder.build()
    assert model.parents == tuple(range(-1, 4999))
    assert model.bodies[4999].name == "link4999"


def test_defaults() -> None:
    model = two_bodies().build()
    lower = model.body("lower")
    assert (lower.damping, lower.armature, lower.friction, lower.stiffness) == ((0.0,),) * 4
    assert lower.limits == Limits((-math.inf,), (math.inf,), (math.inf,), (math.inf,))
    assert lower.placement == Transform.identity()
    assert model.gravity == Vec3(0.0, 0.0, -9.81)
    assert model.actuated == ("shoulder", "elbow")
    named = ModelBuilder()
    named.add_body("only", "world", Revolute())
    assert named.build().joint("only").name == "only"


def test_one_number_stands_for_every_coordinate() -> None:
    builder = ModelBuilder()
    builder.add_body(
        "a", "world", Free(), damping=2, armature=[1, 2, 3, 4, 5, 6], limits=Limits(-1.0, 1.0, 3.0, 4.0)
    )
    body = builder.build().body("a")
    assert body.damping == (2.0,) * 6
    assert body.armature == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert (len(body.limits.lower), len(body.limits.velocity)) == (7, 6)
    assert body.rest == (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


def test_limits_as_a_pair() -> None:
    builder = two_bodies(limits=(-1, 2))
    assert builder.build().body("lower").limits.upper == (2.0,)


@pytest.mark.parametrize("name", ["größe", "left hand", "a/b/c", "1.5", "…"])
def test_names_of_all_kinds_are_accepted(name: str) -> None:
    builder = ModelBuilder()
    builder.add_body(name, "world", Revolute())
    model = builder.build()
    assert model.body(name).name == name
    assert model.value(f"{name}.mass") == 0.0


def test_nonphysical_inertias_are_taken_as_given_on_request() -> None:
    model = two_bodies(inertia=rod(1, 2, 4)).build(inertia="as_given")
    assert model.value("lower.inertia")[2, 2] == 4.0
    assert any('body "lower"' in line and "triangle inequality" in line for line in model.report)


@pytest.mark.parametrize("moments", [(0, 0, 0), (1, 1, 0), (1, 2, 3), (1, 1, 1)])
def test_point_masses_rods_and_plates_are_physical(moments: tuple[float, float, float]) -> None:
    """The boundary of the physical inertias belongs to them, wherever the body's origin is."""
    R = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    for com in ((10.0, -20.0, 30.0), (1000.1, -2000.3, 3000.7)):
        inertia = RigidInertia(3.0, com, (R @ np.diag(moments) @ R.T).tolist())
        two_bodies(inertia=inertia).build()


def test_the_report_names_massless_leaves_and_limits_off_the_neutral_position() -> None:
    report = two_bodies(limits=(0.5, 1.0)).build().report
    assert any('body "lower" moves, has no mass' in line for line in report)
    assert any('joint "elbow": the neutral position is outside the limits' in line for line in report)
    assert two_bodies(inertia=random_inertia(2)).build().report == ()
    assert two_bodies(joint=Fixed()).build().report == ()


def test_the_builder_can_go_on_after_building() -> None:
    builder = two_bodies()
    first = builder.build()
    builder.add_body("hand", "lower", Revolute())
    assert (len(first.bodies), len(builder.build().bodies)) == (2, 3)
