"""State of a system, and its centroidal coordinates (y, w) of `flight`, joint by joint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.algorithms.flight import centroidal_rates, from_centroidal, to_centroidal
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["CentroidalCoordinates", "State", "independent", "concatenate_states"]


class State(NamedTuple):
    """Position and velocity variables of the whole system."""

    q: list[Scalar]
    v: list[Scalar]


@final
@dataclass(frozen=True, slots=True)
class CentroidalCoordinates:
    """The centroidal coordinates (y, w) of the independent joints, and their conversion."""

    tree: Tree
    time: Scalar | None

    @property
    def bodies(self) -> list[Body]:
        """Return the bodies with independent joints, in the order of their variables."""
        if self.tree.closure is None:
            return independent(self.tree)
        by_name = {body.joint_name: body for body in self.tree.bodies}
        return [by_name[name] for name in self.tree.closure.independent]

    def to_centroidal(self, state: State) -> State:
        """Return (y, w) of the state (q, v)."""
        return concatenate_states(to_centroidal(b, b.own_q(state.q), b.own_v(state.v)) for b in self.bodies)

    def rates(self, state: State, a: Sequence[Scalar]) -> State:
        """Return (dy/dt, dw/dt) in the state, for dv/dt = a."""
        return concatenate_states(
            centroidal_rates(b, b.own_q(state.q), b.own_v(state.v), b.own_v(a)) for b in self.bodies
        )

    def from_centroidal(self, centroidal: State, elapsed: Scalar) -> State:
        """Return the state (q, v) of (y, w), with quaternions of unit norm."""
        state = concatenate_states(
            from_centroidal(b, b.joint.normalize(y), w) for b, y, w in self.parts(centroidal)
        )
        if self.tree.closure is None:
            return state
        from dalembert.algorithms.constraints import closure_equations  # plain trees do without

        now = None if self.time is None else self.time + elapsed
        whole = closure_equations(self.tree, state.q, state.v, time=now)
        return State(whole.q, whole.v)

    def parts(self, centroidal: State) -> Iterator[tuple[Body, list[Scalar], list[Scalar]]]:
        """Yield each body with its part of (y, w)."""
        start_q = start_v = 0
        for body in self.bodies:
            end_q, end_v = start_q + body.nq, start_v + body.nv
            yield body, centroidal.q[start_q:end_q], centroidal.v[start_v:end_v]
            start_q, start_v = end_q, end_v


def concatenate_states(pairs: Iterable[tuple[list[Scalar], list[Scalar]]]) -> State:
    """Concatenate the parts of all bodies to one state."""
    listed = list(pairs)
    return State([x for y, _ in listed for x in y], [x for _, w in listed for x in w])


def independent(tree: Tree) -> list[Body]:
    """Return the bodies whose joints do not depend on others by a coupling."""
    return [body for body in tree.bodies if body.dependence is None]
