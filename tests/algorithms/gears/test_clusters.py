"""Which bodies are eliminated together, and that articulated bodies with couplings are exact."""

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.gears.coupled_trees import coupled_tree
from tests.algorithms.trees import close, state

import dalembert as da
from dalembert.algorithms import articulated_inertias, forward_dynamics, inverse_dynamics
from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.clusters import clusters_of
from dalembert.algorithms.gears import default_method
from dalembert.errors import ModelError

SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_clusters_form_a_tree_and_hold_what_belongs_together(seed):
    """Every body is in one cluster; cluster mates hang on each other or on the base; variables are shared by
    no two clusters; a cluster stands after the one that carries it.
    """
    model = coupled_tree(seed, 14)
    clusters = clusters_of(model)
    assert sorted(b.index for c in clusters for b in c.bodies) == list(range(len(model.bodies)))
    assert sorted(k for c in clusters for k in c.variables) == list(range(model.nv))
    seen: set[int] = {-1}
    for cluster in clusters:
        assert cluster.base in seen
        members = {body.index for body in cluster.bodies}
        assert all(body.parent in members | {cluster.base} for body in cluster.bodies)
        seen |= members
    assert any(len(cluster.bodies) > 1 for cluster in clusters)


def test_a_cluster_takes_in_the_bodies_on_the_way_and_no_more():
    """Joints b and e are coupled: a carries both ways, c and d lie on one of them, f hangs outside."""
    builder = da.ModelBuilder()
    heavy = da.RigidInertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.2, 0.3))
    for name, parent in (("a", "world"), ("b", "a"), ("c", "a"), ("d", "c"), ("e", "d"), ("f", "d")):
        builder.add_body(name, parent, da.Revolute((0, 1, 0)), inertia=heavy)
    builder.add_coupling("gear", {"b": 2.0, "e": -1.0})
    clusters = [(c.base, "".join(b.name for b in c.bodies)) for c in clusters_of(builder.build())]
    assert clusters == [(-1, "a"), (0, "bcde"), (3, "f")]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("massless", [False, True])
def test_articulated_bodies_equal_the_factored_matrix(seed, massless):
    """RBDA-9.6-GEARS: ABA by clusters = G^T H G solved, in both frames, and inverse dynamics gives tau back;
    dependent bodies may be without mass.
    """
    model = coupled_tree(seed, 12, massless=massless)
    q, v, tau, f = state(model, seed)
    reference = forward_dynamics(model, q, v, tau, external_forces=f, method="crba")
    for tree in (model, aligned(model)):
        for method in ("aba", "aba_spatial"):
            a = forward_dynamics(tree, q, v, tau, external_forces=f, method=method)
            close(a, reference, 1e-8)
    close(inverse_dynamics(model, q, v, a, external_forces=f), tau, 1e-8, terms=(reference,))


def test_articulated_inertias_of_a_gripper_are_what_the_wrist_feels():
    """I^A of the body that carries a whole cluster: the inverse of its handle's J M^-1 J^T (Eq. 7.9)."""
    builder = da.ModelBuilder()
    builder.add_body("palm", "world", da.Free(), inertia=da.RigidInertia(1.0, (0.1, 0, 0), (0.2, 0.3, 0.4)))
    for side in (1.0, -1.0):
        builder.add_body(
            f"finger{side}",
            "palm",
            da.Prismatic((0, side, 0.2)),
            placement=da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.1 * side, 0.3)),
            inertia=da.RigidInertia(0.3, (0.02, 0.01, 0.05), (0.01, 0.02, 0.025)),
        )
    builder.add_coupling("mirror", {"finger1.0": 1.0, "finger-1.0": -1.0})
    model = builder.build()
    q, _ = model.random_state(1)
    phi = da.algorithms.handle_inverse_inertia(model, q.tolist(), ["palm"])
    found = articulated_inertias(model, q.tolist())[0].matrix()
    close(np.array(found) @ np.array(phi), np.eye(6), 1e-11)


