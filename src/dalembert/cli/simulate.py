"""`dalembert simulate`: simulate a model with ground, contact, servos and pushes, and save the motion."""

import argparse
import contextlib
import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

import dalembert as da
from dalembert.api.constraints import close_loops
from dalembert.cli import content as files
from dalembert.cli.content import complain, finite, say, say_json, table, understanding
from dalembert.cli.parser import Push
from dalembert.contact.pairs import ContactPair
from dalembert.errors import ArgumentError, DalembertError, FileError, UnknownNameError
from dalembert.formats.meshes import with_hulls
from dalembert.formats.mjcf import INITIAL_POSE, read_mjcf
from dalembert.formats.npz import open_archive
from dalembert.formats.resources import read_regular_file
from dalembert.model.configuration import normalize
from dalembert.simulation import SimulationWarning

Array = npt.NDArray[np.float64]

ENDINGS: Final = (".npz", ".parquet", ".html", ".htm")
DEFAULT_FRAME_TIME: Final = 0.01
"""Time between frames [s] unless `--every` says otherwise."""
PROGRESS_BAR_WIDTH: Final = 30
"""Characters of the progress bar."""
RANDOM_VELOCITY_STD: Final = 0.5
"""Standard deviation of random velocities [rad/s, m/s]."""
SERVO_SAG: Final = 0.03
"""Deflection [rad] of a servo under the weight of the whole figure; a tenth of it [m] for a sliding joint."""
MJCF: Final = (".xml", ".mjcf")
MAX_STATE_FILE_BYTES: Final = 1 << 28
"""Larger files with a pose are refused."""


def run(options: argparse.Namespace) -> int:
    """Simulate, print what became of it and write the files; 1 where a sample failed or a file is not
    written, 2 where something was not understood, 130 after Ctrl-C."""
    outputs = [Path(name) for name in options.output or ()]
    with understanding([options.file]):
        _require_writable(outputs)
    there = [path for path in outputs if path.exists()]
    if there and not options.force:
        complain(f"{there[0]} exists; give another name, or --force to replace it")
        return 1
    with understanding([options.file]):
        chosen = scenario(options)
        trajectory, timing, said = _simulate(chosen, options)
    for line in said:
        print(f"dalembert: {line}", file=sys.stderr)
    written, failure = [], None
    for path in outputs:
        try:
            if path.suffix.lower() in (".html", ".htm"):
                one = trajectory[(0,) * len(trajectory.batch)] if trajectory.batch else trajectory
                da.viewer.record(one, path, title=Path(options.file).stem)
            else:
                trajectory.save(path)
            written.append(path)
        except DalembertError as error:
            failure = failure or error
            complain(str(error))
    facts = _facts(chosen, trajectory, options) | timing
    if options.json:
        say_json(facts | {"notes": list(chosen.notes), "written": [str(path) for path in written]})
    else:
        _tell(chosen, trajectory, facts)
        for path in written:
            how = ": open it in any browser" if path.suffix.lower() in (".html", ".htm") else ""
            say(f"wrote {path} ({path.stat().st_size / 1e6:.2f} MB){how}")
    if trajectory.interrupted:
        return 130
    return 1 if failure or trajectory.failed.any() else 0


def _require_writable(outputs: list[Path]) -> None:
    """Refuse before the work what could not be written after it."""
    for path in outputs:
        ending = path.suffix.lower()
        if ending not in ENDINGS:
            raise ArgumentError(f"{path}: a simulation is written as .npz, .parquet or .html")
        if not path.parent.is_dir():
            raise ArgumentError(f"{path}: the folder {path.parent} does not exist")
        if path.is_dir():
            raise ArgumentError(f"{path} is a folder; name a file")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise ArgumentError(f"{path} cannot be written: permission denied")
        if ending == ".parquet" and importlib.util.find_spec("pyarrow") is None:
            raise ArgumentError(f"{path}: writing .parquet needs pyarrow: pip install 'dalembert[parquet]'")


