"""Semi-implicit steps of linkages take errors of velocity away at once, those of position in a few steps."""

import numpy as np
import pytest

import dalembert as da


def largest_error(model: da.Model, dt: float, seconds: float) -> float:
    """Over a motion from one closed state; free bodies spin, so that their axes turn in every step."""
    rng = np.random.default_rng(1)
    q = da.integrate(model, model.neutral(), 0.05 * rng.normal(size=model.nv))
    q, v = da.constraints.close_loops(model, q, 0.5 * rng.normal(size=model.nv))
    tau = np.zeros(model.nv)
    worst = 0.0
    for _ in range(round(seconds / dt)):
        q, v = da.step(model, q, v, tau, dt)
        worst = max(worst, float(np.abs(da.constraints.constraint_error(model, q)).max()))
    return worst


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "stewart"])
def test_loop_errors_are_of_second_order(name: str) -> None:
    """Half the step, a quarter of the error."""
    model = getattr(da.models, name)()
    coarse, fine = (largest_error(model, dt, 0.4) for dt in (2e-3, 1e-3))
    assert fine < 3e-4  # dt T k / 2, where k is up to 100 m/s^2
    assert 3.5 < coarse / fine < 4.5


def test_a_step_from_a_closed_state_takes_the_acceleration_of_forward_dynamics() -> None:
    """v' = v + dt FD(q, v, tau)."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, model.neutral(), [1.0, 0.5, 0.0])
    tau = np.array([0.3, 0.0, 0.0])
    _, faster = da.step(model, q, v, tau, 1e-3)
    np.testing.assert_allclose((faster - v) / 1e-3, da.forward_dynamics(model, q, v, tau), rtol=1e-9)


def test_an_open_loop_closes_in_the_time_that_is_given() -> None:
    """The error of position falls by dt/T in each step."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, model.neutral(), [1.0, 0.0, 0.0])
    q = q + np.array([0.0, 0.0, 1e-4])
    start = np.abs(da.constraints.constraint_error(model, q)).max()
    for _ in range(20):
        q, v = da.step(model, q, v, np.zeros(3), 1e-3, stabilization=0.02)
    assert np.abs(da.constraints.constraint_error(model, q)).max() == pytest.approx(
        start * 0.95**20, rel=0.02
    )


def test_a_sphere_rolls_without_slipping() -> None:
    """A constraint of velocity makes no errors of position; those of velocity do not add up."""
    builder = da.ModelBuilder()
    builder.add_body("ball", "world", da.Free(), inertia=da.RigidInertia(1.0, (0, 0, 0), (0.4, 0.4, 0.4)))
    builder.add_constraint(rolling, kind="velocity")
    model = builder.build()
    q, v = model.neutral(), np.array([0.3, 2.0, 0.1, 2.0, -0.3, 0.0])
    for _ in range(500):
        q, v = da.step(model, q, v, np.zeros(6), 2e-3)
        assert np.abs(da.constraints.constraint_jacobian(model, q) @ v).max() < 1e-10
    np.testing.assert_allclose(q[:3], [2.0, -0.3, 0.0], atol=1e-9)


def rolling(model: da.Model, q: list, v: list) -> list:
    """The contact point of a unit sphere on the plane z = -1 rests."""
    motion = da.algorithms.body_motions(model, q, v)[model.bodies[0]]
    at_contact = motion.pose.R.transposed_times(da.spatial.Vec3(0.0, 0.0, -1.0))
    return list(motion.pose.R @ motion.velocity.at(at_contact))
