"""Tendons of MJCF files: lengths, forces and actuators beside MuJoCo's, limits, motion and saved files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import FileError
from dalembert.simulation import SimulationWarning

mujoco = pytest.importorskip("mujoco")

FIGURE = """<mujoco><option timestep="1e-4" integrator="RK4"><flag contact="disable"/></option>
<worldbody><site name="nail" pos=".5 0 2"/><site name="hook" pos="0 .4 1.5"/>
<body name="trunk" pos="0 0 1"><freejoint name="root"/><geom type="box" size=".2 .1 .05" mass="2"/>
  <site name="back" pos="-.2 .1 0"/><site name="front" pos=".2 0 .05"/>
  <body name="arm" pos=".3 0 .1"><joint name="a" axis="0 1 0" ref=".2"/>
    <geom type="capsule" fromto="0 0 0 .2 0 0" size=".08"/><site name="elbow" pos=".1 0 .05"/>
    <body name="hand" pos=".2 0 0"><joint name="b" type="slide" axis="1 0 0"/>
      <joint name="c" type="ball"/><geom type="sphere" size=".2" pos=".05 0 0" mass="3"/>
      <site name="tip" pos=".1 .1 .1"/>
    </body></body></body></worldbody>
<tendon>
  <spatial name="path" stiffness="40" damping="2" springlength=".9 1">
    <site site="nail"/><site site="tip"/><site site="back"/></spatial>
  <spatial name="crane" stiffness="30" springlength=".1"><site site="hook"/><site site="front"/>
    <pulley divisor="2"/><site site="front"/><site site="tip"/>
    <pulley divisor="4"/><site site="tip"/><site site="elbow"/><site site="back"/></spatial>
  <fixed name="pair" stiffness="7" damping=".5" springlength=".1 .3">
    <joint joint="a" coef="1.5"/><joint joint="b" coef="-2"/></fixed>
  <fixed name="tied" stiffness="3"><joint joint="a" coef="1"/><joint joint="b" coef=".5"/></fixed>
  <spatial name="cable"><site site="hook"/><site site="tip"/></spatial>
  <spatial name="idle"><site site="hook"/><site site="back"/></spatial>
</tendon>
<actuator>
  <motor name="winch" tendon="cable" gear="-3" ctrlrange="-1 2"/>
  <position name="servo" tendon="path" kp="20" kv="1.5" forcerange="-9 30"/>
  <motor name="both" tendon="tied" gear="2"/>
</actuator></mujoco>"""


@pytest.fixture(scope="module")
def figure(tmp_path_factory: pytest.TempPathFactory) -> tuple[da.Model, Any]:
    path = tmp_path_factory.mktemp("figure") / "figure.xml"
    path.write_text(FIGURE)
    return da.load(path), mujoco.MjModel.from_xml_path(str(path))


def state_of_mujoco(model: da.Model, m: Any, q: np.ndarray, v: np.ndarray) -> tuple[Any, np.ndarray]:
    """MuJoCo's data at a state of ours, and the matrix B of v in MuJoCo's convention, v_mj = B v."""
    data = mujoco.MjData(m)
    data.qpos, data.qvel = da.convert_state(model, q, v, source="dalembert", target="mujoco")
    columns = [
        da.convert_state(model, q, unit, source="dalembert", target="mujoco")[1] for unit in np.eye(model.nv)
    ]
    return data, np.array(columns).T


def moving_states(model: da.Model, count: int = 20) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [model.random_state(rng) for _ in range(count)]


def test_lengths_and_forces_are_those_of_mujoco(figure: tuple[da.Model, Any]) -> None:
    """On random moving states; paths through sites, with pulleys, over joints, and slack ones."""
    model, m = figure
    names = model.springs.names
    assert names == ("path", "crane", "pair", "tied", "cable")
    rows = [mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_TENDON, name) for name in names]
    largest = 0.0
    for q, v in moving_states(model):
        data, B = state_of_mujoco(model, m, q, v)
        mujoco.mj_forward(m, data)
        np.testing.assert_allclose(da.kinematics.spring_lengths(model, q), data.ten_length[rows], atol=1e-12)
        tau = da.passive_forces(model, q, v)
        np.testing.assert_allclose(tau, B.T @ data.qfrc_passive, atol=1e-9)
        largest = max(largest, np.abs(tau).max())
    assert largest > 10.0


def test_actuators_pull_along_tendons(figure: tuple[da.Model, Any]) -> None:
    model, m = figure
    assert model.actuators.names == ("winch", "servo", "both")
    rng = np.random.default_rng(1)
    for q, v in moving_states(model):
        data, B = state_of_mujoco(model, m, q, v)
        data.ctrl = ctrl = rng.uniform(-3.0, 3.0, 3)
        mujoco.mj_forward(m, data)
        tau = da.control.actuator_forces(model, q, v, ctrl)
        np.testing.assert_allclose(tau, B.T @ data.qfrc_actuator, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, 2e-3),
        ({"integrator": "rk4"}, 1e-3),
        ({"contact": "rigid"}, 1e-2),
        ({"contact": "compliant"}, 1e-2),
    ],
)
def test_motion_is_that_of_mujoco(
    figure: tuple[da.Model, Any], options: dict[str, Any], error: float
) -> None:
    """The start of a fast motion: with velocities up to 14 rad/s, positions change by more than 1."""
    model, m = figure
    q, v = moving_states(model, 1)[0]
    v *= 0.3
    data, _ = state_of_mujoco(model, m, q, v)
    data.ctrl = ctrl = [0.5, 0.7, -0.4]
    for _ in range(3000):
        mujoco.mj_step(m, data)
    run = da.rollout(model, q, v, da.control.Actuators(ctrl), steps=3000, dt=1e-4, **options)
    found, _ = da.convert_state(model, run.q[-1], run.v[-1], source="dalembert", target="mujoco")
    np.testing.assert_allclose(found, data.qpos, atol=error)


CUP = """<mujoco><default><geom contype="0"/></default><worldbody><site name="cup" pos="0 0 1"/>
  <body name="ball" pos="0 0 1"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="z" type="slide" axis="0 0 1"/><geom type="sphere" size=".02"/><site name="ball"/></body>
  <body name="l" pos="1 0 1"><joint name="l" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
  <body name="r" pos="1 0 1"><joint name="r" axis="0 1 0"/><geom size=".1" pos=".2 0 .1"/></body>
