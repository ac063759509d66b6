"""The functions of the catalogue with arrays to call them with: a ball joint's arm, a flyer, a linkage."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import dalembert as da

Array = np.ndarray

INERTIA = da.RigidInertia(1.3, (0.1, 0.05, -0.2), np.diag([0.1, 0.12, 0.09]))

AWAY = da.Transform.from_rotation_translation(np.eye(3), (0.1, 0.2, 0.3))


@functools.cache
def ball_arm() -> da.Model:
    """A ball joint and a slider on it."""
    builder = da.ModelBuilder()
    builder.add_body("ball", "world", da.Spherical(), inertia=INERTIA)
    builder.add_body("arm", "ball", da.Prismatic((0, 1, 0)), inertia=INERTIA, placement=AWAY)
    return builder.build()


@functools.cache
def flyer() -> da.Model:
    """A free body with one joint."""
    builder = da.ModelBuilder()
    builder.add_body("base", "world", da.Free(), inertia=INERTIA)
    builder.add_body("arm", "base", da.Revolute((0, 1, 0)), inertia=INERTIA, placement=AWAY)
    return builder.build()


@functools.cache
def linkage() -> da.Model:
    """A loop closed by a pin, with a ball joint that hangs on it."""
    builder = da.ModelBuilder()
    builder.add_body("crank", "world", da.Revolute((0, 1, 0)), inertia=INERTIA)
    builder.add_body("rod", "crank", da.Revolute((0, 1, 0)), inertia=INERTIA, placement=_along(1.0))
    builder.add_body("ball", "rod", da.Spherical(), inertia=INERTIA, placement=AWAY)
    builder.add_body("slide", "world", da.Prismatic((1, 0, 0)), inertia=INERTIA, placement=_along(3.0))
    builder.add_loop("pin", "slide", "rod", da.Revolute((0, 1, 0)), _along(0.0), _along(2.0))
    return builder.build()


@functools.cache
def rigged() -> da.Model:
    """A ball joint and a slider, with a cable and a rope that an actuator each pulls."""
    builder = da.ModelBuilder()
    builder.add_body("ball", "world", da.Spherical(), inertia=INERTIA)
    builder.add_body("arm", "ball", da.Prismatic((0, 1, 0)), inertia=INERTIA, placement=AWAY)
    for name, height in (("cable", 2.0), ("rope", 1.0)):
        points = [("world", (1.0, 0.0, height)), ("arm", (0.1, 0.2, height))]
        builder.add_spring(name, points, stiffness=height, damping=0.3, limits=(0.0, 4.0))
    builder.add_actuator("winch", {"cable": -2.0, "arm": 0.5}, gain=3.0, control=(-1.0, 1.0))
    builder.add_actuator("servo", {"rope": 1.0}, gain=5.0, bias=(0.1, -5.0, -0.2), force=(-50.0, 50.0))
    return builder.build()


def _along(x: float) -> da.Transform:
    return da.Transform.from_rotation_translation(np.eye(3), (x, 0.0, 0.0))


@functools.cache
def state(model: Callable[[], da.Model]) -> dict[str, Array]:
    """Arrays for all arguments by name, of one sample."""
    made, rng = model(), np.random.default_rng(5)
    q, v = made.random_state(rng)
    q, v = da.constraints.close_loops(made, da.dynamics.normalize(made, q), 0.3 * v) if made.loops else (q, v)
    nv, bodies = made.nv, len(made.bodies)
    return {
        "q": q, "q_ref": q, "v": v, **dict(zip(("a", "tau", "p", "u", "w"), rng.normal(size=(5, nv)))),
        "a_joints": rng.normal(size=max(nv - 6, 0)), "body_velocities": rng.normal(size=(bodies, 6)),
        **dict.fromkeys(("forces", "points", "joint_torques"), rng.normal(size=(bodies, 3))),
        "ctrl": rng.normal(size=len(made.actuators)),
        "position": rng.normal(size=3), "stabilization": np.array(0.2), "dt": np.array(0.01),
    }  # fmt: skip


class Call(NamedTuple):
    """A function with the arrays that it takes by place, or by keyword after a star, and its options."""

    function: Callable[..., Any]
    arguments: str
    options: Mapping[str, Any] = MappingProxyType({})
    model: Callable[[], da.Model] = ball_arm

    def __str__(self) -> str:
        return "-".join([self.function.__name__, *(str(x) for x in self.options.values())])

    @property
    def names(self) -> list[str]:
        return self.arguments.replace("*", "").split()

    def single(self) -> list[Array]:
        return [state(self.model)[name] for name in self.names]

    def __call__(self, values: Any, **more: Any) -> list[Array]:
        by_name = {n[1:]: x for n, x in zip(self.arguments.split(), values, strict=True) if n[0] == "*"}
        by_place = [x for n, x in zip(self.arguments.split(), values, strict=True) if n[0] != "*"]
        found = self.function(self.model(), *by_place, **by_name, **self.options, **more)
        return list(found) if isinstance(found, tuple) else [found]


def at_arm(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a frame, at the arm."""

    @functools.wraps(function)
    def call(model: da.Model, *arrays: Any, **options: Any) -> Any:
        count = 2 if function is da.control.operational_space else 1
        return function(model, *arrays[:count], "arm", *arrays[count:], **options)

    return call


