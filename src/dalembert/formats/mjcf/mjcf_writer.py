"""Models as MJCF text.

A body without mass between two joints has no place in MJCF: its joints are stacked on the body that it
carries. The placement of a body on the nearest one with mass is a product of constants and joint
displacements,

    C_0 J_1 C_1 J_2 ... J_m C_m = B  (T_1^-1 J_1 T_1) ... (T_m^-1 J_m T_m),   T_j = C_j ... C_m     (1)

with B = C_0 T_1, the pose of the MJCF body: joint j of it has the axis R(T_j)^T a_j and the anchor T_j^-1 0.

Positions keep their meaning, and so do velocities but where a loss says otherwise. What would change the
dynamics is an error; what the format cannot hold otherwise is a loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from dalembert.errors import FileError
from dalembert.formats.document import MAX_ATTRIBUTE_BYTES, MAX_DEPTH, XmlText, numbers
from dalembert.formats.mjcf.bodies import (
    DEFAULT_FRICTION_PRIORITY,
    FIRST_HIDDEN_GROUP,
    IDENTITY,
    WORLD,
    shift,
)
from dalembert.formats.mjcf.files import MESH_ENDINGS
from dalembert.formats.resources import reject_functions
from dalembert.model import Model, joints, shapes
from dalembert.model.body import LIMITS, Body, Frame, Loop, bounds_of
from dalembert.model.force_elements import Spring
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3, physical_problems
from dalembert.spatial.rotations import quaternion_of_rotation

MIN_MOMENT_OF_INERTIA: Final = 2e-15
"""Smaller moments are written as this [kg m^2]: twice the least that MuJoCo accepts (mjMINVAL, 1e-15)."""
INFINITE_RANGE_END: Final = 1e15
"""Replaces an infinite end of a range [rad, m] whose other end is finite; our loader reads it as none."""
HINGE_LENGTH: Final = 0.1
"""Distance of the two points that stand for the axis of a loop's hinge [m]."""
FIELD_BASE: Final = 1.0
"""Depth of the ground below the lowest point of a height field [m]."""


def mjcf_text(model: Model, *, folder: Path | None = None) -> tuple[str, list[str]]:
    """Return the model as MJCF, and a sentence for each thing that the text does not hold.

    `folder` is where the text will be stored: meshes are named if they lie below it.
    """
    if model.time_dependent:
        raise FileError(
            "the model has joints that depend on time, which MJCF does not have; save it as .json"
        )
    return _Writer(model, folder).text()


# Joints of ours as the stacked joints of one MJCF body

X, Y, Z = AXES = Vec3.unit(0), Vec3.unit(1), Vec3.unit(2)


@final
@dataclass(frozen=True)
class Step:
    """One MJCF joint: its kind, its axis in its own frame, and its places in the q and v of our joint."""

    kind: str
    axis: Vec3
    q: int
    v: tuple[int, ...]
    body: Body | None = None
    name: str = ""


Item = Transform | Step


def _in_row(kinds: Sequence[str], axes: Iterable[Vec3]) -> list[Step]:
    """Return joints of one freedom, whose places in q and v are the same."""
    return [Step(kind, axis, k, (k,)) for k, (kind, axis) in enumerate(zip(kinds, axes))]


KINDS: Final[dict[type[joints.Joint], Callable[[Any], list[Step]]]] = {
    joints.Fixed: lambda joint: [],
    joints.Revolute: lambda joint: _in_row(["hinge"], [joint.axis]),
    joints.Prismatic: lambda joint: _in_row(["slide"], [joint.axis]),
    joints.Cylindrical: lambda joint: _in_row(["hinge", "slide"], [joint.axis, joint.axis]),
    joints.Universal: lambda joint: _in_row(["hinge"] * 2, [joint.axis1, joint.axis2]),
    joints.SphericalEuler: lambda joint: _in_row(["hinge"] * 3, [AXES["xyz".index(a)] for a in joint.order]),
    joints.Translation: lambda joint: _in_row(["slide"] * 3, AXES),
    joints.Planar: lambda joint: [
        Step("slide", X, 0, (1,)), Step("slide", Y, 1, (2,)), Step("hinge", Z, 2, (0,)),
    ],
    joints.Spherical: lambda joint: [Step("ball", X, 0, (0, 1, 2))],
    joints.Free: lambda joint: [Step("free", X, 0, (0, 1, 2, 3, 4, 5))],
}  # fmt: skip
"""The stacked MJCF joints that have the same coordinates as a joint of ours."""


