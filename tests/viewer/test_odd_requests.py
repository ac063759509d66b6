"""The viewer's server under odd, broken and malicious requests: right answers, no traceback, no end."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.stress.amounts import amount
from tests.viewer.motions import turning_arm

import dalembert as da
from dalembert.viewer import live

BODY = b'{"values": [0.5], "moved": 0}'


@pytest.fixture
def viewer() -> Iterator[da.viewer.Viewer]:
    with da.viewer.view(turning_arm()[0], open_browser=False, block=False) as one:
        yield one


def exchange(viewer: da.viewer.Viewer, request: bytes, *, patience: float = 20.0) -> bytes:
    """Send bytes and return what comes back until the server closes the connection."""
    found = b""
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=patience) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                found += piece
        except (ConnectionError, BrokenPipeError):
            pass  # refused before all of it was sent
    return found


def request(viewer: da.viewer.Viewer, line: str, *headers: str, body: bytes = b"") -> bytes:
    host = f"Host: 127.0.0.1:{viewer.port}"
    text = "\r\n".join([line.replace("@", urlsplit(viewer.url).path), host, *headers, "", ""])
    return text.encode("latin-1") + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else 0


def serves(viewer: da.viewer.Viewer) -> None:
    with urllib.request.urlopen(viewer.url, timeout=30) as answer:
        assert answer.status == 200
        assert b"<title>" in answer.read()


LENGTHS = {
    "Content-Length: -1": 400,
    "Content-Length: +5": 400,
    "Content-Length: 0x10": 400,
    "Content-Length: 1e3": 400,
    "Content-Length: \xb2": 400,
    "Content-Length:": 400,
    "Content-Length: 5, 5": 400,
    "Content-Length: 29\r\nContent-Length: 30": 400,
    "Content-Length: 9999999999": 413,
    "Content-Length: " + "9" * 5000: 413,
    "Content-Length: 500": 400,
    "Transfer-Encoding: chunked": 411,
    "Transfer-Encoding: chunked\r\nContent-Length: 29": 411,
    "X-Nothing: 1": 411,
    "Content-Length: 29": 200,
}


@pytest.mark.parametrize("header", LENGTHS)
def test_bodies_of_any_announced_length_are_answered(
    viewer: da.viewer.Viewer, header: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = exchange(viewer, request(viewer, "POST @pose HTTP/1.1", header, body=BODY))
    assert status(answer) == LENGTHS[header]
    serves(viewer)
    assert capfd.readouterr().err == ""


ODD = {
    b"": 0,
    b"\r\n": 0,
    b"\r\n\r\n\r\n": 0,
    b"GET": 400,
    b"GET /\r\n\r\n": 403,  # HTTP/0.9, without a Host
    b"POST /\r\n\r\n": 400,
    b"GET / HTTP/9.9\r\n\r\n": 505,
    b"GET / HTTP/x\r\n\r\n": 400,
    b"GET / HTTP/1.1 more\r\n\r\n": 400,
    b"GET / HTTP/1.1\r\n\r\n": 403,  # no Host
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n": 400,
    b"GET // HTTP/1.1\r\nHost: [\r\n\r\n": 403,
    b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n": 403,
    b"GET /\xff\xfe HTTP/1.1\r\nHost: \xff\r\n\r\n": 403,
    b"GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://[::\r\n\r\n": 403,
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n": 403,
    b"BREW /pot HTTP/1.1\r\n\r\n": 501,
    b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n": 414,
    b"GET / HTTP/1.1\r\nX: " + b"a" * 70000 + b"\r\n\r\n": 431,
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n": 431,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)): 400,  # a TLS handshake
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": 505,
}


@pytest.mark.parametrize("sent", ODD, ids=lambda sent: repr(sent[:40]))
def test_odd_requests_are_answered_and_the_server_goes_on(
    viewer: da.viewer.Viewer, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = exchange(viewer, sent)
    assert status(answer) == ODD[sent]
    serves(viewer)
    assert capfd.readouterr().err == ""


def test_websockets_and_pipelines_get_one_answer(
    viewer: da.viewer.Viewer, capfd: pytest.CaptureFixture[str]
) -> None:
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: !",
    )
    assert status(exchange(viewer, request(viewer, "GET @ HTTP/1.1", *upgrade))) == 200
    twice = exchange(viewer, 3 * request(viewer, "GET / HTTP/1.1", "Connection: keep-alive"))
    assert twice.count(b"HTTP/1.") == 1
    head = exchange(viewer, request(viewer, "HEAD @ HTTP/1.1"))
    assert status(head) == 200
    assert head.endswith(b"\r\n\r\n")
    assert capfd.readouterr().err == ""


def test_random_bytes_and_early_leavers_do_no_harm(
    viewer: da.viewer.Viewer, capfd: pytest.CaptureFixture[str]
) -> None:
    """Good requests with bytes changed, cut short, or whose sender does not wait for the answer."""
    rng = np.random.default_rng(5)
    whole = request(viewer, "POST @pose HTTP/1.1", "Content-Length: 29", "Origin: null", body=BODY)
    for _ in range(amount(60, 3000)):
        sent = bytearray(whole)
        for place in rng.integers(0, len(sent), size=rng.integers(0, 8)):
            sent[place] = rng.integers(0, 256)
        cut = int(rng.integers(1, len(sent) + 1))
        if rng.random() < 0.5:
            exchange(viewer, bytes(sent[:cut]))
            continue
        with socket.create_connection(("127.0.0.1", viewer.port), timeout=20.0) as connection:
            connection.sendall(sent[:cut])
            if rng.random() < 0.5:  # leave with a reset
                linger = np.array([1, 0], np.int32).tobytes()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    serves(viewer)
    assert capfd.readouterr().err == ""


def test_slow_senders_are_dropped_and_do_not_keep_others_out(
    viewer: da.viewer.Viewer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Connections that dawdle, more than there is room for: they are closed in time."""
    monkeypatch.setattr(live, "CONNECTION_SECONDS", 1.0)
    ended, begun = threading.Event(), time.monotonic()

    def drip(connection: socket.socket) -> None:
        try:
            while not ended.wait(0.2):
                connection.sendall(b"X")
        except OSError:
            pass

    slow = [socket.create_connection(("127.0.0.1", viewer.port), timeout=20.0) for _ in range(80)]
    try:
        for connection in slow[:10]:
            threading.Thread(target=drip, args=(connection,), daemon=True).start()
        while True:
            try:
                serves(viewer)
                break
            except OSError:
                assert time.monotonic() - begun < 20.0
                time.sleep(0.1)
    finally:
        ended.set()
        for connection in slow:
            connection.close()
    assert capfd.readouterr().err == ""
