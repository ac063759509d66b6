"""Convex hulls of every mesh of the packages that the tests compare: time, corners and gap, beside Qhull.

    python benchmarks/mesh_hulls.py [part of the path ...]

Needs example-robot-data, upkie-description, jvrc-description, dm-control and SciPy, as the extra `dev` brings
them. A hull passes if its volume is that of Qhull within 1e-6 and no point is farther outside than 1e-9 of
the extent.
"""

from __future__ import annotations

import importlib.metadata
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from dalembert.errors import ModelError
from dalembert.formats.meshes import READERS, read_mesh
from dalembert.model.shapes.quickhull import convex_hull, reduced_hull

Array = np.ndarray[Any, np.dtype[Any]]

PACKAGES = ("example-robot-data", "upkie-description", "jvrc-description", "dm-control")
TYPICAL_EXTENT = 0.2
"""[m] Extent to which meshes are scaled before they are reduced, since some files are in millimetres."""


def files() -> list[Path]:
    """Every mesh file of the packages."""
    found = []
    for package in PACKAGES:
        distribution = importlib.metadata.distribution(package)
        listed = distribution.files or []
        found += [Path(str(distribution.locate_file(f))) for f in listed if f.suffix.lower() in READERS]
    return sorted(found)


def passes(points: Array, corners: Array, faces: Array) -> bool:
    """Return whether the hull is that of Qhull and has all points inside."""
    low, extent = points.min(axis=0), np.ptp(points, axis=0).max()
    points, corners = (points - low) / extent, (corners - low) / extent
    qhull = ConvexHull(points)
    a, b, c = (corners[faces[:, k]] - 0.5 for k in range(3))
    volume = float(np.einsum("fi,fi->", a, np.cross(b, c))) / 6.0
    directions = qhull.equations[:, :3]
    parts = np.array_split(directions, 1 + len(directions) // 200)
    outer = points[qhull.vertices]
    gap = max(float(((outer @ u.T).max(axis=0) - (corners @ u.T).max(axis=0)).max()) for u in parts)
    return abs(volume / qhull.volume - 1.0) <= 1e-6 and gap <= 1e-9


def measured(points: Array) -> tuple[tuple[float, ...], bool]:
    """Return counts, seconds, and the corners and the gap [mm] of the reduced hull; and whether it passes."""
    start = time.process_time()
    corners, faces = convex_hull(points)
    whole = time.process_time()
    hull = reduced_hull(corners * (TYPICAL_EXTENT / np.ptp(points, axis=0).max()))
    seconds = whole - start, time.process_time() - whole
    row = len(points), len(corners), *seconds, len(hull.corners), hull.gap * 1e3
    return row, passes(points, corners, faces)


def main() -> None:
    chosen = [file for file in files() if not sys.argv[1:] or any(part in str(file) for part in sys.argv[1:])]
    rows, notes = [], []
    for file in chosen:
        try:
            row, good = measured(read_mesh(file).corners)
        except ModelError as error:
            notes.append(f"refused: {file}: {error}")
            continue
        rows.append(row)
        if not good:
            notes.append(f"not the hull of Qhull: {file}")
    table = np.array(rows)
    print(f"{len(chosen)} meshes, {len(rows)} hulls, {len(notes)} refused or not those of Qhull")
    print(f"processor time: hulls {table[:, 2].sum():.1f} s, reductions {table[:, 3].sum():.1f} s")
    print("percentile   points  corners  hull [ms]  reduction [ms]  corners left  gap [mm at 0.2 m]")
    for percent in (50, 90, 99, 100):
        n, h, t, r, left, gap = np.percentile(table, percent, axis=0)
        print(f"{percent:10d} {n:8.0f} {h:8.0f} {t * 1e3:10.1f} {r * 1e3:15.1f} {left:13.0f} {gap:18.2f}")
    print(f"{(table[:, 5] <= 1.0).mean():.1%} of the reduced hulls are within 1 mm at 0.2 m")
    print("\n".join(notes))


if __name__ == "__main__":
    main()
