"""Links and joints of a URDF file put together: fixed links merged, mimics coupled, inertias checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from dalembert.errors import InertiaError
from dalembert.formats.document import Element
from dalembert.formats.inertia_repair import nearest_physical
from dalembert.formats.report import Report
from dalembert.formats.urdf_elements import UrdfJoint, UrdfLink, place_shape
from dalembert.model import Limits, Model, ModelBuilder
from dalembert.model.joints import Composite, Fixed, Free, Joint, Planar, Prismatic, Revolute
from dalembert.model.joints.subspaces import basis_around
from dalembert.model.shapes import Shape
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3, physical_problems

__all__ = ["INERTIA_OPTIONS", "ROOT_OPTIONS", "Assembly", "InertiaOption", "RootOption", "planar_about"]

RootOption = Literal["fixed", "floating"] | None
InertiaOption = Literal["as_given", "strict", "repair"]

ROOT_OPTIONS: Final = (None, "fixed", "floating")
INERTIA_OPTIONS: Final = ("as_given", "strict", "repair")

WORLD: Final = "world"
IDENTITY: Final = Transform.identity()
_NAMES_LISTED: Final = 10


@dataclass(slots=True)
class _Body:
    """A moving link with everything that is fixed to it, while it is gathered."""

    link: UrdfLink
    parent: str
    placement: Transform
    joint: Joint
    joint_name: str
    limits: Limits
    damping: float
    friction: float
    inertia: RigidInertia
    shapes: list[Shape] = field(default_factory=list)


class Assembly:
    """The merging of fixed links outward from the root into bodies for the builder."""

    def __init__(self, robot: Element, links: Mapping[str, UrdfLink], report: Report) -> None:
        self.robot = robot
        self.links = links
        self.report = report
        self.bodies: dict[str, _Body] = {}
        # Where each link's frame is: the body that carries it, and its place there.
        self.home: dict[str, tuple[str, Transform]] = {}
        # Followers: the position at which they are fixed, None if they move.
        self.settled: dict[str, float | None] = {}
        self.frames: list[tuple[str, str, Transform]] = []
        self.on_world: list[UrdfLink] = []
        self.world_shapes: list[Shape] = []

    def model(self, base: str, order: Sequence[UrdfJoint], root: RootOption, inertia: InertiaOption) -> Model:
        joints = {joint.name: joint for joint in order}
        for joint in order:
            self._lock_if_led_by_nothing(joint, joints)
        self._place_root(base, order, root)
        for joint in order:
            self._place_child(joint)
        if not self.bodies:
            raise self.robot.error(
                f'no link moves: everything is fixed to link "{base}"; root="floating" makes it a free body'
            )
        self._report_world()
        self._report_weightless()
        if inertia != "as_given":
            self._apply(inertia)
        return self._built(order)

    def _lock_if_led_by_nothing(self, joint: UrdfJoint, joints: Mapping[str, UrdfJoint]) -> None:
        """Lock a joint that follows with ratio 0, or follows a fixed joint: it stays at its offset."""
        chain: list[UrdfJoint] = []
        at = joint
        while at.mimic is not None and at.mimic.multiplier != 0.0 and at.name not in self.settled:
            chain.append(at)
            at = joints[at.mimic.leader]
        position = self.settled.get(at.name)
        if at.name not in self.settled:
            if at.mimic is not None:
                position = at.mimic.offset
                self._lock(at, position)
            else:
                position = 0.0 if at.type == "fixed" else None
        for follower in reversed(chain):
            if position is None:
                self.settled[follower.name] = None
                continue
            assert follower.mimic is not None
            position = follower.mimic.multiplier * position + follower.mimic.offset
            self._lock(follower, position)

    def _lock(self, joint: UrdfJoint, position: float) -> None:
        self.settled[joint.name] = position
        self.report.note(
            f'{joint.element.place}: joint "{joint.name}" follows a joint that does not move; '
            f"it is fixed at {position:g}"
        )

    def _place_root(self, base: str, order: Sequence[UrdfJoint], root: RootOption) -> None:
        link = self.links[base]
        first = [joint for joint in order if joint.parent == base]
        floats_already = len(first) == 1 and first[0].type == "floating" and link.inertia.mass == 0.0
        if root != "floating" or floats_already:
            self.home[base] = (WORLD, IDENTITY)
            self._fix(link, WORLD, IDENTITY)
            return
        taken = {joint.name for joint in order}
        joint_name = next(
            candidate
            for candidate in ("root_joint", *(f"root_joint_{n}" for n in range(2, len(taken) + 3)))
            if candidate not in taken
        )
        body = self._body_name(base)
        self.bodies[body] = _Body(
            link, WORLD, Transform.identity(), Free(), joint_name, Limits(), 0.0, 0.0, link.inertia,
            list(link.shapes),
        )  # fmt: skip
        self.home[base] = (body, IDENTITY)

    def _place_child(self, joint: UrdfJoint) -> None:
        link = self.links[joint.child]
        carrier, at = self.home[joint.parent]
        X = joint.placement if at is IDENTITY else at @ joint.placement
        kind = _joint_of(joint)
        position = self.settled.get(joint.name)
        if position is not None:
            X, kind = X @ kind.transform([position]), Fixed()
        if isinstance(kind, Fixed):
            self.home[joint.child] = (carrier, X)
            self._fix(link, carrier, X)
            return
        name = self._body_name(joint.child)
        self.bodies[name] = _Body(
            link, carrier, X, kind, joint.name, joint.limits, joint.damping, joint.friction, link.inertia,
            list(link.shapes),
        )  # fmt: skip
        self.home[joint.child] = (name, IDENTITY)

    def _fix(self, link: UrdfLink, carrier: str, X: Transform) -> None:
        """Merge a link into the body that carries it at X."""
        if carrier == WORLD:
            self.on_world.append(link)
            self.world_shapes.extend(place_shape(shape, X) for shape in link.shapes)
            if link.name != WORLD:
                self.frames.append((link.name, WORLD, X))
            return
        body = self.bodies[carrier]
        if any(link.inertia.leaves()):
            body.inertia = body.inertia + X.inverse_apply(link.inertia)
        body.shapes.extend(place_shape(shape, X) for shape in link.shapes)
        self.frames.append((self._body_name(link.name), carrier, X))

    def _body_name(self, link: str) -> str:
        """Return a link's name, unless it is the world's."""
        if link != WORLD:
            return link
        name = "world_link"
        while name in self.links:
            name += "_"
        self.report.note(
            f'{self.links[link].element.place}: this link is called "{name}", since "world" is the fixed base'
        )
        return name

    def _report_world(self) -> None:
        names = [link.name for link in self.on_world if any(link.inertia.leaves())]
        if names:
            listed = ", ".join(f'"{name}"' for name in names[:_NAMES_LISTED])
            more = f", … ({len(names)} in all)" if len(names) > _NAMES_LISTED else ""
            self.report.note(
                f"links fixed to the world: the inertia of {listed}{more} is ignored; "
                'root="floating" keeps it'
            )

    def _report_weightless(self) -> None:
        """Report joints that move no mass: forward dynamics would divide by zero there."""
        weighs: set[str] = set()
        has_child = {body.parent for body in self.bodies.values()}
        for name, body in reversed(self.bodies.items()):
            if name in weighs or any(body.inertia.leaves()):
                weighs.update((name, body.parent))
            elif name in has_child:
                self.report.warn(
                    f'{body.link.element.place}: joint "{body.joint_name}" moves link "{name}", which has no '
                    "mass and carries none; its acceleration is undefined"
                )

    def _apply(self, inertia: InertiaOption) -> None:
        """Refuse or repair what no body can have."""
        for name, body in self.bodies.items():
            problems = "; ".join(physical_problems(body.inertia))
            if not problems:
                continue
            if not all(math.isfinite(number) for number in body.inertia.leaves()):
                raise body.link.element.error(f'link "{name}" with all that is fixed to it: {problems}')
            if inertia == "strict":
                raise InertiaError(
                    f'{body.link.element.place}: the inertia of link "{name}" with all that is fixed to it: '
                    f'{problems}; correct it, or load with inertia="as_given" or "repair"'
                )
            body.inertia = nearest_physical(body.inertia)
            moments = ", ".join(f"{moment:.6g}" for moment in _principal_moments(body.inertia))
            self.report.repair(f"{body.link.element.place}: {problems}; now they are {moments} kg m^2")

    def _built(self, order: Sequence[UrdfJoint]) -> Model:
        name = self.robot.attributes.get("name", "").strip() or "robot"
        builder = ModelBuilder(name=name)
        for body_name, body in self.bodies.items():
            builder.add_body(
                body_name,
                parent=body.parent,
                joint=body.joint,
                joint_name=body.joint_name,
                placement=body.placement,
                inertia=body.inertia,
                limits=body.limits,
                damping=body.damping,
                friction=body.friction,
                shapes=body.shapes,
            )
        for shape in self.world_shapes:
            builder.add_shape(WORLD, shape)
        for frame in self.frames:
            builder.add_frame(*frame)
        for joint in order:
            if joint.mimic is not None and self.settled[joint.name] is None:
                terms = {joint.mimic.leader: -joint.mimic.multiplier, joint.name: 1.0}
                builder.add_coupling(joint.name, terms, offset=-joint.mimic.offset, dependent=joint.name)
        for line in self.report.lines():
            builder.warn(line)
        return builder.build(inertia="as_given")


def _principal_moments(inertia: RigidInertia) -> list[float]:
    """Return the principal moments about the centre of mass [kg m^2]; NaN where they overflow."""
    about_com = np.array(inertia.inertia_at_com.to_list(), dtype=float)
    if not np.isfinite(about_com).all():
        return [math.nan] * 3
    return [float(moment) for moment in np.linalg.eigvalsh(about_com)]


def _joint_of(joint: UrdfJoint) -> Joint:
    if joint.type in ("revolute", "continuous"):
        return Revolute(joint.axis)
    if joint.type == "prismatic":
        return Prismatic(joint.axis)
    if joint.type == "floating":
        return Free()
    if joint.type == "planar":
        return planar_about(joint.axis)
    return Fixed()


def planar_about(normal: Vec3) -> Joint:
    """Return a joint that moves in the plane with that unit normal; the frames at both ends stay the link's
    own.
    """
    if (normal.x, normal.y, normal.z) == (0.0, 0.0, 1.0):
        return Planar()
    R = Mat3.from_columns(*basis_around(normal))
    turn = Transform(R, Vec3.zero())
    return Composite([Planar(), Fixed()], [turn, turn.inverse()])
