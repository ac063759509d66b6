"""Arguments of the wrong kind, and valid calls of the public functions to put them into."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dalembert as da
from dalembert.contact.narrow_phase.candidates import Candidate, ContactPoint
from dalembert.model.tree import PerBody

MODULES = (
    *(da, da.contact, da.control, da.motion, da.analysis, da.viewer, da.models, da.dynamics, da.kinematics),
    *(da.constraints, da.geometry, da.identification, da.cartesian, da.floating_base, da.joints, da.shapes),
)
PUBLISHED_COSTS = (da.textbook, da.textbook.MODULES["published_costs"].split())

NOD = "\n".join(
    ["HIERARCHY", "ROOT hips", "{", "OFFSET 0 0 0"]
    + ["CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"]
    + ["End Site", "{", "OFFSET 0 1 0", "}", "}", "MOTION", "Frames: 3", "Frame Time: 0.1"]
    + ["0 1 0 0 0 0"] * 3
)
"""A motion of three frames."""

LARGE = 2**63
"""Not an int64."""


class Sized:
    """An object with a length and nothing else, as data frames of other libraries may look."""

    def __len__(self) -> int:
        return 3


class Raising:
    """An object that computes its array when asked, and fails."""

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("this object has no array")


def hostile_values() -> dict[str, Callable[[], Any]]:
    """Values by name, each made anew for a call."""
    return {
        "None": lambda: None,
        "True": lambda: True,
        "text": lambda: "abc",
        "number as text": lambda: "1",
        "empty text": lambda: "",
        "NUL": lambda: "a\0b",
        "surrogate": lambda: "\udc80",
        "bytes": lambda: b"\xff\x00",
        "minus one": lambda: -1,
        "zero": lambda: 0,
        "2^31": lambda: 2**31,
        "2^63": lambda: LARGE,
        "-2^63 - 1": lambda: -LARGE - 1,
        "10^400": lambda: 10**400,
        "half": lambda: 0.5,
        "minus half": lambda: -0.5,
        "NaN": lambda: float("nan"),
        "infinity": lambda: float("inf"),
        "1e308": lambda: 1e308,
        "complex": lambda: 1j,
        "float32": lambda: np.float32(2.0),
        "int8": lambda: np.int8(-3),
        "uint64": lambda: np.uint64(2**64 - 1),
        "NumPy bool": lambda: np.True_,
        "empty list": list,
        "empty tuple": tuple,
        "dict": lambda: {"a": 1},
        "empty dict": dict,
        "set": lambda: {1, 2},
        "ragged": lambda: [[1.0, 2.0], [3.0]],
        "nested": lambda: [[[[1.0]]]],
        "texts": lambda: ["a", "b"],
        "Nones": lambda: [None, None],
        "generator": lambda: (x for x in (1.0, 2.0)),
        "range": lambda: range(3),
        "function": lambda: len,
        "class": lambda: dict,
        "module": lambda: np,
        "object": object,
        "sized": Sized,
        "raising": Raising,
        "path": lambda: Path("/nonexistent/file"),
        "0-d": lambda: np.array(1.0),
        "empty array": lambda: np.zeros(0),
        "empty rows": lambda: np.zeros((0, 5)),
        "no columns": lambda: np.zeros((5, 0)),
        "one too many": lambda: np.zeros(6),
        "row of NaN": lambda: np.full(5, np.nan),
        "objects": lambda: np.array([1.0, None, "a", [1]], dtype=object),
        "complex array": lambda: np.zeros(5, complex),
        "texts array": lambda: np.array(["a"] * 5),
        "times": lambda: np.zeros(5, "datetime64[s]"),
        "structured": lambda: np.zeros(5, [("a", float), ("b", int)]),
        "bool array": lambda: np.ones(5, bool),
        "uint8 array": lambda: np.ones(5, np.uint8),
        "float16": lambda: np.ones(5, np.float16),
        "long double": lambda: np.ones(5, np.longdouble),
        "float32 array": lambda: np.ones(5, np.float32),
        "big-endian": lambda: np.ones(5, ">f8"),
        "masked": lambda: np.ma.masked_array(np.ones(5), mask=[0, 1, 0, 0, 0]),
        "matrix": lambda: np.matrix(np.ones((1, 5))),
        "Fortran": lambda: np.asfortranarray(np.ones((3, 5))),
        "reversed": lambda: np.ones(5)[::-1],
        "deep batch": lambda: np.ones((1,) * 40 + (5,)),
        "other model": da.models.pendulum,
        "builder": da.ModelBuilder,
        "inertia": lambda: da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.eye(3)),
        "joint": lambda: da.Revolute((0, 0, 1)),
    }


@functools.cache
def hopper() -> da.Model:
    """A ball joint and a slider on it, with shapes above a floor: nq = 5, nv = 4."""
    builder = da.ModelBuilder(name="hopper")
    solid = da.RigidInertia(1.3, (0.1, 0.05, -0.2), np.diag([0.1, 0.12, 0.09]))
    ball = (da.shapes.Sphere(0.1, name="ball"),)
    builder.add_body("thigh", "world", da.Spherical(), "hip", inertia=solid, shapes=ball)
    builder.add_body("shank", "thigh", da.Prismatic((0, 0, 1)), "knee", inertia=solid, shapes=ball)
    builder.add_shape("world", da.shapes.Plane())
    return builder.build()


@functools.cache
def trajectory() -> da.Trajectory:
    """Two steps of the hopper."""
    return da.rollout(hopper(), hopper().neutral(), np.zeros(4), steps=2)


@functools.cache
def clip() -> da.motion.Clip:
    """Nine frames of the hopper."""
    time = np.linspace(0.0, 0.8, 9)
    q = da.integrate(hopper(), hopper().neutral(), 0.1 * np.sin(time)[:, None] * np.ones(4))
    return da.motion.Clip.from_positions(hopper(), time, q)


def base_values(folder: Path) -> dict[str, Any]:
    """Valid arguments by the name of the parameter, for the hopper."""
    model = hopper()
    q, v = model.neutral(), np.array([0.1, 0.2, -0.1, 0.3])
    return {
        "model": model, "q": q, "q0": q, "q1": q, "q_ref": q, "v": v, "v0": v, "a": v, "tau": v, "dv": v,
        "p": v, "u": v, "w": v, "forces": np.ones((2, 3)), "points": np.ones((2, 3)),
        "joint_torques": np.ones((2, 3)), "body_velocities": np.ones((2, 6)), "frame_name": "shank",
        "body": "shank", "frame": "body", "point": np.ones(3), "force": np.ones(3), "impulse": np.ones(6),
        "dt": 0.01, "steps": 2, "kp": 1.0, "kd": 0.1, "stiffness": 1.0, "prescribed": ["knee"],
        "targets": {"shank": np.ones(3)}, "motion": clip(), "path": folder / "x.png", "clip": clip(),
        "seed": 1, "n": 3, "parents": [-1, 0, 0], "algorithm": "rnea", "links": 3, "name": "forward_dynamics",
        "count": 2, "function": da.compile(da.gravity_forces, model), "values": np.ones((9, 4)),
        "cutoff": 5.0, "source": "dalembert", "target": "pinocchio", "offset": np.ones(3),
        "start": model.neutral(), "end": model.neutral(), "duration": 0.5,
        "sums": da.textbook.tree_sums(model),
    }  # fmt: skip


@functools.cache
def flyer() -> da.Model:
    """A free body with one joint."""
    builder = da.ModelBuilder(name="flyer")
    solid = da.RigidInertia(1.3, (0.1, 0.05, -0.2), np.diag([0.1, 0.12, 0.09]))
    builder.add_body("base", "world", da.Free(), inertia=solid)
    builder.add_body("arm", "base", da.Revolute((0, 1, 0)), inertia=solid)
    return builder.build()


def overrides() -> dict[str, dict[str, Any]]:
    """Arguments of single functions beside, or instead of, those of their parameters' names."""
    loop, arm = da.models.four_bar(), da.models.two_link_arm()
    linked = {"model": loop, "q": loop.neutral(), "v": np.zeros(3), "tau": np.ones(3)}
    flying = {"model": flyer(), "q": flyer().neutral(), "v": np.ones(7)}
    rows = np.random.default_rng(1).normal(size=(40, 2))
    return {
        "record": {"path": "x.html"},
        "view": {"open_browser": False, "block": False},
        "published": {"algorithm": "RNEA"},
        "exciting_motion": {"model": arm, "trials": 3},
        "transition": {"knots": 6, "iterations": 3},
        "round_off": {"samples": 2},
        "inverse_kinematics": {"max_iterations": 3, "restarts": 1},
        "random_tree": {"bodies": 3},
        "compile": {"function": da.gravity_forces},
        "low_pass": {"dt": 0.01},
        "rollout": {"steps": 2},
        "stand": {"model": da.models.quadruped(), "q": da.models.quadruped().neutral()},
        "constraint_forces": linked,
        "loop_forces": linked,
        "floating_base_equations": flying,
        "floating_base_inverse_dynamics": flying | {"a_joints": np.ones(1)},
        "floating_base_jacobian": flying | {"frame_name": "arm"},
        "generalized_force": {"forces": np.ones((2, 3))},
        "identify": {"model": arm} | dict.fromkeys(("q", "v", "a", "tau"), rows),
        "parallel_transport": {"q": np.tile(hopper().neutral(), (3, 1)), "v": np.zeros((3, 4))},
        "with_inertial_parameters": {"parameters": da.identification.inertial_parameters(hopper())},
        "operational_space": {"position": np.ones(3)},
        "covariant_derivative": {"field": lambda model, q: [q[0]] * 4},
        "Mesh": {"path": "mesh.stl"},
    }


