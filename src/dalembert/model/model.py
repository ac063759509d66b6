"""The frozen model of an articulated system (Featherstone 2008 Table 4.3)."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, DtypeError, ModelError, UnknownNameError, items_of
from dalembert.model import checks, configuration, coupling, surgery, topology, values
from dalembert.model.body import Body, Coupling, Frame, JointView, Loop, Named, ShapePair
from dalembert.model.configuration import NamedPose
from dalembert.model.force_elements import Actuator, Fluid, Spring
from dalembert.model.shapes import Plane, Shape
from dalembert.model.shapes.shape import USUAL_FRICTION
from dalembert.model.topology import WORLD_NAME
from dalembert.model.tree import Tree
from dalembert.model.user_functions import (
    Constraint,
    LoopClosure,
    WatchedFunctions,
    transfer_constraint,
    watches_of,
)
from dalembert.scalar import Scalar
from dalembert.spatial import FrozenValueError, Mat3, Transform, Vec3

Array = npt.NDArray[np.float64]


CONTENT: Final = (
    *("bodies", "gravity", "frames", "loops", "couplings", "constraints", "closure", "actuated"),
    *("world_shapes", "contact_exclusions", "contact_pairs", "poses", "actuators", "springs", "fluid"),
    *("name", "report"),
)
"""The arguments that make a model, which it holds under the same names."""


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise UnknownNameError(f"a name is a string, but {name!r} of type {type(name).__name__} was given")
    return name


@final
class Model(Tree):
    """A system of rigid bodies: a tree of bodies and joints, loop joints, couplings and user constraints.

    `ModelBuilder.build` makes and checks it. A model is frozen, and compared and hashed by content. If
    couplings make joints dependent, `nq`, `nv`, q, v and tau count the independent coordinates only. `report`
    holds the warnings of the builder.

    >>> model = da.models.humanoid()
    >>> model.nq, model.nv, len(model.bodies)
    (46, 43, 20)
    >>> model.joint("left_knee").v_slice
    slice(25, 26, None)
    >>> model.with_values({"gravity": (0.0, 0.0, -1.62)}).gravity
    Vec3(x=0.0, y=0.0, z=-1.62)
    """

    __slots__ = (*CONTENT, "_digest", "functions", "joints", "loop_names", "nq", "nv", "parents")

    bodies: Named[Body]
    joints: Named[JointView]
    frames: Named[Frame]
    loops: Named[Loop]
    couplings: Named[Coupling]
    constraints: Named[Constraint]
    closure: LoopClosure | None
    actuated: tuple[str, ...]
    world_shapes: tuple[Shape, ...]
    """Geometry that is fixed to the world, in world coordinates."""
    contact_exclusions: tuple[tuple[str, str], ...]
    """Pairs of bodies, or a body and "world", that never touch; a body and its parent never do anyway."""
    contact_pairs: tuple[ShapePair, ...]
    """Pairs of shapes that may touch regardless of their masks and bodies."""
    poses: Named[NamedPose]
    """Poses by name, such as the keyframes of a file; `pose` returns their q."""
    actuators: Named[Actuator]
    """Actuators that turn a control signal into joint forces, in the order of `da.control.Actuators`."""
    springs: Named[Spring]
    """Springs and dampers between points of bodies."""
    fluid: Fluid | None
    """The fluid in which the bodies move, with the shapes that it resists; None in a vacuum."""
    name: str
    report: tuple[str, ...]
    functions: dict[Any, Any]
    """Cache of the functions compiled for this model; not part of its content."""
    _digest: str | None

    def __init__(
        self,
        *,
        bodies: Iterable[Body],
        gravity: Vec3,
        frames: Iterable[Frame] = (),
        loops: Iterable[Loop] = (),
        couplings: Iterable[Coupling] = (),
        constraints: Iterable[Constraint] = (),
        closure: LoopClosure | None = None,
        actuated: Sequence[str] | None = None,
        world_shapes: Iterable[Shape] = (),
        contact_exclusions: Iterable[tuple[str, str]] = (),
        contact_pairs: Iterable[ShapePair] = (),
        poses: Iterable[NamedPose] = (),
        actuators: Iterable[Actuator] = (),
        springs: Iterable[Spring] = (),
        fluid: Fluid | None = None,
        name: str = "model",
        report: Iterable[str] = (),
    ) -> None:
        held = Named("body", bodies)
        joints = Named("joint", (JointView(body) for body in held))
        held_loops, held_constraints = Named("loop", loops), Named("constraint", constraints)
        explicit = ("loop closure",) if closure is not None else ()
        slots: dict[str, Any] = {
            "bodies": held,
            "joints": joints,
            "frames": Named("frame", frames),
            "loops": held_loops,
            "loop_names": (*held_loops.names, *held_constraints.names, *explicit),
            "couplings": Named("coupling", couplings),
            "constraints": held_constraints,
            "closure": closure,
            "actuated": joints.names if actuated is None else tuple(actuated),
            "world_shapes": tuple(world_shapes),
            "contact_exclusions": tuple(contact_exclusions),
            "contact_pairs": tuple(contact_pairs),
            "poses": Named("pose", poses),
            "actuators": Named("actuator", actuators),
            "springs": Named("spring", springs),
            "fluid": fluid,
            "gravity": gravity,
            "parents": tuple(body.parent for body in held),
            "nq": max((body.q_slice.stop for body in held), default=0),
            "nv": max((body.v_slice.stop for body in held), default=0),
            "name": name,
            "report": tuple(report),
            "_digest": None,
        }
        for slot, value in slots.items():
            object.__setattr__(self, slot, value)
        watches = tuple(watches_of(self))
        object.__setattr__(self, "functions", WatchedFunctions(watches) if watches else {})

    # names

    def body(self, name: str) -> Body:
        """Return the body of this name."""
        return self.bodies[_text(name)]

    def joint(self, name: str) -> JointView:
        """Return the joint of this name, with its slices of q and v."""
        return self.joints[_text(name)]

    def frame(self, name: str) -> Frame:
        """Return the frame of this name; a body's name gives the body's own frame, "world" the base."""
        if self.frames.has(_text(name)):
            return self.frames[name]
        if self.bodies.has(name):
            return Frame(name, self.bodies[name].index, Transform.identity())
        if name == WORLD_NAME:
            return Frame(name, topology.WORLD, Transform.identity())
        raise UnknownNameError.of("frame", name, (*self.bodies.names, *self.frames.names, WORLD_NAME))

    # connectivity

    def support(self, body: Body | int) -> frozenset[int]:
        """Return kappa(i), the joints between the world and body i."""
        return topology.support(self.parents, self._index(body))

    def children(self, body: Body | int) -> frozenset[int]:
        """Return mu(i), the children of body i, or of the world (-1)."""
        return topology.children(self.parents, self._index(body))

    def subtree(self, body: Body | int) -> frozenset[int]:
        """Return nu(i), the bodies that joint i moves."""
        return topology.subtree(self.parents, self._index(body))

    def expanded_parents(self) -> tuple[int, ...]:
        """Return the parent array of the tree's velocity variables (Featherstone 2008 Table 6.4)."""
        return topology.expand_parents(self.parents, [body.nv for body in self.bodies])[0]

    def _index(self, body: Body | int) -> int:
        index = body.index if isinstance(body, Body) else body
        if not topology.WORLD <= index < len(self.bodies):
            raise ArgumentError(
                f"there is no body {index}; bodies are 0 to {len(self.bodies) - 1}, and -1 is the world"
            )
        return index

    @property
    def total_mass(self) -> Scalar:
        """The mass of all bodies [kg]."""
        return sum(body.inertia.mass for body in self.bodies)

    @property
    def has_functions(self) -> bool:
        """True if the model contains Python functions, such as constraints and user-defined joints."""
        return isinstance(self.functions, WatchedFunctions)

    @property
    def state_of_functions(self) -> str:
        """The digest of what the model's Python functions compute now; "" if it contains none."""
        return self.functions.state() if isinstance(self.functions, WatchedFunctions) else ""

    @property
    def time_dependent(self) -> bool:
        """True if a joint or constraint depends on time, so that functions of the model need `time`."""
        return (
            any(body.joint.time_dependent for body in self.bodies)
            or any(loop.joint.time_dependent for loop in self.loops)
            or any(constraint.time_dependent for constraint in self.constraints)
            or (self.closure is not None and self.closure.time_dependent)
        )

    # frozen

    def content(self) -> dict[str, Any]:
        """Return the constructor arguments of this system."""
        parts = {name: getattr(self, name) for name in CONTENT}
        return {name: tuple(part) if isinstance(part, Named) else part for name, part in parts.items()}

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenValueError(
            f'a model is frozen, "{name}" cannot be set; use model.with_values(…) or build another one'
        )

    def __delattr__(self, name: str) -> None:
        raise FrozenValueError(f'a model is frozen, "{name}" cannot be deleted')

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self

    # the configuration space

    def neutral(self) -> Array:
        """Return q `(nq,)` with every joint at zero displacement."""
        return np.array(configuration.neutral(self), dtype=np.float64)

    pose = configuration.pose
    random_state = configuration.random_state

    # loops and couplings

    def loop_clusters(self) -> tuple[tuple[str, ...], ...]:
        """Return the loop joints and user constraints in minimal sets that share no joint with one another.

        Each set has its own block of K (Featherstone 2008 section 8.9); `algorithms.constraints.clusters`
        returns the joints as well.
        """
        return tuple(cluster.constraints for cluster in coupling.loop_clusters(self))

    def uncoupled(self) -> Model:
        """Return the same system without its couplings, with every joint's own coordinates in q and v."""
        if not self.couplings:
            return self
        if self.closure is not None:
            raise ModelError(
                "a model with a loop closure q = gamma(y) cannot be uncoupled: gamma knows the coupled q "
                "only; put the coupling into gamma"
            )
        constraints = [
            dataclasses.replace(item, function=transfer_constraint(item, self)) for item in self.constraints
        ]
        bodies = coupling.place_coordinates(self.bodies)
        return values.rebuilt(self, bodies=bodies, couplings=(), constraints=constraints)

    def expansion(self) -> tuple[list[list[float]], list[float]]:
        """Return (G, g) with v_full = G v (nv_full x nv) and, for joints with v = dq/dt, q_full = G q + g."""
        full = [(body, k) for body in self.bodies for k in range(body.nv)]
        G, g = [[0.0] * self.nv for _ in full], [0.0] * len(full)
        for i, (body, k) in enumerate(full):
            if body.dependence is None:
                G[i][body.v_slice.start + k] = 1.0
                continue
            g[i] = body.dependence.offset
            for _, place, ratio in body.dependence.terms:
                G[i][place] += ratio
        return G, g

    def expand_q(self, q: Sequence[Scalar]) -> list[Scalar]:
        """Return the uncoupled model's q for this model's q."""
        return [x for body in self.bodies for x in body.own_q(q)]

    def expand_v(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return the uncoupled model's v = G v for this model's v; accelerations map alike."""
        return [x for body in self.bodies for x in body.own_v(v)]

    # surgery: each returns a new model

    lock = surgery.lock
    attach = surgery.attach
    lumped = surgery.merge_fixed_bodies

    def tree(self) -> Model:
        """Return the spanning tree: this model without loop joints and other constraints."""
        return values.rebuilt(self, loops=(), constraints=(), closure=None)

    def with_ground(
        self,
        height: float = 0.0,
        *,
        friction: float | Sequence[float] | None = None,
        restitution: float = 0.0,
        condim: int = 3,
        name: str = "ground",
    ) -> Model:
        """Return the model with a horizontal plane at z = height [m] fixed to the world.

        `friction` is the coefficient of sliding friction, or those of sliding, torsional [m] and rolling
        friction [m], of which `condim` says how many act: 3, 4 or 6. A contact uses the larger of the two
        shapes' coefficients; if only one shape defines friction, its value is used, and if neither does, it
        is 1. `restitution` is the ratio of normal velocities after and before an impact.

        >>> da.models.humanoid().with_ground(friction=0.8).world_shapes[0].kind
        'plane'
        """
        if not checks.is_finite(height):
            raise ArgumentError(f"with_ground: height is {height!r}; give a finite number [m]")
        coefficients = None if friction is None else [*items_of(friction)]
        if coefficients is not None:
            if len(coefficients) not in (1, 3) or not all(
                checks.is_finite(c) and c >= 0.0 for c in coefficients
            ):
                wanted = "a finite number that is not negative, such as 0.8, or three of them"
                raise ArgumentError(f"with_ground: friction is {friction!r}; give {wanted}")
            coefficients += USUAL_FRICTION[len(coefficients) :]
        if not checks.is_finite(restitution) or not 0.0 <= restitution <= 1.0:
            raise ArgumentError(f"with_ground: restitution is {restitution!r}; give a number from 0 to 1")
        place = Transform(Mat3.identity(), Vec3(0.0, 0.0, float(height)))
        surface: dict[str, Any] = {"friction": coefficients, "restitution": restitution, "condim": condim}
        ground = Plane(name=name, placement=place, **surface)
        return values.rebuilt(self, world_shapes=(*self.world_shapes, ground))

    value = values.value
    value_names = values.value_names
    with_values = values.with_values

    # text

    def summary(self) -> str:
        """Return a table of the tree with joints, slices of q and v and masses; then frames, loops, couplings
        and the conventions of the numbers.
        """
        rows = [
            (drawing + body.name, body.joint_name, body.joint.kind, str(body.nv),
             _range(body.q_slice, body), _range(body.v_slice, body), _number(body.inertia.mass))
            for body, drawing in zip(self.bodies, _drawings(self.parents))
        ]  # fmt: skip
        listed = [HEADER, *(rows[i] for i in _preorder(self.parents)[:MAX_ROWS])]
        widths = [max(map(len, column)) for column in zip(*listed)]
        head, *table = (
            "  ".join(
                text.rjust(w) if k >= 3 else text.ljust(w) for k, (text, w) in enumerate(zip(row, widths))
            )
            for row in listed
        )
        gravity = ", ".join(_number(g) for g in self.gravity)
        roots = [body for body in self.bodies if body.parent < 0]
        kinds = ["floating" if body.joint.kind == "free" else body.joint.kind for body in roots]
        base = ", ".join(f"{body.name} ({kind})" for body, kind in zip(roots, kinds))
        lines = [
            f"{self.name}: {len(self.bodies)} bodies, nq = {self.nq}, nv = {self.nv}, "
            f"total mass {_number(self.total_mass)} kg, gravity ({gravity}) m/s²",
            f"base: world is fixed; standing on it: {base}",
            "",
            *(row.rstrip() for row in (head, "  ".join("─" * w for w in widths), *table)),
        ]
        if len(rows) > MAX_ROWS:
            lines.append(f"… and {len(rows) - MAX_ROWS} bodies more")
        for title, items, is_list in _sections(self):
            if items and is_list:
                lines += ["", title, *(f"  {item}" for item in items)]
            elif items:
                lines += ["", f"{title}: {', '.join(items)}"]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the model as JSON text, from which `Model.from_json` restores it bit for bit."""
        from dalembert.model import storage

        return storage.to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Model:
        """Return the model saved by `to_json`; any other text is an error."""
        from dalembert.model import storage

        return storage.from_json(text)

    @property
    def digest(self) -> str:
        """A SHA-256 of everything that the model computes with, names included."""
        if self._digest is None:
            from dalembert.model import storage

            object.__setattr__(self, "_digest", storage.digest(self))
        assert self._digest is not None
        return self._digest

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self.digest == other.digest if isinstance(other, Model) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f'<Model "{self.name}": {len(self.bodies)} bodies, nq={self.nq}, nv={self.nv}>'

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Model, **self.content()), ()


