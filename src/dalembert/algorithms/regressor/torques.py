"""The matrix Y(q, v, a) with which generalized forces depend on the inertial parameters: tau = Y pi.

A body's share of the power of a velocity s = (w, u), given at its origin in its coordinates, is s . f with
the force f of `RigidInertia.force_of`: every point r of it has the acceleration linear + W r,
W = alpha x + omega x omega x. Sorted by mass, first moment h and Euler's tensor J = tr(I)/2 - I

    (1)  mass      u . linear
    (2)  h         W^T u + linear x w
    (3)  J         c_xx = w_z W_yx - w_y W_zx,   c_yz = w_x (W_zz - W_yy) + w_y W_xy - w_z W_xz,   cyclic
    (4)  I         c_xx + c_yy + c_zz = 2 w . alpha,  so that  I_xx has w . alpha - c_xx,  I_yz has -c_yz

So a row of Y in the columns of body i is (1) to (4) with s = S_j brought to body i, for every joint j on the
way to it; other entries are zero. Each S_j goes outward along its subtree, one transform a body: O(n d) for n
bodies at depth d, against ten transforms inward where the columns of f are moved instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.algorithms.regressor.parameters import PARTS
from dalembert.algorithms.sparsity import velocity_places
from dalembert.model.body import Body
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import BodyAcceleration, Motion, Vec3

__all__ = ["inverse_dynamics_regressor", "power_coefficients"]

Direction = tuple[list[tuple[int, float]], Motion]
"""A joint's direction in the coordinates of a body: its places in v, with ratios, and the motion."""


def inverse_dynamics_regressor(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    armature: bool = False,
    time: Scalar | None = None,
) -> Matrix:
    """Return Y `(nv, 10 n_bodies)`: tau = Y pi of `inertial_parameters`, apart from the forces on armatures.

    `armature`: with a column more for each of theirs, `(nv, 10 n_bodies + freedoms of the joints)`.
    Parameters are those of the bodies' own frames.
    """
    require_open_tree(tree, "inverse_dynamics_regressor")
    width = len(PARTS)
    columns = width * len(tree.bodies)
    freedoms = sum(body.nv for body in tree.bodies) if armature else 0
    Y: Matrix = [[0.0] * (columns + freedoms) for _ in range(tree.nv)]

    def accelerate(
        body: Body, parent: tuple[BodyAcceleration, list[Direction]]
    ) -> tuple[tuple[BodyAcceleration, list[Direction]], tuple[BodyAcceleration, list[Direction]]]:
        X, S, v_J, c_J = body.jcalc(q, v, time)
        A_parent, supporting = parent
        A = A_parent.across_joint(X, v_J, combination(S, body.own_v(a)) + c_J)
        directions = [(places, X.apply(s)) for places, s in supporting]
        directions += list(zip(velocity_places(body), S, strict=True))
        return (A, directions), (A, directions)

    base = BodyAcceleration(Vec3.zero(), Vec3.zero(), -tree.gravity)
    moved = tree.outward(accelerate, (base, []))
    for body in tree.bodies:
        A, directions = moved[body]
        for places, s in directions:
            _add(Y, places, width * body.index, power_coefficients(s, A))
    if armature:
        for body in tree.bodies:
            for places, x in zip(velocity_places(body), body.own_v(a), strict=True):
                _add(Y, places, columns, [x])
                columns += 1
    return Y


def power_coefficients(s: Motion, A: BodyAcceleration) -> list[Scalar]:
    """Return s . (I a + v x* I v) by the ten parameters of I, in their order; Eqs (1) to (4)."""
    w, u, W = s.angular, s.linear, A.tensor
    by_mass = u.dot(A.linear)  # (1)
    by_h = W.transposed_times(u) + A.linear.cross(w)  # (2)
    c_xx = w.z * W.yx - w.y * W.zx  # (3)
    c_yy = w.x * W.zy - w.z * W.xy
    c_zz = w.y * W.xz - w.x * W.yz
    c_yz = w.x * (W.zz - W.yy) + w.y * W.xy - w.z * W.xz
    c_xz = w.y * (W.xx - W.zz) + w.z * W.yz - w.x * W.yx
    c_xy = w.z * (W.yy - W.xx) + w.x * W.zx - w.y * W.zy
    half = w.dot(A.alpha)
    return [by_mass, *by_h.to_list(), half - c_xx, half - c_yy, half - c_zz, -c_xy, -c_xz, -c_yz]  # (4)


def _add(Y: Matrix, places: list[tuple[int, float]], column: int, entries: list[Scalar]) -> None:
    """Add entries to the rows of a joint, from a column on; a dependent joint's act on those it follows."""
    for place, ratio in places:
        row = Y[place]
        for k, entry in enumerate(entries):
            row[column + k] = row[column + k] + (entry if ratio == 1.0 else ratio * entry)
