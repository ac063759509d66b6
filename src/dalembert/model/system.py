"""The elements of a model by name and number, frozen after construction."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, TypeAlias, final

from dalembert.errors import ArgumentError, ModelError, UnknownNameError
from dalembert.host.captured_values import Reads, reads_of
from dalembert.model import topology
from dalembert.model.body import Body, Coupling, Frame, JointView, Loop, Named, ShapePair
from dalembert.model.joints import Joint, TimeDependent, UserDefined
from dalembert.model.shapes import Shape
from dalembert.model.tree import Tree
from dalembert.model.user_constraints import CarriedFunction, Constraint, KnownFunction, LoopClosure
from dalembert.scalar import Scalar
from dalembert.spatial import FrozenValueError, Mat3, Transform, Vec3

# User functions inside a model, and the compiled functions that depend on them.
#
# Constraints, loop closures, `UserDefined` and `TimeDependent` joints and users' joint classes are Python
# functions that may read values from elsewhere. If such a value changes, compiled functions of the model are
# out of date. So a model with such functions keeps its compiled functions in a dictionary that checks them on
# every access, and is cleared once one of them computes something else. Models without such functions have a
# plain dictionary.
#
# A change is found as in `recording` for policies: by tracing the function again, or by the proof of
# `captured_values` that this is not needed. The tracer belongs to the compiler, which physics does not
# import; the module that imports both registers it.

ArrayShape: TypeAlias = tuple[int, ...]

_tracers: list[Callable[[Callable[..., Any], Sequence[ArrayShape]], str]] = []


def enrol_tracer(tracer: Callable[[Callable[..., Any], Sequence[ArrayShape]], str]) -> None:
    """Register the function that returns the digest of the trace of a function of arrays of given shapes."""
    _tracers[:] = [tracer]


class Part(NamedTuple):
    """A function of arrays of symbols with their shapes; one that is `essential` can always be traced."""

    function: Callable[..., Any]
    shapes: Sequence[ArrayShape]
    essential: bool = True


@final
class WatchedFunctions(dict[Any, Any]):
    """The compiled functions of a model, cleared when a user's function in it computes something else."""

    __slots__ = ("_looking", "_watches")

    def __init__(self, watches: Iterable[Watch]) -> None:
        super().__init__()
        self._watches = tuple(watches)
        self._looking = threading.local()

    def __getitem__(self, key: Any) -> Any:
        self._look()
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self._look()
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._look()
        return super().__contains__(key)

    def state(self) -> str:
        """Return a digest of what the functions in the model compute now."""
        self._look()
        return " ".join(watch.digest or "" for watch in self._watches)

    def _look(self) -> None:
        if getattr(self._looking, "now", False):
            return  # a function that is traced here uses the model itself
        self._looking.now = True
        try:
            if any(watch.has_changed() for watch in self._watches):
                self.clear()
        finally:
            self._looking.now = False


@final
class Watch:
    """A watched constraint, closure or joint: `functions` are the user's, `parts` is all that it computes."""

    __slots__ = ("_functions", "_parts", "_place", "_reads", "digest")

    def __init__(self, place: str, functions: Sequence[Callable[..., Any]], parts: Sequence[Part]) -> None:
        self._place = place
        self._functions = tuple(functions)
        self._parts = tuple(parts)
        self._reads: tuple[Reads, ...] = ()
        self.digest: str | None = None

    def has_changed(self) -> bool:
        """Return whether the functions compute something else than at the last call."""
        if self._reads and all(reads.is_unchanged() for reads in self._reads):
            return False
        before = self.digest
        proven = tuple(reads for function in self._functions if (reads := reads_of(function)) is not None)
        now = self._trace_digest()
        is_proven = len(proven) == len(self._functions) and all(reads.is_unchanged() for reads in proven)
        if not is_proven and now != before and self._trace_digest() != now:
            raise ModelError(
                f"{self._place} is another function each time it is traced: it reads something that changes "
                "by itself, such as random numbers, a clock or an iterator. Make it a function of its "
                "arguments alone; values that change belong to q, to `time` or to `parameters`"
            )
        self._reads, self.digest = proven if is_proven else (), now
        return before is not None and now != before

    def _trace_digest(self) -> str:
        tracer = _tracers[0]
        digest = hashlib.sha256()
        for part in self._parts:
            try:
                found = tracer(part.function, part.shapes)
            except Exception as error:
                if part.essential:
                    raise
                found = f"{type(error).__qualname__}: {error}"  # a joint need not have all of them
            digest.update(found.encode())
        return digest.hexdigest()


