"""The system of a step, eliminated along the tree, beside dense matrices of other algorithms."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.trees import axis, close, inertia, place, random_tree, six

import dalembert as da
from dalembert.call.arguments import ArrayArgument
from dalembert.contact.tree_system import TreeSystem, joint_axes
from dalembert.model.joints import Prismatic, Revolute
from dalembert.spatial import ArticulatedInertia, Force
from dalembert.tracing.program import count_operations
from dalembert.tracing.trace import trace

KINDS = ("revolute", "prismatic", "cylindrical", "spherical", "universal", "planar", "free", "fixed")


def coupled_tree(seed: int) -> da.Model:
    """Two branches of revolute and prismatic joints; one joint follows another of the other branch, and one
    follows two."""
    rng = np.random.default_rng(seed)
    builder = da.ModelBuilder()
    for i, parent in enumerate((-1, 0, 1, 2, 0, 4, 5, 2)):
        joint = Prismatic(axis(rng)) if i in (1, 5) else Revolute(axis(rng))
        carrier = "world" if parent < 0 else f"b{parent}"
        builder.add_body(
            f"b{i}", carrier, joint, placement=place(rng), inertia=inertia(rng), armature=0.1 * (i % 3)
        )
    builder.add_coupling("mimic", {"b6": 1.0, "b3": 0.7})
    builder.add_coupling("differential", {"b7": 1.0, "b1": -0.5, "b4": 2.0})
    return builder.build()


def geared_figures() -> da.Model:
    """A free figure with gears from one of its joints to a joint on the world and to another figure."""
    rng = np.random.default_rng(7)
    builder = da.ModelBuilder()
    for name, parent in (("one", "world"), ("two", "world"), ("three", "world")):
        joint = da.Free() if name != "three" else Revolute(axis(rng))
        builder.add_body(name, parent, joint, placement=place(rng), inertia=inertia(rng))
    for name, parent in (("a", "one"), ("b", "two"), ("c", "three")):
        builder.add_body(name, parent, Revolute(axis(rng)), placement=place(rng), inertia=inertia(rng))
    builder.add_coupling("to the world", {"a": 1.0, "three": -2.0})
    builder.add_coupling("to another", {"a": 1.0, "b": 0.5})
    return builder.build()


class Dense:
    """A random state of a model with random resistances: its system, and A by the mass matrix in body
    coordinates and the rates G v of all joint variables, from the motion of bodies relative to their
    parents."""

    def __init__(self, model: da.Model, seed: int) -> None:
        self.model, self.rng = model, np.random.default_rng(seed)
        self.q = model.random_state(self.rng)[0]
        self.axes = joint_axes(model, self.q.tolist())
        resistances = [
            self.rng.uniform(0.0, 3.0, body.nv) * (body.joint.kind != "free") for body in model.bodies
        ]
        self.M = np.asarray(da.mass_matrix(model, self.q))
        self.A = self.M.copy()
        for body, own in zip(model.bodies, resistances, strict=True):
            if body.nv:
                S = np.array([six(s) for s in self.axes.S[body]]).T
                relative = self.J(body.index) - (self.J(body.parent) if body.parent >= 0 else 0.0)
                G = np.linalg.lstsq(S, relative, rcond=None)[0]
                self.A += G.T @ np.diag(own) @ G
        self.system = TreeSystem.of(
            self.axes, [own.tolist() for own in resistances], (1.0 / np.diag(self.M)).tolist()
        )

    def J(self, body: int) -> np.ndarray:
        """Return the Jacobian of a body's velocity along world axes about the common origin."""
        J = np.array(da.jacobian(self.model, self.q, self.model.bodies[body].name, frame="world"))
        origin = np.array(self.axes.origin.to_list())
        J[3:] += np.cross(J[:3].T, origin).T
        return J

    def hessian(self, size: float) -> np.ndarray:
        root = self.rng.normal(size=(6, 4)) * size
        return root @ root.T


TREES = [random_tree(seed, 9, KINDS, branching=0.3 + 0.1 * seed) for seed in range(6)]
TREES += [coupled_tree(seed) for seed in range(3)] + [geared_figures(), da.models.humanoid()]


@pytest.fixture(params=range(len(TREES)))
def dense(request) -> Dense:
    return Dense(TREES[request.param], request.param)


