"""Links merged over fixed joints keep their names: as frames, in contact pairs and as values."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tests.formats.urdf_files import joint, link, robot

import dalembert as da
from dalembert.contact.pairs import pair_names, pairs_of
from dalembert.errors import ModelError, UnknownNameError
from dalembert.formats.urdf import load_urdf

BALL = "<collision><geometry><sphere radius='0.05'/></geometry></collision>"
INERTIAL = (
    '<inertial><origin xyz="0.1 -0.05 0.2" rpy="0.3 -0.4 0.5"/><mass value="{mass}"/>'
    '<inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.0015" izz="0.025"/></inertial>'
)


def walker(
    root: Literal["fixed", "floating"] = "floating", *, foot: float = 0.5, trunk: float = 3.0
) -> da.Model:
    """Base and trunk fixed to each other, a leg of a thigh and a shin with a foot fixed to it."""
    text = robot(
        link("base", ""),
        link("trunk", INERTIAL.format(mass=trunk) + BALL),
        joint("mount", "base", "trunk", "fixed"),
        link("thigh", INERTIAL.format(mass=1.0) + BALL),
        joint("hip", "trunk", "thigh"),
        link("shin", INERTIAL.format(mass=0.8) + BALL),
        joint("knee", "thigh", "shin"),
        link("foot", INERTIAL.format(mass=foot) + BALL),
        joint("ankle", "shin", "foot", "fixed"),
    )
    return load_urdf(text.encode(), name="walker.urdf", root=root)


def names_of(model: da.Model, **chosen: Any) -> set[tuple[str, ...]]:
    return {tuple(sorted(pair_names(model, pair))) for pair in pairs_of(model, **chosen)}


def test_links_on_a_fixed_base_touch_what_they_touch_where_it_floats() -> None:
    """The trunk, which is the world's where it is fixed, and the thigh on it never do."""
    fixed, floating = names_of(walker("fixed")), names_of(walker())
    assert fixed == floating
    assert not [pair for pair in fixed if any("thigh" in x for x in pair) and any("trunk" in x for x in pair)]
    assert names_of(walker("fixed").with_ground()) > fixed


def test_values_of_merged_links_are_those_of_the_file() -> None:
    """The oracle is the file with the other masses in its text."""
    model = walker()
    assert model.value("foot.mass") == 0.5
    assert model.value("trunk.mass") == 3.0
    np.testing.assert_allclose(model.value("foot.com"), (0.1, -0.05, 0.2), atol=1e-15)
    assert {"foot.mass", "trunk.inertia"} <= set(model.value_names())
    changed, edited = model.with_values({"foot.mass": 2.0, "trunk.mass": 4.0}), walker(foot=2.0, trunk=4.0)
    q, v = model.random_state(1)
    np.testing.assert_allclose(da.mass_matrix(changed, q), da.mass_matrix(edited, q), atol=1e-12)
    np.testing.assert_allclose(da.bias_forces(changed, q, v), da.bias_forces(edited, q, v), atol=1e-11)
    assert changed.value("foot.mass") == 2.0
    assert da.Model.from_json(changed.to_json()) == changed


def test_values_of_merged_links_are_run_time_parameters() -> None:
    model = walker()
    q, v = model.random_state(2)
    masses = np.array([0.5, 1.0, 4.0])
    moved = da.rollout(
        model, np.tile(q, (3, 1)), np.tile(v, (3, 1)), steps=20, dt=1e-3, parameters={"foot.mass": masses}
    )
    for mass, end in zip(masses, moved.q[:, -1]):
        alone = da.rollout(walker(foot=float(mass)), q, v, steps=20, dt=1e-3)
        np.testing.assert_allclose(end, alone.q[-1], atol=1e-10)


