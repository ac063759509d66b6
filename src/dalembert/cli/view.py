"""`dalembert view`: a model or a motion in the browser, or as a file that any browser plays."""

import argparse
import sys
import webbrowser
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
    viewer = da.viewer.view(
        motion,
        port=options.port,
        open_browser=not options.no_open,
        block=False,
        title=title,
        fps=options.fps,
        follow=options.follow,
    )
    say(f"showing {title} at {viewer.url} on this machine; Ctrl-C ends it")
    sys.stdout.flush()  # also where the output is a file
    viewer.wait()
    return 0


def _motion(files: list[str], options: argparse.Namespace) -> Any:
    """What `da.viewer` shows: a trajectory, a clip, or a model."""
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
