"""Inverse effective masses of points, roughly w = J A^-1 J^T (Delassus diagonal), as a scale of compliances.

    w_i = 1/3 sum over the joints that carry body i of |J_j|^2 / A_jj                                   (1)

with J_j the velocity of the body's centre of mass for unit speed of variable j, and r^2 |omega_j|^2 added for
points at the distance r from it: about the half size of a limb, or of the body where that is smaller, as
friction of small bodies would be too soft otherwise, and they would creep. Taken once, in the neutral
configuration, so that it is a constant.
"""

from __future__ import annotations

from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.contact.active_contacts import joint_axes
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, maximum, minimum

MAX_LEVER = 0.1
"""The greatest r of Eq. (1) [m]: about the half size of a limb."""

MIN_TREE_MASS_RATIO = 0.1
"""The least mass of a tree, as a fraction of the heaviest tree's mass: a lighter tree may have to carry that
one."""

MIN_LEVER = 1e-3
"""The least r [m]: point masses have no size of their own."""

SQUARED_RADIUS_TO_GYRATION = 2.5
"""The squared ratio of a ball's radius to its radius of gyration."""


def joint_inverse_masses(tree: Tree) -> list[Scalar]:
    """Return 1 / M_jj of every velocity variable, in the neutral configuration or, if M_jj is zero there, in
    another one."""
    inertias = _diagonal(tree, _neutral(tree))
    if any(is_zero(inertia) for inertia in inertias):
        elsewhere = _diagonal(tree, _neutral(tree, shift=0.5))
        inertias = [b if is_zero(a) else a for a, b in zip(inertias, elsewhere, strict=True)]
    for body in tree.bodies:
        if body.dependence is None and any(is_zero(inertia) for inertia in inertias[body.v_slice]):
            raise ModelError(
                f'contact: joint "{body.joint_name}" has a freedom along which nothing with inertia moves; '
                "give what it carries mass and moments of inertia, or the joint an armature"
            )
    return [1.0 / inertia for inertia in inertias]


def point_inverse_masses(tree: Tree) -> list[Scalar]:
    """Return w_i of every body [1/kg]; Eq. (1)."""
    q = _neutral(tree)
    inverse = joint_inverse_masses(tree)
    axes = joint_axes(tree, q)
    result: list[Scalar] = []
    masses, least = _tree_masses(tree)
    for body, mass in zip(tree.bodies, masses, strict=True):
        center = axes.poses[body].transform_point(body.inertia.com) - axes.origin
        lever = _squared_lever(body)
        total: Scalar = 0.0
        for places, s in axes.columns(-1, body.index):
            linear = s.linear + s.angular.cross(center)
            square = linear.dot(linear) + s.angular.dot(s.angular) * lever
            for place, ratio in places:
                total = total + square * inverse[place] * (ratio * ratio)
        result.append(total * (1.0 / 3.0) * minimum(mass / least, 1.0))
    return result


def inverse_tree_masses(tree: Tree) -> list[Scalar]:
    """Return 1 / m of every body [1/kg], m the mass of its whole tree: the inverse effective mass of a point
    if the tree were one rigid body."""
    masses, least = _tree_masses(tree)
    return [1.0 / maximum(mass, least) for mass in masses]


def _tree_masses(tree: Tree) -> tuple[list[Scalar], Scalar]:
    """Return for each body the mass of the tree that it belongs to, and the least mass that counts."""
    roots = [body.index for body in tree.bodies]
    for body in tree.bodies:
        if body.parent >= 0:
            roots[body.index] = roots[body.parent]
    masses: dict[int, Scalar] = {}
    for body in tree.bodies:
        root = roots[body.index]
        masses[root] = masses[root] + body.inertia.mass if root in masses else body.inertia.mass
    heaviest: Scalar = 1e-9
    for mass in masses.values():
        heaviest = maximum(heaviest, mass)
    return [masses[root] for root in roots], heaviest * MIN_TREE_MASS_RATIO


def _squared_lever(body: Body) -> Scalar:
    """Return r^2 of Eq. (1) [m^2]: that of a ball with the body's mass and moments of inertia, at most
    `MAX_LEVER`^2."""
    moments, mass = body.inertia.inertia_at_com, body.inertia.mass
    if is_zero(mass):
        return MAX_LEVER * MAX_LEVER
    gyration = (moments.xx + moments.yy + moments.zz) / (3.0 * mass)
    return minimum(
        maximum(SQUARED_RADIUS_TO_GYRATION * gyration, MIN_LEVER * MIN_LEVER), MAX_LEVER * MAX_LEVER
    )


def _diagonal(tree: Tree, q: list[Scalar]) -> list[Scalar]:
    M = mass_matrix(tree, q)
    return [M[j][j] for j in range(tree.nv)]


def _neutral(tree: Tree, shift: float = 0.0) -> list[Scalar]:
    """Return neutral positions, shifted by `shift` for joints with one variable."""
    free = [body for body in tree.bodies if body.dependence is None]
    return [x + shift if body.nq == 1 else x for body in free for x in body.joint.neutral()]
