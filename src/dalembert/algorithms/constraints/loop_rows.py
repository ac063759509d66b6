"""K and k of loop joints: Featherstone 2008 sections 8.2 and 8.7 (Table 8.4), for any joint.

Joint k closes a loop between bodies p and s; T (successor coordinates) spans its constraint forces, sigma is
what of its velocity is prescribed. With ° the rate of the components in the successor's own frame,

    T^T (v_J - sigma) = 0,     v_J = v_s - v_p                                          (8.7, 3.38)
    v_J° = a_s - a_p + v_s x v_p                                                        (1)
    k = -T^T (a_s^vp - a_p^vp + v_s x v_p - sigma°) - T°^T (v_J - sigma)                (2)
    K_j = eps_j T^T S_j,  eps_j = +1 on the way to s, -1 on the way to p                (8.20)

(2) is Eq. 8.47 with the parenthesis that its last line lost, and with the terms of T° and sigma, which the
book takes as zero; they are exact derivatives along the motion of the successor frame in the predecessor
frame. v_J and its components depend on the joints between the loop's root and the two bodies alone, so that
the root may count as fixed: nothing above it is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.sparsity import velocity_places
from dalembert.errors import ArgumentError, require_choice
from dalembert.model.body import Body, JointMotion
from dalembert.model.elements import Loop
from dalembert.model.joints import Joint
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Transform, Vec3
from dalembert.spatial.structure import leaves, rebuild

__all__ = ["COORDINATES", "LoopRows", "loop_paths", "loop_rows"]

COORDINATES = ("nearby", "base")
"""The coordinates in which the vectors of a loop may be combined: see `loop_rows`."""


class LoopRows(NamedTuple):
    """The rows of one loop joint, and what they are made of.

    `K` (nc, nv), `k` (nc), `velocity_error` = T^T (v_J - sigma), `position_error` = delta of Table 8.1; `X`
    the successor frame placed in the predecessor frame; `T` and `velocity` = v_J in successor coordinates.
    """

    K: list[list[Scalar]]
    k: list[Scalar]
    velocity_error: list[Scalar]
    position_error: list[Scalar]
    X: Transform
    T: tuple[Force, ...]
    velocity: Motion


def loop_rows(
    tree: Tree,
    loop: Loop,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    *,
    time: Scalar | None = None,
    coordinates: str = "nearby",
) -> LoopRows:
    """Return K, k, T^T (v_J - sigma) and delta of one loop joint; Eqs 8.15, 8.20, 8.23.

    `coordinates`: "nearby" combines the vectors at the loop joint itself, along the axes of the loop's root;
    "base" in the world's coordinates, as Table 8.4 does, which costs digits far from the world's origin
    (section 8.7, the rounding-error problem).
    """
    require_choice("coordinates of a loop's equations", coordinates, COORDINATES)
    nearby = coordinates == "nearby"
    to_p, to_s = (_links(path, q, v, time) for path in loop_paths(tree, loop, to_root=nearby))
    X_p = _end(to_p) @ loop.placement_predecessor
    X_s = _end(to_s) @ loop.placement_successor
    origin = X_s.p if nearby else Vec3.zero()
    columns_p, columns_s = _columns(to_p, origin), _columns(to_s, origin)
    v_p, a_p = _motion(to_p, columns_p, v, origin)
    v_s, a_s = _motion(to_s, columns_s, v, origin)
    placed = Transform(X_s.R, X_s.p - origin)
    v_J = placed.apply(v_s - v_p)
    a_J = placed.apply(a_s - a_p + v_s.cross(v_p))  # (1)
    X = X_p.inverse() @ X_s
    (T, sigma), (T_rate, sigma_rate) = _subspace_with_rate(loop.joint, X, v_J, time)
    k = [-(a_J - sigma_rate).dot(f) - (v_J - sigma).dot(f_rate) for f, f_rate in zip(T, T_rate)]  # (2)
    T_root = [placed.inverse_apply(f) for f in T]
    K: list[list[Scalar]] = [[0.0] * tree.nv for _ in T]
    _add_columns(K, T_root, to_p, columns_p, -1.0)
    if to_s and nearby:
        # The successor's own joint moves the frame that T stands in: its columns are constant where S is.
        own = [tuple(loop.placement_successor.apply(s) for s in to_s[-1].joint.S)]
        _add_columns(K, T, to_s[-1:], own, 1.0)
        to_s, columns_s = to_s[:-1], columns_s[:-1]
    _add_columns(K, T_root, to_s, columns_s, 1.0)
    return LoopRows(K, k, [(v_J - sigma).dot(f) for f in T], loop.joint.closure_error(X, time), X, T, v_J)


def loop_paths(tree: Tree, loop: Loop, *, to_root: bool = True) -> tuple[list[Body], list[Body]]:
    """Return the bodies from the loop's root (excluded) to the predecessor and to the successor, outward.

    Two pointers step toward the base, the higher-numbered first, until they meet at the nearest common
    ancestor (Table 8.4). `to_root=False`: all the way from the world.
    """
    to_p: list[Body] = []
    to_s: list[Body] = []
    i, j = loop.predecessor, loop.successor
    while i != j:
        if i > j:
            to_p.append(tree.bodies[i])
            i = tree.parents[i]
        else:
            to_s.append(tree.bodies[j])
            j = tree.parents[j]
    while i >= 0 and not to_root:
        to_p.append(tree.bodies[i])
        to_s.append(tree.bodies[i])
        i = tree.parents[i]
    return to_p[::-1], to_s[::-1]


class _Link(NamedTuple):
    """A body on the way, its pose in the frame where the way starts, and its joint."""

    body: Body
    pose: Transform
    joint: JointMotion

    def at(self, origin: Vec3) -> Transform:
        """Return the pose relative to another origin."""
        return Transform(self.pose.R, self.pose.p - origin)


def _links(
    path: Sequence[Body], q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None
) -> list[_Link]:
    links: list[_Link] = []
    for body in path:
        joint = body.jcalc(q, v, time)
        links.append(_Link(body, _end(links) @ joint.X, joint))
    return links


def _end(links: Sequence[_Link]) -> Transform:
    return links[-1].pose if links else Transform.identity()


def _columns(links: Sequence[_Link], origin: Vec3) -> list[tuple[Motion, ...]]:
    """Return S of every joint on the path, at the origin and along the axes of the start of the path."""
    return [tuple(link.at(origin).inverse_apply(s) for s in link.joint.S) for link in links]


def _motion(
    links: Sequence[_Link], columns: Sequence[tuple[Motion, ...]], v: Sequence[Scalar], origin: Vec3
) -> tuple[Motion, Motion]:
    """Return v and a^vp at the end of the path: v_i = v_lambda + v_J, a_i = a_lambda + c_J + v_i x v_J."""
    velocity, acceleration = Motion.zero(), Motion.zero()
    for link, S in zip(links, columns, strict=True):
        _, own_S, own_v_J, c_J = link.joint
        v_J = combination(S, link.body.own_v(v))
        if link.body.joint.time_dependent:
            v_J = v_J + link.at(origin).inverse_apply(own_v_J - combination(own_S, link.body.own_v(v)))
        acceleration = acceleration + link.at(origin).inverse_apply(c_J) + velocity.cross(v_J)
        velocity = velocity + v_J
    return velocity, acceleration


Subspace = tuple[tuple[Force, ...], Motion]


def _subspace_with_rate(
    joint: Joint, X: Transform, v_J: Motion, time: Scalar | None
) -> tuple[Subspace, Subspace]:
    """Return (T, sigma) and (T°, sigma°), as the successor frame at X moves with v_J:
    R' = R omega x, p' = R v."""

    def subspace(x: Sequence[Scalar]) -> Subspace:
        placed, now = rebuild(X, x[:12]), x[12] if joint.time_dependent else None
        T = joint.constraint_subspace_at(placed, now)
        if not joint.time_dependent:
            return T, Motion.zero()
        return T, joint.velocity(joint.position_of(placed, now), [0.0] * joint.nv, now)

    rate = Transform(X.R @ v_J.angular.skew(), X.R @ v_J.linear)
    point, direction = leaves(X), leaves(rate)
    if joint.time_dependent:
        if time is None:
            raise ArgumentError("a loop joint depends on time and none was given; pass time=…")
        return directional_derivative(subspace, [*point, time], [*direction, 1.0])
    return directional_derivative(subspace, point, direction)


def _add_columns(
    K: list[list[Scalar]],
    T: Sequence[Force],
    links: Sequence[_Link],
    columns: Sequence[tuple[Motion, ...]],
    sign: float,
) -> None:
    """Add K_j = eps_j T^T S_j (8.20); the columns of dependent joints go to the places that they follow."""
    for link, S in zip(links, columns, strict=True):
        for places, s in zip(velocity_places(link.body), S, strict=True):
            for place, ratio in places:
                for row, f in zip(K, T, strict=True):
                    row[place] = row[place] + sign * ratio * s.dot(f)
