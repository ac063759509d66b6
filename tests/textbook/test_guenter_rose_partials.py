"""The recursive derivatives of inverse dynamics, for every joint type, couplings and forces of all kinds."""

import numpy as np
import pytest
from tests.algorithms.derivatives.oracles import complex_steps, differences
from tests.algorithms.trees import JOINTS, close, geared_chain, inertia, place, random_tree, state
from tests.textbook.guenter_rose_exact import derivative, jacobians

import dalembert as da
from dalembert.algorithms import aligned, inverse_dynamics, mass_matrix
from dalembert.model import configuration
from dalembert.spatial.value import leaves
from dalembert.textbook import cartesian_tensors as balafoutis_patel
from dalembert.textbook import guenter_rose_partials as guenter_rose
from dalembert.textbook.guenter_rose_partials import inverse_dynamics_partials


def check(model: da.Model, seed: int, tolerance: float = 1e-11, **options) -> None:
    """Against dual numbers through RNEA, in the model's frames and in aligned ones."""
    q, v, a, _ = state(model, seed)
    exact = jacobians(lambda q, v, a: inverse_dynamics(model, q, v, a, **options), model, (q, v, a))
    for tree in (model, aligned(model)):
        found = inverse_dynamics_partials(tree, q, v, a, **options)
        for partial, expected in zip(found, exact, strict=True):
            close(partial, expected, tolerance)


def chain(kind: str) -> da.Model:
    """Two joints of one kind with armature, between hinges."""
    rng = np.random.default_rng(7)
    builder = da.ModelBuilder(gravity=(0.7, -0.4, -9.5))
    for i in range(4):
        joint = JOINTS["revolute" if i % 3 == 0 else kind](rng)
        builder.add_body(
            f"b{i}",
            f"b{i - 1}" if i else "world",
            joint,
            placement=place(rng),
            inertia=inertia(rng),
            armature=0.3 if joint.nv else 0.0,
        )
    return builder.build()


@pytest.mark.parametrize("kind", JOINTS)
def test_partials_of_every_joint_type(kind):
    """GR-DTAU: the report's recursion, and its extension to joints that are no hinges."""
    check(chain(kind), 3)


@pytest.mark.parametrize("frame", ["body", "world", "center"])
def test_external_forces_stay_in_the_frame_where_they_are_given(frame):
    """GR-DTAU: forces that are constant in a body turn with it, others do not."""
    for seed in range(3):
        model = random_tree(seed, 6)
        f = state(model, seed)[3]
        check(model, seed, external_forces=f, external_frame=frame)


def test_coupled_joints_have_the_derivatives_of_the_independent_ones():
    """GR-DTAU: G^T (...) G, with couplings along a chain and across branches."""
    check(geared_chain(2, 4), 1)
    rng = np.random.default_rng(3)
    builder = da.ModelBuilder()
    for name, parent in (("root", "world"), ("left", "root"), ("right", "root"), ("hand", "left")):
        builder.add_body(
            name, parent, JOINTS["revolute"](rng), placement=place(rng), inertia=inertia(rng), armature=0.2
        )
    builder.add_coupling("tendon", {"root": 0.4, "right": 2.0, "hand": -1.0}, offset=0.1)
    check(builder.build(), 2)


def test_motion_prescribed_in_time():
    """GR-DTAU: the time is held, the joint's own velocity and acceleration are part of the motion."""
    solid = da.RigidInertia(1.0, (0.1, 0.2, 0.0), (0.1, 0.2, 0.3))
    builder = da.ModelBuilder()
    drive = da.joints.TimeDependent(da.Fixed(), driver=da.Revolute((1, 2, 0)), motion=lambda t: [t * t])
    builder.add_body("driven", joint=drive, inertia=solid)
    builder.add_body("arm", "driven", da.Prismatic((0, 1, 0)), inertia=solid)
    driven = da.joints.TimeDependent(
        da.Revolute((0, 0, 1)), driver=da.Revolute((1, 2, 0)), motion=lambda t: [t**3]
    )
    builder.add_body("hand", "arm", driven, inertia=solid)
    check(builder.build(), 2, time=0.7)


@pytest.mark.parametrize("joints", [("revolute",), ("universal", "prismatic", "spherical", "planar")])
def test_every_vector_by_complex_steps_and_differences(joints):
    """GR-DW, GR-DWDOT, GR-DOMEGA, GR-DS, GR-DFM, GR-DBACK: of every body, along every variable, by the
    undifferentiated recursion on complex numbers to 1e-12 and by central differences to 1e-6.
    """
    model = random_tree(4, 5, joints)
    at = dict(zip("qva", state(model, 7)[:3]))

    def vectors(model, q, v, a):
        found = balafoutis_patel.balafoutis_patel(model, q, v, a)
        return [(found.moving[b], found.net[b], found.eta[b], found.f[b]) for b in model.bodies]

    exact = complex_steps(vectors, model, at, list("qva"))
    np.testing.assert_allclose(differences(vectors, model, at, list("qva")), exact, atol=1e-6, rtol=1e-6)
    found = guenter_rose.guenter_rose(model, *at.values())
    sizes = (18, 9, 6)
    for number, by in enumerate("qva"):
        for joint in model.bodies:
            for k in range(joint.nv):
                x = guenter_rose.Along(by, joint.index, k)
                row = []
                for body in model.bodies:
                    for parts, size in zip((found.moving, found.net, found.force), sizes, strict=True):
                        row += leaves(parts[body][x]) if x in parts[body] else [0.0] * size
                expected = exact[number * model.nv + joint.v_slice.start + k]
                close(row, expected, 1e-12)


