"""Forward dynamics by assembly in every order: one motion, and what it costs."""

import math

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import JOINTS, axis, close, inertia, place, random_tree, state

import dalembert as da
from dalembert import scalar
from dalembert.algorithms import aligned, constraints, forward_dynamics
from dalembert.errors import ModelError
from dalembert.textbook import constrained_equations, handles
from dalembert.textbook import recursive_assembly as divide_and_conquer
from dalembert.textbook.recursive_assembly import plan_in_pairs, plan_one_by_one
from dalembert.tracing.expression import live
from dalembert.tracing.program import ArrayArgument
from dalembert.tracing.trace import trace

METHODS = {
    "divide_and_conquer": divide_and_conquer.divide_and_conquer,
    "aba_inverse": divide_and_conquer.forward_dynamics_by_inverse_inertias,
    "aba_constraint_space": handles.forward_dynamics_in_constraint_space,
    "projection": constrained_equations.forward_dynamics_by_projection,
}

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
by_inverse_inertias = pytest.mark.parametrize("method", list(METHODS.values())[:2], ids=list(METHODS)[:2])


@every_method
@pytest.mark.parametrize("kind", JOINTS)
def test_every_joint_type_moves_as_in_the_articulated_body_algorithm(kind, method):
    """RBDA-7.5-DCA, RBDA-7.4-VARIANTS: branching trees, moving, with armature, pushed."""
    tree = random_tree(3, 5, (kind, "revolute"))
    q, v, tau, f = state(tree, 3)
    reference = forward_dynamics(tree, q, v, tau, external_forces=f, external_frame="world")
    close(method(tree, q, v, tau, external_forces=f, external_frame="world"), reference, 1e-10)


@every_method
@pytest.mark.parametrize("seed", range(6))
def test_random_trees_move_as_in_the_articulated_body_algorithm(seed, method):
    """RBDA-7.5-DCA, RBDA-7.4-VARIANTS: all joint types mixed, chains and bushes, in any body frames."""
    tree = random_tree(seed, 12, branching=0.15 * seed)
    q, v, tau, f = state(tree, seed)
    reference = forward_dynamics(tree, q, v, tau, external_forces=f)
    close(method(tree, q, v, tau, external_forces=f), reference, 1e-10)
    close(method(aligned(tree), q, v, tau, external_forces=f), reference, 1e-10)


@every_method
def test_joints_that_depend_on_time(method):
    """RBDA-7.5-DCA: a prescribed motion in series with a joint."""
    rng = np.random.default_rng(4)
    builder = da.ModelBuilder(gravity=(0.7, -0.4, -9.5))
    swing = da.joints.TimeDependent(
        da.Revolute(axis(rng)),
        da.joints.Universal((1, 0, 0), (0, 1, 0)),
        lambda t: [scalar.sin(3.0 * t), 0.2 * t],
    )
    for i, joint in enumerate((da.Spherical(), swing, da.Revolute(axis(rng)))):
        parent = "world" if i == 0 else f"b{i - 1}"
        builder.add_body(f"b{i}", parent, joint, placement=place(rng), inertia=inertia(rng))
    tree = builder.build()
    q, v, tau, f = state(tree, 4)
    reference = forward_dynamics(tree, q, v, tau, external_forces=f, time=0.37)
    close(method(tree, q, v, tau, external_forces=f, time=0.37), reference, 1e-10)


def closed_chain(seed, n, ends, joint):
    """A chain of n revolute joints about random axes with loop joints between the given bodies."""
    rng = np.random.default_rng(seed)
    builder = da.ModelBuilder(gravity=(0.7, -0.4, -9.5))
    for i in range(n):
        builder.add_body(
            f"b{i}",
            "world" if i == 0 else f"b{i - 1}",
            da.Revolute(axis(rng)),
            placement=place(rng),
            inertia=inertia(rng),
            armature=0.2 * (i % 2),
        )
    for k, (p, s) in enumerate(ends):
        builder.add_loop(f"loop{k}", p, s, joint, place(rng), place(rng))
    return builder.build()


LOOPS = {
    "to_the_world": ([("world", "b6")], da.Spherical()),
    "from_the_world": ([("b6", "world")], da.joints.Universal((1, 0, 0), (0, 1, 0))),
    "inside": ([("b1", "b6")], da.Revolute((0, 0, 1))),
    "two": ([("b0", "b3"), ("b4", "b7")], da.Spherical()),
    "nested": ([("b0", "b7"), ("b2", "b5")], da.Spherical()),
}


