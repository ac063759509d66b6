"""`dalembert simulate`: models by name and by file, contact, pushes, motors, files, and what is refused."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

import dalembert as da
from dalembert.cli import main

BALL = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="ball" pos="0 0 1"><freejoint/><geom size=".1" mass="2"/></body></worldbody>
<keyframe><key name="high" qpos="0 0 3 1 0 0 0" qvel="1 0 0 0 0 0"/></keyframe></mujoco>"""


def rock():
    builder = da.ModelBuilder(name="rock")
    ball = da.shapes.Sphere(0.1, name="skin")
    builder.add_body("rock", "world", da.Free(), inertia=ball.inertia(mass=2.0), shapes=[ball])
    return builder.build()


@pytest.fixture
def file(tmp_path):
    da.save(rock(), tmp_path / "rock.json")
    return str(tmp_path / "rock.json")


def told(capsys, *arguments, status=0):
    assert main(["simulate", *map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_a_bundled_model_swings(capsys, tmp_path):
    out = tmp_path / "swing.npz"
    facts = told(capsys, "pendulum", "--seed", 1, "--duration", 1, "--dt", 0.001, "-o", out)
    found = da.Trajectory.load(out)
    assert facts["written"] == [str(out)]
    assert facts["contact"] is None
    assert (facts["steps"], facts["every"], facts["frames"]) == (1000, 10, 101)
    expected = da.rollout(da.models.pendulum(), found.q[0], found.v[0], steps=1000, dt=0.001, every=10)
    np.testing.assert_array_equal(found.q, expected.q)
    assert facts["kinetic_energy"][0] == pytest.approx(0.5 * found.v[0, 0] ** 2)
    assert abs(np.sum([facts["kinetic_energy"], facts["potential_energy"]], axis=0) @ [1, -1]) < 1e-3


def test_a_free_figure_gets_a_ground_and_comes_to_rest_on_it(capsys, file, tmp_path):
    out = tmp_path / "fall.npz"
    facts = told(capsys, file, "--initial-height", 0.5, "--duration", 1, "-o", out)
    assert any("ground" in note for note in facts["notes"])
    trajectory = da.Trajectory.load(out)
    assert trajectory.q[0, 2] == pytest.approx(0.6)
    assert trajectory.q[-1, 2] == pytest.approx(0.1, abs=1e-3)
    contact = facts["contact"]
    assert (contact["law"], contact["pairs"], contact["points"]) == ("rigid", 1, 1)
    assert contact["touching_at_end"] == 1
    assert contact["deepest_overlap"] < 1e-3
    assert contact["upward_force_at_end"] == pytest.approx(2.0 * 9.81, rel=1e-3)
    assert contact["weight"] == pytest.approx(2.0 * 9.81)


def test_compliant_ground_bears_it_too(capsys, file, tmp_path):
    out = tmp_path / "soft.npz"
    facts = told(capsys, file, "--contact", "compliant", "--duration", 1, "-o", out)
    assert facts["contact"]["law"] == "compliant"
    assert facts["contact"]["upward_force_at_end"] == pytest.approx(2.0 * 9.81, rel=1e-3)
    assert 1e-4 < facts["contact"]["deepest_overlap"] < 2e-3


def test_without_contact_or_ground_it_falls(capsys, file, tmp_path):
    for option in (["--contact", "none"], ["--no-ground"]):
        out = tmp_path / f"{option[0]}.npz"
        told(capsys, file, *option, "--duration", 1, "--dt", 0.01, "-o", out)
        assert da.Trajectory.load(out).q[-1, 2] == pytest.approx(-9.81 / 2, rel=0.02)


def test_a_fixed_arm_falls_on_the_ground_at_its_foot_and_within_its_limits(capsys, tmp_path):
    up = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, 0.35))
    base = da.shapes.Box((0.1, 0.1, 0.3), placement=up, name="base")
    builder = da.ModelBuilder(name="arm")
    away = da.Transform.from_rotation_translation(np.eye(3), (0.3, 0.0, 0.0))
    ball = da.shapes.Sphere(0.05, placement=away)
    hinge = da.Transform.from_rotation_translation(np.eye(3), (0.2, 0.0, 0.4))
    builder.add_body(
        "arm", "world", da.Revolute((0, 1, 0)), inertia=ball.inertia(mass=1.0), shapes=[ball], placement=hinge
    )
    builder.add_shape("world", base)
    path, out = tmp_path / "arm.json", tmp_path / "arm.npz"
    da.save(builder.build(), path)
    facts = told(capsys, path, "--duration", 1, "-o", out)
    assert any("a ground is put under it, z = 0.2" in note for note in facts["notes"])
    height = 0.4 - 0.3 * np.sin(da.Trajectory.load(out).q[:, 0])
    assert height.min() > 0.25 - 1e-4
    assert height[-1] == pytest.approx(0.25, abs=1e-3)
    facts = told(capsys, path, "--duration", 1, "--no-ground", "-o", out, "--force")
    assert 0.4 - 0.3 * np.sin(da.Trajectory.load(out).q[:, 0]).max() < 0.15
    assert facts["contact"]["pairs"] == 1  # with its base


