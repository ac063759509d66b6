"""The variables in which integrators carry a whole system: (y, w) of `flight`, joint by joint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.algorithms.flight import land, rates_in_flight, take_off
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["Flight", "State", "independent", "joined"]


class State(NamedTuple):
    """Position and velocity variables of the whole system."""

    q: list[Scalar]
    v: list[Scalar]


@final
@dataclass(frozen=True, slots=True)
class Flight:
    """The joints that a step carries, and the way from their variables (y, w) to the whole state and back."""

    tree: Tree
    time: Scalar | None

    @property
    def bodies(self) -> list[Body]:
        """Those whose joints are independent, in the order of their variables."""
        if self.tree.closure is None:
            return independent(self.tree)
        by_name = {body.joint_name: body for body in self.tree.bodies}
        return [by_name[name] for name in self.tree.closure.independent]

    def take_off(self, state: State) -> State:
        """(y, w) of the whole state."""
        return joined(take_off(b, b.own_q(state.q), b.own_v(state.v)) for b in self.bodies)

    def rates(self, state: State, a: Sequence[Scalar]) -> State:
        """(dy/dt, dw/dt) in the state, where dv/dt = a."""
        return joined(rates_in_flight(b, b.own_q(state.q), b.own_v(state.v), b.own_v(a)) for b in self.bodies)

    def land(self, flying: State, elapsed: Scalar) -> State:
        """The whole state of (y, w); quaternions come out with unit norm."""
        landed = joined(land(b, b.joint.normalize(y), w) for b, y, w in self.parts(flying))
        if self.tree.closure is None:
            return landed
        from dalembert.algorithms.constraints import closure_equations  # plain trees do without

        now = None if self.time is None else self.time + elapsed
        whole = closure_equations(self.tree, landed.q, landed.v, time=now)
        return State(whole.q, whole.v)

    def parts(self, flying: State) -> Iterator[tuple[Body, list[Scalar], list[Scalar]]]:
        """Body by body what the variables hold of it."""
        start_q = start_v = 0
        for body in self.bodies:
            end_q, end_v = start_q + body.nq, start_v + body.nv
            yield body, flying.q[start_q:end_q], flying.v[start_v:end_v]
            start_q, start_v = end_q, end_v


def joined(pairs: Iterable[tuple[list[Scalar], list[Scalar]]]) -> State:
    """One state of the parts of all bodies."""
    listed = list(pairs)
    return State([x for y, _ in listed for x in y], [x for _, w in listed for x in w])


def independent(tree: Tree) -> list[Body]:
    """The bodies whose joints no coupling makes dependent."""
    return [body for body in tree.bodies if body.dependence is None]
