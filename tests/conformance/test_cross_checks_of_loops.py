"""Every route to the motion of closed loops gives the same numbers, dense NumPy beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.conformance.models import KINDS
from tests.conformance.moving_samples import EXAMPLES, Sample, acceleration_scale, agree, array
from tests.looped_models import add_closed_loop, copied, poses_at

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms import loops
from dalembert.algorithms.constraints import constraint_equations
from dalembert.models.random_trees import random_joint
from dalembert.textbook import recursive_assembly as divide_and_conquer

CLOSING = tuple(kind for kind in KINDS if kind not in ("composite", "free"))
"""Joints that can close a loop; a free one closes nothing."""


@st.composite
def looped(draw: st.DrawFn) -> Sample:
    """A random tree with one or two loops of any joint type, closed by construction, moving as they allow."""
    seed = draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    tree = da.models.random_tree(
        seed,
        bodies=draw(st.integers(3, 6)),
        joints=KINDS,
        branching=draw(st.sampled_from((0.0, 0.5, 1.0))),
        armature=draw(st.sampled_from((0.0, 0.3))),
    )
    s = Sample(tree, seed)
    poses = poses_at(tree, s.q)
    builder = copied(tree)
    for k in range(draw(st.integers(1, 2))):
        ends = draw(st.permutations(list(poses)))[:2]
        joint = random_joint(rng, draw(st.sampled_from(CLOSING)))
        add_closed_loop(builder, f"loop{k}", joint, ends, poses, rng)
    s.model = builder.build()
    return moving_with_the_loops(s)


def moving_with_the_loops(s: Sample) -> Sample:
    """The same with a velocity that the loops allow; a rank that is a matter of rounding is left out."""
    equations = constraint_equations(s.model, s.q, s.v)
    K = array(equations.K)
    values = np.linalg.svd(K, compute_uv=False)
    assume(not np.any((values > 1e-9 * values.max()) & (values < 1e-2 * values.max())))
    s.v = (s.v - np.linalg.pinv(K, rcond=1e-6) @ (K @ s.v)).tolist()
    return s


def dense_motion(s: Sample) -> np.ndarray:
    """dv/dt of H a + C = tau + K^T lambda, K a = k by least squares, for any rank of K."""
    m, equations = s.model, constraint_equations(s.model, s.q, s.v)
    H = array(al.mass_matrix(m.tree(), s.q))
    C = array(al.bias_forces(m.tree(), s.q, s.v, external_forces=s.f))
    K = array(equations.K)
    _, values, V = np.linalg.svd(K)
    rank = int(np.sum(values > 1e-6 * values.max(initial=0.0)))
    G, g = V[rank:].T, np.linalg.pinv(K, rcond=1e-6) @ equations.k
    np.testing.assert_allclose(K @ g, equations.k, atol=1e-8 * (1.0 + np.abs(equations.k).max(initial=0.0)))
    if not G.size:
        return g
    return g + G @ np.linalg.solve(G.T @ H @ G, G.T @ (s.tau - C - H @ g))


def check_loop_routes(s: Sample, routes: Mapping[str, Callable[..., Any]]) -> None:
    found: dict[str, Any] = {"dense": dense_motion(s)}
    for name, route in routes.items():
        found[name] = route(s.model, s.q, s.v, s.tau, external_forces=s.f)
    scale = acceleration_scale(array(al.mass_matrix(s.model.tree(), s.q)), array(found["dense"]))
    agree(found, 1e-7, scale)


LOOP_ROUTES: dict[str, Callable[..., Any]] = {
    "method 1": loops.accelerations_by_elimination,
    "method 2": loops.accelerations_by_range_space,
    "method 3": loops.accelerations_by_null_space,
    "maximal coordinates": loops.accelerations_by_maximal_coordinates,
    "sparse method": loops.accelerations_by_sparse_elimination,
    "divide and conquer": divide_and_conquer.divide_and_conquer,
}


@settings(max_examples=EXAMPLES)
@given(looped())
def test_closed_loops_by_every_route(s: Sample) -> None:
    """Methods 1 to 3, all bodies at once, the sparse method and pairs, on loops of any joint and rank."""
    check_loop_routes(s, LOOP_ROUTES)


@st.composite
def twins(draw: st.DrawFn) -> Sample:
    """Two chains of the same joints at the same places, their ends one: q = gamma(y) = (y, y)."""
    seed = draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    chain = da.models.random_tree(
        seed, bodies=draw(st.integers(1, 3)), joints=("revolute", "helical", "universal"), branching=0.0
    )
    assume(chain.nv > 0)
    model = copied(chain)
    for body in chain.bodies:
        parent = "world" if body.parent < 0 else f"twin_{chain.bodies[body.parent].name}"
        model.add_body(
            f"twin_{body.name}", parent, body.joint, f"twin_{body.joint_name}", placement=body.placement,
            inertia=da.RigidInertia(0.7, rng.uniform(-0.1, 0.1, 3).tolist(), (0.03, 0.04, 0.05)),
        )  # fmt: skip
    last = chain.bodies[-1].name
    model.add_loop("ends", last, f"twin_{last}", da.Fixed())
    s = Sample(model.build(), seed)
    model.set_loop_closure(lambda model, y: [*y, *y], [joint.name for joint in chain.joints])
    s.explicit = model.build()
    s.q, s.v = s.q[: chain.nq] * 2, s.v[: chain.nv] * 2
    J = array(al.jacobian(chain, s.q[: chain.nq], last)).reshape(6, chain.nv)
    assume(np.linalg.cond(J) < 50.0)  # else the end may rest while the chain moves
    return s


@settings(max_examples=EXAMPLES)
@given(twins())
def test_closed_loops_by_their_closure_function(s: Sample) -> None:
    """q = gamma(y) against the other methods, on overconstrained loops."""

    def closure(_: da.Model, *at: Any, **f: Any) -> Any:
        return loops.accelerations_by_closure(s.explicit, *at, **f)

    routes = {**LOOP_ROUTES, "closure": closure}
    check_loop_routes(s, routes)
