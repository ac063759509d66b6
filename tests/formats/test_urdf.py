"""What a URDF file means: its dynamics are Pinocchio's, its frames, shapes, limits and couplings are kept."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats.urdf_files import BOX, SWING, arm, chain, joint, link, menagerie, robot

import dalembert as da
from dalembert import algorithms
from dalembert.formats.urdf import load_urdf, nearest_physical
from dalembert.model import Model
from dalembert.model.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from dalembert.spatial import RigidInertia, SymMat3, physical_problems

RELATIVE_ERROR = 1e-12


def load(text: str, **options: Any) -> Model:
    return load_urdf(text.encode(), name="test.urdf", **options)


def close(a: Any, b: Any) -> bool:
    a, b = np.asarray(a, float), np.asarray(b, float)
    return bool(np.abs(a - b).max() <= RELATIVE_ERROR * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("root", [None, "floating"])
@pytest.mark.parametrize("which", ["menagerie", "mimic", "chain"])
def test_dynamics_are_those_of_pinocchio(which: str, root: Any) -> None:
    """Pinocchio has no joint that mimics a continuous one, so that the menagerie is compared uncoupled."""
    pin = pytest.importorskip("pinocchio")
    follower = SWING + '<mimic joint="elbow" multiplier="-1.5" offset="0.2"/>'
    text = {
        "menagerie": menagerie(),
        "mimic": arm(link("tip"), joint("wrist", "lower", "tip", "revolute", follower)),
        "chain": chain(12),
    }[which]
    for base in ("base", "l0"):
        text = text.replace(link(base, ""), link(base))
    model = load(text, root=root)
    if which == "menagerie":
        model = model.uncoupled()
    free = (pin.JointModelFreeFlyer(),) if root else ()
    theirs = pin.buildModelFromXML(text.replace("capsule", "cylinder"), *free, mimic=which == "mimic")
    bridge = da.interop.from_pinocchio(theirs)
    assert {item.name for item in model.joints} == {item.name for item in bridge.model.joints}
    # Where each of the bridge's variables stands in ours.
    places_q, places_v = np.zeros(model.nq, int), np.zeros(model.nv, int)
    for item in bridge.model.joints:
        places_q[item.q_slice] = np.arange(model.nq)[model.joint(item.name).q_slice]
        places_v[item.v_slice] = np.arange(model.nv)[model.joint(item.name).v_slice]
    rng = np.random.default_rng(5)
    for _ in range(3):
        q, _ = model.random_state(rng)
        v, tau = rng.normal(size=(2, model.nv))
        q_pin = bridge.q_back(q[places_q])
        v_pin = bridge.v_back(v[places_v])
        data = theirs.createData()
        M_pin = pin.crba(theirs, data, q_pin)
        M_pin = np.triu(M_pin) + np.triu(M_pin, 1).T
        M = np.array(algorithms.mass_matrix(model, list(q)), float)
        assert close(bridge.mass_matrix_back(M[np.ix_(places_v, places_v)]), M_pin)
        bias_pin = pin.rnea(theirs, data, q_pin, v_pin, np.zeros(theirs.nv))
        bias = np.array(algorithms.bias_forces(model, list(q), list(v)))
        assert close(bridge.tau_back(bias[places_v]), bias_pin)
        # Their ABA has no mimic joints, so that M a + b = tau is solved instead.
        a_pin = np.linalg.solve(M_pin, bridge.tau_back(tau[places_v]) - bias_pin)
        a = np.array(algorithms.forward_dynamics(model, list(q), list(v), list(tau)), float)
        assert np.allclose(bridge.a_back(a[places_v]), a_pin, rtol=1e-9, atol=1e-9)


def test_fixed_links_are_merged_and_their_frames_kept() -> None:
    model = load(menagerie())
    assert set(model.bodies.names) == {"slide", "upper", "lower", "finger", "thumb", "drone", "puck"}
    assert set(model.frames.names) == {"base", "plate", "sensor"}
    upper = model.body("upper")
    assert math.isclose(upper.inertia.mass, 2.4)
    # The sensor's frame is two fixed joints away; so is the box on it.
    step = model.frame("plate").placement
    sensor = model.frame("sensor").placement
    assert close((step @ step).homogeneous(), sensor.homogeneous())
    assert close(upper.shapes[-1].placement.homogeneous(), sensor.homogeneous())
    q, _ = model.random_state(1)
    pose = da.forward_kinematics(model, q)["sensor"]
    body = da.forward_kinematics(model, q)["upper"]
    assert close(pose.translation, body.rotation @ np.array(list(sensor.p)) + body.translation)


def test_shapes_keep_size_place_colour_and_use() -> None:
    shapes = load(menagerie()).body("upper").shapes
    assert [type(shape) for shape in shapes] == [Box, Sphere, Cylinder, Capsule, Mesh, Box]
    box, sphere, _, _, mesh, _ = shapes
    assert (box.size, box.rgba, box.visual, box.collision) == (
        (0.1, 0.2, 0.3),
        (1.0, 0.0, 0.0, 1.0),
        True,
        False,
    )
    assert (sphere.visual, sphere.collision) == (False, True)
    assert (mesh.path, mesh.scale, mesh.rgba) == ("meshes/a.stl", (1.0, -1.0, 1.0), (1.0, 0.0, 0.0, 1.0))


def test_limits_damping_and_friction_are_kept() -> None:
    model = load(menagerie())
    shoulder, elbow = model.body("upper"), model.body("lower")
    assert (shoulder.limits.lower, shoulder.limits.upper) == ((-2.0,), (2.5,))
    assert (shoulder.limits.velocity, shoulder.limits.effort) == ((4.0,), (30.0,))
    assert (shoulder.damping, shoulder.friction) == ((0.3,), (0.1,))
    assert (elbow.limits.lower, elbow.limits.upper) == ((-math.inf,), (math.inf,))


def test_mimics_of_mimics_follow_the_leader() -> None:
    """Mimic joints are couplings; the thumb follows the finger, which follows the elbow."""
    model = load(menagerie())
    q, v = model.random_state(3)
    own = {body.joint_name: body.own_q(q) for body in model.bodies}
    assert close(own["grip"], [-0.4 * own["elbow"][0] + 0.1])
    assert close(own["thumb"], [2.0 * own["grip"][0]])
    rates = {body.joint_name: body.own_v(v) for body in model.bodies}
    assert close(rates["thumb"], [-0.8 * rates["elbow"][0]])


@pytest.mark.parametrize(
    ("mimic", "angle"),
    [
        ('<mimic joint="elbow" multiplier="0" offset="0.7"/>', 0.7),
        ('<mimic joint="weld" offset="-0.3"/>', -0.3),
    ],
)
def test_a_joint_that_follows_nothing_that_moves_is_fixed_at_its_offset(mimic: str, angle: float) -> None:
    text = arm(
        link("end"),
        joint("weld", "lower", "end", "fixed", ""),
        link("tip"),
        joint("wrist", "lower", "tip", "revolute", '<axis xyz="0 0 1"/><limit effort="1"/>' + mimic),
    )
    model = load(text)
    assert "tip" not in model.bodies.names
    plain = load(text.replace(mimic, ""))
    locked = plain.lock(["wrist"], [0.0, 0.0, angle]).lumped()
    assert close(
        np.array(locked.body("lower").inertia.leaves()), np.array(model.body("lower").inertia.leaves())
    )
    assert any(f"it is fixed at {angle:g}" in line for line in model.report)


def test_a_planar_joint_moves_in_the_plane_normal_to_its_axis() -> None:
    """The normal's frame is ours to choose, so the test asks only what does not depend on it."""
    normal = np.array([2.0, -1.0, 2.0]) / 3.0
    model = load(menagerie(" ".join(map(repr, normal.tolist()))))
    puck = model.body("puck")
    q, _ = model.random_state(4)
    R0 = np.array(puck.placement.as_transform().R.to_list())
    pose = da.forward_kinematics(model, q)["puck"]
    at_rest = da.forward_kinematics(model, model.neutral())["puck"]
    assert close(at_rest.rotation, R0)
    moved = R0.T @ (pose.translation - at_rest.translation)
    assert abs(moved @ normal) < 1e-12
    assert np.linalg.norm(moved) > 0.01
    assert close(R0.T @ pose.rotation @ normal, normal)


