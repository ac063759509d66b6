"""The rate of a moving body's inertia in fixed coordinates."""

from __future__ import annotations

from dalembert.spatial import Motion, RigidInertia, SymMat3

__all__ = ["inertia_rate"]


def inertia_rate(inertia: RigidInertia, v: Motion) -> RigidInertia:
    """Return dI/dt = v x* I - I v x of a rigid body with velocity v, in fixed coordinates
    (Featherstone 2008 §2.13).

    It has the form of an inertia without mass: by blocks, with omega and u the parts of v,

        h'   = mass u + omega x h
        I_O' = omega x I_O - I_O omega x + 2 (h . u) 1 - h u^T - u h^T
    """
    omega, u, h, I = v.angular, v.linear, inertia.h, inertia.inertia
    h_dot = u * inertia.mass + omega.cross(h)
    turned = omega.skew() @ I.to_mat3()
    turned = turned + turned.transpose()
    twice = 2.0 * h.dot(u)
    I_dot = SymMat3(
        turned.xx + twice - 2.0 * h.x * u.x,
        turned.yy + twice - 2.0 * h.y * u.y,
        turned.zz + twice - 2.0 * h.z * u.z,
        turned.xy - h.x * u.y - u.x * h.y,
        turned.xz - h.x * u.z - u.x * h.z,
        turned.yz - h.y * u.z - u.y * h.z,
    )
    return RigidInertia.from_compact(0.0, h_dot, I_dot)