def test_a_body_on_the_world_may_carry_no_inertia_where_only_its_load_is_asked_for():
    """A free spinner without mass beside a coupled pair: no body feels it."""
    builder = da.ModelBuilder()
    builder.add_body("spinner", "world", da.Revolute((0, 0, 1)))
    builder.add_body(
        "one", "world", da.Revolute((1, 0, 0)), inertia=da.RigidInertia(1.0, (0, 0, 1), (1, 1, 1))
    )
    builder.add_body("two", "one", da.Revolute((1, 0, 0)), inertia=da.RigidInertia(2.0, (0, 0, 1), (1, 1, 1)))
    builder.add_coupling("gear", {"one": 1.0, "two": -2.0})
    model = builder.build()
    q = [0.3] * model.nq
    inertias = articulated_inertias(model, q)
    np.testing.assert_array_equal(inertias[0].matrix(), np.zeros((6, 6)))
    np.testing.assert_array_equal(inertias[2].matrix(), model.bodies["two"].inertia.matrix())
    with pytest.raises(ModelError, match="spinner"):
        forward_dynamics(model, q, [0.0] * model.nv, [0.0] * model.nv)


def chain(n, coupled, leader=-2, massless=False):
    """GU(n), with the last joint following another; `massless`: by a rotor without mass at the tip."""
    model = da.models.gu(n)
    builder = da.ModelBuilder(gravity=model.gravity.to_list())
    for body in model.bodies:
        parent = model.bodies[body.parent].name if body.parent >= 0 else "world"
        builder.add_body(body.name, parent, body.joint, placement=body.placement, inertia=body.inertia)
    if coupled:
        follower = model.bodies[-1].name
        if massless:
            builder.add_body("rotor", follower, da.Revolute((0, 0, 1)))
            follower = "rotor"
        builder.add_coupling("c", {model.bodies[leader].name: 1.0, follower: -0.5})
    return builder.build()


def test_the_cost_of_clusters_grows_linearly_and_decides_the_default():
    """RBDA-9.6-GEARS: O(n) with couplings at the tip; the matrix is cheaper in shallow trees, and chosen."""

    def cost(n, method):
        tree = aligned(chain(n, True))

        def run(q, v, tau):
            return forward_dynamics(tree, q, v, tau, method=method)

        return count(run, q=tree.nq, v=tree.nv, tau=tree.nv).total

    aba = {n: cost(n, "aba") for n in (6, 11, 16)}
    assert aba[16] - aba[11] == aba[11] - aba[6]
    assert cost(6, "crba") < aba[6]
    assert aba[11] < cost(11, "crba")
    assert default_method(chain(6, True)) == "crba"
    assert default_method(chain(11, True)) == default_method(chain(6, False)) == "aba"


def test_a_gear_from_end_to_end_is_left_to_multipliers():
    """RBDA-9.6-GEARS: one large cluster costs more than forces of gears solved for; both are exact. Followers
    without mass need the cluster.
    """
    model = chain(14, True, leader=0)
    assert default_method(model) == "aba_multipliers"
    assert default_method(chain(14, True, leader=0, massless=True)) == "aba"
    q, v, tau, f = state(model, 0)
    tree = aligned(model)

    def cost(method):
        def run(q, v, tau):
            return forward_dynamics(tree, q, v, tau, method=method)

        return count(run, q=tree.nq, v=tree.nv, tau=tree.nv).total

    assert cost("aba_multipliers") < min(cost("aba"), cost("crba"))
    want = forward_dynamics(model, q, v, tau, external_forces=f, method="crba")
    for method in ("aba", "aba_multipliers", None):
        close(forward_dynamics(tree, q, v, tau, external_forces=f, method=method), want, 1e-7)


def test_freedoms_without_inertia_are_named():
    builder = da.ModelBuilder()
    builder.add_body(
        "arm", "world", da.Revolute((0, 0, 1)), inertia=da.RigidInertia(1.0, (0, 0, 0), (1, 1, 0))
    )
    builder.add_body("rotor", "world", da.Revolute((0, 0, 1)))
    builder.add_coupling("gear", {"arm": 3.0, "rotor": -1.0})
    model = builder.build(inertia="as_given")
    with pytest.raises(ModelError, match='joint "arm" has a freedom along which nothing with inertia'):
        forward_dynamics(model, [0.1], [0.2], [0.3], method="aba")
