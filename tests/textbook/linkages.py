"""Planar linkages of the textbook's figures."""

from __future__ import annotations

import math

import numpy as np

import dalembert as da
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.scalar import atan2, cos, sin, sqrt
from dalembert.spatial import Mat3, Vec3

L1, L2 = 0.5, 0.8
"""The lengths of Figure 8.3."""

SOLID = da.RigidInertia(1.3, (0.1, 0.02, -0.03), (0.02, 0.03, 0.025))


def at(x, y=0.0, z=0.0):
    return da.Transform(Mat3.identity(), Vec3(x, y, z))


def planar_four_bar(closer=None, *, pin_in_tree=False):
    """Four bars about z, whose inertias reach out of the plane; the rocker's pin is chord or tree joint."""
    a, b, c, g = 0.3, 0.9, 0.7, 1.0
    reach = g - a
    inner = math.acos((reach**2 + b**2 - c**2) / (2 * reach * b))
    outer = math.pi - math.acos((reach**2 + c**2 - b**2) / (2 * reach * c))

    def turned(angle, x):
        return da.Transform(Mat3.of(np.array(da.spatial.rz(angle).to_list()).T.tolist()), Vec3(x, 0.0, 0.0))

    builder = da.ModelBuilder(gravity=(0.3, -9.0, 0.0))
    builder.add_body("crank", "world", da.Revolute(), inertia=SOLID)
    builder.add_body("coupler", "crank", da.Revolute(), placement=turned(inner, a), inertia=SOLID)
    if pin_in_tree:
        # The rocker hangs on the coupler's end; its frame stays on the ground pivot, turned by `outer`.
        there = turned(inner, a)
        pin = da.Transform(there.R.transpose() @ turned(outer, 0.0).R, Vec3(b, 0.0, 0.0))
        builder.add_body("rocker", "coupler", da.Revolute(), "pin", placement=pin, inertia=moved_rocker(c))
        builder.add_loop("pivot", "world", "rocker", closer or da.Revolute(), turned(outer, g), at(-c))
    else:
        builder.add_body("rocker", "world", da.Revolute(), "pivot", placement=turned(outer, g), inertia=SOLID)
        builder.add_loop("pin", "coupler", "rocker", closer or da.Revolute(), at(b), at(c))
    return builder.build()


def moved_rocker(length):
    """The rocker's inertia seen from a frame at its far end."""
    return at(length).apply(SOLID)


def cluster_example():
    """The system of Figure 8.1, drawn from its description: 20 tree joints and 4 loop joints."""
    parents = {1: 0, 2: 1, 3: 2, 4: 3, 5: 2, 6: 5, 7: 6, 8: 2, 9: 8, 10: 9, 11: 10, 12: 9,
               13: 1, 14: 13, 15: 14, 16: 14, 17: 13, 18: 17, 19: 18, 20: 18}  # fmt: skip
    loops = {21: (4, 6), 22: (4, 7), 23: (11, 12), 24: (19, 20)}
    rng = np.random.default_rng(9)
    builder = da.ModelBuilder()
    for child, parent in parents.items():
        builder.add_body(
            f"b{child}", "world" if parent == 0 else f"b{parent}", da.Spherical(), f"j{child}",
            placement=random_placement(rng), inertia=random_inertia(rng),
        )  # fmt: skip
    for name, (p, s) in loops.items():
        builder.add_loop(f"j{name}", f"b{p}", f"b{s}", da.Spherical(), random_placement(rng))
    return builder.build()


def piston_positions(y, l1=L1, l2=L2):
    """q = gamma(y) of Figure 8.3: the angles of arm and cylinder, the piston's place, the forearm's angle."""
    swing = atan2(l2 * sin(y[0]), l2 * cos(y[0]) - l1)
    return [y[0], swing, sqrt(l1 * l1 + l2 * l2 - 2.0 * l1 * l2 * cos(y[0])), y[1]]


def piston_arm(l1=L1, l2=L2, *, actuated=None, closure=True):
    """Figure 8.3: arm B1, cylinder B2 and piston B3 of its actuator, forearm B4; y = (q1, q4)."""
    rng = np.random.default_rng(83)
    builder = da.ModelBuilder(gravity=(0.0, -9.81, 0.0))
    builder.add_body("B1", "world", da.Revolute(), "q1", inertia=random_inertia(rng))
    builder.add_body("B2", "world", da.Revolute(), "q2", placement=at(l1), inertia=random_inertia(rng))
    builder.add_body("B3", "B2", da.Prismatic((1, 0, 0)), "q3", inertia=random_inertia(rng))
    builder.add_body("B4", "B1", da.Revolute(), "q4", placement=at(1.2), inertia=random_inertia(rng))
    builder.add_loop("q5", "B1", "B3", da.Revolute(), at(l2))
    if actuated is not None:
        builder.set_actuated(actuated)
    if closure:
        builder.set_loop_closure(lambda model, y: piston_positions(y, l1, l2), ["q1", "q4"])
    return builder.build()
