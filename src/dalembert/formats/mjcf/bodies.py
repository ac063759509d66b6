"""Bodies, joints, shapes, contact filters and the fluid of a compiled MuJoCo model.

A body of MuJoCo stands in its parent by a pose B and carries any number of joints, all given in its own frame
before any of them has moved. Its pose on the parent is (MuJoCo's `mj_kinematics`)

    B  T(p_1) J_1 T(-p_1)  T(p_2) J_2 T(-p_2)  ...                                              (1)

with the anchor p_k of joint k and its displacement J_k, which is that of q - ref:

    T(p) J(q - ref) T(-p) = T(p) J(-ref)  J(q)  T(-p)                                           (2)

The constant displacement before J(q) makes our q equal to MuJoCo's qpos. Each joint becomes a body of ours,
massless but the last, so that q and v keep MuJoCo's order and the dynamics are the same. Our bodies have
their frames at the anchors: MuJoCo's frame of the body is T(-p_n) on the last of them. A body without joints
is merged into the one that carries it and leaves a frame of its name. A free joint with armature or springs
has its linear velocity in world axes there, so that it becomes a translation and a ball joint.

MuJoCo never lets a body touch its parent, unless that is fixed to the world. Neither do we; but where a stack
of joints has become a chain of bodies, its ends are no longer parent and child, and are excluded by name.

The fluid's inertia-box and ellipsoid models become drag shapes: a body with a geom of
`fluidshape="ellipsoid"` feels the fluid by such geoms alone, any other one as a box of its mass and principal
moments of inertia (I, J, K) about its centre of mass: an edge is sqrt(6 (J + K - I) / m).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple, final

from dalembert.errors import FileError, ModelError
from dalembert.formats.mjcf.files import Source
from dalembert.formats.resources import Report
from dalembert.model import Limits, ModelBuilder, joints, shapes
from dalembert.model.shapes.shape import ALL_GROUPS, USUAL_FRICTION
from dalembert.spatial import Mat3, RigidInertia, SymMat3, Transform, Vec3
from dalembert.spatial.rotations import quaternion_normalized, rotation_about, rotation_of_quaternion

WORLD: Final = "world"
MIN_VALUE: Final = 1e-15
"""MuJoCo's least mass and least squared edge: bodies below have no drag, edges are not shorter."""
IDENTITY: Final = Transform.identity()
FREE, BALL, SLIDE = range(3)
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)

MIN_INFINITE_RANGE_END: Final = 1e10
"""A range that reaches this far [rad, m] is not a limit: MJCF cannot write a range with one end only."""
FIRST_HIDDEN_GROUP: Final = 3
"""Geoms of this group and later ones are not drawn by MuJoCo's viewer unless asked for."""
DEFAULT_FRICTION_PRIORITY: Final = -1
"""The priority of a geom with the default friction: that of any other geom overrides it."""
DEFAULT_RGBA: Final = [0.5, 0.5, 0.5, 1.0]


def floats(values: Iterable[Any]) -> list[float]:
    """Return MuJoCo's numbers as Python's."""
    return [float(x) for x in values]


def pose(position: Iterable[float], quaternion: Iterable[float]) -> Transform:
    """Return the placement of a position [m] and a quaternion (w, x, y, z)."""
    return Transform(
        rotation_of_quaternion(quaternion_normalized(floats(quaternion))), Vec3(*floats(position))
    )


def shift(vector: Vec3) -> Transform:
    """Return a translation."""
    return Transform(Mat3.identity(), vector)


def unique_name(name: str, used: set[str]) -> str:
    """Return the name, with a number if it is taken, and mark it as used."""
    candidates = (name, *(f"{name}_{n}" for n in range(2, len(used) + 3)))
    free = next(item for item in candidates if item not in used)
    used.add(free)
    return free


class Place(NamedTuple):
    """The first places of a joint of ours in MuJoCo's qpos and qvel."""

    qpos: int
    qvel: int


class Home(NamedTuple):
    """The body of ours that carries a body of MuJoCo, and where MuJoCo's frame of it stands there."""

    body: str
    at: Transform


