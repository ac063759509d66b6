"""Actuators of MJCF files as controls: the forces of MuJoCo at a state, and its motion as steps shrink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, DalembertError, ModelError, ShapeError

mujoco = pytest.importorskip("mujoco")

ARM = """<mujoco><option timestep="1e-5" integrator="implicitfast"><flag contact="disable"/></option>
<worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".1"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".04"/>
  <body pos="0 0 -.5"><joint name="b" axis="0 1 0" actuatorfrcrange="-3 3"/>
    <joint name="c" type="slide" axis="0 0 1"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".04"/></body></body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef=".5"/><joint joint="b" coef="-.7"/></fixed></tendon>
<actuator><position name="p" joint="a" kp="50" kv="2" gear="1.5" ctrlrange="-1 1" forcerange="-4 9"/>
  <velocity name="v" joint="b" kv="3"/><motor name="m" joint="c" gear="20" ctrlrange="-1 1"/>
  <general name="g" joint="b" gainprm="5" biastype="affine" biasprm=".3 -10 -.2" gear="2"/>
  <motor name="tt" tendon="t" gear="3"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> tuple[da.Model, Any]:
    path = tmp_path_factory.mktemp("arm") / "arm.xml"
    path.write_text(ARM)
    return da.load(path), mujoco.MjModel.from_xml_path(str(path))


def test_forces_at_a_state_are_those_of_mujoco(arm: tuple[da.Model, Any]) -> None:
    """`qfrc_actuator` on random moving states, with signals beyond their ranges."""
    model, m = arm
    assert model.actuators.names == ("p", "v", "m", "g", "tt")
    m.jnt_actfrclimited[:] = 0
    data, rng = mujoco.MjData(m), np.random.default_rng(0)
    q, v = rng.normal(size=(100, 3)), 3.0 * rng.normal(size=(100, 3))
    ctrl = 2.0 * rng.normal(size=(100, 5))
    tau = da.control.actuator_forces(model, q, v, ctrl)
    for k in range(100):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q[k], v[k], ctrl[k]
        mujoco.mj_forward(m, data)
        np.testing.assert_allclose(tau[k], data.qfrc_actuator, atol=1e-12)
    m.jnt_actfrclimited[1] = 1


@pytest.mark.parametrize("contact", [None, "rigid", "compliant"])
def test_motion_approaches_that_of_mujoco(arm: tuple[da.Model, Any], contact: str | None) -> None:
    """With clipped signals, forces and joint efforts; the error halves with the step."""
    model, m = arm
    q, v, ctrl = np.array([0.2, -0.1, 0.05]), np.array([1.0, -0.5, 0.3]), np.array([0.5, 0.2, -0.1, 0.3, 0.4])
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, ctrl
    mujoco.mj_step(m, data, 20_000)
    errors = []
    for dt in (1e-3, 5e-4, 2.5e-4):
        moved = da.rollout(model, q, v, da.control.Actuators(ctrl), round(0.2 / dt), dt, contact=contact)
        errors.append(float(np.abs(moved.q[-1] - data.qpos).max()))
    assert errors[2] < 0.002
    assert 1.8 < errors[0] / errors[1] < 2.2
    assert 1.8 < errors[1] / errors[2] < 2.2


def servo(model: da.ModelBuilder | None = None, **more: Any) -> da.Model:
    builder = da.ModelBuilder() if model is None else model
    rod = da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.01, 1 / 12, 1 / 12))
    builder.add_body("rod", "world", da.Revolute((0, 1, 0)), "hinge", inertia=rod)
    builder.add_actuator("servo", {"hinge": 2.0}, gain=4e4, bias=(0.0, -4e4, -4e2), **more)
    return builder.build()


@pytest.mark.parametrize("contact", [None, "rigid", "compliant"])
def test_stiff_servos_are_stable_and_hold(contact: str | None) -> None:
    """A servo a thousand times too stiff for an explicit step of this length."""
    model = servo()
    moved = da.rollout(model, [0.0], [0.0], da.control.Actuators([0.8]), 400, 0.01, contact=contact)
    assert abs(moved.q[-1, 0] - 0.4) < 1e-4
    weight = 9.81 * 0.5 * np.cos(0.4)
    assert abs(moved.tau[-1, 0] + weight) < 1e-3 * weight


@pytest.mark.parametrize("contact", [None, "rigid"])
def test_forces_stay_in_a_range_that_is_not_symmetric(contact: str | None) -> None:
    model = servo(force=(-0.5, 3.0))
    for target, bound in ((10.0, 6.0), (-10.0, -1.0)):
        moved = da.rollout(model, [0.0], [0.0], da.control.Actuators([target]), 20, 1e-3, contact=contact)
        np.testing.assert_allclose(moved.tau[:, 0], bound, rtol=1e-9)


def test_signals_are_held_stepwise_by_sample_or_functions() -> None:
    model = servo(control=(-1.0, 1.0))
    wave = np.sin(0.05 * np.arange(200))[:, np.newaxis]
    start = [0.1], [0.0]
    stepwise = da.rollout(model, *start, da.control.Actuators(wave), dt=0.01)
    traced = da.control.Actuators(lambda model, t, q, v: [da.scalar.sin(5.0 * t)])
    computed = da.rollout(model, *start, traced, 200, 0.01)
    np.testing.assert_allclose(computed.q, stepwise.q, atol=1e-9)
    samples = da.rollout(model, *start, da.control.Actuators([[[0.2]], [[5.0]]]), 100, 0.01)
    for sample, target in zip(samples.q, (0.2, 1.0)):
        alone = da.rollout(model, *start, da.control.Actuators([target]), 100, 0.01)
        np.testing.assert_allclose(sample, alone.q, atol=1e-12)
    free = da.rollout(model, *start, da.control.Actuators(), 10, 0.01)
    held = da.rollout(model, *start, da.control.Actuators([0.0]), 10, 0.01)
    np.testing.assert_array_equal(free.q, held.q)