def test_partials_may_be_differentiated_again():
    """GR-DTAU: d(dtau/dq_j)/dv_k = d(dtau/dv_k)/dq_j, by dual numbers through the recursion."""
    model = random_tree(2, 4, ("universal", "rack_pinion", "spherical_euler", "revolute"))
    q, v, a, _ = state(model, 6)

    def partials(q, v, a):
        return inverse_dynamics_partials(model, q, v, a)[:2]

    for j in range(model.nv):
        by_v_again = np.array(derivative(partials, model, (q, v, a), "v", j)[0], dtype=float)
        for k in range(model.nv):
            by_q_again = np.array(derivative(partials, model, (q, v, a), "q", k)[1], dtype=float)
            close(by_v_again[:, k], by_q_again[:, j], 1e-10, terms=(by_v_again,))


def test_links_without_mass():
    """GR-DTAU, GR-MULTIDOF: no mass, no force, and no division by it."""
    model = guenter_rose.stacked_hinges(
        da.models.random_tree(3, bodies=4, joints=("free", "spherical", "planar"))
    )
    massless = [body for body in model.bodies if body.inertia.mass == 0.0]
    assert len(massless) > 4
    check(model, 5, 1e-10)


def test_central_differences_on_the_tangent_space():
    """GR-DTAU: within 1e-8 of central differences, column k along integrate(q, e_k)."""
    model = random_tree(12, 7)
    q, v, a, f = (np.array(x) for x in state(model, 4))
    h = 1e-5

    def tau(q, v, a):
        return np.array(inverse_dynamics(model, q, v, a, external_forces=f.tolist()))

    steps = h * np.eye(model.nv)
    by_q = [
        tau(configuration.integrate(model, q, e), v, a) - tau(configuration.integrate(model, q, -e), v, a)
        for e in steps
    ]
    by_v = [tau(q, v + e, a) - tau(q, v - e, a) for e in steps]
    by_a = [tau(q, v, a + e) - tau(q, v, a - e) for e in steps]
    found = inverse_dynamics_partials(model, q.tolist(), v.tolist(), a.tolist(), external_forces=f.tolist())
    for partial, slopes in zip(found, (by_q, by_v, by_a), strict=True):
        close(partial, np.array(slopes).T / (2.0 * h), 1e-8)


def test_compiled_and_batched():
    """GR-DTAU: the recursion compiles like every function, on batches; against graph derivatives."""
    model = da.models.arm6()
    kernel = da.compile(inverse_dynamics_partials, model)
    rng = np.random.default_rng(1)
    q, v, a = (rng.standard_normal((5, 6)) for _ in range(3))
    graph = da.compile(da.inverse_dynamics, model).jacobian("q", "v", "a")
    for found, expected in zip(kernel(q, v, a), graph(q, v, a), strict=True):
        close(np.reshape(found, expected.shape), expected, 1e-12)


def test_derivative_by_acceleration_is_the_mass_matrix_with_its_zeros():
    """GR-DTAU: dtau/da = H with armature; joints on different branches share exact zeros."""
    model = random_tree(8, 8, branching=1.0)
    q, v, a, _ = state(model, 0)
    by_q, by_v, by_a = inverse_dynamics_partials(model, q, v, a)
    H = mass_matrix(model, q)
    close(by_a, H, 1e-12)
    carriers = {-1: set()}
    for body in model.bodies:
        carriers[body.index] = carriers[body.parent] | {body.index}
    unrelated = [
        (i, j)
        for one in model.bodies
        for other in model.bodies
        if one.index not in carriers[other.index] and other.index not in carriers[one.index]
        for i in range(model.nv)[one.v_slice]
        for j in range(model.nv)[other.v_slice]
    ]
    assert unrelated
    for partial in (by_q, by_v, by_a):
        assert all(partial[i][j] == 0.0 for i, j in unrelated)


def test_loops_and_inertias_without_a_centre_of_mass_are_refused():
    """GR-BACKWARD: both algorithms are for trees, and compute at centres of mass."""
    linkage = da.models.four_bar()
    strange = da.ModelBuilder()
    inertia = da.RigidInertia.from_compact(0.0, da.spatial.Vec3(1.0, 0.0, 0.0), da.spatial.SymMat3.identity())
    strange.add_body("strange", joint=da.Revolute(), inertia=inertia)
    for run in (balafoutis_patel.balafoutis_patel, guenter_rose.guenter_rose):
        with pytest.raises(da.errors.ModelError, match="loops or other constraints"):
            run(linkage, [0.1] * 3, [0.2] * 3, [0.3] * 3)
        with pytest.raises(da.errors.ModelError, match='"strange" has no mass'):
            run(strange.build(inertia="as_given"), [0.1], [0.2], [0.3])