def files(folder: Path) -> dict[str, dict[str, Any]]:
    """A model and a motion in files that are there."""
    da.save(hopper(), folder / "hopper.json")
    (folder / "nod.bvh").write_text(NOD)
    return {
        "load": {"path": "hopper.json"},
        "save": {"path": "saved.json"},
        "load_motion": {"path": "nod.bvh", "scale": 1.0},
    }


@functools.cache
def stop() -> da.textbook.GapFunction:
    """A pendulum that hangs against a wall: one gap, closed at q = 0."""
    return da.textbook.GapFunction(da.models.pendulum(), lambda model, q: [da.scalar.sin(q[0])])


def touching() -> dict[str, dict[str, Any]]:
    """Arguments of the functions of `da.contact`: the pendulum at its wall, and a ball on the ground."""
    still, vec = np.zeros(1), da.spatial.Vec3
    posed = {"model": da.models.pendulum(), "q": still}
    swing = posed | {"v": still}
    ball = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    normal, weight = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, 0.0, 0.0, -19.62])
    lying = {"inertia": ball, "velocity": np.zeros(6), "force": weight}
    falling = {"inertia1": None, "velocity1": np.zeros(6), "inertia2": ball, "velocity2": weight}
    surface = da.contact.LinearSurface(1e4, 100.0)
    law = da.contact.CompliantLaw(surface, 1e4, 100.0)
    point = ContactPoint(vec(0.0, 0.0, 0.0), vec(0.0, 0.0, 1.0), -0.002)
    pressed = {
        "candidates": [Candidate(-1, 0, 0.5, 0.0, point)],
        "velocities": PerBody([da.spatial.Motion.zero()]),
        "states": [da.contact.PatchState([-0.002], vec.zero())],
        "law": law,
    }
    problem = {"M": 2.0 * np.eye(2), "d": -np.ones(2)}
    side = da.textbook.PointContact("bob", np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0]))
    corner = da.textbook.VertexFace("shank", (0.0, 0.0, 0.0), "world", np.eye(3))
    return {
        "CompliantLaw": {"normal": surface, "friction_stiffness": 1e4, "friction_damping": 100.0},
        "GapFunction": {"model": da.models.pendulum(), "function": lambda model, q: [q[0]]},
        "RigidSolver": {"gaps": stop()},
        "SpringDamper": {"gaps": stop(), "stiffness": 1e4},
        "StepSolver": {"gaps": stop(), "dt": 0.01},
        "TwoSurfaces": {"first": surface, "second": surface},
        "compliant_forces": pressed,
        "patches_after": pressed,
        "patches_at_rest": {"candidates": pressed["candidates"], "law": law},
        "friction_force": {"x": vec.zero(), "v": vec(0.5, 0.0, 0.0), "limit": 3.0, "K": 1e4, "D": 100.0},
        "lumped": {"first": surface, "second": surface},
        "patch_rate": {"K": 1e4, "D": 100.0, "z": -0.002, "f": 0.0},
        "relaxed": {"K": 1e4, "D": 100.0, "z": -0.002, "time": 0.01},
        "apply_impulse": posed | {"body": "bob"},
        "body_mobility": posed | {"body": "bob"},
        "body_contact": lying | {"normal": normal},
        "body_contacts": lying | {"normals": normal[:, None]},
        "body_impulse": {"inertia": ball, "velocity_change": weight},
        "collide": swing | {"contacts": [side]},
        "collide_bodies": falling | {"normal": normal},
        "collide_bodies_sticking": falling
        | {"normals": da.textbook.contact_normal(np.zeros(3), np.eye(3)).T},
        "collide_sticking": swing | {"contact": side},
        "contact_dynamics": swing
        | {"tau": still, "gaps": stop(), "contact_solver": da.textbook.RigidSolver(stop())},
        "contact_equations": swing | {"tau": still, "contacts": [side]},
        "contact_normal": {"point": np.zeros(3), "direction": np.ones(3)},
        "contact_states": {"gap": np.zeros(2), "rate": np.zeros(2)},
        "dense_step": {"rate": lambda y, t: -y, "y0": np.ones(2), "t0": 0.0, "h": 0.1},
        "disc_contacts": {"centre": np.zeros(3), "axis": np.ones(3), "radius": 0.5, "tolerance": 0.01},
        "feature_gaps": {"features": [corner]},
        "fitted_step": {"y0": np.ones(2), "t0": 0.0, "h": 0.1, "slopes": np.eye(2), "nodes": [0.0, 1.0]},
        "least_constraint": {"H": np.eye(1), "free": -np.ones(1), "T": np.ones((1, 1)), "bias": np.zeros(1)},
        "reduce_contacts": {"points": np.eye(3), "directions": np.ones(3)},
        "simulate_events": swing | {"gaps": stop(), "duration": 0.02, "step": 0.01},
        "solve_force_qp": problem,
        "solve_lcp": problem,
    }


