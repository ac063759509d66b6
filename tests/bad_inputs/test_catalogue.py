"""Bad input to the functions of the catalogue: constraints, loops, geometry, control, analysis."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import (
    ArgumentError,
    DalembertError,
    DtypeError,
    ModelError,
    ShapeError,
    StateError,
    TracingError,
    UnknownNameError,
)

ARM = da.models.two_link_arm()
LOOP = da.models.four_bar()
SIMPLE = da.simplify_inertias(ARM)
Z2, Z3 = np.zeros(2), np.zeros(3)
INERTIA = da.RigidInertia(1.0, (0.5, 0.0, 0.0), np.diag([0.1, 0.1, 0.1]))
Case = tuple[str, Callable[[], Any], type[DalembertError], str]


def along(x: float) -> da.Transform:
    return da.Transform.from_rotation_translation(np.eye(3), (x, 0.0, 0.0))


def chain() -> da.ModelBuilder:
    builder = da.ModelBuilder()
    builder.add_body("a", "world", da.Revolute((0, 1, 0)), inertia=INERTIA)
    builder.add_body("b", "a", da.Revolute((0, 1, 0)), inertia=INERTIA, placement=along(1.0))
    return builder


def bound(*functions: Callable[..., Any], kind: Any = "position") -> da.Model:
    """A chain of two bodies with constraints."""
    builder = chain()
    for function in functions:
        builder.add_constraint(function, kind)
    return builder.build()


def closed(function: Any, independent: Any = ("a",)) -> da.Model:
    builder = chain()
    builder.set_loop_closure(function, independent)
    return builder.build()


def fd(model: da.Model, **options: Any) -> Any:
    return da.forward_dynamics(model, *np.zeros((3, model.nv)), **options)


def links(crank: float, coupler: float, rocker: float, ground: float) -> da.Model:
    """A four-bar of these lengths, stretched out along x in its neutral configuration, closed or not."""
    builder = da.ModelBuilder()
    builder.add_body("crank", "world", da.Revolute((0, 1, 0)), inertia=INERTIA)
    builder.add_body("coupler", "crank", da.Revolute((0, 1, 0)), inertia=INERTIA, placement=along(crank))
    builder.add_body("rocker", "world", da.Revolute((0, 1, 0)), inertia=INERTIA, placement=along(ground))
    builder.add_loop("pin", "rocker", "coupler", da.Revolute((0, 1, 0)), along(rocker), along(coupler))
    return builder.build()


def rheonomic() -> da.Model:
    driven = da.TimeDependent(da.Revolute((0, 1, 0)), da.Prismatic((1, 0, 0)), lambda t: [da.scalar.sin(t)])
    builder = da.ModelBuilder()
    builder.add_body("a", "world", driven, inertia=INERTIA)
    return builder.build()


def massless() -> da.Model:
    builder = chain()
    builder.add_body("hand", "b", da.Revolute((1, 0, 0)), "wrist")
    return builder.build()


def close(**options: Any) -> Any:
    return da.close_loops(LOOP, [0.3, 0.0, 0.0], **options)


def task(**options: Any) -> Any:
    return da.control.operational_space(ARM, Z2, Z2, "tip", **{"stiffness": 1.0, **options})


def linearized(**options: Any) -> Any:
    return da.control.feedback_linearization(ARM, Z2, Z2, Z2, **{"stiffness": 1.0, **options})


def carried(dt: Any = 0.1, u: Any = Z2, steps: int = 2) -> Any:
    return da.parallel_transport(ARM, np.zeros((steps + 1, 2)), np.zeros((steps + 1, 2)), u, dt)


def nabla(field: Any, model: Any = ARM) -> Any:
    return da.covariant_derivative(model, field)(Z2, Z2)


BAD: list[Case] = [
    # stabilization and time steps
    *(
        (f"stabilization {T} of {f.__name__}", functools.partial(f, T), ArgumentError, "stabilization must")
        for T in (0.0, -0.1, np.nan, np.inf)
        for f in (
            lambda T: fd(LOOP, stabilization=T),
            lambda T: da.step(LOOP, Z3, Z3, Z3, 0.01, stabilization=T),
            lambda T: da.hybrid_dynamics(LOOP, Z3, Z3, Z3, Z3, stabilization=T),
            lambda T: da.constraint_forces(LOOP, Z3, Z3, Z3, stabilization=T),
            lambda T: da.loop_forces(LOOP, Z3, Z3, Z3, stabilization=T),
        )
    ),
    ("stabilization text", lambda: fd(LOOP, stabilization="a"), DtypeError, "stabilization has type"),
    ("stabilization mixed", lambda: fd(LOOP, stabilization=np.array(0.1, np.float32)), DtypeError, "mix"),
    *(
        (f"dt {dt}", lambda dt=dt: da.geodesic(ARM, Z2, Z2, dt, 3), ArgumentError, "dt must be positive")
        for dt in (0.0, -0.1, np.nan)
    ),
    ("half a step", lambda: da.geodesic(ARM, Z2, Z2, 0.1, 1.5), ArgumentError, "steps = 1.5; give a whole"),
    ("steps back", lambda: da.geodesic(ARM, Z2, Z2, 0.1, -1), ArgumentError, "steps = -1"),
    ("no geodesic", lambda: da.geodesic(None, Z2, Z2, 0.1, 1), DtypeError, "geodesic must be a Model"),
    ("transport dt", lambda: carried(np.nan), ArgumentError, "dt must be positive"),
    ("transport dt text", lambda: carried("x"), DtypeError, "dt has type"),
    ("transport dts", lambda: carried([0.1, 0.2]), ShapeError, r"dt: expected one number .* \(2,\)"),
    ("transport odd", lambda: carried(steps=3), ShapeError, "odd number of times"),
    ("transport u", lambda: carried(u=np.zeros(3)), ShapeError, r"u \(3,\) does not fit"),
    ("step of no model", lambda: da.step(None, Z2, Z2, Z2, 0.1), DtypeError, "step must be a Model"),
    # models without what is asked for
    ("method of loops", lambda: fd(ARM, method="direct"), ModelError, 'method="direct" is for models with'),
    ("method of trees", lambda: fd(LOOP, method="aba"), ModelError, 'method="aba" is for trees'),
    ("no closure", lambda: fd(LOOP, method="loop_closure"), ModelError, "set_loop_closure"),
    ("no forces of loops", lambda: da.loop_forces(ARM, Z2, Z2, Z2), ModelError, "no loop joints"),
    ("no constraints", lambda: da.constraint_forces(ARM, Z2, Z2, Z2), ModelError, "no loops"),
    ("not floating", lambda: da.floating_base_equations(ARM, Z2, Z2), ModelError, "Free joint that carries"),
    ("geodesic of loops", lambda: da.geodesic_acceleration(LOOP, Z3, Z3), ModelError, "model.tree()"),
    ("motion that breaks loops", lambda: da.inverse_dynamics(LOOP, Z3, Z3, [1.0, 0, 0]), StateError,
     "a breaks the constraints, K a - k is 0.5"),
    *(
        (f"{f.__name__} depends on time", lambda f=f, n=n: f(rheonomic(), [0.1], *[[0.0]] * n), ModelError,
         '"a" depends on time')
        for f, n in ((da.momentum_coordinates, 1), (da.velocity_coordinates, 1), (da.inner_product, 2),
                     (da.coriolis_matrix, 1), (da.hamiltonian, 1))
    ),
    ("time for nothing", lambda: da.maximal_velocities(rheonomic(), [0.1], [0.0]), ArgumentError, "time=…"),
    ("massless task", lambda: da.control.operational_inertia(massless(), Z3, "hand"), ModelError, "wrist"),
    # simplified inertias have no centres of mass
    *(
        (f"{f.__name__} simplified", functools.partial(f, SIMPLE, Z2, *more), ModelError, "centre of mass")
        for f, *more in (
            (da.maximal_velocities, Z2),
            (da.maximal_jacobians,),
            (da.generalized_velocity, np.zeros((2, 6))),
            (da.generalized_force, np.zeros((2, 3))),
            (da.cartesian_forces, Z2),
            (da.base_wrench, Z2, Z2),
            (da.center_of_mass,),
            (da.centroidal_momentum, Z2),
        )
    ),
    ("simplify nothing", lambda: da.simplify_inertias(None), ArgumentError, "takes a Model, got NoneType"),
    # names
    ("kind of symbols", lambda: da.christoffel_symbols(ARM, Z2, kind="frist"), UnknownNameError, '"first"'),
    ("space", lambda: da.inner_product(ARM, Z2, Z2, Z2, space="tan"), UnknownNameError, '"tangent"'),
    ("prescribed", lambda: da.hybrid_dynamics(ARM, Z2, Z2, Z2, Z2, prescribed=["elbo"]), UnknownNameError,
     'unknown joint "elbo".*nearest: "elbow"'),
    ("prescribed text", lambda: da.hybrid_dynamics(ARM, Z2, Z2, Z2, Z2, prescribed="elbow"), ArgumentError,
     r'write \["elbow"\]'),
    ("no forces", lambda: da.generalized_force(ARM, Z2), ArgumentError, "none was given"),
    # constraints of the user's
    ("constraint by math", lambda: fd(bound(lambda m, q: [math.sin(q[0])])), TracingError, "scalar"),
    ("constraint by NumPy", lambda: fd(bound(lambda m, q: [np.sin(q[0])])), TracingError, "dalembert.scalar"),
    ("constraint by arrays", lambda: fd(bound(lambda m, q: [da.potential_energy(m, q)])), DtypeError,
     "dalembert.algorithms"),
    ("constraint with if", lambda: fd(bound(lambda m, q: [q[0] if q[0] >= 0 else q[1]])), TracingError, "se"),
    ("no list", lambda: bound(lambda m, q: q[0]), ModelError, "returned a float; return a list"),
    ("nothing", lambda: bound(lambda m, q: None), ModelError, "returned a NoneType"),
    ("nested", lambda: bound(lambda m, q: [[q[0]]]), ModelError, "among its numbers"),
    ("no residuals", lambda: bound(lambda m, q: []), ModelError, "returned no residuals"),
    ("not a number", lambda: bound(lambda m, q: [q[0] + math.nan]), ModelError, "is nan at the neutral"),
    ("fails", lambda: bound(lambda m, q: [1 / 0]), ModelError, "ZeroDivisionError: division by zero"),
    ("arguments", lambda: bound(lambda q: q), ModelError, r"takes \(q\); write function\(model, q\)"),
    ("no function", lambda: bound(3), ModelError, "give a function.*not int"),  # type: ignore[arg-type]
    ("not linear", lambda: bound(lambda m, q, v: [v[0] * v[1]], kind="velocity"), ModelError, "not linear"),
    ("kind", lambda: bound(lambda m, q: [q[0]], kind="positon"), UnknownNameError, 'nearest: "position"'),
    ("time", lambda: fd(bound(lambda m, q, time: [q[0] - time])), ArgumentError, "pass time=…"),
    ("twice", lambda: bound(along_a, along_a), ModelError, 'already a constraint "along_a"'),
    ("closure short", lambda: closed(lambda m, y: [y[0]]), ModelError, "returned 1 numbers; .* has 2"),
    ("closure number", lambda: closed(lambda m, y: 3.0), ModelError, "returned a float"),
    ("closure by math", lambda: fd(closed(lambda m, y: [y[0], math.sin(y[0])])), TracingError, "scalar"),
    ("closure names", lambda: closed(lambda m, y: [y[0], y[0]], ["c"]), UnknownNameError, 'joint "c"'),
    ("closure text", lambda: closed(lambda m, y: [y[0], y[0]], "a"), ModelError, r'write \["a"\]'),
    # close_loops
    ("impossible", lambda: da.close_loops(links(1, 1, 1, 4), Z3), StateError, "1 of 1 samples stay open"),
    ("impossible rows", lambda: da.close_loops(links(1, 1, 1, 4), np.zeros((2, 4, 3))), StateError,
     r"8 of 8 samples.*samples \(0, 0\) by 3, \(0, 1\) by 3.* and 3 more"),
    ("contrary", lambda: da.close_loops(bound(lambda m, q: [q[0], q[0] - 1.0]), Z2), StateError, "by 0.5"),
    ("hold all", lambda: close(hold=LOOP.joints.names), StateError, "hold fewer joints"),
    ("hold text", lambda: close(hold="crank_pivot"), ArgumentError, r'write hold=\["crank_pivot"\]'),
    ("hold number", lambda: close(hold=3), ArgumentError, "hold takes a list of joint names"),
    ("hold unknown", lambda: close(hold=["crank"]), UnknownNameError, 'nearest: "crank_pin", "crank_pivot"'),
    ("tolerance", lambda: close(tolerance=0.0), ArgumentError, "tolerance is 0.0; give a positive number"),
    ("tolerance text", lambda: close(tolerance="x"), ArgumentError, "tolerance is 'x'"),
    ("half an iteration", lambda: close(max_iterations=1.5), ArgumentError, "max_iterations is 1.5"),
    ("closing a mix", lambda: da.close_loops(LOOP, Z3, Z3.astype(np.float32)), DtypeError, "mix float types"),
    # vector fields
    ("field number", lambda: nabla(lambda m, q: 3), ArgumentError, "field returned a int; return a list"),
    ("field short", lambda: nabla(lambda m, q: [q[0]]), ArgumentError, "has 1 components; return 2"),
    ("field by math", lambda: nabla(lambda m, q: [math.sin(q[0]), 0.0]), TracingError, "dalembert.scalar"),
    ("field by NumPy", lambda: nabla(lambda m, q: [np.sin(q[0]), 0.0]), TracingError, "dalembert.scalar"),
    ("no field", lambda: nabla(3), DtypeError, "field must be a function, got int"),
    ("field of nothing", lambda: nabla(lambda m, q: q, None), DtypeError, "must be a Model, got NoneType"),
    # control
    ("gain negative", lambda: linearized(stiffness=-1.0), ArgumentError, "stiffness has negative numbers"),
    ("gain of three", lambda: linearized(stiffness=[1, 2, 3]), ShapeError, r"or 2, got shape \(3,\)"),
    ("gain text", lambda: linearized(damping="soft"), DtypeError, "damping has type"),
    ("gain missing", lambda: linearized(stiffness=None), ArgumentError, "stiffness is missing"),
    ("v_ref", lambda: linearized(v_ref=[1.0]), ShapeError, r"v_ref: expected \(2,\), got \(1,\)"),
    ("no target", lambda: task(), ArgumentError, "give a position, a rotation or both"),
    ("position of two", lambda: task(position=Z2), ShapeError, r"position: expected \(3,\), got \(2,\)"),
    ("no rotation", lambda: task(rotation=np.zeros((3, 3))), StateError, "no rotation matrix, .* off by 1"),
    ("mirror", lambda: task(rotation=-np.eye(3)), StateError, "no rotation matrix"),
    ("epsilon", lambda: task(position=Z3, regularization=-1.0), ArgumentError, "regularization is -1.0"),
    ("no part", lambda: da.control.operational_inertia(ARM, Z2, "tip", rotation=False, position=False),
     ArgumentError, "position, a rotation or both"),
    # compiling what is not compiled
    ("compile close_loops", lambda: da.compile(da.close_loops, LOOP), ArgumentError, "call it as it is"),
    ("compile mobility", lambda: da.compile(da.mobility, LOOP), ArgumentError, "call it as it is"),
    ("compile an analysis", lambda: da.compile(da.motion.inverse_dynamics, ARM), ArgumentError, "call it"),
    ("compile a frame's", lambda: da.compile(da.floating_base_jacobian, ARM), ArgumentError,
     "da.algorithms.floating_base.floating_base_jacobian"),
    ("compile a task", lambda: da.compile(da.control.operational_space, ARM), ArgumentError,
     "da.algorithms.control_laws.operational_space"),
    ("compile for nothing", lambda: da.compile(da.mass_matrix, None), DtypeError, "got NoneType for the"),
    ("compile text", lambda: da.compile("mass_matrix", ARM), DtypeError,
     "takes a function of a model and scalars, got str"),
    ("compile with NumPy", lambda: da.compile(lambda m, q: np.sin(np.array(q)), ARM)(Z2), TracingError,
     "dalembert.scalar"),
    # analysis
    *(
        (f"{f.__name__} of nothing", functools.partial(f, None, *more), DtypeError, "must be a Model")
        for f, *more in (
            (da.mobility,),
            (da.actuation,),
            (da.analysis.accuracy,),
            (da.analysis.near_singular_loops,),
            (da.analysis.condition_number,),
            (da.analysis.sensitivity, Z2, Z2),
            (da.analysis.round_off,),
            (da.analysis.count_function, "mass_matrix"),
            (da.analysis.count_methods,),
        )
    ),
    *(
        (f"{f.__name__} {what}", functools.partial(f, LOOP, q), kind, message)
        for f in (da.mobility, da.actuation, da.analysis.accuracy, da.analysis.near_singular_loops)
        for what, q, kind, message in (
            ("short", Z2, ShapeError, r"q: expected \(3,\), got \(2,\)"),
            ("of a batch", np.zeros((4, 3)), ShapeError, r"takes one configuration \(3,\)"),
            ("of NaN", [np.nan, 0.0, 0.0], ArgumentError, "q holds a number that is not finite"),
            ("of text", "abc", DtypeError, "q has type"),
        )
    ),
    ("mobility open", lambda: da.mobility(LOOP, [0.3, 0, 0]), StateError, "loops are open by 0.268"),
    ("mobility of times", lambda: da.mobility(LOOP, time=[0.1, 0.2]), ShapeError, "takes one time"),
    ("sensitivity of loops", lambda: da.analysis.sensitivity(LOOP, Z3, Z3), ModelError, "model.tree()"),
    ("analysis of a model", lambda: da.motion.inverse_dynamics(ARM), DtypeError, "takes a Clip, got Model"),
    ("number of parameters", lambda: da.symbolic.equations_of_motion(ARM, parameters=3), ArgumentError,
     'names, a mapping or "all", got int'),
    ("nothing to condition", lambda: da.analysis.condition_number(ARM.lock(ARM.joints.names, Z2)),
     ArgumentError, "no velocity variables"),
]  # fmt: skip


def along_a(model: da.Model, q: Any) -> Any:
    return [q[0]]


@pytest.mark.parametrize(
    ("call", "kind", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_input_is_refused_with_fact_and_place(
    call: Callable[[], Any], kind: type[DalembertError], message: str
):
    with pytest.raises(kind, match=message):
        call()


def test_constraints_take_functions_of_every_make():
    """Lambdas, closures, partials, methods, objects, with further defaults: all the same constraint."""
    ratio = 0.5

    class Gear:
        def __call__(self, model: da.Model, q: Any) -> Any:
            return [q[0] - 0.5 * q[1]]

        def meshed(self, model: da.Model, q: Any) -> Any:
            return [q[0] - 0.5 * q[1]]

    def own(model: da.Model, q: Any, k: float = 0.5) -> Any:
        return (q[0] - k * q[1],)

    functions: list[Callable[..., Any]] = [
        lambda model, q: [q[0] - ratio * q[1]],
        functools.partial(own, k=ratio),
        own,
        Gear(),
        Gear().meshed,
        lambda model, q: np.array([q[0] - ratio * q[1]]),
    ]
    found = [fd(bound(function)) for function in functions]
    for a in found:
        np.testing.assert_array_equal(a, found[0])
    assert found[0][0] == pytest.approx(0.5 * found[0][1])


def test_redundant_and_contrary_constraints_have_one_motion():
    """A relation twice binds once; relations that cannot both hold still have a finite acceleration."""
    once = fd(bound(lambda m, q: [q[0] - q[1]]))
    twice = fd(bound(lambda m, q: [q[0] - q[1], 2.0 * q[0] - 2.0 * q[1], 0.0]))
    np.testing.assert_allclose(twice, once, rtol=1e-12)
    assert np.isfinite(fd(bound(lambda m, q: [q[0], q[0] - 1.0]))).all()


def test_hybrid_dynamics_refuses_what_loops_forbid():
    """One of the three joints may be prescribed at will, two only by accelerations that keep the loop."""
    q, v = da.close_loops(LOOP, np.full(3, 0.1), np.ones(3))
    one, two = LOOP.joints.names[:1], LOOP.joints.names[:2]
    a, _ = da.hybrid_dynamics(LOOP, q, v, Z3, [5.0, 0.0, 0.0], prescribed=one)
    kept, tau = da.hybrid_dynamics(LOOP, q, v, Z3, a, prescribed=two, stabilization=0.1)
    np.testing.assert_allclose(kept, a, rtol=1e-9)
    np.testing.assert_allclose(da.forward_dynamics(LOOP, q, v, tau), a, rtol=1e-9)
    rows = np.stack([a, a + [0.0, 1.0, 0.0], a])
    with pytest.raises(
        StateError, match=r"sample \(1,\): the prescribed accelerations break the constraints"
    ):
        da.hybrid_dynamics(LOOP, q, v, Z3, rows, prescribed=two)
    flagged, _ = da.hybrid_dynamics(LOOP, q, v, Z3, rows, prescribed=two, check="flag")
    np.testing.assert_array_equal(np.isnan(flagged).all(axis=1), [False, True, False])
    assert np.isfinite(da.hybrid_dynamics(LOOP, q, v, Z3, rows, prescribed=two, check="off")).all()


def test_operational_inertia_feels_the_loops():
    """A five-bar's tool has two freedoms: Lambda is the inverse of J A J^T there, A the constrained M^-1."""
    model = da.models.five_bar()
    q = da.close_loops(model, model.neutral() + 0.1)
    J = da.jacobian(model, q, "tool")[3:]
    N = np.linalg.svd(da.constraint_jacobian(model, q))[2][2:].T
    A = N @ np.linalg.solve(N.T @ da.mass_matrix(model, q) @ N, N.T)
    plane = np.ix_([0, 2], [0, 2])
    Lambda = da.control.operational_inertia(model, q, "tool", rotation=False)
    np.testing.assert_allclose(Lambda[plane], np.linalg.inv((J @ A @ J.T)[plane]), rtol=1e-8)
    inverse = da.control.consistent_inverse(model, q, "tool", rotation=False)
    np.testing.assert_allclose((J @ inverse)[plane], np.eye(2), atol=1e-8)
    np.testing.assert_allclose(da.constraint_jacobian(model, q) @ inverse, 0.0, atol=1e-8)


