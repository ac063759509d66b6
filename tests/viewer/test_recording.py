"""A recording plays in a browser without Python and without a network, and shows the motion it was given."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.viewer.browser import Browser
from tests.viewer.motions import SPEED, turning_arm

import dalembert as da
from dalembert.viewer.frames import frames_of
from dalembert.viewer.page import page_of, scene_of

GREEN_SHARE = """(p => {
  let n = 0;
  for (let i = 0; i < p.length; i += 4) if (p[i + 1] > 1.8 * p[i] && p[i + 1] > 1.8 * p[i + 2]) n++;
  return (4 * n) / p.length;
})(dalembert.pixels())"""

Recording = tuple[Browser, da.Model, np.ndarray, np.ndarray]


@pytest.fixture
def recording(browser: Browser, tmp_path: Path) -> Recording:
    """The turning arm, opened from its file."""
    model, time, q = turning_arm()
    clip = da.motion.Clip(model, time, q, np.full_like(q, SPEED), np.zeros_like(q))
    browser.requests.clear()
    browser.open(da.viewer.record(clip, tmp_path / "arm.html").as_uri())
    return browser, model, time, q


def end_of_arm(browser: Browser) -> np.ndarray:
    """Where the page has the end of the arm."""
    x, y, z, w, *vector = browser.run("dalembert.poses()")
    u, e = np.array(vector), np.array([1.0, 0.0, 0.0])
    return np.array([x, y, z]) + e + 2.0 * np.cross(u, np.cross(u, e) + w * e)


def red_middle(browser: Browser) -> np.ndarray:
    """Where the picture is red, on average, in shares of its width and height from the upper left."""
    return np.array(
        browser.run(
            """(() => {
              const pixels = dalembert.pixels(), canvas = document.getElementById("view");
              let [n, x, y] = [0, 0, 0];
              for (let i = 0; i < pixels.length; i += 4)
                if (pixels[i] > 1.7 * pixels[i + 1] && pixels[i] > 1.7 * pixels[i + 2]) {
                  n++;
                  x += (i / 4) % canvas.width;
                  y += canvas.height - Math.floor(i / 4 / canvas.width);
                }
              return [x / n / canvas.width, y / n / canvas.height];
            })()"""
        )
    )


def test_bodies_are_where_forward_kinematics_puts_them_at_every_time(recording: Recording) -> None:
    browser, _, time, _ = recording
    for t in [*time[[0, 17, 120]], 0.7123, 1.9999]:
        browser.run(f"dalembert.jump({t})")
        browser.until(f"Math.abs(dalembert.state.time - {t}) < 1e-9")
        browser.run("dalembert.pixels().length")
        angle = SPEED * t
        expected = [np.cos(angle), 0.0, -np.sin(angle)]
        np.testing.assert_allclose(end_of_arm(browser), expected, atol=1e-5)


def test_the_picture_shows_what_moved(recording: Recording) -> None:
    """The red ball goes from the right of the arm's joint to below it, to the left, and on."""
    browser, _, _, _ = recording
    seen = []
    for angle in (0.0, np.pi / 2, np.pi):
        browser.run(f"dalembert.jump({angle / SPEED})")
        seen.append(red_middle(browser))
    right, below, left = seen
    assert right[0] > below[0] + 0.05 > left[0] + 0.1
    assert below[1] > max(right[1], left[1]) + 0.1


def test_play_pause_and_the_space_bar(recording: Recording) -> None:
    browser, _, _, _ = recording
    assert browser.run("dalembert.state.time") == 0.0
    browser.click("#play")
    browser.until("dalembert.state.playing && dalembert.state.time > 0.05")
    browser.press(" ", " ")
    assert browser.run("dalembert.state.playing") is False
    paused = browser.run("dalembert.state.time")
    assert 0.05 < paused <= 2.0
    drawn = browser.run("dalembert.drawn")
    browser.run("new Promise(done => setTimeout(done, 300))")
    assert browser.run("dalembert.state.time") == paused
    assert browser.run("dalembert.drawn") <= drawn + 1, "a picture that stands is not drawn again"