@final
@dataclass(frozen=True, eq=False)
class Scenario:
    """The model, its start, contact and servos; `notes` say what was chosen for the caller."""

    model: da.Model
    q: Array
    v: Array
    contact: Any
    pairs: tuple[ContactPair, ...]
    servo: Any
    notes: tuple[str, ...]

    def forces(self, pushes: list[Push], steps: int, dt: float) -> Array | None:
        """Return the pushes as a stream `(steps, n_bodies, 6)`."""
        if not pushes:
            return None
        found = np.zeros((steps, len(self.model.bodies), 6))
        time = np.arange(steps) * dt
        for item in pushes:
            if not self.model.bodies.has(item.body):
                raise UnknownNameError.of("body", item.body, self.model.bodies.names)
            during = (time > item.at - 0.5 * dt) & (time < item.at + item.lasting - 0.5 * dt)
            if not during.any():
                raise ArgumentError(
                    f'the push on "{item.body}" at {item.at:g} s for {item.lasting:g} s meets none of the '
                    f"{steps} steps of {dt:g} s"
                )
            found[during, self.model.bodies[item.body].index, 3:] += item.force
        return found


def scenario(options: argparse.Namespace) -> Scenario:
    """Return the model with its ground, its start, contact and motors."""
    found = files.content([options.file], options)
    model, notes = found.model, []
    free = [body for body in model.bodies if isinstance(body.joint, da.Free)]
    root = next((body for body in free if body.parent < 0), None)
    touching = any(shape.collision for body in model.bodies for shape in body.shapes)
    grounded = False
    wanted = options.contact != "none" and not options.no_ground
    if wanted and touching and root is not None and not model.world_shapes:
        model, grounded = model.with_ground(), True
        notes.append("a ground is put under it, z = 0")
    contact = options.contact
    if contact is None:
        ground = any(
            isinstance(shape, da.shapes.Plane | da.shapes.HeightField) for shape in model.world_shapes
        )
        contact = "rigid" if touching and (ground or (free and model.world_shapes)) else "none"
        if contact == "none" and touching:
            notes.append("nothing touches anything (--contact rigid: it does)")
    pairs: tuple[ContactPair, ...] = ()
    law = None
    if contact != "none":
        try:
            model = with_hulls(model)
        except FileError as error:
            remedy = "(--allow FOLDER), or simulate without contact: --contact none"
            raise FileError(f"{error} {remedy}") from error
        pairs = _pairs(model, self_collision=options.self_collision)
        kind = da.contact.Rigid if contact == "rigid" else da.contact.Compliant
        law = kind(pairs=pairs) if pairs else kind(self_collision=False)
        if not pairs:
            notes.append("nothing of it can touch anything")
        if not options.self_collision and len(pairs) < len(da.contact.pairs_of(model)):
            notes.append("its parts pass through each other (--no-self-collision)")
    q, v = _pose(model, options)
    if grounded or options.initial_height is not None:
        # Up to the height of the lowest point above the added ground; in a world of its own, by the height.
        if root is None:
            raise ArgumentError(
                "--initial-height lifts a free root; this model has none (--root floating makes one)"
            )
        lift = options.initial_height or 0.0
        if grounded and pairs:
            below = [pair for pair in pairs if min(pair.first.body, pair.second.body) < 0]
            lift -= float(da.contact.distances(model, q, pairs=below).gap.min())
        q = np.array(q)
        q[root.q_slice.start + 2] += lift
    q, v = _random_velocities(model, q, v, options, notes)
    servo = _servo(model, options, notes)
    return Scenario(model, q, v, law, pairs, servo, tuple(notes))


def _pairs(model: da.Model, *, self_collision: bool) -> tuple[ContactPair, ...]:
    """Return the pairs that may touch: with the world, with other figures, on request within a figure."""
    found = da.contact.pairs_of(model)
    if self_collision:
        return found
    roots: list[int] = []
    for body in model.bodies:
        roots.append(body.index if body.parent < 0 else roots[body.parent])

    def figure(body: int) -> int:
        return -1 if body < 0 else roots[body]

    return tuple(pair for pair in found if figure(pair.first.body) != figure(pair.second.body))


