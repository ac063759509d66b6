"""Impulses on rigid bodies, and collisions of two of them.

Spatial vectors are arrays of six numbers, angular first, all in one frame, as in `bodies`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import real_array
from dalembert.contact.rigid.bodies import inertia_matrix, spatial_vector
from dalembert.errors import ArgumentError, ShapeError, StateError, own_errors

__all__ = ["Collision", "body_impulse", "collide_bodies", "collide_bodies_sticking"]

Array: TypeAlias = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class Collision:
    """The result of a collision: `velocities`, (v1, v2) afterwards, `(6,)` each; `impulse (6,)` on the second
    body, its opposite on the first; `multiplier`, the impulse's size along each of the directions it may
    have [N s].
    """

    velocities: tuple[Array, Array]
    impulse: Array
    multiplier: Array


@own_errors
def body_impulse(inertia: Any, velocity_change: Any) -> Array:
    """Return iota = I dv `(6,)`: the impulse that changes a body's velocity by dv, and so its momentum.

    An impulse is the limit of great forces over short times; velocity-dependent forces do not contribute.
    `inertia`: a `RigidInertia`, or a 6 x 6 matrix, which may be an articulated-body inertia I^A of a handle
    (iota = I^A dv); `velocity_change (6,)`. The change that an impulse makes is `np.linalg.solve(I, iota)`.

    Source: Featherstone 2008 section 11.7, Eqs 11.52 to 11.56.

    >>> ball = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    >>> print(da.contact.body_impulse(ball, [3.0, 0.0, 0.0, 0.0, 0.0, 1.5]))
    [0.3 0.  0.  0.  0.  3. ]
    """
    return inertia_matrix(inertia) @ spatial_vector("velocity_change", velocity_change)


@own_errors
def collide_bodies(
    inertia1: Any, velocity1: Any, inertia2: Any, velocity2: Any, normal: Any, *, restitution: float = 0.0
) -> Collision:
    """Collide two bodies without friction: lambda = -(1 + e) n . (v2 - v1) / (n . (I1^-1 + I2^-1) n).

    dv1 = -I1^-1 n lambda, dv2 = I2^-1 n lambda, so that zeta = n . (v2 - v1) becomes -e zeta. Linear and
    angular momentum are kept, energy too if e = 1; otherwise the fraction 1 - e^2 of the
    energy that could be lost is lost.

    `inertia1`, `inertia2`: a `RigidInertia`, a 6 x 6 matrix (of the handle of an articulated body, I^A,
    too), or None for a body that nothing moves; `velocity1`, `velocity2 (6,)`; `normal` n `(6,)` from the
    first body to the second (`contact_normal`); all in one frame. `restitution` e from 0 to 1. Bodies that
    move apart (zeta > 0) do not collide: `StateError`.

    Source: Featherstone 2008 section 11.7, Eqs 11.60 to 11.65.

    >>> ball = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    >>> n = da.contact.contact_normal([0.0, 0.0, 0.0], [1.0, 0.0, 0.0])  # the centres are on this line
    >>> fast, still = np.array([0.0, 0.0, 0.0, 3.0, 0.0, 0.0]), np.zeros(6)
    >>> after = da.contact.collide_bodies(ball, fast, ball, still, n, restitution=1.0)
    >>> print(after.velocities[0][3], after.velocities[1][3], after.multiplier)  # equal balls change places
    0.0 3.0 [6.]
    """
    N = spatial_vector("normal", normal).reshape(6, 1)
    return _collide(inertia1, velocity1, inertia2, velocity2, N, restitution)


@own_errors
def collide_bodies_sticking(
    inertia1: Any, velocity1: Any, inertia2: Any, velocity2: Any, normals: Any, *, restitution: float = 0.0
) -> Collision:
    """Collide two bodies with friction that stops all sliding:
    lambda = -(N^T (I1^-1 + I2^-1) N)^-1 (1 + E) N^T (v2 - v1), E = diag(0, 0, e).

    After the impact the velocities at the point differ by -e zeta_z along the normal alone. `normals` N =
    [n_x, n_y, n_z] `(6, 3)`: unit forces through the point of contact along two tangents and, last, the
    normal (`contact_normal`); the other arguments as in `collide_bodies`.

    This model leaves out: slip that does not stop within the impact, friction about the normal
    (torsional), tangential and torsional restitution, waves through solids and bearings. With e > 0 it can
    create energy where tangential and normal directions are coupled: a rod that strikes the ground
    obliquely. With e = 0 it never does.

    Source: Featherstone 2008 section 11.7, Eqs 11.66 to 11.72.

    >>> ball = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.4, 0.4, 0.4))  # a solid sphere of radius 1 m
    >>> N = da.contact.contact_normal([0.0, 0.0, -1.0], np.eye(3)).T
    >>> sliding = [0.0, 0.0, 0.0, 7.0, 0.0, -1.0]
    >>> after = da.contact.collide_bodies_sticking(None, np.zeros(6), ball, sliding, N).velocities[1]
    >>> print(after[[1, 3]])  # 5/7 of its speed is left, and it rolls
    [5. 5.]
    """
    N = real_array("normals", normals)
    if N.shape != (6, 3):
        raise ShapeError(f"normals are two tangents and the normal, (6, 3); got the shape {N.shape}")
    return _collide(inertia1, velocity1, inertia2, velocity2, N, restitution)


def checked_restitution(given: Any) -> Array:
    """Return coefficients of restitution after checking that they are from 0 to 1."""
    e: Array = real_array("restitution", given)
    if not np.all((e >= 0.0) & (e <= 1.0)):
        raise ArgumentError(f"restitution is from 0 to 1, got {e}")
    return e


def _collide(inertia1: Any, velocity1: Any, inertia2: Any, velocity2: Any, N: Array, e: float) -> Collision:
    """Return the impulse along the columns of N, the last of which is the normal."""
    v1, v2 = spatial_vector("velocity1", velocity1), spatial_vector("velocity2", velocity2)
    if inertia1 is None and inertia2 is None:
        raise ArgumentError("one of the two bodies must be able to move; both inertias are None")
    inverse1, inverse2 = _inverse(inertia1), _inverse(inertia2)
    zeta = N.T @ (v2 - v1)
    if zeta[-1] > 0.0:
        raise StateError(f"the bodies move apart at {zeta[-1]:.3g} m/s along the normal; they do not collide")
    wanted = -zeta  # change of zeta: tangential motion stops, …
    wanted[-1] *= 1.0 + float(checked_restitution(e))  # … normal motion turns back (Eq. 11.71)
    multiplier = np.linalg.solve(N.T @ (inverse1 + inverse2) @ N, wanted)
    impulse = N @ multiplier
    return Collision((v1 - inverse1 @ impulse, v2 + inverse2 @ impulse), impulse, multiplier)


def _inverse(inertia: Any) -> Array:
    return np.zeros((6, 6)) if inertia is None else np.linalg.inv(inertia_matrix(inertia))