def test_playing_goes_on_from_the_start_or_stops_at_the_end(recording: Recording) -> None:
    browser, _, _, _ = recording
    browser.run("dalembert.jump(1.95); dalembert.play(true)")
    browser.until("dalembert.state.playing && dalembert.state.time < 1.9")
    browser.press("l", "l")
    browser.run("dalembert.jump(1.95)")
    browser.until("!dalembert.state.playing")
    assert browser.run("dalembert.state.time") == 2.0
    browser.press(" ", " ")
    browser.until("dalembert.state.time < 1.9")


def test_the_scrub_bar_and_the_step_keys(recording: Recording) -> None:
    browser, _, time, _ = recording
    browser.click("#scrub", across=0.5)
    browser.until("dalembert.state.time > 0")
    assert abs(browser.run("dalembert.state.time") - 1.0) < 0.03
    browser.run("document.activeElement.blur(); dalembert.jump(0.5)")
    browser.press("ArrowRight")
    assert browser.run("dalembert.state.time") == pytest.approx(time[31])
    browser.press("ArrowLeft")
    browser.press("ArrowLeft")
    assert browser.run("dalembert.state.time") == pytest.approx(time[29])
    browser.press("End")
    assert browser.run("dalembert.state.time") == 2.0
    browser.press("Home")
    assert browser.run("dalembert.state.time") == 0.0


def test_speed_is_chosen_in_steps(recording: Recording) -> None:
    browser, _, _, _ = recording
    for key, speed in (("[", 0.5), ("[", 0.25), ("[", 0.1), ("[", 0.1), ("]", 0.25)):
        browser.press(key, key)
        assert browser.run("dalembert.state.speed") == speed
        assert browser.run("document.getElementById('speed').value") == str(speed)


def test_a_click_on_a_plot_jumps_to_its_time(recording: Recording) -> None:
    browser, _, _, _ = recording
    assert browser.run("document.querySelectorAll('.plot').length") == 1
    browser.click(".plot canvas", across=0.75)
    width = browser.run("document.querySelector('.plot canvas').clientWidth")
    share = (0.75 * width - 52) / (width - 60)
    browser.until("dalembert.state.time > 0")
    assert browser.run("dalembert.state.time") == pytest.approx(2.0 * share, abs=0.02)
    text = browser.run("document.querySelector('.plot output').textContent")
    kinetic = float(re.search(r"kinetic ([\d.]+)", text)[1])
    assert kinetic == pytest.approx(0.5 * (0.2 + 2.0 * 0.25) * SPEED**2, rel=1e-3)


def test_mouse_wheel_and_drags_move_the_camera(recording: Recording) -> None:
    browser, _, _, _ = recording
    state = "[dalembert.camera.azimuth, dalembert.camera.elevation, dalembert.camera.distance]"
    before = browser.run(state)
    target = browser.run("dalembert.camera.target")
    browser.mouse("mousePressed", 400, 200, buttons=1)
    browser.mouse("mouseMoved", 460, 230, buttons=1)
    browser.mouse("mouseReleased", 460, 230, buttons=1)
    turned = browser.run(state)
    assert turned[0] < before[0] - 0.2
    assert turned[1] > before[1] + 0.1
    assert browser.run("dalembert.camera.target") == target
    browser.mouse("mouseWheel", 400, 200, deltaX=0, deltaY=-200)
    browser.until(f"dalembert.camera.distance < {0.9 * before[2]}")
    browser.mouse("mousePressed", 400, 200, buttons=2)
    browser.mouse("mouseMoved", 460, 200, buttons=2)
    browser.mouse("mouseReleased", 460, 200, buttons=2)
    assert np.linalg.norm(np.subtract(browser.run("dalembert.camera.target"), target)) > 0.1
    browser.press("r", "r")
    assert browser.run(state) == pytest.approx(before)


def test_two_fingers_zoom_and_one_turns(recording: Recording) -> None:
    browser, _, _, _ = recording
    before = browser.run("[dalembert.camera.azimuth, dalembert.camera.distance]")

    def touch(kind: str, *points: tuple[float, float]) -> None:
        browser.send(
            "Input.dispatchTouchEvent",
            type=kind,
            touchPoints=[{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)],
        )

    touch("touchStart", (300, 200))
    touch("touchMove", (350, 200))
    touch("touchEnd")
    browser.until(f"dalembert.camera.azimuth < {before[0] - 0.2}")
    assert browser.run("dalembert.camera.distance") == before[1]
    touch("touchStart", (300, 200), (400, 200))
    touch("touchMove", (250, 200), (450, 200))
    touch("touchEnd")
    browser.until(f"dalembert.camera.distance < {0.6 * before[1]}")