@final
class Compiled:
    """A model that MuJoCo has compiled, with a unique name for everything in it, and what is made of it: the
    `homes` of MuJoCo's bodies (the world first), the `places` of our joints, the `shapes` of our bodies.
    """

    def __init__(self, mujoco: Any, m: Any, source: Source, report: Report) -> None:
        self.mujoco = mujoco
        self.m = m
        self.source = source
        self.error = source.error
        self.report = report
        self.bodies = self._names("BODY", m.nbody)
        self.joints = self._names("JOINT", m.njnt)
        self.homes = [Home(WORLD, IDENTITY)]
        self.places: dict[str, Place] = {}
        self.shapes: dict[str, list[shapes.Shape]] = {}
        self.contact_is_off = self.is_disabled("CONTACT") or self.is_disabled("CONSTRAINT")

    def given_name(self, kind: str, index: int) -> str:
        """Return MuJoCo's name of an item, which may be empty."""
        obj = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}")
        return self.mujoco.mj_id2name(self.m, obj, int(index)) or ""

    def name(self, kind: str, index: int) -> str:
        """Return MuJoCo's name of an item, or its kind and number."""
        return self.given_name(kind, index) or f"{kind.lower()}_{int(index)}"

    def is_disabled(self, flag: str) -> bool:
        """Return whether an option flag of the file switches off a part of the physics."""
        return bool(self.m.opt.disableflags & int(getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{flag}")))

    def placement(self, kind: str, i: int) -> Home:
        """Return the body of ours that a site or a geom is on, and where."""
        m = self.m
        home = self.homes[getattr(m, f"{kind}_bodyid")[i]]
        return Home(home.body, home.at @ pose(getattr(m, f"{kind}_pos")[i], getattr(m, f"{kind}_quat")[i]))

    def _names(self, kind: str, n: int) -> list[str]:
        given = [self.given_name(kind, i) for i in range(n)]
        used = {name for name in given if name}
        return [name or unique_name(f"{kind.lower()}_{i}", used) for i, name in enumerate(given)]


# Joints


@final
@dataclass(frozen=True)
class Link:
    """One joint of ours; `lead` and `tail` are what stands before and after J(q) in (2)."""

    joint: joints.Joint
    name: str
    place: Place | None = None
    lead: Transform = IDENTITY
    tail: Transform = IDENTITY
    limits: Limits | None = None
    rest: tuple[float, ...] | None = None
    stiffness: float = 0.0


def _links_of(compiled: Compiled, b: int, root: str | None, floating: int) -> list[Link]:
    """Return the joints of a body of MuJoCo as ours; `root` may remove or add its free joint."""
    m = compiled.m
    if b == floating:
        return [Link(joints.Free(), unique_name(f"{compiled.bodies[b]}:root", set(compiled.joints)))]
    found: list[Link] = []
    for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
        name, problem = compiled.joints[j], ""
        if any(m.jnt_stiffnesspoly[j]) and not compiled.is_disabled("SPRING"):
            problem = "a nonlinear spring; only linear ones are kept"
        elif any(m.dof_dampingpoly[m.jnt_dofadr[j]]) and not compiled.is_disabled("DAMPER"):
            problem = "nonlinear damping; only linear one is kept"
        elif m.jnt_springyield[j] > 0.0:
            problem = "a plastic spring (springyield), which is not supported"
        if problem:
            raise compiled.error("joint", name, f'joint "{name}" has {problem}')
        if int(m.jnt_type[j]) == FREE and root == "fixed":
            compiled.report.note(f'joint "{name}": the free root is fixed at its initial pose')
        else:
            found += _links_of_joint(compiled, j)
    return found


def _links_of_joint(compiled: Compiled, j: int) -> list[Link]:
    """Return a joint of MuJoCo by (2); a free one with armature or springs is a translation and a ball."""
    m, name, note = compiled.m, compiled.joints[j], compiled.report.note
    kind, k = int(m.jnt_type[j]), float(m.jnt_stiffness[j])
    place = qpos, qvel = Place(int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j]))
    rest, anchor = floats(m.qpos_spring[qpos : qpos + 7]), Vec3(*floats(m.jnt_pos[j]))
    if kind == FREE:
        if not any(m.dof_armature[qvel : qvel + 6]) and k == 0.0:
            return [Link(joints.Free(), name, place)]
        note(f'joint "{name}": a free joint with armature or springs is a translation and a ball joint here')
        translation = unique_name(f"{name}:translation", set(compiled.joints))
        turned = tuple(quaternion_normalized(rest[3:]))
        return [
            Link(joints.Translation(), translation, place, rest=tuple(rest[:3]), stiffness=k),
            Link(joints.Spherical(), name, Place(qpos + 3, qvel + 3), rest=turned, stiffness=k),
        ]
    if kind == BALL:
        if m.jnt_limited[j]:
            bound = float(m.jnt_range[j][1])
            note(f'ignored: the limit of ball joint "{name}", {bound:g} rad about any axis')
        turned = tuple(quaternion_normalized(rest[:4]))
        ends = shift(anchor), shift(-anchor)
        return [Link(joints.Spherical(), name, place, *ends, rest=turned, stiffness=k)]
    axis, ref = Vec3(*floats(m.jnt_axis[j])), float(m.qpos0[qpos])
    if ref:
        note(f'joint "{name}": the reference position of the file is q = {ref:.6g}')
    if kind == SLIDE:
        joint: joints.Joint = joints.Prismatic(axis)
        lead, tail = shift(axis * -ref), IDENTITY
    else:
        joint = joints.Revolute(axis)
        lead = Transform(rotation_about(axis, -ref) if ref else Mat3.identity(), anchor)
        tail = shift(-anchor)
    return [Link(joint, name, place, lead, tail, _limits(compiled, j), (rest[0],), k)]


