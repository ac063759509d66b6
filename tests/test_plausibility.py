"""Each rule finds the fault it is for, and finds none in sound models."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dalembert as da
from dalembert.analysis.plausibility import Finding, findings, mass_matrix_condition

BALL = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.diag([0.01, 0.01, 0.01]))


def at(x: float, y: float = 0.0, z: float = 0.0) -> da.Transform:
    return da.Transform.from_rotation_translation(np.eye(3), (x, y, z))


def model(*bodies: dict[str, object], **options: object) -> da.Model:
    """A chain of bodies on revolute joints about y; each is given what differs from a ball at 0.3 m."""
    builder = da.ModelBuilder()
    parent = "world"
    for number, body in enumerate(bodies):
        given = {"joint": da.Revolute(axis=(0, 1, 0)), "inertia": BALL, "placement": at(0.3), **body}
        name = given.pop("name", f"body{number}")
        builder.add_body(name, parent=parent, joint_name=f"joint{number}", **given)  # type: ignore[arg-type]
        parent = name  # type: ignore[assignment]
    return builder.build(inertia="as_given", **options)  # type: ignore[arg-type]


def only(found: list[Finding], rule: str) -> Finding:
    assert [finding.rule for finding in found] == [rule], found
    return found[0]


NAMES = ["pendulum", "double_pendulum", "two_link_arm", "cart_pole", "arm6", "arm7"]
NAMES += ["quadruped", "humanoid", "four_bar", "slider_crank"]


@pytest.mark.parametrize("name", NAMES)
def test_sound_models_are_left_alone(name: str) -> None:
    assert findings(getattr(da.models, name)()) == []


def test_broken_triangle_inequality_and_negative_moments_are_errors() -> None:
    for moments, words in (([0.01, 0.01, 0.03], "triangle inequality"), ([0.01, 0.01, -0.001], "negative")):
        inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.diag(moments))
        found = [f for f in findings(model({}, {"inertia": inertia})) if f.rule == "inertia"]
        assert found
        assert {f.severity for f in found} == {"error"}
        assert any(words in f.message for f in found)
        assert found[0].where == 'body "body1"'


def test_a_part_may_break_the_law_if_the_whole_body_keeps_it() -> None:
    """Fixed links are judged with the body that carries them."""
    broken = da.RigidInertia(0.1, (0.0, 0.0, 0.0), np.diag([1e-5, 1e-5, 3e-5]))
    assert findings(model({}, {"joint": da.Fixed(), "inertia": broken, "placement": at(0.0)})) == []


def test_a_massless_leaf_is_an_error_and_a_massless_body_between_is_a_note() -> None:
    none = da.RigidInertia.zero()
    leaf = only(findings(model({}, {"inertia": none})), "mass")
    assert leaf.severity == "error"
    assert '"joint1" moves no mass' in leaf.message
    with pytest.raises(da.errors.ModelError, match="joint1"):
        da.forward_dynamics(model({}, {"inertia": none}), [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    between = only(findings(model({"inertia": none}, {"joint": da.Revolute(axis=(1, 0, 0))})), "mass")
    assert between.severity == "note"
    assert findings(model({}, {"inertia": none, "armature": 0.1})) == []


def test_two_joints_that_move_the_same_inertia_the_same_way_make_a_singular_mass_matrix() -> None:
    none = da.RigidInertia.zero()
    twice = model({"inertia": none}, {"placement": at(0.0)})
    worst = findings(twice)[0]
    assert (worst.severity, worst.rule) == ("error", "mass matrix")
    assert math.isinf(mass_matrix_condition(twice)) or mass_matrix_condition(twice) > 1e13


def test_condition_does_not_depend_on_units() -> None:
    """Millimetres for metres in a prismatic joint scale a row and a column of M; the digits stay."""
    light = da.RigidInertia(1e-9, (0.0, 0.0, 0.0), np.diag([1e-15, 1e-15, 1e-15]))
    slider = {"joint": da.Prismatic(axis=(1, 0, 0)), "inertia": light}
    single = model({}, slider)
    assert mass_matrix_condition(single) < 10.0
    arm = da.models.arm6()
    M = np.array(da.mass_matrix(arm, arm.neutral()))
    D = np.diag(M) ** -0.5
    assert mass_matrix_condition(arm) == pytest.approx(np.linalg.cond(D[:, None] * M * D), rel=1e-9)


def test_neighbours_of_very_different_mass_are_found_both_ways() -> None:
    light, heavy = 1e-9, 1.0
    chain = model(
        {"inertia": da.RigidInertia(light, (0.1, 0, 0), 0.01 * light * np.eye(3))},
        {"inertia": da.RigidInertia(heavy, (0.1, 0, 0), 1e-2 * heavy * np.eye(3))},
        {"inertia": da.RigidInertia(light, (0.1, 0, 0), 0.01 * light * np.eye(3)), "placement": at(0.1)},
    )
    ratios = [f for f in findings(chain) if f.rule == "mass ratio"]
    assert [f.where for f in ratios] == ['body "body1"', 'body "body2"']  # heavy on light, light on heavy
    for ratio in ratios:
        assert ratio.severity == "warning"
        assert "1e+09" in ratio.message


def test_a_frame_far_from_its_body_is_a_warning_with_the_digits_it_costs() -> None:
    """RBDA-10.1-FARFRAME, RBDA-10.1-SOURCES: error grows with the square of the distance."""
    for distance, severity, digits in ((1000.0, "warning", "6.0"), (50.0, "note", "3.4")):
        far = da.RigidInertia(1.0, (distance, 0.0, 0.0), np.eye(3))
        finding = only(findings(model({"inertia": far})), "far frame")
        assert finding.severity == severity
        assert f"{distance:.3g} radii of gyration" in finding.message
        assert f"loses {digits} digits" in finding.message
    near = da.RigidInertia(1.0, (9.0, 0.0, 0.0), np.eye(3))
    assert findings(model({"inertia": near})) == []


def test_an_inertia_in_the_wrong_unit_is_wider_than_the_body() -> None:
    inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.0), 100.0 * np.eye(3))
    box = da.model.shapes.Box(size=(0.1, 0.1, 0.3))
    finding = only(findings(model({"inertia": inertia, "shapes": (box,)})), "gyration")
    assert "radius of gyration 10 m, but the body is about 0.3 m long" in finding.message


def test_limits_that_exclude_the_neutral_pose_or_every_motion_are_found() -> None:
    out = only(findings(model({"limits": da.Limits(lower=0.5, upper=1.0)})), "limits")
    assert out.severity == "warning"
    assert out.where == 'joint "joint0"'
    assert "neutral position 0 is outside its limits 0.5 to 1" in out.message
    shut = only(findings(model({"limits": da.Limits(lower=0.0, upper=0.0)})), "limits")
    assert shut.severity == "note"
    idle = only(findings(model({"limits": da.Limits(effort=0.0)})), "limits")
    assert idle.severity == "note"
    assert "effort limit is zero" in idle.message


def test_a_loop_that_is_open_at_the_neutral_pose_is_noted() -> None:
    builder = da.ModelBuilder()
    builder.add_body("a", parent="world", joint=da.Revolute(axis=(0, 1, 0)), inertia=BALL)
    builder.add_loop("ring", "a", "world", da.Revolute(axis=(0, 1, 0)), at(0.5), at(0.7))
    finding = only(findings(builder.build()), "loop")
    assert "open by 0.2" in finding.message


def test_what_does_not_move_has_nothing_to_go_wrong() -> None:
    assert findings(model({"joint": da.Fixed()})) == []


def test_errors_come_first() -> None:
    inertia = da.RigidInertia(1.0, (1000.0, 0.0, 0.0), np.diag([1.0, 1.0, 3.0]))
    found = findings(model({"inertia": inertia, "limits": da.Limits(effort=0.0)}))
    assert [f.severity for f in found] == ["error", "warning", "note"]


def test_models_of_hundreds_of_bodies_are_checked() -> None:
    chain = model(*({} for _ in range(400)))
    assert findings(chain) == []
