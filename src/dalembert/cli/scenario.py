"""`dalembert simulate` builds its scenario here: the model on its ground, its start, contact and servos."""

import argparse
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

import dalembert as da
from dalembert.algorithms.applied_forces import passive_forces
from dalembert.algorithms.inverse_dynamics import gravity_forces
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.moving_inertia import joint_without_inertia
from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.constraints import close_loops
from dalembert.cli import content as files
from dalembert.cli.parser import Push
from dalembert.contact.narrow_phase import closest_points
from dalembert.contact.pairs import ContactPair
from dalembert.errors import ArgumentError, DalembertError, FileError, UnknownNameError
from dalembert.formats.meshes import with_hulls
from dalembert.formats.mjcf import INITIAL_POSE, read_mjcf
from dalembert.formats.npz import open_archive
from dalembert.formats.resources import read_regular_file
from dalembert.model.body import bounds_of
from dalembert.model.configuration import integrate, normalize
from dalembert.simulation.initial_state import MIN_REPORTED_OVERLAP
from dalembert.simulation.standing import REACH, lowest_of, lowest_points
from dalembert.spatial import Transform

Array = npt.NDArray[np.float64]

SERVO_SAG: Final = 0.03
"""Deflection [rad] of a servo under the weight of the whole figure; a tenth of it [m] for a sliding joint."""
WORLD_LINK: Final = "world_link"
"""The name that a link called "world", by custom the fixed base of a URDF file, has in a model."""
STANDING_TOLERANCE: Final = 0.1
"""Heights that count as that of the ground, as a fraction of the figure's: feet in poses that are rounded,
and wheels above casters; the knees of standing legs are at a third."""
MIN_HEIGHT: Final = 1e-3
"""Least height [m] of a figure."""


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
    notes: list[str] = []
    model = _without_massless_joints(_model_on_its_base(options, notes), notes)
    roots = [body for body in model.bodies if isinstance(body.joint, da.Free) and body.parent < 0]
    root = roots[0] if roots else None
    q, v = starting_pose(model, options, notes)
    contact = _law(model, root is not None, options, notes)
    if contact != "none":
        model = _with_hulls(model)
    lift = options.initial_height
    if lift is not None and root is None:
        raise ArgumentError(
            "--initial-height lifts a free root; this model has none (--root floating makes one)"
        )
    floor = None if contact == "none" else _floor(model, q, root is not None, options)
    if floor is not None:
        model = model.with_ground(floor)
        notes.append(f"a ground is put under it, z = {floor:.6g}")
        if root is not None:  # in a world of its own the start is raised by the height, here it is the height
            lift = (lift or 0.0) + floor - _lowest_points(model, q).min()
    if root is not None and lift:
        q = np.array(q)
        q[root.q_slice.start + 2] += lift
    pairs: tuple[ContactPair, ...] = ()
    law = None
    if contact != "none":
        pairs = _pairs(model, q, options, notes)
        kind = da.contact.Rigid if contact == "rigid" else da.contact.Compliant
        law = kind(pairs=pairs) if pairs else kind(self_collision=False)
    if root is None and options.contact is None and not (pairs or _is_limited(model)):
        law = None  # the integrators of motion without contact are more accurate
    elif contact != "none" and not pairs:
        notes.append("nothing of it can touch anything")
    outside = joints_beyond_limits(model, q) if law is not None else []
    if outside:
        notes.append(f"joints start beyond their limits, to which contact moves them: {in_short(outside)}")
    servo = _servo(model, q, options, notes)
    q, v = random_velocities(model, q, v, options, notes)
    return Scenario(model, q, v, law, pairs, servo, tuple(notes))


def _law(model: da.Model, free: bool, options: argparse.Namespace, notes: list[str]) -> str:
    """Return the law of contact: rigid for shapes that can collide, unless the caller chooses another.

    A fixed figure moves without contact if its meshes cannot be read, or with an integrator that has none.
    """
    if options.contact is not None:
        return str(options.contact)
    if options.integrator is not None and not free:
        return "none"
    shapes = [*model.world_shapes, *(shape for body in model.bodies for shape in body.shapes)]
    moving = any(shape.collision for body in model.bodies for shape in body.shapes)
    world = bool(model.world_shapes) or not options.no_ground
    if not moving or (free and not world):
        if moving:
            notes.append("nothing touches anything (--contact rigid: it does)")
        return "none"
    if not free and any(isinstance(shape, da.shapes.Mesh) for shape in shapes):
        try:
            with_hulls(model)
        except FileError as error:
            notes.append(f"nothing touches anything (--contact rigid: it does): {error}")
            return "none"
    return "rigid"


