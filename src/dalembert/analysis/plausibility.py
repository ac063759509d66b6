"""Checks of a model for implausible values: masses, inertias, frames, limits and the mass matrix.

`findings(model)` looks for what makes results wrong or loses digits (Featherstone 2008 section 10.1). Bodies
on fixed joints count as parts of the bodies that carry them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np

from dalembert import algorithms
from dalembert.errors import DalembertError
from dalembert.model.body import Body, Limits
from dalembert.model.checks import inspect_bodies
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from dalembert.spatial import physical_problems
from dalembert.spatial.transform import Transform

__all__ = ["Finding", "Severity", "findings"]

Severity = Literal["error", "warning", "note"]

FAR_FRAME: Final = 10.0
"""Radii of gyration from a body's origin to its centre of mass, beyond which rounding loses two digits."""
VERY_FAR_FRAME: Final = 100.0
"""The same for four digits: few bodies are so slender, so that the inertia is doubtful too."""
MASS_RATIO: Final = 1000.0
"""Ratio of the masses of neighbours: that of bodies of one material, one ten times as long as the other."""
WIDE_GYRATION: Final = 10.0
"""Ratio of the radius of gyration to the size of a body, above which the inertia is doubtful."""
SMALLEST_SIZE: Final = 1e-6
"""Sizes [m] below this are rounding errors of coincident joints."""
MAX_CONDITION_NUMBER: Final = 1e8
"""Condition number of the scaled mass matrix beyond which half of the digits are lost."""
SINGULAR_CONDITION_NUMBER: Final = 1e13
"""Condition number beyond which accelerations mean nothing in double precision."""
LOOP_GAP: Final = 1e-6
"""Closure error [m, rad] of a loop that counts as closed."""
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
    found = [
        *_inertias(whole),
        *massless,
        *_mass_ratios(whole),
        *_frames(whole),
        *_limits(model),
        *([] if any(f.severity == "error" for f in massless) else _conditioning(whole)),
        *_loops(model),
        *_loader_findings(model),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda finding: order[finding.severity])


def _inertias(model: Model) -> Iterator[Finding]:
    reach = _reach(model)
    for body in model.bodies:
        for problem in physical_problems(body.inertia):
            yield Finding("error", "inertia", _body(body), problem)
        radius = _radius_of_gyration(body)
        size = _size(body, reach[body.index])
        if size > SMALLEST_SIZE and radius > WIDE_GYRATION * size:
            yield Finding(
                "warning",
                "gyration",
                _body(body),
                f"radius of gyration {radius:.3g} m, but the body is about {size:.3g} m long; check the unit "
                "of the inertia (kg m²) and of the lengths (m)",
            )


def _moving_masses(model: Model) -> Iterator[Finding]:
    """Yield findings on joints that move no inertia; a body without mass may pass motion on."""
    carried = [float(body.inertia.mass) for body in model.bodies]
    for body in reversed(model.bodies):
        if body.parent >= 0:
            carried[body.parent] += carried[body.index]
    for body in model.bodies:
        if not body.nv or float(body.inertia.mass) != 0.0 or any(body.inertia.leaves()):
            continue
        if carried[body.index] != 0.0:
            yield Finding(
                "note", "mass", _body(body), "moves and has no mass of its own; what it carries has"
            )
        elif not all(body.armature):
            yield Finding(
                "error",
                "mass",
                _body(body),
                f'joint "{body.joint_name}" moves no mass, so that forward dynamics are undefined; give the '
                "body an inertia or the joint an armature, or lock the joint",
            )


def _mass_ratios(model: Model) -> Iterator[Finding]:
    for body in model.bodies:
        if body.parent < 0:
            continue
        parent = model.bodies[body.parent]
        own, other = float(body.inertia.mass), float(parent.inertia.mass)
        if own <= 0.0 or other <= 0.0:
            continue
        ratio = max(own / other, other / own)
        if ratio > MASS_RATIO:
            yield Finding(
                "warning",
                "mass ratio",
                _body(body),
                f'{own:.3g} kg beside {other:.3g} kg of its parent "{parent.name}": a ratio of {ratio:.3g}',
            )


def _frames(model: Model) -> Iterator[Finding]:
    """Yield findings on far frames: rounding grows with the square of the distance in radii of gyration
    (Featherstone 2008 Eq. 10.1).
    """
    for body in model.bodies:
        if not float(body.inertia.mass) > 0.0:
            continue
        radius, distance = _radius_of_gyration(body), _length(body.inertia.com)
        if 0.0 < radius < math.inf and distance > FAR_FRAME * radius:
            yield Finding(
                "warning" if distance > VERY_FAR_FRAME * radius else "note",
                "far frame",
                _body(body),
                f"its centre of mass is {distance:.3g} m from its frame, {distance / radius:.3g} radii of "
                f"gyration ({radius:.3g} m): rounding loses {2 * math.log10(distance / radius):.1f} digits, "
                "or the inertia is too small",
            )


def _limits(model: Model) -> Iterator[Finding]:
    neutral = model.neutral().tolist()
    for body in model.bodies:
        where = f'joint "{body.joint_name}"'
        limits = body.limits
        for low, x, high in zip(_each(limits, "lower"), body.own_q(neutral), _each(limits, "upper")):
            if not low <= x <= high:
                yield Finding(
                    "warning",
                    "limits",
                    where,
                    f"neutral position {x:.4g} is outside its limits {low:.4g} to {high:.4g}",
                )
            elif low == high:
                yield Finding(
                    "note", "limits", where, f"its limits {low:.4g} to {high:.4g} leave no room to move"
                )
        for name in ("velocity", "effort"):
            if body.nv and not all(_each(limits, name)):
                yield Finding("note", "limits", where, f"its {name} limit is zero")