def test_fixed_figures_that_can_touch_nothing_have_the_integrator_of_free_motion(capsys, tmp_path):
    facts = told(capsys, "double_pendulum", "--duration", 0.1)
    assert facts["contact"] is None


def test_arms_whose_meshes_are_missing_touch_nothing_unless_asked(capsys, tmp_path):
    builder = da.ModelBuilder(name="arm")
    rod = da.shapes.Capsule(0.05, 0.5, name="rod")
    builder.add_body("arm", "world", da.Revolute((0, 1, 0)), inertia=rod.inertia(mass=1.0), shapes=[rod])
    builder.add_shape("world", da.shapes.Mesh("missing.stl", name="base"))
    da.save(builder.build(), tmp_path / "arm.json")
    facts = told(capsys, tmp_path / "arm.json", "--duration", 0.1)
    assert facts["contact"] is None
    assert any("--contact rigid" in note for note in facts["notes"])
    assert main(["simulate", str(tmp_path / "arm.json"), "--contact", "rigid"]) == 2
    assert "--contact none" in capsys.readouterr().err


def test_pushes_change_momentum_by_their_impulse(capsys, file, tmp_path):
    out = tmp_path / "pushed.npz"
    options = ["--contact", "none", "--duration", 1, "--dt", 0.01, "-o", out]
    first, second = "body=rock,force=3,0,0,at=0.2,for=0.1", "force=0,-5,0,for=0.2,at=0.25,body=rock"
    told(capsys, file, *options, "--push", first, "--push", second)
    found = da.Trajectory.load(out)
    np.testing.assert_allclose(2.0 * found.v[-1, 3:5], [3.0 * 0.1, -5.0 * 0.2], rtol=1e-9)
    assert not found.v[20, 3:5].any()


def test_motors_hold_a_pose_given_by_joints(capsys, tmp_path):
    """ANIM-PD"""
    pose = tmp_path / "pose.json"
    pose.write_text('{"elbow": 0.7}')
    model = da.models.two_link_arm()
    start = np.zeros(2)
    start[model.joints["elbow"].body.q_slice] = 0.7
    for motors in (["--hold"], ["--pd", "1e5,1e3"]):
        out = tmp_path / f"{motors[0]}.npz"
        told(capsys, "two_link_arm", "--pose", pose, *motors, "--duration", 1, "-o", out)
        np.testing.assert_allclose(da.Trajectory.load(out).q[-1], start, atol=0.05)
    out = tmp_path / "limp.npz"
    told(capsys, "two_link_arm", "--pose", pose, "--duration", 1, "-o", out)
    assert np.abs(da.Trajectory.load(out).q[-1] - start).max() > 0.3


def test_the_end_of_one_simulation_is_the_start_of_the_next(capsys, tmp_path):
    one, two, both = (tmp_path / name for name in ("one.npz", "two.npz", "both.npz"))
    same = ["--duration", 0.5, "--integrator", "rk4"]
    told(capsys, "double_pendulum", "--seed", 4, *same, "-o", one)
    told(capsys, "double_pendulum", "--pose", one, *same, "-o", two)
    told(capsys, "double_pendulum", "--seed", 4, "--duration", 1, "--integrator", "rk4", "-o", both)
    ends = da.Trajectory.load(two), da.Trajectory.load(both)
    np.testing.assert_allclose(ends[0].q[-1], ends[1].q[-1], rtol=1e-12)


