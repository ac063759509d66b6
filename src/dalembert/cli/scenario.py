"""The scenario of `dalembert simulate`: the ground, the start, contact, servos and pushes."""

import argparse
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

import dalembert as da
from dalembert.api import close_loops
from dalembert.cli.content import content
from dalembert.contact.pairs import ContactPair
from dalembert.errors import ArgumentError, DalembertError, FileError, UnknownNameError
from dalembert.formats.meshes import with_hulls
from dalembert.formats.mjcf import read_mjcf
from dalembert.formats.resources import read_regular_file
from dalembert.model.configuration import normalize
from dalembert.simulation.trajectory_files import arrays_of

__all__ = ["Push", "Scenario", "push", "scenario"]

Array = npt.NDArray[np.float64]

RANDOM_VELOCITY_STD: Final = 0.5
"""Standard deviation of random velocities [rad/s, m/s]."""
SERVO_SAG: Final = 0.03
"""Deflection [rad] of a servo under the weight of the whole figure; a tenth of it [m] for a sliding joint."""
MJCF: Final = (".xml", ".mjcf")
MAX_STATE_FILE_BYTES: Final = 1 << 28
"""Larger files with a pose are refused."""


class Push(NamedTuple):
    """A force [N] along world axes at the centre of mass of a body, from a time on, for a while [s]."""

    body: str
    force: tuple[float, float, float]
    at: float
    lasting: float


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


def push(text: str) -> Push:
    """Parse body=NAME,force=X,Y,Z,at=SECONDS,for=SECONDS, in any order."""
    parts = re.split(r"(?:^|,)\s*(body|force|at|for)=", text)
    given = dict(zip(parts[1::2], parts[2::2], strict=True))
    try:
        if parts[0] or len(given) * 2 + 1 != len(parts):
            raise ValueError
        x, y, z = (float(number) for number in given["force"].split(","))
        found = Push(given["body"], (x, y, z), float(given.get("at", "0")), float(given.get("for", "0.1")))
        if not (all(map(math.isfinite, found.force)) and found.at >= 0.0 and 0.0 < found.lasting < math.inf):
            raise ValueError
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(
            f"expected body=NAME,force=X,Y,Z,at=SECONDS,for=SECONDS, got {text!r}"
        ) from None
    return found


def scenario(options: argparse.Namespace) -> Scenario:
    """Return the model with its ground, its start, contact and motors."""
    found = content([options.file], options)
    model, notes = found.model, []
    root = _free_root(model)
    touching = any(shape.collision for body in model.bodies for shape in body.shapes)
    grounded = False
    wanted = options.contact != "none" and not options.no_ground
    if wanted and touching and root is not None and not model.world_shapes:
        model, grounded = model.with_ground(), True
        notes.append("a ground is put under it, z = 0")
    contact = options.contact
    if contact is None:
        free = any(isinstance(body.joint, da.Free) for body in model.bodies)
        ground = any(isinstance(shape, da.Plane | da.HeightField) for shape in model.world_shapes)
        contact = "rigid" if touching and (ground or (free and model.world_shapes)) else "none"
        if contact == "none" and touching:
            notes.append("nothing touches anything (--contact rigid: it does)")
    pairs: tuple[ContactPair, ...] = ()
    if contact != "none":
        model = _with_hulls(model)
        pairs = _pairs(model, self_collision=options.self_collision)
        if not pairs:
            notes.append("nothing of it can touch anything")
        if not options.self_collision and len(pairs) < len(da.contact.pairs_of(model)):
            notes.append("its parts pass through each other (--self-collision: they do not)")
    q, v = _pose(model, options)
    if grounded or options.initial_height is not None:
        q = _lift_root(model, pairs, q, root, options.initial_height, grounded=grounded)
    q, v = _random_velocities(model, q, v, options, notes)
    servo = _servo(model, options, notes)
    return Scenario(model, q, v, _law(contact, pairs), pairs, servo, tuple(notes))


def _with_hulls(model: da.Model) -> da.Model:
    try:
        return with_hulls(model)
    except FileError as error:
        raise FileError(f"{error} (--allow FOLDER), or simulate without contact: --contact none") from error


def _free_root(model: da.Model) -> Any:
    """Return the body with a free joint on the world, or None."""
    return next((b for b in model.bodies if b.parent < 0 and isinstance(b.joint, da.Free)), None)


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


