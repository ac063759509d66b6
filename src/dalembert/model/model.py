"""The frozen model of an articulated system (Featherstone 2008 Table 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.model import topology
from dalembert.model.body import Body, Placement
from dalembert.model.elements import Coupling, Frame, JointView, Loop, Named
from dalembert.model.tree import Tree
from dalembert.model.user_constraints import Constraint, LoopClosure
from dalembert.scalar import Scalar
from dalembert.spatial import FrozenValueError, Transform, Vec3

__all__ = ["Model"]

Array = npt.NDArray[np.float64]

WORLD_NAME = "world"
"""The name of the fixed base, as a parent and as a frame."""


def _restore(content: Mapping[str, Any]) -> Model:
    """Rebuild a pickled model."""
    return Model(**content)


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise UnknownNameError(f"a name is a string, but {name!r} of type {type(name).__name__} was given")
    return name


class Model(Tree):
    """A system of rigid bodies: a tree of bodies and joints, with loop joints and couplings as data, and
    constraints as functions of the user's.

    Made by `ModelBuilder.build`, which checks everything; frozen; compared and hashed by content. Where
    couplings make joints dependent, `nq`, `nv`, q, v and tau count the independent coordinates only.
    `report` holds the warnings that building gave rise to.

    Rows: RBDA-4.6-MODEL.

    >>> model = da.models.humanoid()
    >>> model.nq, model.nv, len(model.bodies)
    (46, 43, 20)
    >>> model.joint("left_knee").v_slice
    slice(25, 26, None)
    >>> model.with_values({"gravity": (0.0, 0.0, -1.62)}).gravity
    Vec3(x=0.0, y=0.0, z=-1.62)
    """

    __slots__ = (
        "_digest",
        "actuated",
        "bodies",
        "closure",
        "constraints",
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
    )

    bodies: Named[Body]
    joints: Named[JointView]
    frames: Named[Frame]
    loops: Named[Loop]
    couplings: Named[Coupling]
    constraints: Named[Constraint]
    closure: LoopClosure | None
    actuated: tuple[str, ...]
    name: str
    report: tuple[str, ...]
    functions: dict[Any, Any]
    """What has been compiled for this model, by whoever compiles; no part of its content."""
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
            "gravity": gravity,
            "parents": tuple(body.parent for body in held),
            "nq": max((body.q_slice.stop for body in held), default=0),
            "nv": max((body.v_slice.stop for body in held), default=0),
            "name": name,
            "report": tuple(report),
            "functions": {},
            "_digest": None,
        }
        for slot, value in values.items():
            object.__setattr__(self, slot, value)

    # names

    def body(self, name: str) -> Body:
        """The body of that name."""
        return self.bodies[_text(name)]

    def joint(self, name: str) -> JointView:
        """The joint of that name, with its places in q and v."""
        return self.joints[_text(name)]

    def frame(self, name: str) -> Frame:
        """The frame of that name; a body's name stands for the body's own frame, "world" for the base."""
        if self.frames.has(_text(name)):
            return self.frames[name]
        if self.bodies.has(name):
            return Frame(name, self.bodies[name].index, Transform.identity())
        if name == WORLD_NAME:
            return Frame(name, topology.WORLD, Transform.identity())
        raise UnknownNameError.of("frame", name, (*self.bodies.names, *self.frames.names, WORLD_NAME))

    # connectivity

    def support(self, body: Body | int) -> frozenset[int]:
        """kappa(i): the joints between the world and body i."""
        return topology.support(self.parents, self._index(body))

    def children(self, body: Body | int) -> frozenset[int]:
        """mu(i): the children of body i, or of the world (-1)."""
        return topology.children(self.parents, self._index(body))

    def subtree(self, body: Body | int) -> frozenset[int]:
        """nu(i): the bodies that joint i moves."""
        return topology.subtree(self.parents, self._index(body))

    def expanded_parents(self) -> tuple[int, ...]:
        """The parent array of the single velocity variables of the tree (Featherstone 2008 Table 6.4)."""
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
    def time_dependent(self) -> bool:
        """Whether a joint or a constraint depends on time, so that every function of the model needs
        `time`.
        """
        return (
            any(body.joint.time_dependent for body in self.bodies)
            or any(loop.joint.time_dependent for loop in self.loops)
            or any(constraint.time_dependent for constraint in self.constraints)
            or (self.closure is not None and self.closure.time_dependent)
        )

    def loop_clusters(self) -> tuple[tuple[str, ...], ...]:
        """The loop joints and user constraints in minimal sets that share no joint with one another.

        Each set has its own block of K (Featherstone 2008 section 8.9): `algorithms.constraints.clusters`
        gives the joints as well.
        """
        from dalembert.model.clusters import loop_clusters

        return tuple(cluster.constraints for cluster in loop_clusters(self))

    # the configuration space

    def neutral(self) -> Array:
        """q (nq,) with every joint at zero displacement."""
        from dalembert.model import configuration

        return np.array(configuration.neutral(self), dtype=np.float64)

    def random_state(self, seed: int | np.random.Generator) -> tuple[Array, Array]:
        """q (nq,) and v (nv,) drawn within the limits; the same seed gives the same state."""
        from dalembert.model import configuration

        return configuration.random_state(self, seed)

    # couplings

    def uncoupled(self) -> Model:
        """The same system with every joint's own coordinates in q and v, and without its couplings."""
        from dalembert.model import coupling

        return coupling.uncoupled(self)

    def expansion(self) -> tuple[list[list[float]], list[float]]:
        """(G, g): v_full = G v (nv_full x nv) and, for joints with v = dq/dt, q_full = G q + g."""
        from dalembert.model import coupling

        return coupling.expansion(self)

    def expand_q(self, q: Sequence[Scalar]) -> list[Scalar]:
        """The uncoupled model's q from this model's."""
        return [x for body in self.bodies for x in body.own_q(q)]

    def expand_v(self, v: Sequence[Scalar]) -> list[Scalar]:
        """The uncoupled model's v from this model's: G v; accelerations likewise."""
        return [x for body in self.bodies for x in body.own_v(v)]

    # surgery: each returns a new model

    def lock(self, joints: Iterable[str], q: Sequence[float] | None = None) -> Model:
        """The model with these joints fixed where the configuration q (default: neutral) puts them."""
        from dalembert.model import surgery

        return surgery.lock(self, joints, q)

    def attach(
        self, other: Model, at: str = WORLD_NAME, *, prefix: str = "", placement: Placement | None = None
    ) -> Model:
        """The model with `other` standing on the frame `at`, its names prefixed."""
        from dalembert.model import surgery

        return surgery.attach(self, other, at, prefix=prefix, placement=placement)

    def lumped(self) -> Model:
        """The model with every fixed body merged into its parent; its frame remains under its name."""
        from dalembert.model import surgery

        return surgery.lumped(self)

    def tree(self) -> Model:
        """The spanning tree: this model without its loop joints and other constraints."""
        from dalembert.model import surgery

        return surgery.tree(self)

    def value(self, name: str) -> Any:
        """A named number or array of the model, such as "upper.mass" or "elbow.placement"; arrays are
        read-only.
        """
        from dalembert.model import values

        return values.value(self, name)

    def value_names(self) -> tuple[str, ...]:
        """Every name that `value`, `with_values` and run-time parameters know."""
        from dalembert.model import values

        return values.value_names(self)

    def with_values(
        self, new: Mapping[str, Any], *, inertia: Literal["strict", "as_given"] = "strict"
    ) -> Model:
        """The model with other values under the given names, checked as the builder checks them."""
        from dalembert.model import values

        return values.with_values(self, new, inertia=inertia)

    # text

    def summary(self) -> str:
        """A table of the model and of the conventions its numbers follow."""
        from dalembert.model.summary import summary

        return summary(self)

    def to_json(self) -> str:
        """The model as JSON text, from which `Model.from_json` restores it bit for bit."""
        from dalembert.model import storage

        return storage.to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Model:
        """The model that `to_json` wrote; refuses anything else."""
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

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (
            {
                "bodies": tuple(self.bodies),
                "gravity": self.gravity,
                "frames": tuple(self.frames),
                "loops": tuple(self.loops),
                "couplings": tuple(self.couplings),
                "constraints": tuple(self.constraints),
                "closure": self.closure,
                "actuated": self.actuated,
                "name": self.name,
                "report": self.report,
            },
        )