def test_samples_are_many_motions(capsys, tmp_path):
    out = tmp_path / "many.npz"
    facts = told(capsys, "double_pendulum", "--samples", 3, "--duration", 0.1, "-o", out)
    found = da.Trajectory.load(out)
    assert facts["samples"] == 3
    assert found.batch == (3,)
    assert len(np.unique(found.v[:, 0, 0])) == 3


def test_worlds_and_keyframes_of_mjcf_files(capsys, tmp_path):
    pytest.importorskip("mujoco")
    path, out = tmp_path / "ball.xml", tmp_path / "ball.npz"
    path.write_text(BALL)
    facts = told(capsys, path, "--pose", "high", "--duration", 0.1, "-o", out)
    found = da.Trajectory.load(out)
    assert found.q[0, 2] == 3.0
    np.testing.assert_allclose(found.v[0, 3:], [1, 0, 0], atol=1e-12)
    assert facts["contact"]["pairs"] == 1
    assert main(["simulate", str(path), "--pose", "low"]) == 2
    assert '"high"' in capsys.readouterr().err


WALKER = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="box" pos="0 0 0.5"><joint name="up" type="slide" axis="0 0 1"/><geom size=".1"/></body>
<body name="stone" pos="1 2 0.75"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def test_mjcf_files_start_where_they_place_their_bodies_and_touch_their_floor(capsys, tmp_path):
    """A figure on slides falls on the floor as a free one does, and neither begins at the origin."""
    pytest.importorskip("mujoco")
    path, out = tmp_path / "walker.xml", tmp_path / "walker.npz"
    path.write_text(WALKER)
    facts = told(capsys, path, "--duration", 1, "-o", out)
    found = da.Trajectory.load(out)
    poses = found.poses()
    np.testing.assert_allclose(poses["stone"].translation[0], [1.0, 2.0, 0.75])
    assert poses["box"].translation[0, 2] == pytest.approx(0.5)
    for name in ("box", "stone"):
        assert poses[name].translation[-1, 2] == pytest.approx(0.1, abs=1e-3)
    assert facts["contact"]["deepest_overlap"] < 1e-3
    path.write_text(
        WALKER.replace('<body name="stone" pos="1 2 0.75"><freejoint/><geom size=".1"/></body>', "")
    )
    assert told(capsys, path, "--duration", 1)["contact"]["touching_at_end"] == 1
    told(capsys, path, "--duration", 0.1, "--pose", "neutral", "-o", out, "--force")
    assert da.Trajectory.load(out).q[0, 0] == 0.0


def test_durations_are_kept(capsys):
    assert told(capsys, "pendulum", "--duration", 0.004)["duration"] == pytest.approx(0.004)
    assert told(capsys, "pendulum", "--duration", 1, "--dt", 0.25)["duration"] == pytest.approx(1.0)


def test_recordings_and_the_text_that_is_printed(capsys, file, tmp_path):
    out = tmp_path / "fall.html"
    assert main(["simulate", file, "--duration", "0.2", "-o", str(out), "--progress"]) == 0
    printed = capsys.readouterr()
    assert out.read_text().startswith("<!")
    for word in ("kinetic energy", "deepest overlap", "times real time", "fall.html", "ground is put under"):
        assert word in printed.out
    assert "of 0.20 s" in printed.err


def test_several_files_hold_the_same_motion(capsys, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table, whole = tmp_path / "swing.parquet", tmp_path / "swing.npz"
    options = ["--seed", 1, "--duration", 0.1, "--integrator", "rk4"]
    facts = told(capsys, "double_pendulum", *options, "-o", table, "-o", whole)
    assert facts["written"] == [str(table), str(whole)]
    found = da.Trajectory.load(whole)
    columns = parquet.read_table(table).to_pydict()
    for k in range(2):
        np.testing.assert_array_equal(columns[f"q_{k}"], found.q[:, k])
        np.testing.assert_array_equal(columns[f"v_{k}"], found.v[:, k])
    np.testing.assert_array_equal(columns["time"], found.time)
    assert np.ptp(found.q, axis=0).min() > 0.0


def test_an_interrupted_simulation_is_written(capsys, monkeypatch, tmp_path):
    from dalembert.cli import simulate

    def stop(done, steps):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate, "_progress_bar", lambda dt, shown: contextlib.nullcontext(stop))
    monkeypatch.setattr("dalembert.compiler.rollout_execution.FIRST_STEPS_WORK", 100_000)
    out = tmp_path / "part.npz"
    arguments = ["pendulum", "--duration", "60", "--seed", "0", "-o", str(out), "--progress"]
    assert main(["simulate", *arguments]) == 130
    assert "interrupted" in capsys.readouterr().out
    found = da.Trajectory.load(out)
    assert found.interrupted
    assert 1 < len(found) < 6001