def test_recorded_motion_of_a_linkage():
    """A spline through closed positions keeps the loops only nearly: refused, unless checks are off; then
    the forces produce the allowed acceleration nearest to the recorded one."""
    time = np.linspace(0.0, 1.0, 21)
    start = np.stack([0.3 * np.sin(time), 0.0 * time, 0.0 * time], axis=1)
    clip = da.motion.Clip.from_positions(LOOP, time, da.close_loops(LOOP, start, hold=["crank_pivot"]))
    with pytest.raises(StateError, match="a breaks the constraints"):
        da.motion.inverse_dynamics(clip)
    tau = da.motion.inverse_dynamics(clip, check="off").tau
    found = da.forward_dynamics(LOOP, clip.q, clip.v, tau)
    M = da.mass_matrix(LOOP, clip.q)
    K = da.constraint_jacobian(LOOP, clip.q)
    missing = da.constraint_bias(LOOP, clip.q, clip.v) - np.einsum("tij,tj->ti", K, clip.a)
    A = K @ np.linalg.solve(M, K.transpose(0, 2, 1))
    impulse = np.linalg.pinv(A, rcond=1e-9) @ missing[..., None]
    nearest = clip.a + np.linalg.solve(M, K.transpose(0, 2, 1) @ impulse)[..., 0]
    np.testing.assert_allclose(found, nearest, atol=1e-8)