def _pose(model: da.Model, options: argparse.Namespace) -> tuple[Array, Array]:
    """Return q and v of the start."""
    name = options.pose or (INITIAL_POSE if model.poses.has(INITIAL_POSE) else "neutral")
    if name == "neutral" or model.poses.has(name):
        return model.pose(name), _keyframe_velocities(model, name, options)
    ending = Path(name).suffix.lower()
    if ending == ".npz":
        return _read_stored_state(model, Path(name))
    if ending == ".json":
        return _read_json_state(model, Path(name))
    if model.poses:
        raise UnknownNameError.of("pose", name, ("neutral", *model.poses.names))
    raise ArgumentError(f'--pose {name}: give "neutral", a pose of the file, or a .json or .npz file')


def _keyframe_velocities(model: da.Model, name: str, options: argparse.Namespace) -> Array:
    """Return v of a keyframe of an MJCF file; zero for other poses."""
    if Path(options.file).suffix.lower() in MJCF and name not in ("neutral", INITIAL_POSE):
        for frame in read_mjcf(options.file, **files.model_options(options)).keyframes:
            if frame.name == name:
                return np.asarray(frame.v)
    return np.zeros(model.nv)


def _read_stored_state(model: da.Model, path: Path) -> tuple[Array, Array]:
    """Read the last frame (of the first sample) of a trajectory, or arrays q and v."""
    with open_archive(path) as archive:
        arrays = {name: archive.array(name, "fi") for name in ("q", "v") if name in archive.names}
    if "q" not in arrays:
        raise FileError(f"{path} holds no array q")
    for name, array in tuple(arrays.items()):
        if not array.ndim or not array.size:
            raise FileError(f"{path}: {name} has the shape {array.shape}; it holds no state")
        if array.ndim > 1:
            arrays[name] = array.reshape(-1, *array.shape[-2:])[0, -1]
    return _require_fitting(model, str(path), arrays["q"], arrays.get("v", np.zeros(model.nv)))


def _read_json_state(model: da.Model, path: Path) -> tuple[Array, Array]:
    """Read a list of nq numbers, {"q": […], "v": […]}, or values by the names of joints."""
    text = read_regular_file(str(path), limit=MAX_STATE_FILE_BYTES)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is no JSON: {error}") from error
    if isinstance(given, list):
        given = {"q": given}
    if not isinstance(given, dict):
        raise FileError(f"{path}: expected a list of {model.nq} numbers, or values by the names of joints")
    q, v = np.array(model.neutral()), np.zeros(model.nv)
    try:
        if "q" in given:
            given_q, given_v = (np.array(x, float) for x in (given["q"], given.get("v", v)))
            return _require_fitting(model, str(path), given_q, given_v)
        for name, value in given.items():
            if not model.joints.has(name):
                raise UnknownNameError.of("joint", name, model.joints.names)
            q[model.joints[name].body.q_slice] = np.array(value, float)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, DalembertError):
            raise
        raise FileError(f"{path}: {error}") from error
    return _require_fitting(model, str(path), q, v)


def _require_fitting(model: da.Model, path: str, q: Array, v: Array) -> tuple[Array, Array]:
    for name, array, size in (("q", q, model.nq), ("v", v, model.nv)):
        if array.shape != (size,):
            raise FileError(f"{path}: {name} has the shape {array.shape}; this model takes ({size},)")
        if not np.isfinite(array).all():
            raise FileError(f"{path}: {name} holds numbers that are not finite")
    return np.array(normalize(model, q.tolist())), v


def _random_velocities(
    model: da.Model, q: Array, v: Array, options: argparse.Namespace, notes: list[str]
) -> tuple[Array, Array]:
    """Return the start of every sample, with random velocities if a seed is given."""
    seed, samples = options.seed, options.samples
    if seed is None and samples is None:
        return q, v
    if seed is None:
        seed = 0
        notes.append("samples differ by random velocities of seed 0")
    shape = () if samples is None else (samples,)
    v = v + RANDOM_VELOCITY_STD * np.random.default_rng(seed).standard_normal((*shape, model.nv))
    q = np.array(np.broadcast_to(q, (*shape, model.nq)))
    if model.loops or model.constraints:
        closed = close_loops(model, q, v)
        return np.asarray(closed[0]), np.asarray(closed[1])
    return q, v


