"""The model builder, the only mutable object of the library, where models are checked; DH tables."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from dalembert.errors import ArgumentError, ModelError, items_of, require_choice, short_repr
from dalembert.model import checks, configuration, topology
from dalembert.model.body import PER_VELOCITY, Body, Coupling, Frame, Limits, Loop, ShapePair
from dalembert.model.configuration import NamedPose, Position, checked_positions, merged_poses
from dalembert.model.coupling import check_couplings, checked_coupling, place_coordinates
from dalembert.model.force_elements import (
    Actuator,
    DragShape,
    Fluid,
    Spring,
    checked_actuator,
    checked_drag_shape,
    checked_fluid,
    checked_spring,
    placed_spring,
    require_fitting,
)
from dalembert.model.joints import Cylindrical, Helical, Joint, Prismatic, Revolute
from dalembert.model.joints.joint import SingleAxisJoint
from dalembert.model.model import Model
from dalembert.model.shapes import Shape
from dalembert.model.shapes.shape import (
    checked_condim,
    checked_pair_friction,
    checked_restitution,
    checked_shape,
)
from dalembert.model.topology import WORLD_NAME
from dalembert.model.user_functions import KINDS, Constraint, checked_closure, checked_constraint, takes_time
from dalembert.model.values import rebuilt
from dalembert.spatial import AxialScrew, Placement, RigidInertia, ScrewChain, Vec3


def number_bodies(pending: Mapping[str, tuple[str, Body]]) -> list[Body]:
    """Return the bodies in a regular numbering, from their names and the names of their parents."""
    names = list(pending)
    position = {WORLD_NAME: topology.WORLD} | {name: i for i, name in enumerate(names)}
    parents = [
        checks.require_known(position, parent, f'body "{name}"') for name, (parent, _) in pending.items()
    ]
    cycle = topology.find_cycle(parents)
    if cycle:
        loop = " -> ".join(f'"{names[i]}"' for i in reversed(cycle))
        raise ModelError(
            f"the bodies {loop} form a cycle that is not connected to the world; "
            "attach one of them to the world and close the loop with add_loop"
        )
    order = topology.regular_order(parents)
    number = {topology.WORLD: topology.WORLD} | {old: new for new, old in enumerate(order)}
    return [
        replace(pending[names[old]][1], index=new, parent=number[parents[old]])
        for new, old in enumerate(order)
    ]


class ModelBuilder:
    """A builder that collects bodies, frames, loops, couplings and constraints in any order.

    `build` numbers and checks them and returns the model. `gravity` is the acceleration of free fall [m/s^2]
    in world coordinates.

    >>> builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    >>> rod = da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.0, 1 / 12, 1 / 12))
    >>> _ = builder.add_body("rod", "world", da.Revolute((0, 1, 0)), inertia=rod)
    >>> model = builder.build()
    >>> print(da.mass_matrix(model, [0.0]).round(6))
    [[0.333333]]
    """

    def __init__(self, *, gravity: Iterable[float] = (0.0, 0.0, -9.81), name: str = "model") -> None:
        components = items_of(gravity)
        if len(components) != 3 or not all(checks.is_finite(g) for g in components):
            raise ModelError(f"gravity must be three finite numbers [m/s^2], got {components}")
        self._gravity = Vec3(*(float(g) for g in components))
        self._name = checks.valid_name(name, "the model's name")
        self._bodies: dict[str, tuple[str, Body]] = {}  # name -> (parent's name, body without its numbers)
        self._joint_owner: dict[str, str] = {}
        self._frames: dict[str, tuple[str, Placement, RigidInertia | None]] = {}
        self._loops: dict[str, tuple[str, str, Loop]] = {}  # with the names of their bodies
        self._couplings: dict[str, Coupling] = {}
        self._constraints: dict[str, Constraint] = {}
        self._closure: tuple[Callable[..., Any], tuple[str, ...], bool] | None = None
        self._actuated: tuple[str, ...] | None = None
        self._shapes: dict[str, list[Shape]] = {}  # by the name of a body that has them beside its own
        self._exclusions: dict[frozenset[str], tuple[str, str]] = {}
        self._contact_pairs: list[ShapePair] = []
        self._poses: dict[str, NamedPose] = {}
        self._actuators: dict[str, Actuator] = {}
        self._springs: dict[str, Spring] = {}
        self._fluid: Fluid | None = None
        self._drag_shapes: dict[str, DragShape] = {}
        self._report: list[str] = []

    def add_body(
        self,
        name: str,
        parent: str = WORLD_NAME,
        joint: Joint | None = None,
        joint_name: str | None = None,
        *,
        placement: Placement | None = None,
        inertia: RigidInertia | None = None,
        limits: Limits | tuple[Any, Any] | None = None,
        damping: float | Iterable[float] = 0.0,
        armature: float | Iterable[float] = 0.0,
        friction: float | Iterable[float] = 0.0,
        stiffness: float | Iterable[float] = 0.0,
        rest: float | Iterable[float] | None = None,
        shapes: Iterable[Shape] = (),
    ) -> None:
        """Add a body that moves relative to its parent, which may be added later.

        `joint_name` defaults to the body's name. `placement` is that of the joint in the parent's frame (the
        body's own frame is the joint's successor frame). `inertia` is in body coordinates (default:
        massless). `limits` is `Limits(…)` or (lower, upper). The other arguments are as in `Body`; one number
        applies to every coordinate of the joint.
        """
        checks.valid_name(name, "a body's name")
        what = f'body "{name}"'
        if name == WORLD_NAME:
            raise ModelError(f'"{WORLD_NAME}" is the fixed base and cannot be added; choose another name')
        if name in self._bodies:
            raise ModelError(
                f"{what} is added twice; choose another name, or, to join one body to two parents, "
                "close the loop with add_loop"
            )
        if joint is None:
            raise ModelError(
                f"{what} has no joint; give joint=…, Fixed() for a body that does not move on its parent"
            )
        joint = checks.checked_joint(joint, what)
        joint_name = checks.valid_name(name if joint_name is None else joint_name, f"{what}: joint_name")
        self._refuse_taken(joint_name, what)
        if checks.valid_name(parent, f"{what}: parent") == name:
            raise ModelError(
                f'{what}: joint "{joint_name}" connects it to itself; name another body as the parent'
            )
        if inertia is not None and not isinstance(inertia, RigidInertia):
            raise ModelError(
                f"{what}: inertia must be RigidInertia(mass, com, inertia_at_com), not {inertia!r}"
            )
        at_joint = f'{what}, joint "{joint_name}"'
        nq, nv = joint.nq, joint.nv
        given = zip(PER_VELOCITY, (armature, damping, friction, stiffness), strict=True)
        per_velocity: dict[str, Any] = {
            part: checks.per_coordinate(value, nv, f"{at_joint}: {part}") for part, value in given
        }
        inertia = checks.finite_value(inertia or RigidInertia.zero(), f"{what}: inertia")
        at_rest = joint.neutral() if rest is None else rest
        body = Body(
            index=-1,
            name=name,
            parent=-1,
            joint=joint,
            joint_name=joint_name,
            placement=checks.placement_or_identity(placement, f"{what}: placement"),
            inertia=inertia,
            q_slice=slice(0, 0),
            v_slice=slice(0, 0),
            **per_velocity,
            rest=checks.per_coordinate(at_rest, nq, f"{at_joint}: rest", negative=True),
            limits=checks.resolve_limits(limits, nq, nv, at_joint),
            shapes=tuple(checked_shape(shape, f"{what}: shapes") for shape in shapes),
        )
        self._bodies[name] = (parent, body)
        self._joint_owner[joint_name] = name

    def add_frame(
        self, name: str, body: str, placement: Placement | None = None, *, inertia: RigidInertia | None = None
    ) -> None:
        """Add a named frame on a body (or on the world), in the body's coordinates.

        `inertia`: the part of the body's inertia that belongs to the frame, in its coordinates; it makes the
        values `<frame>.mass`, `.com` and `.inertia` of the model. The body's inertia includes it.
        """
        what = f'frame "{name}"'
        if checks.valid_name(name, "a frame's name") in self._frames:
            raise ModelError(f"{what} is added twice; choose another name")
        X = checks.placement_or_identity(placement, f"{what}: placement")
        if inertia is not None:
            if not isinstance(inertia, RigidInertia):
                raise ModelError(f"{what}: inertia is {short_repr(inertia)}; give a RigidInertia")
            inertia = checks.finite_value(inertia, f"{what}: inertia")
        self._frames[name] = (body, X, inertia)

    def add_shape(self, body: str, shape: Shape) -> None:
        """Add a shape to a body, in addition to those it was added with, or fix one to the "world"."""
        name = checks.valid_name(body, "add_shape: the name of a body")
        self._shapes.setdefault(name, []).append(checked_shape(shape, f'add_shape to "{name}"'))

    def exclude_contact(self, body: str, other: str) -> None:
        """Exclude contact between two bodies, or between a body and the "world".

        A body and its parent never touch, unless the parent is the world; they need no exclusion. The name of
        a link that was merged into a body, which is that of a frame, means the shapes of that link; the
        body's name means its other shapes.
        """
        for name in (body, other):
            checks.valid_name(name, "exclude_contact: the name of a body")
        if body == other:
            raise ModelError(f'exclude_contact names "{body}" twice; a body never touches itself')
        self._exclusions.setdefault(frozenset((body, other)), (body, other))

    def add_contact_pair(
        self,
        first: str,
        second: str,
        *,
        friction: Sequence[float] | None = None,
        restitution: float | None = None,
        condim: int | None = None,
    ) -> None:
        """Allow two shapes, by name, to touch regardless of their masks, exclusions and bodies.

        `friction` (sliding, torsional, rolling), `restitution` and `condim` apply to this pair; by default
        those of the shapes do. Four coefficients of friction are sliding along two directions of the
        surface, torsional and rolling: the first direction is the world's y axis projected to the surface, or
        the z axis where the normal is within 60 degrees of y.
        """
        what = f'add_contact_pair of "{first}" and "{second}"'
        for name in (first, second):
            checks.valid_name(name, "add_contact_pair: the name of a shape")
        if first == second:
            raise ModelError(f"{what} names one shape twice; a pair is two shapes")
        mu = None if friction is None else checked_pair_friction(friction, what)
        directions = None if condim is None else checked_condim(condim, what)
        e = None if restitution is None else checked_restitution(restitution, what)
        self._contact_pairs.append(ShapePair(first, second, mu, e, directions))

    def add_loop(
        self,
        name: str,
        predecessor: str,
        successor: str,
        joint: Joint,
        placement_predecessor: Placement | None = None,
        placement_successor: Placement | None = None,
    ) -> None:
        """Close a loop with a joint between places on two bodies, of which one may be the world."""
        what = f'loop "{checks.valid_name(name, "the name of a loop joint")}"'
        self._refuse_taken(name, what)
        if predecessor == successor:
            raise ModelError(f'{what} connects body "{predecessor}" to itself; a joint needs two bodies')
        joint = checks.checked_joint(joint, what)
        X_P = checks.placement_or_identity(placement_predecessor, f"{what}: placement_predecessor")
        X_S = checks.placement_or_identity(placement_successor, f"{what}: placement_successor")
        self._loops[name] = (predecessor, successor, Loop(name, -1, -1, joint, X_P, X_S))

    def add_coupling(
        self,
        name: str,
        coefficients: Mapping[str, float],
        *,
        offset: float = 0.0,
        dependent: str | None = None,
    ) -> None:
        """Couple one-DoF joints: sum of coefficient * q(joint) + offset = 0.

        The dependent joint (default: the last one named) loses its place in q, v and tau and follows the
        others.
        """
        what = f'coupling "{checks.valid_name(name, "the name of a coupling")}"'
        if name in self._couplings:
            raise ModelError(f"{what} is added twice; choose another name")
        self._couplings[name] = checked_coupling(name, coefficients, offset, dependent)

    def add_constraint(
        self,
        function: Callable[..., Any],
        kind: Literal["position", "velocity"] = "position",
        *,
        name: str | None = None,
    ) -> None:
        """Add a constraint: a user's function that must stay zero, in addition to the joints' constraints.

        "position": `function(model, q)` returns a list of residuals phi(q); "velocity": `function(model, q,
        v)` returns residuals that are linear in v, such as those of rolling. Either may take a last argument
        `time`. They compute with generic scalars (`dalembert.scalar`) and may call `dalembert.algorithms`, so
        that they can constrain any number of bodies. `name` defaults to the function's.
        """
        require_choice("kind of constraint", kind, KINDS)
        own = getattr(function, "__name__", "")
        if name is None:
            name = own if own.isidentifier() else f"constraint{len(self._constraints)}"
        what = f'constraint "{checks.valid_name(name, "the name of a constraint")}"'
        self._refuse_taken(name, what)
        self._constraints[name] = Constraint(
            name, kind, function, -1, takes_time(function, KINDS[kind], what)
        )

    def set_loop_closure(self, function: Callable[..., Any], independent: Iterable[str]) -> None:
        """Set the explicit constraint q = gamma(y), y the positions of the independent joints, in order.

        `function(model, y)`, or `function(model, y, time)`, returns the whole q. It either solves the model's
        loops, or is the only constraint, as for a gear of variable ratio (Featherstone 2008 section 8.11).
        """
        if isinstance(independent, str):
            raise ModelError(f'set_loop_closure takes a list of joint names; write ["{independent}"]')
        names = tuple(dict.fromkeys(independent))
        self._closure = function, names, takes_time(function, ("model", "y"), "the loop closure")

    def set_actuated(self, names: Iterable[str]) -> None:
        """Set the joints that have motors (default: all)."""
        if isinstance(names, str):
            raise ModelError(f'set_actuated takes a list of joint names; write ["{names}"]')
        self._actuated = tuple(dict.fromkeys(names))

    def add_pose(self, name: str, positions: Mapping[str, Position]) -> None:
        """Add a named pose: positions of joints by name [rad or m], of the others zero displacement.

        A pose of a name that is there already is joined to it, where they have no joint in common.
        """
        what = f'pose "{checks.valid_name(name, "the name of a pose")}"'
        pose = NamedPose(name, tuple(checked_positions(positions, what).items()))
        self._poses[name] = merged_poses(self._poses[name], pose) if name in self._poses else pose

    def add_actuator(
        self,
        name: str,
        joints: Mapping[str, float],
        *,
        gain: float = 1.0,
        bias: Iterable[float] = (0.0, 0.0, 0.0),
        control: tuple[float, float] | None = None,
        force: tuple[float, float] | None = None,
    ) -> None:
        """Add an actuator on joints of one degree of freedom, given with their gear ratios k.

        Its force is gain * u + b0 + b1 l + b2 dl/dt with the length l = sum of k q and the signal u; it acts
        on each joint as k times that. `control` and `force` are the ranges of u and of the force. The name of
        a spring instead of a joint is that of a tendon: q is the length of its path, which shortens where the
        force is negative.
        """
        actuator = checked_actuator(name, joints, gain, bias, control, force)
        if name in self._actuators:
            raise ModelError(f'actuator "{name}" is added twice; choose another name')
        self._actuators[name] = actuator

    def add_spring(
        self,
        name: str,
        points: Iterable[tuple[str, Iterable[float]]] = (),
        *,
        joints: Mapping[str, float] | None = None,
        weights: Iterable[float] | None = None,
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest_length: float | tuple[float, float] | None = None,
        limits: tuple[float, float] | None = None,
    ) -> None:
        """Add a spring and damper along a path: straight lines through points of bodies, two or more.

        Each point is (name, (x, y, z)): the name of a body, of a frame or "world", and a point in its
        coordinates [m]. The tension is k x + d dl/dt, with `stiffness` k [N/m], `damping` d [N s/m] and the
        length x beyond `rest_length` [m]: a number, by default the length in the neutral configuration, or
        the two lengths between which the spring is slack: (0, l) without damping is an elastic rope. The
        damper acts at every length.

        `joints` instead of points: a path whose length is the sum of coefficients times the positions of
        joints, a fixed tendon of MJCF. `weights`: factors of the lengths of the lines from point to point, 1
        by default; 0 interrupts the path. `limits`: the least and the greatest length; (0, l) is a rope that
        does not stretch. Like limits of joints they act in steps with contact. An actuator may pull along the
        path, which may have no stiffness of its own.
        """
        self._refuse_taken(checks.valid_name(name, "the name of a spring"), f'spring "{name}"')
        self._springs[name] = checked_spring(
            name, points, weights, joints or {}, stiffness, damping, rest_length, limits
        )

    def set_fluid(
        self, *, density: float = 0.0, viscosity: float = 0.0, wind: Iterable[float] = (0.0, 0.0, 0.0)
    ) -> None:
        """Let the bodies move in a fluid of this density [kg/m^3] and viscosity [Pa s], which moves with the
        `wind` [m/s]. It acts on the shapes of `add_drag_shape`; `da.dynamics.fluid_forces` has the equations.
        """
        fluid = checked_fluid(density, viscosity, wind)
        if self._fluid is not None and self._fluid != fluid:
            raise ModelError("set_fluid: there is another fluid already; a model moves in one")
        self._fluid = fluid

    def add_drag_shape(
        self,
        name: str,
        body: str,
        size: Iterable[float],
        *,
        placement: Placement | None = None,
        coefficients: Iterable[float] | None = None,
        added_inertia: Iterable[float] = (0.0,) * 6,
    ) -> None:
        """Let the fluid resist a part of a body: a box of the edges `size` [m] centred at `placement`, or,
        with the five `coefficients` of blunt, slender and angular drag and of Kutta and Magnus lift, an
        ellipsoid of these half axes. `added_inertia`: three masses [m^3] and three moments [m^5] of the
        fluid that moves with an ellipsoid, per density.
        """
        if name in self._drag_shapes:
            raise ModelError(f'drag shape "{name}" is added twice; choose another name')
        at = checks.placement_or_identity(placement, f'drag shape "{name}": placement')
        self._drag_shapes[name] = checked_drag_shape(name, body, size, at, coefficients, added_inertia)

    def warn(self, text: str) -> None:
        """Add a line to the model's report."""
        self._report.append(text)

    def build(self, *, inertia: Literal["strict", "as_given"] = "strict") -> Model:
        """Return the frozen model, with bodies in a regular numbering close to the order of their addition.

        `inertia="as_given"` accepts inertias that no physical body has, and reports them.
        """
        require_choice("inertia option", inertia, ("strict", "as_given"))
        if not self._bodies:
            raise ModelError("the model has no bodies; add one with add_body")
        joints = {body.joint_name: body.joint for _, body in self._bodies.values()}
        couplings = check_couplings(self._couplings.values(), joints)
        bodies = place_coordinates(number_bodies(self._bodies), couplings)
        for i, body in enumerate(bodies):
            if body.name in self._shapes:
                bodies[i] = replace(body, shapes=(*body.shapes, *self._shapes[body.name]))
        for joint in self._actuated or ():
            checks.require_known(joints, joint, "set_actuated", "joint")
        for pose in self._poses.values():
            configuration.require_fitting(pose, joints)
        for actuator in self._actuators.values():
            require_fitting(actuator, joints, self._springs)
        model = Model(
            bodies=bodies,
            gravity=self._gravity,
            couplings=couplings,
            actuated=self._actuated,
            world_shapes=self._shapes.get(WORLD_NAME, ()),
            contact_exclusions=self._exclusions.values(),
            contact_pairs=self._contact_pairs,
            poses=self._poses.values(),
            actuators=self._actuators.values(),
            name=self._name,
            report=dict.fromkeys([*self._report, *checks.inspect_bodies(bodies, inertia)]),
            **self._placed_on(bodies),
        )
        if self._springs:
            model = rebuilt(model, springs=self._placed_springs(model))
        if self._fluid is not None or self._drag_shapes:
            for shape in self._drag_shapes.values():
                checks.require_known(self._bodies, shape.body, f'drag shape "{shape.name}"')
            fluid = self._fluid or checked_fluid(0.0, 0.0, (0.0, 0.0, 0.0))
            model = rebuilt(model, fluid=replace(fluid, shapes=tuple(self._drag_shapes.values())))
        # The user's functions are added after a trial evaluation.
        if not self._constraints and self._closure is None:
            return model
        constraints = [checked_constraint(item, model) for item in self._constraints.values()]
        closure = None
        if self._closure is not None:
            function, names, timed = self._closure
            for joint in names:
                checks.require_known(self._joint_owner, joint, "set_loop_closure", "joint")
            closure = checked_closure(function, names, timed, rebuilt(model, constraints=constraints))
        return rebuilt(model, constraints=constraints, closure=closure)

    def _placed_on(self, bodies: Sequence[Body]) -> dict[str, Any]:
        """Return the frames and loops on numbered bodies, after checking all names of bodies and shapes."""
        index = {WORLD_NAME: topology.WORLD} | {body.name: body.index for body in bodies}
        known = functools.partial(checks.require_known, index)
        for name in self._shapes:
            known(name, "add_shape")
        links = index | dict.fromkeys(self._frames, topology.WORLD)
        for pair in self._exclusions.values():
            for name in pair:
                checks.require_known(links, name, "exclude_contact")
        shapes = [*self._shapes.get(WORLD_NAME, ()), *(shape for body in bodies for shape in body.shapes)]
        count = Counter(shape.name for shape in shapes if shape.name)
        for shape_pair in self._contact_pairs:
            for name in (shape_pair.first, shape_pair.second):
                if checks.require_known(count, name, "add_contact_pair", "shape") > 1:
                    raise ModelError(
                        f'add_contact_pair: {count[name]} shapes are called "{name}"; give each its own name'
                    )
        for name in self._frames:
            if name in index:
                raise ModelError(
                    f'frame "{name}" has the name of a body, whose own frame that is; choose another'
                )
        frames = [
            Frame(name, known(body, f'frame "{name}"'), X, inertia)
            for name, (body, X, inertia) in self._frames.items()
        ]
        loops = [
            replace(loop, predecessor=known(p, f'loop "{name}"'), successor=known(s, f'loop "{name}"'))
            for name, (p, s, loop) in self._loops.items()
        ]
        return {"frames": frames, "loops": loops}

    def _placed_springs(self, model: Model) -> list[Spring]:
        """Return the springs with points on bodies."""
        homes: dict[str, tuple[str, Placement | None]] = {
            name: (name, None) for name in (*model.bodies.names, WORLD_NAME)
        }
        for name, (body, X, _) in self._frames.items():
            homes[name] = body, X
        return [placed_spring(spring, homes, model) for spring in self._springs.values()]

    def _refuse_taken(self, name: str, what: str) -> None:
        """Raise an error for a name in use: joints, loops, constraints and springs share one namespace."""
        taken: dict[str, Mapping[str, Any]] = {"joint": self._joint_owner, "loop joint": self._loops}
        taken |= {"constraint": self._constraints, "spring": self._springs}
        for kind, others in taken.items():
            if name in others:
                owner = f' (it already belongs to body "{others[name]}")' if kind == "joint" else ""
                raise ModelError(f'{what}: there is already a {kind} "{name}"{owner}; choose another name')


