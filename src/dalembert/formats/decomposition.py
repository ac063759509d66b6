"""Convex decomposition of meshes by CoACD (Wei, Liu, Ling, Su 2022), from the extra `decomposition`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalembert.errors import ArgumentError, MissingExtraError, ModelError
from dalembert.formats.triangle_mesh import TriangleMesh, Vertices


def checked_concavity(given: Any) -> float:
    """Return the concavity [m] after checking it."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 < given < math.inf:
        raise ArgumentError(f"concavity is {given!r}; give a finite positive length [m]")
    return float(given)


def convex_pieces(mesh: TriangleMesh, concavity: float) -> list[Vertices]:
    """Return the corners (n, 3) of convex pieces, of which none is more concave than `concavity` [m].

    The pieces are the same every time: CoACD searches with a fixed seed.
    """
    try:
        import coacd
    except ImportError as error:
        raise MissingExtraError(
            "convex decomposition computes with CoACD, which is not installed; "
            "pip install 'dalembert[decomposition]'"
        ) from error
    coacd.set_log_level("error")
    given = coacd.Mesh(mesh.vertices, mesh.faces.astype(np.int32))
    pieces = coacd.run_coacd(given, threshold=concavity, real_metric=True, seed=0)
    if not pieces:
        raise ModelError("convex mesh: CoACD finds no pieces; is the surface closed?")
    return [np.asarray(vertices, dtype=np.float64) for vertices, _ in pieces]
