"""The commands on a model: `dalembert info`, `check`, `convert` and `view`."""

import argparse
import contextlib
import math
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np

import dalembert as da
from dalembert import algorithms
from dalembert.analysis import near_singular_loops
from dalembert.analysis.plausibility import findings
from dalembert.cli.content import Content, complain, content, finite, say, say_json, table, understanding
from dalembert.errors import DalembertError
from dalembert.formats.meshes import MAX_MESH_BYTES, read_mesh
from dalembert.formats.mjcf.files import MESH_ENDINGS
from dalembert.formats.resources import read_regular_file
from dalembert.formats.triangle_mesh import TriangleMesh
from dalembert.host.atomic_files import write_file
from dalembert.model import Body
from dalembert.model.model import Model
from dalembert.model.shapes import Mesh, Shape
from dalembert.model.values import rebuilt

MAX_LIMIT_ROWS = 400
"""Joints beyond these are counted, not listed."""
LIMITS = ("lower", "upper", "velocity", "effort")

MJCF_ENDINGS: Final = (".xml", ".mjcf")


def info(options: argparse.Namespace) -> int:
    """Print what the file holds; 2 where it cannot be read."""
    found = content(options.file, options)
    if options.json:
        say_json(_facts(found))
        return 0
    model = found.model
    say(f"{found.path}: {found.format}\n")
    say(model.summary())
    say()
    centre = _center_of_mass(model)
    if centre is not None:
        say("centre of mass at the neutral pose: ({}) m".format(", ".join(f"{x:.4g}" for x in centre)))
    if model.loop_names:
        try:
            say(f"at the neutral pose: {_mobility(model)}")
        except DalembertError as error:
            say(str(error))
    say(_limits_text(model))
    if found.clip is not None:
        say()
        clip = _clip(found.clip)
        pace = f", one each {clip['frame_time']:.6g} s" if clip["frame_time"] else ""
        say(f"motion: {clip['frames']} frames{pace}, {clip['duration']:.4g} s in all")
    if not model.report:
        say("\nnothing in the file was ignored")
    return 0


def _center_of_mass(model: da.Model) -> list[float] | None:
    """Return the centre of mass in the world [m] at the neutral pose; None for a model without mass."""
    if not float(model.total_mass) > 0.0:
        return None
    time = 0.0 if model.time_dependent else None
    return [float(x) for x in algorithms.center_of_mass(model, model.neutral().tolist(), time=time)]


def _facts(found: Content) -> dict[str, Any]:
    """Return all facts of the text in machine-readable form; limits that do not exist are null."""
    model = found.model
    return {
        "file": found.path,
        "readable": True,
        "format": found.format,
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "gravity": [float(g) for g in model.gravity],
        "total_mass": finite(model.total_mass),
        "center_of_mass": _center_of_mass(model),
        "bodies": [_body(model, body) for body in model.bodies],
        "frames": {frame.name: _name(model, frame.body) for frame in model.frames},
        "loops": [
            {
                "name": loop.name,
                "type": loop.joint.kind,
                "predecessor": _name(model, loop.predecessor),
                "successor": _name(model, loop.successor),
            }
            for loop in model.loops
        ],
        "couplings": [
            {
                "name": coupling.name,
                "coefficients": dict(coupling.coefficients),
                "offset": coupling.offset,
                "dependent": coupling.dependent,
            }
            for coupling in model.couplings
        ],
        "constraints": [
            {"name": item.name, "kind": item.kind, "residuals": item.size} for item in model.constraints
        ],
        "world_shapes": [shape.kind for shape in model.world_shapes],
        "contact_exclusions": [list(pair) for pair in model.contact_exclusions],
        "contact_pairs": [[pair.first, pair.second] for pair in model.contact_pairs],
        "mobility": _mobility_facts(model),
        "actuated": list(model.actuated),
        "report": list(model.report),
        "motion": None if found.clip is None else _clip(found.clip),
    }


def _mobility(model: da.Model) -> Any:
    return da.analysis.mobility(model, time=0.0 if model.time_dependent else None)


def _mobility_facts(model: da.Model) -> dict[str, Any] | None:
    """Return n, n_c, r and the mobility at the neutral pose; None without loops or if they are open."""
    with contextlib.suppress(DalembertError):
        if model.loop_names:
            found = _mobility(model)
            return {"n": found.n, "constraints": found.n_c, "rank": found.rank, "mobility": found.mobility}
    return None