def test_the_camera_follows_what_it_is_told_to(browser: Browser, tmp_path: Path) -> None:
    """A ball that flies keeps its place in the picture, and leaves it for a camera that stands."""
    builder = da.ModelBuilder()
    builder.add_body(
        "ball", parent="world", joint=da.joints.Translation(), inertia=da.shapes.Sphere(0.2).inertia(mass=1.0)
    )
    builder.add_shape("ball", da.shapes.Sphere(0.2, rgba=(1.0, 0.0, 0.0, 1.0)))
    q = np.linspace([0.0, 0.0, 0.0], [3.0, 0.0, 1.0], 61)
    for follow in ("ball", "com"):
        page = da.viewer.record((builder.build(), q), tmp_path / "ball.html", follow=follow)
        browser.open(page.as_uri())
        start = red_middle(browser)
        browser.run("dalembert.jump(1.0)")
        np.testing.assert_allclose(red_middle(browser), start, atol=0.02)
    browser.run(
        "(s => { s.value = ''; s.dispatchEvent(new Event('change')); })(document.getElementById('follow'))"
    )
    browser.run("dalembert.jump(0.9)")
    assert np.linalg.norm(red_middle(browser) - start) > 0.1


def test_without_webgl_the_page_says_so(browser: Browser, tmp_path: Path) -> None:
    page = da.viewer.record(turning_arm()[0], tmp_path / "arm.html")
    name = browser.send(
        "Page.addScriptToEvaluateOnNewDocument",
        source="HTMLCanvasElement.prototype.getContext = () => null;",
    )["identifier"]
    browser.send("Page.navigate", url=page.as_uri())
    browser.send("Page.removeScriptToEvaluateOnNewDocument", identifier=name)
    browser.problems.clear()
    browser.run("new Promise(done => setTimeout(done, 300))")
    assert "WebGL 2" in browser.run("document.getElementById('problem').textContent")
    browser.problems.clear()


def test_dark_and_light_differ_and_help_is_shown(recording: Recording) -> None:
    browser, _, _, _ = recording
    brightness = "(p => p.reduce((sum, x) => sum + x, 0) / p.length)(dalembert.pixels())"
    browser.run("dalembert.setTheme('light')")
    light = browser.run(brightness)
    browser.press("d", "d")
    assert browser.run(brightness) < light - 40
    browser.press("h", "h")
    assert browser.run("document.getElementById('help').checkVisibility()") is True
    browser.press("Escape")
    assert browser.run("document.getElementById('help').checkVisibility()") is False


def test_marks_are_drawn_where_they_are_asked_for(recording: Recording) -> None:
    """The mass centre and the axis of the joint change the picture; hiding them gives it back."""
    browser, _, _, _ = recording
    pixels = "Array.from(dalembert.pixels()).reduce((h, x) => (h * 31 + x) % 1000000007, 7)"
    plain = browser.run(pixels)
    for key in ("c", "a"):
        browser.press(key, key)
        assert browser.run(pixels) != plain
        browser.press(key, key)
        assert browser.run(pixels) == plain


def test_the_page_fits_a_small_screen(recording: Recording) -> None:
    browser, _, _, _ = recording
    try:
        browser.resize(380, 700)
        browser.until("document.getElementById('view').width === 380")
        assert browser.run("document.documentElement.scrollWidth") == 380
        assert browser.run("document.getElementById('view').clientHeight") > 250
    finally:
        browser.resize(900, 600)
        browser.until("document.getElementById('view').width === 900")


def test_nothing_is_asked_of_the_network(recording: Recording) -> None:
    browser, _, _, _ = recording
    assert [address.split(":")[0] for address in browser.requests] == ["file"]
    assert browser.problems == []
    frame = """new Promise(done => {
      const once = { once: true };
      document.addEventListener("securitypolicyviolation", event => done(event.effectiveDirective), once);
      document.body.append(Object.assign(document.createElement("iframe"), { src: "http://127.0.0.1:9/" }));
    })"""
    assert browser.run(frame) == "frame-src"
    refused = browser.run("fetch('http://127.0.0.1:9/').then(() => 'answered', error => 'refused')")
    assert refused == "refused"
    assert any("Content Security Policy" in problem for problem in browser.problems)
    browser.problems.clear()


