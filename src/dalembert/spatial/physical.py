"""Inertias that a body can have: mass and moments about the centre of mass of a non-negative density."""

from __future__ import annotations

import math

import numpy as np

from dalembert.spatial.inertia import RigidInertia

__all__ = ["physical_problems"]

RELATIVE_SLACK = 1e-9
"""How far principal moments may break a law, relative to the greatest: flat bodies are at the limit."""

ROUNDING_RATIO = 64 * float(np.finfo(float).eps)
"""Rounding of moments about the centre of mass, relative to the moments about the origin."""


def physical_problems(inertia: RigidInertia) -> list[str]:
    """Return the reasons why no body can have an inertia of plain numbers, one sentence each.

    Mass must not be negative. The principal moments about the centre of mass must not be negative and each
    must be at most the sum of the other two. Limits are allowed: a particle has no moments, a lamina or a
    thin rod has two that sum to the third; a body without mass must be without inertia.
    """
    numbers = [float(item) for item in inertia.leaves()]
    if not all(math.isfinite(item) for item in numbers):
        return [
            f"inertia is not finite: mass {inertia.mass}, mass * com {numbers[1:4]}, inertia {numbers[4:]}"
        ]
    if numbers[0] < 0.0:
        return [f"mass is negative: {numbers[0]:g} kg"]
    if numbers[0] == 0.0:
        return ["mass is zero, but the inertia is not"] if any(numbers) else []
    about_com = np.array(inertia.inertia_at_com.to_list(), dtype=float)
    if not np.isfinite(about_com).all():
        return [
            f"the inertia about the centre of mass overflows: mass {numbers[0]:g}, mass * com {numbers[1:4]}"
        ]
    moments = np.linalg.eigvalsh(about_com)
    slack = RELATIVE_SLACK * float(np.abs(moments).max()) + ROUNDING_RATIO * max(
        abs(item) for item in numbers[4:]
    )
    listed = ", ".join(f"{moment:.6g}" for moment in moments)
    problems = []
    if moments[0] < -slack:
        problems.append(
            f"principal moments about the centre of mass are {listed} kg m^2; none may be negative"
        )
    if moments[0] + moments[1] < moments[2] - slack:
        problems.append(
            f"principal moments about the centre of mass are {listed} kg m^2; the greatest exceeds the sum "
            f"of the others by {moments[2] - moments[0] - moments[1]:.6g} (triangle inequality)"
        )
    return problems
