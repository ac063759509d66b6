"""Checks of a model: implausible values, and properties that cost accuracy (Featherstone 2008 section 10.1).

`findings(model)` looks for values that make results wrong: masses, inertias, frames, limits, the mass matrix.
`accuracy(model)` reports on the digits that remain, with stricter limits. Bodies on fixed joints count as
parts of the bodies that carry them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from dalembert import algorithms
from dalembert.algorithms.open_tree import is_constrained
from dalembert.analysis.numerical_error import (
    RANK_TOLERANCE,
    condition_number,
    constrained_inertia,
    constraint_matrix,
    one_configuration,
    radius_of_gyration,
)
from dalembert.errors import DalembertError, own_errors
from dalembert.model import Body, Limits, Model, topology
from dalembert.model.checks import inspect_bodies
from dalembert.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from dalembert.model.topology import WORLD
from dalembert.spatial import Transform, physical_problems

Severity = Literal["error", "warning", "note"]

SEVERITIES: Final = ("error", "warning", "note")
FAR_FRAME: Final = 10.0
"""Radii of gyration from a body's origin to its centre of mass, beyond which rounding loses two digits."""
ACCURATE_FRAME: Final = 2.0
"""The same up to which rounding loses no digits."""
VERY_FAR_FRAME: Final = 100.0
"""The same for four digits: few bodies are so slender, so that the inertia is doubtful too."""
MASS_RATIO: Final = 1000.0
"""Ratio of the masses of neighbours: that of bodies of one material, one ten times as long as the other."""
MOMENT_RATIO: Final = 1e5
"""Ratio of the moments of inertia of such bodies."""
WIDE_GYRATION: Final = 10.0
"""Ratio of the radius of gyration to the size of a body, above which the inertia is doubtful."""
SMALLEST_SIZE: Final = 1e-6
"""Sizes [m] below this are rounding errors of coincident joints."""
ILL_CONDITIONED: Final = 1e4
"""Condition number of the scaled mass matrix from which four digits may be lost in the accelerations."""
MAX_CONDITION_NUMBER: Final = 1e8
"""Condition number of the scaled mass matrix beyond which half of the digits are lost."""
SINGULAR_CONDITION_NUMBER: Final = 1e13
"""Condition number beyond which accelerations mean nothing in double precision."""
LOOP_GAP: Final = 1e-6
"""Closure error [m, rad] of a loop that counts as closed."""
NEARLY_SINGULAR_RATIO: Final = 1e-3
"""Relative singular value of K below which a loop is near a change of its mobility."""
MAX_CONDITION_NV: Final = 300
"""The condition number is left out for more velocity variables: it takes their cube in time."""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its severity, the violated rule, the body, joint or loop, and what was found.

    "error": no body can be so, or dynamics cannot be computed; "warning": dynamics are computed, but are
    probably not what was meant, or lose digits; "note": worth knowing.
    """

    severity: Severity
    rule: str
    where: str
    message: str


def findings(model: Model) -> list[Finding]:
    """Return every finding, errors first."""
    whole = model.lumped() if model.nv else model
    massless = list(_moving_masses(whole))
    return _by_severity(
        _inertias(whole),
        massless,
        _inertia_ratios(whole, "mass ratio", {"mass": MASS_RATIO}),
        _far_frames(whole, FAR_FRAME),
        _limits(model),
        () if any(finding.severity == "error" for finding in massless) else _conditioning(whole),
        _loops(model),
        _loader_findings(model),
    )


def _by_severity(*found: Iterable[Finding]) -> list[Finding]:
    return sorted(chain(*found), key=lambda finding: SEVERITIES.index(finding.severity))


def _inertias(model: Model) -> Iterator[Finding]:
    reach = [0.0] * len(model.bodies)  # from each body's origin to the farthest joint on it [m]
    for body in model.bodies:
        if body.parent >= 0:
            reach[body.parent] = max(reach[body.parent], float(body.placement.as_transform().p.norm()))
    for body in model.bodies:
        for problem in physical_problems(body.inertia):
            yield Finding("error", "inertia", _body(body), problem)
        radius = radius_of_gyration(body.inertia)
        size = _size(body, reach[body.index])
        if size > SMALLEST_SIZE and radius > WIDE_GYRATION * size:
            message = (
                f"radius of gyration {radius:.3g} m, but the body is about {size:.3g} m long; check the unit "
                "of the inertia (kg m²) and of the lengths (m)"
            )
            yield Finding("warning", "gyration", _body(body), message)


def _moving_masses(model: Model) -> Iterator[Finding]:
    """Yield findings on joints that move no inertia; a body without mass may pass motion on."""
    subtree_mass = [float(body.inertia.mass) for body in model.bodies]
    for body in reversed(model.bodies):
        if body.parent >= 0:
            subtree_mass[body.parent] += subtree_mass[body.index]
    for body in model.bodies:
        if not body.nv or float(body.inertia.mass) != 0.0 or any(body.inertia.leaves()):
            continue
        if subtree_mass[body.index] != 0.0:
            message = "moves and has no mass of its own; what it carries has"
            yield Finding("note", "mass", _body(body), message)
        elif not all(body.armature):
            message = (
                f'joint "{body.joint_name}" moves no mass, so that forward dynamics are undefined; give the '
                "body an inertia or the joint an armature, or lock the joint"
            )
            yield Finding("error", "mass", _body(body), message)


def _inertia_ratios(model: Model, rule: str, limits: dict[str, float]) -> Iterator[Finding]:
    """Yield the first quantity of a body that differs from its parent's by more than its limit."""
    for body in model.bodies:
        if body.parent < 0:
            continue
        parent = model.bodies[body.parent]
        for quantity, limit in limits.items():
            power = 0 if quantity == "mass" else 2  # of the radius of gyration: mass, or moment of inertia
            own, other = (
                float(each.inertia.mass) * radius_of_gyration(each.inertia) ** power
                for each in (body, parent)
            )
            if own > 0.0 and other > 0.0 and max(own / other, other / own) > limit:
                message = (
                    f'its {quantity} and that of its parent "{parent.name}" differ by a factor of '
                    f"{max(own / other, other / own):.3g}; merge the lighter one, or check the units"
                )
                yield Finding("warning", rule, _body(body), message)
                break