def test_files_that_exist_are_kept(capsys, tmp_path):
    out = tmp_path / "kept.npz"
    out.write_text("mine")
    assert main(["simulate", "pendulum", "-o", str(out)]) == 1
    assert out.read_text() == "mine"
    assert "--force" in capsys.readouterr().err
    assert main(["simulate", "pendulum", "-o", str(out), "--force", "--duration", "0.1"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], 'unknown file or bundled model "nothing"'),
        (["pendulun"], 'nearest: "pendulum"'),
        (["missing.urdf"], "missing.urdf"),
        (["pendulum", "-o", "x.csv"], ".npz"),
        (["pendulum", "-o", "no/such/folder/x.npz"], "does not exist"),
        (["pendulum", "--integrator", "magic"], "semi_implicit"),
        (["pendulum", "--pose", "standing"], "neutral"),
        (["pendulum", "--pose", "missing.json"], "missing.json cannot be read"),
        (["pendulum", "--pose", "missing.npz"], "missing.npz"),
        (["pendulum", "--initial-height", "1"], "free root"),
        (["pendulum", "--every", "1000", "--duration", "0.1"], "longer than --duration"),
        (["pendulum", "--dt", "3", "--duration", "2"], "--dt 3 s is longer than --duration 2 s"),
        (["pendulum", "--duration", "1e10"], "every"),
        (["pendulum", "-o", "folder.npz", "--force"], "is a folder"),
        (["pendulum", "--push", "body=foot,force=1,0,0"], "foot"),
        (["pendulum", "--push", "body=bob,force=1,0,0,at=100"], "none of the"),
    ],
)
def test_what_is_not_understood_is_one_kind_line(capsys, monkeypatch, tmp_path, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.npz").mkdir()
    assert main(["simulate", *arguments]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert not printed.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--dt", "-1"],
        ["--duration", "0"],
        ["--pd", "3"],
        ["--pd", "-3,1"],
        ["--push", "body=bob,force=1,2"],
        ["--push", "force=1,2,3"],
        ["--push", "body=bob,force=1,2,nan"],
        ["--push", "body=bob,force=1,2,3,for=0"],
        ["--initial-height", "high"],
        ["--every", "0"],
        ["--hold", "--pd", "1,1"],
    ],
)
def test_options_that_are_no_numbers_are_refused(capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        main(["simulate", "pendulum", *arguments])
    assert stopped.value.code == 2
    assert "dalembert simulate: argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1, 2]", "shape"),
        ("{", "no JSON"),
        ('{"knee": 1}', "knee"),
        ('"up"', "expected"),
        ("[NaN]", "finite"),
    ],
)
def test_poses_that_do_not_fit_are_refused(capsys, tmp_path, content, said):
    pose = tmp_path / "pose.json"
    pose.write_text(content)
    assert main(["simulate", "pendulum", "--pose", str(pose)]) == 2
    assert said in capsys.readouterr().err


def test_parts_of_a_figure_collide_unless_told_otherwise(capsys, tmp_path):
    """As in `da.rollout`: one default for both."""
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01))
    ball = [da.shapes.Sphere(0.1)]
    for name, parent, joint in (
        ("a", "world", da.Free()),
        ("b", "a", da.Revolute()),
        ("c", "b", da.Revolute()),
    ):
        at = da.Transform.from_rotation_translation(np.eye(3), (0.0 if name == "a" else 0.3, 0.0, 0.0))
        builder.add_body(name, parent, joint, placement=at, inertia=solid, shapes=ball)
    model = builder.build()
    path = tmp_path / "chain.json"
    da.save(model, path)
    every = len(da.contact.Rigid().pairs_in(model.with_ground()))
    assert told(capsys, path, "--duration", 0.01)["contact"]["pairs"] == every == 4
    facts = told(capsys, path, "--duration", 0.01, "--no-self-collision")
    assert facts["contact"]["pairs"] == 3
    assert any("--no-self-collision" in note for note in facts["notes"])


