"""Cartesian tensors of rotation: the skew matrix of a vector, Euler's inertia tensor, the tensor of angular
acceleration (Balafoutis & Patel 1991; Guenter & Rose 2000, section 1).

With I_c the inertia about the centre of mass and omega the angular velocity of a body,

    J_c   = 1/2 tr(I_c) 1 - I_c                      Euler's tensor, the integral of r r^T dm            (1)
    Omega = dual(omega') + dual(omega) dual(omega)   r'' = Omega r of every vector r fixed in the body   (2)
    dual(I_c omega' + omega x I_c omega) = Omega J_c - (Omega J_c)^T                                     (3)
"""

from __future__ import annotations

from typing import overload

from dalembert.spatial import Mat3, SymMat3, Vec3

__all__ = ["acceleration_tensor", "acceleration_tensor_rate", "dual", "euler_tensor", "moment_of"]


@overload
def dual(x: Vec3) -> Mat3: ...
@overload
def dual(x: Mat3) -> Vec3: ...
def dual(x: Vec3 | Mat3) -> Mat3 | Vec3:
    """Return the skew matrix of a vector, dual(v) w = v x w, or the vector of a skew matrix."""
    if isinstance(x, Vec3):
        return x.skew()
    return Vec3(x.zy, x.xz, x.yx)


def euler_tensor(I_c: SymMat3) -> SymMat3:
    """Return J_c = 1/2 tr(I_c) 1 - I_c [kg m^2] (1)."""
    half = I_c.trace() * 0.5
    return SymMat3(half - I_c.xx, half - I_c.yy, half - I_c.zz, -I_c.xy, -I_c.xz, -I_c.yz)


def acceleration_tensor(omega: Vec3, omega_dot: Vec3) -> Mat3:
    """Return Omega = dual(omega') + dual(omega) dual(omega) [1/s^2] (2)."""
    squared: Mat3 = dual(omega) @ dual(omega)
    return dual(omega_dot) + squared


def acceleration_tensor_rate(omega: Vec3, d_omega: Vec3, d_omega_dot: Vec3) -> Mat3:
    """Return dOmega = dual(d omega') + dual(d omega) dual(omega) + (dual(d omega) dual(omega))^T."""
    turned: Mat3 = dual(d_omega) @ dual(omega)
    return dual(d_omega_dot) + turned + turned.transpose()


def moment_of(Omega: Mat3, J: SymMat3) -> Vec3:
    """Return M of dual(M) = Omega J - (Omega J)^T [N m] (3): Euler's equation, without a product of matrices.

    It is linear in Omega, so that it also takes dOmega to dM.
    """
    W = Omega
    return Vec3(
        J.yy * W.zy - J.zz * W.yz + J.yz * (W.zz - W.yy) + J.xy * W.zx - J.xz * W.yx,
        J.zz * W.xz - J.xx * W.zx + J.xz * (W.xx - W.zz) + J.yz * W.xy - J.xy * W.zy,
        J.xx * W.yx - J.yy * W.xy + J.xy * (W.yy - W.xx) + J.xz * W.yz - J.yz * W.xz,
    )
