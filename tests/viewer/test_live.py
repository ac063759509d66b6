"""The live viewer: sliders move bodies, loops stay closed, and only this machine's browser is answered."""

from __future__ import annotations

import http.client
import json
import math
import socket
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.viewer.browser import Browser
from tests.viewer.motions import SPEED, turning_arm

import dalembert as da
from dalembert.viewer.live import configuration_of, sliders_of, values_of

MOVE = (
    "(i => {{ i.value = {value}; i.dispatchEvent(new Event('input')); }})"
    "(document.querySelectorAll('[data-slider]')[{place}])"
)


@pytest.fixture
def viewer() -> Iterator[da.viewer.Viewer]:
    with da.viewer.view(turning_arm()[0], open_browser=False, block=False) as one:
        yield one


def ask(
    viewer: da.viewer.Viewer, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=30)
    try:
        connection.request(
            method, path, body, {name.replace("_", "-"): text for name, text in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def at(viewer: da.viewer.Viewer, name: str = "") -> str:
    """The secret path of the page, or of what is beside it."""
    return urlsplit(viewer.url).path + name


def test_a_slider_moves_the_bodies_and_the_picture(browser: Browser, viewer: da.viewer.Viewer) -> None:
    browser.open(viewer.url)
    before = browser.run("Array.from(dalembert.pixels())")
    browser.run(MOVE.format(place=0, value=1.2))
    browser.until("dalembert.state.posed")
    pose = browser.run("dalembert.poses()")
    np.testing.assert_allclose(pose, [0, 0, 0, math.cos(0.6), 0, math.sin(0.6), 0], atol=1e-6)
    after = browser.run("Array.from(dalembert.pixels())")
    assert np.mean(np.abs(np.subtract(before, after)) > 20) > 0.01
    assert browser.run("document.querySelector('.slider output').textContent") == "68.8°"
    browser.click("#reset-joints")
    browser.until("Math.abs(dalembert.poses()[3] - 1) < 1e-6")
    assert browser.problems == []


def test_a_slider_is_moved_by_the_mouse(browser: Browser, viewer: da.viewer.Viewer) -> None:
    browser.open(viewer.url)
    browser.click(".slider input", across=0.75)
    browser.until("dalembert.state.posed")
    angle = 2 * math.atan2(*(browser.run("dalembert.poses()")[k] for k in (5, 3)))
    assert angle == pytest.approx(math.pi / 2, abs=0.3)


def test_sliders_follow_a_motion_and_take_over_from_it(browser: Browser) -> None:
    with da.viewer.view(turning_arm(), open_browser=False, block=False) as viewer:
        browser.open(viewer.url)
        browser.run("dalembert.jump(0.5)")
        assert browser.run("Number(document.querySelector('.slider input').value)") == pytest.approx(
            0.5 * SPEED, abs=1e-6
        )
        browser.run("dalembert.play(true)")
        browser.run(MOVE.format(place=0, value=-1.0))
        browser.until("dalembert.state.posed && !dalembert.state.playing")
        assert browser.run("dalembert.poses()[5]") == pytest.approx(math.sin(-0.5), abs=1e-6)
        browser.press("Home")
        browser.until("!dalembert.state.posed && dalembert.poses()[3] > 0.999")


def test_the_end_of_the_viewer_is_said_in_the_page(browser: Browser) -> None:
    viewer = da.viewer.view(turning_arm()[0], open_browser=False, block=False)
    browser.open(viewer.url)
    viewer.close()
    browser.run(MOVE.format(place=0, value=1.0))
    browser.until(
        "document.querySelector('.message').textContent.includes('was ended')",
        despite="Failed to load resource",
    )
    browser.problems.clear()


def test_loops_stay_closed_and_the_moved_joint_stays_where_it_was_put() -> None:
    model = da.models.four_bar()
    sliders = sliders_of(model)
    for angle in (0.4, 0.9, 1.5):
        q = configuration_of(model, sliders, [angle, 0.0, 0.0], moved=0)
        assert q[0] == angle
        np.testing.assert_allclose(da.constraints.constraint_error(model, q), 0.0, atol=1e-6)


def test_sliders_and_configurations_invert_each_other() -> None:
    """Every joint of the humanoid, quaternions included, at random; the quaternion's sign is free."""
    model = da.models.humanoid()
    sliders = sliders_of(model)
    assert len(sliders) == model.nv
    for seed in range(20):
        q, _ = model.random_state(seed)
        again = configuration_of(model, sliders, values_of(sliders, q))
        np.testing.assert_allclose(da.difference(model, q, again), 0.0, atol=1e-7)


def test_ranges_are_the_limits() -> None:
    model = da.models.humanoid()
    elbow = next(slider for slider in sliders_of(model) if slider.joint == "left_elbow")
    assert (elbow.low, elbow.high, elbow.unit, elbow.name) == (0.0, 2.5, "rad", "angle")
    root = [(s.name, s.unit) for s in sliders_of(model) if s.joint == "root"]
    assert root == [("x", "m"), ("y", "m"), ("z", "m"), ("yaw", "rad"), ("pitch", "rad"), ("roll", "rad")]


def test_other_hosts_and_pages_are_refused(viewer: da.viewer.Viewer) -> None:
    port = viewer.port
    assert ask(viewer, "GET", at(viewer))[0] == 200
    assert ask(viewer, "GET", at(viewer), Host=f"localhost:{port}")[0] == 200
    for host in ("example.com", f"example.com:{port}", "127.0.0.1.example.com", "", "localhost:1", "[::1"):
        assert ask(viewer, "GET", at(viewer), Host=host)[0] == 403
    body = json.dumps({"values": [0.5], "moved": 0})
    own = f"http://127.0.0.1:{port}"
    assert ask(viewer, "POST", at(viewer, "pose"), body)[0] == 200
    assert ask(viewer, "POST", at(viewer, "pose"), body, Origin=own)[0] == 200
    for origin in (
        "http://example.com",
        "null",
        "http://[",
        f"https://127.0.0.1:{port}",
        "http://127.0.0.1:1",
    ):
        assert ask(viewer, "POST", at(viewer, "pose"), body, Origin=origin)[0] == 403


def test_every_address_needs_the_secret(viewer: da.viewer.Viewer) -> None:
    """Other users of this machine reach the port, and find nothing there; nor does another viewer's secret
    open this one."""
    secret = at(viewer).strip("/")
    assert len(secret) >= 22  # 128 bits and more
    body = json.dumps({"values": [0.5], "moved": 0})
    with da.viewer.view(turning_arm()[0], open_browser=False, block=False) as other:
        wrong = ("/", "//", "/pose", "/index.html", "/favicon.ico", "/../../etc/passwd", f"/{secret}",
                 at(other), at(viewer)[:-2] + "/", at(viewer).upper(), at(viewer, "../"),
                 at(viewer, "other"), "/once/",
                 "/once/" + secret, "*")  # fmt: skip
        for path in wrong:
            status, answer = ask(viewer, "GET", path)
            assert status == 404, path
            assert secret.encode() not in answer
            assert ask(viewer, "POST", path, body)[0] == 403, path
    status, page = ask(viewer, "GET", at(viewer))
    assert status == 200
    assert secret.encode() not in page


def test_answers_are_kept_out_of_caches_frames_and_referrers(viewer: da.viewer.Viewer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=30)
    for path in (at(viewer), "/"):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    connection.close()


def test_a_browser_is_sent_to_the_page_by_an_address_that_works_once(
    viewer: da.viewer.Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands on the browser's command line is of no use to those who read it later."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    viewer.open_browser()
    (address,) = opened
    secret = at(viewer).strip("/")
    assert secret not in address
    with urllib.request.urlopen(address, timeout=30) as answer:
        assert answer.url == viewer.url
        assert b"<title>" in answer.read()
    assert ask(viewer, "GET", urlsplit(address).path)[0] == 404


def test_only_this_machine_is_listened_to(viewer: da.viewer.Viewer) -> None:
    assert viewer.url.startswith(f"http://127.0.0.1:{viewer.port}/")
    assert viewer._server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "question",
    ["", "[]", "{}", "[" * 5000, '{"values": 1, "moved": null}', '{"values": [], "moved": null}']
    + ['{"values": [NaN], "moved": 0}', '{"values": ["x"], "moved": 0}', '{"values": [0], "moved": 7}']
    + [
        '{"values": [1' + "0" * 400 + '], "moved": 0}',
        '{"values": [1e999], "moved": 0}',
        '"values"',
        "1",
        "null",
    ]
    + ['{"values": [0], "moved": 0.0}', '{"values": [0], "moved": [0]}', '{"values": [[[0]]], "moved": 0}'],
)
def test_bad_questions_are_answered_kindly(viewer: da.viewer.Viewer, question: str) -> None:
    status, answer = ask(viewer, "POST", at(viewer, "pose"), question)
    assert status == 400
    assert b"expected" in answer or b"no slider" in answer
    assert ask(viewer, "GET", at(viewer))[0] == 200


def test_bad_ports_are_refused_by_name() -> None:
    model = turning_arm()[0]
    for port in (-1, 65536, 1.5, True):
        with pytest.raises(da.errors.ArgumentError, match="port"):
            da.viewer.view(model, port=port, open_browser=False, block=False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(da.errors.FileError, match="leave it out"):
            da.viewer.view(model, port=taken.getsockname()[1], open_browser=False, block=False)
