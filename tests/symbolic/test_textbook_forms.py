"""The equations of motion that textbooks print, as identities and as they are printed."""

import pytest

import dalembert as da
from dalembert.symbolic import equations_of_motion

sp = pytest.importorskip("sympy")

ORIGIN = (0.0, 0.0, 0.0)


def positive(names):
    return sp.symbols(names, positive=True)


def same(a, b):
    return sp.simplify(sp.expand_trig(sp.expand(a - b))) == 0


def spherical_pendulum():
    """A bob at (sin theta cos phi, sin theta sin phi, -cos theta): phi about z, then theta about -y."""
    builder = da.ModelBuilder(name="spherical_pendulum")
    builder.add_body(
        "bob",
        "world",
        da.joints.Universal((0.0, 0.0, 1.0), (0.0, -1.0, 0.0)),
        "pivot",
        inertia=da.RigidInertia(1.0, (0.0, 0.0, -1.0), ORIGIN),
    )
    return builder.build()


def test_pendulum():
    """m l^2 a + m g l sin q = tau."""
    found = equations_of_motion(da.models.pendulum(), parameters="all")
    assert [str(symbol) for symbol in found.parameters] == ["m", "g", "l"]
    assert str(found) == "g*l*m*sin(q) + l**2*m*qddot = tau"
    assert str(found.kinetic_energy) == "l**2*m*qdot**2/2"
    assert str(found.potential_energy) == "-g*l*m*cos(q)"
    assert str(found.accelerations()[0]) == "(-g*l*m*sin(q) + tau)/(l**2*m)"


def test_double_pendulum_with_relative_angles():
    """TOD-TWOLINK: M11 = m1 l1^2 + m2 (l1^2 + l2^2 + 2 l1 l2 cos q2), M12 = m2 (l2^2 + l1 l2 cos q2), M22 =
    m2 l2^2.
    """
    found = equations_of_motion(da.models.double_pendulum(), parameters="all", coordinates=("q_1", "q_2"))
    M = found.mass_matrix
    assert str(M[0, 0]) == "l_1**2*m_1 + m_2*(l_1**2 + 2*l_1*l_2*cos(q_2) + l_2**2)"
    assert str(M[0, 1]) == "l_2*m_2*(l_1*cos(q_2) + l_2)"
    assert str(M[1, 1]) == "l_2**2*m_2"
    assert str(found.coriolis[0]) == "-l_1*l_2*m_2*qdot_2*(2*qdot_1 + qdot_2)*sin(q_2)"
    assert str(found.coriolis[1]) == "l_1*l_2*m_2*qdot_1**2*sin(q_2)"
    assert str(found.gravity[0]) == "g*l_1*(m_1 + m_2)*sin(q_1) + g*l_2*m_2*sin(q_1 + q_2)"
    assert str(found.gravity[1]) == "g*l_2*m_2*sin(q_1 + q_2)"


def test_double_pendulum_with_absolute_angles():
    """(m1 + m2) l1 t1'' + m2 l2 t2'' cos(t1 - t2) + m2 l2 t2'^2 sin(t1 - t2) + (m1 + m2) g sin t1 = 0, and
    l2 t2'' + l1 t1'' cos(t1 - t2) - l1 t1'^2 sin(t1 - t2) + g sin t2 = 0, for no motors.
    """
    found = equations_of_motion(da.models.double_pendulum(), parameters="all")
    m1, m2, g, l1, l2 = found.parameters
    t, dt, ddt = (sp.symbols(f"{name}1 {name}2", real=True) for name in ("t", "dt", "ddt"))
    absolute = {
        old: new
        for olds, news in zip((found.q, found.v, found.a), (t, dt, ddt))
        for old, new in zip(olds, (news[0], news[1] - news[0]))
    }
    rows = [(equation.lhs).xreplace(absolute) for equation in found.equations]
    difference = t[0] - t[1]
    first = (
        (m1 + m2) * l1 * ddt[0]
        + m2 * l2 * (ddt[1] * sp.cos(difference) + dt[1] ** 2 * sp.sin(difference))
        + (m1 + m2) * g * sp.sin(t[0])
    )
    second = (
        l2 * ddt[1]
        + l1 * ddt[0] * sp.cos(difference)
        - l1 * dt[0] ** 2 * sp.sin(difference)
        + g * sp.sin(t[1])
    )
    assert same(rows[0] - rows[1], l1 * first)
    assert same(rows[1], m2 * l2 * second)


def test_cart_pole():
    """The equations of Barto, Sutton and Anderson 1983, without friction; the pole has the half length l."""
    M, m, l = positive("M m l")
    x, theta = "x", "theta"
    found = equations_of_motion(
        da.models.cart_pole(),
        parameters={
            "cart.mass": M,
            "pole.mass": m,
            "pole.com": (0, 0, l),
            "pole.inertia": sp.diag(m * l**2 / 3, m * l**2 / 3, 0),
            "gravity": (0, 0, -positive("g")),
        },
        coordinates=(x, theta),
        forces="actuated",
    )
    g = positive("g")
    (_, theta), (_, theta_dot), F = found.q, found.v, found.tau[0]
    assert found.tau[1] == 0
    assert str(found.mass_matrix) == "Matrix([[M + m, l*m*cos(theta)], [l*m*cos(theta), 4*l**2*m/3]])"
    assert str(found.coriolis.T) == "Matrix([[-l*m*thetadot**2*sin(theta), 0]])"
    assert str(found.gravity.T) == "Matrix([[0, -g*l*m*sin(theta)]])"
    sin, cos = sp.sin(theta), sp.cos(theta)
    angular = (g * sin + cos * (-F - m * l * theta_dot**2 * sin) / (M + m)) / (
        l * (sp.Rational(4, 3) - m * cos**2 / (M + m))
    )
    linear = (F + m * l * (theta_dot**2 * sin - angular * cos)) / (M + m)
    a = found.accelerations()
    assert sp.simplify(a[1] - angular) == 0
    assert sp.simplify(a[0] - linear) == 0