def _steps_of(body: Body, losses: list[str]) -> list[Item]:
    """Return a body's placement and joint as constants and steps; reject a joint that MJCF cannot hold."""
    placement, joint, name = body.placement.as_transform(), body.joint, body.joint_name
    steps: list[Item] = []
    if isinstance(joint, joints.Free) and not (body.parent < 0 and placement == IDENTITY):
        losses.append(
            f'joint "{name}" is written as three slides and a ball joint: MuJoCo has free joints on the '
            "world's origin only; its velocity is in parent axes there"
        )
        steps += [Step("slide", axis, k, (3 + k,)) for k, axis in enumerate(AXES)]
        steps += [Step("ball", X, 3, (0, 1, 2))]
    else:
        if isinstance(joint, joints.Planar):
            losses.append(
                f'joint "{name}" is written as two slides and a hinge: its velocity is in parent axes '
                "there, in the order x, y, angle"
            )
        steps += _expand(joint, body)
    if isinstance(joint, (joints.Free, joints.Planar)):
        # Its axes turn with the body, while MJCF has the values along the parent's axes.
        linear = slice(3, 6) if isinstance(joint, joints.Free) else slice(1, 3)
        for word in ("damping", "friction"):
            if len(set(getattr(body, word)[linear])) > 1:
                raise FileError(f'joint "{name}" has different {word} along its axes, which MJCF cannot hold')
        for word, values in (("armature", body.armature[linear]), ("stiffness", body.stiffness)):
            if any(values):
                raise FileError(
                    f'joint "{name}" of kind {joint.kind} has {word}, which means another thing in MJCF'
                )
    count = sum(isinstance(step, Step) for step in steps)
    items, number = [placement, *steps], 0
    for i, item in enumerate(items):
        if isinstance(item, Step):
            number += 1
            items[i] = replace(item, body=body, name=name if count == 1 else f"{name}:{number}")
    return items


def _expand(joint: joints.Joint, body: Body, q: int = 0, v: int = 0) -> list[Item]:
    if isinstance(joint, joints.Composite):
        items: list[Item] = []
        for placement, member in zip(joint.placements, joint.joints, strict=True):
            if isinstance(member, (joints.Free, joints.Planar)):
                raise _unsupported_joint_error(body, f"composite with a {member.kind} joint inside")
            items += [placement, *_expand(member, body, q, v)]
            q, v = q + member.nq, v + member.nv
        return items
    if type(joint) not in KINDS:
        raise _unsupported_joint_error(body, joint.kind)
    return [replace(s, q=s.q + q, v=tuple(k + v for k in s.v)) for s in KINDS[type(joint)](joint)]


def _unsupported_joint_error(body: Body, kind: str) -> FileError:
    return FileError(
        f'joint "{body.joint_name}" is of kind {kind}, which MJCF does not have; save the model as .json, or '
        "lock the joint"
    )


def _stack(items: Sequence[Item]) -> tuple[Transform, list[tuple[Step, Vec3, Vec3]]]:
    """Return the pose B of the MJCF body, and its joints with their axes and anchors, by Eq. (1)."""
    T = Transform.identity()
    found = []
    for item in reversed(items):
        if isinstance(item, Transform):
            T = item @ T
            continue
        if item.kind == "ball" and Mat3.identity() != T.R:
            raise FileError(
                f'ball joint "{item.name}" is followed by a turned joint on a body without mass; MJCF cannot '
                "hold that: give the body between them some mass"
            )
        if item.kind == "free" and T != IDENTITY:
            raise FileError(f'free joint "{item.name}" cannot be followed by other joints on a massless body')
        found.append((item, T.R.transposed_times(item.axis), T.inverse().p))
    return T, found[::-1]


def _condim(friction: Sequence[float] | None, condim: int) -> int:
    """Return the condim of a geom or pair; 1 without any friction, of which MuJoCo's least is 1e-5."""
    return 1 if friction is not None and not any(friction) else condim


