"""Derivatives of compiled functions: Jacobians, products with them, and second derivatives."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.conformance.models import KINDS
from tests.finite_differences import differences, states

import dalembert as da
from dalembert import algorithms as al
from dalembert import scalar
from dalembert.compiler import library, lowering
from dalembert.errors import ArgumentError, DtypeError, ShapeError, UnknownNameError
from dalembert.model.configuration import position_rate
from dalembert.model.joints.dual import Dual


@pytest.fixture(scope="module")
def tree() -> da.Model:
    """Every kind of joint with coordinates of its own, quaternions among them."""
    builder = da.ModelBuilder()
    rng = np.random.default_rng(3)
    joints = [
        da.Free(),
        da.Revolute(axis=(0, 0, 1)),
        da.Spherical(),
        da.Prismatic(axis=(1, 0, 0)),
        da.joints.Planar(),
    ]
    for k, joint in enumerate(joints):
        com = rng.normal(size=3)
        inertia = da.RigidInertia(1.0 + k, com.tolist(), np.diag([1.0, 1.2, 1.4 + 0.1 * k]).tolist())
        builder.add_body(f"body{k}", f"body{k - 1}" if k else "world", joint, inertia=inertia)
    return builder.build()


def test_several_arguments_come_from_one_kernel(tree: da.Model):
    """One tuple, an array an argument; fewer operations than the kernels apart."""
    q, v, a = states(tree, 3)
    f = da.compile(da.inverse_dynamics, tree)
    together = f.jacobian("q", "v", "a")
    by_q, by_v, by_a = together(q, v, a)
    for name, found in zip(("q", "v", "a"), (by_q, by_v, by_a), strict=True):
        assert_allclose(found, f.jacobian(name)(q, v, a), atol=1e-11)
    assert_allclose(by_q, differences(lambda x: f(x, v, a), tree, q), atol=1e-6)
    apart = sum(f.jacobian(name).operation_count.total for name in ("q", "v", "a"))
    assert together.operation_count.total < apart


def test_products_are_those_with_the_jacobian(tree: da.Model):
    """J dx and J^T w by their own accumulations, on the tangent space of q, batched."""
    q, v, tau = states(tree, 3)
    f = da.compile(da.forward_dynamics, tree)
    by_q, by_tau = f.jacobian("q", "tau")(q, v, tau)
    rng = np.random.default_rng(2)
    dq, dtau, w = rng.normal(size=(3, *v.shape))
    forward = f.jvp("q", "tau")
    assert list(forward.inputs) == ["q", "v", "tau", "dq", "dtau"]
    expected = (by_q @ dq[..., None] + by_tau @ dtau[..., None])[..., 0]
    assert_allclose(forward(q, v, tau, dq, dtau), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(forward(q, v, tau, dtau=dtau, dq=dq), expected, rtol=1e-9, atol=1e-9)
    reverse = f.vjp("q", "tau")
    assert reverse.inputs["cotangent"] == (tree.nv,)
    along_q, along_tau = reverse(q, v, tau, w)
    assert_allclose(along_q, (w[..., None, :] @ by_q)[..., 0, :], rtol=1e-9, atol=1e-9)
    assert_allclose(along_tau, (w[..., None, :] @ by_tau)[..., 0, :], rtol=1e-9, atol=1e-9)
    one = f.vjp("tau")(q[0], v[0], tau[0], w[0])
    assert_allclose(one, along_tau[0], rtol=1e-12, atol=1e-12)


def test_gradient_of_several_results_has_a_weight_each(tree: da.Model):
    q, v, _ = states(tree, 2)
    f = da.compile(lambda m, q, v: (al.kinetic_energy(m, q, v), al.center_of_mass(m, q)), tree)
    gradient = f.vjp("q", "v")
    assert list(gradient.inputs) == ["q", "v", "cotangent_0", "cotangent_1"]
    (by_q, by_v), (com_q, _) = zip(*f.jacobian("q", "v")(q, v), strict=True)
    w, u = np.array([0.3, -2.0]), np.random.default_rng(0).normal(size=(2, 3))
    along_q, along_v = gradient(q, v, w, u)
    assert_allclose(along_q, w[:, None] * by_q + (u[:, None] @ com_q)[:, 0], atol=1e-10)
    assert_allclose(along_v, w[:, None] * by_v, atol=1e-10)


def test_run_time_parameters_are_arguments_of_derivatives():
    """By mass, inertia, placement, axis and gravity, against differences; values given at the call."""
    model = da.models.arm6()
    names = ("forearm.mass", "forearm.inertia", "elbow.placement", "elbow.axis", "gravity")
    f = da.compile(da.inverse_dynamics, model, parameters=names)
    q, v, a = states(model, 2)
    rng = np.random.default_rng(1)
    given = {key: model.value(key) + 0.1 * rng.normal(size=np.shape(model.value(key))) for key in names}
    given["forearm.inertia"] = given["forearm.inertia"] + given["forearm.inertia"].T
    given["elbow.axis"] = model.value("elbow.axis")
    found = dict(zip(names, f.jacobian(*names)(q, v, a, parameters=given), strict=True))
    h = 1e-6
    for key in names:
        assert found[key].shape == (2, model.nv, *np.shape(model.value(key)))
        for place in np.ndindex(np.shape(given[key])):
            step = np.zeros(np.shape(given[key]))
            step[place] = h
            ahead, behind = (f(q, v, a, parameters={**given, key: given[key] + s * step}) for s in (1, -1))
            assert_allclose(found[key][(..., *place)], (ahead - behind) / (2 * h), atol=1e-6)
    gradient = f.vjp("gravity", "q")(q, v, a, v, parameters=given)[0]
    assert_allclose(gradient, np.einsum("bi,bik->bk", v, found["gravity"]), atol=1e-10)


def test_hessian_products_are_changes_of_the_gradient(tree: da.Model):
    """Forward over reverse against differences of the gradient, with and without a cotangent."""
    q, v, a = states(tree, 1)
    q, v, a = q[0], v[0], a[0]
    f = da.compile(al.kinetic_energy, tree)
    dq, dv, w = np.random.default_rng(4).normal(size=(3, tree.nv))
    product = f.hessian_vector("q", "v")
    assert list(product.inputs) == ["q", "v", "dq", "dv"]
    h = 1e-5
    gradient = f.vjp("q", "v")
    ends = [np.array(gradient(da.integrate(tree, q, s * h * dq), v + s * h * dv, 1.0)) for s in (1, -1)]
    assert_allclose(np.array(product(q, v, dq, dv)), (ends[0] - ends[1]) / (2 * h), atol=1e-5, rtol=1e-7)
    g = da.compile(da.inverse_dynamics, tree)
    contracted = g.hessian_vector("q")(q, v, a, dq, w)
    reverse = g.vjp("q")
    ends = [reverse(da.integrate(tree, q, s * h * dq), v, a, w) for s in (1, -1)]
    assert_allclose(contracted, (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-5)


def test_derivatives_of_derivatives():
    """Full tensors of a small model: the second derivatives of tau by q and v."""
    model = da.models.double_pendulum()
    q, v, a = states(model, 2)
    f = da.compile(da.inverse_dynamics, model)
    tensor = f.jacobian("q").jacobian("v")
    found, h = tensor(q, v, a), 1e-6
    assert found.shape == (2, 2, 2, 2)
    for k, e in enumerate(np.eye(2)):
        ahead, behind = (f.jacobian("q")(q, v + s * h * e, a) for s in (1, -1))
        assert_allclose(found[..., k], (ahead - behind) / (2 * h), atol=1e-6)


def test_derivatives_follow_types_and_fill_given_arrays():
    model = da.models.arm6()
    q, v, tau = states(model, 4)
    f = da.compile(da.forward_dynamics, model, dtype="float32")
    single = [x.astype(np.float32) for x in (q, v, tau)]
    found = f.vjp("q")(*single, single[1])
    assert found.dtype == np.float32
    out = np.empty((4, 6)), np.empty((4, 6))
    g = da.compile(da.forward_dynamics, model)
    result = g.vjp("q", "v")(q, v, tau, v, out=out)
    assert result[0] is out[0]
    assert_allclose(found, out[0], rtol=2e-3, atol=2e-2)
    with pytest.raises(DtypeError, match="compiled for float32"):
        f.vjp("q")(q, v, tau, v)


def test_wrong_arguments_of_derivatives_are_named():
    model = da.models.arm6()
    f = da.compile(da.forward_dynamics, model, parameters=("gravity",))
    with pytest.raises(UnknownNameError, match='unknown argument "u"; valid: "q", "v", "tau", "gravity"'):
        f.vjp("u")
    with pytest.raises(ArgumentError, match=r"jacobian needs the argument.*q, v, tau, gravity"):
        f.jacobian()
    with pytest.raises(ArgumentError, match="named twice: q, q"):
        f.jvp("q", "q")
    q = np.zeros(6)
    with pytest.raises(ShapeError, match=r"cotangent: expected \(6,\), got \(5,\)"):
        f.vjp("q")(q, q, q, np.zeros(5))
    with pytest.raises(ArgumentError, match="needs dq; its arguments are q, v, tau, dq"):
        f.jvp("q")(q, q, q)


def test_inputs_of_derivatives_do_not_take_the_names_of_others():
    """A change of v beside an argument dv; two changes of q one upon the other."""
    model = da.models.pendulum()
    f = da.compile(lambda m, v, dv: scalar.sin(v[0]) * dv[0], model)
    assert list(f.jvp("v").inputs) == ["v", "dv", "ddv"]
    assert_allclose(f.jvp("v")([0.3], [2.0], [5.0]), 10.0 * np.cos(0.3))
    twice = f.jvp("v").jvp("v")
    assert len(twice.inputs) == 4
    assert_allclose(twice([0.3], [2.0], [5.0], [1.0]), -10.0 * np.sin(0.3))


def test_products_by_functions_of_the_library():
    """RBDA-10.4-SYMBOLIC: da.jvp and da.vjp are the methods; what is not compiled is refused."""
    model = da.models.arm6()
    q, v, a = states(model, 2)
    f = da.compile(da.inverse_dynamics, model)
    assert da.jvp(f, "q") is f.jvp("q")
    assert da.vjp(f, "q", "v") is f.vjp("q", "v")
    assert "inverse_dynamics.vjp[q, v](q[6], v[6], a[6], cotangent[6])" in repr(f.vjp("q", "v"))
    power = np.einsum("bi,bi->b", da.vjp(f, "a")(q, v, a, v), v)
    assert_allclose(power, 2.0 * da.dynamics.kinetic_energy(model, q, v), rtol=1e-12)
    with pytest.raises(DtypeError, match=r"da.vjp takes a compiled function, got function; compile it first"):
        da.vjp(da.inverse_dynamics, "q")  # type: ignore[arg-type]


def test_sparsity_says_where_results_are_zero_by_structure():
    """Coordinates of bodies outside a joint's chain and subtree do not reach its torque."""
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, [0.2, 0.1, 0.3], np.diag([1.0, 1.2, 1.4]).tolist())
    for name, parent in (("a", "world"), ("b", "a"), ("c", "a")):
        builder.add_body(name, parent, da.Revolute(axis=(0.6, 0.0, 0.8)), inertia=inertia)
    model = builder.build()
    f = da.compile(da.inverse_dynamics, model).jacobian("v", "a")
    by_v, by_a = f.sparsity
    expected = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1]], bool)
    np.testing.assert_array_equal(by_a, expected)
    assert not (by_v & ~expected).any()
    found = f(*(np.random.default_rng(1).normal(size=(3, 5, 3))))
    for mask, array in zip((by_v, by_a), found, strict=True):
        np.testing.assert_array_equal(np.any(array != 0.0, axis=0), mask)
    assert da.compile(da.dynamics.potential_energy, model).sparsity.shape == ()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "fixed"])
