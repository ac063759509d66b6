"""Forward dynamics by projection: all bodies are collected, then all joints applied (Featherstone 2008 §3.2).

The bodies' spatial equations side by side, I_i a_i + p_i = f_i, under the explicit constraint of the joints

    a_i = J_i a + g_i,     g_i = X g_lambda + c_i,  g_0 = -gravity                                    (1)

with J_i the body's Jacobian in its own coordinates, become sum J_i^T I_i J_i a + sum J_i^T (p_i + I_i g_i) =
tau: the projection of Newton's and Euler's equations onto the motions that the joints allow. It takes
O(N^3) operations and says what M and b are; couplings are only another Jacobian.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.assembly.collecting import Equations, body_equations, collect, free_acceleration
from dalembert.algorithms.assembly.explicit import project
from dalembert.algorithms.dense import Matrix, Vector
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.open_tree import require_moving_mass, require_open_tree
from dalembert.algorithms.sparsity import velocity_places
from dalembert.algorithms.velocity_products import velocity_products
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import Force, Motion, Vec3

__all__ = ["forward_dynamics_by_projection", "projected_equations"]


Moving = tuple[dict[int, Motion], Motion]
"""Of a body: the columns of its Jacobian by their place in v, and g (1)."""


def forward_dynamics_by_projection(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Scalar | None = None,
) -> list[Scalar]:
    """Solve M a + b = tau + external for a `(nv,)` by projecting the bodies' equations onto the joints.

    `stabilization` is for constraints, which this method does not take.
    """
    require_open_tree(tree, 'forward_dynamics with method="projection"')
    require_moving_mass(tree, 'forward_dynamics with method="projection"')
    return free_acceleration(
        projected_equations(
            tree, q, v, tau, external_forces=external_forces, external_frame=external_frame, time=time
        )
    )


def projected_equations(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> Equations:
    """Return M a + b = tau of a tree: the equations of the bodies collected
    (Eq. 3.10) and projected (Eq. 3.21)."""
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    moved = velocity_products(tree, q, v, f_x, time)

    def step(body: Body, parent: Moving) -> tuple[Moving, Moving]:
        (X, S, _, _), c, _ = moved[body]
        J = {place: X.apply(column) for place, column in parent[0].items()}
        for places, s in zip(velocity_places(body), S, strict=True):
            for place, ratio in places:
                own = s * ratio
                J[place] = J[place] + own if place in J else own
        motion = (J, X.apply(parent[1]) + c)  # (1)
        return motion, motion

    motions = list(tree.outward(step, ({}, Motion(Vec3.zero(), -tree.gravity))))
    bodies = collect(body_equations(body.inertia, moved[body][2], Force.zero()) for body in tree.bodies)
    G: Matrix = []
    g: Vector = []
    for J, bias in motions:
        columns = [J[place].to_list() if place in J else [0.0] * 6 for place in range(tree.nv)]
        G += [[column[i] for column in columns] for i in range(6)]
        g += bias.to_list()
    M, b, _ = project(bodies, G, g)
    return Equations(_with_armature(tree, M), b, list(tau))


def _with_armature(tree: Tree, M: Matrix) -> Matrix:
    """Return M plus the armature of every joint at its places in v."""
    for body in tree.bodies:
        for places, armature in zip(velocity_places(body), body.armature, strict=True):
            if is_zero(armature):
                continue
            for i, ratio in places:
                for j, other in places:
                    M[i][j] = M[i][j] + ratio * other * armature
    return M