def test_names_cannot_put_anything_into_the_page(browser: Browser, tmp_path: Path) -> None:
    name = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>&amp;\u2028"
    builder = da.ModelBuilder()
    builder.add_body(name, parent="world", joint=da.Revolute(axis=(0, 1, 0)), joint_name=name + "j")
    builder.add_shape(name, da.shapes.Box((0.1, 0.1, 0.1), name=name))
    page = da.viewer.record((builder.build(), np.zeros((3, 1))), tmp_path / "x.html", title=name)
    browser.open(page.as_uri())
    assert browser.run("window.broken") is None
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.title") == name
    assert browser.run("dalembert.scene.bodies[0].name") == name
    assert browser.problems == []


def test_every_kind_of_shape_is_drawn(browser: Browser, tmp_path: Path) -> None:
    """Shape by shape, a picture with it differs from the empty ground's where the shape is."""
    stl = tmp_path / "wedge.stl"
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    lines = [
        "facet normal 0 0 0\nouter loop\n"
        + "\n".join("vertex {} {} {}".format(*corners[k]) for k in face)
        + "\nendloop\nendfacet"
        for face in faces
    ]
    stl.write_text("solid wedge\n" + "\n".join(lines) + "\nendsolid wedge\n")
    green = {"rgba": (0.0, 1.0, 0.0, 1.0)}
    shapes = [
        da.shapes.Box((0.6, 0.4, 0.2), **green),
        da.shapes.Sphere(0.3, **green),
        da.shapes.Capsule(0.2, 0.5, **green),
        da.shapes.Cylinder(0.2, 0.6, **green),
        da.model.shapes.Ellipsoid((0.4, 0.2, 0.3), **green),
        da.shapes.ConvexMesh(corners, **green),
        da.shapes.HeightField([[0.0, 0.3, 0.0], [0.2, 0.1, 0.4]], (1.0, 1.0), **green),
        da.shapes.Mesh(str(stl), (0.5, 0.5, 0.5), **green),
    ]
    browser.resize(320, 260)  # the processor draws
    try:
        for shape in shapes:
            builder = da.ModelBuilder()
            builder.add_body("it", parent="world", joint=da.Free())
            builder.add_shape("it", shape)
            browser.open(da.viewer.record(builder.build(), tmp_path / "shape.html").as_uri())
            assert browser.run("document.getElementById('notes').textContent") == ""
            assert browser.run(GREEN_SHARE) > 0.02, shape.kind
    finally:
        browser.resize(900, 600)


def test_the_page_itself_is_small() -> None:
    """The program without a motion is under 80 kB; the scene is JSON as the standard has it."""
    scene = scene_of(frames_of(turning_arm()[0], fps=60), title="x", follow=None)
    assert len(page_of(scene)) < 80_000
    assert json.loads(json.dumps(scene, allow_nan=False)) == scene


def test_other_samples_of_a_batch_are_ghosts(browser: Browser, tmp_path: Path) -> None:
    """Each is where its own sample is, is drawn unless they are hidden, and does not move the first."""
    model = da.models.two_link_arm()
    q = np.array([[0.0, 0.0], [1.0, 0.5], [-1.0, 0.3]])
    batch = da.rollout(model, q, np.zeros((3, 2)), steps=50, dt=0.01)
    browser.open(da.viewer.record(batch, tmp_path / "three.html").as_uri())
    browser.run("dalembert.jump(0.31)")
    with_ghosts = browser.run("Array.from(dalembert.pixels())")
    places = np.array(browser.run("dalembert.ghosts()")).reshape(2, 2, 7)[..., :3]
    np.testing.assert_allclose(places, batch.poses().translation[1:, 31], atol=2e-3)
    first = np.array(browser.run("dalembert.poses()")).reshape(2, 7)[:, :3]
    np.testing.assert_allclose(first, batch.poses().translation[0, 31], atol=2e-3)
    browser.press("o", "o")
    without = browser.run("Array.from(dalembert.pixels())")
    assert np.mean(np.abs(np.subtract(with_ghosts, without)) > 5) > 0.003
