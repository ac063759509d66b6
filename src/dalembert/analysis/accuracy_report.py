"""A report of the properties of a model that cost accuracy (Featherstone 2008 section 10.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dalembert.analysis.conditioning import (
    RANK_TOLERANCE,
    condition_number,
    constrained_inertia,
    constraint_matrix,
    has_constraints,
)
from dalembert.analysis.configurations import one_configuration
from dalembert.analysis.far_frames import radius_of_gyration
from dalembert.analysis.plausibility import Finding, Severity
from dalembert.errors import DalembertError, own_errors
from dalembert.model.model import Model
from dalembert.model.system import WORLD_NAME
from dalembert.model.topology import ConnectivityGraph

__all__ = ["AccuracyReport", "accuracy", "depths", "near_singular_loops"]

Array = npt.NDArray[np.float64]

FAR_DISTANCE_RATIO: Final = 2.0
"""Distance from a frame to the centre of mass, in radii of gyration, up to which no digits are lost."""
VERY_FAR_DISTANCE_RATIO: Final = 100.0
"""Distance in radii of gyration from which four digits are lost."""
MAX_MASS_RATIO: Final = 1e3
"""Mass ratio of two bodies of one material, one ten times as long as the other."""
MAX_INERTIA_RATIO: Final = 1e5
"""Ratio of the moments of inertia of such bodies."""
NEARLY_SINGULAR_RATIO: Final = 1e-3
"""Relative singular value of K below which a loop is near a change of its mobility."""
ILL_CONDITIONED_LIMIT: Final = 1e4
"""Condition number from which four digits may be lost in the accelerations."""
MAX_VARIABLES: Final = 300
"""The condition number is omitted for more velocity variables: its cost grows with their cube."""


@final
@dataclass(frozen=True, slots=True)
class AccuracyReport:
    """The result of `accuracy`.

    `findings`, most severe first; `condition` of M scaled to a unit diagonal; `digits` of the accelerations
    that remain correct, by float type; `depth` of the tree, and `least_depth` over other choices of loop
    joints.
    """

    model: str
    findings: tuple[Finding, ...]
    condition: float
    digits: dict[str, float]
    depth: int
    least_depth: int

    def summary(self) -> str:
        """Return the report as text, one finding a line."""
        kept = ", ".join(f"{digits:.0f} in {dtype}" for dtype, digits in self.digits.items())
        depth = f"depth {self.depth}"
        lines = [
            f"{self.model}: the mass matrix amplifies relative errors by up to {self.condition:.3g}",
            f"right digits of the accelerations, at worst: {kept}",
            f"{depth}, {self.least_depth} is possible" if self.least_depth < self.depth else depth,
        ]
        lines += [
            f"{found.severity}: {found.where}: {found.message} [{found.rule}]" for found in self.findings
        ]
        if not self.findings:
            lines.append("nothing that costs digits")
        return "\n".join(lines)


@own_errors
def accuracy(model: Model, q: npt.ArrayLike | None = None) -> AccuracyReport:
    """Report what increases the error = cond(M) eps: far frames, inertia ratios, nearly singular loops.

    q (nq,): the configuration at which the mass matrix and the loops are evaluated, by default neutral. A
    frame is far if it is more than two radii of gyration from the centre of mass. Neighbours should not
    differ by more than 1000 in mass or 100,000 in moments of inertia (bodies of one material, one ten times
    as long). A loop is nearly singular if a singular value of K is below a thousandth of the largest. A
    spanning tree should be as shallow as its loops allow. Bodies on fixed joints are merged into those that
    carry them.

    Source: Featherstone 2008 sections 10.1 and 10.2.

    >>> import dalembert as da
    >>> print(da.analysis.accuracy(da.models.two_link_arm()).summary())
    two_link_arm: the mass matrix amplifies relative errors by up to 16.2
    right digits of the accelerations, at worst: 14 in float64, 6 in float32
    depth 2
    nothing that costs digits
    """
    position = one_configuration(model, q, "accuracy")
    whole = model.lumped() if model.nv else model
    depth, least = depths(model)
    condition = _condition(whole, position)
    found = [
        *_far_frames(whole),
        *_inertia_ratios(whole),
        *near_singular_loops(whole, position),
        *_conditioning(condition),
        *_depth(depth, least),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return AccuracyReport(
        model=model.name,
        findings=tuple(sorted(found, key=lambda finding: order[finding.severity])),
        condition=condition,
        digits={name: _digits(name, condition) for name in ("float64", "float32")},
        depth=depth,
        least_depth=least,
    )


@own_errors
def near_singular_loops(model: Model, q: npt.ArrayLike | None = None) -> list[Finding]:
    """Find loops whose equations K(q) a = k are nearly dependent at q (nq,), by default neutral.

    A singular value of K is then below a thousandth of the largest, but not zero: equations that are always
    dependent, as in planar loops, do no harm.

    Source: Featherstone 2008 section 10.1.

    >>> import dalembert as da
    >>> flat = da.models.four_bar(ground=1.0, crank=0.3, coupler=1.0, rocker=0.3 + 1e-9)
    >>> print(da.analysis.near_singular_loops(flat)[0].rule)
    nearly singular loop
    """
    position = one_configuration(model, q, "near_singular_loops")
    if not has_constraints(model) or not model.nv:
        return []
    try:
        K = constraint_matrix(model, position)
    except DalembertError:  # composite and user joints need not know how to close a loop
        return []
    singular = np.linalg.svd(K, compute_uv=False)
    if not singular.any():
        return []
    ratios = singular / singular[0]
    small = ratios[(ratios > RANK_TOLERANCE) & (ratios < NEARLY_SINGULAR_RATIO)]
    if not small.size:
        return []
    return [
        Finding(
            "warning",
            "nearly singular loop",
            "loops",
            f"their equations are nearly dependent: a singular value of K is {small[-1]:.1e} of the largest, "
            f"so that forces in the loops lose {-math.log10(small[-1]):.0f} digits; move away from this "
            "configuration, or change the geometry",
        )
    ]


def depths(model: Model) -> tuple[int, int]:
    """Return the depth of the tree and the least depth over all spanning trees of the same joints."""
    own: list[int] = []
    for body in model.bodies:
        own.append(1 + (own[body.parent] if body.parent >= 0 else 0))
    depth = max(own, default=0)
    if not model.loops:
        return depth, depth
    names = (WORLD_NAME, *(body.name for body in model.bodies))
    arcs = {f"joint {body.name}": (names[body.parent + 1], body.name) for body in model.bodies}
    arcs |= {
        f"loop {loop.name}": (names[loop.predecessor + 1], names[loop.successor + 1])
        for loop in model.loops
        if loop.predecessor != loop.successor
    }
    neighbours = ConnectivityGraph(arcs, WORLD_NAME).neighbours
    reached, front, least = {WORLD_NAME}, [WORLD_NAME], 0
    while True:
        front = [other for node in front for _, other in neighbours[node] if other not in reached]
        if not front:
            return depth, least
        reached |= set(front)
        least += 1


def _condition(model: Model, q: Array) -> float:
    if not 0 < model.nv <= MAX_VARIABLES or constrained_inertia(model, q).shape[-1] == 0:
        return 1.0 if not model.nv else math.nan
    return float(condition_number(model, q, scaled=True))


def _digits(dtype: str, condition: float) -> float:
    eps = float(np.finfo(dtype).eps)
    return max(0.0, -math.log10(eps * max(condition, 1.0))) if condition == condition else math.nan


def _far_frames(model: Model) -> Iterator[Finding]:
    for body in model.bodies:
        radius = radius_of_gyration(body.inertia)
        distance = math.sqrt(sum(float(x) ** 2 for x in body.inertia.com)) if body.inertia.mass > 0.0 else 0.0
        if not 0.0 < FAR_DISTANCE_RATIO * radius < distance:
            continue
        ratio = distance / radius
        severity: Severity = "warning" if ratio > VERY_FAR_DISTANCE_RATIO else "note"
        yield Finding(
            severity,
            "far frame",
            f'body "{body.name}"',
            f"its centre of mass is {ratio:.3g} radii of gyration from its frame, which costs up to "
            f"{2.0 * math.log10(ratio):.1f} digits; put the frame nearer",
        )


def _inertia_ratios(model: Model) -> Iterator[Finding]:
    for body in model.bodies:
        if body.parent < 0:
            continue
        parent = model.bodies[body.parent]
        pairs = (
            ("mass", float(body.inertia.mass), float(parent.inertia.mass), MAX_MASS_RATIO),
            (
                "moment of inertia",
                _moment(model, body.index),
                _moment(model, parent.index),
                MAX_INERTIA_RATIO,
            ),
        )
        for name, own, other, limit in pairs:
            if own > 0.0 and other > 0.0 and max(own / other, other / own) > limit:
                yield Finding(
                    "warning",
                    "inertia ratio",
                    f'body "{body.name}"',
                    f'its {name} and that of its parent "{parent.name}" differ by a factor of '
                    f"{max(own / other, other / own):.3g}; merge the lighter one, or check the units",
                )
                break


def _moment(model: Model, index: int) -> float:
    inertia = model.bodies[index].inertia
    return float(inertia.mass) * radius_of_gyration(inertia) ** 2


def _conditioning(condition: float) -> Iterator[Finding]:
    if condition > ILL_CONDITIONED_LIMIT:
        lost = "all" if math.isinf(condition) else f"up to {math.log10(condition):.0f}"
        yield Finding(
            "warning",
            "mass matrix",
            "model",
            f"its condition number, scaled to a unit diagonal, is {condition:.2g}: {lost} digits are lost in "
            "accelerations, whatever the algorithm; they are as uncertain as the forces are",
        )


def _depth(depth: int, least: int) -> Iterator[Finding]:
    if least < depth:
        yield Finding(
            "note",
            "depth",
            "model",
            f"its tree has a depth of {depth}, but {least} is possible if the loops are cut at other joints, "
            "which is more accurate and cheaper",
        )