# Denavit-Hartenberg parameters, in the convention of Featherstone 2008 section 4.3 (the Springer Handbook's).
#
# Frame i stands on joint axis i. From frame i - 1: an axial screw about x_{i-1} by (alpha_i, a_i), then one
# about z_i by (theta_i, d_i), of which the joint's own variable is a part:
#
#     X_T(i) = xlt([a_i 0 d_i]) rotx(alpha_i)        placement: R = Rx(alpha), p = R (a, 0, d)
#
# The classic convention of other textbooks places frame i on axis i + 1; `from_classic` converts it.

Z = (0.0, 0.0, 1.0)
DH_JOINTS: Final[dict[str, type[SingleAxisJoint]]] = {
    joint.kind: joint for joint in (Revolute, Prismatic, Cylindrical, Helical)
}


class DHRow(NamedTuple):
    """One row of a table of DH parameters: a, d [m], alpha, theta [rad].

    `theta` and `d` are the values at joint position zero; `joint` is "revolute", "prismatic", "cylindrical"
    or "helical", the last with `pitch` [m/rad].
    """

    a: float
    alpha: float
    d: float
    theta: float = 0.0
    joint: str = "revolute"
    pitch: float = 0.0


def dh_placement(row: DHRow) -> ScrewChain:
    """Return the placement of a row's joint in the previous frame, as two axial screws."""
    return ScrewChain(
        (
            AxialScrew(0, *_direction(row.alpha), float(row.a)),
            AxialScrew(2, *_direction(row.theta), float(row.d)),
        )
    )