def _floor(model: da.Model, q: Array, free: bool, options: argparse.Namespace) -> float | None:
    """Return the height of the ground to put under the model, None for none.

    A free figure without a world gets one at z = 0, a fixed one at the foot of its base, or at z = 0 without
    a base, where no part that moves reaches lower.
    """
    known = any(isinstance(shape, da.shapes.Plane | da.shapes.HeightField) for shape in model.world_shapes)
    lowest = _lowest_points(model, q).min()
    if options.no_ground or known or (free and model.world_shapes) or np.isinf(lowest):
        return None
    foot = np.inf if free else float(lowest_of(model.world_shapes, np.eye(3), np.zeros(3)))
    floor = 0.0 if np.isinf(foot) else round(foot, 6) + 0.0  # no -0.0
    return floor if free or lowest >= floor - MIN_REPORTED_OVERLAP else None


def _is_limited(model: da.Model) -> bool:
    """Return whether the position of a joint has a limit."""
    ends = [bounds_of(body, kind) for body in model.bodies for kind in ("lower", "upper")]
    return bool(np.isfinite([x for own in ends for x in own]).any())


def _with_hulls(model: da.Model) -> da.Model:
    try:
        return with_hulls(model)
    except FileError as error:
        remedy = "(--allow FOLDER), or simulate without contact: --contact none"
        raise FileError(f"{error} {remedy}") from error


def _lowest_points(model: da.Model, q: Array) -> Array:
    """Return the heights (n_bodies,) [m] of the lowest points of bodies at q."""
    poses = da.forward_kinematics(model, q, time=0.0 if model.time_dependent else None)
    return lowest_points(model, range(len(model.bodies)), poses.rotation, poses.translation)


# Fixed or floating base


def _model_on_its_base(options: argparse.Namespace, notes: list[str]) -> da.Model:
    """Return the model of the file, on a floating base if it stands on its limbs.

    A URDF file does not say whether its root is fixed. Unless `--root` does, it floats if the lowest points
    of two limbs or more, and not of the root, would touch the ground: legs and wheels do, arms and pendulums
    do not.
    """
    found = _content(options, notes)
    model = found.model
    free = any(isinstance(body.joint, da.Free) for body in model.bodies)
    if found.format != files.FORMATS[".urdf"] or options.root is not None or free or not model.nv:
        return model
    floating = files.content([options.file], _floating(options)).model
    root = floating.bodies[0]
    if root.name == WORLD_LINK:
        return model
    try:
        limbs = _bodies_that_stand(floating, options)
    except FileError:  # a mesh that cannot be read: contact reports it, if there is any
        return model
    if len(limbs) < 2:
        notes.append(
            "its base is fixed to the world, since it does not stand on its limbs (--root floating frees it)"
        )
        return model
    notes.append(f"its base floats, since it stands on {in_short(limbs)} (--root fixed holds it)")
    return floating