def test_products_are_those_of_dense_matrices(dense):
    """A v and M v, velocities J v, and impulses J^T f."""
    model, system, rng = dense.model, dense.system, dense.rng
    v, wrenches = rng.normal(size=model.nv), rng.normal(size=(len(model.bodies), 6))
    moving = [body.index for body in model.bodies if not system.is_still(body.index)]
    motion = system.motion(v.tolist())
    close(system.times(motion), dense.A @ v)
    close(system.momenta(motion), dense.M @ v)
    for body in range(len(model.bodies)):
        close(six(system.velocity(motion, body)), dense.J(body) @ v)
    found = system.impulses({body: Force.of(wrenches[body].tolist()) for body in moving})
    close(found, sum(dense.J(body).T @ wrenches[body] for body in moving))


@pytest.mark.parametrize("size", [0.0, 1.0, 100.0])
def test_solutions_are_those_of_dense_matrices(dense, size):
    """With Hessians of bodies, of single variables, and of rows that tie variables of all branches."""
    model, system, rng = dense.model, dense.system, dense.rng
    moving = [body.index for body in model.bodies if not system.is_still(body.index)]
    chosen = [body for body in moving if rng.random() < 0.6]
    hessians = {body: dense.hessian(size) for body in chosen}
    given = {body: ArticulatedInertia.from_matrix(G.tolist()) for body, G in hessians.items()}
    H = dense.A + sum((dense.J(body).T @ G @ dense.J(body) for body, G in hessians.items()), np.zeros(()))
    for rows in (0, 1, 2):
        terms = np.diag(size * rng.uniform(0.0, 1.0, model.nv))
        for _ in range(rows):
            K = np.where(rng.random(model.nv) < 3.0 / model.nv, size * rng.normal(size=model.nv), 0.0)
            terms += np.outer(K, K)
        b = rng.normal(size=model.nv)
        x = system.factor(given, terms.tolist()).solve(b.tolist())
        error = 1e-13 * np.linalg.cond(H + terms)
        close(x.v, np.linalg.solve(H + terms, b), error)
        for body in moving:
            close(six(system.velocity(x, body)), dense.J(body) @ x.v, error)


def test_variables_that_nothing_ties_are_taken_out_one_by_one():
    """Parts of the humanoid are single arcs and the root; a row that ties both hands makes a part of the arms
    alone."""
    dense = Dense(da.models.humanoid(), 0)
    nv, model = dense.model.nv, dense.model
    terms = [[0.0] * nv for _ in range(nv)]
    assert [len(part.arcs) for part in dense.system.factor({}, terms).parts] == [1] * (nv - 6) + [6]
    first, second = (model.body(f"{side}_hand").v_slice.start for side in ("left", "right"))
    terms[second][first] = 0.1
    sizes = [len(part.arcs) for part in dense.system.factor({}, terms).parts]
    arms = [b for b in model.bodies for end in ("arm", "elbow", "hand") if b.name.endswith(end)]
    assert max(sizes) == sum(body.nv for body in arms) - 2
    assert sorted(sizes)[:-2] == [1] * (nv - 6 - max(sizes))


def test_a_variable_costs_what_the_recursion_says():
    """36 + 6 + 6 + 21 multiplications and a division for (2), 25 for (3), 200 for the root, with Hessians on
    all bodies."""
    dense = Dense(da.models.humanoid(), 0)
    model, system, no_terms = dense.model, dense.system, np.zeros((43, 43)).tolist()

    def solve(hessians, b):
        given = {k: ArticulatedInertia.from_matrix(rows) for k, rows in enumerate(hessians)}
        return system.factor(given, no_terms).solve(b).v

    inputs = [ArrayArgument("hessians", (len(model.bodies), 6, 6)), ArrayArgument("b", (model.nv,))]
    count = count_operations(trace(solve, inputs).values)
    assert count.multiplications <= (36 + 6 + 6 + 21 + 1 + 25) * (model.nv - 6) + 200
    assert count.divisions == model.nv


def test_bodies_far_apart_are_solved_as_well_as_near_ones():
    """Two free boxes 10 m apart: the moments of inertia about one of them are 1e5 times those about the
    other."""
    builder = da.ModelBuilder()
    for name in ("near", "far"):
        builder.add_body(name, "world", da.Free(), inertia=da.shapes.Box((0.1, 0.1, 0.1)).inertia(mass=1.0))
    model = builder.build()
    q = np.array(model.neutral())
    q[7:10] = 10.0, -3.0, 2.0
    axes = joint_axes(model, q.tolist())
    M = np.asarray(da.mass_matrix(model, q))
    system = TreeSystem.of(axes, [[0.0] * 6] * 2, [1.0] * 12)
    b = np.arange(1.0, 13.0)
    x = system.factor({}, [[0.0] * 12 for _ in range(12)]).solve(b.tolist()).v
    np.testing.assert_allclose(x, np.linalg.solve(M, b), rtol=1e-9)