def test_values_that_mean_nothing_or_two_things_are_refused() -> None:
    model = walker()
    with pytest.raises(ModelError, match=r'"shin\.mass" includes link "foot"'):
        model.with_values({"shin.mass": 2.0, "foot.mass": 1.0})
    with pytest.raises(UnknownNameError, match=r'link "trunk" is fixed to the world.*root="floating"'):
        walker("fixed").value("trunk.mass")
    arm = walker("fixed")
    cart = da.ModelBuilder()
    cart.add_body("cart", "world", da.Prismatic(), inertia=da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1)))
    both = cart.build().attach(arm, "cart", prefix="arm/")
    assert "arm/foot.mass" in both.value_names()
    with pytest.raises(UnknownNameError):
        both.value("arm/trunk.mass")


def test_names_of_merged_links_choose_contact_pairs() -> None:
    model = walker().with_ground()
    with_ground = {("ground", name) for name in ("trunk", "thigh", "shin", "foot")}
    every = {tuple(sorted(pair)) for pair in with_ground | {("trunk", "shin"), ("trunk", "foot")}}
    assert names_of(model) == every
    assert names_of(model, only=["foot"]) == {("foot", "ground"), ("foot", "trunk")}
    assert names_of(model, only=["shin"]) == {pair for pair in every if {"shin", "foot"} & {*pair}}
    assert names_of(model, exclude=[("foot", "trunk")]) == every - {("foot", "trunk")}
    law = da.contact.Rigid(pairs=["foot"], exclude=["trunk"])
    assert len(law.pairs_in(model)) == 1
    with pytest.raises(UnknownNameError, match=r'"fot".*"foot"'):
        names_of(model, only=["fot"])


@pytest.mark.parametrize(("excluded", "kept"), [("foot", "shin"), ("shin", "foot")])
def test_exclusions_mean_the_link_and_not_what_is_fixed_to_it(
    excluded: str, kept: str, tmp_path: Path
) -> None:
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1))
    ball = da.shapes.Sphere(0.1)
    builder.add_body("trunk", "world", da.Free(), inertia=solid, shapes=[ball])
    builder.add_body("thigh", "trunk", da.Revolute(), inertia=solid)
    builder.add_body("shin", "thigh", da.Revolute(), inertia=solid, shapes=[ball])
    builder.add_body("foot", "shin", da.Fixed(), inertia=solid, shapes=[ball])
    builder.exclude_contact("trunk", excluded)
    model = builder.build()
    assert names_of(model) == names_of(model.lumped()) == {(kept, "trunk")}
    da.save(model.lumped(), tmp_path / "a.json")
    assert names_of(da.load(tmp_path / "a.json")) == {(kept, "trunk")}


def test_merged_links_survive_mjcf(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    model = walker()
    model = model.with_values({"base.mass": 5.0})  # the body of the root has a mass of its own
    assert not any("mass" in loss for loss in da.save(model, tmp_path / "a.xml"))
    back = da.load(tmp_path / "a.xml")
    assert names_of(back.with_ground()) == names_of(model.with_ground())
    for name in ("base.mass", "trunk.mass", "shin.mass", "foot.mass"):
        assert back.value(name) == pytest.approx(model.value(name), rel=1e-12)
    q = model.random_state(3)[0]
    np.testing.assert_allclose(da.mass_matrix(back, q), da.mass_matrix(model, q), atol=1e-11)


def test_links_of_a_released_robot_have_their_names() -> None:
    """The feet and the trunk of A1, whose masses are those in its file."""
    found = find_spec("pinocchio")
    if found is None or found.origin is None:
        pytest.skip("example-robot-data comes with Pinocchio")
    prefix = Path(found.origin).parents[4]
    model = da.load(prefix / "share/example-robot-data/robots/a1_description/urdf/a1.urdf", root="floating")
    feet = [f"{leg}_foot" for leg in ("FR", "FL", "RR", "RL")]
    assert [model.value(f"{name}.mass") for name in feet] == [0.06] * 4
    assert model.value("trunk.mass") == 6.0
    pairs = pairs_of(model.with_ground(), only=feet, self_collision=False)
    assert [pair_names(model.with_ground(), pair) for pair in pairs] == [("ground", name) for name in feet]