CALLS = [
    Call(da.cartesian.maximal_velocities, "q v"),
    Call(da.cartesian.maximal_jacobians, "q"),
    *(
        Call(da.cartesian.generalized_velocity, "q body_velocities", {"method": method})
        for method in ("least_squares", "pseudo_inverse", "joint_by_joint", "rotations_first")
    ),
    Call(da.cartesian.generalized_force, "q forces *points *joint_torques"),
    Call(da.cartesian.body_torques, "q joint_torques"),
    Call(da.cartesian.cartesian_forces, "q tau"),
    Call(da.cartesian.cartesian_forces_at_points, "q tau points"),
    Call(da.cartesian.joint_torques, "q tau"),
    Call(da.cartesian.base_wrench, "q v a"),
    Call(da.geometry.coriolis_matrix, "q v"),
    Call(da.geometry.coriolis_product, "q v w"),
    Call(da.geometry.mass_matrix_rate, "q v"),
    Call(da.geometry.christoffel_symbols, "q", {"kind": "second"}),
    Call(da.geometry.christoffel_symbols, "q", {"method": "derivatives"}),
    Call(da.geometry.hamiltonian, "q p"),
    Call(da.geometry.hamiltonian_rates, "q p tau"),
    Call(da.geometry.momentum_coordinates, "q v"),
    Call(da.geometry.velocity_coordinates, "q p"),
    Call(da.geometry.inner_product, "q u w"),
    Call(da.geometry.inner_product, "q u w", {"space": "cotangent"}),
    Call(da.geometry.connection_term, "q v u"),
    Call(da.geometry.geodesic_acceleration, "q v"),
    Call(da.dynamics.hybrid_dynamics, "q v tau a", {"prescribed": ("arm",)}),
    Call(da.dynamics.hybrid_dynamics, "q v tau a", {"prescribed": ("arm",), "method": "matrix"}),
    Call(da.dynamics.hybrid_dynamics, "q v tau a *stabilization", {"prescribed": ("crank",)}, linkage),
    Call(da.floating_base.floating_base_inverse_dynamics, "q v a_joints", model=flyer),
    Call(da.floating_base.floating_base_inverse_dynamics, "q v a_joints", {"gravity": "acceleration"}, flyer),
    Call(da.floating_base.floating_base_equations, "q v", model=flyer),
    Call(at_arm(da.floating_base.floating_base_jacobian), "q", model=flyer),
    Call(da.control.actuator_forces, "q v ctrl", model=rigged),
    Call(da.kinematics.spring_lengths, "q", model=rigged),
    Call(da.passive_forces, "q v", model=rigged),
    Call(da.control.gravity_compensation, "q"),
    Call(da.control.feedback_linearization, "q v q_ref", {"stiffness": 3.0}),
    Call(da.control.posture_forces, "q v q_ref", {"stiffness": 3.0}),
    Call(da.control.pd, "q v q_ref", {"kp": 3.0, "kd": 0.5}),
    Call(da.control.stable_pd, "q v q_ref", {"kp": 3.0, "kd": 0.5, "dt": 0.01}),
    Call(at_arm(da.control.operational_space), "q v position", {"stiffness": 3.0}),
    Call(at_arm(da.control.operational_inertia), "q"),
    Call(at_arm(da.control.consistent_inverse), "q"),
    *(
        Call(da.forward_dynamics, "q v tau *stabilization", {"method": method}, linkage)
        for method in ("range_space", "direct", "null_space", "sparse", "maximal", "divide_and_conquer")
    ),
    Call(da.inverse_dynamics, "q v a", {"check": "off"}, linkage),
    Call(da.inverse_dynamics, "q v a", {"check": "off", "method": "null_space"}, linkage),
    Call(da.constraints.constraint_jacobian, "q", model=linkage),
    Call(da.constraints.constraint_bias, "q v", model=linkage),
    Call(da.constraints.constraint_error, "q", model=linkage),
    Call(da.constraints.constraint_forces, "q v tau *stabilization", model=linkage),
    Call(da.constraints.loop_forces, "q v tau", model=linkage),
    Call(da.step, "q v tau dt *stabilization", model=linkage),
    Call(da.constraints.constraint_jacobian, "q"),
    Call(da.constraints.constraint_bias, "q v"),
    Call(da.constraints.constraint_error, "q"),
]  # fmt: skip
