"""Analysis of models whose joints move by a function of time."""

import inspect

import numpy as np
import pytest

import dalembert as da
from dalembert import analysis, scalar
from dalembert.errors import ArgumentError, DalembertError

TIME = 0.7
EXTENDED = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps


def shaken_arm():
    """Two links on a table that turns to and fro, the elbow between them stretched by time too."""
    inertia = da.RigidInertia(1.3, (0.3, 0.05, -0.2), (0.2, 0.22, 0.19))
    builder = da.ModelBuilder(name="shaken")
    turning = da.joints.TimeDependent(
        da.Fixed(), da.Revolute((0, 0, 1)), lambda t: [0.4 * scalar.sin(3.0 * t)]
    )
    builder.add_body("table", "world", turning, inertia=inertia)
    at = da.Transform.from_rotation_translation(np.eye(3), (0.5, 0.1, 0.2))
    builder.add_body("upper", "table", da.Revolute((0, 1, 0)), inertia=inertia, placement=at)
    reaching = da.joints.TimeDependent(
        da.Fixed(), da.Prismatic((1, 0, 0)), lambda t: [0.5 * scalar.sin(2.0 * t)]
    )
    builder.add_body("slide", "upper", reaching, inertia=inertia, placement=at)
    builder.add_body("lower", "slide", da.Revolute((1, 0, 0)), inertia=inertia)
    return builder.build()


def test_sensitivity_at_a_time_is_that_of_forward_dynamics_then():
    """RBDA-10.2-SENSITIVITY"""
    model = shaken_arm()
    q, v = model.random_state(1)
    tau = np.array([1.2345, -6.789])
    found = analysis.sensitivity(model, q, tau, v=v, figures=2, time=TIME)
    np.testing.assert_allclose(found.desired, da.forward_dynamics(model, q, v, tau, time=TIME), rtol=1e-10)
    np.testing.assert_allclose(
        found.response, da.forward_dynamics(model, q, v, found.applied, time=TIME), rtol=1e-10
    )
    later = analysis.sensitivity(model, q, tau, v=v, figures=2, time=2.0 * TIME)
    assert np.abs(later.desired - found.desired).max() > 0.1


@pytest.mark.skipif(not EXTENDED, reason="no extended precision here")
@pytest.mark.parametrize("frames", ["aligned", "model"])
def test_round_off_at_a_time(frames):
    """RBDA-10.1-SOURCES"""
    methods = tuple(inspect.unwrap(analysis.round_off).__globals__["METHODS"])
    for found in analysis.round_off(shaken_arm(), methods=methods, samples=5, frames=frames, time=TIME):
        precision = np.finfo(found.dtype).eps
        assert 0.0 < found.error < 200.0 * precision, found


def test_the_time_is_asked_for_by_its_name():
    model = shaken_arm()
    for call in (
        lambda **time: analysis.sensitivity(model, [0.1, 0.2], [1.0, 2.0], **time),
        lambda **time: analysis.round_off(model, samples=2, **time),
    ):
        with pytest.raises(DalembertError, match="time="):
            call()
        for wrong in (np.nan, [0.0, 1.0]):
            with pytest.raises(ArgumentError, match="time"):
                call(time=wrong)
        with pytest.raises(DalembertError, match="time"):
            call(time="noon")
