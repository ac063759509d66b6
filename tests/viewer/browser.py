"""Chromium without a window, steered through its DevTools protocol over two pipes: standard library alone."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 120.0
"""Seconds to wait for an answer: pictures are drawn by the processor, which others may be using."""

AS_3_AND_4 = """
import os, sys
r, w = (os.dup2(int(fd), 60 + k) for k, fd in enumerate(sys.argv[1:3]))
os.dup2(r, 3)
os.dup2(w, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The protocol's pipes are descriptors 3 and 4 of the browser."""


def chromium() -> str:
    """The path of the browser; without one the test is skipped."""
    if os.name != "posix":
        pytest.skip("the browser is steered through pipes, which need a POSIX system")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser to look with; install one of {', '.join(NAMES)}")
    return found


class Browser:
    """One tab of a browser; every request that the page makes is in `requests`, errors in `problems`."""

    def __init__(self, folder: Path, *, width: int = 900, height: int = 600) -> None:
        to_browser, from_here = os.pipe()
        to_here, from_browser = os.pipe()

        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                AS_3_AND_4,
                str(to_browser),
                str(from_browser),
                chromium(),
                "--headless=new",
                "--no-sandbox",  # containers forbid it, and the page is the tests' own
                "--no-first-run",
                "--use-angle=swiftshader",
                "--enable-unsafe-swiftshader",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                f"--user-data-dir={folder}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._out, self._in = from_here, to_here
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.problems: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.resize(width, height)

    def resize(self, width: int, height: int, *, scale: float = 1.0) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def send(self, method: str, **parameters: Any) -> Any:
        """The result of a command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"the browser did not answer within {PATIENCE:g} s"
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser has ended"
            self._buffer += piece
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif message.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(str(details.get("exception", {}).get("description", details["text"])))
        elif message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])

    def open(self, address: str) -> None:
        """Go to an address and wait until the page has drawn a picture."""
        self.send("Page.navigate", url="about:blank")  # what the page before still asks for ends here
        self.problems.clear()
        self.send("Page.navigate", url=address)
        self.until("window.dalembert && window.dalembert.drawn > 0")

    def run(self, code: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        answer = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition: str, *, despite: str | None = None) -> None:
        """Wait for a condition in the page; problems end the wait but for those of which `despite` tells."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"!!({condition})"):
            found = [problem for problem in self.problems if despite is None or despite not in problem]
            assert not found, found
            assert time.monotonic() < end, f"never came true: {condition}"
            time.sleep(0.05)

    def press(self, key: str, text: str = "") -> None:
        """A key, pressed and released."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "")

    def mouse(self, kind: str, x: float, y: float, *, buttons: int = 0, **more: Any) -> None:
        button = {0: "none", 1: "left", 2: "right"}[buttons]
        self.send(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            buttons=buttons,
            clickCount=1,
            **more,
        )

    def click(self, selector: str, *, across: float = 0.5) -> None:
        """Click on an element, at this share of its width."""
        box = self.run(
            f"(r => [r.left, r.top, r.width, r.height])(document.querySelector('{selector}')"
            ".getBoundingClientRect())"
        )
        assert box[2] > 0, f"{selector} is not to be seen"
        x, y = box[0] + across * box[2], box[1] + box[3] / 2
        self.mouse("mousePressed", x, y, buttons=1)
        self.mouse("mouseReleased", x, y, buttons=1)

    def screenshot(self, path: Path) -> None:
        self.until("window.dalembert.drawn > 0")
        picture = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(picture))

    def close(self) -> None:
        try:
            self._session = None
            self.send("Browser.close")
        except (AssertionError, OSError):
            self._process.kill()
        self._process.wait(20)
        os.close(self._out)
        os.close(self._in)