def require_model(model: object) -> Model:
    """Return the model; any other object, also a builder, is an error."""
    if isinstance(model, Model):
        return model
    raise DtypeError(
        f"model must be a Model, got {type(model).__name__}; da.load reads one from a file, "
        "ModelBuilder.build makes one, da.models has some ready"
    )


# The summary of a model as a table of text.

HEADER = ("body", "joint", "type", "dof", "q", "v", "mass [kg]")
MAX_ROWS = 400
"""Bodies beyond these are counted, not listed."""
MAX_LISTED = 40
"""Shapes and pairs of bodies beyond these are counted, not listed."""
MAX_DRAWN_DEPTH = 24
"""Deeper bodies are drawn at this depth with their true depth beside the name."""

CONVENTIONS = (
    "spatial vectors: angular first, body coordinates; SI units, radians, z up",
    "quaternions: (w, x, y, z), of the rotation that maps child to parent coordinates",
    "free joint: q = position in the parent, quaternion; v = angular, linear velocity in body coordinates",
    "spherical joint: v = angular velocity in the successor",
    "planar joint: q = (x, y, angle) in the parent, v = (omega, v_x, v_y) in the successor",
)


def _sections(model: Model) -> Iterator[tuple[str, Sequence[str], bool]]:
    """Yield the parts below the table: a title, the items, and whether each has a line of its own."""
    names = (*model.bodies.names, WORLD_NAME)  # so that -1 is the world
    yield "frames", [f"{frame.name} on {names[frame.body]}" for frame in model.frames], False
    loops = [
        f"{loop.name}: {loop.joint.kind} joint, {names[loop.predecessor]} – {names[loop.successor]}, "
        f"{6 - loop.joint.nv} constraints"
        for loop in model.loops
    ]
    yield "loops (q, v, tau are the spanning tree's)", loops, True
    yield "poses", model.poses.names, False
    yield "actuators", model.actuators.names, False
    springs = []
    for spring in model.springs:
        path = " – ".join(name for name, _ in spring.points)
        path = path or " + ".join(f"{k:g}·{joint}" for joint, k in spring.joints)
        resistance = f"stiffness {_number(spring.stiffness)} N/m, damping {_number(spring.damping)} N s/m"
        low, high = spring.limits
        ends = "" if low == -math.inf and high == math.inf else f", length {low:g} to {high:g}"
        springs.append(f"{spring.name}: {path}, {resistance}{ends}")
    yield "springs along paths", springs, True
    fluid = model.fluid
    immersed = (
        []
        if fluid is None
        else [
            f"density {_number(fluid.density)} kg/m^3, viscosity {_number(fluid.viscosity)} Pa s, wind "
            f"{[float(x) for x in fluid.wind]} m/s, on {len(fluid.shapes)} shapes"
        ]
    )
    yield "fluid", immersed, True
    constraints = [
        f"{item.name}: of {item.kind}, {item.size} residuals{', with time' if item.time_dependent else ''}"
        for item in model.constraints
    ]
    yield "constraints (functions of the user's that stay zero)", constraints, True
    if model.closure is not None:
        yield "loop closure", [f"q is a function of {', '.join(model.closure.independent)}"], False
    couplings = []
    for each in model.couplings:
        terms = " + ".join(f"{k:g}·{joint}" for joint, k in each.coefficients)
        offset = f" + {each.offset:g}" if each.offset else ""
        couplings.append(f"{each.name}: {terms}{offset} = 0, {each.dependent} follows")
    yield "couplings (q, v, tau hold the independent joints only)", couplings, True
    shapes = [f"{shape.name} ({shape.kind})" if shape.name else shape.kind for shape in model.world_shapes]
    yield "shapes of the world", _shorten(shapes), False
    apart = [f"{a} – {b}" for a, b in model.contact_exclusions]
    yield "bodies that never touch", _shorten(apart), False
    pairs = [f"{pair.first} – {pair.second}" for pair in model.contact_pairs]
    yield "shapes that may always touch", _shorten(pairs), False
    idle = [joint.name for joint in model.joints if joint.body.nv and joint.name not in model.actuated]
    yield "joints without a motor", idle, False
    yield "conventions", CONVENTIONS, True
    yield "warnings", model.report, True


