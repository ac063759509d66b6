"""Hybrid dynamics by the joint-space inertia matrix of the free joints (Featherstone 2008 section 9.1).

With the free variables first (1) and the prescribed ones second (2),

    C'   = ID(q, v, (0, a_2))                    forces that the prescribed accelerations need      (9.3)
    H_11 a_1 = tau_1 - C'_1                      solved with the sparsity of the merged tree        (9.2)
    tau  = C' + ID_delta(a_1, 0)                 the rest of the forces

H_11 alone is computed, by Table 9.1. (There the while loop stands inside "if i in fd", and C' is made with
accelerations a_2; the printed text has lost an indentation and dots.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dalembert.algorithms.articulated import joint_inertia
from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.hybrid.prescribed import merged_parents, prescribed_places, supported_bodies
from dalembert.algorithms.inverse_dynamics import differential_inverse_dynamics, inverse_dynamics
from dalembert.algorithms.mass_matrix import Block, assemble_blocks
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.algorithms.sparsity import variable_parents, velocity_places
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import RigidInertia

__all__ = ["free_mass_matrix", "hybrid_dynamics_by_matrix"]


def hybrid_dynamics_by_matrix(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    prescribed: Collection[str] = (),
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> tuple[list[Scalar], list[Scalar]]:
    """Return (a, tau) of H a + C = tau with tau known at free joints and a at the prescribed ones."""
    given = prescribed_places(tree, prescribed)
    free = [k for k in range(tree.nv) if k not in given]
    known = [a[k] if k in given else 0.0 for k in range(tree.nv)]
    C = inverse_dynamics(
        tree, q, v, known, external_forces=external_forces, external_frame=external_frame, time=time
    )
    if not free:
        return list(a), C
    lam, _ = merged_parents(variable_parents(tree), free)
    L, reciprocals = factor_with_reciprocals(free_mass_matrix(tree, q, prescribed=prescribed, time=time), lam)
    a_1 = solve_with_reciprocals(L, reciprocals, lam, [tau[k] - C[k] for k in free])
    place = {k: n for n, k in enumerate(free)}
    wanted = [a_1[place[k]] if k in place else 0.0 for k in range(tree.nv)]
    more = differential_inverse_dynamics(tree, q, wanted, time=time)
    return (
        [a_1[place[k]] if k in place else a[k] for k in range(tree.nv)],
        [tau[k] if k in place else C[k] + more[k] for k in range(tree.nv)],
    )


def free_mass_matrix(
    tree: Tree, q: Sequence[Scalar], *, prescribed: Collection[str] = (), time: Scalar | None = None
) -> Matrix:
    """Return H_11 of the joints that are not prescribed, in the order of v: Table 9.1.

    Composite inertias are formed in nu(fd) only, and their forces are taken no further than its roots.
    """
    given = prescribed_places(tree, prescribed)
    free = [k for k in range(tree.nv) if k not in given]
    fd = {
        body.index
        for body in tree.bodies
        if any(place not in given for row in velocity_places(body) for place, _ in row)
    }
    inside = supported_bodies(tree.parents, fd)
    H = assemble_blocks(tree, _blocks(tree, q, fd, inside, time))
    return [[H[i][j] for j in free] for i in free]


def _blocks(
    tree: Tree, q: Sequence[Scalar], fd: set[int], inside: Sequence[bool], time: Scalar | None
) -> Iterator[Block]:
    joints = {body.index: body.jcalc(q, None, time) for body in tree.bodies if inside[body.index]}
    I_c: list[RigidInertia] = [body.inertia for body in tree.bodies]
    for i in reversed(tree.bodies):
        if _has_parent_inside(i, inside):
            I_c[i.parent] = I_c[i.parent] + joints[i.index].X.inverse_apply(I_c[i.index])
    for i in tree.bodies:
        if i.index not in fd:
            continue
        S = joints[i.index].S
        F = [I_c[i.index] * s for s in S]
        yield Block(i, i, joint_inertia(S, F, i.armature))
        j = i
        while _has_parent_inside(j, inside):
            F = [joints[j.index].X.inverse_apply(f) for f in F]
            j = tree.bodies[j.parent]
            if j.index in fd:
                yield Block(i, j, [[s.dot(f) for s in joints[j.index].S] for f in F])


def _has_parent_inside(body: Body, inside: Sequence[bool]) -> bool:
    """Return whether lambda(i) is in nu(fd)."""
    return body.parent >= 0 and inside[body.parent]