def test_shapes_of_a_fixed_root_are_the_worlds() -> None:
    """Those of links that are fixed to it too, each at its link's frame."""
    at = '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>'
    box = f'<collision name="b">{at}<geometry><box size="1 1 2"/></geometry></collision>'
    text = robot(
        link("base", box),
        link("post", box.replace('"b"', '"c"')),
        link("a"),
        joint("fix", "base", "post", "fixed", ""),
        joint("j", "post", "a"),
    )
    model = load(text)
    b, c = model.world_shapes
    assert (b.name, b.kind, b.collision, b.visual) == ("b", "box", True, False)
    assert close(c.placement.homogeneous(), (model.frame("post").placement @ b.placement).homogeneous())
    assert not any("shapes" in line for line in model.report)
    floating = load(text, root="floating")
    assert floating.world_shapes == ()
    assert [shape.name for shape in floating.body("base").shapes] == ["b", "c"]


def test_the_root_is_fixed_unless_asked_otherwise() -> None:
    heavy = robot(link("base"), link("a"), joint("j", "base", "a"))
    assert load(heavy).nv == load(heavy, root="fixed").nv == 1
    assert any(
        'links fixed to the world: the inertia of "base" is ignored' in line for line in load(heavy).report
    )
    floating = load(heavy, root="floating")
    assert (floating.nv, floating.joints.names) == (7, ("root_joint", "j"))
    assert math.isclose(floating.total_mass, 3.0)
    own = robot(link("world", ""), link("a"), joint("free", "world", "a", "floating", ""))
    assert load(own).nv == load(own, root="floating").nv == 6