def _shorten(items: list[str]) -> list[str]:
    more = [f"… ({len(items)} in all)"] if len(items) > MAX_LISTED else []
    return items[:MAX_LISTED] + more


def _preorder(parents: Sequence[int]) -> list[int]:
    """Return the body indices in depth-first order, as the tree is drawn."""
    below: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for i, parent in enumerate(parents):
        below[parent].append(i)
    order, stack = [], below[-1][::-1]
    while stack:
        order.append(stack.pop())
        stack += reversed(below[order[-1]])
    return order


def _drawings(parents: Sequence[int]) -> list[str]:
    """Return the branch that leads to each body, in box characters."""
    last = {parent: i for i, parent in enumerate(parents)}  # the last child of every body
    stems, drawings = {-1: ""}, []
    for i, (parent, depth) in enumerate(zip(parents, topology.depths(parents))):
        stem, is_last = stems[parent], last[parent] == i
        if depth > MAX_DRAWN_DEPTH:
            stems[i] = stem
            drawings.append(f"{stem}… (depth {depth}) ")
        else:
            stems[i] = stem + ("   " if is_last else "│  ")
            drawings.append(stem + ("└─ " if is_last else "├─ "))
    return drawings


def _range(places: slice, body: Body) -> str:
    if body.dependence is not None:
        return "follows"
    if places.start == places.stop:
        return "–"
    return str(places.start) if places.stop == places.start + 1 else f"{places.start}:{places.stop}"


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) and math.isfinite(value) else str(value)
