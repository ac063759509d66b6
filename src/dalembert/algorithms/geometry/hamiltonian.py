"""Hamilton's form of the equation of motion: positions q and momenta p = M(q) v.

    H(q, p) = p^T M^-1 p / 2 + V(q)                       v = dH/dp = M^-1 p                               (1)
    p'      = -dH/dq + tau                                where v = dq/dt                                  (2)

(Todorov, "Hamiltonian formulation"). Both say the same as M a + C v + g = tau, since p' = M a + M' v and
M' = C + C^T for the Coriolis matrix of `coriolis_matrix`:

    p'      = tau - g + C^T v                                                                              (3)

which holds for any velocity variables; of quaternion joints, whose v are not rates of coordinates, it has the
terms that (2) then lacks. C^T v takes one pass: B^T v_i = 0 there, so that with h_i^c the momentum of body i
and all that it carries

    p_i = S_i^T h_i^c + armature v        (C^T v)_i = S_i'^T h_i^c        S' = v x S + S-ring              (4)

that is, momentum changes by force, and its component along S also because S turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.energy_momentum import potential_energy
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.geometry.coriolis_matrix import mass_matrix_rate, require_scleronomic
from dalembert.algorithms.inverse_dynamics import bias_forces, differential_inverse_dynamics
from dalembert.algorithms.jacobians import subspace_rate
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import require_moving_mass, require_open_tree
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.algorithms.sparsity import variable_parents
from dalembert.errors import ArgumentError
from dalembert.model.body import Body, JointMotion
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion

__all__ = [
    "HamiltonianRates",
    "forward_dynamics_hamiltonian",
    "hamiltonian",
    "hamiltonian_rates",
    "momentum_coordinates",
    "velocity_coordinates",
]


class HamiltonianRates(NamedTuple):
    """v = dH/dp, with which q moves, and dp/dt."""

    v: list[Scalar]
    p_rate: list[Scalar]


def hamiltonian(tree: Tree, q: Sequence[Scalar], p: Sequence[Scalar]) -> Scalar:
    """Return H = p^T M^-1 p / 2 + V: the energy as a function of position and momentum [J]; Eq. (1)."""
    require_scleronomic(tree, "hamiltonian")
    twice: Scalar = 0.0
    for p_k, v_k in zip(p, velocity_coordinates(tree, q, p), strict=True):
        twice = twice + p_k * v_k
    return 0.5 * twice + potential_energy(tree, q)


def momentum_coordinates(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return p = M(q) v `(nv,)` = dL/dv, in linear time:
    the Legendre transformation, or the index of v lowered."""
    require_scleronomic(tree, "momentum_coordinates")
    return differential_inverse_dynamics(tree, q, v)


def velocity_coordinates(tree: Tree, q: Sequence[Scalar], p: Sequence[Scalar]) -> list[Scalar]:
    """Return v = M(q)^-1 p `(nv,)` = dH/dp: the inverse Legendre transformation, or the index of p raised."""
    require_scleronomic(tree, "velocity_coordinates")
    require_moving_mass(tree, "velocity_coordinates")
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(mass_matrix(tree, q), lam)
    return solve_with_reciprocals(L, reciprocals, lam, p)


def hamiltonian_rates(
    tree: Tree, q: Sequence[Scalar], p: Sequence[Scalar], tau: Sequence[Scalar]
) -> HamiltonianRates:
    """Return (v, p') of Hamilton's equations: v = M^-1 p; p' = tau - g + C^T v; Eqs (1), (3), (4)."""
    require_open_tree(tree, "hamiltonian_rates")
    require_scleronomic(tree, "hamiltonian_rates")
    v = velocity_coordinates(tree, q, p)
    return HamiltonianRates(v, _momentum_rate(tree, q, v, tau, None, "body"))


def forward_dynamics_hamiltonian(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return a = M^-1 (p' - M' v): the acceleration from the momenta, a check of ABA."""
    if time is not None:
        raise ArgumentError(
            "forward_dynamics: the Hamiltonian method knows no time; leave time out or use another method"
        )
    require_open_tree(tree, "forward_dynamics")
    require_scleronomic(tree, "forward_dynamics")
    p_rate = _momentum_rate(tree, q, v, tau, external_forces, external_frame)
    rest: list[Scalar] = []
    for rate, row in zip(p_rate, mass_matrix_rate(tree, q, v), strict=True):
        for x, v_k in zip(row, v, strict=True):
            rate = rate - x * v_k
        rest.append(rate)
    return velocity_coordinates(tree, q, rest)


def _momentum_rate(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    external_forces: ExternalForces,
    external_frame: str,
) -> list[Scalar]:
    """Return tau - g + C^T v, with external forces added to gravity; Eqs (3), (4)."""

    def move(body: Body, v_parent: Motion) -> tuple[Motion, tuple[JointMotion, Motion, list[Motion]]]:
        joint = body.jcalc(q, v)
        v_i = joint.X.apply(v_parent) + joint.v_J
        rings = subspace_rate(body, q, v)
        return v_i, (joint, v_i, [v_i.cross(s) + ring for s, ring in zip(joint.S, rings, strict=True)])

    moved = tree.outward(move, Motion.zero())

    def gather(body: Body, h_children: Force) -> tuple[Force, Sequence[Scalar]]:
        joint, v_i, S_rate = moved[body]
        h = h_children + body.inertia * v_i
        return joint.X.inverse_apply(h), [s_rate.dot(h) for s_rate in S_rate]  # (4)

    turning = tree.collect(tree.inward(gather, Force.zero())[0])
    resting = bias_forces(
        tree, q, [0.0] * tree.nv, external_forces=external_forces, external_frame=external_frame
    )
    return [t - g + c for t, g, c in zip(tau, resting, turning, strict=True)]