METHODS = (None, "direct", "null_space", "sparse", "maximal", "divide_and_conquer")


@pytest.mark.parametrize("lengths", [(1, 2, 1, 2), (1, 3, 2, 2)])
def test_stretched_loops_have_the_motion_that_all_methods_agree_on(lengths: tuple[float, ...]):
    """Where all links lie on a line K loses rank: finite, the dense solution, by every method."""
    model = links(*lengths)
    tau = np.array([1.0, 0.2, -0.4])
    _, v = da.close_loops(model, Z3, np.array([1.0, 0.0, 0.0]))
    K, k = da.constraint_jacobian(model, Z3), da.constraint_bias(model, Z3, v)
    _, s, V = np.linalg.svd(K)
    N = V[(s > 1e-9).sum() :].T
    assert N.shape == (3, 2)
    M, b = da.mass_matrix(model, Z3), da.bias_forces(model, Z3, v)
    own = np.linalg.lstsq(K, k, rcond=1e-9)[0]
    expected = own + N @ np.linalg.solve(N.T @ M @ N, N.T @ (tau - b - M @ own))
    for method in METHODS:
        np.testing.assert_allclose(da.forward_dynamics(model, Z3, v, tau, method=method), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar", "stewart", "ladder"])
def test_loops_close_from_far_away_in_any_precision(name: str):
    """Random configurations of bundled linkages all close; float32 is taken, the result is float64."""
    model = getattr(da.models, name)()
    rng = np.random.default_rng(3)
    q = np.array([model.random_state(rng)[0] for _ in range(40)]).reshape(4, 10, -1).astype(np.float32)
    q[1, 2] = np.nan
    found = da.close_loops(model, q.astype(np.float64) if name == "stewart" else q)
    assert found.dtype == np.float64
    gaps = np.abs(da.constraint_error(model, found)).max(axis=-1)
    assert np.isnan(gaps[1, 2])
    assert np.isnan(gaps).sum() == 1
    assert np.nanmax(gaps) < 1e-10


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar"])
def test_a_minute_of_a_linkage_stays_closed(name: str):
    """Runge and Kutta's method with the default stabilisation; a five-bar is chaotic, its energy too."""
    model = getattr(da.models, name)()
    q, v = da.close_loops(model, model.neutral(), 0.5 * np.ones(model.nv))
    energy = da.kinetic_energy(model, q, v) + da.potential_energy(model, q)
    for _ in range(12_000):
        q, v = da.step(model, q, v, np.zeros(model.nv), 0.005, integrator="rk4")
    assert np.abs(da.constraint_error(model, q)).max() < 1e-4
    if name != "five_bar":
        kept = da.kinetic_energy(model, q, v) + da.potential_energy(model, q)
        assert kept == pytest.approx(energy, rel=1e-4)