def _placement(X: Any) -> dict[str, str]:
    """Return `pos` and `quat` of a placement."""
    X = X.as_transform()
    found = {"pos": numbers(X.p)} if any(X.p) else {}
    if Mat3.identity() != X.R:
        found["quat"] = numbers(quaternion_of_rotation(X.R))
    return found


def _range(low: float, high: float) -> str:
    return numbers([max(low, -INFINITE_RANGE_END), min(high, INFINITE_RANGE_END)])


SIZES: Final[dict[type[shapes.Shape], Callable[[Any], Sequence[float]]]] = {
    shapes.Plane: lambda shape: (0.0, 0.0, 1.0),
    shapes.Sphere: lambda shape: (shape.radius,),
    shapes.Capsule: lambda shape: (shape.radius, shape.length / 2.0),
    shapes.Cylinder: lambda shape: (shape.radius, shape.length / 2.0),
    shapes.Box: lambda shape: [edge / 2.0 for edge in shape.size],
    shapes.Ellipsoid: lambda shape: shape.radii,
}
"""Sizes of geoms, half lengths and radii, from our shapes."""


def _closure_points(loop: Loop) -> list[Transform]:
    """Return the places on a loop joint that MJCF holds together; a hinge is two points of its axis."""
    if isinstance(loop.joint, (joints.Spherical, joints.Fixed)):
        return [Transform.identity()]
    if isinstance(loop.joint, joints.Revolute):
        return [shift(loop.joint.axis * distance) for distance in (0.0, HINGE_LENGTH)]
    raise FileError(
        f'loop joint "{loop.name}" is of kind {loop.joint.kind}; MJCF closes loops with spherical, revolute '
        "and fixed joints only"
    )


MIN_OWN_MASS: Final = 1e-9
"""Mass of a body without its links, of the whole: less is rounding, and MuJoCo refuses such bodies."""


def _without_links(inertia: RigidInertia, links: Sequence[Frame]) -> RigidInertia | None:
    """Return a body's inertia without those of the links merged into it; None if that is no body's."""
    rest = inertia
    for link in links:
        if link.inertia is not None:
            if physical_problems(link.inertia):
                return None
            rest = rest - link.placement.as_transform().inverse_apply(link.inertia)
    if rest is not inertia and (rest.mass <= MIN_OWN_MASS * inertia.mass or physical_problems(rest)):
        return None
    return rest


def _coefficients(terms: Iterable[tuple[str, float]]) -> list[tuple[str, dict[str, str]]]:
    """Return the parts of a fixed tendon."""
    return [("joint", {"joint": joint, "coef": numbers([k])}) for joint, k in terms]


def _sites(spring: Spring) -> list[tuple[str, dict[str, str]]]:
    """Return the parts of a spatial tendon: sites, and pulleys where the weight of its lines changes."""
    found: list[tuple[str, dict[str, str]]] = []
    current = 1.0
    for k, weight in enumerate([0.0, *spring.weights], start=1):  # the line that ends at point k
        following = next((w for w in spring.weights[k - 1 :] if w), current)
        target = following if weight == 0.0 else weight
        if target != current or (weight == 0.0 and found):
            found.append(("pulley", {"divisor": numbers([1.0 / target])}))
            if weight:  # the branch begins at the point before
                found.append(("site", {"site": f"{spring.name}:{k - 1}"}))
        current = target
        found.append(("site", {"site": f"{spring.name}:{k}"}))
    return found


