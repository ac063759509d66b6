"""Nearest points of the surfaces of two shapes, over every kind of scalar.

Each module covers one family of pairs. The number of points depends on the shapes alone, never on where they
are.
"""

from dalembert.contact.narrow_phase.closest import can_touch, closest_points, nearest_point, point_count

__all__ = ["can_touch", "closest_points", "nearest_point", "point_count"]