</worldbody>
<tendon><spatial name="string" range="0 .3"><site site="ball"/><site site="cup"/></spatial>
  <fixed name="sum" range="-1 .5"><joint joint="l" coef="1"/><joint joint="r" coef="2"/></fixed></tendon>
</mujoco>"""


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_limits_hold_in_steps_with_contact(tmp_path: Path, law: str) -> None:
    """A ball on a string swings as a pendulum of that length; the sum of two falling joints ends at 0.5."""
    (tmp_path / "cup.xml").write_text(CUP)
    model = da.load(tmp_path / "cup.xml")
    q = model.neutral()
    q[:2] = 0.3 * np.sin(0.5), -0.3 * np.cos(0.5)
    run = da.rollout(model, q, np.zeros(4), steps=2000, dt=1e-3, contact=law)
    length, total = da.kinematics.spring_lengths(model, run.q).T
    assert length.max() < 0.3 + 1e-4
    assert total.max() < 0.5 + 2e-3
    assert total[-1] > 0.45
    angle = np.arctan2(run.q[:, 0], -run.q[:, 1])
    crossings = run.time[1:][(angle[1:] < 0.0) & (angle[:-1] >= 0.0)]
    period = np.diff(crossings).mean()
    amplitude = 1.0 + 0.5**2 / 16.0 + 11.0 * 0.5**4 / 3072.0
    assert period == pytest.approx(2.0 * np.pi * np.sqrt(0.3 / 9.81) * amplitude, rel=5e-3)
    slack = da.rollout(model, 0.3 * q, np.zeros(4), steps=100, dt=1e-3, contact=law)
    free = 0.3 * q[1] - 0.5 * 9.81 * slack.time**2
    np.testing.assert_allclose(slack.q[:, 1], free, atol=2e-3)


def test_a_rollout_without_contact_says_that_limits_of_tendons_do_not_act(tmp_path: Path) -> None:
    (tmp_path / "cup.xml").write_text(CUP)
    model = da.load(tmp_path / "cup.xml").lock(["l", "r"])
    with pytest.warns(SimulationWarning, match='tendon "string" ended beyond its limits, 0 to 0.3'):
        da.rollout(model, model.neutral(), np.zeros(2), steps=400, dt=1e-3)


def test_saved_files_keep_tendons_and_their_actuators(figure: tuple[da.Model, Any], tmp_path: Path) -> None:
    model, _ = figure
    for ending in (".xml", ".json"):
        path = tmp_path / f"figure{ending}"
        da.save(model, path)
        again = da.load(path)
        assert again.springs.names[: len(model.springs)] == model.springs.names
        assert again.actuators.names == model.actuators.names
        for q, v in moving_states(model, 3):
            for f in (
                da.passive_forces,
                lambda m, q, v: da.control.actuator_forces(m, q, v, [0.3, 0.8, 1.0]),
            ):
                np.testing.assert_allclose(f(again, q, v), f(model, q, v), atol=1e-9)
    assert da.Model.from_json(model.to_json()) == model


def test_locked_and_attached_models_keep_tendons(figure: tuple[da.Model, Any]) -> None:
    model, _ = figure
    q, v = moving_states(model, 1)[0]
    place, at = model.joint("a").v_slice.start, model.joint("a").q_slice.start
    v[place] = 0.0
    locked = model.lock(["a"], q)
    rest = [k for k in range(model.nv) if k != place]
    forces = da.passive_forces(model, q, v)
    np.testing.assert_allclose(da.passive_forces(locked, np.delete(q, at), v[rest]), forces[rest], atol=1e-10)
    other = model.attach(model, prefix="x/")
    assert other.springs["x/pair"].joints == (("x/a", 1.5), ("x/b", -2.0))
    both = da.passive_forces(other, np.concatenate([q, q]), np.concatenate([v, v]))
    np.testing.assert_allclose(both[model.nv :], forces, atol=1e-10)
    pulled = da.control.actuator_forces(other, [*q, *q], [*v, *v], [0.5, 0.7, 1.0, 0.5, 0.7, 1.0])
    alone = da.control.actuator_forces(model, q, v, [0.5, 0.7, 1.0])
    np.testing.assert_allclose(pulled, [*alone, *alone], atol=1e-10)


def test_wound_tendons_are_reported_or_refused(tmp_path: Path) -> None:
    text = """<mujoco><worldbody><site name="p" pos="0 0 1"/><geom name="drum" type="cylinder" size=".1 .1"/>
      <body name="b"><freejoint/><geom size=".1"/><site name="q"/></body></worldbody>
      <tendon><spatial name="rope" {}><site site="p"/><geom geom="drum"/><site site="q"/></spatial></tendon>
      </mujoco>"""
    (tmp_path / "a.xml").write_text(text.format('range="0 2"'))
    model = da.load(tmp_path / "a.xml")
    assert [line for line in model.report if 'tendon "rope", which is wound around a geom' in line]
    (tmp_path / "b.xml").write_text(text.format('stiffness="2"'))
    with pytest.raises(FileError, match='tendon "rope" is wound around a geom and pulls'):
        da.load(tmp_path / "b.xml")