def test_every_joint_type_on_its_tangent_space(kind: str):
    """RBDA-10.4-SYMBOLIC: against dual numbers at 1e-10 and against differences along integrate at 1e-6."""
    model = da.models.random_tree(5, bodies=2, joints=(kind,), armature=0.1)
    f = library.function(model, "inverse_dynamics")
    q, v, a = (x[0] for x in states(model, 1))
    found = np.concatenate(f.jacobian("q", "v", "a")(q, v, a), axis=-1)
    assert_allclose(found[:, : model.nv], differences(lambda x: f(x, v, a), model, q), rtol=1e-6, atol=1e-6)
    columns = []
    for direction in np.eye(3 * model.nv).reshape(3 * model.nv, 3, model.nv):
        parts = [
            [Dual(float(x), float(d), 1) for x, d in zip(point, rate, strict=True)]
            for point, rate in zip(
                (q, v, a),
                (position_rate(model, q.tolist(), direction[0].tolist()), *direction[1:]),
                strict=True,
            )
        ]
        columns.append([getattr(x, "rate", 0.0) for x in al.inverse_dynamics(model, *parts)])
    expected = np.array(columns).reshape(3 * model.nv, model.nv).T
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * (1.0 + np.abs(expected).max(initial=0.0)))
    w = np.linspace(-1.0, 1.0, model.nv)
    gradient = np.concatenate(f.vjp("q", "v", "a")(q, v, a, w))
    assert_allclose(gradient, w @ found, rtol=1e-10, atol=1e-10 * (1.0 + np.abs(expected).max(initial=0.0)))


