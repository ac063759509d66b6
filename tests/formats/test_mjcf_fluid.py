"""Fluid drag of MJCF files, beside MuJoCo on moving states, and in rollouts beside closed forms."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError
from dalembert.model.conventions import convert_state

SWIMMER = """<mujoco><option density="{density}" viscosity="{viscosity}" wind="{wind}"/><worldbody>
  <body pos="0 0 1"><freejoint/>
    <inertial pos=".02 .01 -.03" mass="1.3" fullinertia=".02 .03 .025 .004 -.002 .003"/>
    <geom type="box" size=".1 .05 .02"/>
    <body pos=".1 .02 0" euler="20 30 40"><joint axis="1 2 3"/>
      <geom type="capsule" size=".02 .06" {ellipsoid}/>
      <geom type="box" size=".03 .04 .01" pos=".02 .1 0" euler="10 0 30" {ellipsoid}/>
      <body pos="0 0 .2"><joint type="ball"/>
        <geom type="cylinder" size=".03 .05" {ellipsoid}/>
        <body pos=".05 0 0"><joint type="slide" axis="1 0 1"/>
          <geom type="ellipsoid" size=".02 .05 .01" euler="0 40 0" {ellipsoid}/>
          <body pos="0 .1 0"><geom type="sphere" size=".03" {ellipsoid}/></body></body></body></body>
  </body></worldbody></mujoco>"""


def swimmer(tmp_path, *, density=0.0, viscosity=0.0, wind="0 0 0", ellipsoid=""):
    path = tmp_path / "swimmer.xml"
    path.write_text(SWIMMER.format(density=density, viscosity=viscosity, wind=wind, ellipsoid=ellipsoid))
    return path


def fluid_forces_of_mujoco(path, model, samples):
    """Random moving states of ours, and MuJoCo's forces there in our coordinates."""
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(m), np.random.default_rng(5)
    for _ in range(samples):
        data.qpos[:], data.qvel[:] = rng.normal(size=m.nq), 3.0 * rng.normal(size=m.nv)
        mujoco.mj_normalizeQuat(m, data.qpos)
        mujoco.mj_forward(m, data)

        def ours(v):
            return convert_state(model, data.qpos, v, source="mujoco", target="dalembert")

        T = np.stack([ours(e)[1] for e in np.eye(m.nv)], axis=1)  # our velocities of MuJoCo's
        yield *ours(data.qvel), np.linalg.solve(T.T, data.qfrc_fluid)


@pytest.mark.parametrize("wind", ["0 0 0", "1 -2 .5"])
@pytest.mark.parametrize("ellipsoid", ["", 'fluidshape="ellipsoid" fluidcoef=".6 .3 1.2 .9 1.1"'])
@pytest.mark.parametrize(("density", "viscosity"), [(1000.0, 0.0), (0.0, 0.9), (1.2, 0.3)])
def test_fluid_forces_are_those_of_mujoco(tmp_path, density, viscosity, ellipsoid, wind):
    path = swimmer(tmp_path, density=density, viscosity=viscosity, wind=wind, ellipsoid=ellipsoid)
    model = da.load(path)
    for q, v, expected in fluid_forces_of_mujoco(path, model, 5):
        found = da.dynamics.fluid_forces(model, q, v)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())
        dry = da.passive_forces(model.with_values({}), q, v)
        np.testing.assert_allclose(dry, found, rtol=1e-12)


def test_drag_takes_energy_and_lift_and_added_mass_do_not(tmp_path):
    """The power of the forces without drag is zero at any velocity."""
    coefficients = 'fluidshape="ellipsoid" fluidcoef="0 0 0 .9 1.1"'
    model = da.load(swimmer(tmp_path, density=1000.0, ellipsoid=coefficients))
    lifted = da.load(swimmer(tmp_path, density=1000.0, ellipsoid='fluidshape="ellipsoid"'))
    immersed = [shape for shape in model.fluid.shapes if shape.coefficients is not None]
    assert len(immersed) == 5
    rng = np.random.default_rng(6)
    q = da.dynamics.normalize(model, rng.normal(size=(50, model.nq)))
    v = rng.normal(size=(50, model.nv))
    v[:, :6] = 0.0  # the trunk is a box
    forces = da.dynamics.fluid_forces(model, q, v)
    assert np.abs(forces).max() > 1.0
    np.testing.assert_allclose((forces * v).sum(axis=1), 0.0, atol=1e-9)
    assert ((da.dynamics.fluid_forces(lifted, q, v) * v).sum(axis=1) < 0.0).all()


