"""`dalembert view`: shows files of every kind, writes recordings, and says what it cannot read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from tests.viewer.motions import bouncing_ball

import dalembert as da
from dalembert.cli import main

BVH = """HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Head
  {
    OFFSET 0 50 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 25 0
    }
  }
}
MOTION
Frames: 5
Frame Time: 0.05
0 90 0 0 0 0 0  0 0
0 90 0 0 0 0 0  5 0
0 90 0 0 0 0 0 15 0
0 90 0 0 0 0 0 20 0
0 90 0 0 0 0 0 15 0
"""


def test_models_motions_and_trajectories_become_recordings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bouncing_ball(steps=20).save(tmp_path / "ball.npz")
    (tmp_path / "nod.bvh").write_text(BVH)
    da.save(da.models.arm7(), tmp_path / "arm.json")
    for name, text in (("arm.json", "arm.json"), ("nod.bvh", "nod.bvh"), ("ball.npz", "ball.npz")):
        target = tmp_path / f"{name}.html"
        assert main(["view", str(tmp_path / name), "--html", str(target)]) == 0
        assert f"wrote {target}" in capsys.readouterr().out
        assert f"<title>{text}</title>" in target.read_text(encoding="utf-8")


def test_one_sample_of_a_batch_is_chosen(tmp_path: Path) -> None:
    model = da.models.pendulum()
    q = np.array([[0.5], [1.5]])
    da.rollout(model, q, np.zeros((2, 1)), steps=5, dt=0.01).save(tmp_path / "both.npz")
    pages = []
    for sample in ("0", "1"):
        target = tmp_path / f"{sample}.html"
        main(["view", str(tmp_path / "both.npz"), "--html", str(target), "--sample", sample])
        pages.append(target.read_text(encoding="utf-8"))
    assert pages[0] != pages[1]
    assert (
        main(["view", str(tmp_path / "both.npz"), "--html", str(tmp_path / "x.html"), "--sample", "2"]) == 2
    )


def test_recordings_are_not_replaced_unless_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "old.html"
    target.write_text("precious")
    assert main(["view", "pendulum", "--html", str(target)]) == 1
    assert "--force" in capsys.readouterr().err
    assert target.read_text() == "precious"
    assert main(["view", "pendulum", "--html", str(target), "--force"]) == 0
    assert "precious" not in target.read_text(encoding="utf-8")


def test_what_cannot_be_read_exits_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.urdf").write_text("<robot")
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    for name in ("nothing", "missing.urdf", "broken.urdf", "broken.npz", "missing.html"):
        path = name if name == "nothing" else str(tmp_path / name)
        assert main(["view", path, "--no-open"]) == 2, name
        assert capsys.readouterr().err.startswith("dalembert: ")
    with pytest.raises(SystemExit, match="2"):
        main(["view", "pendulum", "--port", "70000"])


IGNORING = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from dalembert.cli import main; sys.exit(main(['view', 'pendulum', '--no-open']))"
)
"""What a shell makes of a background job: SIGINT is ignored."""

LISTENING = IGNORING.replace("SIG_IGN", "default_int_handler")

STATUS = {"SIGINT": 0, "SIGTERM": 143, "SIGHUP": 129}


@pytest.mark.skipif(os.name != "posix", reason="Windows has no signals between processes")
@pytest.mark.parametrize("code", [IGNORING, LISTENING], ids=["in the background", "in the foreground"])
@pytest.mark.parametrize("name", STATUS)
def test_a_viewer_serves_until_a_signal_ends_it(name: str, code: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(da.__file__).parent.parent)},
    )
    late = threading.Timer(60.0, process.kill)
    late.start()
    try:
        line = process.stdout.readline()
        address = line.split(" at ")[1].split(" ")[0]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert b"<title>pendulum</title>" in answer.read()
        process.send_signal(getattr(signal, name))
        _, errors = process.communicate(timeout=60)
        assert process.returncode == STATUS[name]
        assert errors == ""
    finally:
        late.cancel()
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=60)