def quadruped(legs: int = 4, lower: float = -0.6) -> str:
    """A trunk of 4 kg 0.3 m above its feet on straight legs, as URDF, which has no pose of its own."""
    leg = """
      <link name="leg{i}"><inertial><origin xyz="0 0 -0.15"/><mass value="0.5"/>
        <inertia ixx="0.004" iyy="0.004" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><origin xyz="0 0 -0.15"/><geometry><box size="0.04 0.04 0.3"/></geometry></collision>
      </link><joint name="hip{i}" type="revolute"><parent link="trunk"/><child link="leg{i}"/>
        <origin xyz="{x} {y} -0.05"/><axis xyz="0 1 0"/>
        <limit lower="{lower}" upper="0.8" velocity="20" effort="100"/></joint>"""
    ends = [(0.2, 0.15), (0.2, -0.15), (-0.2, 0.15), (-0.2, -0.15)][:legs]
    each = "".join(leg.format(i=i, x=x, y=y, lower=lower) for i, (x, y) in enumerate(ends))
    return f"""<robot name="walker"><link name="trunk"><inertial><mass value="4"/>
      <inertia ixx="0.05" iyy="0.08" izz="0.08" ixy="0" ixz="0" iyz="0"/></inertial>
      <collision><geometry><box size="0.5 0.2 0.1"/></geometry></collision></link>{each}</robot>"""


def test_a_robot_on_legs_floats_and_stands_where_an_arm_stays_fixed(capsys, tmp_path):
    path, out = tmp_path / "walker.urdf", tmp_path / "walker.npz"
    path.write_text(quadruped())
    facts = told(capsys, path, "--hold", "--duration", 1, "-o", out)
    assert any("its base floats, since it stands on leg0" in note for note in facts["notes"])
    found = da.Trajectory.load(out)
    assert found.q[0, 2] == pytest.approx(0.35)
    assert found.q[-1, 2] == pytest.approx(0.35, abs=5e-3)
    assert np.abs(found.v[-1]).max() < 1e-2
    assert facts["contact"]["upward_force_at_end"] == pytest.approx(6.0 * 9.81, rel=1e-2)
    facts = told(capsys, path, "--root", "fixed", "--duration", 0.1)
    assert not any("ground" in note for note in facts["notes"])
    assert facts["contact"]["upward_force_at_end"] == 0.0
    path.write_text(quadruped(legs=1))
    facts = told(capsys, path, "--duration", 0.1)
    assert any("its base is fixed to the world" in note for note in facts["notes"])


def test_neutral_positions_outside_limits_are_not_where_joints_start(capsys, tmp_path):
    path, out = tmp_path / "walker.urdf", tmp_path / "walker.npz"
    path.write_text(quadruped(lower=0.3))
    facts = told(capsys, path, "--root", "fixed", "--hold", "--duration", 0.1, "-o", out)
    assert any("inside their limits" in note and "hip0" in note for note in facts["notes"])
    np.testing.assert_allclose(da.Trajectory.load(out).q[0], 0.35)
    (tmp_path / "srdf").mkdir()
    (tmp_path / "urdf").mkdir()
    joints = "".join(f'<joint name="hip{i}" value="0.5"/>' for i in range(4))
    srdf = f'<robot name="walker"><group_state name="standing" group="all">{joints}</group_state></robot>'
    (tmp_path / "srdf" / "walker.srdf").write_text(srdf)
    path = path.rename(tmp_path / "urdf" / "walker.urdf")
    facts = told(capsys, path, "--root", "fixed", "--duration", 0.1, "-o", out, "--force")
    assert any('the pose "standing"' in note for note in facts["notes"])
    np.testing.assert_allclose(da.Trajectory.load(out).q[0], 0.5)
    assert not any("beyond" in note for note in facts["notes"])
    facts = told(
        capsys, path, "--root", "fixed", "--pose", "neutral", "--duration", 0.1, "-o", out, "--force"
    )
    np.testing.assert_array_equal(da.Trajectory.load(out).q[0], 0.0)
    assert any("beyond their limits" in note and "hip0" in note for note in facts["notes"])