def _far_frames(model: Model, radii: float) -> Iterator[Finding]:
    """Yield findings on centres of mass farther from their frames than this number of radii of gyration:
    rounding grows with the square of the distance (Featherstone 2008 Eq. 10.1).
    """
    for body in model.bodies:
        radius, distance = radius_of_gyration(body.inertia), float(body.inertia.com.norm())
        if 0.0 < radii * radius < distance:
            severity: Severity = "warning" if distance > VERY_FAR_FRAME * radius else "note"
            message = (
                f"its centre of mass is {distance:.3g} m from its frame, {distance / radius:.3g} radii of "
                f"gyration ({radius:.3g} m): rounding loses {2 * math.log10(distance / radius):.1f} digits; "
                "put the frame nearer, or check the inertia"
            )
            yield Finding(severity, "far frame", _body(body), message)


def _limits(model: Model) -> Iterator[Finding]:
    neutral = model.neutral().tolist()
    for body in model.bodies:
        where = f'joint "{body.joint_name}"'
        limits = body.limits
        for low, x, high in zip(_each(limits, "lower"), body.own_q(neutral), _each(limits, "upper")):
            if not low <= x <= high:
                message = f"neutral position {x:.4g} is outside its limits {low:.4g} to {high:.4g}"
                yield Finding("warning", "limits", where, message)
            elif low == high:
                message = f"its limits {low:.4g} to {high:.4g} leave no room to move"
                yield Finding("note", "limits", where, message)
        for name in ("velocity", "effort"):
            if body.nv and not all(_each(limits, name)):
                yield Finding("note", "limits", where, f"its {name} limit is zero")


def _conditioning(model: Model) -> Iterator[Finding]:
    if not 0 < model.nv <= MAX_CONDITION_NV:
        return
    condition = mass_matrix_condition(model)
    if condition > MAX_CONDITION_NUMBER:
        singular = condition > SINGULAR_CONDITION_NUMBER
        effect = "singular" if singular else f"{math.log10(condition):.0f} digits are lost"
        number = f"condition number, scaled to a unit diagonal, is {condition:.1e}"
        message = f"at the neutral pose its {number}: {effect}"
        yield Finding("error" if singular else "warning", "mass matrix", "model", message)


def mass_matrix_condition(model: Model) -> float:
    """Return cond(D M D) at the neutral pose, D = diag(M)^-1/2, which takes the units out; infinite if M is
    not positive definite.
    """
    try:
        return float(condition_number(model.tree(), scaled=True))
    except DalembertError:  # numbers that are not finite have no eigenvalues
        return math.inf


def _loops(model: Model) -> Iterator[Finding]:
    if not model.loops:
        return
    time = 0.0 if model.time_dependent else None
    poses = algorithms.forward_kinematics(model, model.neutral().tolist(), time=time)
    pose = {WORLD: Transform.identity()} | dict(enumerate(poses))
    for loop in model.loops:
        X_p = pose[loop.predecessor] @ loop.placement_predecessor.as_transform()
        X_s = pose[loop.successor] @ loop.placement_successor.as_transform()
        try:
            delta = loop.joint.closure_error(X_p.inverse() @ X_s, time)
        except DalembertError:  # composite and user joints need not know their position
            continue
        gap = max((abs(float(x)) for x in delta), default=0.0)
        if gap > LOOP_GAP:
            message = f"is open by {gap:.3g} (m or rad) at the neutral pose"
            yield Finding("note", "loop", f'loop "{loop.name}"', message)


def _loader_findings(model: Model) -> Iterator[Finding]:
    """Yield the loader's reports, except for those that the rules above say better."""
    known = set(inspect_bodies(tuple(model.bodies), "as_given"))
    for line in model.report:
        if line not in known:
            severity: Severity = "warning" if line.startswith("repaired:") else "note"
            yield Finding(severity, "file", "file", line.removeprefix("warning: "))


