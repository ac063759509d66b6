"""Motions as files that any browser plays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dalembert.errors import ArgumentError, own_errors
from dalembert.host.atomic_files import write_file
from dalembert.viewer.frames import frames_of
from dalembert.viewer.page import page_of
from dalembert.viewer.scene import scene_of

__all__ = ["record"]


@own_errors
def record(
    motion: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    fps: float = 60.0,
    follow: str | None = None,
) -> Path:
    """Write a motion as one HTML file that plays in any browser, without Python and without a network.

    `motion`: a trajectory, a clip, a transition, a model at rest (standing on its ground, if it has one),
    (model, q) or (model, time, q), q `(nq,)` or `(frames, nq)`, 60 frames a second where no times are given;
    of a batch of trajectories the first, with up to 31 others as ghosts. `fps` bounds the pictures a second;
    the page blends them. `follow`: the body that the camera follows, or "com". Returns the path.

    >>> q = np.stack([0.5 * np.sin(np.linspace(0.0, 6.0, 100))] * 2, axis=1)
    >>> da.viewer.record((da.models.double_pendulum(), q), "swing.html").name
    'swing.html'
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(f"a recording is an HTML file; {str(target)!r} should end in .html")
    frames = frames_of(motion, fps=fps)
    name = title if title is not None else frames.model.name
    page = page_of(scene_of(frames, title=name, follow=follow))
    write_file(target, page)
    return target
