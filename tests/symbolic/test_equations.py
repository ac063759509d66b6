"""Formulas agree with Lagrange's equations, with the compiled functions, and with one another."""

import re
import subprocess
import sys

import numpy as np
import pytest

import dalembert as da
from dalembert import algorithms
from dalembert.errors import ArgumentError, MissingExtraError, UnknownNameError
from dalembert.symbolic import equations_of_motion

sp = pytest.importorskip("sympy")

rng = np.random.default_rng(7)


def coupled():
    """Two geared joints and a third that is free."""
    builder = da.ModelBuilder(name="geared")
    for i in range(3):
        builder.add_body(
            f"b{i}",
            "world" if i == 0 else f"b{i - 1}",
            da.Revolute((0.0, 1.0, 0.0)),
            f"j{i}",
            placement=da.Transform.from_rotation_translation(
                np.eye(3).tolist(), [0.5 if i else 0.0, 0.0, 0.0]
            ),
            inertia=da.RigidInertia(1.0 + i, (0.2, 0.0, 0.0), (0.1, 0.2, 0.3)),
            armature=0.25 * i,
        )
    builder.add_coupling("gear", {"j0": 2.0, "j1": -1.0}, offset=0.5)
    return builder.build()


MODELS = {
    "two revolutes": lambda: da.models.random_tree(1, bodies=2, joints=["revolute"]),
    "screw and slide": lambda: da.models.random_tree(2, bodies=2, joints=["helical", "prismatic"]),
    "ball": lambda: da.models.random_tree(3, bodies=1, joints=["spherical"]),
    "Euler angles": lambda: da.models.random_tree(4, bodies=1, joints=["spherical_euler"]),
    "rolling": lambda: da.models.random_tree(5, bodies=2, joints=["rack_pinion", "revolute"]),
    "geared": coupled,
}


