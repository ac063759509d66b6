"""What a page shows beside bodies: forces, the centre of mass, readings; and how its clock runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.viewer.browser import Browser
from tests.viewer.motions import SPEED, bouncing_ball, turning_arm

import dalembert as da

PICTURE = "Array.from(dalembert.pixels())"


def test_arrows_are_the_contact_forces_at_their_points(browser: Browser, tmp_path: Path) -> None:
    """At rest the ground pushes the ball up with its weight, where they touch; the arrow is drawn."""
    motion = bouncing_ball()
    browser.open(da.viewer.record(motion, tmp_path / "ball.html", fps=200).as_uri())
    browser.run(f"dalembert.jump({motion.time[-1] - 0.001})")
    ((position, force),) = browser.run("dalembert.contacts()")
    np.testing.assert_allclose(position, [0.0, 0.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(force, [0.0, 0.0, 2.0 * 9.81], rtol=1e-3, atol=1e-3)
    shown = browser.run(PICTURE)
    browser.press("f", "f")
    assert np.mean(np.abs(np.subtract(shown, browser.run(PICTURE))) > 20) > 1e-4
    browser.run("dalembert.jump(0.1)")
    assert browser.run("dalembert.contacts()") == []


def test_the_centre_of_mass_is_that_of_the_model(browser: Browser, tmp_path: Path) -> None:
    model, time, q = turning_arm()
    browser.open(da.viewer.record((model, time, q), tmp_path / "arm.html").as_uri())
    for t in (0.0, 0.4, 1.3):
        browser.run(f"dalembert.jump({t})")
        browser.run("dalembert.pixels().length")
        np.testing.assert_allclose(
            browser.run("dalembert.centre()"), da.dynamics.center_of_mass(model, [SPEED * t]), atol=1e-5
        )


def test_poses_between_pictures_do_not_care_for_the_sign_of_a_quaternion(
    browser: Browser, tmp_path: Path
) -> None:
    builder = da.ModelBuilder()
    builder.add_body(
        "top", parent="world", joint=da.Spherical(), inertia=da.shapes.Sphere(0.2).inertia(mass=1.0)
    )
    builder.add_shape("top", da.shapes.Box((0.2, 0.3, 0.4)))
    angle = 2.0 + 0.2 * np.arange(11)  # past half a turn, where the real part changes its sign
    q = np.stack([np.cos(angle / 2), np.sin(angle / 2), 0.0 * angle, 0.0 * angle], axis=1)
    page = da.viewer.record((builder.build(), 0.1 * np.arange(11), q), tmp_path / "top.html")
    browser.open(page.as_uri())
    for k in range(10):
        browser.run(f"dalembert.jump({0.1 * k + 0.05})")
        browser.run("dalembert.pixels().length")
        w, x, y, z = browser.run("dalembert.poses()")[3:]
        turned = 2.0 * np.arctan2(x, w) % (2.0 * np.pi)
        assert [turned, y, z] == pytest.approx([2.1 + 0.2 * k, 0.0, 0.0], abs=1e-4)


@pytest.mark.parametrize("speed", [0.1, 1.0, 4.0])
def test_the_clock_runs_at_the_chosen_speed(browser: Browser, tmp_path: Path, speed: float) -> None:
    """The time of the browser's pictures is made up here; a picture that took long counts as 0.2 s."""
    browser.open(da.viewer.record(turning_arm(), tmp_path / "arm.html").as_uri())
    browser.run("window.asked = []; window.requestAnimationFrame = f => asked.push(f); 0")
    browser.until("asked.length > 0")
    browser.run(f"dalembert.setSpeed({speed}); dalembert.play(true); 0")
    times = []
    for now in (1000.0, 1100.0, 1150.0, 9000.0):
        browser.run(f"asked.splice(0).forEach(f => f({now}))")
        times.append(browser.run("dalembert.state.time"))
    assert times == pytest.approx(speed * np.array([0.0, 0.1, 0.15, 0.35]))
    browser.click("#scrub", across=0.25)  # whoever takes the time line stops the clock
    assert browser.run("dalembert.state.playing") is False


def test_the_cursor_of_a_plot_stands_at_the_time(browser: Browser, tmp_path: Path) -> None:
    """Columns of the plot in which its picture differs from that of another time."""
    model, time, q = turning_arm()
    clip = da.motion.Clip(model, time, q, np.full_like(q, SPEED), np.zeros_like(q))
    browser.open(da.viewer.record(clip, tmp_path / "arm.html").as_uri())
    columns = []
    for t in (0.5, 1.5):
        browser.run(f"dalembert.jump({t})")
        browser.until(f"document.getElementById('clock').textContent.startsWith('{t:.2f}')")
        image = browser.run(
            "(c => [c.width, Array.from(c.getContext('2d').getImageData(0, 0, c.width, 40).data)])"
            "(document.querySelector('.plot canvas'))"
        )
        columns.append(np.reshape(image[1], (40, image[0], 4)).astype(int))
    width = columns[0].shape[1]
    found = np.flatnonzero(np.abs(columns[1] - columns[0]).max(axis=(0, 2)) > 60)
    expected = [52 + share * (width - 60) for share in (0.25, 0.75)]
    assert [found[found < width / 2].mean(), found[found > width / 2].mean()] == pytest.approx(
        expected, abs=1.5
    )


def test_readings_are_those_of_the_moment(browser: Browser, tmp_path: Path) -> None:
    """Three curves of energy, counted from the lowest potential energy, to the figures that are shown."""
    swing = da.rollout(da.models.double_pendulum(), [1.0, 0.5], [0.0, 0.0], steps=200, dt=0.01)
    browser.open(da.viewer.record(swing, tmp_path / "swing.html", fps=100).as_uri())
    potential = da.dynamics.potential_energy(swing.model, swing.q)
    potential = potential - potential.min()
    kinetic = da.dynamics.kinetic_energy(swing.model, swing.q, swing.v)
    for k in (0, 60, 133):
        browser.run(f"dalembert.jump({swing.time[k]})")
        browser.until(f"document.getElementById('clock').textContent.startsWith('{swing.time[k]:.2f}')")
        text = browser.run("document.querySelector('.plot output').textContent")
        found = [float(number) for number in re.findall(r"[a-z] (-?[\d.]+)", text)]
        expected = [kinetic[k], potential[k], kinetic[k] + potential[k]]
        assert found == pytest.approx(expected, abs=2e-3 * kinetic.max())