CLASSES: dict[str, dict[str, Any]] = {
    "Box": {"size": (1.0, 1.0, 1.0)},
    "Capsule": {"radius": 0.1, "length": 1.0},
    "Compliant": {},
    "CompliantLaw": {},
    "Composite": {"joints": [da.Revolute(), da.Prismatic()]},
    "ConvexMesh": {"vertices": np.vstack([np.eye(3), np.zeros(3)])},
    "Cylinder": {"radius": 0.1, "length": 1.0},
    "Cylindrical": {},
    "EdgeEdge": {"body": "shank", "edge": np.eye(3)[:2], "on": "world", "other": -np.eye(3)[:2]},
    "Ellipsoid": {"radii": (0.1, 0.2, 0.3)},
    "EllipsoidJoint": {"a": 1.0, "b": 2.0, "c": 3.0},
    "GapFunction": {},
    "HeightField": {"heights": np.zeros((3, 3)), "size": (1.0, 1.0)},
    "Helical": {},
    "Hertz": {"stiffness": 1e4, "dissipation": 0.1},
    "Limits": {},
    "LinearSurface": {"stiffness": 1e4, "damping": 100.0},
    "Mesh": {"path": "x.stl"},
    "ModelBuilder": {},
    "Plane": {},
    "PointContact": {"second": "bob", "point": np.zeros(3), "normal": np.ones(3)},
    "Prismatic": {},
    "RackPinion": {"radius": 0.1},
    "Reversed": {"joint": da.Revolute()},
    "Revolute": {},
    "Rigid": {},
    "RigidInertia": {"mass": 1.0, "com": (0.0, 0.0, 0.0), "inertia_at_com": np.eye(3)},
    "RigidSolver": {},
    "SeriesSpring": {"stiffness": 1e4, "damping": 100.0, "outer": 1e5},
    "Servo": {"kp": 1.0, "kd": 0.1},
    "Sphere": {"radius": 0.1},
    "SphereInCylinder": {},
    "SphericalEuler": {},
    "SpringDamper": {},
    "StepSolver": {},
    "TimeDependent": {"joint": da.Revolute(), "driver": da.Prismatic(), "motion": lambda t: [t]},
    "TwoSurfaces": {},
    "Universal": {},
    "VertexFace": {"body": "shank", "vertex": np.zeros(3), "on": "world", "face": np.eye(3)},
}
"""Classes that users construct; results and generic scalars are left out."""