@pytest.mark.parametrize("name", MODELS)
def test_formulas_have_the_values_of_the_algorithms(name):
    """RBDA-10.4-SYMBOLIC: the same algorithms on SymPy's scalars, simplified, and on floats."""
    model = MODELS[name]()
    found = equations_of_motion(model)
    q = model.random_state(rng)[0].tolist()
    v, tau = rng.normal(size=(2, model.nv)).tolist()
    pairs = {
        "mass_matrix": algorithms.mass_matrix(model, q),
        "bias": algorithms.bias_forces(model, q, v),
        "gravity": algorithms.gravity_forces(model, q),
        "coriolis": algorithms.coriolis_forces(model, q, v),
        "kinetic_energy": algorithms.kinetic_energy(model, q, v),
        "potential_energy": algorithms.potential_energy(model, q),
        "accelerations": algorithms.forward_dynamics(model, q, v, tau),
    }
    for what, expected in pairs.items():
        np.testing.assert_allclose(
            found.lambdify(what)(q, v, tau), expected, rtol=1e-10, atol=1e-11, err_msg=what
        )
    C = found.lambdify("coriolis_matrix")(q, v)
    np.testing.assert_allclose(C @ v, pairs["coriolis"], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", ["two revolutes", "geared"])
def test_they_are_lagranges_equations(name):
    """d/dt dL/dv - dL/dq = tau, derived by SymPy from the energies alone; dM/dt - 2 C is skew."""
    model = MODELS[name]()
    found = equations_of_motion(model)
    L, q, v, a = found.lagrangian, found.q, found.v, found.a
    values = {s: float(x) for s, x in zip((*q, *v, *a), rng.normal(size=3 * model.nv))}
    for i in range(model.nv):
        momentum = sp.diff(L, v[i])
        rate = sum(sp.diff(momentum, q[k]) * v[k] + sp.diff(momentum, v[k]) * a[k] for k in range(model.nv))
        expected = (rate - sp.diff(L, q[i])).subs(values)
        assert float(found.equations[i].lhs.subs(values)) == pytest.approx(
            float(expected), rel=1e-9, abs=1e-10
        )
    M_rate = sum((sp.diff(found.mass_matrix, q[k]) * v[k] for k in range(model.nv)), sp.zeros(model.nv))
    skew = np.array((M_rate - 2 * found.coriolis_matrix()).subs(values), dtype=float)
    np.testing.assert_allclose(skew + skew.T, 0.0, atol=1e-10)


@pytest.mark.parametrize("make", [da.models.four_bar, da.models.slider_crank])
def test_closed_loops_have_multipliers(make):
    """[[M, K^T], [K, 0]] (a, -lambda) = (tau - b, k) gives the accelerations of the closed system."""
    model = make()
    found = equations_of_motion(model, parameters="all")
    q = da.constraints.close_loops(model, rng.normal(scale=0.2, size=model.nq))
    q = q[0] if isinstance(q, tuple) else q
    K = found.lambdify("constraint_jacobian")(q)
    null = np.linalg.svd(K)[2][len(K) :]
    v, tau = null.T @ rng.normal(size=len(null)), rng.normal(size=model.nv)
    A = found.lambdify("kkt_matrix")(q)
    right = np.r_[found.lambdify("right_hand_side")(q, v, tau), found.lambdify("constraint_bias")(q, v)]
    solved = np.linalg.solve(A, right)
    np.testing.assert_allclose(
        solved[: model.nv], da.forward_dynamics(model, q, v, tau), rtol=1e-8, atol=1e-9
    )
    assert len(found.equations) == model.nv + len(K)
    forces = set().union(*(equation.rhs.free_symbols for equation in found.equations[: model.nv]))
    assert set(found.multipliers) <= forces
    lines = found.latex().splitlines()[1:-1]
    assert len(lines) == len(found.equations)
    assert r"\lambda_{1}" in "".join(lines[: model.nv])


def test_all_numbers_may_be_symbols_and_have_other_values():
    model = da.models.double_pendulum()
    found = equations_of_motion(model, parameters="all")
    other = da.models.double_pendulum(lengths=(0.7, 1.3), masses=(2.0, 0.4))
    q, v, tau = rng.normal(size=(3, 2))
    a = found.lambdify("accelerations")(
        q, v, tau, parameters={"l_1": 0.7, "l_2": 1.3, "m_1": 2.0, "m_2": 0.4}
    )
    np.testing.assert_allclose(a, da.forward_dynamics(other, q, v, tau), rtol=1e-12)
    np.testing.assert_allclose(found.lambdify()(q, v, tau), da.forward_dynamics(model, q, v, tau), rtol=1e-12)
    with pytest.raises(UnknownNameError, match='unknown parameter "l_3"'):
        found.lambdify("gravity")(q, parameters={"l_3": 1.0})


def test_parameters_are_chosen_by_name_or_given_as_formulas():
    model = da.models.two_link_arm()
    few = equations_of_motion(model, parameters=("upper.mass", "elbow.placement"))
    assert sorted(map(str, few.parameters)) == ["l_1", "m_1"]
    assert dict(zip(map(str, few.parameters), few.parameters.values())) == {"m_1": 1.0, "l_1": 1.0}
    l = sp.Symbol("l", positive=True)
    given = equations_of_motion(model, parameters={"lower.com": (l / 2, 0, 0)})
    assert "l" in map(str, given.parameters)
    with pytest.raises(ArgumentError, match="no value for l"):
        given.lambdify("gravity")([0.0, 0.0])
    with pytest.raises(UnknownNameError, match=r"upper\.mass"):
        equations_of_motion(model, parameters=("uper.mass",))
    with pytest.raises(ArgumentError, match="2 different names"):
        equations_of_motion(model, coordinates=("x", "x"))


def test_numbers_are_exact():
    """1/12, 9.81 and pi/4 are what they are, not floats."""
    builder = da.ModelBuilder(name="tilted")
    c = float(np.cos(np.pi / 4))
    builder.add_body(
        "bob",
        "world",
        da.Revolute((0.0, 0.0, 1.0)),
        "pivot",
        placement=da.Transform.from_rotation_translation([[c, 0, -c], [0, 1, 0], [c, 0, c]], (0.0, 0.0, 0.0)),
        inertia=da.RigidInertia(1.0 / 3.0, (0.0, 0.25, 0.0), (1.0 / 12.0, 0.0, 1.0 / 12.0)),
    )
    found = equations_of_motion(builder.build())
    assert found.mass_matrix[0, 0] == sp.Rational(5, 48)
    assert found.gravity[0] == -sp.Rational(981, 1200) * sp.sqrt(2) / 2 * sp.cos(found.q[0])


def test_latex_is_well_formed():
    for model in (
        da.models.pendulum(),
        da.models.cart_pole(),
        da.models.double_pendulum(),
        da.models.four_bar(),
    ):
        for parameters in ((), "all"):
            text = equations_of_motion(model, parameters=parameters).latex()
            assert text.startswith("\\begin{aligned}")
            assert text.endswith("\\end{aligned}")
            assert text.count("{") == text.count("}")
            assert text.count(r"\left") == text.count(r"\right")
            assert r"\ddot{q}" in text
            assert all(line.count("&=") == 1 for line in text.splitlines()[1:-1])
            assert not re.search(r"_[^{]", text)
            assert not re.search(r"\d{7}", text)
    found = equations_of_motion(da.models.pendulum(), parameters="all")
    assert found._repr_latex_() == (
        "$$\n\\begin{aligned}\nl^{2} m \\ddot{q} + g l m \\sin{\\left(q \\right)} "
        "&= \\tau\n\\end{aligned}\n$$"
    )
    plain = equations_of_motion(da.models.pendulum()).latex()
    assert r"9.81 \sin{\left(q \right)}" in plain


def test_equations_in_time_are_differential_equations():
    found = equations_of_motion(da.models.pendulum())
    t = sp.Symbol("t", real=True)
    q = sp.Function("q")(t)
    (equation,) = found.in_time(t)
    assert equation.lhs == q.diff(t, 2) + sp.Rational(981, 100) * sp.sin(q)


def test_what_is_too_large_is_refused_with_a_way_out():
    with pytest.raises(ArgumentError, match=r"43 velocity variables.*largest=43.*da\.compile"):
        equations_of_motion(da.models.humanoid())
    with pytest.raises(ArgumentError, match=r"determinants of 5 rows.*da\.forward_dynamics"):
        equations_of_motion(da.models.four_bar()).accelerations()
    with pytest.raises(UnknownNameError, match="mass_matrix"):
        equations_of_motion(da.models.pendulum()).lambdify("mass_matrx")


def test_unsimplified_formulas_are_equal():
    model = da.models.cart_pole()
    plain = equations_of_motion(model, simplify=False)
    q, v = rng.normal(size=(2, 2))
    np.testing.assert_allclose(
        plain.lambdify("bias")(q, v), da.bias_forces(model, q, v), rtol=1e-12, atol=1e-13
    )


def test_importing_the_library_leaves_sympy_alone():
    code = "import dalembert, dalembert.symbolic, sys; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_without_sympy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(MissingExtraError, match=r"dalembert\[symbolic\]"):
        equations_of_motion(da.models.pendulum())


def test_constraints_of_the_user_and_of_time_are_formulas():
    """A bead on the parabola z = x^2; a pendulum whose pivot is shaken along z (Kapitza)."""
    builder = da.ModelBuilder(name="bead")
    builder.add_body(
        "bead",
        "world",
        da.joints.Translation(),
        "wire",
        inertia=da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    )
    builder.add_constraint(lambda model, q: [q[2] - q[0] * q[0], q[1]], kind="position", name="parabola")
    found = equations_of_motion(builder.build(), parameters="all", coordinates=("x", "y", "z"))
    assert str(found.constraint_jacobian) == "Matrix([[-2*x, 0, 1], [0, 1, 0]])"
    assert str(found.constraint_bias.T) == "Matrix([[2*xdot**2, 0]])"
    assert str(found.equations[0].rhs) == "-2*lambda_1*x + tau_x"

    shaken = da.joints.TimeDependent(
        da.Revolute((0.0, 1.0, 0.0)),
        driver=da.Prismatic((0.0, 0.0, 1.0)),
        motion=lambda t: [0.1 * da.scalar.sin(2.0 * t)],
    )
    builder = da.ModelBuilder(name="kapitza")
    builder.add_body(
        "bob", "world", shaken, "pivot", inertia=da.RigidInertia(1.0, (0.0, 0.0, -1.0), (0.0, 0.0, 0.0))
    )
    found = equations_of_motion(builder.build())
    q, t = found.q[0], found.time
    expected = (sp.Rational(981, 100) - sp.Rational(4, 10) * sp.sin(2 * t)) * sp.sin(q)
    assert sp.simplify(found.bias[0] - expected) == 0
