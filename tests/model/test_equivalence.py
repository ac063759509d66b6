"""Models with other inertias and the same dynamics (Featherstone 2008 section 9.7)."""

import numpy as np
import pytest
from tests.algorithms.gears.coupled_trees import coupled_tree
from tests.algorithms.trees import JOINTS, close, inertia, place, random_tree, state

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms.aligned import aligned
from dalembert.compiler.library import FUNCTIONS
from dalembert.errors import ArgumentError, ModelError, UnknownNameError
from dalembert.model.equivalence import augmented_inertias, exchangeable_inertias, simplify_inertias
from dalembert.spatial import Motion, RigidInertia

Z = (0.0, 0.0, 1.0)
NAMES = ("m", "hx", "hy", "hz", "xx", "yy", "zz", "xy", "xz", "yz")
NOT_FOR_THIS = ("floating_base", "range_space", "direct", "null_space", "loop_closure")
TABLE_9_7 = {
    "revolute": (da.Revolute(Z), ({"m": 1}, {"hz": 1}, {"xx": 1, "yy": 1})),
    "prismatic": (da.Prismatic(Z), tuple({name: 1} for name in NAMES[4:])),
    "spherical": (da.Spherical(), ({"m": 1},)),
}


@pytest.mark.parametrize("kind", TABLE_9_7)
def test_the_families_of_table_9_7(kind):
    """RBDA-9.7-EQUIV: what the conditions give is what the table lists, no more and no less."""
    joint, listed = TABLE_9_7[kind]
    found = np.array([I.leaves() for I in exchangeable_inertias(joint)])
    table = np.array([[member.get(name, 0.0) for name in NAMES] for member in listed])
    assert len(found) == len(table) == np.linalg.matrix_rank(np.concatenate([found, table]))


@pytest.mark.parametrize("kind", JOINTS)
def test_the_conditions_hold_at_every_position_and_velocity(kind):
    """RBDA-9.7-EQUIV: I_D S = 0, X_J^T I_D X_J constant, S^T v x* I_D v = 0 (Eq. 9.30), at other positions
    than those from which the family was found.
    """
    rng = np.random.default_rng(4)
    joint = JOINTS[kind](rng)
    for I in exchangeable_inertias(joint):
        at_start = np.array(joint.transform(joint.neutral()).inverse_apply(I).leaves(), dtype=float)
        for _ in range(4):
            q = joint.random(rng)
            v = Motion.of(rng.normal(size=6).tolist())
            for s in joint.subspace(q):
                close((I * s).to_list(), [0.0] * 6, 1e-11)
                close(s.dot(v.cross(I * v)), 0.0, 1e-11)
            close(np.array(joint.transform(q).inverse_apply(I).leaves(), dtype=float), at_start, 1e-11)


def test_joints_without_freedom_give_all_and_free_joints_nothing():
    """RBDA-9.7-EQUIV: the two extremes; on the world a revolute joint feels three numbers only."""
    assert len(exchangeable_inertias(da.Fixed())) == 10
    assert exchangeable_inertias(da.Free()) == exchangeable_inertias(da.Free(), on_world=True) == []
    feels = {"zz", "hx", "hy"}
    family = np.array([I.leaves() for I in exchangeable_inertias(da.Revolute(Z), on_world=True)])
    assert len(family) == 7
    assert all(not np.any(family[:, NAMES.index(name)]) for name in feels)


@pytest.mark.parametrize("parameters", ["second_moments", "inertia"])
@pytest.mark.parametrize("seed", range(6))
def test_simplified_models_move_alike(seed, parameters):
    """RBDA-9.7-EQUIV, RBDA-9.7-SIMPLIFY: M, b, tau and a are unchanged, with external forces; energy too."""
    model = random_tree(seed, 9) if seed < 4 else coupled_tree(seed)
    simple = simplify_inertias(model, parameters=parameters)
    q, v, a, f = state(model, seed)
    changed = [
        np.subtract(x.inertia.leaves(), y.inertia.leaves()) for x, y in zip(model.bodies, simple.bodies)
    ]
    assert np.abs(changed).max() > 0.1
    M = al.mass_matrix(model, q)
    close(al.mass_matrix(simple, q), M, 1e-11)
    close(al.bias_forces(simple, q, v), al.bias_forces(model, q, v), 1e-10)
    tau = al.inverse_dynamics(model, q, v, a, external_forces=f)
    close(al.inverse_dynamics(simple, q, v, a, external_forces=f), tau, 1e-10)
    close(al.forward_dynamics(simple, q, v, tau, external_forces=f), a, 1e-8, terms=(tau,))
    close(al.kinetic_energy(simple, q, v), al.kinetic_energy(model, q, v), 1e-11)
    other, _ = model.random_state(seed + 50)
    rise = [al.potential_energy(m, other.tolist()) - al.potential_energy(m, q) for m in (model, simple)]
    close(rise[0], rise[1], 1e-10, terms=(tau,))


def test_a_free_root_keeps_mass_and_momentum():
    """RBDA-9.7-EQUIV: nothing is lost to the world: total mass, centre of mass and momentum stay."""
    rng = np.random.default_rng(2)
    builder = da.ModelBuilder()
    builder.add_body("b0", "world", da.Free(), placement=place(rng), inertia=inertia(rng))
    for i, kind in enumerate(("revolute", "spherical", "prismatic", "fixed", "revolute")):
        builder.add_body(
            f"b{i + 1}", f"b{i // 2}", JOINTS[kind](rng), placement=place(rng), inertia=inertia(rng)
        )
    model = builder.build()
    simple = simplify_inertias(model)
    q, v, _, _ = state(model, 1)
    close(float(simple.total_mass), float(model.total_mass), 1e-12)
    close(al.momentum(simple, q, v).to_list(), al.momentum(model, q, v).to_list(), 1e-11)
    close(al.center_of_mass(simple, q).to_list(), al.center_of_mass(model, q).to_list(), 1e-11)
    alone = builder_of_one_free_body()
    assert simplify_inertias(alone).bodies[0].inertia.leaves() == alone.bodies[0].inertia.leaves()