def _floating(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options with a root that floats."""
    return argparse.Namespace(**{**vars(options), "root": "floating"})


def _content(options: argparse.Namespace, notes: list[str]) -> files.Content:
    """Read the file; the root of a URDF file without any movable joint floats, such as that of a drone."""
    try:
        return files.content([options.file], options)
    except files.NotUnderstood:
        if options.root is not None or Path(options.file).suffix.lower() != ".urdf":
            raise
        with contextlib.suppress(files.NotUnderstood):
            found = files.content([options.file], _floating(options))
            notes.append("its base floats, since it has no joint that moves")
            return found
        raise


def _bodies_that_stand(model: da.Model, options: argparse.Namespace) -> list[str]:
    """Return the bodies on the ground at the start, one for each limb; none if the root touches it."""
    heights = _lowest_points(model, starting_pose(model, options, [])[0])
    lowest, highest = heights.min(), heights[np.isfinite(heights)].max(initial=0.0)
    if np.isinf(lowest):
        return []
    reached = lowest + STANDING_TOLERANCE * max(highest - lowest, MIN_HEIGHT)
    if heights[0] <= reached:
        return []
    standing = [body for body in model.bodies if heights[body.index] <= reached]
    return [
        body.name
        for body in standing
        if not any(other is not body and other.index in model.subtree(body) for other in standing)
    ]


def _without_massless_joints(model: da.Model, notes: list[str]) -> da.Model:
    """Return the model with joints locked that move nothing with inertia, such as fingers without masses."""
    locked: list[str] = []
    while not is_constrained(model) and (lost := joint_without_inertia(model)) is not None:
        locked.append(lost.joint_name)
        model = model.lock([lost.joint_name])
    if locked:
        notes.append(f"joints that move nothing with mass are locked: {in_short(locked)}")
    return model


# Contact


def _pairs(
    model: da.Model, q: Array, options: argparse.Namespace, notes: list[str]
) -> tuple[ContactPair, ...]:
    """Return the pairs that may touch, without those of one figure that are not to, or that overlap at q."""
    found = da.contact.pairs_of(model)
    roots: list[int] = []
    for body in model.bodies:
        roots.append(body.index if body.parent < 0 else roots[body.parent])

    def figure(body: int) -> int:
        return -1 if body < 0 else roots[body]

    def is_own(pair: ContactPair) -> bool:
        return figure(pair.first.body) == figure(pair.second.body)

    def is_on_base(pair: ContactPair) -> bool:
        """Return whether a pair is of a part of a fixed figure and its base, which is the world's."""
        ends = {figure(pair.first.body), figure(pair.second.body)}
        grounds = (da.shapes.Plane, da.shapes.HeightField)
        if -1 not in ends or isinstance(pair.first.shape, grounds) or isinstance(pair.second.shape, grounds):
            return False
        return not any(root >= 0 and isinstance(model.bodies[root].joint, da.Free) for root in ends)

    if options.self_collision:
        dropped = overlapping_pairs(model, q, [pair for pair in found if is_own(pair) or is_on_base(pair)])
        if dropped:
            names = (*model.bodies.names, "the base")  # so that -1 is the world
            ends = [(names[pair.first.body], names[pair.second.body]) for pair in dropped]
            said = [*dict.fromkeys(f"{first} and {second}" for first, second in ends)]
            notes.append(f"parts that overlap at the start pass through each other: {in_short(said)}")
    else:
        dropped = [pair for pair in found if is_own(pair)]
        if dropped:
            notes.append("its parts pass through each other (--no-self-collision)")
    without = {id(pair) for pair in dropped}
    return tuple(pair for pair in found if id(pair) not in without)


def overlapping_pairs(model: da.Model, q: Array, pairs: Sequence[ContactPair]) -> list[ContactPair]:
    """Return the pairs whose shapes overlap at q by more than `MIN_REPORTED_OVERLAP`.

    Parts of a machine as it is drawn often intersect at their joints. Boxes along the axes of the world tell
    which pairs are near; their nearest points are computed one by one, since compiling them takes longer.
    """
    time = 0.0 if model.time_dependent else None
    poses = forward_kinematics(model, q.tolist(), time=time)
    placed = {}
    for pair in pairs:
        for body, shape, _ in (pair.first, pair.second):
            if type(shape) in REACH and id(shape) not in placed:
                X = Transform.identity() if body < 0 else poses[body]
                X = X @ shape.placement.as_transform()
                placed[id(shape)] = X, *_bounds(shape, X)

    def overlap(pair: ContactPair) -> bool:
        a, b = pair.first.shape, pair.second.shape
        if not (id(a) in placed and id(b) in placed):
            return False
        (X_a, low_a, high_a), (X_b, low_b, high_b) = placed[id(a)], placed[id(b)]
        if (np.minimum(high_a, high_b) - np.maximum(low_a, low_b)).min() < MIN_REPORTED_OVERLAP:
            return False
        return min(float(point.gap) for point in closest_points(a, X_a, b, X_b)) < -MIN_REPORTED_OVERLAP

    return [pair for pair in pairs if overlap(pair)]


def _bounds(shape: da.shapes.Shape, X: Transform) -> tuple[Array, Array]:
    """Return the lower and upper corner (3,) [m] of the box along the world's axes around a shape."""
    p, axes = np.array(X.p.to_list(), float), np.array(X.R.to_list(), float)
    return p - REACH[type(shape)](shape, -axes), p + REACH[type(shape)](shape, axes)


# Servos


def _servo(model: da.Model, q: Array, options: argparse.Namespace, notes: list[str]) -> Any:
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
    limp = [
        body.joint_name
        for body in model.bodies
        if kp[body.v_slice].any() and max(bounds_of(body, "effort")) == 0.0
    ]
    if limp:
        notes.append(f"joints are limp, since their effort limit in the file is zero: {in_short(limp)}")
    if any(isinstance(body.joint, da.Free) for body in model.bodies) or model.loops or model.constraints:
        return da.control.Servo(kp=kp, kd=0.1 * kp)
    # Where nothing but motors carries the weight it is known: the reference is ahead by the sag.
    time = 0.0 if model.time_dependent else None
    held = gravity_forces(model, q.tolist(), time=time)
    passive = passive_forces(model, q.tolist(), [0.0] * model.nv)
    needed = np.abs(np.array(held) - np.array(passive))
    weak = [
        body.joint_name
        for body in model.bodies
        if body.joint_name not in limp
        and (kp[body.v_slice] > 0.0).any()
        and (needed[body.v_slice] > np.array(bounds_of(body, "effort"))).any()
    ]
    if weak:
        notes.append(f"joints cannot carry the weight within their effort limits: {in_short(weak)}")
    sag = [(w - p) / k if k > 0.0 else 0.0 for w, p, k in zip(held, passive, kp.tolist(), strict=True)]
    return da.control.Servo(kp=kp, kd=0.1 * kp, q_ref=np.array(integrate(model, q.tolist(), sag)))


# The start: positions and velocities

MJCF: Final = (".xml", ".mjcf")
MAX_STATE_FILE_BYTES: Final = 1 << 28
"""Larger files with a pose are refused."""
RANDOM_VELOCITY_STD: Final = 0.5
"""Standard deviation of random velocities [rad/s, m/s]."""
STANDING_POSES: Final = ("standing", "stand", "half_sitting", "home", "default", "ready")
"""Beginnings of the names of poses in which robots stand or wait, the first that a file has is taken: names
in the files of example-robot-data, MuJoCo Menagerie and MoveIt."""
MIN_REPORTED_EXCESS: Final = 1e-3
"""Joints that start this far [rad, m] beyond a limit are reported: numbers in files have three or four
digits."""
LIMIT_MARGIN: Final = 0.05
"""Distance from its limit [rad, m] at which a joint starts whose neutral position is outside: above the sag
of the servos, at most a tenth of the range."""


def in_short(names: Sequence[str]) -> str:
    """Return a text of at most four names."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def starting_pose(model: da.Model, options: argparse.Namespace, notes: list[str]) -> tuple[Array, Array]:
    """Return q and v of the start: those that `--pose` names, else a pose of the file in which robots stand,
    else where an MJCF file places its bodies, else the neutral configuration within the limits of joints."""
    name = options.pose or _usual_pose(model)
    if name is None:
        return _within_limits(model, notes), np.zeros(model.nv)
    if name == "neutral" or model.poses.has(name):
        if not options.pose and name != INITIAL_POSE:
            notes.append(f'it starts in the pose "{name}" of the file (--pose neutral: in another)')
        return model.pose(name), _keyframe_velocities(model, name, options)
    ending = Path(name).suffix.lower()
    if ending == ".npz":
        return _read_stored_state(model, Path(name))
    if ending == ".json":
        return _read_json_state(model, Path(name))
    if model.poses:
        raise UnknownNameError.of("pose", name, ("neutral", *model.poses.names))
    raise ArgumentError(f'--pose {name}: give "neutral", a pose of the file, or a .json or .npz file')


def _usual_pose(model: da.Model) -> str | None:
    """Return the name of the pose in which a robot stands or waits, if its file has one."""
    names = [pose.name for pose in model.poses]
    for beginning in (*STANDING_POSES, INITIAL_POSE):
        for name in names:
            if name.lower().startswith(beginning):
                return name
    return None


def _within_limits(model: da.Model, notes: list[str]) -> Array:
    """Return the neutral configuration, with joints that would be outside their limits moved inside."""
    q, moved = np.array(model.neutral()), []
    for body in model.bodies:
        if body.dependence is None and body.nq == body.nv:
            own = q[body.q_slice]
            low, high = (np.array(bounds_of(body, kind)) for kind in ("lower", "upper"))
            margin = np.minimum(LIMIT_MARGIN, 0.1 * (high - low))
            inside = np.where(own < low, low + margin, np.where(own > high, high - margin, own))
            moved += [body.joint_name] * bool((inside != own).any())
            q[body.q_slice] = inside
    if moved and not (model.loops or model.constraints):
        notes.append(f"joints start inside their limits, not at their neutral position: {in_short(moved)}")
        return q
    return np.array(model.neutral())


def joints_beyond_limits(model: da.Model, q: Array) -> list[str]:
    """Return the names of the joints of one coordinate that are outside their limits at q."""
    found = []
    for body in model.bodies:
        if body.dependence is None and body.nq == body.nv == 1:
            own = float(q[body.q_slice][0])
            low, high = bounds_of(body, "lower")[0], bounds_of(body, "upper")[0]
            if not low - MIN_REPORTED_EXCESS <= own <= high + MIN_REPORTED_EXCESS:
                found.append(body.joint_name)
    return found


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


def random_velocities(
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