def _conditioning(model: Model) -> Iterator[Finding]:
    if not 0 < model.nv <= MAX_CONDITION_NV:
        return
    condition = mass_matrix_condition(model)
    if condition <= MAX_CONDITION_NUMBER:
        return
    severity: Severity = "error" if condition > SINGULAR_CONDITION_NUMBER else "warning"
    meaning = (
        "singular"
        if condition > SINGULAR_CONDITION_NUMBER
        else f"{math.log10(condition):.0f} digits are lost"
    )
    yield Finding(
        severity,
        "mass matrix",
        "model",
        f"at the neutral pose its condition number, scaled to a unit diagonal, is {condition:.1e}: {meaning}",
    )


def mass_matrix_condition(model: Model) -> float:
    """Return cond(D M D) at the neutral pose, D = diag(M)^-1/2, which takes the units out; infinite if M is
    not positive definite.
    """
    time = 0.0 if model.time_dependent else None
    M = np.array(algorithms.mass_matrix(model.tree(), model.neutral().tolist(), time=time), dtype=float)
    diagonal = np.diag(M)
    if not np.isfinite(M).all() or not (diagonal > 0.0).all():
        return math.inf
    D = 1.0 / np.sqrt(diagonal)
    eigenvalues = np.linalg.eigvalsh(D[:, None] * M * D)
    return float(eigenvalues[-1] / eigenvalues[0]) if eigenvalues[0] > 0.0 else math.inf


def _loops(model: Model) -> Iterator[Finding]:
    if not model.loops:
        return
    time = 0.0 if model.time_dependent else None
    poses = algorithms.forward_kinematics(model, model.neutral().tolist(), time=time)
    for loop in model.loops:
        ends = []
        for index, placement in (
            (loop.predecessor, loop.placement_predecessor),
            (loop.successor, loop.placement_successor),
        ):
            pose = Transform.identity() if index < 0 else poses[model.bodies[index]]
            ends.append(pose @ placement.as_transform())
        try:
            delta = loop.joint.closure_error(ends[0].inverse() @ ends[1], time)
        except DalembertError:  # composite and user joints need not know their position
            continue
        gap = max((abs(float(x)) for x in delta), default=0.0)
        if gap > LOOP_GAP:
            yield Finding(
                "note", "loop", f'loop "{loop.name}"', f"is open by {gap:.3g} (m or rad) at the neutral pose"
            )


def _loader_findings(model: Model) -> Iterator[Finding]:
    """Yield the loader's reports, except for those that the rules above say better."""
    known = set(inspect_bodies(tuple(model.bodies), "as_given"))
    for line in model.report:
        if line in known:
            continue
        severity: Severity = "warning" if line.startswith("repaired:") else "note"
        yield Finding(severity, "file", "file", line.removeprefix("warning: "))


def _body(body: Body) -> str:
    return f'body "{body.name}"'


def _each(limits: Limits, name: str) -> tuple[float, ...]:
    value: Any = getattr(limits, name)
    return value if isinstance(value, tuple) else (value,)


def _radius_of_gyration(body: Body) -> float:
    """Return sqrt(greatest moment about the centre of mass / mass) [m]; zero for a particle or no mass."""
    mass = float(body.inertia.mass)
    if mass <= 0.0:
        return 0.0
    about_com = np.array(body.inertia.inertia_at_com.to_list(), dtype=float)
    if not np.isfinite(about_com).all():  # reported as an inertia that no body can have
        return 0.0
    moments = np.linalg.eigvalsh(about_com)
    return math.sqrt(max(float(moments[-1]), 0.0) / mass)


def _reach(model: Model) -> list[float]:
    """Return the distance from each body's origin to the farthest joint on it [m]."""
    reach = [0.0] * len(model.bodies)
    for body in model.bodies:
        if body.parent >= 0:
            reach[body.parent] = max(reach[body.parent], _length(body.placement.as_transform().p))
    return reach


def _size(body: Body, reach: float) -> float:
    """Return a length of the body [m]: the farthest joint, shape or centre of mass; zero if neither joints
    nor shapes tell, or if meshes would.
    """
    if any(isinstance(shape, Mesh) for shape in body.shapes):
        return 0.0
    size = max([reach, *(_extent(shape) for shape in body.shapes)])
    return max(size, _length(body.inertia.com)) if size > 0.0 and body.inertia.mass > 0.0 else size


def _length(vector: Iterable[Any]) -> float:
    return math.sqrt(sum(float(x) * float(x) for x in vector))


def _extent(shape: Shape) -> float:
    lengths: Sequence[float] = ()
    match shape:
        case Box():
            lengths = shape.size
        case Sphere():
            lengths = (2.0 * shape.radius,)
        case Ellipsoid():
            lengths = tuple(2.0 * r for r in shape.radii)
        case Cylinder():
            lengths = (shape.length, 2.0 * shape.radius)
        case Capsule():
            lengths = (shape.length + 2.0 * shape.radius,)
        case ConvexMesh():
            lengths = tuple(float(x) for x in np.ptp(np.array(shape.vertices), axis=0))
    return max(lengths, default=0.0)