def from_classic(rows: Sequence[DHRow]) -> tuple[tuple[DHRow, ...], DHRow]:
    """Convert classic DH rows to the convention above; return them and the end effector's row.

    The classic link transform is Rz(theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i): its a and alpha belong to the
    next row here.
    """
    before = [(0.0, 0.0), *((row.a, row.alpha) for row in rows)]
    moved = tuple(row._replace(a=a, alpha=alpha) for row, (a, alpha) in zip(rows, before))
    a, alpha = before[-1]
    return moved, DHRow(a, alpha, 0.0, 0.0)


def dh_chain(
    rows: Sequence[DHRow],
    inertias: Sequence[RigidInertia],
    *,
    base: tuple[float, float] = (0.0, 0.0),
    end_effector: DHRow | None = None,
    names: Sequence[str] | None = None,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    name: str = "chain",
) -> Model:
    """Build an unbranched chain with body frames placed by the DH rows (4 n + 6 parameters).

    `base` is (theta_0, d_0), which locates x_0 and with it the first common perpendicular on the base's z
    axis; `end_effector` adds a frame of that name.
    """
    if len(inertias) != len(rows):
        raise ArgumentError(f"{len(rows)} rows but {len(inertias)} inertias; give one inertia a row")
    labels = [f"link{i + 1}" for i in range(len(rows))] if names is None else list(names)
    if len(labels) != len(rows):
        raise ArgumentError(f"{len(rows)} rows but {len(labels)} names; give one name a row")
    builder = ModelBuilder(gravity=gravity, name=name)
    parent = WORLD_NAME
    root = AxialScrew(2, *_direction(base[0]), float(base[1]))
    for i, (row, inertia, label) in enumerate(zip(rows, inertias, labels)):
        require_choice("joint of a DH row", row.joint, DH_JOINTS)
        joint = DH_JOINTS[row.joint](Z) if row.joint != "helical" else Helical(Z, row.pitch)
        placement = dh_placement(row)
        whole = root @ placement if i == 0 else placement
        builder.add_body(label, parent, joint, placement=whole.as_transform(), inertia=inertia)
        parent = label
    if end_effector is not None:
        builder.add_frame("end_effector", parent, dh_placement(end_effector).as_transform())
    return builder.build()


def _direction(angle: float) -> tuple[float, float]:
    """Return (cos, sin) with exact zeros and ones at quarter turns, so that structure folds."""
    c, s = math.cos(angle), math.sin(angle)
    if abs(c) < 1e-15:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < 1e-15:
        return math.copysign(1.0, c), 0.0
    return c, s