def _body(body: Body) -> str:
    return f'body "{body.name}"'


def _each(limits: Limits, name: str) -> tuple[float, ...]:
    value: Any = getattr(limits, name)
    return value if isinstance(value, tuple) else (value,)


EXTENTS: Final[dict[type[Shape], Callable[[Any], float]]] = {
    Box: lambda box: max(box.size),
    Sphere: lambda sphere: 2.0 * sphere.radius,
    Ellipsoid: lambda ellipsoid: 2.0 * max(ellipsoid.radii),
    Cylinder: lambda cylinder: max(cylinder.length, 2.0 * cylinder.radius),
    Capsule: lambda capsule: capsule.length + 2.0 * capsule.radius,
    ConvexMesh: lambda mesh: float(np.ptp(np.array(mesh.vertices), axis=0).max()),
}
"""The greatest length [m] of a shape."""


def _size(body: Body, reach: float) -> float:
    """Return a length of the body [m]: the farthest joint, shape or centre of mass; zero if neither joints
    nor shapes tell, or if meshes would.
    """
    kinds = [type(shape) for shape in body.shapes]
    if Mesh in kinds:
        return 0.0
    known = [EXTENTS[kind](shape) for kind, shape in zip(kinds, body.shapes) if kind in EXTENTS]
    size = max([reach, *known])
    return max(size, float(body.inertia.com.norm())) if size > 0.0 and body.inertia.mass > 0.0 else size


Array = npt.NDArray[np.float64]


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
    found: list[Finding] = []
    if condition > ILL_CONDITIONED:
        lost = "all" if math.isinf(condition) else f"up to {math.log10(condition):.0f}"
        message = (
            f"its condition number, scaled to a unit diagonal, is {condition:.2g}: {lost} digits are lost in "
            "accelerations, with any algorithm; they are as uncertain as the forces are"
        )
        found.append(Finding("warning", "mass matrix", "model", message))
    if least < depth:
        message = (
            f"its tree has a depth of {depth}, but {least} is possible if the loops are cut at other joints, "
            "which is more accurate and cheaper"
        )
        found.append(Finding("note", "depth", "model", message))
    found = _by_severity(
        _far_frames(whole, ACCURATE_FRAME),
        _inertia_ratios(whole, "inertia ratio", {"mass": MASS_RATIO, "moment of inertia": MOMENT_RATIO}),
        near_singular_loops(whole, position),
        found,
    )
    digits = dict.fromkeys(("float64", "float32"), math.nan)
    if not math.isnan(condition):
        digits = {name: max(0.0, -math.log10(np.finfo(name).eps * max(condition, 1.0))) for name in digits}
    return AccuracyReport(model.name, tuple(found), condition, digits, depth, least)


@own_errors
def near_singular_loops(model: Model, q: npt.ArrayLike | None = None) -> list[Finding]:
    """Find loops whose equations K(q) a = k are nearly dependent at q (nq,), by default neutral.

    A singular value of K is then below a thousandth of the largest, but not zero: equations that are always
    dependent, as in planar loops, do no harm.

    Source: Featherstone 2008 section 10.1.

    >>> flat = da.models.four_bar(ground=1.0, crank=0.3, coupler=1.0, rocker=0.3 + 1e-9)
    >>> print(da.analysis.near_singular_loops(flat)[0].rule)
    nearly singular loop
    """
    position = one_configuration(model, q, "near_singular_loops")
    if not is_constrained(model) or not model.nv:
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
    message = (
        f"their equations are nearly dependent: a singular value of K is {small[-1]:.1e} of the largest, so "
        f"that forces in the loops lose {-math.log10(small[-1]):.0f} digits; move away from this "
        "configuration, or change the geometry"
    )
    return [Finding("warning", "nearly singular loop", "loops", message)]


def depths(model: Model) -> tuple[int, int]:
    """Return the depth of the tree and the least depth over all spanning trees of the same joints."""
    neighbours: dict[int, list[int]] = {body: [] for body in range(WORLD, len(model.bodies))}
    loops = [(loop.predecessor, loop.successor) for loop in model.loops]
    for one, other in [*zip(model.parents, range(len(model.bodies)), strict=True), *loops]:
        neighbours[one].append(other)
        neighbours[other].append(one)
    reached, front, least = {WORLD}, [WORLD], -1
    while front:  # the bodies by the number of joints that they are from the world
        front = [other for body in front for other in neighbours[body] if other not in reached]
        reached |= set(front)
        least += 1
    return max(topology.depths(model.parents), default=0), least


def _condition(model: Model, q: Array) -> float:
    if not 0 < model.nv <= MAX_CONDITION_NV or constrained_inertia(model, q).shape[-1] == 0:
        return 1.0 if not model.nv else math.nan
    return float(condition_number(model, q, scaled=True))
