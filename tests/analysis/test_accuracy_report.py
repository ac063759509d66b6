"""The report names what costs digits, in plain words."""

import numpy as np
import pytest

import dalembert as da
from dalembert import analysis
from dalembert.errors import ArgumentError, ShapeError, UnknownNameError


def rules(model, q=None):
    return [finding.rule for finding in analysis.accuracy(model, q).findings]


def body_at(distance):
    builder = da.ModelBuilder(name="far")
    builder.add_body(
        "load",
        "world",
        da.Revolute((0.0, 1.0, 0.0)),
        inertia=da.RigidInertia(1.0, (distance, 0.0, 0.0), (0.01, 0.01, 0.01)),
    )
    return builder.build()


@pytest.mark.parametrize(("radii", "severity"), [(1.5, None), (5.0, "note"), (500.0, "warning")])
def test_far_frames_are_reported_in_radii_of_gyration(radii, severity):
    """RBDA-10.1-SOURCES: keep frames within one or two radii of gyration, here 0.1 m."""
    found = [f for f in analysis.accuracy(body_at(0.1 * radii)).findings if f.rule == "far frame"]
    assert [f.severity for f in found] == ([] if severity is None else [severity])
    if found:
        assert f"{radii:.3g} radii of gyration" in found[0].message


def test_ratios_of_inertia_are_reported():
    """RBDA-10.1-SOURCES: a sphere ten times as large has 1000 times the mass, 100,000 times the moments."""

    def spheres(scale, density=1e-3):
        builder = da.ModelBuilder(name="spheres")
        for name, parent, size in (("large", "world", scale), ("small", "large", 1.0)):
            mass = (density if name == "large" else 1e-3) * size**3
            moment = 0.4 * mass * (0.01 * size) ** 2
            builder.add_body(
                name,
                parent,
                da.Revolute((0.0, 1.0, 0.0)),
                inertia=da.RigidInertia(mass, (0.0, 0.0, 0.0), (moment, moment, moment)),
            )
        return builder.build()

    small, large = spheres(1.0).bodies["small"].inertia, spheres(10.0).bodies["large"].inertia
    assert large.mass / small.mass == pytest.approx(1e3)
    assert large.inertia.xx / small.inertia.xx == pytest.approx(1e5)
    assert "inertia ratio" not in rules(spheres(9.0))
    (found,) = analysis.accuracy(spheres(11.0)).findings
    assert (found.rule, found.message.split(" and ")[0]) == ("inertia ratio", "its mass")
    # A larger sphere of less density: the moments alone are too far apart.
    assert "inertia ratio" not in rules(spheres(14.0, 1e-4))
    (found,) = analysis.accuracy(spheres(20.0, 1e-4)).findings
    assert (found.rule, found.message.split(" and ")[0]) == ("inertia ratio", "its moment of inertia")


def test_nearly_singular_loops_are_reported_where_they_are():
    """RBDA-10.1-SOURCES: a parallelogram that is almost flat is about to change its mode."""
    flat = da.models.four_bar(ground=1.0, crank=0.3, coupler=1.0, rocker=0.3 + 1e-9)
    assert "nearly singular loop" in rules(flat)
    assert analysis.near_singular_loops(flat)[0].severity == "warning"
    assert "nearly singular loop" not in rules(da.models.four_bar())
    assert "nearly singular loop" not in rules(da.models.stewart())


def test_ill_conditioned_chains_are_reported_with_the_digits_that_are_left():
    """RBDA-10.2-CONDITION: forty links stretched out leave nothing in single precision."""
    builder = da.ModelBuilder(name="rope")
    for i in range(40):
        builder.add_body(
            f"l{i}",
            f"l{i - 1}" if i else "world",
            da.Revolute((0.0, 0.0, 1.0)),
            placement=da.Transform.from_rotation_translation(
                np.eye(3).tolist(), [1.0 if i else 0.0, 0.0, 0.0]
            ),
            inertia=da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.0, 1.0 / 12.0, 1.0 / 12.0)),
        )
    report = analysis.accuracy(builder.build())
    assert report.condition > 1e4
    assert report.digits["float32"] < 3.5
    assert report.digits["float64"] > 8.0
    assert "digits are lost" in report.summary()
    assert report.depth == report.least_depth == 40


def test_condition_numbers_of_batches_and_of_loops():
    model = da.models.double_pendulum()
    q = np.random.default_rng(0).normal(size=(2, 3, 2))
    found = analysis.condition_number(model, q)
    assert found.shape == (2, 3)
    M = da.mass_matrix(model, q)
    np.testing.assert_allclose(found, np.linalg.cond(M), rtol=1e-10)
    scaled = analysis.condition_number(da.models.cart_pole(cart_mass=1000.0), scaled=True)
    assert scaled < analysis.condition_number(da.models.cart_pole(cart_mass=1000.0))
    assert analysis.condition_number(da.models.four_bar()) == pytest.approx(1.0)  # one freedom
    with pytest.raises(ShapeError, match=r"\(…, 2\)"):
        analysis.condition_number(model, [0.0])


def test_sensitivity_takes_velocities_and_given_forces():
    model = da.models.double_pendulum()
    q, v, tau = np.random.default_rng(3).normal(size=(3, 2))
    found = analysis.sensitivity(model, q, tau, v=v, applied=1.01 * tau)
    np.testing.assert_allclose(found.desired, da.forward_dynamics(model, q, v, tau), rtol=1e-10)
    np.testing.assert_allclose(found.response, da.forward_dynamics(model, q, v, 1.01 * tau), rtol=1e-10)
    assert found.force_error == pytest.approx(0.01)
    with pytest.raises(ShapeError, match=r"tau: expected \(2,\), got \(1,\)"):
        analysis.sensitivity(model, q, [1.0])


def test_bad_arguments_are_named():
    with pytest.raises(ArgumentError, match="offset has 4 entries"):
        analysis.far_frame_error([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(UnknownNameError, match='method of round_off "abba"'):
        analysis.round_off(da.models.pendulum(), methods=("abba",))