def test_derivatives_of_library_functions_come_from_the_disk(monkeypatch: pytest.MonkeyPatch):
    """A second, equal model needs no trace, neither for the function nor for its derivatives."""
    traced: list[str] = []
    real = lowering.lower

    def counted(recipe: lowering.Recipe, dtype: str) -> lowering.Lowered:
        traced.append(recipe.name)
        return real(recipe, dtype)

    monkeypatch.setattr("dalembert.compiler.kernels.lower", counted)
    q, v, tau = (np.array([[x]]) for x in (0.3, 0.1, 0.7))
    results = []
    for _ in range(2):
        traced.clear()
        f = library.function(da.models.pendulum(length=1.25, mass=0.75), "forward_dynamics")
        results.append((f(q, v, tau), *f.vjp("q", "tau")(q, v, tau, v), *f.jacobian("q", "v")(q, v, tau)))
    assert traced == []
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
    single = f.vjp("q")(*(x.astype(np.float32) for x in (q, v, tau, v)))
    assert single.dtype == np.float32


@pytest.mark.parametrize("name", ["arm6", "humanoid"])
def test_gradient_of_a_cost_through_forward_dynamics_is_cheap(name: str):
    """RBDA-10.4-SYMBOLIC: by all of q, v and tau for at most five times the operations, here three."""
    model = getattr(da.models, name)()
    f = da.compile(lambda m, q, v, tau: sum(x * x for x in al.forward_dynamics(m, q, v, tau)), model)
    gradient = f.vjp("q", "v", "tau")
    assert gradient.operation_count.total <= 3.2 * f.operation_count.total
    assert gradient.operation_count.trigonometric == f.operation_count.trigonometric


def test_nested_results_keep_their_form_from_call_to_call():
    """RBDA-10.4-SYMBOLIC: a Jacobian of several results by several arguments, single samples."""
    f = da.compile(da.step, da.models.two_link_arm()).jacobian("q", "v")
    z, dt = np.array([0.3, -0.2]), np.array(0.01)
    first, second, batch = f(z, z, z, dt), f(z, z, z, dt), f(z[None], z[None], z[None], dt)
    assert [len(part) for part in first] == [2, 2]
    for i in range(2):
        for j in range(2):
            np.testing.assert_array_equal(first[i][j], second[i][j])
            np.testing.assert_allclose(first[i][j], batch[i][j][0], rtol=0, atol=1e-15)


def test_names_that_are_none_and_pickling_are_refused():
    f = da.compile(da.mass_matrix, da.models.two_link_arm(), parameters=("gravity",))
    with pytest.raises(DtypeError, match="takes names of arguments"):
        f.jacobian(["q"])
    with pytest.raises(DtypeError, match="values by name"):
        f([0.0, 0.0], parameters=[1.0])
    with pytest.raises(DtypeError, match="cannot be pickled"):
        pickle.dumps(f)
    assert copy.deepcopy(f) is f