def builder_of_one_free_body():
    builder = da.ModelBuilder()
    builder.add_body("stone", "world", da.Free(), inertia=RigidInertia(1.0, (0.1, 0.2, 0.3), (1.0, 1.1, 1.2)))
    return builder.build()


def test_the_pattern_of_zeros_is_predictable():
    """RBDA-9.7-SIMPLIFY: in a chain of revolute joints every body but the first has m = h_z = J_zz = 0 (or
    m = h_z = I_yy = 0); a spherical joint leaves no mass, a prismatic joint no moments.
    """
    for parameters in ("second_moments", "inertia"):
        bodies = simplify_inertias(da.models.gu(5), parameters=parameters).bodies
        for body in bodies[1:]:
            moments = body.inertia.euler_tensor if parameters == "second_moments" else body.inertia.inertia
            numbers = [body.inertia.mass, *body.inertia.h.to_list(), *moments.leaves()]
            assert [name for name, x in zip(NAMES, numbers) if x == 0.0] == (
                ["m", "hz", "zz"] if parameters == "second_moments" else ["m", "hz", "yy"]
            )
        first = bodies[0].inertia
        about_z = first.inertia.zz
        assert first.mass == first.h.z == 0.0
        assert about_z > 0.0
    builder = da.ModelBuilder()
    rng = np.random.default_rng(0)
    for name, parent, joint in (
        ("a", "world", da.Free()),
        ("b", "a", da.Spherical()),
        ("c", "a", da.Prismatic(Z)),
    ):
        builder.add_body(name, parent, joint, placement=place(rng), inertia=inertia(rng))
    _, ball, slide = simplify_inertias(builder.build()).bodies
    assert ball.inertia.mass == 0.0
    assert not any(slide.inertia.inertia.leaves())


@pytest.mark.parametrize(("name", "least"), [("gu", 0.12), ("arm6", 0.15)])
def test_inverse_dynamics_of_the_simplified_model_costs_less(name, least):
    """RBDA-9.7-SIMPLIFY: the book's 15 % of RNEA: counted 12.5 % on GU(6), 19.6 % on a six-joint arm."""
    model = da.models.gu(6) if name == "gu" else da.models.arm6()
    before, after = (
        da.compile(da.inverse_dynamics, m).operation_count.total
        for m in (model, da.identification.simplify_inertias(model))
    )
    assert 1.0 - after / before > least


def test_inertias_of_no_body_are_reported_and_saved():
    """RBDA-9.7-SIMPLIFY: the report names bodies with singular or negative inertias; files keep them."""
    model = da.models.arm6()
    simple = simplify_inertias(model)
    lines = [line for line in simple.report if "that of no body" in line]
    assert {line.split('"')[1] for line in lines} == {body.name for body in simple.bodies}
    again = da.Model.from_json(simple.to_json())
    assert again == simple
    assert again != model
    with pytest.raises(ArgumentError, match="takes a Model, got str"):
        simplify_inertias("arm6")
    with pytest.raises(UnknownNameError, match="parameters"):
        simplify_inertias(model, parameters="mass")


def test_augmented_bodies():
    """RBDA-9.7-AUGMENTED: an augmented body has the mass of its subtree, or of the whole system with a
    particle at its own joint too; where joints only turn, their first moments give the potential energy.
    """
    model = random_tree(7, 8, ("revolute", "spherical", "universal"))
    total = float(model.total_mass)
    for body, one, other in zip(
        model.bodies, augmented_inertias(model), augmented_inertias(model, every_joint=True)
    ):
        close(one.mass, sum(model.bodies[i].inertia.mass for i in model.subtree(body)), 1e-12)
        close(other.mass, total, 1e-12)
    h = [I.h for I in augmented_inertias(model)]

    def energy(q):
        poses = al.forward_kinematics(model, q)
        return -sum(float(model.gravity.dot(poses[b].R @ h[b.index])) for b in model.bodies)

    q, other = (model.random_state(k)[0].tolist() for k in range(2))
    rise = al.potential_energy(model, other) - al.potential_energy(model, q)
    close(energy(other) - energy(q), rise, 1e-10)


def test_methods_that_need_the_inertia_of_each_body_refuse_or_agree():
    """RBDA-9.7-SIMPLIFY: no method of the dynamics gives other numbers for a simplified model in silence."""
    model = random_tree(1, 6, ("revolute", "prismatic", "spherical"))
    simple = simplify_inertias(model)
    q, v, x, _ = state(model, 2)
    arrays = {"q": q, "v": v, "a": x, "tau": x}
    refused = []
    for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        methods = FUNCTIONS[name].methods
        given = [arrays[argument] for argument in FUNCTIONS[name].arguments]
        want = methods[next(iter(methods))](aligned(model), *given)
        for method in sorted(set(methods) - set(NOT_FOR_THIS)):
            try:
                close(methods[method](aligned(simple), *given), want, 1e-7)
            except ModelError:
                refused.append(method)
    assert {"divide_and_conquer", "aba_inverse", "maximal", "luh_walker_paul", "jacobians"} <= set(refused)
    assert not {"aba", "crba", "aba_spatial", "rnea", "rnea_spatial", "rnea_columns"} & set(refused)