SKIPPED = ("jvp", "vjp", "derivative")
"""Functions whose arguments come by place alone."""

BLOCKING = ("block", "open_browser")
"""Parameters that let a call wait for a user."""

CALLABLE = (
    "callback",
    "contact_solver",
    "controls",
    "extent",
    "field",
    "function",
    "motion",
    "observe",
    "points",
    "progress",
    "rate",
    "tau",
)
"""Parameters that take functions of the caller's, whose errors are the caller's too."""


class BaseCall(NamedTuple):
    """A function with valid arguments by name, and every name that it takes."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    names: tuple[str, ...]


def base_calls(folder: Path) -> Iterator[BaseCall]:
    """Every public function and class for whose required parameters there are values."""
    values, special, seen = base_values(folder), overrides() | touching() | files(folder), set()
    for module, names in (*((module, module.__all__) for module in MODULES), PUBLISHED_COSTS):
        for name in names:
            function = getattr(module, name)
            if name.startswith("_") or isinstance(function, types.ModuleType) or not callable(function):
                continue
            if function in seen or name in SKIPPED or (inspect.isclass(function) and name not in CLASSES):
                continue
            seen.add(function)
            own = special.get(name, {}) | CLASSES.get(name, {})
            parameters = [
                item
                for item in inspect.signature(function).parameters.values()
                if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD) and item.name not in BLOCKING
            ]
            given = {item.name: values.get(item.name) for item in parameters if item.default is item.empty}
            given |= {
                key: folder / value if key == "path" and not inspect.isclass(function) else value
                for key, value in own.items()
            }
            yield BaseCall(
                f"{module.__name__}.{name}", function, given, tuple(item.name for item in parameters)
            )