def _body(model: da.Model, body: Body) -> dict[str, Any]:
    return {
        "name": body.name,
        "parent": _name(model, body.parent),
        "joint": body.joint_name,
        "type": body.joint.kind,
        "dof": body.nv,
        "q": [body.q_slice.start, body.q_slice.stop],
        "v": [body.v_slice.start, body.v_slice.stop],
        "mass": finite(body.inertia.mass),
        "limits": {name: [finite(x) for x in row] for name, row in zip(LIMITS, _limits(body))},
        "shapes": [shape.kind for shape in body.shapes],
    }


def _name(model: da.Model, body: int) -> str:
    return "world" if body < 0 else model.bodies[body].name


def _limits(body: Body) -> list[tuple[float, ...]]:
    """Return the limits of a joint in the order of `LIMITS`, one number for each degree of freedom."""
    values: list[Any] = [getattr(body.limits, name) for name in LIMITS]
    return [value if isinstance(value, tuple) else (value,) for value in values]


def _limits_text(model: da.Model) -> str:
    limited = [body for body in model.bodies if any(np.isfinite(row).any() for row in _limits(body))]
    if not limited:
        return "no joint has limits"
    rows = [[body.joint_name, *map(_numbers, _limits(body))] for body in limited[:MAX_LIMIT_ROWS]]
    lines = ["", table(["limits of joint", *LIMITS], rows)]
    if len(limited) > MAX_LIMIT_ROWS:
        lines.append(f"… and {len(limited) - MAX_LIMIT_ROWS} joints more")
    free = sum(1 for body in model.bodies if body.nv) - sum(1 for body in limited if body.nv)
    counted = "1 movable joint has no limits" if free == 1 else f"{free} movable joints have no limits"
    return "\n".join([*lines, counted if free else "every movable joint has limits"])


def _numbers(values: Sequence[float]) -> str:
    texts = [f"{x:.4g}" if math.isfinite(x) else "–" for x in values]
    return texts[0] if len(set(texts)) == 1 else " ".join(texts)


def _clip(clip: Any) -> dict[str, Any]:
    time = np.asarray(clip.time, dtype=float)
    return {
        "frames": len(time),
        "duration": float(time[-1] - time[0]) if len(time) else 0.0,
        "frame_time": float(time[1] - time[0]) if len(time) > 1 else None,
        "largest_speed": finite(float(np.abs(clip.v).max())) if np.size(clip.v) else None,
    }


def check(options: argparse.Namespace) -> int:
    """Print the findings; return 1 if there are errors or warnings (`strict`: anything)."""
    found = content(options.file, options)
    doubts = [*findings(found.model), *near_singular_loops(found.model)]
    failed = any(options.strict or doubt.severity != "note" for doubt in doubts)
    counts = {name: sum(doubt.severity == name for doubt in doubts) for name in ("error", "warning", "note")}
    if options.json:
        facts = {"file": found.path, "readable": True, "ok": not failed, "counts": counts}
        say_json(facts | {"findings": [asdict(doubt) for doubt in doubts]})
        return int(failed)
    for doubt in doubts:
        message = doubt.message.replace(f"{found.path} line", "line")  # the last line names the file
        say(f"{doubt.severity}: {doubt.where}: {message} [{doubt.rule}]")
    listed = ", ".join(
        f"{count} {name}{'s' if count != 1 else ''}" for name, count in counts.items() if count
    )
    model = found.model
    say(f"{found.path}: {len(model.bodies)} bodies, nv = {model.nv}: {listed or 'no problems found'}")
    return int(failed)


def convert(options: argparse.Namespace) -> int:
    """Write the model with copies of its meshes and list what was lost; 1 where nothing was written, such as
    a model with meshes that the format cannot keep, 2 where A cannot be read."""
    target = Path(options.target)
    if target.exists() and not options.force:
        return _refuse(options, f"{target} exists; give another name, or --force to replace it")
    found = content([options.source], options)
    model, copies = found.model, _MeshCopies(target)
    try:
        copied = copies.of(model)
        if copies.lost and not options.accept_losses:
            what = (
                f"{copies.lost[0]}{f' ({len(copies.lost)} meshes like this)' if len(copies.lost) > 1 else ''}"
            )
            return _refuse(options, f"{target} cannot keep the mesh {what}; --accept-losses leaves it out")
        if copies.contents and copies.folder.exists() and not options.force:
            return _refuse(options, f"{copies.folder} exists; give another name, or --force to write into it")
        copies.write()
        losses = [*da.save(copied, target, accept_losses=options.accept_losses)]
    except (DalembertError, OSError) as error:
        copies.remove()
        return _refuse(options, str(error))
    if found.clip is not None:
        losses.append(f"the motion of {len(found.clip.time)} frames: the format holds the skeleton only")
    if options.json:
        facts = {"source": found.path, "target": str(target), "written": True, "losses": losses}
        say_json(facts | {"report": list(model.report)})
        return 0
    for line in model.report:
        say(f"read: {line}")
    for line in losses:
        say(f"lost: {line}")
    count = {0: "nothing lost", 1: "1 loss"}.get(len(losses), f"{len(losses)} losses")
    if copies.contents:
        say(f"copied {len(copies.contents)} meshes to {copies.folder}")
    say(f"wrote {target}: {len(model.bodies)} bodies, nq = {model.nq}, nv = {model.nv}, {count}")
    return 0