def test_controls_that_do_not_fit_are_refused() -> None:
    model = servo()
    with pytest.raises(ModelError, match="has no actuators; give joint forces or a Servo"):
        da.rollout(da.models.pendulum(), [0.0], [0.0], da.control.Actuators([0.0]), 10)
    with pytest.raises(ShapeError, match="ctrl"):
        da.rollout(model, [0.0], [0.0], da.control.Actuators([0.0, 1.0]), 10)
    with pytest.raises(ShapeError, match="ctrl returned 2 numbers; this model has 1"):
        da.rollout(model, [0.0], [0.0], da.control.Actuators(lambda *_: [0.0, 0.0]), 10)
    with pytest.raises(ArgumentError, match="say how many steps"):
        da.rollout(model, [0.0], [0.0], da.control.Actuators())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"joints": {}}, "drives no joint"),
        ({"joints": {"hinge": np.nan}}, "finite"),
        ({"joints": {"hing": 1.0}}, 'unknown joint "hing"'),
        ({"joints": {"ball": 1.0}}, "3 degrees of freedom"),
        ({"joints": {"hinge": 1.0}, "bias": (1.0, 2.0)}, "bias is .1.0, 2.0.; give 3 finite numbers"),
        ({"joints": {"hinge": 1.0}, "control": (1.0, -1.0)}, "is no range"),
    ],
)
def test_actuators_that_mean_nothing_are_refused(arguments: dict[str, Any], words: str) -> None:
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.add_body("a", "world", da.Revolute(), "hinge", inertia=solid)
    builder.add_body("b", "a", da.Spherical(), "ball", inertia=solid)

    def build() -> None:
        builder.add_actuator("x", **arguments)
        builder.build()

    with pytest.raises(DalembertError, match=words):
        build()


def test_locked_and_attached_models_keep_their_actuators() -> None:
    """The forces on the joints that remain are those of the whole model at the locked position."""
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.0, (0.1, 0.0, 0.0), (1.0, 1.0, 1.0))
    for k, parent in enumerate(("world", "b0", "b1")):
        builder.add_body(f"b{k}", parent, da.Revolute((0, 1, 0)), f"j{k}", inertia=solid)
    builder.add_actuator("both", {"j0": 2.0, "j1": -1.0}, gain=3.0, bias=(0.5, -7.0, 0.0))
    builder.add_actuator("last", {"j2": 1.0})
    model = builder.build()
    locked = model.lock(["j1", "j2"], [0.0, 0.4, 0.3])
    assert locked.actuators.names == ("both",)
    whole = da.control.actuator_forces(model, [0.2, 0.4, 0.3], [0.0] * 3, [1.5, 0.0])
    np.testing.assert_allclose(da.control.actuator_forces(locked, [0.2], [0.0], [1.5]), whole[:1])
    both = model.attach(model, "b2", prefix="x/")
    assert both.actuators.names == ("both", "last", "x/both", "x/last")
    assert both.actuators["x/both"].joints == (("x/j0", 2.0), ("x/j1", -1.0))
    assert da.Model.from_json(both.to_json()) == both


def test_actuators_and_poses_survive_mjcf(tmp_path: Path) -> None:
    model = servo(control=(-1.0, 1.0), force=(-2.0, 5.0))
    builder = da.ModelBuilder()
    builder.add_pose("home", {"hinge": 0.25})
    posed = servo(builder)
    da.save(model, tmp_path / "a.xml")
    assert da.load(tmp_path / "a.xml").actuators[0] == model.actuators[0]
    da.save(posed, tmp_path / "b.xml")
    assert da.load(tmp_path / "b.xml").pose("home") == posed.pose("home") == [0.25]


UNSUPPORTED = {
    '<general joint="a" dyntype="filter" dynprm="1"/>': "activation dynamics",
    '<general site="s"/>': "only joints and tendons",
    '<motor joint="ball"/>': "only hinges and slides",
    '<general joint="a" gaintype="affine" gainprm="1 2 0"/>': "a gain that depends on the state",
}


@pytest.mark.parametrize("element", UNSUPPORTED)
def test_other_actuators_are_reported_by_name(element: str, tmp_path: Path) -> None:
    named = element.replace("<general ", '<general name="odd" ').replace("<motor ", '<motor name="odd" ')
    text = f"""<mujoco><worldbody><body><joint name="a"/><geom size=".1"/><site name="s"/>
      <body><joint name="ball" type="ball"/><geom size=".1"/></body></body></worldbody>
      <actuator>{named}<motor name="good" joint="a"/></actuator></mujoco>"""
    (tmp_path / "a.xml").write_text(text)
    model = da.load(tmp_path / "a.xml")
    assert model.actuators.names == ("good",)
    assert [line for line in model.report if 'actuator "odd"' in line and UNSUPPORTED[element] in line]
