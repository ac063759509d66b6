"""Bad input to the functions of the catalogue: constraints, loops, geometry, control, analysis."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.bad_inputs.constrained_chains import INERTIA, LOOP, Z2, Z3, bound, chain, fd, links

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

SIMPLE = da.identification.simplify_inertias(ARM)

Case = tuple[str, Callable[[], Any], type[DalembertError], str]


def closed(function: Any, independent: Any = ("a",)) -> da.Model:
    builder = chain()
    builder.set_loop_closure(function, independent)
    return builder.build()


def rheonomic() -> da.Model:
    driven = da.joints.TimeDependent(
        da.Revolute((0, 1, 0)), da.Prismatic((1, 0, 0)), lambda t: [da.scalar.sin(t)]
    )
    builder = da.ModelBuilder()
    builder.add_body("a", "world", driven, inertia=INERTIA)
    return builder.build()


def massless() -> da.Model:
    builder = chain()
    builder.add_body("hand", "b", da.Revolute((1, 0, 0)), "wrist")
    return builder.build()


def close(**options: Any) -> Any:
    return da.constraints.close_loops(LOOP, [0.3, 0.0, 0.0], **options)


def task(**options: Any) -> Any:
    return da.control.operational_space(ARM, Z2, Z2, "tip", **{"stiffness": 1.0, **options})


def linearized(**options: Any) -> Any:
    return da.control.feedback_linearization(ARM, Z2, Z2, Z2, **{"stiffness": 1.0, **options})


def carried(dt: Any = 0.1, u: Any = Z2, steps: int = 2) -> Any:
    return da.geometry.parallel_transport(ARM, np.zeros((steps + 1, 2)), np.zeros((steps + 1, 2)), u, dt)


def nabla(field: Any, model: Any = ARM) -> Any:
    return da.geometry.covariant_derivative(model, field)(Z2, Z2)


BAD: list[Case] = [
    # stabilization and time steps
    *(
        (f"stabilization {T} of {f.__name__}", functools.partial(f, T), ArgumentError, "stabilization must")
        for T in (0.0, -0.1, np.nan, np.inf)
        for f in (
            lambda T: fd(LOOP, stabilization=T),
            lambda T: da.step(LOOP, Z3, Z3, Z3, 0.01, stabilization=T),
            lambda T: da.dynamics.hybrid_dynamics(LOOP, Z3, Z3, Z3, Z3, stabilization=T),
            lambda T: da.constraints.constraint_forces(LOOP, Z3, Z3, Z3, stabilization=T),
            lambda T: da.constraints.loop_forces(LOOP, Z3, Z3, Z3, stabilization=T),
        )
    ),
    ("stabilization text", lambda: fd(LOOP, stabilization="a"), DtypeError, "stabilization has type"),
    ("stabilization mixed", lambda: fd(LOOP, stabilization=np.array(0.1, np.float32)), DtypeError, "mix"),
    *(
        (
            f"dt {dt}",
            lambda dt=dt: da.geometry.geodesic(ARM, Z2, Z2, dt, 3),
            ArgumentError,
            "dt must be positive",
        )
        for dt in (0.0, -0.1, np.nan)
    ),
    (
        "half a step",
        lambda: da.geometry.geodesic(ARM, Z2, Z2, 0.1, 1.5),
        ArgumentError,
        "steps is 1.5; give a whole",
    ),
    ("steps back", lambda: da.geometry.geodesic(ARM, Z2, Z2, 0.1, -1), ArgumentError, "steps is -1"),
    (
        "no geodesic",
        lambda: da.geometry.geodesic(None, Z2, Z2, 0.1, 1),
        DtypeError,
        "geodesic must be a Model",
    ),
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
    ("no forces of loops", lambda: da.constraints.loop_forces(ARM, Z2, Z2, Z2), ModelError, "no loop joints"),
    ("no constraints", lambda: da.constraints.constraint_forces(ARM, Z2, Z2, Z2), ModelError, "no loops"),
    (
        "not floating",
        lambda: da.floating_base.floating_base_equations(ARM, Z2, Z2),
        ModelError,
        "Free joint that carries",
    ),
    (
        "geodesic of loops",
        lambda: da.geometry.geodesic_acceleration(LOOP, Z3, Z3),
        ModelError,
        "model.tree()",
    ),
    (
        "motion that breaks loops",
        lambda: da.inverse_dynamics(LOOP, Z3, Z3, [1.0, 0, 0]),
        StateError,
        "a breaks the constraints, K a - k is 0.5",
    ),
    *(
        (
            f"{f.__name__} depends on time",
            lambda f=f, n=n: f(rheonomic(), [0.1], *[[0.0]] * n),
            ModelError,
            '"a" depends on time',
        )
        for f, n in (
            (da.geometry.momentum_coordinates, 1),
            (da.geometry.velocity_coordinates, 1),
            (da.geometry.inner_product, 2),
            (da.geometry.coriolis_matrix, 1),
            (da.geometry.hamiltonian, 1),
        )
    ),
    (
        "time for nothing",
        lambda: da.cartesian.maximal_velocities(rheonomic(), [0.1], [0.0]),
        ArgumentError,
        "time=…",
    ),
    ("massless task", lambda: da.control.operational_inertia(massless(), Z3, "hand"), ModelError, "wrist"),
    # simplified inertias have no centres of mass
    *(
        (f"{f.__name__} simplified", functools.partial(f, SIMPLE, Z2, *more), ModelError, "centre of mass")
        for f, *more in (
            (da.cartesian.maximal_velocities, Z2),
            (da.cartesian.maximal_jacobians,),
            (da.cartesian.generalized_velocity, np.zeros((2, 6))),
            (da.cartesian.generalized_force, np.zeros((2, 3))),
            (da.cartesian.cartesian_forces, Z2),
            (da.cartesian.base_wrench, Z2, Z2),
            (da.dynamics.center_of_mass,),
            (da.dynamics.centroidal_momentum, Z2),
        )
    ),
    (
        "simplify nothing",
        lambda: da.identification.simplify_inertias(None),
        ArgumentError,
        "takes a Model, got NoneType",
    ),
    # names
    (
        "kind of symbols",
        lambda: da.geometry.christoffel_symbols(ARM, Z2, kind="frist"),
        UnknownNameError,
        '"first"',
    ),
    ("space", lambda: da.geometry.inner_product(ARM, Z2, Z2, Z2, space="tan"), UnknownNameError, '"tangent"'),
    (
        "prescribed",
        lambda: da.dynamics.hybrid_dynamics(ARM, Z2, Z2, Z2, Z2, prescribed=["elbo"]),
        UnknownNameError,
        'unknown joint "elbo".*nearest: "elbow"',
    ),
    (
        "prescribed text",
        lambda: da.dynamics.hybrid_dynamics(ARM, Z2, Z2, Z2, Z2, prescribed="elbow"),
        ArgumentError,
        r'write \["elbow"\]',
    ),
    ("no forces", lambda: da.cartesian.generalized_force(ARM, Z2), ArgumentError, "none was given"),
    # constraints of the user's
    ("constraint by math", lambda: fd(bound(lambda m, q: [math.sin(q[0])])), TracingError, "scalar"),
    ("constraint by NumPy", lambda: fd(bound(lambda m, q: [np.sin(q[0])])), TracingError, "dalembert.scalar"),
    (
        "constraint by arrays",
        lambda: fd(bound(lambda m, q: [da.dynamics.potential_energy(m, q)])),
        DtypeError,
        "dalembert.algorithms",
    ),
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
    (
        "impossible",
        lambda: da.constraints.close_loops(links(1, 1, 1, 4), Z3),
        StateError,
        "1 of 1 samples stay open",
    ),
    (
        "impossible rows",
        lambda: da.constraints.close_loops(links(1, 1, 1, 4), np.zeros((2, 4, 3))),
        StateError,
        r"8 of 8 samples.*samples \(0, 0\) by 3, \(0, 1\) by 3.* and 3 more",
    ),
    (
        "contrary",
        lambda: da.constraints.close_loops(bound(lambda m, q: [q[0], q[0] - 1.0]), Z2),
        StateError,
        "by 0.5",
    ),
    ("hold all", lambda: close(hold=LOOP.joints.names), StateError, "hold fewer joints"),
    ("hold text", lambda: close(hold="crank_pivot"), ArgumentError, r'names; write \["crank_pivot"\]'),
    ("hold number", lambda: close(hold=3), ArgumentError, "hold is a list of names, got 3"),
    ("hold unknown", lambda: close(hold=["crank"]), UnknownNameError, 'nearest: "crank_pin", "crank_pivot"'),
    ("tolerance", lambda: close(tolerance=0.0), ArgumentError, "tolerance is 0.0; give a positive number"),
    ("tolerance text", lambda: close(tolerance="x"), ArgumentError, "tolerance is 'x'"),
    ("half an iteration", lambda: close(max_iterations=1.5), ArgumentError, "max_iterations is 1.5"),
    (
        "closing a mix",
        lambda: da.constraints.close_loops(LOOP, Z3, Z3.astype(np.float32)),
        DtypeError,
        "mix float types",
    ),
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
    (
        "no part",
        lambda: da.control.operational_inertia(ARM, Z2, "tip", rotation=False, position=False),
        ArgumentError,
        "position, a rotation or both",
    ),
    # compiling what is not compiled
    (
        "compile close_loops",
        lambda: da.compile(da.constraints.close_loops, LOOP),
        ArgumentError,
        "call it as it is",
    ),
    ("compile mobility", lambda: da.compile(da.analysis.mobility, LOOP), ArgumentError, "call it as it is"),
    ("compile an analysis", lambda: da.compile(da.motion.inverse_dynamics, ARM), ArgumentError, "call it"),
    (
        "compile a frame's",
        lambda: da.compile(da.floating_base.floating_base_jacobian, ARM),
        ArgumentError,
        "da.algorithms.floating_base.floating_base_jacobian",
    ),
    (
        "compile a task",
        lambda: da.compile(da.control.operational_space, ARM),
        ArgumentError,
        "da.algorithms.control_laws.operational_space",
    ),
    ("compile for nothing", lambda: da.compile(da.mass_matrix, None), DtypeError, "got NoneType for the"),
    (
        "compile text",
        lambda: da.compile("mass_matrix", ARM),
        DtypeError,
        "takes a function of a model and scalars, got str",
    ),
    (
        "compile with NumPy",
        lambda: da.compile(lambda m, q: np.sin(np.array(q)), ARM)(Z2),
        TracingError,
        "dalembert.scalar",
    ),
    # analysis
    *(
        (f"{f.__name__} of nothing", functools.partial(f, None, *more), DtypeError, "must be a Model")
        for f, *more in (
            (da.analysis.mobility,),
            (da.analysis.actuation,),
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
        for f in (
            da.analysis.mobility,
            da.analysis.actuation,
            da.analysis.accuracy,
            da.analysis.near_singular_loops,
        )
        for what, q, kind, message in (
            ("short", Z2, ShapeError, r"q: expected \(3,\), got \(2,\)"),
            ("of a batch", np.zeros((4, 3)), ShapeError, r"takes one configuration \(3,\)"),
            ("of NaN", [np.nan, 0.0, 0.0], ArgumentError, "q holds a number that is not finite"),
            ("of text", "abc", DtypeError, "q has type"),
        )
    ),
    ("mobility open", lambda: da.analysis.mobility(LOOP, [0.3, 0, 0]), StateError, "loops are open by 0.268"),
    ("mobility of times", lambda: da.analysis.mobility(LOOP, time=[0.1, 0.2]), ShapeError, "takes one time"),
    ("sensitivity of loops", lambda: da.analysis.sensitivity(LOOP, Z3, Z3), ModelError, "model.tree()"),
    ("analysis of a model", lambda: da.motion.inverse_dynamics(ARM), DtypeError, "takes a Clip, got Model"),
    (
        "number of parameters",
        lambda: da.symbolic.equations_of_motion(ARM, parameters=3),
        ArgumentError,
        'names, a mapping or "all", got int',
    ),
    (
        "nothing to condition",
        lambda: da.analysis.condition_number(ARM.lock(ARM.joints.names, Z2)),
        ArgumentError,
        "no velocity variables",
    ),
]


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