def watches_of(system: System) -> Iterator[Watch]:
    """Yield a watch for each part of a system that has functions of the caller's."""
    for body in system.bodies:
        yield from _of_joint(f'joint "{body.joint_name}"', body.joint)
    for loop in system.loops:
        yield from _of_joint(f'loop joint "{loop.name}"', loop.joint)
    for constraint in system.constraints:
        yield from _of_constraint(constraint, system)
    if system.closure is not None:
        yield from _of_closure(system.closure, system)


def _of_constraint(constraint: Constraint, system: System) -> Iterator[Watch]:
    function = constraint.function
    if isinstance(function, CarriedFunction):
        yield from watches_of(function.model)
    elif not isinstance(function, KnownFunction):
        shapes = [(system.nq,), (system.nv,), ()]

        def residual(q: Any, v: Any, time: Any) -> Any:
            return constraint.residual(system, q, v, time)  # type: ignore[arg-type]

        yield Watch(f'constraint "{constraint.name}"', [function], [Part(residual, shapes)])


def _of_closure(closure: LoopClosure, system: System) -> Iterator[Watch]:
    if not isinstance(closure.function, KnownFunction):

        def configuration(y: Any, time: Any) -> Any:
            return closure.configuration(system, y, time)  # type: ignore[arg-type]

        shapes = [(len(closure.positions),), ()]
        yield Watch("the loop closure", [closure.function], [Part(configuration, shapes)])


def _of_joint(place: str, joint: Any) -> Iterator[Watch]:
    """Yield the watches of a joint and of the joints that it is made of."""
    if isinstance(joint, tuple):
        for item in joint:
            yield from _of_joint(place, item)
    elif isinstance(joint, UserDefined):
        parts = _parts_of(joint)
        names, functions = zip(*joint.functions, strict=True)
        yield Watch(place, functions, [parts[name] for name in names])
    elif isinstance(joint, Joint):
        if not type(joint).__module__.startswith("dalembert."):
            yield Watch(place, [joint], list(_parts_of(joint).values()))  # type: ignore[list-item]
            return
        if isinstance(joint, TimeDependent):
            motion = joint.motion
            yield Watch(place, [motion], [Part(lambda time: list(motion(time)), [()])])
        fields: Any = getattr(type(joint), "__dataclass_fields__", {})
        for name in fields:
            yield from _of_joint(place, getattr(joint, name))


def _parts_of(joint: Joint) -> dict[str, Part]:
    """Return what a joint computes, on symbols for positions, velocities, the time and a placement, under the
    names that `UserDefined` gives it."""
    q, v, X = (joint.nq,), (joint.nv,), (12,)

    def placement(numbers: Sequence[Any]) -> Transform:
        return Transform(Mat3(*numbers[:9]), Vec3(*numbers[9:]))

    def now(time: Any) -> Any:
        return time if joint.time_dependent else None

    return {
        "placement": Part(lambda q, time: joint.transform(q, now(time)), [q, ()]),
        "subspace": Part(lambda q, time: list(joint.subspace(q, now(time))), [q, ()]),
        "velocity": Part(lambda q, v, time: joint.velocity(q, v, now(time)), [q, v, ()]),
        "bias": Part(lambda q, v, time: joint.bias(q, v, now(time)), [q, v, ()]),
        "position_rate": Part(joint.position_rate, [q, v], False),
        "integrate": Part(joint.integrate, [q, v], False),
        "difference": Part(joint.difference, [q, q], False),
        "normalize": Part(joint.normalize, [q], False),
        "constraint forces": Part(lambda q, t: list(joint.constraint_subspace(q, now(t))), [q, ()], False),
        "active forces": Part(lambda q, t: list(joint.active_subspace(q, now(t))), [q, ()], False),
        "position_of": Part(lambda X, t: joint.position_of(placement(X), now(t)), [X, ()], False),
        "closure error": Part(lambda X, t: joint.closure_error(placement(X), now(t)), [X, ()], False),
        "constraint forces at a placement": Part(
            lambda X, t: list(joint.constraint_subspace_at(placement(X), now(t))), [X, ()], False
        ),
    }


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