def _servo(model: da.Model, options: argparse.Namespace, notes: list[str]) -> Any:
    if options.pd is not None:
        kp, kd = options.pd
        return da.control.Servo(kp=kp, kd=kd)
    if not options.hold:
        return None
    gravity = float(np.linalg.norm([float(x) for x in model.gravity])) or 9.81
    weight = gravity * float(model.total_mass)
    poses = da.forward_kinematics(model, model.neutral())
    centers = np.array([[float(x) for x in body.inertia.com.to_list()] for body in model.bodies])
    centers = poses.translation + np.einsum("bij,bj->bi", poses.rotation, centers)
    reach = float(np.linalg.norm(centers - poses.translation[:, np.newaxis], axis=2).max())
    kp = np.zeros(model.nv)
    for body in model.bodies:
        actuated = body.dependence is None and body.joint_name in model.actuated
        if actuated and not isinstance(body.joint, da.Free):
            columns = body.joint.subspace(body.joint.neutral())
            turning = [any(abs(float(x)) > 0.0 for x in column.to_list()[:3]) for column in columns]
            stiffness = weight * max(reach, 0.1) / SERVO_SAG, weight / (0.1 * SERVO_SAG)
            kp[body.v_slice] = np.where(turning, *stiffness)
    notes.append(f"motors hold the start, kp up to {kp.max(initial=0.0):.3g}, kd a tenth of it")
    return da.control.Servo(kp=kp, kd=0.1 * kp)


def _simulate(
    chosen: Scenario, options: argparse.Namespace
) -> tuple[da.Trajectory, dict[str, Any], list[str]]:
    """Simulate; return the trajectory, its speed, and the warnings."""
    dt = options.dt
    if dt > options.duration:
        raise ArgumentError(f"--dt {dt:g} s is longer than --duration {options.duration:g} s")
    whole = round(options.duration / dt)
    every = options.every or min(whole, max(1, round(DEFAULT_FRAME_TIME / dt)))
    if every > whole:
        raise ArgumentError(
            f"--every {every} steps of {dt:g} s are longer than --duration {options.duration:g} s"
        )
    steps = every * max(1, round(whole / every))
    forces = chosen.forces(options.push or [], steps, dt)
    state = (chosen.model, chosen.q, chosen.v, chosen.servo)

    def rollout(count: int, **more: Any) -> da.Trajectory:
        more |= {"contact": chosen.contact, "integrator": options.integrator}
        if forces is not None:
            more |= {"external_forces": forces[:count], "external_frame": "center"}
        return da.rollout(*state, count, dt, **more)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", SimulationWarning)
        start = perf_counter()
        rollout(min(2, steps))  # compiles what the rollout needs
        compiled = perf_counter() - start
        warnings.simplefilter("always", SimulationWarning)
        with _progress_bar(dt, shown=options.progress) as bar:
            start = perf_counter()
            trajectory = rollout(steps, every=every, progress=bar)
            took = perf_counter() - start
    samples = max(1, trajectory.failed_at.size)
    timing = {
        "steps": steps,
        "every": every,
        "dt": dt,
        "compile_seconds": compiled,
        "seconds": took,
        "real_time_factor": samples * trajectory.duration / took,
    }
    said = [str(item.message).removeprefix("rollout: ") for item in caught]
    return trajectory, timing, said


@contextlib.contextmanager
def _progress_bar(dt: float, *, shown: bool | None) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what shows a line that grows with the simulated time; None: on a terminal, else nothing does."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield None
        return
    start, last = perf_counter(), 0.0

    def show(done: int, steps: int) -> None:
        nonlocal last
        now = perf_counter()
        if now - last >= 0.1 or done == steps:
            last = now
            full = PROGRESS_BAR_WIDTH * done // steps
            factor = done * dt / max(now - start, 1e-9)
            bar = f"\r[{'#' * full}{'.' * (PROGRESS_BAR_WIDTH - full)}] "
            said = f"{done * dt:.2f} of {steps * dt:.2f} s, {factor:.3g} times real time "
            print(bar + said, end="", file=sys.stderr, flush=True)

    yield show
    print(file=sys.stderr)


