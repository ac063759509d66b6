"""The frozen model of an articulated system (Featherstone 2008 Table 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import DtypeError
from dalembert.model.body import Placement
from dalembert.model.system import WORLD_NAME, System
from dalembert.scalar import Scalar

__all__ = ["WORLD_NAME", "Model", "require_model"]

Array = npt.NDArray[np.float64]


def _restore(content: Mapping[str, Any]) -> Model:
    """Rebuild a pickled model."""
    return Model(**content)


@final
class Model(System):
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

    __slots__ = ()

    # the configuration space

    def neutral(self) -> Array:
        """Return q `(nq,)` with every joint at zero displacement."""
        from dalembert.model import configuration

        return np.array(configuration.neutral(self), dtype=np.float64)

    def random_state(self, seed: int | np.random.Generator) -> tuple[Array, Array]:
        """Draw q `(nq,)` and v `(nv,)` within the limits; the same seed gives the same state."""
        from dalembert.model import configuration

        return configuration.random_state(self, seed)

    # loops and couplings

    def loop_clusters(self) -> tuple[tuple[str, ...], ...]:
        """Return the loop joints and user constraints in minimal sets that share no joint with one another.

        Each set has its own block of K (Featherstone 2008 section 8.9); `algorithms.constraints.clusters`
        returns the joints as well.
        """
        from dalembert.model.clusters import loop_clusters

        return tuple(cluster.constraints for cluster in loop_clusters(self))

    def uncoupled(self) -> Model:
        """Return the same system without its couplings, with every joint's own coordinates in q and v."""
        from dalembert.model import coupling

        return coupling.uncouple(self)

    def expansion(self) -> tuple[list[list[float]], list[float]]:
        """Return (G, g) with v_full = G v (nv_full x nv) and, for joints with v = dq/dt, q_full = G q + g."""
        from dalembert.model import coupling

        return coupling.expansion(self)

    def expand_q(self, q: Sequence[Scalar]) -> list[Scalar]:
        """Return the uncoupled model's q for this model's q."""
        return [x for body in self.bodies for x in body.own_q(q)]

    def expand_v(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return the uncoupled model's v = G v for this model's v; accelerations map alike."""
        return [x for body in self.bodies for x in body.own_v(v)]

    # surgery: each returns a new model

    def lock(self, joints: Iterable[str], q: Sequence[float] | None = None) -> Model:
        """Return the model with these joints fixed at the configuration q (default: neutral)."""
        from dalembert.model import surgery

        return surgery.lock(self, joints, q)

    def attach(
        self, other: Model, at: str = WORLD_NAME, *, prefix: str = "", placement: Placement | None = None
    ) -> Model:
        """Return the model with `other` attached at the frame `at`, its names prefixed."""
        from dalembert.model import surgery

        return surgery.attach(self, other, at, prefix=prefix, placement=placement)

    def lumped(self) -> Model:
        """Return the model with every fixed body merged into its parent; the body's frame keeps its name."""
        from dalembert.model import surgery

        return surgery.merge_fixed_bodies(self)

    def tree(self) -> Model:
        """Return the spanning tree: this model without loop joints and other constraints."""
        from dalembert.model import surgery

        return surgery.tree(self)

    def with_ground(
        self,
        height: float = 0.0,
        *,
        friction: float | None = None,
        restitution: float = 0.0,
        name: str = "ground",
    ) -> Model:
        """Return the model with a horizontal plane at z = height [m] fixed to the world.

        `friction` is the coefficient of sliding friction. A contact uses the larger of the two shapes'
        coefficients; if only one shape defines friction, its value is used, and if neither does, it is 1.
        `restitution` is the ratio of normal velocities after and before an impact.

        >>> da.models.humanoid().with_ground(friction=0.8).world_shapes[0].kind
        'plane'
        """
        from dalembert.model import surgery

        return surgery.with_ground(self, height, friction=friction, restitution=restitution, name=name)

    def value(self, name: str) -> Any:
        """Return a named number or read-only array, such as "upper.mass" or "elbow.placement"."""
        from dalembert.model import values

        return values.value(self, name)

    def value_names(self) -> tuple[str, ...]:
        """Return every name that `value`, `with_values` and run-time parameters accept."""
        from dalembert.model import values

        return values.value_names(self)

    def with_values(
        self, new: Mapping[str, Any], *, inertia: Literal["strict", "as_given"] = "strict"
    ) -> Model:
        """Return the model with other values under the given names, checked as by the builder."""
        from dalembert.model import values

        return values.with_values(self, new, inertia=inertia)

    # text

    def summary(self) -> str:
        """Return a table of the model and the conventions of its numbers."""
        from dalembert.model.summary import summary

        return summary(self)

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
        return _restore, (self.content(),)


def require_model(model: object) -> Model:
    """Return the model; any other object, also a builder, is an error."""
    if isinstance(model, Model):
        return model
    raise DtypeError(
        f"model is of type {type(model).__name__}; give a Model, as da.load or ModelBuilder.build returns"
    )