def range_ends(given: Iterable[Any]) -> tuple[float, float]:
    """Return the ends of a range, infinite where the file writes a number too large for a limit."""
    low, high = (x if abs(x) < MIN_INFINITE_RANGE_END else math.copysign(math.inf, x) for x in floats(given))
    return low, high


def _limits(compiled: Compiled, j: int) -> Limits:
    m = compiled.m
    lower, upper, effort = -math.inf, math.inf, math.inf
    if m.jnt_limited[j]:
        lower, upper = range_ends(m.jnt_range[j])
    if m.jnt_actfrclimited[j]:
        low, high = (abs(x) for x in floats(m.jnt_actfrcrange[j]))
        effort = min(low, high)
        if low != high:
            compiled.report.warn(
                f'joint "{compiled.joints[j]}": its force range is not symmetric; {effort:g} is used'
            )
    return Limits(lower, upper, math.inf, effort)


# Bodies


@final
@dataclass(frozen=True)
class Plan:
    """The bodies and frames to be made."""

    chains: list[tuple[str, str, Transform, list[Link]]]  # name, parent, start, joints
    inertias: dict[str, RigidInertia]
    frames: list[tuple[str, Home, RigidInertia | None]]  # the inertia of a merged body


def plan_bodies(compiled: Compiled, root: str | None) -> Plan:
    """Merge what does not move on its parent; the rest becomes chains of bodies."""
    m, homes = compiled.m, compiled.homes
    floating = _floating_root(compiled) if root == "floating" else -1
    plan = Plan([], {}, [])
    for b in range(1, m.nbody):
        parent = homes[m.body_parentid[b]]
        name = compiled.bodies[b]
        start = parent.at @ pose(m.body_pos[b], m.body_quat[b])
        links = _links_of(compiled, b, root, floating)
        if links:
            if isinstance(links[0].joint, (joints.Free, joints.Translation)):
                start = IDENTITY
            plan.chains.append((name, parent.body, start, links))
            home = Home(name, links[-1].tail)
            if any(home.at.p):
                plan.frames.append((f"{name}:origin", home, None))
        else:
            home = Home(parent.body, start)
            plan.frames.append((name, home, _inertia(m, b, IDENTITY)))
        homes.append(home)
        own = _inertia(m, b, home.at)
        plan.inertias[home.body] = plan.inertias[home.body] + own if home.body in plan.inertias else own
    return plan


def add_bodies(builder: ModelBuilder, compiled: Compiled, plan: Plan) -> None:
    """Add the moving bodies by (1), each joint with a body of its own, the shapes, and the frames."""
    used = set(compiled.bodies)
    for name, parent, start, links in plan.chains:
        for link in links:
            last = link is links[-1]
            own = name if last else unique_name(f"{name}/{link.name}", used)
            if link.place is not None:
                compiled.places[link.name] = link.place
            builder.add_body(
                own,
                parent,
                link.joint,
                link.name,
                placement=start @ link.lead,
                inertia=plan.inertias[name] if last else None,
                limits=link.limits,
                armature=_per_dof(compiled, link, "armature", ""),
                damping=_per_dof(compiled, link, "damping", "DAMPER"),
                friction=_per_dof(compiled, link, "frictionloss", "FRICTIONLOSS"),
                stiffness=0.0 if compiled.is_disabled("SPRING") else link.stiffness,
                rest=link.rest,
                shapes=compiled.shapes.get(own, ()),
            )
            parent, start = own, link.tail
    if not plan.chains:  # a model has a body, if only one that stands still
        builder.add_body(unique_name("static_geometry", used), WORLD, joints.Fixed())
    for shape in compiled.shapes.get(WORLD, ()):
        builder.add_shape(WORLD, shape)
    for name, home, inertia in plan.frames:
        own = name if name in compiled.bodies else unique_name(name, used)
        builder.add_frame(own, *home, inertia=inertia)


