"""`dalembert view`: show a model or a motion in the browser, or as a file that any browser plays."""

import argparse
import contextlib
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dalembert as da
from dalembert.cli.content import complain, content, say
from dalembert.errors import DalembertError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Show the file until Ctrl-C, or write the recording; 2 where a file cannot be read."""
    files = options.file
    if len(files) == 1 and Path(files[0]).suffix.lower() in (".html", ".htm"):
        return _open_recording(Path(files[0]), options)
    try:
        motion = _motion(files, options)
    except DalembertError as error:
        complain(str(error))
        return 2
    title = options.title or " ".join(Path(file).name for file in files)
    if options.html is not None:
        target = Path(options.html)
        if target.exists() and not options.force:
            complain(f"{target} exists; give another name, or --force to replace it")
            return 1
        written = da.viewer.record(motion, target, title=title, fps=options.fps, follow=options.follow)
        say(f"wrote {written} ({written.stat().st_size / 1e6:.2f} MB): open it in any browser")
        return 0
    with (
        _signals_that_end() as ended,
        contextlib.suppress(KeyboardInterrupt),
        da.viewer.view(
            motion,
            port=options.port,
            open_browser=not options.no_open,
            block=False,
            title=title,
            fps=options.fps,
            follow=options.follow,
        ) as viewer,
    ):
        say(f"showing {title} at {viewer.url} on this machine; Ctrl-C ends it")
        sys.stdout.flush()  # also where the output is a file
        viewer.wait()
    return 128 + ended[0] if ended and ended[0] != signal.SIGINT else 0


@contextlib.contextmanager
def _signals_that_end() -> Iterator[list[int]]:
    """Let SIGINT, SIGTERM and SIGHUP end the viewer as Ctrl-C does; yield the list of those that came.

    SIGINT too, since the shell makes background jobs of scripts ignore it, and a server that cannot be
    interrupted outlives its user's attention (Jupyter does the same).
    """
    ended: list[int] = []

    def end(number: int, _: object) -> None:
        ended.append(number)
        raise KeyboardInterrupt

    names = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is unknown on Windows
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        yield ended  # signals arrive in the main thread, which belongs to somebody else
        return
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _motion(files: list[str], options: argparse.Namespace) -> Any:
    """Return what `da.viewer` shows: a trajectory, a clip, or a model."""
    if len(files) == 1 and Path(files[0]).suffix.lower() == ".npz":
        trajectory = da.Trajectory.load(files[0], roots=options.allow or (), trusted=options.trust)
        return trajectory[(options.sample,) * len(trajectory.batch)] if trajectory.batch else trajectory
    found = content(files, options)
    return found.model if found.clip is None else found.clip


def _open_recording(path: Path, options: argparse.Namespace) -> int:
    if not path.is_file():
        complain(f"{path} does not exist")
        return 2
    say(f"{path} is a recording: any browser plays it")
    if not options.no_open:
        webbrowser.open(path.resolve().as_uri())
    return 0