@by_inverse_inertias
@pytest.mark.parametrize(("ends", "joint"), LOOPS.values(), ids=LOOPS)
def test_loops_move_as_with_lagrange_multipliers(ends, joint, method):
    """RBDA-7.5-DCA, RBDA-7.5-MULTIHANDLE, RBDA-3.2-ORDERS: all orders agree on loops, stabilised or not."""
    model = closed_chain(1, 8, ends, joint)
    q, v, tau, f = state(model, 5)
    for stabilization in (None, 0.1):
        found = method(model, q, v, tau, external_forces=f, stabilization=stabilization)
        for other in ("range_space", "maximal"):  # the spanning tree and its loops; everything at once
            reference = forward_dynamics(
                model, q, v, tau, external_forces=f, stabilization=stabilization, method=other
            )
            close(found, reference, 1e-9)


def solid(name):
    """A bundled linkage whose bars have a moment of inertia about every axis."""
    model = getattr(da.models, name)()
    values = {f"{b.name}.inertia": np.array(model.value(f"{b.name}.inertia")) for b in model.bodies}
    return model.with_values({key: (I + 0.01 * np.eye(3)).tolist() for key, I in values.items()})


@by_inverse_inertias
@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar", "stewart"])
def test_loops_with_repeated_constraints(name, method):
    """RBDA-7.5-MULTIHANDLE: planar loops repeat constraints: Y is singular."""
    model = solid(name)
    rng = np.random.default_rng(1)
    q = np.asarray(da.constraints.close_loops(model, model.random_state(rng)[0])).tolist()
    K = np.array(constraints.constraint_equations(model, q, [0.0] * model.nv).K, dtype=float)
    _, values, directions = np.linalg.svd(K)
    rank = int((values > 1e-9).sum())
    assert (rank < len(K)) == (name != "stewart")
    v = (directions[rank:].T @ rng.normal(size=model.nv - rank)).tolist()
    tau = rng.normal(size=model.nv).tolist()
    close(method(model, q, v, tau), forward_dynamics(model, q, v, tau), 1e-9)


def critical_path(algorithm, n):
    """The longest chain of operations that depend on each other, at rest."""
    chain = aligned(da.models.gu(n))
    inputs = [ArrayArgument("q", (n,)), ArrayArgument("tau", (n,))]
    values = trace(lambda q, tau: algorithm(chain, q, [0.0] * n, tau), inputs).values
    depth = {}
    for node in live(values):
        depth[node.index] = 1 + max((depth[argument.index] for argument in node.args), default=-1)
    return max(depth[value.index] for value in values)


def test_divide_and_conquer_takes_linear_work_and_logarithmic_time():
    """RBDA-7.5-DCA: operations grow with N, the critical path by one constant for every doubling of N."""
    sizes = (4, 8, 16, 32)
    paths = [critical_path(divide_and_conquer.divide_and_conquer, n) for n in sizes]
    steps = np.diff(paths)
    assert np.all(steps == steps[0])
    serial = [critical_path(forward_dynamics, n) for n in sizes]
    assert serial[-1] - serial[-2] == 2 * (serial[-2] - serial[-3])
    assert paths[-1] < serial[-1]

    def work(n):
        chain = aligned(da.models.gu(n))
        return count(
            lambda q, v, tau: divide_and_conquer.divide_and_conquer(chain, q, v, tau), q=n, v=n, tau=n
        ).total

    # T(N) = a N - b log2 N - c: what a doubling adds beyond twice the work grows by the same each time
    totals = [work(n) for n in sizes]
    beyond = np.diff([totals[k + 1] - 2 * totals[k] for k in range(3)])
    assert beyond[0] == beyond[1]
    assert plan_in_pairs(da.models.gu(32)).levels == math.ceil(math.log2(32))


@pytest.mark.parametrize("name", ["aba_inverse", "aba_constraint_space"])
def test_variants_of_the_articulated_body_algorithm_take_linear_work(name):
    """RBDA-7.4-VARIANTS: each further body of a chain costs the same."""

    def work(n):
        chain = aligned(da.models.gu(n))
        return count(lambda q, v, tau: METHODS[name](chain, q, v, tau), q=n, v=n, tau=n).total

    assert work(8) - work(6) == work(6) - work(4)


