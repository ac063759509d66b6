"""Moving states of systems with loops, and the textbook's equation solved by NumPy as their oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.looped_models import add_closed_loop, closed_velocity, poses_at

import dalembert as da
from dalembert.algorithms import bias_forces, mass_matrix
from dalembert.algorithms.constraints import ConstraintEquations, constraint_equations
from dalembert.models.random_trees import random_inertia, random_joint, random_placement

Array = np.ndarray[Any, np.dtype[np.float64]]


def random_looped(
    seed: int, closers: Sequence[da.joints.Joint], *, bodies: int = 5, couple: bool = False
) -> tuple[da.Model, Array, Array]:
    """(model, q, v): a random tree whose bodies the closers tie together; closed and moving at (q, v)."""
    rng = np.random.default_rng(seed)
    kinds = ["revolute", "universal", "helical", "spherical", "cylindrical", "prismatic"]
    parts = []
    for k in range(bodies):
        joint = random_joint(rng, kinds[int(rng.integers(len(kinds)))]) if k else da.Free()
        parent = f"b{int(rng.integers(k))}" if k else "world"
        parts.append((f"b{k}", parent, joint, random_placement(rng), random_inertia(rng)))
    if couple:
        parts.append(
            ("follower", "b0", da.Revolute((0.0, 0.6, 0.8)), random_placement(rng), random_inertia(rng))
        )
        parts.append(
            ("leader", "world", da.Revolute((1.0, 0.0, 0.0)), random_placement(rng), random_inertia(rng))
        )

    def tree() -> da.ModelBuilder:
        builder = da.ModelBuilder(gravity=(0.4, -0.3, -9.7))
        for name, parent, joint, placement, inertia in parts:
            builder.add_body(
                name, parent, joint, placement=placement, inertia=inertia, armature=0.1 * joint.nv
            )
        if couple:
            builder.add_coupling("belt", {"follower": 1.0, "leader": -2.0}, offset=0.1)
        return builder

    bare = tree().build()
    q, v = bare.random_state(seed)
    poses = poses_at(bare, q.tolist())
    names = [*bare.bodies.names, "world"]
    builder = tree()
    for number, closer in enumerate(closers):
        ends = [names[i] for i in loose_pair(bare, rng, 6 - closer.nv)]
        add_closed_loop(builder, f"loop{number}", closer, ends, poses, rng)
    model = builder.build()
    return model, q, closed_velocity(model, q, v)


def loose_pair(tree: da.Model, rng: np.random.Generator, constraints: int) -> tuple[int, int]:
    """Two bodies (the last number is the world) with more freedoms between them than the joint takes."""
    count = len(tree.bodies)
    support = [tree.support(i) for i in range(count)] + [frozenset()]
    pairs = [(p, s) for p in range(count + 1) for s in range(count + 1) if p != s]
    freedoms = {pair: sum(tree.bodies[i].nv for i in support[pair[0]] ^ support[pair[1]]) for pair in pairs}
    loose = [pair for pair in pairs if freedoms[pair] > constraints]
    return loose[int(rng.integers(len(loose)))] if loose else max(pairs, key=lambda pair: freedoms[pair])


def equations(model: da.Model, q: Array, v: Array) -> ConstraintEquations:
    return constraint_equations(model, q.tolist(), v.tolist())


def textbook_accelerations(
    model: da.Model, q: Array, v: Array, tau: Array, *, k: Array | None = None
) -> Array:
    """a of [M K^T; K 0][a; -lambda] = [tau - C; k] by NumPy's least squares, which takes any rank."""
    M = np.array(mass_matrix(model, q.tolist()), float)
    C = np.array(bias_forces(model, q.tolist(), v.tolist()), float)
    found = equations(model, q, v)
    K = np.array(found.K, float)
    k = np.array(found.k, float) if k is None else k
    zero = np.zeros((len(K), len(K)))
    matrix = np.block([[M, K.T], [K, zero]])
    return np.linalg.lstsq(matrix, np.concatenate([tau - C, k]), rcond=1e-11)[0][: model.nv]
