"""What the algorithms refuse before they start."""

from __future__ import annotations

import pytest

import dalembert as da
from dalembert.errors import ModelError

TREE_ONLY = (da.algorithms.rnea_spatial, da.algorithms.forward_dynamics_spatial)


@pytest.mark.parametrize("function", TREE_ONLY)
def test_loop_joints_are_refused_by_name_and_never_ignored(function: object) -> None:
    model = da.models.four_bar()
    q, v = model.random_state(0)
    name = model.loops.names[0]
    with pytest.raises(ModelError, match=rf'"{name}".*model\.tree\(\)'):
        function(model, q, v, v)  # type: ignore[operator]
    with pytest.raises(ModelError, match=name):
        function(da.algorithms.aligned(model), q, v, v)  # type: ignore[operator]


def test_the_mass_matrix_of_a_looped_model_is_its_spanning_trees() -> None:
    model = da.models.four_bar()
    q, v = model.random_state(0)
    assert (da.mass_matrix(model, q) == da.mass_matrix(model.tree(), q)).all()
    assert (da.bias_forces(model, q, v) == da.bias_forces(model.tree(), q, v)).all()


def arm_with_tip(**tip: object) -> da.Model:
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, (1.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.add_body("arm", parent="world", joint=da.Revolute(axis=(0, 0, 1)), inertia=inertia)
    builder.add_body("tip", parent="arm", joint=da.Revolute(axis=(0, 1, 0)), joint_name="wrist", **tip)  # type: ignore[arg-type]
    return builder.build()


def test_a_joint_that_moves_no_mass_is_named_by_forward_dynamics() -> None:
    model = arm_with_tip()
    q, v = model.random_state(0)
    assert any('"tip"' in line for line in model.report)
    for call in (
        lambda: da.forward_dynamics(model, q, v, v),
        lambda: da.forward_dynamics(model, q, v, v, method="crba"),
        lambda: da.inverse_mass_matrix(model, q),
        lambda: da.step(model, q, v, v, 0.01),
    ):
        with pytest.raises(ModelError, match=r'joint "wrist" moves body "tip".*armature'):
            call()
    assert da.inverse_dynamics(model, q, v, v).shape == (2,)


def test_armature_or_a_massive_child_makes_a_massless_body_move() -> None:
    model = arm_with_tip(armature=0.1)
    q, v = model.random_state(0)
    a = da.forward_dynamics(model, q, v, v)
    assert da.inverse_dynamics(model, q, v, a) == pytest.approx(v)


def test_a_freedom_without_inertia_is_named() -> None:
    builder = da.ModelBuilder()
    massless = da.RigidInertia.from_compact(0.0, da.spatial.Vec3.zero(), da.spatial.SymMat3.identity())
    builder.add_body("plate", parent="world", joint=da.Free(), joint_name="root", inertia=massless)
    model = builder.build(inertia="as_given")
    q = model.neutral()
    with pytest.raises(ModelError, match=r'joint "root" has a freedom along which nothing'):
        da.forward_dynamics(model, q, q[:6], q[:6])