def _refuse(options: argparse.Namespace, reason: str) -> int:
    if options.json:
        say_json({"source": options.source, "target": options.target, "written": False, "error": reason})
    complain(reason)
    return 1


def view(options: argparse.Namespace) -> int:
    """Show the file until Ctrl-C, or write the recording; 2 where a file cannot be read."""
    files = options.file
    if len(files) == 1 and Path(files[0]).suffix.lower() in (".html", ".htm"):
        if not Path(files[0]).is_file():
            complain(f"{files[0]} does not exist")
            return 2
        say(f"{files[0]} is a recording: any browser plays it")
        if not options.no_open:
            webbrowser.open(Path(files[0]).resolve().as_uri())
        return 0
    motion = _motion(files, options)
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
        with understanding(files):
            trajectory = da.Trajectory.load(files[0], roots=options.allow or (), trusted=options.trust)
            return trajectory[(options.sample,) * len(trajectory.batch)] if trajectory.batch else trajectory
    found = content(files, options)
    return found.model if found.clip is None else found.clip


@final
class _MeshCopies:
    """Copies of meshes in the folder `<name>_meshes` beside a target file; `lost` names those that cannot be
    kept. MJCF takes few formats: a mesh in another becomes an OBJ file, where it can be read.
    """

    def __init__(self, target: Path) -> None:
        self._beside = target.resolve().parent
        self.folder = self._beside / f"{target.stem}_meshes"
        self._endings = MESH_ENDINGS if target.suffix.lower() in MJCF_ENDINGS else ()
        self._copies: dict[str, Path | None] = {}
        self.contents: dict[Path, bytes] = {}
        self.lost: list[str] = []

    def of(self, model: Model) -> Model:
        """Return the model with its meshes named where their copies will be; nothing is written yet."""
        bodies = [replace(body, shapes=self._rename_meshes(body.shapes)) for body in model.bodies]
        return rebuilt(model, bodies=bodies, world_shapes=self._rename_meshes(model.world_shapes))

    def write(self) -> None:
        """Write the copies."""
        if self.contents:
            self.folder.mkdir(exist_ok=True)
        for path, data in self.contents.items():
            write_file(path, data)

    def remove(self) -> None:
        """Remove the copies, and their folder where it is empty then."""
        for path in self.contents:
            path.unlink(missing_ok=True)
        if self.contents and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _rename_meshes(self, shapes: Iterable[Shape]) -> tuple[Shape, ...]:
        found: list[Shape] = []
        for shape in shapes:
            copy = self._copy(shape) if isinstance(shape, Mesh) else None
            found.append(shape if copy is None else replace(shape, path=str(copy)))  # type: ignore[call-arg]
        return tuple(found)

    def _copy(self, shape: Mesh) -> Path | None:
        """Return where the copy of a mesh will be, or None for one that stays where it is or is lost."""
        path = Path(shape.path)
        if shape.path not in self._copies:
            self._copies[shape.path] = None
            try:
                if not shape.readable:
                    raise DalembertError("was not found when the model was loaded")
                self._copies[shape.path] = self._plan_copy(path)
            except DalembertError as error:
                self.lost.append(f"{path.name}: {error}")
        return self._copies[shape.path]

    def _plan_copy(self, path: Path) -> Path | None:
        fits = not self._endings or path.suffix.lower() in self._endings
        if fits and path.resolve().is_relative_to(self._beside):
            return None
        data = read_regular_file(path, limit=MAX_MESH_BYTES) if fits else _obj_text(read_mesh(path)).encode()
        name, number = path.name if fits else f"{path.stem}.obj", 1
        while self.folder / name in self.contents:
            number += 1
            name = f"{path.stem}_{number}{path.suffix if fits else '.obj'}"
        self.contents[self.folder / name] = data
        return self.folder / name


def _obj_text(mesh: TriangleMesh) -> str:
    """Return a mesh as the text of an OBJ file."""
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in mesh.faces.tolist()]
    return "\n".join(lines) + "\n"