def test_a_body_without_movable_joints_floats(capsys, tmp_path):
    """The base of a drone: as `da.load` fixes it to the world, nothing of the file would move."""
    path = tmp_path / "drone.urdf"
    hull = '<collision><geometry><box size="0.4 0.4 0.1"/></geometry></collision>'
    mass = '<mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
    path.write_text(f'<robot name="d"><link name="hull"><inertial>{mass}</inertial>{hull}</link></robot>')
    facts = told(capsys, path, "--duration", 0.5)
    assert any("its base floats" in note for note in facts["notes"])
    assert facts["contact"]["upward_force_at_end"] == pytest.approx(2.0 * 9.81, rel=1e-3)
    assert main(["simulate", str(path), "--root", "fixed"]) == 2
    assert "no link moves" in capsys.readouterr().err


def test_joints_too_weak_for_the_weight_are_named(capsys, tmp_path):
    path = tmp_path / "arm.urdf"
    mass = '<origin xyz="1 0 0"/><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    joint = '<joint name="lift" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>'
    limit = '<limit lower="-1" upper="1" velocity="9" effort="{}"/></joint>'
    for effort, weak in ((19.0, True), (20.0, False)):  # 2 kg at 1 m weigh 19.6 N m
        links = f'<link name="base"/><link name="rod"><inertial>{mass}</inertial></link>'
        path.write_text(f'<robot name="arm">{links}{joint}{limit.format(effort)}</robot>')
        notes = told(capsys, path, "--hold", "--duration", 0.1)["notes"]
        assert any("cannot carry the weight" in note and "lift" in note for note in notes) == weak


def test_output_says_that_nothing_touched(capsys, tmp_path):
    """Of 160 points none is recorded that never touched."""
    path = tmp_path / "drop.xml"
    boxes = "".join(f'<geom type="box" size=".1 .1 .1" pos="{0.3 * k} 0 0"/>' for k in range(40))
    path.write_text(BALL.replace('<geom size=".1" mass="2"/>', boxes))
    assert main(["simulate", str(path), "--pose", "high", "--duration", "0.1"]) == 0
    shown = capsys.readouterr().out
    assert "40 pairs, 0 points; nothing touched" in shown
    assert "deepest overlap" not in shown


def test_an_arm_that_motors_hold_does_not_sag(capsys, tmp_path):
    """The reference of the servos is ahead of the pose by what the weight takes."""
    out = tmp_path / "held.npz"
    told(capsys, "arm6", "--hold", "--duration", 1, "-o", out)
    found = da.Trajectory.load(out)
    np.testing.assert_allclose(found.q[-1], found.q[0], atol=1e-9)


def test_parts_that_overlap_at_the_start_pass_through_each_other(capsys, tmp_path):
    """As drawn parts of a hip do: they would be pushed apart for ever."""
    path = tmp_path / "walker.urdf"
    wide = quadruped().replace('<box size="0.04 0.04 0.3"/>', '<box size="0.04 0.31 0.3"/>', 2)
    path.write_text(wide)
    facts = told(capsys, path, "--hold", "--duration", 0.2)
    assert any("overlap at the start" in note and "leg0 and leg1" in note for note in facts["notes"])
    assert facts["contact"]["deepest_overlap"] < 1e-3
    path.write_text(quadruped())
    assert not any("overlap" in note for note in told(capsys, path, "--duration", 0.01)["notes"])


def test_joints_that_move_no_mass_are_locked(capsys, tmp_path):
    path = tmp_path / "walker.urdf"
    finger = """<link name="finger"/><joint name="tip" type="continuous"><parent link="leg0"/>
      <child link="finger"/><axis xyz="1 0 0"/></joint></robot>"""
    path.write_text(quadruped().replace("</robot>", finger))
    facts = told(capsys, path, "--hold", "--duration", 0.1)
    assert any("locked: tip" in note for note in facts["notes"])
