"""The nearest inertia that a body can have.

The principal moments (A, B, C) about the centre of mass of a non-negative density fill the cone

    A <= B + C,  B <= C + A,  C <= A + B                                                       (1)

whose edges are the thin rods (0, 1, 1), (1, 0, 1), (1, 1, 0). Since (1) is the same for every order of the
moments, the matrix nearest to a given one (Frobenius norm) has its principal axes, and moments that are the
projection of the given ones on the cone.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from dalembert.spatial import RigidInertia, SymMat3, physical_problems

__all__ = ["nearest_physical"]

Array = npt.NDArray[np.float64]

_EDGES: Final = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
_ROUNDING: Final = 1e-12


def nearest_physical(inertia: RigidInertia) -> RigidInertia:
    """Return the nearest physical inertia with the same mass and centre of mass; a physical one is returned
    as it is.

    A body without mass can have no moments at all. Numbers that are not finite (a far centre of mass makes
    moments overflow) have nothing near them and are returned for the model's builder to refuse.
    """
    if not physical_problems(inertia) or not all(math.isfinite(number) for number in inertia.leaves()):
        return inertia
    if inertia.mass == 0.0:
        return RigidInertia.zero()
    about_com = np.array(inertia.inertia_at_com.to_list(), dtype=float)
    if not np.isfinite(about_com).all():
        return inertia
    moments, axes = np.linalg.eigh(about_com)
    I = (axes * _on_cone(moments)) @ axes.T
    repaired = SymMat3(*(float(I[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
    return RigidInertia(inertia.mass, inertia.com, repaired)


def _on_cone(moments: Array) -> Array:
    """Return the point of the cone (1) nearest to the moments: inside, on a face, on an edge, or its tip."""
    candidates = [np.zeros(3)]
    for members in ([0, 1, 2], [0, 1], [0, 2], [1, 2], [0], [1], [2]):
        edges = _EDGES[members]
        weights = np.linalg.lstsq(edges.T, moments, rcond=None)[0]
        if np.all(weights >= -_ROUNDING * np.abs(moments).max()):
            candidates.append(np.maximum(weights, 0.0) @ edges)
    return min(candidates, key=lambda point: float(np.linalg.norm(point - moments)))