def ball(*, density=0.0, viscosity=0.0, wind=(0.0, 0.0, 0.0)):
    builder = da.ModelBuilder()
    skin = da.shapes.Sphere(0.1)
    builder.add_body("ball", "world", da.Free(), inertia=skin.inertia(mass=2.0), shapes=[skin])
    builder.set_fluid(density=density, viscosity=viscosity, wind=wind)
    builder.add_drag_shape("skin", "ball", (0.2, 0.2, 0.2))
    return builder.build()


START = [0.0, 0.0, 50.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("contact", [None, "rigid", "compliant"])
@pytest.mark.parametrize("integrator", [None, "rk4", "implicit", "variational"])
def test_a_ball_falls_as_stokes_says(contact, integrator):
    """v = v_t (1 - exp(-t / T)), v_t = m g / c, T = m / c, c = 3 pi d beta."""
    if contact and integrator:
        pytest.skip("steps with contact have an integrator of their own")
    model = ball(viscosity=2.0).with_ground()
    c = 3.0 * np.pi * 0.2 * 2.0
    found = da.rollout(
        model, START, np.zeros(6), steps=1000, dt=1e-3, contact=contact, integrator=integrator, every=1000
    )
    expected = -2.0 * 9.81 / c * (1.0 - np.exp(-c / 2.0))
    assert found.v[-1, 5] == pytest.approx(expected, rel=1e-6 if integrator == "rk4" else 2e-3)


def test_wind_carries_a_ball_along():
    model = ball(density=1.2, wind=(10.0, 0.0, 0.0)).with_values({"gravity": (0.0, 0.0, 0.0)})
    found = da.rollout(model, START, np.zeros(6), steps=2000, dt=5e-3, every=2000)
    c = 0.5 * 1.2 * 0.2 * 0.2 / 2.0  # dv/dt = c (10 - v)^2
    assert found.v[-1, 3] == pytest.approx(10.0 - 10.0 / (1.0 + 10.0 * c * 10.0), rel=1e-3)
    assert not found.energy_gain.any()


def test_fluids_are_kept_in_files_and_through_surgery(tmp_path):
    model = ball(density=1000.0, viscosity=0.1, wind=(1.0, 2.0, 3.0))
    da.save(model, tmp_path / "ball.json")
    assert json.loads((tmp_path / "ball.json").read_text())["fluid"][0]["wind"] == [1.0, 2.0, 3.0]
    again = da.load(tmp_path / "ball.json")
    assert again.digest == model.digest
    q, v = model.random_state(1)
    wanted = da.dynamics.fluid_forces(model, q, v)
    for other in (again, model.with_ground(), model.with_values({"ball.mass": 3.0})):
        np.testing.assert_array_equal(da.dynamics.fluid_forces(other, q, v), wanted)
    assert ball(density=1.0).digest != ball(density=2.0).digest
    locked = model.lock(["ball"], q)
    assert locked.fluid is not None


@pytest.mark.parametrize("ending", ["urdf", "xml"])
def test_files_that_hold_no_fluid_are_not_written_silently(tmp_path, ending):
    path = tmp_path / f"ball.{ending}"
    with pytest.raises(da.errors.FileError, match="fluid and its drag"):
        da.save(ball(density=1.0), path)
    assert not path.exists()
    assert any("fluid" in line for line in da.save(ball(density=1.0), path, accept_losses=True))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda b: b.set_fluid(density=-1.0), "density is -1.0"),
        (lambda b: b.set_fluid(wind=(1.0, 2.0)), "3 finite numbers"),
        (lambda b: b.add_drag_shape("a", "ball", (1.0, 0.0, 1.0)), "above zero"),
        (lambda b: b.add_drag_shape("a", "ball", (1.0, 1.0, 1.0), coefficients=(1.0,)), "5 finite numbers"),
    ],
)
def test_numbers_without_meaning_are_refused(make, said):
    with pytest.raises(ModelError, match=said):
        make(da.ModelBuilder())


def test_drag_shapes_are_on_known_bodies():
    builder = da.ModelBuilder()
    builder.add_body("ball", "world", da.Free(), inertia=da.shapes.Sphere(0.1).inertia(mass=2.0))
    builder.add_drag_shape("skin", "bal", (1.0, 1.0, 1.0))
    with pytest.raises(da.errors.UnknownNameError, match='nearest: "ball"'):
        builder.build()
