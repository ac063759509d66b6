"""The elements of a model by name and number, frozen after construction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.model import topology
from dalembert.model.body import Body
from dalembert.model.elements import Coupling, Frame, JointView, Loop, Named, ShapePair
from dalembert.model.shapes import Shape
from dalembert.model.tree import Tree
from dalembert.model.user_constraints import Constraint, LoopClosure
from dalembert.model.watched_functions import WatchedFunctions, watches_of
from dalembert.scalar import Scalar
from dalembert.spatial import FrozenValueError, Transform, Vec3

__all__ = ["WORLD_NAME", "System"]

WORLD_NAME = "world"
"""The name of the fixed base, as a parent and as a frame."""

CONTENT = (
    "bodies",
    "gravity",
    "frames",
    "loops",
    "couplings",
    "constraints",
    "closure",
    "actuated",
    "world_shapes",
    "contact_exclusions",
    "contact_pairs",
    "name",
    "report",
)
"""The arguments that make a system, which it holds under the same names."""


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise UnknownNameError(f"a name is a string, but {name!r} of type {type(name).__name__} was given")
    return name


class System(Tree):
    """Abstract base of `Model`: its elements by name and number, and the connectivity of the tree."""

    __slots__ = (
        "_digest",
        "actuated",
        "bodies",
        "closure",
        "constraints",
        "contact_exclusions",
        "contact_pairs",
        "couplings",
        "frames",
        "functions",
        "gravity",
        "joints",
        "loop_names",
        "loops",
        "name",
        "nq",
        "nv",
        "parents",
        "report",
        "world_shapes",
    )

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
        name: str = "model",
        report: Iterable[str] = (),
    ) -> None:
        held = Named("body", bodies)
        joints = Named("joint", (JointView(body) for body in held))
        values: dict[str, Any] = {
            "bodies": held,
            "joints": joints,
            "frames": Named("frame", frames),
            "loops": (held_loops := Named("loop", loops)),
            "loop_names": (
                *held_loops.names,
                *(held_constraints := Named("constraint", constraints)).names,
                *(("loop closure",) if closure is not None else ()),
            ),
            "couplings": Named("coupling", couplings),
            "constraints": held_constraints,
            "closure": closure,
            "actuated": joints.names if actuated is None else tuple(actuated),
            "world_shapes": tuple(world_shapes),
            "contact_exclusions": tuple(contact_exclusions),
            "contact_pairs": tuple(contact_pairs),
            "gravity": gravity,
            "parents": tuple(body.parent for body in held),
            "nq": max((body.q_slice.stop for body in held), default=0),
            "nv": max((body.v_slice.stop for body in held), default=0),
            "name": name,
            "report": tuple(report),
            "_digest": None,
        }
        for slot, value in values.items():
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
        """Return the parent array of the single velocity variables of the tree (Featherstone 2008 Table
        6.4).
        """
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
        """True if a joint or a constraint depends on time, so that every function of the model needs
        `time`.
        """
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

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