def _law(contact: str, pairs: tuple[ContactPair, ...]) -> Any:
    if contact == "none":
        return None
    law = {"rigid": da.contact.Rigid, "compliant": da.contact.Compliant}[contact]
    return law(pairs=pairs) if pairs else law(self_collision=False)


def _pose(model: da.Model, options: argparse.Namespace) -> tuple[Array, Array]:
    """Return q and v of the start."""
    name, rest = options.pose, np.zeros(model.nv)
    mjcf = Path(options.file).suffix.lower() in MJCF
    if name == "neutral" or (name is None and not mjcf):
        return np.asarray(model.neutral()), rest
    ending = Path(name or "").suffix.lower()
    if ending == ".npz":
        return _read_stored_state(model, Path(name))
    if ending == ".json":
        return _written(model, Path(name))
    if mjcf:
        given = {"root": options.root, "inertia": options.inertia, "trusted": options.trust or None}
        given["roots"] = options.allow
        read = read_mjcf(options.file, **{key: x for key, x in given.items() if x is not None})
        if name is None:
            return np.asarray(read.start.q), rest
        frames = {frame.name or str(k): frame for k, frame in enumerate(read.keyframes)}
        if name in frames:
            return np.asarray(frames[name].q), np.asarray(frames[name].v)
        if frames:
            raise UnknownNameError.of("pose", name, ("neutral", *frames))
    raise ArgumentError(f'--pose {name}: give "neutral", a keyframe of an MJCF file, or a .json or .npz file')


def _read_stored_state(model: da.Model, path: Path) -> tuple[Array, Array]:
    """Read the last frame (of the first sample) of a trajectory, or arrays q and v."""
    arrays = arrays_of(path, ("q", "v"))
    if "q" not in arrays:
        raise FileError(f"{path} holds no array q")
    for name, array in arrays.items():
        if not array.ndim or not array.size:
            raise FileError(f"{path}: {name} has the shape {array.shape}; it holds no state")
    last = {name: array.reshape(-1, array.shape[-1])[: _frames(array)][-1] for name, array in arrays.items()}
    return _fitting(model, str(path), last["q"], last.get("v", np.zeros(model.nv)))


def _frames(array: Array) -> int:
    return array.shape[-2] if array.ndim > 1 else 1


def _written(model: da.Model, path: Path) -> tuple[Array, Array]:
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
            return _fitting(model, str(path), np.array(given["q"], float), np.array(given.get("v", v), float))
        for name, value in given.items():
            if not model.joints.has(name):
                raise UnknownNameError.of("joint", name, model.joints.names)
            q[model.joints[name].body.q_slice] = np.array(value, float)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, DalembertError):
            raise
        raise FileError(f"{path}: {error}") from error
    return _fitting(model, str(path), q, v)


def _fitting(model: da.Model, path: str, q: Array, v: Array) -> tuple[Array, Array]:
    for name, array, size in (("q", q, model.nq), ("v", v, model.nv)):
        if array.shape != (size,):
            raise FileError(f"{path}: {name} has the shape {array.shape}; this model takes ({size},)")
        if not np.isfinite(array).all():
            raise FileError(f"{path}: {name} holds numbers that are not finite")
    return np.array(normalize(model, q.tolist())), v


def _lift_root(
    model: da.Model,
    pairs: tuple[ContactPair, ...],
    q: Array,
    root: Any,
    height: float | None,
    *,
    grounded: bool,
) -> Array:
    """Raise the free root until the lowest point is `height` above the added ground; in a world of its own,
    raise it by `height`.
    """
    if root is None:
        raise ArgumentError(
            "--initial-height lifts a free root; this model has none (--root floating makes one)"
        )
    lift = height or 0.0
    if grounded and pairs:
        below = [pair for pair in pairs if min(pair.first.body, pair.second.body) < 0]
        lift -= float(da.contact.distances(model, q, pairs=below).gap.min())
    q = q.copy()
    q[root.q_slice.start + 2] += lift
    return q


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
        if (
            body.dependence is None
            and body.joint_name in model.actuated
            and not isinstance(body.joint, da.Free)
        ):
            columns = body.joint.subspace(body.joint.neutral())
            turning = [any(abs(float(x)) > 0.0 for x in column.to_list()[:3]) for column in columns]
            kp[body.v_slice] = np.where(
                turning, weight * max(reach, 0.1) / SERVO_SAG, weight / (0.1 * SERVO_SAG)
            )
    notes.append(f"motors hold the start, kp up to {kp.max(initial=0.0):.3g}, kd a tenth of it")
    return da.control.Servo(kp=kp, kd=0.1 * kp)