def test_two_link_arm():
    """d11 = m1 c1^2 + m2 (l1^2 + c2^2 + 2 l1 c2 cos q2) + I1 + I2, h = -m2 l1 c2 sin q2 (Spong 2006)."""
    found = equations_of_motion(da.models.two_link_arm(), parameters="all", coordinates=("q_1", "q_2"))
    M = found.mass_matrix
    assert str(M[0, 0]) == "I_1 + I_2 + c_1**2*m_1 + m_2*(c_2**2 + 2*c_2*l_1*cos(q_2) + l_1**2)"
    assert str(M[0, 1]) == "I_2 + c_2*m_2*(c_2 + l_1*cos(q_2))"
    assert str(M[1, 1]) == "I_2 + c_2**2*m_2"
    C = found.coriolis_matrix()
    assert [str(entry) for entry in C] == [
        "-c_2*l_1*m_2*qdot_2*sin(q_2)",
        "-c_2*l_1*m_2*(qdot_1 + qdot_2)*sin(q_2)",
        "c_2*l_1*m_2*qdot_1*sin(q_2)",
        "0",
    ]
    assert str(found.gravity[1]) == "c_2*g*m_2*cos(q_1 + q_2)"


def test_spherical_pendulum():
    """m l^2 (theta'' - sin theta cos theta phi'^2) + m g l sin theta = 0, (m l^2 sin^2 theta phi')' = 0."""
    found = equations_of_motion(spherical_pendulum(), parameters="all", coordinates=("phi", "theta"))
    assert str(found.mass_matrix) == "Matrix([[l**2*m*sin(theta)**2, 0], [0, l**2*m]])"
    assert str(found.coriolis[1]) == "-l**2*m*phidot**2*sin(theta)*cos(theta)"
    assert str(found.gravity.T) == "Matrix([[0, g*l*m*sin(theta)]])"
    m, _, l = found.parameters
    theta, (phi_dot, theta_dot) = found.q[1], found.v
    assert same(found.coriolis[0], 2 * m * l**2 * sp.sin(theta) * sp.cos(theta) * phi_dot * theta_dot)
    assert str(found.kinetic_energy) == "l**2*m*(phidot**2*sin(theta)**2 + thetadot**2)/2"


def test_bead_on_a_turning_hoop():
    """m R^2 q'' - m R^2 w^2 sin q cos q + m g R sin q = 0, and the hoop's moment I + m R^2 sin^2 q."""
    builder = da.ModelBuilder(name="hoop")
    builder.add_body(
        "hoop", "world", da.Revolute((0.0, 0.0, 1.0)), "spin",
        inertia=da.RigidInertia(2.0, ORIGIN, (1.0, 1.0, 2.0)),
    )  # fmt: skip
    builder.add_body(
        "bead", "hoop", da.Revolute((0.0, 1.0, 0.0)), "slide",
        inertia=da.RigidInertia(0.3, (0.0, 0.0, -1.0), ORIGIN),
    )  # fmt: skip
    found = equations_of_motion(
        builder.build(),
        parameters={"hoop.inertia": sp.diag(1, 1, positive("I")), "bead.mass": "m",
                    "bead.com": (0, 0, -positive("R")), "gravity": (0, 0, -positive("g"))},
        coordinates=("phi", "q"),
    )  # fmt: skip
    assert str(found.mass_matrix) == "Matrix([[I + R**2*m*sin(q)**2, 0], [0, R**2*m]])"
    assert str(found.bias[1]) == "-R**2*m*phidot**2*sin(q)*cos(q) + R*g*m*sin(q)"


def test_euler_equations_of_a_free_body():
    """A w1' = (B - C) w2 w3 and cyclic; q' from v is not v."""
    builder = da.ModelBuilder(name="top", gravity=ORIGIN)
    builder.add_body(
        "body", "world", da.Spherical(), "ball", inertia=da.RigidInertia(1.0, ORIGIN, (1.0, 2.0, 2.5))
    )
    found = equations_of_motion(builder.build(), parameters={"body.inertia": sp.diag(*positive("A B C"))})
    assert str(found.coriolis[0]) == "v_ball_2*v_ball_3*(-B + C)"
    assert len(found.q) == 4
    assert found.position_rates.shape == (4, 1)
    assert same((found.coriolis_matrix() * sp.Matrix(found.v))[1], found.coriolis[1])
    with pytest.raises(da.errors.ArgumentError, match="position_rates"):
        found.in_time()


def test_planar_body():
    """(I + m l^2) w' + m l (vy' + w vx) and m (vx' - w vy - l w^2): a body whose frame is off its centre."""
    builder = da.ModelBuilder(name="puck")
    builder.add_body(
        "puck",
        "world",
        da.joints.Planar(),
        "table",
        inertia=da.RigidInertia(1.0, (0.2, 0.0, 0.0), (0.5, 0.5, 1.0)),
    )
    found = equations_of_motion(builder.build(), parameters=("puck.mass", "puck.com", "puck.inertia"))
    assert str(found.mass_matrix) == "Matrix([[I_zz + l**2*m, 0, l*m], [0, m, 0], [l*m, 0, m]])"
    assert str(found.coriolis[1]) == "-m*v_table_1*(l*v_table_1 + v_table_3)"
    assert found.gravity == sp.zeros(3, 1)
