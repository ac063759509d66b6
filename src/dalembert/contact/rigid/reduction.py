"""Line and surface contacts as the fewest point contacts that do the same."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import positive_number, real_array
from dalembert.contact.rigid.bodies import contact_normal
from dalembert.contact.rigid.lcp import solve_lcp
from dalembert.contact.rigid.starts import require_number
from dalembert.errors import ArgumentError, ShapeError, own_errors

__all__ = ["disc_contacts", "reduce_contacts"]

Array: TypeAlias = npt.NDArray[Any]

MIN_TOLERANCE_RATIO = 1e-12
"""The least tolerance of a disc as a fraction of its radius: two million points on its rim."""


@own_errors
def reduce_contacts(points: Any, directions: Any, *, tolerance: float = 1e-7) -> tuple[int, ...]:
    """Return which of many point contacts of two bodies suffice: those whose normals are not positively
    dependent, n_i = sum_k a_k n_k with a_k >= 0, on the others.

    `points (nc, 3)` [m], `directions (nc, 3)`, or `(3,)` if all are the same, in one frame. Contacts
    between two flat faces leave the corners of the convex hull of their area, along a straight edge on a
    face its two ends; of a disc, every point of its boundary is left, and of the line x = 0 on z = x tan(y)
    every point at all, so these need samples. `tolerance`: how far a normal may be from the cone of the
    others to count as dependent.

    Source: Featherstone 2008 section 11.6, Figure 11.7.

    >>> edge = [[x, 0.0, 0.0] for x in (0.0, 0.3, 0.5, 1.0)]
    >>> da.contact.reduce_contacts(edge, [0.0, 0.0, 1.0])
    (0, 3)
    """
    require_number("tolerance", tolerance, positive=False)
    p = real_array("points", points)
    if p.ndim != 2 or p.shape[1] != 3:
        raise ShapeError(f"points are (nc, 3), got the shape {p.shape}")
    if not np.isfinite(p).all():
        raise ArgumentError("points hold numbers that are not finite")
    centre = p.mean(axis=0) if len(p) else p
    reach = float(np.abs(p - centre).max(initial=0.0)) or 1.0  # moments are then as large as forces
    N = contact_normal((p - centre) / reach, np.broadcast_to(real_array("directions", directions), p.shape)).T
    kept = list(range(len(p)))
    for contact in range(len(p)):
        others = [k for k in kept if k != contact]
        if others and _distance_from_cone(N[:, others], N[:, contact]) <= tolerance:
            kept = others
    return tuple(kept)


@own_errors
def disc_contacts(centre: Any, axis: Any, radius: float, *, tolerance: float) -> Array:
    """Return points p_k = c + r (cos(2 pi k / n) e_1 + sin(2 pi k / n) e_2) `(n, 3)` on the rim of a flat
    disc, which stand for its surface contact.

    n is such that r (1 - cos(pi / n)), by which the regular polygon is smaller than the disc, is within
    `tolerance` [m]; `centre` c `(3,)`, `axis (3,)` across the disc, `radius` r [m].

    Source: Featherstone 2008 section 11.6, Figure 11.7 (d).

    >>> da.contact.disc_contacts([0.0, 0.0, 0.0], [0.0, 0.0, 1.0], 0.5, tolerance=0.01).shape
    (16, 3)
    """
    radius, tolerance = positive_number("radius", radius, "m"), positive_number("tolerance", tolerance, "m")
    if tolerance < MIN_TOLERANCE_RATIO * radius:
        raise ArgumentError(
            f"tolerance is {tolerance:.3g} m for a disc of {radius:.3g} m, which takes millions of points; "
            f"give at least {MIN_TOLERANCE_RATIO * radius:.3g} m"
        )
    n = max(3, int(np.ceil(np.pi / np.arccos(max(1.0 - tolerance / radius, -0.5)))))
    u, middle = real_array("axis", axis), real_array("centre", centre)
    if u.shape != (3,) or middle.shape != (3,):
        raise ShapeError(f"centre and axis have three numbers each, got the shapes {middle.shape}, {u.shape}")
    u = u / np.linalg.norm(u)
    first = np.cross(u, np.eye(3)[np.argmin(np.abs(u))])
    first /= np.linalg.norm(first)
    angle = 2.0 * np.pi * np.arange(n)[:, None] / n
    rim = np.cos(angle) * first + np.sin(angle) * np.cross(u, first)
    return np.asarray(middle + radius * rim)


def _distance_from_cone(N: Array, n: Array) -> float:
    """Return how far n is from sum_k a_k N_k, a_k >= 0: the least squares problem is a complementarity
    problem."""
    a = solve_lcp(N.T @ N, -N.T @ n).force
    return float(np.linalg.norm(N @ a - n))
