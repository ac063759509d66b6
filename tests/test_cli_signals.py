"""The command line under Ctrl-C and with readers that leave: an exit status, and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dalembert as da

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no signals between processes")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(da.__file__).parent.parent)}

READY = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from dalembert.cli import main
print("ready", flush=True)
sys.exit(main(sys.argv[1:]))
"""
"""SIGINT as in a terminal, wherever the tests were started."""


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        (["check", "humanoid"], 0.1),
        (["count", "humanoid", "--all"], 2.0),
        (["count", "humanoid"], 0.5),
        (["simulate", "humanoid", "--duration", "1000"], 3.0),
        (["simulate", "humanoid", "--duration", "1000"], 1.0),
        (["doctor"], 0.3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_ctrl_c_ends_a_command_with_130_and_no_traceback(
    arguments: list[str], seconds: float, tmp_path: Path
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", READY, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    late = threading.Timer(120.0, child.kill)
    late.start()
    try:
        assert child.stdout.readline() == "ready\n"
        threading.Timer(seconds, child.send_signal, [signal.SIGINT]).start()
        _, errors = child.communicate(timeout=120)
    finally:
        late.cancel()
        child.kill()
    assert "Traceback" not in errors
    # 0 where the command was done before, or took the interrupt as the end of its work; -SIGINT where Python
    # was shutting down and had given the signal back to the system.
    assert child.returncode in (0, 130, -signal.SIGINT)


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["info", "humanoid"], ["info", "humanoid", "--json"], ["count", "arm6"]]
)
def test_a_reader_that_leaves_is_no_error(arguments: list[str]) -> None:
    """`dalembert info robot.urdf | head -1`, and a reader that is gone from the start."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dalembert", *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 0