def _per_dof(compiled: Compiled, link: Link, kind: str, flag: str) -> tuple[float, ...]:
    """Return the numbers of a kind for the freedoms of a joint; zero where the file's flag disables them."""
    n = link.joint.nv
    if link.place is None or (flag and compiled.is_disabled(flag)):
        return (0.0,) * n
    return tuple(floats(getattr(compiled.m, f"dof_{kind}")[link.place.qvel : link.place.qvel + n]))


def _inertia(m: Any, b: int, at: Transform) -> RigidInertia:
    """Return the inertia of a body of MuJoCo in the frame in which it stands by `at`."""
    own = pose(m.body_ipos[b], m.body_iquat[b])
    R = at.R @ own.R
    A, B, C = floats(m.body_inertia[b])
    xx, xy, xz, _, yy, yz, _, _, zz = R @ Mat3(A, 0.0, 0.0, 0.0, B, 0.0, 0.0, 0.0, C) @ R.transpose()
    return RigidInertia(float(m.body_mass[b]), at.transform_point(own.p), SymMat3(xx, yy, zz, xy, xz, yz))


def _floating_root(compiled: Compiled) -> int:
    """Return the one body on the world that carries the others and has no joint; -1 if one floats already."""
    m = compiled.m
    roots = [b for b in range(1, m.nbody) if m.body_parentid[b] == 0]
    if any(m.body_jntnum[b] and int(m.jnt_type[m.body_jntadr[b]]) == FREE for b in roots):
        return -1
    moved = {int(m.body_rootid[b]) for b in range(1, m.nbody) if m.body_jntnum[b]}
    bearers = [b for b in roots if b in moved] or roots
    names = ", ".join(f'"{compiled.bodies[b]}"' for b in bearers)
    if len(bearers) != 1:
        problem = "needs one body on the world to set free; there are "
        problem += f"{len(bearers)}: {names or 'none'}"
    elif m.body_jntnum[bearers[0]]:
        problem = f"cannot set {names} free: it has joints of its own; take them out of the file, or load it "
        problem += "as it is"
    else:
        return bearers[0]
    raise FileError(f'{compiled.source.path}: root="floating" {problem}')


# Shapes

_SOLIDS: Final[dict[int, Callable[..., shapes.Shape]]] = {
    PLANE: lambda size, **options: shapes.Plane(**options),
    SPHERE: lambda size, **options: shapes.Sphere(size[0], **options),
    CAPSULE: lambda size, **options: shapes.Capsule(size[0], 2.0 * size[1], **options),
    ELLIPSOID: lambda size, **options: shapes.Ellipsoid((size[0], size[1], size[2]), **options),
    CYLINDER: lambda size, **options: shapes.Cylinder(size[0], 2.0 * size[1], **options),
    BOX: lambda size, **options: shapes.Box((2.0 * size[0], 2.0 * size[1], 2.0 * size[2]), **options),
}
"""Our shapes from the sizes of geoms: radii and half lengths."""


def read_shapes(compiled: Compiled) -> None:
    """Read the shapes of every body of ours; of "world" those that stand still."""
    m = compiled.m
    paired = {int(g) for g in (*m.pair_geom1, *m.pair_geom2)}
    for g in range(m.ngeom):
        body, placement = compiled.placement("geom", g)
        shape = _shape(compiled, g, placement, paired=g in paired)
        if shape is not None:
            compiled.shapes.setdefault(body, []).append(shape)