def test_a_link_called_world_is_the_world_only_as_a_fixed_root() -> None:
    text = robot(
        link("world"), link("a"), joint("j", "world", "a"), link("b"), joint("k", "a", "b", "fixed", "")
    )
    assert load(text).frames.names == ("b",)
    floating = load(text, root="floating")
    assert floating.bodies.names == ("world_link", "a")
    assert any('is called "world_link"' in line for line in floating.report)


def test_rotated_inertias_are_turned_into_the_links_frame() -> None:
    text = robot(link("base", ""), link("a"), joint("j", "base", "a"))
    roll, pitch, yaw = 0.3, -0.4, 0.5

    def turn(axis: int, angle: float) -> Any:
        R = np.eye(3)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        R[i, i] = R[j, j] = math.cos(angle)
        R[i, j], R[j, i] = -math.sin(angle), math.sin(angle)
        return R

    R = turn(2, yaw) @ turn(1, pitch) @ turn(0, roll)
    I = np.array([[0.02, 0.001, -0.002], [0.001, 0.03, 0.0015], [-0.002, 0.0015, 0.025]])
    inertia = load(text).body("a").inertia
    assert close(list(inertia.com), [0.1, -0.05, 0.2])
    assert close(inertia.inertia_at_com.to_list(), R @ I @ R.T)


def test_a_quaternion_may_stand_for_rpy() -> None:
    half = 0.5 * 0.8
    quat = f'<origin xyz="1 2 3" quat_xyzw="0 {math.sin(half)!r} 0 {math.cos(half)!r}"/>'
    ours = load(robot(link("base", ""), link("a"), joint("j", "base", "a", origin=quat)))
    euler = '<origin xyz="1 2 3" rpy="0 0.8 0"/>'
    same = load(robot(link("base", ""), link("a"), joint("j", "base", "a", origin=euler)))
    assert close(ours.body("a").placement.homogeneous(), same.body("a").placement.homogeneous())


def test_names_may_hold_anything_but_nothing() -> None:
    text = robot(link("base", ""), link("Ärm / 腕 1"), joint("j é", "base", "Ärm / 腕 1"))
    assert load(text).bodies.names == ("Ärm / 腕 1",)
    assert load_urdf(text.replace("?>", " encoding='utf-16'?>", 1).encode("utf-16"), name="x").nv == 1