@pytest.mark.parametrize("method", METHODS)
def test_methods_by_their_public_names(method):
    """RBDA-7.5-DCA, RBDA-7.4-VARIANTS: da.forward_dynamics on a batch, with external forces."""
    model = da.models.random_tree(2, bodies=3, joints=("revolute", "universal", "free"), armature=0.1)
    states = [state(model, seed) for seed in range(5)]
    q, v, tau, f = (np.array(part) for part in zip(*states))
    found = da.forward_dynamics(model, q, v, tau, f, method=method)
    np.testing.assert_allclose(found, da.forward_dynamics(model, q, v, tau, f), rtol=1e-9, atol=1e-9)


def test_loops_by_the_public_name():
    """RBDA-7.5-DCA: the compiled divide-and-conquer method on a closed loop, in single precision too."""
    model = solid("four_bar")
    q, v, tau = np.zeros((4, 3)), np.zeros((4, 3)), np.random.default_rng(0).normal(size=(4, 3))
    reference = da.forward_dynamics(model, q, v, tau)
    found = da.forward_dynamics(model, q, v, tau, method="divide_and_conquer")
    np.testing.assert_allclose(found, reference, rtol=1e-9, atol=1e-9)
    single = [x.astype(np.float32) for x in (q, v, tau)]
    found = da.forward_dynamics(model, *single, method="divide_and_conquer")
    np.testing.assert_allclose(found, reference, rtol=1e-3, atol=1e-3 * np.abs(reference).max())


def test_bodies_without_an_inverse_inertia_are_refused():
    """RBDA-7.4-VARIANTS: a point mass has no inverse inertia; the message says what to do."""
    model = da.models.pendulum()
    for method in ("divide_and_conquer", "aba_inverse", "aba_constraint_space"):
        with pytest.raises(ModelError, match=r"has no inverse inertia.*default method"):
            METHODS[method](model, [0.1], [0.2], [0.3])
    close(METHODS["projection"](model, [0.1], [0.2], [0.3]), forward_dynamics(model, [0.1], [0.2], [0.3]))


def test_couplings_are_projected_or_refused():
    """RBDA-3.2-EXPLICIT: couplings are an explicit constraint, which projection takes and handles do not."""
    builder = da.ModelBuilder()
    rng = np.random.default_rng(0)
    for i in range(3):
        parent = "world" if i == 0 else f"b{i - 1}"
        builder.add_body(
            f"b{i}", parent, da.Revolute(axis(rng)), placement=place(rng), inertia=inertia(rng), armature=0.1
        )
    builder.add_coupling("gear", {"b0": 1.0, "b2": -3.0})
    model = builder.build()
    q, v, tau, f = state(model, 0)
    reference = forward_dynamics(model, q, v, tau, external_forces=f)
    close(METHODS["projection"](model, q, v, tau, external_forces=f), reference, 1e-10)
    for method in ("divide_and_conquer", "aba_inverse", "aba_constraint_space"):
        with pytest.raises(ModelError, match="couples joints"):
            METHODS[method](model, q, v, tau)


def test_loops_are_refused_where_they_are_not_assembled():
    """RBDA-7.4-VARIANTS: inertias alone cannot close loops."""
    model = solid("four_bar")
    for method in ("aba_constraint_space", "projection"):
        with pytest.raises(ModelError, match="trees"):
            METHODS[method](model, [0.0] * 3, [0.0] * 3, [0.0] * 3)


def test_constraints_that_are_no_joints_are_refused():
    """RBDA-7.5-MULTIHANDLE: a user's function and a loop closure bind coordinates, not handles."""
    rng = np.random.default_rng(0)

    def builder():
        new = da.ModelBuilder()
        for name, parent in (("b0", "world"), ("b1", "b0")):
            new.add_body(name, parent, da.Revolute(axis(rng)), placement=place(rng), inertia=inertia(rng))
        return new

    tied, closed = builder(), builder()
    tied.add_constraint(lambda model, q: [q[0] - q[1]], kind="position", name="tie")
    closed.set_loop_closure(lambda model, y: [y[0], y[0] * y[0]], independent=["b0"])
    for made, said in ((tied, "tie"), (closed, "loop closure")):
        for method in METHODS.values():
            with pytest.raises(ModelError, match=said):
                method(made.build(), [0.1, 0.1], [0.2, 0.2], [0.0, 0.0])


def test_any_order_of_assembly_gives_the_same_motion():
    """RBDA-3.2-ORDERS: plans with handles that nothing pushes, and both orders."""
    tree = random_tree(6, 9, branching=0.5)
    q, v, tau, _ = state(tree, 6)
    reference = forward_dynamics(tree, q, v, tau)
    for plan in (plan_in_pairs(tree), plan_one_by_one(tree)):
        close(divide_and_conquer.forward_dynamics_by_plan(tree, q, v, tau, plan), reference, 1e-10)
