"""Forces of a fluid on moving bodies: viscous and pressure drag, lift and added mass.

Legend: omega, u: angular velocity of a shape, and velocity of its centre relative to the fluid [rad/s, m/s],
along its axes; rho, beta: density and viscosity of the fluid; n, f: moment about the centre and force on it.

A box with edges s and the mean diameter d = (s_1 + s_2 + s_3) / 3 feels Stokes' drag of a ball and the
dynamic pressure on its faces (MuJoCo's inertia model):

    f_i = - 3 pi d beta u_i          - rho/2 s_j s_k |u_i| u_i                                         (1)
    n_i = - pi d^3 beta omega_i      - rho/64 s_i (s_j^4 + s_k^4) |omega_i| omega_i                    (2)

An ellipsoid with half axes r has the drag of the area A that it projects along u, lift and added mass
(MuJoCo's ellipsoid model; coefficients in the order of `COEFFICIENTS`: c_b, c_s, c_a, c_k, c_m):

    f = - (beta 3 pi D + rho |u| (c_b A + c_s (A_max - A))) u + c_m rho V omega x u + Kutta + p x omega (3)
    n = - (beta pi D^3 + rho |c_a I omega + c_s (I_max - I) omega|) omega + p x u + L x omega           (4)

with D the mean diameter, V the volume, p and L the momenta of the added mass, and Kutta's lift
c_k rho cos(alpha) A (m x u) x u, alpha between u and the normal m of the projected area.
"""

from __future__ import annotations

import math
from typing import Final

from dalembert.algorithms.aligned import original_model
from dalembert.algorithms.declaration import NO_LOADS, public
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.model.force_elements import DragShape, Fluid
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, absolute, maximum, sqrt
from dalembert.spatial import Force, Motion, Vec3

MIN_SQUARE: Final = 1e-30
"""The least square of a speed, and of a divisor: roots have derivatives, and quotients are finite."""


@public("dynamics", "q v", method="tree", differentiable=True, without=NO_LOADS)
def fluid_forces(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> list[Scalar]:
    """Compute the joint forces tau_f = sum J^T f(J v - wind) `(…, nv)` [N m or N] of the fluid on the bodies.

    `model.fluid` has the density, the viscosity and the wind, and the shapes that it acts on; zero without.
    They are part of `passive_forces`. MuJoCo's `qfrc_fluid`.

    >>> builder = da.ModelBuilder()
    >>> solid = da.shapes.Sphere(0.1).inertia(mass=1.0)
    >>> builder.add_body("ball", "world", da.Prismatic((1, 0, 0)), inertia=solid)
    >>> builder.set_fluid(viscosity=0.5)
    >>> builder.add_drag_shape("skin", "ball", (0.2, 0.2, 0.2))
    >>> print(da.dynamics.fluid_forces(builder.build(), [0.0], [2.0]).round(4))  # 3 pi d beta u
    [-1.885]
    """
    if tree.fluid is None or not tree.fluid.shapes:
        return [0.0] * tree.nv
    model = original_model(tree)
    fluid = tree.fluid
    velocities = body_velocities(model, q, v, time=time)
    wind = any(fluid.wind)
    poses = forward_kinematics(model, q, time=time) if wind else None
    acting = [Force.zero()] * len(model.bodies)
    for shape in fluid.shapes:
        body = model.bodies[shape.body].index
        X = shape.placement.as_transform()
        motion = X.apply(velocities[body])
        if poses is not None:
            blown = X.R.transposed_times(poses[body].rotate_to_child(fluid.wind))
            motion = Motion(motion.angular, motion.linear - blown)
        force = _on_box if shape.coefficients is None else _on_ellipsoid
        acting[body] = acting[body] + X.inverse_apply(force(shape, fluid, motion))
    joints = [body.jcalc(q, None, time) for body in model.bodies]
    return model.project_forces(PerBody(list(zip(joints, acting, strict=True))))


def _on_box(shape: DragShape, fluid: Fluid, motion: Motion) -> Force:
    """Compute Eqs. (1) and (2)."""
    s, d = shape.size, sum(shape.size) / 3.0
    omega, u = [*motion.angular], [*motion.linear]
    n, f = [], []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        turning = fluid.density / 64.0 * s[i] * (s[j] ** 4 + s[k] ** 4)
        pressure = 0.5 * fluid.density * s[j] * s[k]
        n.append(-(math.pi * d**3 * fluid.viscosity + turning * absolute(omega[i])) * omega[i])
        f.append(-(3.0 * math.pi * d * fluid.viscosity + pressure * absolute(u[i])) * u[i])
    return Force(Vec3(*n), Vec3(*f))


def _on_ellipsoid(shape: DragShape, fluid: Fluid, motion: Motion) -> Force:
    """Compute Eqs. (3) and (4)."""
    assert shape.coefficients is not None
    blunt, slender, angular, kutta, magnus = shape.coefficients
    r, rho, beta = shape.size, fluid.density, fluid.viscosity
    omega, u = motion.angular, motion.linear
    _, middle, large = sorted(r)
    D, volume = 2.0 / 3.0 * sum(r), 4.0 / 3.0 * math.pi * r[0] * r[1] * r[2]
    speed = _length(u)

    # The projected area A and its normal, from the areas of the three sections.
    section = [r[1] * r[2], r[2] * r[0], r[0] * r[1]]
    normal = Vec3(*(a * a * x for a, x in zip(section, u, strict=True)))
    along = normal.dot(u)
    spread = sum(a**4 * x * x for a, x in zip(section, u, strict=True))
    area = math.pi * sqrt(maximum(spread, MIN_SQUARE) / maximum(along, MIN_SQUARE))
    cosine = along / maximum(speed * spread, MIN_SQUARE)
    lift = normal.cross(u).cross(u) * (kutta * rho * cosine * area)

    # The moments of the dynamic pressure on the turning surface.
    I_max = 8.0 / 15.0 * math.pi * middle * large**4
    I = [8.0 / 15.0 * math.pi * r[i] * max(r[(i + 1) % 3], r[(i + 2) % 3]) ** 4 for i in range(3)]
    turning = Vec3(*(w * (angular * m + slender * (I_max - m)) for w, m in zip(omega, I, strict=True)))

    drag = 3.0 * math.pi * D * beta + rho * speed * (
        area * blunt + slender * (math.pi * large * middle - area)
    )
    twist = math.pi * D**3 * beta + rho * _length(turning)
    masses, moments = shape.added_inertia[:3], shape.added_inertia[3:]
    p = Vec3(*(rho * m * x for m, x in zip(masses, u, strict=True)))
    L = Vec3(*(rho * m * w for m, w in zip(moments, omega, strict=True)))
    n = p.cross(u) + L.cross(omega) - omega * twist
    f = p.cross(omega) + omega.cross(u) * (magnus * rho * volume) + lift - u * drag
    return Force(n, f)


def _length(x: Vec3) -> Scalar:
    return sqrt(maximum(x.dot(x), MIN_SQUARE))