def test_a_chain_of_5000_links_loads_in_linear_time() -> None:
    """The time is printed, not asserted; a quadratic walk would take minutes here."""
    text = chain(5000)
    start = time.perf_counter()
    model = load(text)
    print(f"5000 links: {time.perf_counter() - start:.2f} s")
    assert len(model.bodies) == 4999


def test_what_has_no_effect_is_listed_with_its_lines() -> None:
    report = "\n".join(load(menagerie()).report)
    for words in ("<transmission> in <robot>", "<gazebo> in <robot>"):
        assert f"ignored: {words}, line " in report
    text = arm(
        '<link name="x" colour="7"><fancy/><wheel radius="1"/>hello</link>',
        joint("f", "lower", "x", "fixed", ""),
    )
    report = "\n".join(load(text).report)
    for words in (
        "attribute 'colour' of <link>",
        "<fancy> in <link>",
        "<wheel> in <link>",
        "text inside <link>",
    ):
        assert f"ignored: {words}, line 8" in report


BROKEN = {
    "triangle": '<inertia ixx="0.5" ixy="0.02" ixz="0.03" iyy="0.01" iyz="0" izz="0.01"/>',
    "negative": '<inertia ixx="-0.1" ixy="0" ixz="0.01" iyy="0.2" iyz="0" izz="0.2"/>',
}


@pytest.mark.parametrize("kind", BROKEN)
def test_impossible_inertias_are_used_refused_or_repaired_as_asked(kind: str) -> None:
    text = arm().replace(BOX, BROKEN[kind], 1)
    given = load(text)
    assert any("principal moments" in line and "used as given" in line for line in given.report)
    with pytest.raises(da.errors.InertiaError, match=r'test.urdf line 4 .*link "upper".*principal moments'):
        load(text, inertia="strict")
    repaired = load(text, inertia="repair")
    assert not physical_problems(repaired.body("upper").inertia)
    assert sum(line.startswith("repaired: test.urdf line 4") for line in repaired.report) == 1
    assert close(list(repaired.body("upper").inertia.com), list(given.body("upper").inertia.com))
    assert load(arm(), inertia="strict") == load(arm(), inertia="repair") == load(arm())


def test_an_impossible_part_of_a_possible_body_is_no_reason_to_complain() -> None:
    """Inertias are judged after fixed links are merged."""
    part = f'<inertial><mass value="0.001"/>{BROKEN["negative"].replace("0.1", "0.0001")}</inertial>'
    text = arm(link("label", part), joint("glue", "lower", "label", "fixed", ""))
    heavy = text.replace('ixx="0.02"', 'ixx="0.3"').replace('iyy="0.03"', 'iyy="0.3"').replace("0.025", "0.3")
    load(heavy, inertia="strict")


def test_the_repaired_inertia_is_the_nearest() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        A = rng.normal(size=(3, 3))
        A = A + A.T
        given = RigidInertia(2.0, (0.1, 0.2, 0.3), SymMat3.of(A.tolist()))
        found = nearest_physical(given)
        assert not physical_problems(found)
        J = np.array(found.inertia_at_com.to_list())
        distance = np.linalg.norm(J - A)
        for _ in range(200):
            B = rng.normal(size=(3, 3)) * rng.choice([0.01, 0.1, 1.0])
            root = np.linalg.cholesky(0.5 * np.trace(J) * np.eye(3) - J + 1e-9 * np.eye(3)) + B
            E = root @ root.T  # Euler's tensor of some body
            other = np.trace(E) * np.eye(3) - E
            assert np.linalg.norm(other - A) >= distance - 1e-6


def test_meshes_are_found_but_not_read(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "a.stl").write_bytes(b"not a mesh at all")
    file = tmp_path / "robot.urdf"
    file.write_text(menagerie(), encoding="utf-8")
    mesh = next(s for s in da.load(file).body("upper").shapes if isinstance(s, Mesh))
    assert Path(mesh.path) == (tmp_path / "meshes" / "a.stl").resolve()
    (tmp_path / "meshes" / "a.stl").unlink()
    model = da.load(file)
    assert next(s for s in model.body("upper").shapes if isinstance(s, Mesh)).path == "meshes/a.stl"
    assert any("does not exist" in line for line in model.report)