def _facts(chosen: Scenario, trajectory: da.Trajectory, options: argparse.Namespace) -> dict[str, Any]:
    """Return the facts to print: energies, contacts and failures; means and extremes over samples."""
    model = chosen.model
    ends = [0, -1]
    q, v = trajectory.q[..., ends, :], trajectory.v[..., ends, :]
    time = trajectory.time[..., ends] if model.time_dependent else None
    kinetic = da.dynamics.kinetic_energy(model, q, v, time=time).reshape(-1, 2).mean(axis=0)
    potential = da.dynamics.potential_energy(model, q, time=time).reshape(-1, 2).mean(axis=0)
    facts: dict[str, Any] = {
        "model": model.name,
        "file": options.file,
        "samples": max(1, trajectory.failed_at.size),
        "duration": trajectory.duration,
        "frames": len(trajectory),
        "interrupted": trajectory.interrupted,
        "failed": int(np.count_nonzero(trajectory.failed)),
        "kinetic_energy": [finite(x) for x in kinetic],
        "potential_energy": [finite(x) for x in potential],
        "contact": None,
    }
    contacts = trajectory.contacts
    if contacts is not None and len(contacts) and len(trajectory) > 1:
        pressed = np.linalg.norm(contacts.force, axis=-1) > 0.0
        up = -np.array([float(x) for x in model.gravity])
        size = float(np.linalg.norm(up))
        lifted = (contacts.force[..., -1, :, :] @ (up / size if size else up)).sum(axis=-1).mean()
        facts["contact"] = {
            "law": type(chosen.contact).__name__.lower(),
            "pairs": len(chosen.pairs),
            "points": len(contacts),
            "touching_at_end": int(pressed[..., -1, :].sum(axis=-1).max()),
            "most_touching": int(pressed.sum(axis=-1).max()),
            "deepest_overlap": max(0.0, -float(contacts.gap.min())),
            "upward_force_at_end": finite(lifted),
            "weight": size * float(model.total_mass),
        }
    return facts


def _tell(chosen: Scenario, trajectory: da.Trajectory, facts: dict[str, Any]) -> None:
    """Print the short table."""
    samples, contact = facts["samples"], facts["contact"]
    many = f", {samples} samples" if trajectory.batch else ""
    early = ", interrupted" if trajectory.interrupted else ""
    say(
        f"{facts['model']}: {facts['duration']:.6g} s in steps of {facts['dt'] * 1e3:g} ms{many}, "
        f"{facts['frames']} frames{early}"
    )
    for note in chosen.notes:
        say(f"  {note}")
    mean = ", mean" if trajectory.batch else ""
    kinetic, potential = facts["kinetic_energy"], facts["potential_energy"]
    rows = [
        [f"kinetic energy{mean} [J]", *map(_number, kinetic)],
        [f"potential energy{mean} [J]", *map(_number, potential)],
    ]
    if None not in (*kinetic, *potential):
        rows.append([f"their sum{mean} [J]", *(_number(a + b) for a, b in zip(kinetic, potential))])
    say()
    say(table(["", "start", "end"], rows))
    say()
    if contact is not None:
        size = f"{contact['pairs']} pairs, {contact['points']} points"
        now, most = contact["touching_at_end"], contact["most_touching"]
        up, weight = _number(contact["upward_force_at_end"]), _number(contact["weight"])
        say(f"contact         {contact['law']}, {size}; touching at the end {now}, at most {most}")
        say(f"deepest overlap {contact['deepest_overlap'] * 1e3:.3f} mm, in the frames that were kept")
        say(f"upward force    {up} N at the end; weight {weight} N")
    if facts["failed"]:
        first = trajectory.cause.ravel()[np.argmax(trajectory.failed.ravel())]
        say(f"failed          {facts['failed']} of {samples}: {first}")
    spent = f"{facts['seconds']:.3g} s; before that {facts['compile_seconds']:.3g} s to compile or to load"
    say(f"speed           {facts['real_time_factor']:.3g} times real time ({spent})")


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"
