"""The three passes over a kinematic tree with which all algorithms are written.

A step accesses the tree only through its `body` handle and the results of earlier passes, never by arithmetic
on indices. So the same algorithm runs unrolled here or, on another `Tree`, as one loop over tables for very
large systems.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dalembert.model.body import Body, JointMotion, Loop
from dalembert.model.user_functions import Constraint, LoopClosure
from dalembert.scalar import Family, Rows, Scalar, Scalars
from dalembert.spatial import Force, Vec3

if TYPE_CHECKING:
    from dalembert.model.force_elements import Fluid, Spring

Result = TypeVar("Result")


def _sum(a: Any, b: Any) -> Any:
    """Return a + b, entry by entry where the contributions are tuples or lists of values."""
    if isinstance(a, (tuple, list)):
        return type(a)(_sum(x, y) for x, y in zip(a, b, strict=True))
    return a + b


class PerBody(Generic[Result]):
    """The results of a pass, one value for each body: `results[body]`; iteration follows the body order."""

    __slots__ = ("_values",)

    def __init__(self, values: Sequence[Result]) -> None:
        self._values = tuple(values)

    def __getitem__(self, body: Body | int) -> Result:
        return self._values[body if isinstance(body, int) else body.index]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Tree(ABC):
    """A kinematic tree: bodies in regular numbering, each after its parent."""

    __slots__ = ()

    bodies: Sequence[Body]
    """The bodies, parents before children."""
    parents: tuple[int, ...]
    """lambda(i) of every body; -1 is the world."""
    gravity: Vec3
    """The acceleration of free fall [m/s^2], in world coordinates."""
    nq: int
    """Number of position variables."""
    nv: int
    """Number of velocity variables."""
    loops: Sequence[Loop] = ()
    """The joints that close loops of the system and are no part of the tree."""
    loop_names: tuple[str, ...]
    """The names of all that constrains the tree: loop joints, user constraints, "loop closure"."""
    constraints: Sequence[Constraint] = ()
    """Functions of the user's that must stay zero."""
    closure: LoopClosure | None = None
    """The explicit constraint q = gamma(y), if there is one."""
    springs: Sequence[Spring] = ()
    """Springs and dampers between points of bodies."""
    fluid: Fluid | None = None
    """The fluid around the bodies, if there is one."""

    def outward(self, step: Callable[[Body, Any], tuple[Any, Result]], base: Any) -> PerBody[Result]:
        """Visit the bodies from world to leaves with `step(body, carry) -> (carry, result)`.

        The carry comes from the parent (`base` for the world's children) and goes to the children.
        """
        carries: list[Any] = []
        results: list[Result] = []
        for body in self.bodies:
            carry, result = step(body, base if body.parent < 0 else carries[body.parent])
            carries.append(carry)
            results.append(result)
        return PerBody(results)

    def inward(
        self, step: Callable[[Body, Any], tuple[Any, Result]], zero: Any
    ) -> tuple[PerBody[Result], Any]:
        """Visit the bodies from leaves to world with `step(body, gathered) -> (contribution, result)`.

        `gathered` is the sum of the children's contributions (`zero` for a leaf), entry by entry for
        tuples. Returns the results and the sum that the world gathers.
        """
        bodies = self.bodies
        gathered: list[Any] = [None] * (len(bodies) + 1)  # the last entry is the world's, index -1
        results: list[Any] = [None] * len(bodies)
        for body in reversed(bodies):
            gathered_here = gathered[body.index]
            contribution, results[body.index] = step(body, zero if gathered_here is None else gathered_here)
            parent_sum = gathered[body.parent]
            gathered[body.parent] = contribution if parent_sum is None else _sum(parent_sum, contribution)
        return PerBody(results), zero if gathered[-1] is None else gathered[-1]

    def project_forces(
        self, joints_and_forces: PerBody[tuple[JointMotion, Force]], a: Scalars | None = None
    ) -> list[Scalar]:
        """Take the forces of the bodies inward and project them on the joints; armature moves with `a`.

        f_i = f_i^B + sum over children of X^T f_j;  tau_i = S_i^T f_i + armature a (Featherstone 2008 Eqs
        5.20, 5.11).
        """

        def transmit(body: Body, f_children: Force) -> tuple[Force, Scalars]:
            joint, f_body = joints_and_forces[body]
            f = f_body + f_children
            tau = [s.dot(f) for s in joint.S]
            if a is not None:
                tau = [t + m * x for t, m, x in zip(tau, body.armature, body.own_v(a), strict=True)]
            return joint.X.inverse_apply(f), tau

        return self.collect(self.inward(transmit, Force.zero())[0])

    def collect(self, per_body: PerBody[Sequence[Scalar]] | Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Collect generalized forces, nv numbers for each body, into one list in the order of v.

        Where couplings make joints dependent, their forces act on the independent ones: G^T tau (equal power,
        Featherstone 2008 Eq. 9.26).
        """
        collected: list[Scalar] = [0.0] * self.nv
        for body, values in zip(self.bodies, per_body, strict=True):
            if body.dependence is None:
                collected[body.v_slice] = list(values)
        for body, values in zip(self.bodies, per_body, strict=True):
            if body.dependence is not None:
                for _, place, ratio in body.dependence.terms:
                    collected[place] = collected[place] + ratio * values[0]
        return collected


class StandingTree(Tree):
    """A tree that stands for the trees of a larger system that are alike, by wide numbers (`Rows.every`).

    Rows are those of the bodies of the whole system and, last, the world.
    """

    __slots__ = ()

    @abstractmethod
    def stack(self, rows: Rows, values: Sequence[Result], last: Result) -> Family[Result]:
        """Return as rows a value of each body, and `last` for the world."""

    @abstractmethod
    def at(self, rows: Rows, family: Family[Result], body: int) -> Result:
        """Return the value that a body has in a family of such rows."""

    @abstractmethod
    def of_bodies(self, values: Sequence[Result]) -> list[Result]:
        """Return for the bodies of this tree what is given for those of the whole system."""

    @abstractmethod
    def standing_for(self, body: int) -> int:
        """Return the body that stands for one of the whole system, by its number there."""
