"""Independent oracles: 6x6 NumPy formulas straight from the definitions, and random physical values."""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dalembert.spatial import ArticulatedInertia, Force, Mat3, Motion, RigidInertia, Transform, Vec3

Array = NDArray[np.float64]
ZERO = np.zeros((3, 3))
ONE = np.eye(3)


def skew(a: Array) -> Array:
    """The matrix with skew(a) @ b = a x b, from NumPy's own cross product."""
    return np.stack([np.cross(a, e) for e in ONE], axis=1)


def cross_motion(v: Array) -> Array:
    return np.block([[skew(v[:3]), ZERO], [skew(v[3:]), skew(v[:3])]])


def cross_force(v: Array) -> Array:
    return -cross_motion(v).T


def plucker(R: Array, p: Array) -> Array:
    """X from parent to child: the inverse of [[R, 0], [p x R, R]]."""
    return np.linalg.inv(np.block([[R, ZERO], [skew(p) @ R, R]]))


def inertia_matrix(mass: float, com: Array, inertia_at_com: Array) -> Array:
    """The 6x6 inertia from the kinetic energy: T = m |v_C|^2 / 2 + w . I_C w / 2 with v_C = v_O + w x c."""
    to_com = np.block([[ONE, ZERO], [-skew(com), ONE]])
    at_com = scipy.linalg.block_diag(inertia_at_com, mass * ONE)
    return to_com.T @ at_com @ to_com


def array(value: object) -> Array:
    """A spatial value, or a list of lists, as an array."""
    listed = value.to_list() if hasattr(value, "to_list") else value
    return np.array(listed, dtype=float)


class Random:
    """Random spatial values with their dense counterparts."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def vector(self, n: int = 3) -> Array:
        return self.rng.uniform(-2.0, 2.0, n)

    def rotation(self) -> Array:
        Q, _ = np.linalg.qr(self.rng.standard_normal((3, 3)))
        return Q * np.linalg.det(Q)

    def spd(self, n: int = 3) -> Array:
        A = self.rng.standard_normal((n, n))
        return A @ A.T + 0.1 * np.eye(n)

    def motion(self) -> tuple[Motion, Array]:
        v = self.vector(6)
        return Motion.of(v), v

    def force(self) -> tuple[Force, Array]:
        f = self.vector(6)
        return Force.of(f), f

    def transform(self) -> tuple[Transform, Array]:
        R, p = self.rotation(), self.vector()
        return Transform.from_rotation_translation(R, p), plucker(R, p)

    def rigid(self) -> tuple[RigidInertia, Array]:
        mass, com, J = float(self.rng.uniform(0.5, 3.0)), self.vector(), self.spd()
        inertia = np.trace(J) * ONE - J
        return RigidInertia(mass, com, inertia), inertia_matrix(mass, com, inertia)

    def articulated(self) -> tuple[ArticulatedInertia, Array]:
        A = self.spd(6)
        return ArticulatedInertia.from_matrix(A), A

    def vec3(self) -> Vec3:
        return Vec3.of(self.vector())

    def mat3(self) -> Mat3:
        return Mat3.of(self.rng.standard_normal((3, 3)))