def _shape(compiled: Compiled, g: int, placement: Transform, *, paired: bool) -> shapes.Shape | None:
    m, kind, name = compiled.m, int(compiled.m.geom_type[g]), compiled.given_name("GEOM", g)
    collides = paired or bool(m.geom_contype[g] or m.geom_conaffinity[g])
    rgba, material = floats(m.geom_rgba[g]), int(m.geom_matid[g])
    if rgba == DEFAULT_RGBA and material >= 0:
        rgba = floats(m.mat_rgba[material])
    friction = [max(0.0, x) for x in floats(m.geom_friction[g])]
    options: dict[str, Any] = {
        "name": name,
        "placement": placement,
        "rgba": tuple(min(1.0, max(0.0, x)) for x in rgba),
        "visual": int(m.geom_group[g]) < FIRST_HIDDEN_GROUP,
        "collision": collides and not compiled.contact_is_off,
        "friction": None if _has_default_friction(m, g) else tuple(friction),
        "condim": int(m.geom_condim[g]),
        "group": int(m.geom_contype[g]) & ALL_GROUPS,
        "collides_with": int(m.geom_conaffinity[g]) & ALL_GROUPS,
        "link": _merged_link(compiled, int(m.geom_bodyid[g])),
    }
    if kind in _SOLIDS:
        return _SOLIDS[kind](floats(m.geom_size[g]), **options)
    if kind == MESH:
        return _mesh(compiled, g, options)
    if kind == HFIELD:
        # Rows along y, columns along x; MuJoCo's data are fractions of the greatest height.
        field = int(m.geom_dataid[g])
        x, y, top, _ = floats(m.hfield_size[field])
        rows, columns, first = (int(a[field]) for a in (m.hfield_nrow, m.hfield_ncol, m.hfield_adr))
        heights = top * m.hfield_data[first : first + rows * columns].astype(float)
        return shapes.HeightField(heights.reshape(rows, columns).tolist(), (2.0 * x, 2.0 * y), **options)
    compiled.report.note(f'ignored: geom "{name or g}" is a signed distance field, which is not supported')
    return None


def _merged_link(compiled: Compiled, b: int) -> str:
    """Return the name of a body that was merged into another; "" if it was not."""
    return "" if compiled.bodies[b] == compiled.homes[b].body else compiled.bodies[b]


def _has_default_friction(m: Any, g: int) -> bool:
    """Return whether a geom has the default friction, which that of any other geom overrides."""
    usual = floats(m.geom_friction[g]) == list(USUAL_FRICTION)
    return usual and int(m.geom_priority[g]) == DEFAULT_FRICTION_PRIORITY


def _mesh(compiled: Compiled, g: int, options: dict[str, Any]) -> shapes.Shape | None:
    """Return a reference to the mesh's file, in the frame of the file; a mesh without a file becomes its
    hull, which is what MuJoCo collides, in MuJoCo's own frame of it.

    MuJoCo moves meshes to their principal axes: its geom stands at X M with the pose X that the model gives
    and the mesh's own pose M, so that the file's frame stands at X M M^-1.
    """
    m = compiled.m
    mesh = int(m.geom_dataid[g])
    adr = int(m.mesh_pathadr[mesh])
    path = bytes(m.paths[adr:]).split(b"\0", 1)[0].decode("utf-8", "replace") if adr >= 0 else ""
    if path:
        options["placement"] = options["placement"] @ pose(m.mesh_pos[mesh], m.mesh_quat[mesh]).inverse()
        x, y, z = floats(m.mesh_scale[mesh])
        return shapes.Mesh(str(compiled.source.files[path]), (x, y, z), **options)
    first = int(m.mesh_vertadr[mesh])
    try:
        return shapes.ConvexMesh(m.mesh_vert[first : first + int(m.mesh_vertnum[mesh])].tolist(), **options)
    except ModelError as error:
        compiled.report.note(f'ignored: geom "{options["name"] or g}": {error}')
        return None


# Contact filters beside the masks of geoms: exclusions and explicit pairs


def add_contact(builder: ModelBuilder, compiled: Compiled, plan: Plan) -> None:
    """Add the exclusions and the pairs of shapes that the file names."""
    m, report = compiled.m, compiled.report
    for name, parent, _, links in plan.chains:
        if parent != WORLD and len(links) > 1:
            for first, second in product(_links_on(compiled, parent), _links_on(compiled, name)):
                builder.exclude_contact(first, second)
    if compiled.is_disabled("FILTERPARENT") and m.nbody > 2:
        report.note("ignored: the flag filterparent; a body never touches its parent here")
    for signature in m.exclude_signature:
        pair = int(signature) >> 16, int(signature) & 0xFFFF
        first, second = (compiled.bodies[b] for b in pair)
        if compiled.homes[pair[0]].body != compiled.homes[pair[1]].body:
            builder.exclude_contact(first, second)
    _add_pairs(builder, compiled)
    if compiled.contact_is_off:
        report.note("the file switches contact off: no shape collides")
    if any(m.geom_priority[g] and not _has_default_friction(m, g) for g in range(m.ngeom)):
        report.note("ignored: priorities of geoms; the larger friction of two shapes holds")
    if any(m.geom_contype) or m.npair:
        report.note("ignored: parameters of contact other than friction")


