"""Rounding errors of a coordinate system that is far from the body (Featherstone 2008 section 10.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, own_errors
from dalembert.spatial import Force, Motion, RigidInertia, Vec3
from dalembert.spatial.matrices import crf, mcI, xlt

__all__ = ["FarFrameError", "far_frame_error", "radius_of_gyration"]

Array = npt.NDArray[np.float64]

UNIT_BODY: Final = RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
"""Mass and all radii of gyration are one."""
UNIT_SPIN: Final = Motion(Vec3(0.0, 0.0, 1.0), Vec3.zero())
"""A unit rotation about the centre of mass."""
EXAMPLE_FORCE: Final = Force(Vec3(0.0, 0.0, 1.0), Vec3(-1.0, 1.0, 0.0))
"""Magnitude sqrt(2), through the point (1/2, 1/2) seen from the centre of mass."""


@final
@dataclass(frozen=True, slots=True)
class FarFrameError:
    """The error of an acceleration computed in a far frame.

    `distance` from the frame to the centre of mass in radii of gyration; `condition` of the inertia in that
    frame; `acceleration` (6,) as computed there; `error`, the largest entry of its deviation from the exact
    acceleration, evaluated at the centre of mass.
    """

    distance: float
    condition: float
    acceleration: Array
    error: float


@own_errors
def far_frame_error(
    offset: npt.ArrayLike,
    *,
    inertia: RigidInertia = UNIT_BODY,
    velocity: Motion = UNIT_SPIN,
    force: Force = EXAMPLE_FORCE,
    dtype: str = "float64",
) -> FarFrameError:
    """Solve I_O a_O = f_O - v_O x* I_O v_O for a_O in a frame far from the body, and return its error.

    `offset` (3,) or, in the plane, (2,) [m]: the position of the centre of mass in the frame O. `inertia` of
    the body; `velocity` and `force`, angular first, at its centre of mass C and along the frame's axes
    [rad/s, m/s; N m, N]. All arithmetic is in `dtype`, with an error of about eps cond(I_O), where cond(I_O)
    is about |c|^4. The exact a_C comes from the equation at C, where it separates into Newton's and Euler's
    equations.

    The error is constant while |c| is below the radius of gyration and grows with |c|^2 beyond it: keep body
    frames within one or two radii of gyration of the centre of mass.

    Source: Featherstone 2008 section 10.1, Eq. 10.1 and Figure 10.2.

    >>> import dalembert as da
    >>> found = da.analysis.far_frame_error((100.0, 10.0))
    >>> print(f"{found.condition:.3g}, {found.distance:.1f} radii, six digits lost: {found.error > 1e-13}")
    1.02e+08, 100.5 radii, six digits lost: True
    """
    number = np.dtype(dtype).type
    given = [float(x) for x in np.ravel(np.asarray(offset, dtype=np.float64))]
    if len(given) not in (2, 3):
        raise ArgumentError(f"offset has {len(given)} entries; give (x, y, z), or (x, y) for the plane")
    c = [number(x) for x in (*given, 0.0)[:3]]
    at_com = RigidInertia(inertia.mass, (0.0, 0.0, 0.0), inertia.inertia_at_com)
    I_C = _array(mcI(at_com.mass, (0.0, 0.0, 0.0), at_com.inertia_at_com.to_list()), "float64")
    v_C, f_C = _array(velocity.to_list(), "float64"), _array(force.to_list(), "float64")
    exact = np.linalg.solve(I_C, f_C - _array(crf(velocity.to_list()), "float64") @ I_C @ v_C)

    # From C to O, whose position seen from C is -c: v_O = X v_C, f_O = X^-T f_C.
    X = _array(xlt([-x for x in c]), dtype)
    v_O = X @ v_C.astype(dtype)
    f_O = _array(xlt(c), dtype).T @ f_C.astype(dtype)
    I_O = _array(mcI(number(at_com.mass), c, _array(at_com.inertia_at_com.to_list(), dtype).tolist()), dtype)
    a_O = np.linalg.solve(I_O, f_O - _array(crf(v_O.tolist()), dtype) @ (I_O @ v_O))
    back = np.asarray(xlt(c), dtype=np.longdouble) @ a_O.astype(np.longdouble)
    radius = radius_of_gyration(inertia)
    return FarFrameError(
        distance=float(np.linalg.norm(given)) / radius if radius else np.inf,
        condition=float(np.linalg.cond(I_O.astype(np.float64))),
        acceleration=a_O.astype(np.float64),
        error=float(np.abs(back - exact).max()),
    )


def radius_of_gyration(inertia: RigidInertia) -> float:
    """Return sqrt(greatest moment about the centre of mass / mass) [m]; zero for particles and massless
    bodies.
    """
    mass = float(inertia.mass)
    if mass <= 0.0:
        return 0.0
    moments = np.linalg.eigvalsh(np.array(inertia.inertia_at_com.to_list(), dtype=float))
    return float(np.sqrt(max(float(moments[-1]), 0.0) / mass))


def _array(entries: Any, dtype: str) -> Any:
    return np.array(entries, dtype=dtype)