@final
class _Writer:
    """The writer of one file."""

    def __init__(self, model: Model, folder: Path | None) -> None:
        self.model = model
        self.folder = None if folder is None else folder.resolve()
        self.xml = XmlText(depth=1)
        self.losses = self.xml.losses
        self.assets: dict[object, tuple[str, dict[str, str]]] = {}
        self.geoms: set[str] = set()
        self.tendons: list[tuple[str, dict[str, str], list[tuple[str, dict[str, str]]]]] = []
        self.paths: set[str] = set()
        self.children: dict[int, list[Body]] = {}
        for body in model.bodies:
            self.children.setdefault(body.parent, []).append(body)
        self.sites: dict[int, list[tuple[str, Any]]] = {}
        self.links: dict[int, list[Frame]] = {}
        for frame in model.frames:
            if frame.inertia is None:
                self.sites.setdefault(frame.body, []).append((frame.name, frame.placement))
            else:
                self.links.setdefault(frame.body, []).append(frame)
        for loop in model.loops:
            ends = (
                ("a", loop.predecessor, loop.placement_predecessor),
                ("b", loop.successor, loop.placement_successor),
            )
            for k, at in enumerate(_closure_points(loop), start=1):
                for end, carrier, placement in ends:
                    site = f"{loop.name}:{k}{end}", placement.as_transform() @ at
                    self.sites.setdefault(carrier, []).append(site)
        for spring in model.springs:
            for k, (name, point) in enumerate(spring.points, start=1):
                index = -1 if name == WORLD else model.bodies[name].index
                self.sites.setdefault(index, []).append((f"{spring.name}:{k}", shift(point)))
        self.order: list[str] = []
        self.written = {WORLD}

    def text(self) -> tuple[str, list[str]]:
        self._worldbody()
        head = XmlText()
        head.open("mujoco", model=self.model.name)
        head.leaf("compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        head.leaf("option", gravity=numbers(self.model.gravity))
        head.group("asset", self.assets.values())
        self.xml.lose(self.model.fluid is not None, "the fluid and its drag are left out", grave=True)
        self._contact()
        self._constraints()
        self._springs()
        self._actuators()
        self._tendons()
        self._keyframes()
        self.xml.close("mujoco")
        moving = [body.joint_name for body in self.model.bodies if body.nv]
        what = "joints stand in another order in q and v: " + ", ".join(self.order)
        self.xml.lose(self.order != moving, what)
        return head.text() + self.xml.text(), self.losses

    # Bodies

    def _worldbody(self) -> None:
        """Write the bodies depth first without recursion: a stack holds bodies to open and tags to close."""
        self.xml.open("worldbody")
        self._contents(-1, RigidInertia.zero(), self.model.world_shapes, moving=False)
        waiting: list[Body | None] = [*reversed(self.children.get(-1, []))]
        while waiting:
            body = waiting.pop()
            if body is None:
                self.xml.close("body")
                continue
            body = self._body(body)
            waiting.append(None)
            waiting.extend(reversed(self.children.get(body.index, [])))
        self.xml.close("worldbody")

    def _body(self, body: Body) -> Body:
        """Open a body, massless ones before it stacked on it; return the body that was written."""
        items = _steps_of(body, self.losses)
        passed = [body]
        while body.nv and not any(body.inertia.leaves()):
            below = self.children.get(body.index, [])
            in_loop = any(body.index in (loop.predecessor, loop.successor) for loop in self.model.loops)
            if len(below) != 1 or body.shapes or in_loop:
                raise FileError(
                    f'body "{body.name}" moves and has no mass, which MuJoCo refuses; give it some mass, or '
                    "merge fixed bodies with model.lumped()"
                )
            places = [name for name, _ in self.sites.get(body.index, [])]
            for name in (*places, *(link.name for link in self.links.get(body.index, ()))):
                self.losses.append(f'frame "{name}" on the massless body "{body.name}" is left out')
            body = below[0]
            items += _steps_of(body, self.losses)
            passed.append(body)
        self.order += [item.joint_name for item in passed if item.nv]
        pose, joints = _stack(items)
        freedoms = sum(len(step.v) for step, _, _ in joints)
        if freedoms > 6:
            raise FileError(
                f'body "{body.name}" carries {freedoms} freedoms with the massless bodies before it; MJCF '
                "has six at most: give those bodies some mass"
            )
        if self.xml.depth >= MAX_DEPTH - 2:
            raise FileError(f'body "{body.name}" is nested deeper than {MAX_DEPTH} elements; save as .json')
        self.xml.open("body", name=body.name, **_placement(pose))
        self.written.add(body.name)
        for step, axis, anchor in joints:
            self._joint(step, axis, anchor)
        self._contents(body.index, body.inertia, body.shapes, moving=bool(joints))
        return body

    def _contents(
        self, index: int, inertia: RigidInertia, own: Sequence[shapes.Shape], *, moving: bool
    ) -> None:
        """Write the inertia, geoms and sites of a body or the world, then the links that were merged into it,
        as bodies without joints; they take their part of the inertia where that leaves one.
        """
        links = self.links.get(index, [])
        rest = _without_links(inertia, links)
        carried = rest is not None or index < 0
        heavy = any(link.inertia is not None and any(link.inertia.leaves()) for link in links)
        name = WORLD if index < 0 else self.model.bodies[index].name
        self.xml.lose(heavy and not carried, f'which part of the mass of body "{name}" is that of which link')
        self._inertial(name, inertia if rest is None else rest, moving=moving)
        on_body = moving or (index >= 0 and self.model.bodies[index].parent >= 0)
        named = {link.name for link in links}
        for shape in own:
            if shape.link not in named:
                self._geom(shape, name, moving=on_body)
        self._write_sites(index)
        for link in links:
            X = link.placement.as_transform()
            self.written.add(link.name)
            with self.xml.inside("body", name=link.name, **_placement(X)):
                if carried and link.inertia is not None and not physical_problems(link.inertia):
                    self._inertial(link.name, link.inertia, moving=False)
                for shape in own:
                    if shape.link == link.name:
                        there = X.inverse() @ shape.placement
                        self._geom(replace(shape, placement=there), link.name, moving=on_body)

    def _write_sites(self, body: int) -> None:
        for name, placement in self.sites.get(body, []):
            self.xml.leaf("site", name=name, **_placement(placement))

    def _joint(self, step: Step, axis: Vec3, anchor: Vec3) -> None:
        body = step.body
        assert body is not None
        scalar = step.kind in ("hinge", "slide")
        attributes: dict[str, str] = {"name": step.name, "type": step.kind}
        if scalar:
            attributes["axis"] = numbers(axis)
        if step.kind in ("hinge", "ball") and any(anchor):
            attributes["pos"] = numbers(anchor)
        for key, values in (
            ("armature", body.armature),
            ("damping", body.damping),
            ("frictionloss", body.friction),
            ("stiffness", body.stiffness),
        ):
            own = {float(values[k]) for k in step.v}
            if len(own) > 1:
                raise FileError(
                    f'joint "{body.joint_name}" has different {key} for its freedoms; a {step.kind} joint of '
                    "MJCF has one number for all"
                )
            if any(own):
                attributes[key] = numbers(own)
        if "stiffness" in attributes and scalar:
            attributes["springref"] = numbers([body.rest[step.q]])
        elif "stiffness" in attributes and list(body.rest[step.q : step.q + 4]) != [1.0, 0.0, 0.0, 0.0]:
            raise FileError(
                f'ball joint "{body.joint_name}" has a spring that is slack at {list(body.rest)}; MJCF has '
                "springs of ball joints at the identity only"
            )
        self.xml.leaf("joint", **attributes, **self._limits(step, body))

    def _limits(self, step: Step, body: Body) -> dict[str, str]:
        limits = {key: bounds_of(body, key) for key in LIMITS}
        what, lose, attributes = f'joint "{step.name}"', self.xml.lose, {}
        efforts = [limits["effort"][k] for k in step.v]
        lost = any(math.isfinite(limits["velocity"][k]) for k in step.v)
        lose(lost, f"{what}: limits of velocity are left out")
        if step.kind not in ("hinge", "slide"):
            places = range(step.q, step.q + {"ball": 4, "free": 7}[step.kind])
            ends = [limits[key][k] for key in ("lower", "upper") for k in places]
            lost = any(map(math.isfinite, ends + efforts))
            lose(lost, f"{what}: limits of a {step.kind} joint are left out")
            return {}
        low, high, effort = limits["lower"][step.q], limits["upper"][step.q], efforts[0]
        lose(low == high, f"{what}: a range of no width, {low:g}, is left out")
        if low != high and (math.isfinite(low) or math.isfinite(high)):
            attributes["range"] = _range(low, high)
        lose(effort == 0.0, f"{what}: an effort limit of zero is left out")
        if math.isfinite(effort) and effort > 0.0:
            attributes["actuatorfrcrange"] = numbers([-effort, effort])
        return attributes

    def _inertial(self, name: str, inertia: RigidInertia, *, moving: bool) -> None:
        if not any(inertia.leaves()):
            return
        if problems := physical_problems(inertia):
            raise FileError(f'body "{name}": {"; ".join(problems)}; MuJoCo refuses such a body')
        I = np.array(inertia.inertia_at_com.to_list(), dtype=float)
        moments, axes = np.diag(I).tolist(), np.eye(3)
        if np.any(I - np.diag(moments)):
            if not np.isfinite(I).all():
                what = "MJCF cannot hold an inertia that overflows; correct the mass and the centre of mass"
                raise FileError(what)
            principal, axes = np.linalg.eigh(I)
            moments = principal.tolist()
            if np.linalg.det(axes) < 0.0:
                axes[:, 0] = -axes[:, 0]
        if min(moments) < MIN_MOMENT_OF_INERTIA and moving:
            moments = [max(moment, MIN_MOMENT_OF_INERTIA) for moment in moments]
            self.losses.append(
                f'body "{name}": moments of inertia are raised to {MIN_MOMENT_OF_INERTIA:g} kg m^2'
            )
        greatest = moments.index(max(moments))
        # A lamina's moments may break the triangle inequality by rounding, which MuJoCo does not allow.
        moments[greatest] = min(moments[greatest], sum(moments) - moments[greatest])
        self.xml.leaf(
            "inertial",
            mass=numbers([inertia.mass]),
            pos=numbers(inertia.com),
            quat=numbers(quaternion_of_rotation(Mat3(*axes.ravel().tolist()))),
            diaginertia=numbers(max(0.0, moment) for moment in moments),
        )

    # Shapes

    def _geom(self, shape: shapes.Shape, place: str, *, moving: bool) -> None:
        """Write a shape of a body, or of the "world", as a geom; what MJCF cannot hold is a loss."""
        name = f'shape "{shape.name}"' if shape.name else f"a {shape.kind}"
        what, lose, X = f'{name} of body "{place}"', self.xml.lose, shape.placement.as_transform()
        geometry = self._geometry(shape, what, moving=moving)
        if geometry is None:
            return
        attributes: dict[str, str] = {}
        lose(shape.name in self.geoms, f"{what}: the name is taken; the geom has none")
        if shape.name and shape.name not in self.geoms:
            self.geoms.add(shape.name)
            attributes["name"] = shape.name
        attributes |= geometry | {"rgba": numbers(shape.rgba)}
        if shape.friction is None:
            attributes["priority"] = str(DEFAULT_FRICTION_PRIORITY)
        else:
            attributes["friction"] = numbers(shape.friction)
        condim = _condim(shape.friction, shape.condim)
        if condim != 3:
            attributes["condim"] = str(condim)
        for key, mask in (("contype", shape.group), ("conaffinity", shape.collides_with)):
            own = mask if shape.collision else 0
            if own != 1:
                attributes[key] = str(own if own < 2**31 else own - 2**32)  # MuJoCo's masks are signed
        if not shape.visual:
            attributes["group"] = str(FIRST_HIDDEN_GROUP)
        lose(shape.restitution, f"{what}: restitution {shape.restitution:g} is left out")
        if isinstance(shape, shapes.HeightField):
            X = X @ shift(Vec3(0.0, 0.0, float(np.min(shape.heights))))
        self.xml.leaf("geom", **attributes, **_placement(X))

    def _geometry(self, shape: shapes.Shape, what: str, *, moving: bool) -> dict[str, str] | None:
        """Return type and size of a shape; None, with a loss, for what MJCF cannot hold."""
        if isinstance(shape, shapes.Plane) and moving:
            self.losses.append(f"{what}: planes can only stand still in MJCF; it is left out")
            return None
        if isinstance(shape, shapes.Mesh):
            # MuJoCo opens every mesh that a file names, so that only those below the file's folder are named.
            folder, known = self.folder, shape.path.lower().endswith(MESH_ENDINGS)
            if folder is not None and known and "://" not in shape.path:
                path = (folder / shape.path).resolve()
                if path.is_relative_to(folder) and path.is_file():
                    # Meshes that are not closed have no volume to weigh; their inertia is not used.
                    mesh = {"file": path.relative_to(folder).as_posix(), "inertia": "shell"}
                    if shape.scale != (1.0, 1.0, 1.0):
                        mesh["scale"] = numbers(shape.scale)
                    return self._asset((shape.path, shape.scale), "mesh", mesh)
            self.losses.append(
                f'{what}: the mesh "{shape.path}" is not an STL or OBJ file below the folder of the MJCF '
                "file; it is left out"
            )
            return None
        if isinstance(shape, shapes.ConvexMesh):
            corners = numbers(x for vertex in shape.vertices for x in vertex)
            return self._asset(shape.vertices, "mesh", {"vertex": corners})
        if not isinstance(shape, shapes.HeightField):
            return {"type": shape.kind, "size": numbers(SIZES[type(shape)](shape))}
        heights = np.array(shape.heights)  # written above the lowest, the last row first
        steps = (heights - heights.min())[::-1].ravel().astype(np.float32)
        field = {
            "nrow": str(heights.shape[0]),
            "ncol": str(heights.shape[1]),
            "elevation": " ".join(str(x) for x in steps),
            "size": numbers((*(x / 2.0 for x in shape.size), float(np.ptp(heights)) or 1.0, FIELD_BASE)),
        }
        return self._asset((shape.heights, shape.size), "hfield", field)

    def _asset(self, key: object, tag: str, attributes: dict[str, str]) -> dict[str, str]:
        """Return type and name of an asset, which is written once for all shapes with the same key."""
        if max(map(len, attributes.values())) > MAX_ATTRIBUTE_BYTES:
            raise FileError(
                f"a {'height field' if tag == 'hfield' else 'convex mesh'} has more numbers than MJCF files "
                f"hold ({MAX_ATTRIBUTE_BYTES} characters are read); save as .json"
            )
        own = {"name": f"{tag}_{len(self.assets)}", **attributes}
        return {"type": tag, tag: self.assets.setdefault(key, (tag, own))[1]["name"]}

    # Contact, constraints, actuators

    def _contact(self) -> None:
        """Write exclusions and explicit pairs whose bodies and geoms were written.

        A body that was stacked on another has no shape to touch anything with.
        """
        elements: list[tuple[str, dict[str, str]]] = []
        placed = [*self.model.world_shapes, *(shape for body in self.model.bodies for shape in body.shapes)]
        condims = {shape.name: shape.condim for shape in placed}
        for pair in self.model.contact_pairs:
            what = f'contact pair of "{pair.first}" and "{pair.second}"'
            if not {pair.first, pair.second} <= self.geoms:
                self.losses.append(f"{what} is left out with a shape")
                continue
            self.xml.lose(pair.restitution, f"{what}: restitution is left out")
            attributes = {"geom1": pair.first, "geom2": pair.second}
            if pair.friction is not None:
                *sliding, torsion, roll = pair.friction
                attributes["friction"] = numbers([sliding[0], sliding[-1], torsion, roll, roll])
            if pair.friction is not None or pair.condim is not None:
                own = max(condims[pair.first], condims[pair.second])
                condim = own if pair.condim is None else pair.condim
                attributes["condim"] = str(_condim(pair.friction, condim))
            elements.append(("pair", attributes))
        for first, second in self.model.contact_exclusions:
            if {first, second} <= self.written:
                elements.append(("exclude", {"body1": first, "body2": second}))
        self.xml.group("contact", elements)

    def _constraints(self) -> None:
        """Write loops as `connect` and `weld`, couplings of two joints as `joint`, of more as tendons."""
        reject_functions(self.model, "MJCF")
        equalities: list[tuple[str, dict[str, str]]] = []
        for loop in self.model.loops:
            count = len(_closure_points(loop))
            what = f'loop joint "{loop.name}" is written as two connected points of its axis'
            self.xml.lose(count > 1, what)
            tag = "weld" if isinstance(loop.joint, joints.Fixed) else "connect"
            for point in range(1, count + 1):
                name = loop.name if point == 1 else f"{loop.name}:{point}"
                sites = {"site1": f"{loop.name}:{point}a", "site2": f"{loop.name}:{point}b"}
                equalities.append((tag, {"name": name, **sites}))
        tendons = [coupling for coupling in self.model.couplings if len(coupling.coefficients) > 2]
        for coupling in tendons:
            self.tendons.append(("fixed", {"name": coupling.name}, _coefficients(coupling.coefficients)))
        for coupling in self.model.couplings:
            terms = dict(coupling.coefficients)
            if coupling in tendons:
                tag, ends, line = "tendon", {"tendon1": coupling.name}, [-coupling.offset, 0.0]
            else:
                own = terms.pop(coupling.dependent)
                ((other, k),) = terms.items()
                tag, ends = "joint", {"joint1": coupling.dependent, "joint2": other}
                line = [-coupling.offset / own, -k / own]
            polynomial = numbers([*line, 0.0, 0.0, 0.0])
            equalities.append((tag, {"name": coupling.name, **ends, "polycoef": polynomial}))
        self.xml.group("equality", equalities)

    def _springs(self) -> None:
        """Write springs along paths as tendons, those through points by sites."""
        for spring in self.model.springs:
            a, b = spring.rest_length or (0.0, 0.0)
            attributes = {"name": spring.name, "springlength": numbers([a, b])}
            for part in ("stiffness", "damping"):
                if getattr(spring, part):
                    attributes[part] = numbers([getattr(spring, part)])
            if spring.is_limited:
                attributes["range"] = _range(*spring.limits)
            lost = {name for name, _ in spring.points} - self.written
            what = f'spring "{spring.name}" with a point on a massless body is left out'
            self.xml.lose(lost, what, grave=True)
            if not lost:
                kind = "fixed" if spring.joints else "spatial"
                self.tendons.append((kind, attributes, _coefficients(spring.joints) or _sites(spring)))
                self.paths.add(spring.name)

    def _tendons(self) -> None:
        if self.tendons:
            with self.xml.inside("tendon"):
                for kind, attributes, parts in self.tendons:
                    with self.xml.inside(kind, **attributes):
                        for tag, own in parts:
                            self.xml.leaf(tag, **own)

    def _keyframes(self) -> None:
        """Write poses as keyframes: the positions of all joints in the order of the file."""
        model, found = self.model, []
        for item in model.poses:
            q = model.pose(item.name)
            if not np.array_equal(q, model.neutral()):
                qpos = [x for name in self.order for x in model.joints[name].body.own_q(q.tolist())]
                found.append(("key", {"name": item.name, "qpos": numbers(qpos)}))
        self.xml.group("keyframe", found)

    def _actuators(self) -> None:
        """Write the actuators, or motors on the actuated joints where there are none; a file without either
        leaves every joint actuated.
        """
        found: list[tuple[str, dict[str, str]]] = []
        for item in self.model.actuators:
            springs = [name for name, _ in item.joints if name in self.model.springs.names]
            attributes = {"name": item.name}
            if len(item.joints) == 1 and self.paths.issuperset(springs):
                ((target, gear),) = item.joints
                attributes |= {"tendon" if springs else "joint": target, "gear": numbers([gear])}
            elif springs:
                self.xml.lose(True, f'actuator "{item.name}", which drives a path that is left out')
                continue
            else:
                tendon = f"{item.name}:tendon"
                self.tendons.append(("fixed", {"name": tendon}, _coefficients(item.joints)))
                attributes |= {"tendon": tendon}
            attributes |= {"gainprm": numbers([item.gain])}
            if any(item.bias):
                attributes |= {"biastype": "affine", "biasprm": numbers(item.bias)}
            for key, ends in (("ctrlrange", item.control), ("forcerange", item.force)):
                if ends is not None:
                    attributes |= {key: numbers(ends), key.replace("range", "limited"): "true"}
            found.append(("general", attributes))
        self.xml.group("actuator", found)
        if found:
            return
        moving = [body for body in self.model.bodies if body.nv]
        driven = [body for body in moving if body.joint_name in self.model.actuated]
        if len(driven) == len(moving):
            return
        single = [body.joint_name for body in driven if body.nv == 1]
        self.xml.group("actuator", [("motor", {"name": name, "joint": name}) for name in single])
        others = [body.joint_name for body in driven if body.nv > 1]
        what = "which joints are actuated is not written for: " + (", ".join(others) or "none")
        self.xml.lose(others or not single, what)