def _links_on(compiled: Compiled, body: str) -> list[str]:
    """Return the name of a body of ours, and those of the bodies with shapes that were merged into it."""
    m, homes, names = compiled.m, compiled.homes, compiled.bodies
    merged = (names[b] for b in range(m.nbody) if homes[b].body == body and m.body_geomnum[b])
    return [*dict.fromkeys([body, *merged])]


def _add_pairs(builder: ModelBuilder, compiled: Compiled) -> None:
    m = compiled.m
    names = {shape.name for shapes in compiled.shapes.values() for shape in shapes}
    for k in range(m.npair):
        first, second = (compiled.name("GEOM", g) for g in (m.pair_geom1[k], m.pair_geom2[k]))
        what = f'contact pair of "{first}" and "{second}"'
        if not {first, second} <= names:
            compiled.report.note(f"ignored: {what}, one of which is not a shape")
            continue
        slide, across, torsion, roll, roll_across = floats(m.pair_friction[k])
        condim = int(m.pair_dim[k])
        if condim == 1:
            slide = across = torsion = roll = roll_across = 0.0
        if condim == 6 and roll != roll_across:
            larger = max(roll, roll_across)
            compiled.report.note(f"{what}: rolling friction is the same in all directions here, {larger:g} m")
            roll = larger
        sliding = (slide,) if slide == across else (slide, across)
        builder.add_contact_pair(first, second, friction=(*sliding, torsion, roll), condim=condim)


def add_fluid(builder: ModelBuilder, compiled: Compiled) -> None:
    """Add the fluid of a file, and the shapes of moving bodies on which it acts."""
    m = compiled.m
    builder.set_fluid(density=m.opt.density, viscosity=m.opt.viscosity, wind=floats(m.opt.wind))
    used: set[str] = set()
    for b in range(1, m.nbody):
        home = compiled.homes[b]
        if home.body == WORLD or m.body_mass[b] < MIN_VALUE:
            continue
        first = int(m.body_geomadr[b])
        geoms = [g for g in range(first, first + int(m.body_geomnum[b])) if m.geom_fluid[g][0] > 0.0]
        for g in geoms:
            name = unique_name(compiled.name("GEOM", g), used)
            _add_ellipsoid(builder, compiled, g, name)
        if not geoms:
            at = home.at @ pose(m.body_ipos[b], m.body_iquat[b])
            name = unique_name(compiled.bodies[b], used)
            builder.add_drag_shape(name, home.body, _edges(m, b), placement=at)


def _edges(m: Any, b: int) -> tuple[float, ...]:
    moments, mass = floats(m.body_inertia[b]), float(m.body_mass[b])
    total = sum(moments)
    return tuple(math.sqrt(max(MIN_VALUE, total - 2.0 * moment) / mass * 6.0) for moment in moments)


def _add_ellipsoid(builder: ModelBuilder, compiled: Compiled, g: int, name: str) -> None:
    """Add the ellipsoid of a geom; its numbers are the interaction, five coefficients, virtual masses and
    virtual inertias."""
    fluid = floats(compiled.m.geom_fluid[g])
    body, at = compiled.placement("geom", g)
    scale, coefficients, added = fluid[0], fluid[1:6], fluid[6:12]
    builder.add_drag_shape(
        name,
        body,
        _half_axes(compiled.m, g),
        placement=at,
        coefficients=[scale * x for x in coefficients],
        added_inertia=[scale * x for x in added],
    )


def _half_axes(m: Any, g: int) -> tuple[float, float, float]:
    """Return the half axes of the ellipsoid that stands for a geom."""
    x, y, z = floats(m.geom_size[g])
    kind = int(m.geom_type[g])
    if kind == SPHERE:
        return x, x, x
    if kind == CAPSULE:
        return x, x, y + x
    return (x, x, y) if kind == CYLINDER else (x, y, z)
